"""A conversation may be long: what it leaves behind is told, counted and bounded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.model import Fate, Report, Turn
from otel_sealed.tracker import MAX_ABSENT, Tracker
from tests.core.builders import call, message, reasoning, response, thinking, use
from tests.core.conversations import KEY, Body, ask, base, step

Window = Callable[[list[Any]], list[Any]]


class Counting(MemoryLedger):
    """Counts how many turns it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def get(self, number: int) -> Turn | None:
        self.asked += 1
        return super().get(number)


def sliding(turns: int) -> Window:
    """The question, and the last few turns."""
    return lambda told: told[:1] + told[1:][-2 * turns :]


def headed(told: list[Any]) -> list[Any]:
    """The question, the first turn, and the last four."""
    return told[:3] + told[3:][-8:]


def talk(
    tracker: Tracker, calls: int, window: Window, told: list[Any] | None = None
) -> list[Report]:
    """An agent on Messages that thinks and calls a tool `calls` times; `told` is what it keeps."""
    told = ask("anthropic", "What is in the ledger?") if told is None else told
    reports = []
    for _ in range(calls):
        body = {**base("anthropic"), "messages": copy.deepcopy(window(told))}
        answer = message(thinking(), use(), stop="tool_use")
        reports.append(
            tracker.observe(Exchange(Api.MESSAGES, request=body, response=answer, status=200))
        )
        told += step("anthropic", answer, "")
    return reports


def by_reference(tracker: Tracker, calls: int) -> list[Report]:
    """An agent on Responses whose conversation the server keeps."""
    reports = []
    answer: Body = {}
    told = ask("openai", "What is in the ledger?")
    for _ in range(calls):
        body = {**base("openai"), "store": True, "input": told}
        if answer:
            body["previous_response_id"] = answer["id"]
        answer = response(reasoning(), call())
        reports.append(
            tracker.observe(Exchange(Api.RESPONSES, request=body, response=answer, status=200))
        )
        told = [one for one in step("openai", answer, "") if one["type"].endswith("_output")]
    return reports


def exchanges(report: Report, fate: Fate) -> list[int]:
    """The calls that brought what met this fate."""
    return [f.received.exchange for f in report.findings if f.fate is fate and f.received]


def test_of_what_the_server_holds_the_newest_turns_are_told() -> None:
    report = by_reference(Tracker(KEY), 100)[-1]  # the result of 98's call is in the request
    assert [*range(98 - MAX_ABSENT, 99)] == exchanges(report, Fate.SERVER_HELD)


def test_of_what_slid_out_of_a_window_the_newest_turns_are_told() -> None:
    report = talk(Tracker(KEY), 100, sliding(5))[-1]
    assert [*range(94 - MAX_ABSENT, 94)] == exchanges(report, Fate.DROPPED)


def test_of_what_is_gone_behind_the_first_turns_the_newest_are_told() -> None:
    report = talk(Tracker(KEY), 100, headed)[-1]
    assert [*range(95 - MAX_ABSENT, 95)] == exchanges(report, Fate.DROPPED)


def test_a_window_of_a_long_conversation_is_judged_as_that_of_a_short_one() -> None:
    reports = [talk(Tracker(KEY), calls, sliding(5))[-1] for calls in (20, 100)]
    short, long = (
        {(f.artifact, f.fate, f.verdict, f.rule, f.cause) for f in report.findings}
        for report in reports
    )
    assert short == long


@pytest.mark.parametrize("window", [sliding(5), headed], ids=["sliding", "headed"])
def test_turns_that_come_back_are_intact(window: Window) -> None:
    tracker, told = Tracker(KEY), ask("anthropic", "What is in the ledger?")
    talk(tracker, 100, window, told)
    report = talk(tracker, 1, list, told)[0]
    assert (100, []) == (report.returned, exchanges(report, Fate.DROPPED))


def test_a_turn_lost_amid_those_that_came_back_is_dropped() -> None:
    tracker, told = Tracker(KEY), ask("anthropic", "What is in the ledger?")
    talk(tracker, 100, sliding(5), told)
    report = talk(tracker, 1, lambda all_: all_[:9] + all_[11:], told)[0]
    assert [4] == exchanges(report, Fate.DROPPED)


@pytest.mark.parametrize("run", [by_reference, lambda t, n: talk(t, n, sliding(5))])
def test_a_call_asks_for_no_more_turns_the_longer_a_conversation_is(run: Any) -> None:
    asked = []
    for calls in (100, 200):
        ledger = Counting()
        tracker = Tracker(KEY, ledger=ledger)
        run(tracker, calls)
        before = ledger.asked
        run(tracker, 1)
        asked.append(ledger.asked - before)
    assert asked[0] == asked[1]


def test_whoever_asks_for_all_of_them_is_told_all_of_them() -> None:
    report = talk(Tracker(KEY, absent=1_000), 100, sliding(5))[-1]
    assert [*range(94)] == exchanges(report, Fate.DROPPED)
