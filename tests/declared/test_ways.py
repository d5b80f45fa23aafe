"""Ways out and refusals speak of declared fields, by the dialect and the kind of their block."""

from __future__ import annotations

import pytest

from otel_sealed import vocab
from otel_sealed.contract import Api, Dialect
from otel_sealed.instrument.genai import lacking
from otel_sealed.model import Fate, Kind, Locus, Role
from otel_sealed.providers import dialects
from otel_sealed.triage.concerns import CONCERNS, artifacts, envelopes, values
from otel_sealed.triage.remedies import remedies
from otel_sealed.triage.ways import WAYS
from tests.declared.fields import sealed

DIALECTS = sorted(dialects().values(), key=lambda dialect: dialect.name)
KINDS = [
    pytest.param(dialect, kind, id=f"{dialect.name}-{kind}")
    for dialect in DIALECTS
    for kind in (Kind.REASONING, Kind.COMPACTION)
    if dialect.sealed_in(kind)
]


@pytest.mark.parametrize(("dialect", "kind"), KINDS)
def test_all_sealed_fields_of_a_kind_of_block_have_the_same_ways_out(
    dialect: Dialect, kind: Kind
) -> None:
    ways = {remedies(name, Fate.DROPPED, Locus.PROCESS) for name in dialect.sealed_in(kind)}
    assert 1 == len(ways)
    assert len(ways.pop()) > 1


def test_a_way_speaks_of_declared_artifacts_only() -> None:
    assert set() == {name for way in WAYS for name in way.artifacts} - vocab.ARTIFACTS


def test_what_was_thought_or_compacted_and_sealed_is_what_some_refusal_is_about() -> None:
    named = {name for concerned in CONCERNS.values() for name in concerned}
    meant = {
        one.artifact for one in sealed() if one.carrier.kind in (Kind.REASONING, Kind.COMPACTION)
    }
    assert set() == meant - named


def test_a_dialect_whose_rules_allow_to_leave_whole_turns_out_offers_it() -> None:
    offered = {way.rule[0] for way in WAYS if way.rule[1] == "X7" and way.artifacts}
    allowing = {
        dialect.name
        for dialect in DIALECTS
        for rule in dialect.rules
        if (rule.id, rule.verdict) == ("X7", "allowed")
    }
    assert allowing == offered


def test_a_group_has_the_fields_of_all_dialects_and_nothing_of_other_kinds() -> None:
    declared = {one.artifact for one in sealed() if one.carrier.kind is Kind.COMPACTION}
    assert declared == {*values(Role.SEAL, "", {Kind.COMPACTION})}
    assert {*envelopes({Kind.COMPACTION})} <= {*artifacts("", {Kind.COMPACTION})}
    assert {*values(Role.SEAL)} == {one.artifact for one in sealed()}


def test_what_needs_the_block_it_came_with_is_a_follower_of_any_kind() -> None:
    alone = {c.orphan for d in DIALECTS for c in d.carriers.values()} - {""}
    assert set() == alone - {*artifacts("", (), followers=True)}
    assert () == artifacts("", ())


def test_an_object_without_the_field_of_a_seal_cannot_hold_it() -> None:
    gemini = dialects()[Api.GENERATE_CONTENT]
    assert {one.artifact for one in sealed() if one.dialect is gemini} == lacking(gemini, ("text",))
    assert frozenset() == lacking(gemini, ("text", "thought_signature"))
