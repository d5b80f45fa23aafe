"""One request judged: what follows a judged prefix, or all of it after an empty one (`prefix`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Any

from otel_sealed.align import Outcome, align
from otel_sealed.align.prefix import Break, head_break, other_head
from otel_sealed.align.surroundings import surroundings
from otel_sealed.contract import Answers, Exchange, Names, Place
from otel_sealed.judge import circumstances, judge
from otel_sealed.ledger.protocol import Found
from otel_sealed.matching.accept import rejected
from otel_sealed.matching.locate import expect, locate, summarised
from otel_sealed.model import (
    Cause,
    Facts,
    Fate,
    Finding,
    Lineage,
    Trait,
    Turn,
)
from otel_sealed.model.record import record, replace
from otel_sealed.providers.vendors import KNOWN_VENDORS
from otel_sealed.steps import spend
from otel_sealed.tracker.core import Core, Tools
from otel_sealed.tracker.gate import OPENING
from otel_sealed.tracker.position import NOWHERE, Position, position_of
from otel_sealed.tracker.prefix import Above, Prefix, Told, follows, told_before, touches
from otel_sealed.wire import Search, Sent

_MOST_DOUBTED = 64
"""Turns that are rejected before a request is taken as it is: each time it is located anew."""
_GONE = frozenset({Fate.DROPPED, Fate.SUBSTITUTED})


@record(frozen=True, slots=True)
class Asked:
    """One request, read, with what its door said of it."""

    core: Core
    tools: Tools
    exchange: Exchange
    sent: Sent
    facts: Facts
    hint: bytes


@record(frozen=True, slots=True)
class Judged:
    """The findings of what follows `prefix` in one request, and what recording its answer needs.

    `told[i]` and `chains[i]`: what was told, and the rolling digest of all messages, before message
    `i` of those read; the last entry is that of the end. `rows`: those of the prefix that are not
    well.
    """

    findings: list[Finding]
    outcomes: list[Outcome]
    lineage: Lineage
    chains: tuple[bytes, ...]
    told: list[Told]
    position: Position
    prefix: Prefix
    is_summary: bool = False
    rows: list[Finding] = field(default_factory=list)

    @property
    def chain(self) -> bytes:
        """The rolling digest of all messages of the request."""
        return self.chains[-1]


def judge_request(asked: Asked, prefixes: Sequence[Prefix] = ()) -> Judged | None:
    """Judge what follows the last of `prefixes`, the whole request where there is none.

    None where the suffix bears on the prefix, so that the request has to be judged as a whole.
    """
    core, sent, messages = asked.core, asked.sent, asked.sent.messages
    prefix = prefixes[-1] if prefixes else Prefix(asked.tools.start)
    rows = [row for one in prefixes for row in one.rows] if prefix.kept else []
    links = (message.digest for message in messages)
    chains = tuple(accumulate(links, core.digest.chain, initial=prefix.chain))
    told = told_before(messages, prefix.told, core.digest)
    search = Search(_body(asked, prefix), asked.tools.dialect, core.digest)
    names = asked.tools.names(asked.facts.vendor)
    if prefixes:
        expect(core.ledger, messages, chains[:-1], [row.canon for row in rows if row.canon])
        if touches(messages, search, core.ledger, prefix.tip, rows):
            return None
        found = _located(asked, chains, Above(core.ledger, prefix.tip), names, search)
        if not follows(found, told, prefix.tip):
            return None
    else:
        found = Lineage() if _opens(asked) else _located(asked, chains, core.ledger, names, search)
    summary = None if found.turns else _summarised(asked, search)
    lineage = summary or found
    if not lineage.turns and _opens(asked):
        return Judged([], [], lineage, chains, told, NOWHERE, prefix)
    outcomes = align(lineage, messages, names, search, core.vendor_of)
    changed = [o.finding.artifact for o in outcomes if o.finding.fate is Fate.MODIFIED]
    if prefixes and not asked.tools.seals.isdisjoint(changed):
        return None  # what it was changed into may hold, or be, a seal of the prefix
    try:
        outcomes += _surroundings(asked, lineage, outcomes, prefix)
    except LookupError:
        return None
    place = position_of(messages, outcomes, lineage.tip, sent.live_from, prefix, rows)
    if prefix.live < place.live_from + prefix.messages:
        return None  # the turn that rows of the prefix are of is over now
    shared = _shared_traits(asked, lineage, is_summary=summary is not None)
    answers: Answers = {}
    return Judged(
        findings=[_judge(asked, one, place, shared, told, answers) for one in outcomes],
        outcomes=outcomes,
        lineage=lineage,
        chains=chains,
        told=told,
        position=place,
        prefix=prefix,
        is_summary=summary is not None,
        rows=[core.disputes.settle(asked.tools.dialect.name, row.finding) for row in rows],
    )


def _summarised(asked: Asked, search: Search) -> Lineage | None:
    """The turns of a conversation that a request sums up rather than replays."""
    core = asked.core
    if not len(core.ledger):
        return None
    return summarised(core.ledger, search.told(), asked.hint, core.absent)


def _opens(asked: Asked) -> bool:
    """Whether there is nothing in a request that could be of a turn: it begins a conversation.

    Nobody but user and system speaks, nothing is sealed or has an id, and nothing else names what
    it continues.
    """
    if asked.exchange.continues or asked.facts.reference:
        return False
    return all(
        message.speaker in OPENING
        and not any(block.anchors or block.hidden or block.sealed for block in message.blocks)
        for message in asked.sent.messages
    )


def _located(
    asked: Asked, chains: tuple[bytes, ...], ledger: Found, names: Names, search: Search
) -> Lineage:
    """The turns that messages replay, without those of which nothing but their place is there."""
    messages = asked.sent.messages
    without: frozenset[int] = frozenset()
    while True:
        lineage = locate(
            ledger,
            messages,
            chains,
            conversation=asked.hint,
            continues=asked.exchange.continues,
            compacts=asked.facts.operation == "compact",
            reference=asked.facts.reference_key,
            without=without,
            absent=asked.core.absent,
        )
        turns, places = rejected(lineage, messages, chains[:-1], names, search)
        if turns <= without or len(without) >= _MOST_DOUBTED:
            break  # those that are looked at no more may be in the line of others all the same
        without |= turns
    if not places:
        return lineage
    return replace(lineage, owner={at: n for at, n in lineage.owner.items() if at not in places})


def _surroundings(
    asked: Asked, lineage: Lineage, outcomes: Sequence[Outcome], prefix: Prefix
) -> Iterable[Outcome]:
    """The rows of the request itself. Raises LookupError where the ledger has forgotten a turn."""
    sent, tools = asked.sent, asked.tools
    return surroundings(
        asked.facts,
        sent.head,
        sent.messages,
        lineage,
        outcomes,
        tools.seals,
        tools.dialect.root,
        _changed(asked, prefix),
        suffix=prefix.messages > 0,
    )


def _changed(asked: Asked, prefix: Prefix) -> tuple[Break, int] | None:
    """The first change before the seals of a prefix, and the message of its turn."""
    for one in prefix.bound:
        name = other_head(one.head, asked.sent.head)
        if name or one.path:
            turn = asked.core.ledger.get(one.number)
            if turn is None:
                raise LookupError
            change = head_break(turn, name) if name else Break(turn, Cause.MESSAGE, one.path)
            return change, one.at - prefix.messages
    return None


def _body(asked: Asked, prefix: Prefix) -> Any:
    """The body without the messages of the prefix, everything else of it at its own place."""
    if not prefix.messages:
        return asked.sent.body
    root = asked.tools.dialect.root
    gone: list[Any] = [None] * prefix.messages
    return {**asked.sent.body, root: gone + asked.sent.body[root]}


def _shared_traits(asked: Asked, lineage: Lineage, *, is_summary: bool) -> set[Trait]:
    """The traits of all findings of a request."""
    facts, found = asked.facts, set()
    if facts.vendor not in KNOWN_VENDORS:
        found.add(Trait.UNKNOWN_VENDOR)
    if facts.reference and not lineage.held:
        found.add(Trait.UNSEEN_REFERENCE)
    if is_summary:
        found.add(Trait.CLIENT_COMPACTION)
        if asked.hint:
            found.add(Trait.SAME_CONVERSATION)
    return found


def _judge(
    asked: Asked,
    outcome: Outcome,
    position: Position,
    shared: set[Trait],
    told: Sequence[Told],
    answers: Answers,
) -> Finding:
    spend()
    finding, turn, facts = outcome.finding, outcome.turn, asked.facts
    known = asked.tools.known_model
    if turn is not None and turn.model and not known(facts.model):
        facts = replace(facts, model=turn.model)
    place = Place(
        facts=facts,
        fate=finding.fate,
        artifact=finding.artifact,
        turn=turn,
        index=outcome.index,
        block=outcome.block,
        sent=outcome.sent,
        at=outcome.at if outcome.end is None else outcome.end,
        live_from=position.live_from,
        messages=asked.sent.messages,
        answers=answers,
    )
    found = circumstances(place, finding, asked.tools.dialect, asked.core.families)
    traits = shared | found | finding.traits
    if not known(facts.model):
        traits |= {Trait.UNKNOWN_MODEL}
    if turn is not None:
        traits |= position.traits(turn.number, outcome.index, outcome.at)
        if turn.number not in position.within and finding.cause is not Cause.WHOLE_TURN:
            traits |= {Trait.BARE_TURN}
        if finding.fate in _GONE and _other_prefix(asked, turn, outcome.at, told):
            traits |= {Trait.OTHER_PREFIX}
    if finding.cause is Cause.PLACEHOLDER and _refused_there(asked, outcome):
        traits |= {Trait.REFUSED_DUMMY}
    first = turn is None or turn.number == position.tip
    judged = judge(replace(finding, traits=frozenset(traits), first=first), asked.tools.dialect)
    return asked.core.disputes.settle(asked.tools.dialect.name, judged)


def _refused_there(asked: Asked, outcome: Outcome) -> bool:
    """Whether a dummy that goes out is one that the platform does not take."""
    known, sent = asked.tools.refused, outcome.sent
    return sent is not None and any(
        asked.facts.platform in known.get(value.canon, ()) for value in sent.values
    )


def _other_prefix(asked: Asked, turn: Turn, at: int | None, told: Sequence[Told]) -> bool:
    """Whether what was said to the model before a turn is not what is said now."""
    if at is None or at < 0 or not turn.told:
        return False
    return turn.told != told[at].digest or bool(other_head(turn.head, asked.sent.head))
