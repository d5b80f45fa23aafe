"""Pieces of streamed reasoning that a host stores one by one: split, and made up by nobody (R5)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, edit, message, redacted, text, thinking, use
from tests.core.chat_cases import answer as chat_answer
from tests.core.chat_wire import detail, encrypted, tool_call
from tests.core.conversations import KEY, STREAM, Body, Change, exchange, history, replay, step

Row = tuple[str, str, str, str]
WHOLE = "Let me count all of them, one by one, and then say."
TEXTS = (WHOLE[:12], WHOLE[12:30], WHOLE[30:])
Pieces = Callable[[str], list[Body]]

SIGNED: dict[str, Pieces] = {
    "the last": lambda s: [*texts(TEXTS[:2]), {"text": TEXTS[2], "signature": s}],
    "an empty one": lambda s: [*texts(TEXTS), {"text": "", "signature": s}],
    "one with a null": lambda s: [*texts(TEXTS), {"text": None, "signature": s}],
    "one without a text": lambda s: [*texts(TEXTS), {"signature": s}],
    "the last, nulls before": lambda s: [
        *texts(TEXTS, signature=None),
        {"text": "", "signature": s},
    ],
    "the last, empty ones before": lambda s: [
        *texts(TEXTS, signature=""),
        {"text": "", "signature": s},
    ],
    "the first": lambda s: [{"text": TEXTS[0], "signature": s}, *texts(TEXTS[1:])],
    "one before all": lambda s: [{"text": "", "signature": s}, *texts(TEXTS)],
    "one after the whole": lambda s: [*texts([WHOLE]), {"text": "", "signature": s}],
    "one before the whole": lambda s: [{"text": "", "signature": s}, *texts([WHOLE])],
    "the whole, nothing before": lambda s: [*texts([""]), {"text": WHOLE, "signature": s}],
}
"""By which of them is signed, the pieces of one text."""


def texts(found: Any, **more: Any) -> list[Body]:
    """Pieces without a signature."""
    return [{"text": one, **more} for one in found]


def reasoned(*details: Body, loop: bool = True) -> Body:
    calls = [tool_call(MINT)] if loop else ()
    return chat_answer("openrouter", content="So.", reasoning_details=list(details), calls=calls)


def in_pieces(pieces: Pieces, *, signed: bool = True) -> Change:
    """A host that stores each detail of a stream as it came."""

    def change(body: Body) -> None:
        said = next(m for m in body["messages"] if m["role"] == "assistant")
        found: list[Body] = []
        for one in said["reasoning_details"]:
            common = {k: one[k] for k in ("type", "format", "index")}
            found += [common | piece for piece in pieces(one["signature"])]
        if not signed:
            found = [{k: v for k, v in one.items() if k != "signature"} for one in found]
        said["reasoning_details"] = found

    return edit(change)


def rows(dialect: str, answer: Body, change: Change) -> set[Row]:
    report = replay(dialect, answer, change)
    return {
        (f.artifact.rpartition(".")[2], f.fate.value, f.verdict.value, f.rule)
        for f in report.findings
        if f.verdict.value != "ok"
    }


@pytest.mark.parametrize("which", SIGNED)
@pytest.mark.parametrize("loop", [True, False], ids=["loop", "finished"])
def test_pieces_of_one_detail_are_split(which: str, *, loop: bool) -> None:
    answer = reasoned(detail(MINT, text=WHOLE), loop=loop)
    found = rows("openrouter", answer, in_pieces(SIGNED[which]))
    assert {row[1:3] for row in found} == {("split", "breaks" if loop else "degrades")}


@pytest.mark.parametrize("which", SIGNED)
def test_pieces_that_lost_the_signature_are_a_lost_signature(which: str) -> None:
    """R7: and no signature was made up."""
    answer = reasoned(detail(MINT, text=WHOLE))
    found = rows("openrouter", answer, in_pieces(SIGNED[which], signed=False))
    assert found == {("signature", "dropped", "breaks", "R7")}


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
def test_each_of_two_details_may_be_in_pieces(*, signed: bool) -> None:
    answer = reasoned(detail(MINT, text=WHOLE), detail(MINT, 1, text=WHOLE[::-1]))

    def change(body: Body) -> None:
        said = next(m for m in body["messages"] if m["role"] == "assistant")
        found = []
        for one in said["reasoning_details"]:
            common = {k: one[k] for k in ("type", "format", "index")}
            cuts = (one["text"][:12], one["text"][12:30], one["text"][30:])
            found += [common | {"text": cut} for cut in cuts]
            found += [common | {"signature": one["signature"]}] if signed else []
        said["reasoning_details"] = found

    fates = {row[1] for row in rows("openrouter", answer, edit(change))}
    assert fates == {"split" if signed else "dropped"}


def test_a_streamed_detail_in_its_pieces_is_split() -> None:
    answer = reasoned(detail(MINT, text=WHOLE))
    tracker = Tracker(KEY)
    body: Body = {
        "model": "anthropic/claude-opus-5",
        "messages": [{"role": "user", "content": "?"}],
    }
    tracker.observe(exchange("openrouter", copy.deepcopy(body), answer, STREAM))
    history(body).extend(step("openrouter", answer, "Go on."))
    body = in_pieces(SIGNED["one without a text"])(body)
    report = tracker.observe(exchange("openrouter", body, None, status=None))
    assert "fabricated" not in {f.fate.value for f in report.findings}
    assert "split" in {f.fate.value for f in report.findings}


@pytest.mark.parametrize("key", [{"data": ""}, {"data": None}, {}], ids=["empty", "null", "none"])
def test_an_encrypted_detail_next_to_an_empty_one_is_split(key: Body) -> None:
    def change(body: Body) -> None:
        details = next(m for m in body["messages"] if m["role"] == "assistant")["reasoning_details"]
        details.insert(0, {k: v for k, v in details[0].items() if k != "data"} | key)

    found = rows("openrouter", reasoned(encrypted(MINT)), edit(change))
    assert found == {("data", "split", "breaks", "R5")}


def test_a_signature_in_pieces_next_to_the_whole_text_is_split() -> None:
    def change(body: Body) -> None:
        said = next(m for m in body["messages"] if m["role"] == "assistant")
        (one,) = said["reasoning_details"]
        common = {k: one[k] for k in ("type", "format", "index")}
        half = len(one["signature"]) // 2
        halves = (one["signature"][:half], one["signature"][half:])
        said["reasoning_details"] = [common | {"text": one["text"]}]
        said["reasoning_details"] += [common | {"text": "", "signature": seal} for seal in halves]

    found = rows("openrouter", reasoned(detail(MINT, text=WHOLE)), edit(change))
    assert {row[1] for row in found} == {"split"}


@pytest.mark.parametrize("which", SIGNED)
@pytest.mark.parametrize("loop", [True, False], ids=["loop", "finished"])
def test_at_anthropic_each_piece_needs_a_signature(which: str, *, loop: bool) -> None:
    """A3: wherever the block is."""
    ending = use() if loop else text()
    answer = message(thinking(WHOLE), ending, stop="tool_use" if loop else "end_turn")

    def change(body: Body) -> None:
        content = body["messages"][1]["content"]
        pieces = SIGNED[which](content.pop(0)["signature"])
        content[:0] = [
            {"type": "thinking"} | {"thinking" if k == "text" else k: v for k, v in one.items()}
            for one in pieces
        ]

    found = rows("anthropic", answer, edit(change))
    assert {row[1:] for row in found} == {("split", "breaks", "A3")}


def test_an_empty_redacted_block_next_to_one_is_refused() -> None:
    def change(body: Body) -> None:
        body["messages"][1]["content"].insert(0, {"type": "redacted_thinking", "data": ""})

    found = rows("anthropic", message(redacted(), use(), stop="tool_use"), edit(change))
    assert found == {("data", "split", "breaks", "A3")}


@pytest.mark.parametrize("data", ["", None], ids=["empty", "null"])
def test_a_redacted_block_that_lost_its_data_is_no_piece_of_its_neighbour(data: str | None) -> None:
    def change(body: Body) -> None:
        body["messages"][1]["content"][1]["data"] = data

    answer = message(thinking(WHOLE), redacted(), use(), stop="tool_use")
    assert rows("anthropic", answer, edit(change)) == {("data", "dropped", "breaks", "A3")}


def test_a_detail_that_lost_its_data_is_no_piece_of_its_neighbour() -> None:
    def change(body: Body) -> None:
        details = next(m for m in body["messages"] if m["role"] == "assistant")["reasoning_details"]
        del details[1]["data"]

    answer = reasoned(encrypted(MINT), encrypted(MINT, 1))
    assert {row[1] for row in rows("openrouter", answer, edit(change))} == {"dropped"}


def test_a_thought_of_the_hosts_own_next_to_a_signed_one_is_made_up() -> None:
    def change(body: Body) -> None:
        own = {"type": "thinking", "thinking": "My own idea.", "signature": ""}
        body["messages"][1]["content"].insert(1, own)

    found = rows("anthropic", message(thinking(), use(), stop="tool_use"), edit(change))
    assert found == {("signature", "fabricated", "breaks", "A18")}


def test_calls_sent_as_steps_are_no_pieces_of_thinking() -> None:
    def change(body: Body) -> None:
        said, results = body["messages"][1]["content"], body["messages"][2]["content"]
        body["messages"][1:3] = [
            {"role": "assistant", "content": said[:2]},
            {"role": "user", "content": results[:1]},
            {"role": "assistant", "content": said[2:]},
            {"role": "user", "content": results[1:]},
        ]

    answer = message(thinking(), use(), thinking(), use(), stop="tool_use")
    assert {row[3] for row in rows("anthropic", answer, edit(change))} == {"A5"}
