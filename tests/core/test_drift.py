"""Keys that look sealed and that no provider file describes, by name and size only."""

from __future__ import annotations

from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, candidate, message, part, reasoning, response, thinking
from tests.core.conversations import APIS, KEY

BLOB = MINT.seal()


def drift(dialect: str, answer: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    return Tracker(KEY).observe(Exchange(APIS[dialect], response=answer)).drift


@pytest.mark.parametrize(
    ("dialect", "answer"),
    [
        ("anthropic", message(thinking(), thinking("") | {"type": "redacted_thinking"})),
        ("openai", response(reasoning("Sum."), {"type": "compaction", "encrypted_content": BLOB})),
        ("gemini", candidate(part("call"), part("text"), part("image"))),
    ],
)
def test_what_the_tables_describe_does_not_drift(dialect: str, answer: dict[str, Any]) -> None:
    described = {"signature"}  # of a redacted block, which has none by the tables
    assert set() == {name for name, _ in drift(dialect, answer)} - described


def test_a_new_sealed_key_on_a_known_block_is_named_with_its_size() -> None:
    answer = message(thinking() | {"binding_signature": BLOB})
    assert (("binding_signature", len(BLOB)),) == drift("anthropic", answer)


def test_a_new_key_is_told_by_its_value_alone() -> None:
    answer = response(reasoning() | {"carry": BLOB})
    assert (("carry", len(BLOB)),) == drift("openai", answer)


def test_camel_case_is_written_as_the_vocabulary_writes_it() -> None:
    answer = candidate(part("text") | {"stateSignature": BLOB})
    assert (("state_signature", len(BLOB)),) == drift("gemini", answer)


@pytest.mark.parametrize(
    "value",
    ["short", "two words " * 20, "a" * 200, "0123456789abcdef" * 8, 7, None, ["x"], {"y": "z"}],
)
def test_what_does_not_look_sealed_does_not_drift(value: Any) -> None:
    assert () == drift("anthropic", message(thinking() | {"note": value}))


def test_a_name_that_is_no_word_goes_out_as_other() -> None:
    answer = message(thinking() | {"Señal signature": BLOB})
    assert (("other", len(BLOB)),) == drift("anthropic", answer)


def test_the_list_is_bounded() -> None:
    extra = {f"signature_{n}": BLOB for n in range(40)}
    assert 16 == len(drift("anthropic", message(thinking() | extra)))


def test_deep_nesting_ends_the_search() -> None:
    nested: Any = BLOB
    for _ in range(200):
        nested = {"signature_x": nested}
    assert () == drift("anthropic", message(thinking() | {"more": nested}))


def test_a_dialect_without_a_response_has_no_drift() -> None:
    assert () == Tracker(KEY).observe(Exchange(Api.MESSAGES)).drift
