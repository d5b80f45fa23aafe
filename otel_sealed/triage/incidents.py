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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from otel_sealed import vocab
from otel_sealed.model import (
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
from otel_sealed.triage.remedies import remedies, rule_of
from otel_sealed.triage.story import Story, Trouble, ordered, refused, troubled, worst_said

__all__ = ["Story", "Trouble", "incidents", "ordered", "refused", "troubled"]

RECENT_NS: Final = 3_600_000_000_000
"""An incident grows while its newest call is not older than this (an hour) on the record."""
MAX_PARTS: Final = 64
_RANK: Final = {verdict.value: verdict.rank for verdict in Verdict}
_ORDER: Final = {fate.value: at for at, fate in enumerate(Fate)}
_SOURCE: Final = frozenset({Fate.UNSEALED, Fate.NOT_REQUESTED, Fate.ABSENT_AT_SOURCE})
_TAKEN: Final = frozenset({ProviderVerdict.ACCEPTED, ProviderVerdict.REMOVED})


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
    rule = (
        rule_of(row.rule, row.fate, row.artifact, row.verdict, disputed=row.disputed)
        if row.rule
        else None
    )
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
        said=worst_said(affected),
        rejection=next((call.rejection for call in affected if refused(call)), ""),
        provider=here.provider,
        model=here.model,
        host=here.host,
        about=_about(affected, calls),
        says=rule.says if rule else "",
        source=rule.source if rule else "",
        remedies=remedies(
            row.artifact,
            row.fate,
            broken[0].locus,
            next((call.rejection for call in affected if refused(call)), ""),
            row.rule,
        ),
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
    locus = str(row.locus or _locus(row.fate))
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
        confidence=str(confidence),
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
    said = worst_said(calls[at] for at in affected)
    if said == ProviderVerdict.REMOVED:
        return Outcome.REMOVED
    return Outcome.SILENT if said == ProviderVerdict.ACCEPTED else Outcome.UNREPORTED


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
