"""Judgement: a fate under the rules of a dialect and the circumstances of its place.

Theory of operation. `circumstances` turns the records around a finding into traits, once; `judge`
then looks for the first rule that fits artifact, fate and traits. Rules never see a body, fates
never see a rule. An intact artifact is `ok` unless a rule says the reader cannot use it. What the
tables do not know (a vendor, a model, a block type) is `unverifiable` under X1 and never accuses;
only shipping a seal to another vendor needs no table.

A case in which each rule fires, and one in which it does not: tests/core/test_rules.py.
"""

from __future__ import annotations

from otel_sealed.contract import Dialect, Place, Reads, Rule
from otel_sealed.model import (
    Cause,
    Fate,
    Finding,
    Kind,
    Role,
    Speaker,
    State,
    Trait,
    Verdict,
)
from otel_sealed.model.record import replace
from otel_sealed.providers.families import Families, same
from otel_sealed.steps import spend

OWN_RULES: tuple[Rule, ...] = (
    Rule(
        "X1",
        "a vendor, model or block type the tables do not know: rules behind",
        verdict=Verdict.UNVERIFIABLE,
        source="ours: docs/glossary.md#verdicts",
    ),
    Rule(
        "X2",
        "a value never seen coming in: restart, other process, hand-made",
        fates=frozenset({Fate.UNKNOWN}),
        verdict=Verdict.UNVERIFIABLE,
        source="ours: docs/glossary.md#verdicts; docs/contract/common.md#never-an-alarm",
    ),
    Rule(
        "X5",
        "a client that summarises by prompting leaves the compaction artifact it held behind",
        fates=frozenset({Fate.DROPPED, Fate.SUBSTITUTED}),
        verdict=Verdict.DEGRADES,
        artifacts=("anthropic.compaction", "openai.compaction"),
        when=frozenset({Trait.CLIENT_COMPACTION, Trait.SAME_CONVERSATION}),
        source="D compaction guides",
    ),
    Rule(
        "X5",
        "a client that summarises by prompting leaves the reasoning of what it summarised behind",
        fates=frozenset({Fate.DROPPED, Fate.SUBSTITUTED}),
        verdict=Verdict.ALLOWED,
        when=frozenset({Trait.CLIENT_COMPACTION}),
        source="D keep-prefix-unchanged: a summary in place of turns",
    ),
    Rule(
        "X6",
        "a thinking budget under the minimum of 1,024: no thinking comes, and nothing sealed",
        fates=frozenset({Fate.ABSENT_AT_SOURCE}),
        verdict=Verdict.DEGRADES,
        artifacts=("request.thinking",),
        source="S thinking_config_enabled_param.py",
    ),
    Rule(
        "X11",
        "a seal whose block the stream never closed: whether it was whole, nobody can tell",
        fates=frozenset({Fate.UNSEALED}),
        verdict=Verdict.UNVERIFIABLE,
        when=frozenset({Trait.CUT_SEAL, Trait.IN_SLOT}),
        source="ours: docs/contract/common.md#incomplete-values",
    ),
    Rule(
        "X12",
        "who holds an answer, or a conversation, that nobody here saw may hold what came before it",
        fates=frozenset({Fate.DROPPED, Fate.SUBSTITUTED, Fate.ORPHANED}),
        verdict=Verdict.UNVERIFIABLE,
        when=frozenset({Trait.UNSEEN_REFERENCE}),
        unless=frozenset({Trait.ADDS_ITEMS}),  # judged with what the conversation holds by then
        source="S response_create_params.py: previous_response_id, conversation; other workers"
        " answer, too",
    ),
    Rule(
        "X8",
        "a turn cut short, or with reasoning between its blocks, is not carried to another model",
        fates=frozenset({Fate.DROPPED}),
        verdict=Verdict.ALLOWED,
        when=frozenset({Trait.NOT_PROJECTABLE}),
        source="U unpublished notes: what fits the shape that another vendor expects",
    ),
)
_X1, _X2 = OWN_RULES[:2]


def circumstances(
    place: Place, finding: Finding, dialect: Dialect, families: Families
) -> frozenset[Trait]:
    """The traits every dialect shares, joined with the dialect's own."""
    found = set(dialect.traits(place))
    turn, block, facts = place.turn, place.block, place.facts
    if place.at is None:
        found.add(Trait.WHOLE_TURN)
    elif place.at >= place.live_from:
        found.add(Trait.AT_END if _ends(place) else Trait.IN_LOOP)
    if turn is not None:
        if turn.vendor and facts.vendor and turn.vendor != facts.vendor:
            found.add(Trait.FOREIGN_TURN)
        if not turn.complete:
            found.add(Trait.TRUNCATED)
        found |= _reader(place, families)
    if block is None or not block.sealed:
        found.add(Trait.NEVER_HELD)
    if block is not None and block.kind is Kind.TEXT and not block.payload_chars:
        found.add(Trait.EMPTY_TEXT)
    if facts.transport == "websocket":
        found.add(Trait.WEBSOCKET)
    if "drop_block" in facts.flags:
        found.add(Trait.DROPS_BLOCK)
    return frozenset(found | _of_finding(place, finding))


def _ends(place: Place) -> bool:
    """Whether the request ends in the answer itself, which called nothing: no loop goes on."""
    called = place.turn is None or place.once_a_turn(_calls)
    return not called and (place.at or 0) >= place.once_a_request(_answered_from)


def _calls(place: Place) -> bool:
    blocks = place.turn.blocks if place.turn is not None else ()
    spend(len(blocks))
    return any(block.kind is Kind.CALL for block in blocks)


