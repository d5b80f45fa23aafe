"""Rows of the fate table that no other test needs, each by the one thing that makes it hold."""

from __future__ import annotations

import base64

import pytest

from otel_sealed.align.table import FATES
from otel_sealed.model import Cause, Fate
from tests.core.builders import (
    blocks,
    candidate,
    chat,
    edit,
    message,
    part,
    parts_of,
    text,
    thinking,
    use,
)
from tests.core.conversations import Body, replay

SIGNATURE = "anthropic.thinking.signature"
THOUGHT = "gemini.part.thought_signature"
ELSEWHERE = {"provider": "minimax", "host": "api.minimax.io"}
"""Another vendor that speaks the wire of Messages."""


def encoded(block: Body) -> str:
    return base64.b64encode(block.pop("signature").encode()).decode()


def moved_into_a_text(body: Body) -> None:
    found = blocks(body)
    found.append({"type": "text", "text": found[0].pop("signature")})


def encoded_in_its_slot(body: Body) -> None:
    one = blocks(body)[0]
    one["signature"] = encoded(one)


def encoded_in_another_slot(body: Body) -> None:
    found = blocks(body)
    found.append({"type": "redacted_thinking", "data": encoded(found[0])})


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (moved_into_a_text, None),
        (encoded_in_its_slot, Cause.DOUBLE_ENCODED),
        (encoded_in_another_slot, Cause.DOUBLE_ENCODED),
    ],
)
def test_whatever_became_of_a_seal_it_is_foreign_to_another_vendor(
    change: object, cause: Cause | None
) -> None:
    report = replay("anthropic", message(thinking(), use()), edit(change), **ELSEWHERE)  # type: ignore[arg-type]
    found = [f for f in report.findings if f.artifact == SIGNATURE]
    assert [(f.fate, f.cause) for f in found] == [(Fate.FOREIGN, cause)]


def test_a_seal_on_a_block_of_another_kind_in_the_place_of_its_own_is_misplaced() -> None:
    """Its call became a text, so that the text is what its block became."""

    def change(body: Body) -> None:
        one = parts_of(body)[0]
        one.pop("functionCall")
        one["text"] = "Looking it up."

    report = replay("gemini", candidate(part()), edit(change))
    found = [f for f in report.findings if f.artifact == THOUGHT]
    assert [(f.fate, f.cause) for f in found] == [(Fate.MISPLACED, Cause.WRONG_SLOT)]


def test_a_seal_whose_turn_is_gone_as_a_whole_was_dropped_with_it() -> None:
    def change(body: Body) -> None:
        del body["messages"][1:3]

    answers = [message(thinking(), use()), message(thinking(), use()), message(text())]
    report = chat("anthropic", *answers, change=edit(change))[0]
    found = [f for f in report.findings if f.artifact == SIGNATURE and f.fate is Fate.DROPPED]
    assert [f.cause for f in found] == [Cause.WHOLE_TURN]


def test_each_row_of_a_situation_has_a_name_of_its_own() -> None:
    found = {group: [row.name for row in rows] for group, rows in FATES.items()}
    assert {g: len({*names}) for g, names in found.items()} == {
        g: len(names) for g, names in found.items()
    }


def test_the_last_row_of_each_situation_always_holds() -> None:
    assert {rows[-1].name for rows in FATES.values()} == {"always"}
