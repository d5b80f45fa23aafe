"""`otel_sealed.artifact.expected` and `.returned`, over whatever a tracker reports.

The invariant: for each set of attributes `0 <= returned <= expected`, a call adds what its report
says and nothing else, and no order of calls and collections changes a sum.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_sealed import transcript, vocab
from otel_sealed.contract import Exchange
from otel_sealed.model import Report
from otel_sealed.telemetry import names
from otel_sealed.telemetry.metrics import Series
from otel_sealed.testing.mutations import MUTATIONS
from otel_sealed.tracker import Tracker
from tests.core.conversations import (
    DIALECTS,
    KEY,
    MODELS,
    STREAM,
    WHOLE,
    Body,
    base,
    conversation,
    exchange,
    history,
    observe,
    request,
    responses,
)
from tests.telemetry.builders import Bench, report

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))
CELLS = [(dialect, mutation) for mutation in MUTATIONS for dialect in mutation.dialects]
SWITCHES = list(itertools.permutations(DIALECTS, 2))
Sums = dict[tuple[str, ...], float]


# ------------------------------------------------------------------- a host that switches vendors


def calls_of(dialect: str, answer: Body) -> Iterator[tuple[str, str]]:
    """(id, seal or nothing) of the calls in an answer."""
    if dialect == "anthropic":
        seal = next((b["signature"] for b in answer["content"] if b.get("signature")), "")
        yield from ((b["id"], seal) for b in answer["content"] if b["type"] == "tool_use")
    elif dialect == "openai":
        seals = [i["encrypted_content"] for i in answer["output"] if i["type"] == "reasoning"]
        calls = [i["call_id"] for i in answer["output"] if i["type"] == "function_call"]
        yield from ((call, seals[0]) for call in calls)
    else:
        for part in answer["candidates"][0]["content"]["parts"]:
            if "functionCall" in part:
                yield part["functionCall"]["id"], part.get("thoughtSignature", "")


def said_by(dialect: str, calls: list[tuple[str, str]], *, shipped: bool) -> list[Body]:
    """What a history of another vendor's calls looks like on this wire; `shipped`: with seals."""
    if dialect == "anthropic":
        use: list[Body] = []
        for call, seal in calls:
            if shipped and seal:
                use.append({"type": "thinking", "thinking": "", "signature": seal})
            use.append({"type": "tool_use", "id": call, "name": "look_up", "input": {}})
        results = [{"type": "tool_result", "tool_use_id": c, "content": "7"} for c, _ in calls]
        return [{"role": "assistant", "content": use}, {"role": "user", "content": results}]
    if dialect == "openai":
        items: list[Body] = []
        for call, seal in calls:
            if shipped and seal:
                items.append({"type": "reasoning", "summary": [], "encrypted_content": seal})
            items += [
                {"type": "function_call", "call_id": call, "name": "look_up", "arguments": "{}"},
                {"type": "function_call_output", "call_id": call, "output": "7"},
            ]
        return items
    parts: list[Body] = []
    answers = []
    for call, seal in calls:
        signed = {"thoughtSignature": seal} if shipped and seal else {}
        parts.append({"functionCall": {"id": call, "name": "look_up", "args": {}}, **signed})
        response = {"id": call, "name": "look_up", "response": {"output": "7"}}
        answers.append({"functionResponse": response})
    return [{"role": "model", "parts": parts}, {"role": "user", "parts": answers}]


def switched(before: str, after: str, seed: object, *, shipped: bool) -> list[Exchange]:
    """A conversation with one vendor that another one continues, and then goes on with."""
    found = conversation(before, seed, turns=2)
    calls = [call for answer in responses(before, seed)[:2] for call in calls_of(before, answer)]
    asked = base(after)
    history(asked).extend(history(request(after, [], seed)))
    history(asked).extend(said_by(after, calls, shipped=shipped))
    answers = responses(after, seed)
    grown = copy.deepcopy(asked)
    history(grown).extend(history(request(after, answers[:1], seed))[1:])
    return [*found, exchange(after, asked, answers[0]), exchange(after, grown, answers[1])]


def doubled(exchanges: list[Exchange]) -> list[Exchange]:
    """A host that sends the whole history twice in its last request."""
    last = copy.deepcopy(exchanges[-1].request)
    history(last).extend(copy.deepcopy(history(last)))
    return [*exchanges[:-1], dataclasses.replace(exchanges[-1], request=last)]


