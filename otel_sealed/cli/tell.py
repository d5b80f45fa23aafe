"""Incidents and pasted errors in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from otel_sealed.cli.show import plural, size, table, verdict
from otel_sealed.cli.when import clock, span
from otel_sealed.model import Fate, Locus, Rejection, Verdict
from otel_sealed.triage.model import (
    Broken,
    Evidence,
    Flaw,
    Incident,
    Link,
    Meaning,
    Outcome,
    Pasted,
    Turn,
)
from otel_sealed.triage.words import explained

_COLUMNS: Final = (
    "incident",
    "since",
    "artifact",
    "fate",
    "verdict",
    "outcome",
    "calls",
    "whose",
    "model",
)
WHOSE: Final = {
    Locus.PROCESS: "this process: it was changed before it was sent",
    Locus.SDK: "the SDK: the wire brought it, and its object lacks it",
    Locus.BEYOND: "beyond this process: clean here, refused there (gateway, issuer or provider)",
    Locus.SOURCE: "the source: it never came whole",
}
OUTCOMES: Final = {
    Outcome.REFUSED: "refused",
    Outcome.SILENT: "silent",
    Outcome.REMOVED: "removed",
    Outcome.RECOVERED_BY_LOSS: "recovered by loss",
    Outcome.RECOVERED: "recovered",
    Outcome.UNREPORTED: "no answer on record",
}
_LONG: Final = {
    Outcome.REFUSED: "refused, and nothing was accepted since",
    Outcome.SILENT: "accepted without a word",
    Outcome.REMOVED: "accepted, and the provider says that it removed something",
    Outcome.RECOVERED_BY_LOSS: "recovered by loss: refused, then accepted with fewer seals",
    Outcome.RECOVERED: "recovered: refused, then accepted with all seals",
}


def incident_table(found: Sequence[Incident]) -> Table:
    """Many incidents, a row each."""
    return table(_COLUMNS, (_cells(incident) for incident in found), "calls")


def _cells(incident: Incident) -> tuple[str | Text, ...]:
    lead = incident.lead
    return (
        incident.id,
        clock(incident.first_bad.at),
        lead.artifact,
        lead.fate,
        judged(lead.verdict, lead.rule),
        OUTCOMES[incident.outcome],
        f"{incident.affected:,}{'+' if incident.growing else ''}",
        lead.locus or "?",
        incident.model or incident.provider,
    )


def incident_lines(incident: Incident) -> Text:
    """The row of an incident on two lines, for a narrow terminal."""
    ident, since, artifact, fate, worst, outcome, calls, whose, model = _cells(incident)
    many = f"{calls} {'call' if calls == '1' else 'calls'}"
    head = Text.assemble((str(ident), "bold"), "  ", worst, f"  {outcome}, {many}, since {since}")
    return head.append(f"\n  {artifact} {fate}; whose: {whose}; {model}")


def judged(word: str, rule: str) -> str | Text:
    """A verdict in its colour, plain where this version does not know it."""
    return verdict(Verdict(word), rule) if word in set(Verdict) else f"{word} {rule}".rstrip()


def detail(incident: Incident) -> Text:
    """One incident, all that is known of it."""
    lead = incident.lead
    out = Text.assemble(
        (incident.id, "bold"), f"  {lead.artifact} {lead.fate}: ", judged(lead.verdict, lead.rule)
    )
    for name, value in _facts(incident):
        out.append(f"\n  {name:<13}{value}")
    if incident.remedies:
        out.append("\n  what to do, safest first")
        for number, remedy in enumerate(incident.remedies, 1):
            out.append(f"\n    {number}. {remedy.does}; loses {remedy.loses}")
    return out


def _facts(incident: Incident) -> Iterator[tuple[str, str]]:
    lead = incident.lead
    if incident.says:
        yield "rule", f"{incident.says} [{incident.source}]"
        yield "see", explained(lead.rule)
    if lead.disputed:
        yield "disputed", "sources disagree on this rule"
    yield "first bad", place(incident.first_bad)
    yield "last good", place(incident.last_good) if incident.last_good else "not on record"
    yield "came in", came(lead, incident.age_ns)
    yield "went back", _back(lead)
    if lead.cause or lead.diagnosis:
        yield "how", lead.diagnosis or lead.cause.replace("_", " ")
    more = "; still growing" if incident.growing else ""
    of = f" of {incident.calls:,}" if incident.evidence is Evidence.SPANS else ""
    yield "calls", f"{incident.affected:,}{of} affected since{more}"
    unknown = incident.rejection == Rejection.OTHER
    kind = "of no known class: it may not be about sealed state" if unknown else incident.rejection
    refusal = f" ({kind})" if kind else ""
    yield "provider", f"{_LONG.get(incident.outcome, 'said nothing on record')}{refusal}"
    whose = WHOSE.get(Locus(lead.locus), "") if lead.locus in set(Locus) else ""
    sure = "proven at the boundary" if lead.confidence == "proven" else "inferred"
    yield "whose", f"{whose or 'not known'} ({sure})"
    yield "where", _where(incident)
    if incident.evidence is Evidence.EVENTS:
        yield "evidence", "violation events alone: the traces are not on record"
    for part in incident.parts[1:4]:
        at = f" at {part.returned}" if part.returned else ""
        yield "also", f"{part.artifact} {part.fate}{at} ({part.verdict} {part.rule})"
    if len(incident.parts) > 4:  # noqa: PLR2004 - the leading one and three
        yield "", f"and {plural(len(incident.parts) - 4, 'more value')}"
    yield "conversation", incident.conversation or "not told"


def place(turn: Turn) -> str:
    """A call by its place, its time and its ids."""
    number = f"turn {turn.number}" if turn.number else ""
    ids = f"trace {turn.trace} span {turn.span}" if turn.span else ""
    return ", ".join(part for part in (number, clock(turn.at) if turn.at else "", ids) if part)


def came(lead: Broken, age_ns: int) -> str:
    """Where an artifact came from."""
    if lead.minted is None and not lead.came_position:
        return "not on record" if lead.locus != Locus.SOURCE else "never"
    known = size(lead.came_size) if lead.came_size >= 0 else ""
    age = f"{span(age_ns)} before it broke" if age_ns >= 0 else ""
    parts = (place(lead.minted) if lead.minted else "", lead.came_position, known, age)
    return ", ".join(part for part in parts if part)


def _back(lead: Broken) -> str:
    known = size(lead.returned_size) if lead.returned_size >= 0 else ""
    where = ", ".join(part for part in (lead.returned, known) if part)
    return where or ("as it came" if lead.fate == Fate.INTACT else "nothing")


def _where(incident: Incident) -> str:
    about = incident.about
    host = f"at {incident.host}" if incident.host else ""
    made = f"service {about.service} {about.release}".strip() if about.service else ""
    call = " ".join(x for x in (incident.provider, incident.model, host) if x)
    sdks = " ".join(about.sdks)
    otel = f"opentelemetry-sdk {about.otel}" if about.otel else ""
    return "; ".join(x for x in (call, made, about.framework, sdks, otel) if x)


def flaw_line(flaw: Flaw) -> str:
    """One line that could not be used."""
    where = f"{flaw.file}, line {flaw.line}" if flaw.line else flaw.file
    return f"not used: {where}: {flaw.what}"


# --------------------------------------------------------------------------------- a pasted error


def pasted_lines(found: Pasted, *, ids: bool, key: bool) -> Iterator[str]:
    """What a provider's error is about. `ids`: it names some; `key`: they could be looked for."""
    kind = found.rejection or "no refusal of sealed state that is known"
    yield f"the error: {kind}{f', points at {found.pointer}' if found.pointer else ''}"
    if ids and not key:
        yield "the record has no key, so that the ids in the error cannot be looked for"
    if found.refused is not None:
        yield f"refused:   {place(found.refused)}"
    victim = found.victim
    if victim is None:
        yield "nothing on record fits it"
        yield from _meaning(found.meaning)
        return
    age = f", {span(found.age_ns)} before" if found.age_ns >= 0 else ""
    minted = f"; came in {place(victim.minted)}{age}" if victim.minted else ""
    yield f"names:     {link(victim)}{minted}  (found by {found.how})"
    before = found.chain[:-1]
    if before:
        yield f"before it: {plural(len(before), 'artifact')}"
        shown = [item for item in before if item.fate != Fate.INTACT] or before[-3:]
        for item in shown[:8]:
            yield f"  {link(item)}"
    if found.culprit < 0:
        yield "all of it is as it came: clean here, refused there"
    else:
        culprit = found.chain[found.culprit]
        came_in = f"; came in {place(culprit.minted)}" if culprit.minted else ""
        yield f"began at:  {link(culprit)}{came_in}"
    concerned = (victim, *found.chain[found.culprit :][:1]) if found.culprit >= 0 else (victim,)
    for rule in dict.fromkeys(item.rule for item in concerned if item.rule):
        yield f"the rule:  {explained(rule)}"


def _meaning(known: Meaning | None) -> Iterator[str]:
    """What such an error means anywhere."""
    if known is None:
        return
    yield f"it means:  {known.says}"
    yield f"usually:   {known.whose}"
    if known.rule:
        yield f"the rule:  {explained(known.rule)}"
    yield "what to do, safest first"
    for number, remedy in enumerate(known.remedies, 1):
        yield f"  {number}. {remedy.does}; loses {remedy.loses}"


def link(item: Link) -> str:
    """One artifact of a history."""
    where = f" at {item.position}" if item.position else ""
    bad = f" ({item.verdict} {item.rule})".replace(" )", ")") if item.verdict != Verdict.OK else ""
    return f"{item.artifact}{where}: {item.fate}{bad}"
