"""Many conversations in one process: each call reads what is new, whatever the others are."""

from __future__ import annotations

import copy
import dataclasses
import gc
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from otel_sealed.contract import Exchange
from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from otel_sealed.tracker.cache import ALIKE, MAX_BYTES, Cache
from otel_sealed.wire.checkpoint import ByteHistory, ItemHistory
from tests.core.builders import asked, message, thinking, use
from tests.core.conversations import (
    DIALECTS,
    KEY,
    Body,
    conversation,
    exchange,
    history,
    request,
    responses,
    step,
)

PREAMBLE = "You are given a task in a repository. Read it, think, and answer. " * 40


def wire(one: Exchange) -> Exchange:
    """Bodies as bytes, as they come from an SDK."""
    return dataclasses.replace(one, request=json.dumps(one.request).encode())


def begun(dialect: str, body: Body, text: str) -> Body:
    """The request with `text` for the words it begins with."""
    body = copy.deepcopy(body)
    first = history(body)[0]
    if dialect == "gemini":
        first["parts"] = [{"text": text}]
    else:
        first["content"] = text
    return body


def call(dialect: str, number: int, turn: int, text: str) -> Exchange:
    """The call of a turn of a conversation of its own, which begins with `text`."""
    answers = responses(dialect, number)
    return exchange(dialect, begun(dialect, request(dialect, answers[:turn]), text), answers[turn])


def in_turn(
    tracker: Tracker, dialect: str, many: int, text: str = "Question {}", rounds: int = 4
) -> list[list[Report]]:
    """`many` conversations, a call of each at a time."""
    return [
        [
            tracker.observe(wire(call(dialect, number, turn, text.format(number))))
            for number in range(many)
        ]
        for turn in range(rounds)
    ]


def resumed(reports: list[Report]) -> int:
    """How many calls were judged from where an earlier one left off."""
    return sum(bool(report.settled) for report in reports)


def bounded(max_bytes: int) -> tuple[Tracker, Cache]:
    """A tracker that keeps so much at most."""
    tracker, settled = Tracker(KEY), Cache(max_bytes)
    tracker._core = dataclasses.replace(tracker._core, cache=settled)
    return tracker, settled


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", ["Question {}", PREAMBLE, "{} " + PREAMBLE])
def test_conversations_in_turn_are_resumed_as_one_alone_is(dialect: str, text: str) -> None:
    """More than a place holds, and however they begin."""
    alone = [resumed(calls) for calls in in_turn(Tracker(KEY), dialect, 1, text)]
    many = [resumed(calls) for calls in in_turn(Tracker(KEY), dialect, 40, text)]
    assert 1 in alone
    assert [40 * one for one in alone] == many


def test_three_hundred_conversations_in_turn_are_all_resumed() -> None:
    *_, last = in_turn(Tracker(KEY), "anthropic", 300, rounds=3)
    assert 300 == resumed(last)


