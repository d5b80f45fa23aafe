"""One request judged: as a whole, or from a stand on (see `settled`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from otel_sealed.align import Outcome, align
from otel_sealed.align.prefix import Break, head_break, other_head
from otel_sealed.align.surroundings import surroundings, surroundings_behind
from otel_sealed.contract import Answers, Exchange, Names, Place
from otel_sealed.judge import circumstances, judge
from otel_sealed.matching.accept import rejected
from otel_sealed.matching.locate import expect, locate, summarised
from otel_sealed.model import (
    Cause,
    Facts,
    Fate,
    Finding,
    Lineage,
    Message,
    Speaker,
    Trait,
    Turn,
)
from otel_sealed.model.record import record, replace
from otel_sealed.providers.vendors import KNOWN_VENDORS
from otel_sealed.steps import spend
from otel_sealed.tracker.core import Core, Tools
from otel_sealed.tracker.gate import OPENING
from otel_sealed.tracker.lasting import AllStandIns, Lasting, disturbed
from otel_sealed.tracker.position import Position
from otel_sealed.tracker.settled import (
    Above,
    Stand,
    Told,
    continues,
    independent,
    told_before,
)
from otel_sealed.wire import Search, Sent

_MOST_DOUBTED = 64
"""Turns that are rejected before a request is taken as it is: each time it is located anew."""
_NOWHERE = Position(sys.maxsize, -1, -1, compacted=False, live_from=0, within={}, loops={})
"""Of no turn."""
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
    stand_ins: AllStandIns = field(default_factory=AllStandIns, repr=False)


@record(frozen=True, slots=True)
class Judged:
    """The findings of one request and what recording its answer needs.

    `told[i]` and `chains[i]`: what was told, and the rolling digest of all messages, before message
    `i` of those read; the last entry is that of the end;
    `told_since_tip`: digests of what was told behind the newest turn; `stand`: where it resumed;
    `lasting`: the rows before it that are not well.
    """

    findings: list[Finding]
    outcomes: list[Outcome]
    lineage: Lineage
    chains: tuple[bytes, ...]
    told: list[Told]
    told_since_tip: tuple[bytes, ...]
    told_at_tip: int
    position: Position
    is_summary: bool = False
    stand: Stand | None = None
    lasting: list[Finding] = field(default_factory=list)

    @property
    def chain(self) -> bytes:
        """The rolling digest of all messages of the request."""
        return self.chains[-1]


def whole(asked: Asked) -> Judged:
    """Judge a request from its first message on."""
    core, sent = asked.core, asked.sent
    chains, chain = _chains(asked, asked.tools.start)
    search = Search(sent.body, asked.tools.dialect, core.digest)
    names = asked.tools.names(asked.facts.vendor)
    opens = _opens(asked)
    lineage = Lineage() if opens else _located(asked, chains, chain, names, search)
    told = None
    if not lineage.turns and len(core.ledger):
        told = summarised(core.ledger, search.told(), asked.hint, core.absent)
        lineage = told or lineage
    stood = told_before(sent.messages, Told(), core.digest)
    if opens and told is None:
        return Judged([], [], lineage, (*chains, chain), stood, (), 0, _NOWHERE)
    outcomes = align(lineage, sent.messages, names, search, core.vendor_of)
    root = asked.tools.dialect.root
    outcomes += surroundings(
        asked.facts, sent.head, sent.messages, lineage, outcomes, asked.tools.seals, root
    )
    place = _position(asked, lineage, outcomes)
    return _judged(
        asked, lineage, outcomes, (*chains, chain), stood, place, summary=told is not None
    )


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
    asked: Asked, chains: tuple[bytes, ...], chain: bytes, names: Names, search: Search
) -> Lineage:
    """The turns a request replays, without those of which nothing but their place is there."""
    core, messages = asked.core, asked.sent.messages
    without: frozenset[int] = frozenset()
    while True:
        lineage = locate(
            core.ledger,
            messages,
            (*chains, chain),
            conversation=asked.hint,
            continues=asked.exchange.continues,
            compacts=asked.facts.operation == "compact",
            reference=asked.facts.reference_key,
            without=without,
            absent=core.absent,
        )
        turns, places = rejected(lineage, messages, chains, names, search)
        if turns <= without or len(without) >= _MOST_DOUBTED:
            break  # those that are looked at no more may be in the line of others all the same
        without |= turns
    if not places:
        return lineage
    return replace(lineage, owner={at: n for at, n in lineage.owner.items() if at not in places})


def resumed(asked: Asked, stands: Sequence[Stand]) -> Judged | None:
    """Judge what follows the last of `stands`; None where the whole request has to be read."""
    core, sent, messages, stand = asked.core, asked.sent, asked.sent.messages, stands[-1]
    if (stand.facts, stand.hint) != (asked.facts, asked.hint) or asked.facts.reference:
        return None
    rows = [row for one in stands for row in one.lasting] if stand.lasted else []
    chains, chain = _chains(asked, stand.chain)
    expect(core.ledger, messages, chains, [row.canon for row in rows if row.canon])
    if not independent(messages, core.ledger, stand.tip):
        return None
    lineage = locate(
        Above(core.ledger, stand.tip),
        messages,
        (*chains, chain),
        conversation=asked.hint,
        continues=asked.exchange.continues,
        compacts=asked.facts.operation == "compact",
        absent=core.absent,
    )
    told = told_before(messages, stand.told, core.digest)
    if not continues(lineage, told, stand.tip):
        return None
    search = Search(_behind(asked, stand), asked.tools.dialect, core.digest)
    names = asked.tools.names(asked.facts.vendor)
    if any(rejected(lineage, messages, chains, names, search)):
        return None
    if disturbed(rows, search, core.ledger):
        return None
    outcomes = align(lineage, messages, names, search, core.vendor_of)
    changed = (o.finding for o in outcomes if o.finding.fate is Fate.MODIFIED)
    if any(finding.artifact in asked.tools.seals for finding in changed):
        return None  # what it was changed into may hold, or be, a seal of what is settled
    try:
        before = _changed(asked, stand)
    except LookupError:
        return None
    outcomes += surroundings_behind(
        asked.facts, sent.head, lineage, outcomes, asked.tools.seals, before
    )
    place = _position(asked, lineage, outcomes, stand, rows)
    if not stand.needs.met(place.live_from + stand.messages, place.last, spoken=sent.live_from > 0):
        return None
    judged = _judged(asked, lineage, outcomes, (*chains, chain), told, place)
    settle, name = core.disputes.settle, asked.tools.dialect.name
    lasting = [settle(name, row.finding) for row in rows]
    return replace(judged, stand=stand, lasting=lasting)


def _changed(asked: Asked, stand: Stand) -> tuple[Break, int] | None:
    """The first change before the seals up to the stand, and the message it is told at.

    Raises LookupError where the ledger has forgotten the turn.
    """
    for head, number, at in stand.heads:
        name = other_head(head, asked.sent.head)
        if stand.broken is not None and number > stand.broken.number:
            break
        if name:
            return head_break(_known(asked, number), name), at - stand.messages
    if stand.broken is None:
        return None
    turn = _known(asked, stand.broken.number)
    return Break(turn, Cause.MESSAGE, stand.broken.path), stand.broken.at - stand.messages


def _known(asked: Asked, number: int) -> Turn:
    turn = asked.core.ledger.get(number)
    if turn is None:
        raise LookupError
    return turn


def _behind(asked: Asked, stand: Stand) -> dict[str, Any]:
    """The body without what is settled, everything else of it at its own place."""
    root = asked.tools.dialect.root
    settled: list[Any] = [None] * stand.messages
    return {**asked.sent.body, root: settled + asked.sent.body[root]}


def _chains(asked: Asked, chain: bytes) -> tuple[tuple[bytes, ...], bytes]:
    chains = []
    for message in asked.sent.messages:
        chains.append(chain)
        chain = asked.core.digest.chain(chain, message.digest)
    return tuple(chains), chain


def _position(
    asked: Asked,
    lineage: Lineage,
    outcomes: Sequence[Outcome],
    stand: Stand | None = None,
    rows: Sequence[Lasting] = (),
) -> Position:
    """Where the turns stand; `rows` are those settled up to the stand."""
    within: dict[int, tuple[int, int]] = {}
    for o in outcomes:
        if o.turn is not None and o.sent_back:
            first, last = within.get(o.turn.number, (o.index, o.index))
            within[o.turn.number] = min(first, o.index), max(last, o.index)
    here, sent = [*within], asked.sent
    fates = {o.finding.fate for o in outcomes} | {row.finding.fate for row in rows}
    live_from = sent.live_from
    if stand is not None:
        here += [stand.first_sealed, stand.last_sealed] if stand.last_sealed >= 0 else []
        live_from = live_from or stand.live_from - stand.messages
    loops = _loops(sent.messages[: max(live_from, 0)], outcomes)
    return Position(
        first=min(here, default=sys.maxsize),
        last=max(here, default=-1),
        tip=lineage.tip,
        compacted=Fate.SUPERSEDED in fates,
        live_from=live_from,
        within=within,
        loops=loops,
    )


def _loops(messages: Sequence[Message], outcomes: Sequence[Outcome]) -> dict[int, tuple[int, int]]:
    """Message to the last block with its seal in the same loop, of those that are over."""
    word = 0
    loop_of = [word := word + (m.speaker is Speaker.USER) for m in messages]
    newest: dict[int, tuple[int, int]] = {}
    for o in outcomes:
        if o.turn is not None and o.sent_back and o.at is not None and o.at < len(loop_of):
            loop = loop_of[o.at]
            newest[loop] = max(newest.get(loop, (-1, -1)), (o.turn.number, o.index))
    return {at: newest[loop] for at, loop in enumerate(loop_of) if loop in newest}


def _judged(
    asked: Asked,
    lineage: Lineage,
    outcomes: list[Outcome],
    chains: tuple[bytes, ...],
    told: list[Told],
    position: Position,
    *,
    summary: bool = False,
) -> Judged:
    since, at_tip = _since_tip(lineage, asked.sent.messages, told)
    shared = _shared_traits(asked, lineage, is_summary=summary)
    answers: Answers = {}
    return Judged(
        findings=[_judge(asked, one, position, shared, told, answers) for one in outcomes],
        outcomes=outcomes,
        lineage=lineage,
        chains=chains,
        told=told,
        told_since_tip=since,
        told_at_tip=at_tip,
        position=position,
        is_summary=summary,
    )


def _since_tip(
    lineage: Lineage, messages: Sequence[Message], told: Sequence[Told]
) -> tuple[tuple[bytes, ...], int]:
    """Digests of what was told behind the newest turn, and how much had been told before it."""
    at = min((slot[0] for slot, n in lineage.owner.items() if n == lineage.tip), default=-1)
    behind = tuple(m.digest for m in messages[max(at, 0) :] if m.speaker is not Speaker.MODEL)
    return behind, told[max(at, 0)].count


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
