"""Records of triage as JSON text and back, for the index and for machines.

A call is packed by position, since there are many of them; an incident by name.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TypeAlias

from otel_sealed.triage.model import (
    About,
    Broken,
    Call,
    Evidence,
    Incident,
    Minted,
    Outcome,
    Remedy,
    Row,
    Turn,
    Usage,
)


def pack(call: Call) -> str:
    """What the columns of the index do not hold of a call."""
    about, usage = call.about, call.usage
    return json.dumps(
        (
            (call.parent, call.ended, call.operation, call.host),
            (call.verdict, call.said, call.rejection, call.carry),
            [(m.artifact, m.digest, m.size, m.position, m.id) for m in call.received],
            [_row(row) for row in call.returned],
            (call.received_count, call.returned_count, call.expected_count, call.rest),
            (call.received_types, call.returned_types, call.tools, call.facts),
            (usage.input, usage.output, usage.reasoning, usage.cached),
            (about.service, about.release, about.framework, about.sdks, about.otel),
            (call.key_id, call.known, call.truncated, call.occurrences, call.evidence),
        ),
        separators=(",", ":"),
    )


def _row(row: Row) -> tuple[Any, ...]:
    short = (row.artifact, row.digest, row.size, row.position, row.fate, row.verdict, row.rule)
    if not (row.locus or row.cause):
        return short
    return (
        *short,
        row.cause,
        row.locus,
        row.confidence,
        row.diagnosis,
        row.disputed,
        row.came_position,
        row.came_size,
        row.origin_trace,
        row.origin_span,
    )


Columns: TypeAlias = tuple[int, str, str, str, str, str]
"""Time, trace, span, conversation, provider and model."""


def unpack(body: str, columns: Columns, file: str = "", line: int = 0) -> Call:
    """The call again."""
    place, said, received, returned, counts, lists, usage, about, rest = json.loads(body)
    service, release, framework, sdks, otel = about
    at, trace, span, conversation, provider, model = columns
    return Call(
        at,
        trace,
        span,
        conversation,
        parent=place[0],
        ended=place[1],
        operation=place[2],
        provider=provider,
        model=model,
        host=place[3],
        verdict=said[0],
        said=said[1],
        rejection=said[2],
        carry=said[3],
        received=tuple(Minted(*item) for item in received),
        returned=tuple(Row(*item) for item in returned),
        received_count=counts[0],
        returned_count=counts[1],
        expected_count=counts[2],
        rest=counts[3],
        received_types=tuple(lists[0]),
        returned_types=tuple(lists[1]),
        tools=tuple((call, name) for call, name in lists[2]),
        facts=tuple(lists[3]),
        usage=Usage(*usage),
        about=About(service, release, framework, tuple(sdks), otel),
        key_id=rest[0],
        known=rest[1],
        truncated=rest[2],
        occurrences=rest[3],
        evidence=Evidence(rest[4]),
        file=file,
        line=line,
    )


def pack_incident(incident: Incident) -> str:
    """An incident as JSON."""
    return json.dumps(asdict(incident), separators=(",", ":"))


def unpack_incident(body: str) -> Incident:
    """The incident again."""
    found: dict[str, Any] = json.loads(body)
    found["outcome"] = Outcome(found["outcome"])
    found["evidence"] = Evidence(found["evidence"])
    found["parts"] = tuple(map(_broken, found["parts"]))
    for name in ("minted", "last_good", "first_bad", "last_bad"):
        found[name] = _turn(found[name])
    about = found["about"]
    found["about"] = About(**{**about, "sdks": tuple(about["sdks"])})
    found["remedies"] = tuple(Remedy(**item) for item in found["remedies"])
    return Incident(**found)


def _broken(found: dict[str, Any]) -> Broken:
    turns: dict[str, Any] = {name: _turn(found[name]) for name in ("minted", "first")}
    return Broken(**{**found, **turns})


def _turn(found: dict[str, Any] | None) -> Turn | None:
    return None if found is None else Turn(**found)