def _answered_from(place: Place) -> int:
    """Index of the first of the messages at the end that are all the model's."""
    messages = place.messages
    at = len(messages)
    while at and messages[at - 1].speaker is Speaker.MODEL:
        spend()
        at -= 1
    return at


def _reader(place: Place, families: Families) -> set[Trait]:
    """What the model asked for makes of blocks that another model sealed."""
    turn, block, facts = place.turn, place.block, place.facts
    if turn is None:
        return set()
    if turn.vendor != facts.vendor or not turn.model or not facts.model:
        return set()
    found = set()
    known = families.reads(facts.vendor, facts.platform, turn.model, facts.model)
    if known is Reads.DROPPED:
        found.add(Trait.UNREADABLE_MODEL)
    if known is Reads.REFUSED:
        found.add(Trait.REFUSED_MODEL)
    if (
        (block is None or block.reasons)
        and not same(turn.model, facts.model)
        and not place.once_a_turn(_projectable)
    ):
        found.add(Trait.NOT_PROJECTABLE)
    return found


def _projectable(place: Place) -> bool:
    """Only a whole turn that stopped by itself, its reasoning in front, goes to another model."""
    turn = place.turn
    if turn is None:
        return False
    spend(len(turn.blocks))
    kinds = [block.kind is Kind.REASONING for block in turn.blocks]
    leading = kinds == sorted(kinds, reverse=True)
    return leading and turn.ended


def _of_finding(place: Place, finding: Finding) -> set[Trait]:
    found = set()
    if finding.digest_out:
        found.add(Trait.IN_SLOT)
    if place.block is not None and any(v.state is State.CUT for v in place.block.values):
        found.add(Trait.CUT_SEAL)
    if finding.cause is Cause.PLACEHOLDER:
        found.add(Trait.PLACEHOLDER)
    if place.block is not None and not place.block.sealed and _behind_a_seal(place):
        found.add(Trait.SIBLING_CALL)
    if finding.cause is Cause.SWAPPED:
        found.add(Trait.SWAPPED)
    if finding.cause is Cause.SERVER_STATE:
        found.add(Trait.SERVER_STATE)
    if judged_as(finding) is Fate.DROPPED and place.block is not None and place.sent is not None:
        value = next((v for v in place.sent.values if v.artifact == finding.artifact), None)
        if value is not None and value.state is not State.PRESENT and value.role is Role.SEAL:
            found.add(Trait.FIELD_LOST)
    about = place.block or place.sent
    if about is not None and not about.known:
        found.add(Trait.UNKNOWN_TYPE)
    return found


def _behind_a_seal(place: Place) -> bool:
    """Whether what goes out is a call with a sealed one before it in the same message."""
    if place.sent is None or place.sent.kind is not Kind.CALL or place.at is None or place.at < 0:
        return False
    for block in place.messages[place.at].blocks:
        if block is place.sent:
            return False
        if block.kind is Kind.CALL and block.sealed:
            return True
    return False


def judge(finding: Finding, dialect: Dialect) -> Finding:
    """`finding` with verdict and rule id. Its traits must be complete.

    A preview rule is shown with its id but does not accuse: it gives `unverifiable` at most.
    """
    rule = _rule_for(finding, dialect)
    if rule is None:
        return replace(finding, verdict=Verdict.OK, rule="")
    accuses = rule.preview and rule.verdict.violates
    return replace(
        finding,
        verdict=Verdict.UNVERIFIABLE if accuses else rule.verdict,
        rule=rule.id,
        disputed=rule.disputed,
        preview=rule.preview,
    )


def judged_as(finding: Finding) -> Fate:
    """The fate that rules see: what a provider makes of a loss does not depend on who lost it."""
    if finding.fate is not Fate.SDK_LOSSY:
        return finding.fate
    return Fate.MODIFIED if finding.digest_out else Fate.DROPPED


def _rule_for(finding: Finding, dialect: Dialect) -> Rule | None:
    fate = judged_as(finding)
    if fate is Fate.UNKNOWN:
        return _X2
    if fate not in (Fate.FOREIGN, Fate.INTACT) and finding.traits & _UNKNOWNS:
        return _X1
    for rule in _rules_on(fate, dialect):
        if fits(rule, finding):
            return rule
    if fate in (Fate.INTACT, Fate.PREFIX_CHANGED, Fate.ISSUER_CHANGED):
        return None
    return _X1


def _rules_on(fate: Fate, dialect: Dialect) -> tuple[Rule, ...]:
    """Our own rules and those of a dialect that name a fate, in their order."""
    found = _by_fate.get((dialect.name, fate))
    if found is None or found[0] is not dialect.rules:
        rules = tuple(r for r in (*OWN_RULES[2:], *dialect.rules) if fate in r.fates)
        found = _by_fate[dialect.name, fate] = (dialect.rules, rules)
    return found[1]


_by_fate: dict[tuple[str, Fate], tuple[tuple[Rule, ...], tuple[Rule, ...]]] = {}
_UNKNOWNS = frozenset({Trait.UNKNOWN_VENDOR, Trait.UNKNOWN_MODEL, Trait.UNKNOWN_TYPE})


def fits(rule: Rule, finding: Finding) -> bool:
    """Whether a rule on the finding's fate fits it."""
    return (
        (not rule.artifacts or finding.artifact.startswith(rule.artifacts))
        and rule.when <= finding.traits
        and not rule.unless & finding.traits
    )
