"""Calls of one conversation become incidents: pure, no file, clock or store.

Theory of operation. The calls are put in order; what violation events know (locus, confidence, the
minting span) is laid on the rows of the spans they belong to, and events whose span is not on
record stand in for it. Then the calls are gone through once. A row that violates, or a refusal of
sealed state, is trouble; the troubles of one call are one incident, and a later call joins it
where the same value is in trouble again, where the same artifact meets the same fate again (a host
that drops one block a turn has one habit, not ten incidents), or where it is what came of a
refusal: the retry. A refusal of a request in which nothing was wrong is an incident of its own,
its locus *beyond*: clean here, refused there.

Nothing is accused on a guess: where the record does not say which response minted a value, the
incident is `inferred`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from otel_sealed import vocab
from otel_sealed.model import (
    Carry,
    Confidence,
    Fate,
    Locus,
    ProviderVerdict,
    Verdict,
)
from otel_sealed.triage.model import (
    About,
    Broken,
    Call,
    Evidence,
    Incident,
    Minted,
    Outcome,
    Row,
    Turn,
)
from otel_sealed.triage.reading import is_refusal
from otel_sealed.triage.remedies import CONCERNS, remedies, rule_of

RECENT_NS: Final = 3_600_000_000_000
"""An incident grows while its newest call is not older than this (an hour) on the record."""
MAX_PARTS: Final = 64
_VIOLATING: Final = (Verdict.DEGRADES, Verdict.BREAKS)
_RANK: Final = {verdict.value: verdict.rank for verdict in Verdict}
_ORDER: Final = {fate.value: at for at, fate in enumerate(Fate)}
_SOURCE: Final = frozenset({Fate.UNSEALED, Fate.NOT_REQUESTED, Fate.ABSENT_AT_SOURCE})
_SAID: Final = (
    ProviderVerdict.REJECTED,
    ProviderVerdict.REMOVED,
    ProviderVerdict.ACCEPTED,
    ProviderVerdict.UNREPORTED,
)
_TAKEN: Final = frozenset({ProviderVerdict.ACCEPTED, ProviderVerdict.REMOVED})


def troubled(call: Call) -> bool:
    """Whether a call is, or may be, part of an incident by itself."""
    return refused(call) or any(row.verdict in _VIOLATING for row in call.returned)


def refused(call: Call) -> bool:
    """Whether the provider refused it for its sealed state."""
    return is_refusal(call.said, call.rejection)


def incidents(calls: Iterable[Call], newest: int = 0) -> list[Incident]:
    """The incidents of one conversation, oldest first.

    `newest` is when the newest call of the whole record was made; by it one is growing or not.
    """
    story = Story(ordered(calls))
    chains: list[_Chain] = []
    for at, call in enumerate(story.calls):
        found = list(story.troubles(at))
        if not found:
            for chain in chains:
                chain.waiting = chain.waiting and call.said not in _TAKEN
            continue
        joined = [chain for chain in chains if chain.goes_on(found)]
        chain = joined[0] if joined else _Chain()
        for other in joined[1:]:
            chain.take(other)
            chains.remove(other)
        chain.add(at, found)
        chain.waiting = refused(call)
        if not joined:
            chains.append(chain)
    return [_told(chain, story, newest) for chain in chains if chain.parts]


# ----------------------------------------------------------------------------- calls in their order


def ordered(calls: Iterable[Call]) -> list[Call]:
    """Every call once, in order of time, with what events know laid on the rows of its span."""
    spans: dict[tuple[str, str], Call] = {}
    events: dict[tuple[str, str], list[Call]] = {}
    for number, call in enumerate(calls):
        at = (call.trace, call.span) if call.span else ("", str(number))
        if call.evidence is Evidence.EVENTS:
            events.setdefault(at, []).append(call)
        else:
            spans.setdefault(at, call)
    for at, told in events.items():
        known = spans.get(at)
        spans[at] = _stand_in(told) if known is None else _enriched(known, told)
    return sorted(spans.values(), key=lambda call: (call.at, call.span))


def _stand_in(events: Sequence[Call]) -> Call:
    """One call for the events of a span that is not on record."""
    rows = dict.fromkeys(row for event in events for row in event.returned)
    first = events[0]
    about = next((event.about for event in events if event.about.sdks), first.about)
    return replace(
        first,
        at=min(event.at for event in events),
        returned=tuple(rows),
        about=about,
        said=_worst_said(events),
        rejection=next((event.rejection for event in events if event.rejection), ""),
        occurrences=max(event.occurrences for event in events),
    )


def _enriched(call: Call, events: Sequence[Call]) -> Call:
    told = {(r.artifact, r.fate, r.rule): r for event in events for r in event.returned}
    rows: list[Row] = []
    for row in call.returned:
        name = (row.artifact, row.fate, row.rule)
        event = told.get(name)
        rows.append(row if event is None else _with(row, event))
        if rows[-1].origin_span:  # the others of its kind share how it happened, not its origin
            told[name] = replace(event or row, position="?")
    sdks = next((event.about.sdks for event in events if event.about.sdks), ())
    return replace(
        call, returned=tuple(rows), about=replace(call.about, sdks=call.about.sdks or sdks)
    )


def _with(row: Row, told: Row) -> Row:
    """A row with what an event says of it, or of another value of its kind in the same call."""
    same = row.position in ("", told.position) and told.size in (-1, row.size)
    same = same and told.position != "?"
    row = replace(
        row,
        locus=told.locus,
        confidence=told.confidence,
        diagnosis=told.diagnosis if same else "",
        disputed=told.disputed,
    )
    if not same:
        return row
    return replace(
        row,
        came_position=told.came_position,
        came_size=told.came_size,
        origin_trace=told.origin_trace,
        origin_span=told.origin_span,
    )


# ------------------------------------------------------------------------------- where it came from


@dataclass(frozen=True, slots=True)
class Trouble:
    """One row in trouble, with the call that minted its value (its index, and what came).

    `sure`: known by a digest or a place, and not only left over when all others are accounted for.
    """

    row: Row
    minted: int = -1
    came: Minted | None = None
    sure: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        """The value it is about, as far as that is known."""
        if self.came is not None:
            return (self.row.artifact, str(self.minted), self.came.position)
        row = self.row
        return (row.artifact, row.fate, row.digest, row.position, row.came_position)


class Story:
    """The calls of a conversation, and which of them minted what."""

    def __init__(self, calls: list[Call]) -> None:
        """`calls` as `ordered` returns them."""
        self.calls = calls
        self.spans = {(c.trace, c.span): at for at, c in enumerate(calls) if c.span}
        self.minted: dict[tuple[str, str], tuple[int, Minted]] = {}
        self.values: dict[str, tuple[int, Minted]] = {}
        for at, call in enumerate(calls):
            for came in call.received:
                if came.digest:
                    self.minted.setdefault((came.artifact, came.digest), (at, came))
                    self.values.setdefault(came.digest, (at, came))

    @property
    def whole(self) -> bool:
        """Whether every call is told by its span, so that calls may be counted."""
        return all(call.evidence is Evidence.SPANS for call in self.calls)

    def turn(self, at: int) -> Turn:
        """A call by its place."""
        call = self.calls[at]
        number = at + 1 if self.whole else 0
        return Turn(number, call.at, call.trace, call.span)

    def troubles(self, at: int) -> Iterator[Trouble]:
        """What is wrong in a call; a refusal of what is clean speaks of what it is about."""
        call = self.calls[at]
        rows = [row for row in call.returned if row.verdict in _VIOLATING]
        for row in rows:
            yield self.traced(at, row)
        if not rows and refused(call):
            yield self._beyond(at)

    def traced(self, at: int, row: Row) -> Trouble:
        """A row with the response its value came in."""
        # what stands in place of a changed value may be another artifact's
        if row.digest and row.fate != Fate.MODIFIED:
            found = self.minted.get((row.artifact, row.digest)) or self.values.get(row.digest)
            if found and found[0] < at:
                return Trouble(row, *found)
        minted = self.spans.get((row.origin_trace, row.origin_span), -1)
        if 0 <= minted < at:
            return Trouble(row, minted, self._at_place(minted, row))
        return self._by_place(at, row) or self._left_over(at, row)

    def _at_place(self, minted: int, row: Row) -> Minted | None:
        came = [m for m in self.calls[minted].received if m.position == row.came_position]
        same = [m for m in came if m.artifact == row.artifact]
        return next(iter(same or came), None)

    def _by_place(self, at: int, row: Row) -> Trouble | None:
        """By what stands beside it, or stood in its place of the history before."""
        for call in (self.calls[i] for i in range(at, -1, -1)) if row.position else ():
            for other in call.returned:
                known = other.fate != Fate.MODIFIED and other.position == row.position
                found = self.values.get(other.digest) if known else None
                if found and found[0] < at:
                    return Trouble(row, *found)
        return None

    def _left_over(self, at: int, row: Row) -> Trouble:
        """By elimination: what came with the call before, and is not accounted for here."""
        if at == 0:
            return Trouble(row, sure=False)
        here = {other.digest for other in self.calls[at].returned if other is not row}
        came = [m for m in self.calls[at - 1].received if m.artifact == row.artifact]
        left = [m for m in came if m.digest not in here] or came
        tail = row.position.rsplit(".", 2)[-2:]
        there = [m for m in left if len(left) > 1 and m.position.rsplit(".", 2)[-2:] == tail]
        found = there or left
        if len(found) != 1:
            return Trouble(row, sure=False)
        return Trouble(row, at - 1, found[0], sure=False)

    def _beyond(self, at: int) -> Trouble:
        """What a refusal of a clean request is about: the newest seal of the kind it names."""
        call = self.calls[at]
        concerns = CONCERNS.get(call.rejection, ())
        rows = [row for row in call.returned if row.artifact in concerns]
        if rows:
            best = min(rows, key=lambda row: (concerns.index(row.artifact), -_rest(row)))
            return self.traced(at, _refused_there(best))
        minted = [
            (number, came)
            for (artifact, _), (number, came) in self.minted.items()
            if number < at and artifact in concerns
        ]
        fate = Fate.SERVER_HELD if call.carry == Carry.BY_REFERENCE else Fate.INTACT
        verdict = call.verdict or Verdict.OK
        if minted:
            number, came = max(minted, key=lambda pair: pair[0])
            row = Row(came.artifact, came.digest, came.size, "", fate, verdict)
            return Trouble(_refused_there(row), number, came)
        name = concerns[0] if concerns else vocab.OTHER
        return Trouble(Row(name, "", -1, "", Fate.UNKNOWN, verdict))


def _rest(row: Row) -> int:
    digits = [int(part) for part in row.position.split(".") if part.isdecimal() and len(part) < 9]  # noqa: PLR2004
    return digits[0] if digits else -1


def _refused_there(row: Row) -> Row:
    """A row that was well here: what broke broke beyond us, unless we never saw it come."""
    return row if row.fate == Fate.UNKNOWN else replace(row, locus=Locus.BEYOND)


# ------------------------------------------------------------------------------------------ joining


@dataclass(slots=True)
class _Part:
    trouble: Trouble
    first: int
    calls: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Chain:
    """An incident while it is put together: calls by index, values by key."""

    affected: list[int] = field(default_factory=list)
    parts: dict[tuple[str, ...], _Part] = field(default_factory=dict)
    values: set[tuple[str, ...]] = field(default_factory=set)
    habits: set[tuple[str, str]] = field(default_factory=set)
    waiting: bool = False
    """Whether its newest call was refused, and nothing was taken since: what is next is a retry."""

    def goes_on(self, found: Sequence[Trouble]) -> bool:
        """Whether a call with these troubles is part of it."""
        return self.waiting or any(
            trouble.key in self.values or (trouble.row.artifact, trouble.row.fate) in self.habits
            for trouble in found
        )

    def add(self, at: int, found: Sequence[Trouble]) -> None:
        """A call with what is wrong in it."""
        self.affected.append(at)
        for trouble in found:
            self.habits.add((trouble.row.artifact, trouble.row.fate))
            self.values.add(trouble.key)
            name = (trouble.row.fate, *trouble.key)
            part = self.parts.get(name)
            if part is None and len(self.parts) < MAX_PARTS:
                part = self.parts[name] = _Part(trouble, at)
            if part is not None:
                part.calls.add(at)

    def take(self, other: _Chain) -> None:
        """The calls and values of another one that turns out to be the same."""
        self.affected = sorted({*self.affected, *other.affected})
        self.values |= other.values
        self.habits |= other.habits
        for key, part in other.parts.items():
            self.parts.setdefault(key, part).calls.update(part.calls)


def fewer(before: Call, call: Call) -> bool:
    """Whether a call was taken with fewer seals than the one before, or with some of them lost."""
    if call.said not in _TAKEN:
        return False
    lost = any(row.fate not in (Fate.INTACT, Fate.UNKNOWN) for row in call.returned)
    return lost or call.returned_count < before.returned_count


# ------------------------------------------------------------------------------------------ telling


def _told(chain: _Chain, story: Story, newest: int) -> Incident:
    calls = story.calls
    affected = [calls[at] for at in chain.affected]
    parts = sorted(chain.parts.values(), key=_weight)
    lead = parts[0]
    row = lead.trouble.row
    first, last = min(p.first for p in parts), chain.affected[-1]
    outcome = _outcome(chain.affected, calls)
    rule = rule_of(row.rule, row.fate, row.artifact) if row.rule else None
    broken = tuple(_broken(part, story) for part in parts)
    minted = broken[0].minted
    here = calls[first]
    evidence = Evidence.SPANS
    if all(call.evidence is Evidence.EVENTS for call in affected):
        evidence = Evidence.EVENTS
    return Incident(
        id=_ident(here, row),
        conversation=here.conversation,
        outcome=outcome,
        parts=broken,
        minted=minted,
        last_good=_last_good(first, story),
        first_bad=story.turn(first),
        last_bad=story.turn(last),
        age_ns=here.at - minted.at if minted and minted.at and here.at else -1,
        affected=max(len(affected), *(call.occurrences for call in affected)),
        calls=len(calls),
        growing=last == len(calls) - 1 and newest - calls[last].at <= RECENT_NS,
        said=_worst_said(affected),
        rejection=next((call.rejection for call in affected if refused(call)), ""),
        provider=here.provider,
        model=here.model,
        host=here.host,
        about=_about(affected, calls),
        says=rule.says if rule else "",
        source=rule.source if rule else "",
        remedies=remedies(row.artifact, row.fate, broken[0].locus),
        evidence=evidence,
        known=all(call.known for call in affected if troubled(call)),
    )


def _weight(part: _Part) -> tuple[int, int, int, int]:
    """What leads: what broke first, then the worst, then seals before what depends on them."""
    row = part.trouble.row
    kind = 0 if vocab.is_seal(row.artifact) else 1 if row.artifact in vocab.COMPANIONS else 2
    return part.first, -_RANK.get(row.verdict, 0), kind, _ORDER.get(row.fate, len(_ORDER))


def _broken(part: _Part, story: Story) -> Broken:
    trouble = part.trouble
    row, came = trouble.row, trouble.came
    minted = story.turn(trouble.minted) if trouble.minted >= 0 else None
    locus = row.locus or _locus(row.fate)
    proven = (minted is not None and trouble.sure) or locus == Locus.SOURCE
    confidence = row.confidence or (Confidence.PROVEN if proven else Confidence.INFERRED)
    if minted is None and row.origin_span:
        minted = Turn(0, 0, row.origin_trace, row.origin_span)
    return Broken(
        artifact=row.artifact,
        fate=row.fate,
        verdict=row.verdict,
        rule=row.rule,
        cause=row.cause,
        diagnosis=row.diagnosis,
        locus=locus,
        confidence=confidence,
        disputed=row.disputed,
        minted=minted,
        came_position=row.came_position or (came.position if came else ""),
        came_size=row.came_size if row.came_size >= 0 or came is None else _size(came, row),
        returned=row.position,
        returned_size=row.size,
        first=story.turn(part.first),
        calls=len(part.calls),
        digest=row.digest,
    )


def _size(came: Minted, row: Row) -> int:
    """The size of what came, where it is the same artifact and not one that stands beside it."""
    return came.size if came.artifact == row.artifact else -1


def _locus(fate: str) -> str:
    if fate in _SOURCE:
        return Locus.SOURCE
    if fate in (Fate.INTACT, Fate.UNKNOWN):
        return ""
    return Locus.SDK if fate == Fate.SDK_LOSSY else Locus.PROCESS


def _outcome(affected: Sequence[int], calls: Sequence[Call]) -> Outcome:
    refusals = [at for at in affected if refused(calls[at])]
    if refusals:
        last = refusals[-1]
        taken = next((c for c in calls[last + 1 :] if c.said in _TAKEN), None)
        if taken is None:
            return Outcome.REFUSED
        lost = fewer(calls[last], taken)
        return Outcome.RECOVERED_BY_LOSS if lost else Outcome.RECOVERED
    said = _worst_said(calls[at] for at in affected)
    if said == ProviderVerdict.REMOVED:
        return Outcome.REMOVED
    return Outcome.SILENT if said == ProviderVerdict.ACCEPTED else Outcome.UNREPORTED


def _worst_said(calls: Iterable[Call]) -> str:
    said = {call.said for call in calls}
    return next((word.value for word in _SAID if word in said), ProviderVerdict.UNREPORTED.value)


def _last_good(first: int, story: Story) -> Turn | None:
    """The newest call before the first bad one in which nothing was wrong."""
    for at in range(first - 1, -1, -1):
        call = story.calls[at]
        if call.evidence is Evidence.SPANS and not troubled(call):
            return story.turn(at)
    return None


def _about(affected: Sequence[Call], calls: Sequence[Call]) -> About:
    """Who made it: of the first call concerned, its SDKs of any call that tells them."""
    about = affected[0].about
    sdks = next((call.about.sdks for call in (*affected, *calls) if call.about.sdks), ())
    return replace(about, sdks=about.sdks or sdks)


def _ident(call: Call, row: Row) -> str:
    text = f"{call.conversation}\n{call.trace}\n{call.span}\n{call.at}\n{row.artifact}\n{row.fate}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]
