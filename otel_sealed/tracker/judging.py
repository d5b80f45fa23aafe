"""One request judged: as a whole, or from a stand on (see `settled`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from otel_sealed.align import Outcome, align
from otel_sealed.align.surroundings import surroundings
from otel_sealed.contract import Exchange, Place
from otel_sealed.judge import circumstances, judge
from otel_sealed.ledger.locate import locate, summarised
from otel_sealed.model import Facts, Fate, Finding, Lineage, Message, Speaker, Trait
from otel_sealed.model.quick import evolve, quick
from otel_sealed.providers.vendors import KNOWN_VENDORS
from otel_sealed.tracker.core import Core, Tools
from otel_sealed.tracker.settled import (
    Above,
    Stand,
    Told,
    continues,
    independent,
    told_before,
)
from otel_sealed.wire import Search, Sent


@quick
@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read, with what its door said of it."""

    core: Core
    tools: Tools
    exchange: Exchange
    sent: Sent
    facts: Facts
    hint: bytes


@quick
@dataclass(frozen=True, slots=True)
class Judged:
    """The findings of one request and what recording its answer needs.

    `told[i]` and `chains[i]`: what was told, and the rolling digest of all messages, before message
    `i` of those read; the last entry is that of the end;
    `told_since_tip`: digests of what was told behind the newest turn; `stand`: where it resumed.
    """

    findings: list[Finding]
    outcomes: list[Outcome]
    lineage: Lineage
    chains: tuple[bytes, ...]
    told: list[Told]
    told_since_tip: tuple[bytes, ...]
    told_at_tip: int
    is_summary: bool = False
    stand: Stand | None = None

    @property
    def chain(self) -> bytes:
        """The rolling digest of all messages of the request."""
        return self.chains[-1]


class _WholeNeeded(Exception):  # noqa: N818 - a turn of the work, not a fault
    """Something from the stand on is not clean: the whole request has to be read."""


