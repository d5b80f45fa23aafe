"""A bug report for the tracker of whose it is: what a maintainer needs, nothing of a user's.

It leaves out what could tell who wrote it: service, release, host, conversation and trace.
"""

from __future__ import annotations

from collections.abc import Iterator

from otel_sealed.triage.model import Broken
from otel_sealed.triage.report import Problem
from otel_sealed.triage.words import OUTCOMES, answer, count, explained, owner, what_broke


def bug_report(problem: Problem) -> str:
    """Markdown, content-free."""
    return "\n".join(_lines(problem)) + "\n"


def _lines(problem: Problem) -> Iterator[str]:
    incident = problem.shown
    lead, about = incident.lead, incident.about
    yield f"### {what_broke(incident)}"
    yield ""
    conversations = count(problem.conversations, "conversation")
    yield f"- Seen: {count(problem.calls, 'call')} in {conversations}"
    yield f"- Outcome: {OUTCOMES[incident.outcome]}"
    if incident.says:
        disputed = " (sources disagree on it)" if lead.disputed else ""
        yield f"- Rule {lead.rule}: {incident.says}{disputed}"
        yield f"- Source of the rule: {incident.source}; explained in {explained(lead.rule)}"
    who, why = owner(incident)
    yield f"- Where it happened: {who}. {why}"
    yield f"- Came in: {_place(lead.came_position, lead.came_size)}"
    yield f"- Went back: {_place(lead.returned, lead.returned_size)}"
    if how := lead.diagnosis or lead.cause.replace("_", " "):
        yield f"- How: {how}"
    yield f"- Model: {incident.model or 'not on record'}, on the wire of {_dialect(lead)}"
    otel = (f"opentelemetry-sdk={about.otel}",) if about.otel else ()
    versions = ", ".join(x for x in (about.framework, *about.sdks, *otel) if x)
    yield f"- Versions: {versions or 'not on record'}"
    for strip in problem.strips:
        yield ""
        yield f"Block types, turn {strip.turn} ({answer(strip.said, strip.rejection)}):"
        yield ""
        yield "```text"
        yield f"came in:   {strip.sequence('came')}"
        yield f"went back: {strip.sequence('back')}"
        yield "```"
    yield ""
    yield "No prompt, answer, id or sealed value is in this report. Made with otel-sealed."


def _place(position: str, size: int) -> str:
    known = f"{size:,} bytes" if size >= 0 else ""
    return ", ".join(x for x in (position, known) if x) or "nothing"


def _dialect(lead: Broken) -> str:
    return lead.artifact.partition(".")[0]
