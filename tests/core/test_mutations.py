"""The matrix: dialects × mutations × deliveries."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import pytest

from otel_sealed.contract import Exchange
from otel_sealed.model import Report
from otel_sealed.testing.mutations import FREEDOMS, MECHANISMS, MUTATIONS, Freedom, Mutation, Side
from otel_sealed.tracker import Tracker
from tests.core.conversations import (
    KEY,
    MATRIX,
    STREAM,
    WHOLE,
    Delivery,
    conversation,
    events,
    exchange,
    observe,
    pairs,
    responses,
    rows,
    seen,
    server_sent,
    violations,
)

CELLS = [
    pytest.param(dialect, mutation, id=f"{dialect}-{mutation.name}")
    for mutation in MUTATIONS
    for dialect in mutation.dialects
]
MECHANISMS_OF_THE_REPORTS = frozenset(
    {
        "dropped_block",
        "stream",
        "empty_seal",
        "id_mismatch",
        "envelope",
        "compaction",
        "prefix",
        "redactor",
        "bridge",
        "fabricated",
        "missing_include",
        "text_sanitised",
        "wrong_vendor",
        "order",
        "merged",
        "substituted",
        "trim_pair",
        "persistence",
        "duplicated",
        "issuer_changed",
        "interrupted",
        "model_switch",
        "misplaced",
        "config_mismatch",
        "transient",
    }
)


def hosted(
    dialect: str, mutation: Mutation, delivery: Delivery, seed: object = 0
) -> list[Exchange]:
    """A conversation with the host that a mutation describes."""
    if mutation.side is Side.RESPONSE:
        return conversation(
            dialect, seed, kind=mutation.conversation, source=mutation, delivery=delivery
        )
    return conversation(
        dialect,
        seed,
        kind=mutation.conversation,
        host=mutation,
        around=mutation.around,
        delivery=delivery,
    )


def interrupted(
    exchanges: list[Exchange], dialect: str, number: int, cut: int, *, raw: bool
) -> Iterator[Exchange]:
    """The same, but the answer to call `number` was cut behind event `cut` and asked for again."""
    for at, one in enumerate(exchanges):
        if at == number:
            lost = events(dialect, responses(dialect, "lost")[number])[:cut]
            sent: Any = server_sent(lost) if raw else lost
            yield dataclasses.replace(one, response=None, events=sent, complete=False)
        yield one


def assert_shown(mutation: Mutation, reports: list[Report]) -> None:
    """The expected rows are there, and nothing else is worse than ok or allowed."""
    expected = {(artifact, fate.value) for artifact, fate in mutation.expected}
    assert expected - pairs(reports) == set()
    assert {(a, f) for a, f, _ in violations(reports)} - expected == set()
    bad = {(f.artifact, f.fate.value) for f in rows(reports) if f.verdict.rank > 1}
    assert bad - expected == set()


@pytest.mark.parametrize(("dialect", "mutation"), CELLS)
@pytest.mark.parametrize("delivery", [WHOLE, STREAM], ids=["whole", "stream"])
def test_a_mutation_shows_as_its_fate_and_as_nothing_else(
    dialect: str, mutation: Mutation, delivery: Delivery
) -> None:
    """Each unfaithful host is seen as what it is, however its responses were delivered."""
    assert_shown(mutation, observe(hosted(dialect, mutation, delivery)))


@pytest.mark.parametrize("mutation", [m for m in MUTATIONS if m.worst], ids=lambda m: m.name)
def test_what_a_loss_costs_depends_on_how_the_model_thinks(mutation: Mutation) -> None:
    """A1, corrected: without any thinking a loop goes on adaptively, and is refused manually."""
    reports = observe(hosted(mutation.dialects[0], mutation, WHOLE))
    assert mutation.worst == max((f.verdict for f in rows(reports)), key=lambda v: v.rank)


@pytest.mark.parametrize(("dialect", "mutation"), CELLS)
def test_a_stream_cut_at_any_event_and_asked_for_again_changes_nothing(
    dialect: str, mutation: Mutation
) -> None:
    """A call that broke off and was repeated neither hides a fault nor makes one up."""
    exchanges = hosted(dialect, mutation, STREAM)
    whole = events(dialect, responses(dialect, "lost")[3])
    for cut in range(len(whole)):
        plan = interrupted(exchanges, dialect, 3, cut, raw=bool(cut % 2))
        assert_shown(mutation, observe(plan))


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("delivery", [WHOLE, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("seed", range(3))
def test_a_faithful_host_has_nothing_but_intact_artifacts(
    dialect: str, delivery: Delivery, seed: int
) -> None:
    """What comes back as it came is intact, and every seal received is then expected."""
    reports = observe(conversation(dialect, seed, delivery=delivery))
    assert {(f.fate.value, f.verdict.value) for f in rows(reports)} == {("intact", "ok")}
    received = [len(report.received) for report in reports]
    assert [sum(received[:n]) for n in range(len(reports))] == [r.expected for r in reports]
    assert [r.expected for r in reports] == [r.returned for r in reports]


@pytest.mark.parametrize("dialect", MATRIX)
def test_the_verdicts_of_a_stream_are_those_of_the_whole_body(dialect: str) -> None:
    """One case, many deliveries: the same receipts and the same rows."""
    shown = [
        [
            (r.received, r.received_types, [(f.artifact, f.fate, f.digest_out) for f in r.findings])
            for r in observe(conversation(dialect, delivery=delivery))
        ]
        for delivery in (WHOLE, STREAM)
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("freedom", FREEDOMS, ids=lambda f: f"{f.dialect}-{f.name}")
@pytest.mark.parametrize("delivery", [WHOLE, STREAM], ids=["whole", "stream"])
def test_a_permitted_freedom_is_no_violation(freedom: Freedom, delivery: Delivery) -> None:
    """What the contract permits is ok or allowed."""
    chance = random.Random(7)
    plan = conversation(
        freedom.dialect, host=lambda body: freedom.change(body, chance), delivery=delivery
    )
    worst = {f.verdict.value for f in rows(observe(plan))}
    assert worst <= {"ok", "allowed"}
    assert worst != set()


def test_the_catalogue_has_a_mutation_for_every_mechanism() -> None:
    """Every mechanism of the public reports that a client can show is in the catalogue."""
    assert MECHANISMS_OF_THE_REPORTS == MECHANISMS


def test_the_records_of_the_catalogue_are_well_made() -> None:
    """Names are unique within a dialect, and each mutation says and expects something."""
    names = [(d, m.name) for m in MUTATIONS for d in m.dialects]
    assert len(names) == len(set(names))
    assert [m.name for m in MUTATIONS if not m.says or not m.expected or not m.dialects] == []
    assert {d for m in MUTATIONS for d in m.dialects} == set(MATRIX)


@pytest.mark.parametrize(("dialect", "mutation"), CELLS)
def test_a_mutation_never_touches_the_body_it_is_given(dialect: str, mutation: Mutation) -> None:
    """Mutilations are pure: the body stays, and the same body gives the same result."""
    plan = conversation(dialect, kind=mutation.conversation)
    body: Any = plan[-1].request if mutation.side is Side.REQUEST else plan[0].response
    before = copy.deepcopy(body)
    first = mutation(body)
    assert before == body
    assert first == mutation(body)
    if not mutation.around:
        assert first != body


@pytest.mark.parametrize("freedom", FREEDOMS, ids=lambda f: f"{f.dialect}-{f.name}")
def test_a_freedom_never_touches_the_body_it_is_given(freedom: Freedom) -> None:
    """Freedoms are pure but for chance."""
    body: Any = conversation(freedom.dialect)[-1].request
    before = copy.deepcopy(body)
    freedom.change(body, random.Random(1))
    assert before == body


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_cut_stream_that_is_replayed_as_it_came_is_never_an_alarm_about_others(
    dialect: str,
) -> None:
    """A cut response says nothing about the turns before it."""
    plan = conversation(dialect)
    whole = events(dialect, responses(dialect)[3])
    for cut in range(len(whole)):
        tracker = Tracker(KEY)
        observe(plan[:3], tracker)
        observe([exchange(dialect, plan[3].request, None, events=whole[:cut])], tracker)
        report = tracker.observe(dataclasses.replace(plan[3], response=None))
        assert seen([report]) == {("intact", "ok")}