@cache
def reports_of(scene: tuple[Any, ...]) -> list[Report]:
    """The reports of one scene."""
    kind, *about = scene
    if kind == "case":
        exchanges = list(transcript.read(CASES[about[0]]))
    elif kind == "switch":
        (before, after), seed, shipped = about
        exchanges = switched(before, after, seed, shipped=shipped)
    else:
        dialect, mutation = CELLS[about[0]]
        how = {"host": mutation, "around": mutation.around, "kind": mutation.conversation}
        exchanges = conversation(dialect, about[1], delivery=[WHOLE, STREAM][about[2]], **how)
        exchanges = doubled(exchanges) if kind == "doubled" else exchanges
    return observe(exchanges, Tracker(KEY))


seeds = st.integers(0, 3)
scenes = st.one_of(
    st.tuples(st.just("case"), st.integers(0, len(CASES) - 1)),
    st.tuples(st.just("switch"), st.sampled_from(SWITCHES), seeds, st.booleans()),
    st.tuples(
        st.sampled_from(["host", "doubled"]),
        st.integers(0, len(CELLS) - 1),
        seeds,
        st.integers(0, 1),
    ),
)


# -------------------------------------------------------------------------------------- the facts


def counted(bench: Bench) -> tuple[Sums, Sums]:
    return bench.sums(vocab.EXPECTED.name), bench.sums(vocab.RETURNED.name)


def added(calls: list[Report]) -> tuple[Sums, Sums]:
    """What the calls one by one, each in a process of its own, count."""
    sums: tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]] = (Counter(), Counter())
    for one in calls:
        bench = Bench()
        bench.emitter.emit(one, None, owned=False)
        for total, own in zip(sums, counted(bench), strict=True):
            total.update({key: int(value) for key, value in own.items()})
    return dict(sums[0]), dict(sums[1])


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.data())
def test_any_order_of_calls_and_collections_adds_up_to_what_each_call_says(
    data: st.DataObject,
) -> None:
    chosen = data.draw(st.lists(scenes, min_size=1, max_size=4))
    calls = [call for scene in chosen for call in reports_of(scene)]
    for one in calls:
        assert 0 <= one.returned <= one.expected - one.excused <= one.expected
    bench = Bench()
    for one in data.draw(st.permutations(calls)):
        bench.emitter.emit(one, None, owned=False)
        if data.draw(st.booleans()):
            bench.points(vocab.EXPECTED.name)
    expected, returned = counted(bench)
    assert added(calls) == (expected, returned)
    assert expected.keys() == returned.keys()
    assert all(0 <= returned[key] <= expected[key] for key in expected)


@pytest.mark.parametrize(("before", "after"), SWITCHES)
@pytest.mark.parametrize("shipped", [False, True], ids=["left out", "shipped"])
def test_what_another_vendor_sealed_is_not_due_from_this_one(
    before: str, after: str, caplog: pytest.LogCaptureFixture, *, shipped: bool
) -> None:
    bench = Bench()
    for one in reports_of(("switch", (before, after), 0, shipped)):
        bench.emitter.emit(one, None, owned=False)
    expected, returned = counted(bench)
    model = names.base_model(MODELS[after])
    assert [1] == [value for key, value in expected.items() if model in key]
    assert [1] == [value for key, value in returned.items() if model in key]
    assert [] == [record for record in caplog.records if record.name.startswith("opentelemetry")]


def test_a_report_that_excuses_more_than_it_expects_counts_nothing() -> None:
    bench = Bench()
    bench.call(report(expected=1, excused=2, returned=0))
    assert ({}, {}) == counted(bench)


def test_what_had_to_come_back_and_what_did_share_a_series_when_series_run_out() -> None:
    series = Series(limit=101)
    for number in range(4):
        who = {vocab.PROVIDER: "openai", vocab.REQUEST_MODEL: f"gpt-{number}"}
        admitted = series.admit(vocab.EXPECTED.name, who, vocab.RETURNED.name)
        assert admitted == series.admit(vocab.RETURNED.name, who)
        assert admitted == series.admit(vocab.EXPECTED.name, who)
