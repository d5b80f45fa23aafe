"""What random damage must never do: accuse a faithful request that comes later, or cost much."""

from __future__ import annotations

import os
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, message, text, thinking, use
from tests.core.conversations import KEY, MATRIX
from tests.core.damage import watched

SEEDS = (
    *range(int(os.environ.get("OTEL_SEALED_LAWS", "0")) or 12),
    55,
    105,
    134,
    202,
    649,
    731,
    989,
)
"""Hosts of each dialect; as many as examples of a law in the long profile (`.ci/run laws`).

The last ones were accused, or were judged without end, before what they show was understood."""


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_faithful_request_after_damaged_ones_is_accused_of_nothing(
    dialect: str, seed: int
) -> None:
    found = [
        (number, f.artifact, f.fate.value)
        for number, seen in enumerate(watched(dialect, seed))
        for f in seen.report.findings
        if f.verdict.violates and not seen.damage
    ]
    assert [] == found


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_request_needs_few_steps(dialect: str, seed: int) -> None:
    assert {()} == {seen.report.unread for seen in watched(dialect, seed)}


def test_a_thought_without_its_seal_is_found_where_its_turn_is_not_in_the_line() -> None:
    """The second answer was given to the question alone, so that it continues nothing.

    The host has both in its history, and strips the first one.
    """
    MINT.begin("a thought beside the line")
    tracker = Tracker(KEY)
    question = {"role": "user", "content": "Question."}
    one, two = message(thinking(), text()), message(text(), use(), stop="tool_use")
    for sent, answer in (([question], one), ([question], two)):
        tracker.observe(Exchange(Api.MESSAGES, request=_asks(sent), response=answer, status=200))
    stripped = [{k: v for k, v in part.items() if k != "signature"} for part in one["content"]]
    result = {"type": "tool_result", "tool_use_id": two["content"][1]["id"], "content": "done"}
    history = [
        question,
        {"role": "user", "content": "Tell me first."},
        {"role": "assistant", "content": stripped},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": two["content"]},
        {"role": "user", "content": [result]},
    ]
    report = tracker.observe(Exchange(Api.MESSAGES, request=_asks(history), status=200))
    assert [("dropped", "messages.2.content.0")] == [
        (f.fate.value, f.returned) for f in report.findings if f.artifact.endswith("signature")
    ]


def _asks(history: list[Any]) -> dict[str, Any]:
    asked = {"model": "claude-opus-5", "max_tokens": 9, "messages": history}
    return {**asked, "thinking": {"type": "adaptive"}}


SAID = "Hello! How can I help you today?"


def test_of_two_places_with_the_same_words_a_block_is_the_one_with_its_seal() -> None:
    """A message that another process saw is next to one of ours that says the same."""
    MINT.begin("two of the same words")
    tracker = Tracker(KEY)
    parts = [{"text": SAID, "thoughtSignature": MINT.seal()} for _ in range(2)]
    question = {"role": "user", "parts": [{"text": "Question."}]}
    ours = {"candidates": [{"content": {"role": "model", "parts": parts[1:]}}]}
    api = Api.GENERATE_CONTENT
    tracker.observe(Exchange(api, request={"contents": [question]}, response=ours, status=200))
    both = [{"role": "model", "parts": [part]} for part in parts]
    sent = {"contents": [question, *both, question]}
    report = tracker.observe(Exchange(api, request=sent, status=200))
    assert [("intact", "contents.2.parts.0"), ("unknown", "contents.1.parts.0")] == sorted(
        (f.fate.value, f.returned) for f in report.findings if f.artifact.endswith("signature")
    )