class _NoSearch:
    """Stands in for the search of the body where only the end of it was read."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _WholeNeeded


def whole(asked: Asked) -> Judged:
    """Judge a request from its first message on."""
    core, sent = asked.core, asked.sent
    chains, chain = _chains(asked, asked.tools.start)
    lineage = locate(
        core.ledger,
        sent.messages,
        chains,
        conversation=asked.hint,
        continues=asked.exchange.continues,
        reference=asked.facts.reference_key,
    )
    search = Search(sent.body, asked.tools.dialect, core.digest)
    told = None
    if lineage.tip < 0 and len(core.ledger):
        told = summarised(core.ledger, search.told(), asked.hint)
        lineage = told or lineage
    names = asked.tools.names(asked.facts.vendor)
    outcomes = align(lineage, sent.messages, names, search, core.vendor_of)
    root = asked.tools.dialect.root
    outcomes += surroundings(
        asked.facts, sent.head, sent.messages, lineage, outcomes, asked.tools.seals, root
    )
    stood = told_before(sent.messages, Told(), core.digest)
    return _judged(asked, lineage, outcomes, (*chains, chain), stood, is_summary=told is not None)


def resumed(asked: Asked, stand: Stand) -> Judged | None:
    """Judge what follows a stand; None where the whole request has to be read."""
    core, sent, messages = asked.core, asked.sent, asked.sent.messages
    known = (stand.facts, stand.head, stand.hint)
    if known != (asked.facts, sent.head, asked.hint) or asked.facts.reference:
        return None
    if not independent(messages, core.ledger, stand.tip):
        return None
    chains, chain = _chains(asked, stand.chain)
    lineage = locate(Above(core.ledger, stand.tip), messages, chains, conversation=asked.hint)
    told = told_before(messages, stand.told, core.digest)
    if not continues(lineage, told, sent.head, stand.tip):
        return None
    names = asked.tools.names(asked.facts.vendor)
    try:
        outcomes = align(lineage, messages, names, _NoSearch(), core.vendor_of)  # type: ignore[arg-type]
    except _WholeNeeded:
        return None
    outcomes += surroundings(
        asked.facts, None, messages, lineage, outcomes, asked.tools.seals, names.root
    )
    return _judged(asked, lineage, outcomes, (*chains, chain), told, stand=stand)


def _chains(asked: Asked, chain: bytes) -> tuple[tuple[bytes, ...], bytes]:
    chains = []
    for message in asked.sent.messages:
        chains.append(chain)
        chain = asked.core.digest.chain(chain, message.digest)
    return tuple(chains), chain


def _judged(
    asked: Asked,
    lineage: Lineage,
    outcomes: list[Outcome],
    chains: tuple[bytes, ...],
    told: list[Told],
    *,
    is_summary: bool = False,
    stand: Stand | None = None,
) -> Judged:
    messages = asked.sent.messages
    here = [o.turn.number for o in outcomes if o.turn and o.finding.digest_out]
    if stand is not None and stand.sealed:
        here.append(stand.first_sealed)
    first, last = min(here, default=sys.maxsize), max(here, default=-1)
    place = _Position(
        first, last, lineage.tip, any(o.finding.fate is Fate.SUPERSEDED for o in outcomes)
    )
    findings = [_judge(asked, outcome, place, is_summary=is_summary) for outcome in outcomes]
    since, at_tip = _since_tip(lineage, messages, told)
    return Judged(
        findings=findings,
        outcomes=outcomes,
        lineage=lineage,
        chains=chains,
        told=told,
        told_since_tip=since,
        told_at_tip=at_tip,
        is_summary=is_summary,
        stand=stand,
    )


def _since_tip(
    lineage: Lineage, messages: Sequence[Message], told: Sequence[Told]
) -> tuple[tuple[bytes, ...], int]:
    """Digests of what was told behind the newest turn, and how much had been told before it."""
    at = min((slot[0] for slot, n in lineage.owner.items() if n == lineage.tip), default=-1)
    behind = tuple(m.digest for m in messages[max(at, 0) :] if m.speaker is not Speaker.MODEL)
    return behind, told[max(at, 0)].count


@quick
@dataclass(frozen=True, slots=True)
class _Position:
    """The turns whose seals are in the request: oldest, newest; the tip; was anything compacted."""

    first: int
    last: int
    tip: int
    compacted: bool

    def traits(self, number: int) -> set[Trait]:
        """Where a turn stands among them."""
        found = set()
        if self.first >= number:
            found.add(Trait.FRONT)
        elif number < self.last:
            found.add(Trait.GAP)
        if number == self.tip:
            found.add(Trait.LAST_TURN)
        if self.compacted:
            found.add(Trait.AFTER_COMPACTION)
        return found


def _judge(asked: Asked, outcome: Outcome, position: _Position, *, is_summary: bool) -> Finding:
    finding, turn, facts = outcome.finding, outcome.turn, asked.facts
    known = asked.tools.known_model
    if turn is not None and turn.model and not known(facts.model):
        facts = evolve(facts, model=turn.model)
    place = Place(
        facts=facts,
        fate=finding.fate,
        artifact=finding.artifact,
        turn=turn,
        index=outcome.index,
        block=outcome.block,
        sent=outcome.sent,
        at=outcome.at,
        live_from=asked.sent.live_from,
        messages=asked.sent.messages,
    )
    found = circumstances(place, finding, asked.tools.dialect, asked.core.families)
    traits = set(found | finding.traits)
    if not known(facts.model):
        traits.add(Trait.UNKNOWN_MODEL)
    if facts.vendor not in KNOWN_VENDORS:
        traits.add(Trait.UNKNOWN_VENDOR)
    if is_summary:
        traits.add(Trait.CLIENT_COMPACTION)
        if asked.hint:
            traits.add(Trait.SAME_CONVERSATION)
    if turn is not None:
        traits |= position.traits(turn.number)
    first = turn is None or turn.number == position.tip
    judged = judge(evolve(finding, traits=frozenset(traits), first=first), asked.tools.dialect)
    return asked.core.disputes.settle(asked.tools.dialect.name, judged)