def test_ten_thousand_conversations_of_fifteen_messages_have_room() -> None:
    tracker, settled = bounded(MAX_BYTES)
    for one in conversation("anthropic"):
        tracker.observe(wire(one))
    (line,) = settled._lines.values()
    assert MAX_BYTES > 10_000 * (line.size * 15 // line.key.messages)


@pytest.fixture(name="compared")
def _compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each line a request was compared with."""
    seen: list[int] = []

    def counted(kind: Any) -> None:
        agreed = kind.agreed

        def agrees(self: Any, known: Any) -> int:
            seen.append(1)
            found: int = agreed(self, known)
            return found

        monkeypatch.setattr(kind, "agreed", agrees)

    counted(ByteHistory)
    counted(ItemHistory)
    return seen


@pytest.mark.parametrize("raw", [True, False], ids=["bytes", "parsed"])
def test_a_request_is_compared_with_few_lines_however_many_begin_alike(
    compared: list[int], *, raw: bool
) -> None:
    tracker = Tracker(KEY)
    most = []
    for number in range(120):
        for turn in range(3):
            del compared[:]
            one = call("anthropic", number, turn, "Hello")
            tracker.observe(wire(one) if raw else one)
            most.append(len(compared))
    # a new conversation is compared with all that begin as it does, up to where it differs
    assert max(most[:180]) >= max(most[180:])
    assert max(most) <= 8 * ALIKE


# ------------------------------------------------------------------------------------- the bound


def places(many: int) -> int:
    """Bytes so many conversations of three turns take."""
    tracker, settled = bounded(MAX_BYTES)
    in_turn(tracker, "anthropic", 10, rounds=3)
    return settled.held // 10 * many


def test_what_is_held_never_exceeds_the_bound() -> None:
    bound = places(5)
    tracker, settled = bounded(bound)
    held = []
    for number in range(30):
        for turn in range(4):
            tracker.observe(wire(call("anthropic", number, turn, "Question")))
            held.append(settled.held)
    assert bound >= max(held) > bound // 2
    assert settled.held == sum(line.size for line in settled._lines.values())


def again(tracker: Tracker, numbers: Iterable[int]) -> int:
    """How many are resumed of conversations that ask their last question once more."""
    asked = (wire(call("anthropic", number, 2, f"Question {number}")) for number in numbers)
    return resumed([tracker.observe(one) for one in asked])


def test_a_fifth_more_conversations_than_have_room_leaves_half_of_them_resumed() -> None:
    """Where the oldest of all went, none would be: it is the one that comes next."""
    tracker, _ = bounded(places(50))
    in_turn(tracker, "anthropic", 60, rounds=3)
    found = again(tracker, [*range(60)] * 6)
    assert 360 // 2 < found < 360


def test_conversations_in_use_are_resumed_while_many_others_come_and_go() -> None:
    tracker, _ = bounded(places(60))
    in_turn(tracker, "anthropic", 4, rounds=3)
    found = 0
    for first in range(100, 300, 4):
        for number in range(first, first + 4):
            for turn in range(3):
                tracker.observe(wire(call("anthropic", number, turn, f"Question {number}")))
        found += again(tracker, range(4))
    assert 200 * 9 // 10 < found


def losing(exchanges: list[Exchange]) -> Iterator[Exchange]:
    """A host that loses everything sealed: each loss is a row that is kept."""
    for one in exchanges:
        body = copy.deepcopy(one.request)
        for turn in history(body):
            if turn["role"] == "assistant":
                turn["content"] = [b for b in turn["content"] if "thinking" not in b["type"]]
        yield dataclasses.replace(one, request=body)


def marking(exchanges: list[Exchange]) -> Iterator[Exchange]:
    """A host that puts a cache marker on its newest message."""
    for one in exchanges:
        body = copy.deepcopy(one.request)
        newest = history(body)[-1]
        if isinstance(newest["content"], str):
            newest["content"] = [{"type": "text", "text": newest["content"]}]
        newest["content"][-1]["cache_control"] = {"type": "ephemeral"}
        yield dataclasses.replace(one, request=body)


@pytest.mark.parametrize("host", [list, marking, losing])
def test_a_conversation_is_kept_once_however_its_host_rewrites_it(host: Any) -> None:
    tracker, cache = bounded(MAX_BYTES)
    for one in host(conversation("anthropic")):
        tracker.observe(wire(one))
    assert 1 == len(cache)


def test_what_is_kept_ends_where_a_turn_is_complete() -> None:
    """Not between a call and its result: a suffix that holds that result would touch it."""
    tracker, cache = bounded(MAX_BYTES)
    body = asked("anthropic")
    for _ in range(4):
        answer = message(thinking(), use(), stop="tool_use")
        tracker.observe(wire(exchange("anthropic", body, answer)))
        history(body).extend(step("anthropic", answer, "q"))
    (line,) = cache._lines.values()
    assert [3, 5, 7] == [prefix.messages for prefix in line.prefixes]


@pytest.mark.parametrize("lossy", [False, True], ids=["faithful", "lossy"])
def test_what_is_counted_is_what_is_held(*, lossy: bool) -> None:
    tracker, settled = bounded(MAX_BYTES)
    plans = [conversation("anthropic", number) for number in range(30)]
    for plan in plans[:5]:
        for one in losing(plan) if lossy else plan:
            tracker.observe(wire(one))
    before = settled.held
    tracemalloc.start()
    try:
        for plan in plans[5:]:
            for one in losing(plan) if lossy else plan:
                tracker.observe(wire(one))
        counted = settled.held - before
        lines = list(settled._lines)[5:]
        gc.collect()
        with_them = tracemalloc.get_traced_memory()[0]
        for key in lines:
            settled._forget(key)
        del lines
        gc.collect()
        held = with_them - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.75 < counted / held < 1.33
