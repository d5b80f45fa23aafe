"""The ways out of an incident: data, safest first, each on a rule that really allows it."""

from __future__ import annotations

import pytest

from otel_sealed.model import Fate, Locus, Rejection
from otel_sealed.triage.concerns import CONCERNS
from otel_sealed.triage.remedies import allowed, remedies, rule_of
from otel_sealed.triage.ways import NOTHING, WAYS
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
    first, second, *_ = remedies(REQUEST, Fate.INTACT, Locus.BEYOND, Rejection.UNDECRYPTABLE)
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


REQUEST = "openai.reasoning.encrypted_content"


@pytest.mark.parametrize("kind", sorted(Rejection))
def test_the_same_request_is_sent_again_only_where_that_can_work(kind: Rejection) -> None:
    """What is refused for what it says is refused again."""
    ways = [way.does for way in remedies(REQUEST, Fate.INTACT, Locus.BEYOND, kind)]
    again = {Rejection.UNDECRYPTABLE, Rejection.SIGNATURE_INVALID}
    assert any("the same request again" in way for way in ways) == (kind in again)


@pytest.mark.parametrize(
    ("artifact", "fate", "rule", "said"),
    [
        ("request.prefix", Fate.PREFIX_CHANGED, "A12", ["A13:", "drop_block", "put back"]),
        ("request.prefix", Fate.PREFIX_CHANGED, "O13", ["O14:", "O7:", "put back"]),
        ("request.issuer", Fate.ISSUER_CHANGED, "O12", ["O7:", "X7:", "go back"]),
        ("request.issuer", Fate.ISSUER_CHANGED, "A16", ["A8:", "go back"]),
        ("request.issuer", Fate.ISSUER_CHANGED, "G10", ["X7:", "go back"]),
        ("request.issuer", Fate.ISSUER_CHANGED, "R9", ["X7:", "pin the relay"]),
        ("openrouter.reasoning_details.signature", Fate.DROPPED, "R7", ["X7:", "byte for byte"]),
    ],
)
def test_circumstances_and_relays_have_ways_of_their_own(
    artifact: str, fate: Fate, rule: str, said: list[str]
) -> None:
    ways = "\n".join(way.does for way in remedies(artifact, fate, Locus.PROCESS, "", rule))
    assert [word for word in said if word not in ways] == []


THINKING = "anthropic.thinking.signature"


@pytest.mark.parametrize(
    ("artifact", "fate", "kind", "word"),
    [
        (REQUEST, Fate.SERVER_HELD, Rejection.STATE_LOST, "previous_response_id"),
        (REQUEST, Fate.INTACT, Rejection.ITEM_NOT_PERSISTED, "previous_response_id"),
        (REQUEST, Fate.ABSENT_AT_SOURCE, Rejection.MODE_CONFLICT, "include"),
        (THINKING, Fate.DROPPED, Rejection.THINKING_MISSING, "finished turns"),
        (THINKING, Fate.MODIFIED, Rejection.THINKING_MODIFIED, "finished turns"),
        (THINKING, Fate.INTACT, Rejection.THINKING_NOT_ALLOWED, "switch thinking off"),
        (THINKING, Fate.INTACT, Rejection.PREFILL_REFUSED, "thinking"),
    ],
)
def test_a_way_that_the_refusal_rules_out_is_not_offered(
    artifact: str, fate: Fate, kind: Rejection, word: str
) -> None:
    ways = [way.does for way in remedies(artifact, fate, "", kind)]
    assert [way for way in ways if word in way] == []


@pytest.mark.parametrize("rule", ["A1", "A2"])
def test_finished_turns_are_no_way_out_of_the_turn_under_way(rule: str) -> None:
    ways = [way.does for way in remedies(THINKING, Fate.DROPPED, Locus.PROCESS, "", rule)]
    assert [way for way in ways if "finished" in way] == []
    assert [way for way in ways if "adaptive" in way] != []


def test_no_way_ends_the_loop_with_a_word_of_the_user() -> None:
    """A2: results and a word of the user in one request are still the loop."""
    assert [way.does for way in WAYS if "add a user message" in way.does] == []


def test_a_way_of_one_vendor_is_not_offered_to_another() -> None:
    ways = remedies("request.prefix", Fate.PREFIX_CHANGED, Locus.PROCESS, "", "O13")
    assert [way for way in ways if "drop_block" in way.does or "thinking" in way.does] == []


def test_the_row_that_judged_is_the_one_that_is_quoted() -> None:
    """Of rows with one id the verdict chooses, and whether sources disagree."""
    lost = ("A26", Fate.DROPPED, "anthropic.citation.encrypted_index")
    required = rule_of(*lost, "breaks")
    accepted = rule_of(*lost, "degrades", disputed=True)
    assert required is not None
    assert accepted is not None
    assert "required" in required.says
    assert "accepted" in accepted.says
