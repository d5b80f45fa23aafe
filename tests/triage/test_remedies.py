"""The ways out of an incident: data, safest first, each on a rule that really allows it."""

from __future__ import annotations

import pytest

from otel_sealed.model import Fate, Locus, Rejection
from otel_sealed.triage.remedies import CONCERNS, NOTHING, WAYS, allowed, remedies, rule_of
from otel_sealed.vocab import CIRCUMSTANCES, COMPANIONS, SEALS

BROKEN = sorted(set(Fate) - {Fate.INTACT, Fate.UNKNOWN, Fate.SERVER_HELD, Fate.SUPERSEDED})


@pytest.mark.parametrize("way", [way for way in WAYS if way.rule[0]], ids=lambda way: way.rule[1])
def test_a_way_that_cites_a_rule_cites_one_that_allows_it(way: object) -> None:
    rule = allowed(*way.rule)  # type: ignore[attr-defined]
    assert rule is not None
    assert rule.says


@pytest.mark.parametrize("fate", BROKEN)
def test_every_fate_has_a_way_out_and_starting_anew_is_the_last(fate: Fate) -> None:
    for artifact in sorted(SEALS | COMPANIONS):
        found = remedies(artifact, fate, Locus.PROCESS)
        assert len(found) > 1 or fate in {Fate.ABSENT_AT_SOURCE, Fate.NOT_REQUESTED}, artifact
        assert found[-1].loses == "everything said since"


@pytest.mark.parametrize("fate", BROKEN)
def test_what_loses_nothing_comes_before_what_loses_something(fate: Fate) -> None:
    for artifact in sorted(SEALS | COMPANIONS | CIRCUMSTANCES):
        for locus in ("", *Locus):
            costs = [not way.loses.startswith(NOTHING) for way in remedies(artifact, fate, locus)]
            assert sorted(costs) == costs, (artifact, locus)


def test_what_broke_beyond_us_is_first_looked_for_there() -> None:
    first, second, *_ = remedies("openai.reasoning.encrypted_content", Fate.INTACT, Locus.BEYOND)
    assert (first.loses, second.loses) == (NOTHING, NOTHING)
    assert "routes the calls" in second.does


def test_at_another_vendor_the_rules_of_the_one_that_issued_it_do_not_hold() -> None:
    found = remedies("anthropic.thinking.signature", Fate.FOREIGN, Locus.PROCESS)
    assert [
        "leave the seal of the other vendor behind",
        "start a new conversation from the last good turn",
    ] == [way.does for way in found]


def test_a_rule_is_told_by_the_row_that_speaks_of_the_fate() -> None:
    rule = rule_of("A2", Fate.DROPPED, "anthropic.redacted_thinking.data")
    assert rule is not None
    assert Fate.DROPPED in rule.fates
    assert rule_of("Z99", Fate.DROPPED, "x") is None


def test_every_class_of_refusals_is_known_to_concern_artifacts_of_the_vocabulary() -> None:
    assert {*Rejection} - {Rejection.OTHER} == set(CONCERNS)
    named = {artifact for concerned in CONCERNS.values() for artifact in concerned}
    assert named <= SEALS | COMPANIONS | CIRCUMSTANCES
