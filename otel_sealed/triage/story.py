"""The calls of one conversation in their order, and for what is wrong in one, where it came from.

What violation events know (locus, confidence, the minting span) is laid on the rows of the spans
they belong to; events whose span is not on record stand in for it. Where the record does not say
which response minted a value, it is looked for by digest, by the event's word, by what stands in
the same place, and last by elimination, which is not `sure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from otel_sealed import vocab
from otel_sealed.model import Carry, Fate, Locus, ProviderVerdict, Verdict
from otel_sealed.triage.concerns import CONCERNS
from otel_sealed.triage.model import Call, Evidence, Minted, Row, Turn
from otel_sealed.triage.reading import is_refusal

VIOLATING: Final = (Verdict.DEGRADES, Verdict.BREAKS)
_SAID: Final = (
    ProviderVerdict.REJECTED,
    ProviderVerdict.REMOVED,
    ProviderVerdict.ACCEPTED,
    ProviderVerdict.UNREPORTED,
)


def troubled(call: Call) -> bool:
    """Whether a call is, or may be, part of an incident by itself."""
    return refused(call) or any(row.verdict in VIOLATING for row in call.returned)


def refused(call: Call) -> bool:
    """Whether the provider refused it for its sealed state."""
    return is_refusal(call.said, call.rejection)


def worst_said(calls: Iterable[Call]) -> str:
    """The weightiest of what the provider said to these calls."""
    said = {call.said for call in calls}
    return next((word.value for word in _SAID if word in said), ProviderVerdict.UNREPORTED.value)


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
        said=worst_said(events),
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
        self.places: dict[str, list[tuple[int, tuple[int, Minted]]]] = {}
        for at, call in enumerate(calls):
            for came in call.received:
                if came.digest:
                    self.minted.setdefault((came.artifact, came.digest), (at, came))
                    self.values.setdefault(came.digest, (at, came))
        for at, call in enumerate(calls):
            for row in call.returned:
                known = row.position and row.fate != Fate.MODIFIED
                found = self.values.get(row.digest) if known else None
                if found is not None:
                    self.places.setdefault(row.position, []).append((at, found))

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
        rows = [row for row in call.returned if row.verdict in VIOLATING]
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
        for number, found in reversed(self.places.get(row.position, ())) if row.position else ():
            if number <= at and found[0] < at:
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
        seals = (row.artifact for row in call.returned if vocab.is_seal(row.artifact))
        concerns = CONCERNS.get(call.rejection) or tuple(dict.fromkeys(seals))
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
