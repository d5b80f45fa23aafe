"""Incidents, pasted errors and flaws as JSON objects for machines: every key is always there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from otel_sealed.triage.model import Flaw, Incident, Pasted
from otel_sealed.triage.sums import Sums, reason


def incident_object(incident: Incident) -> dict[str, Any]:
    """One incident. Times are RFC 3339 strings, null where unknown; `age_s` is in seconds."""
    found = _timed(asdict(incident))
    age = found.pop("age_ns")
    lead = incident.lead
    return {
        "kind": "incident",
        "id": found.pop("id"),
        "artifact": lead.artifact,
        "fate": lead.fate,
        "cause": lead.cause or None,
        "verdict": lead.verdict,
        "rule": lead.rule or None,
        "locus": lead.locus or None,
        "confidence": lead.confidence,
        **found,
        "age_s": None if age < 0 else age / 1e9,
    }


def pasted_object(found: Pasted) -> dict[str, Any]:
    """What an error is about."""
    told = _timed(asdict(found))
    age = told.pop("age_ns")
    told["incidents"] = [incident_object(incident) for incident in found.incidents]
    told["culprit"] = told["chain"][found.culprit] if found.culprit >= 0 else None
    return {"kind": "error", **told, "age_s": None if age < 0 else age / 1e9}


def flaw_object(flaw: Flaw) -> dict[str, Any]:
    """One line that could not be used."""
    return {"kind": "flaw", **asdict(flaw)}


def sums_objects(sums: Sums) -> Iterator[dict[str, Any]]:
    """What could not be judged, and calls that failed or were not read: an object for each kind."""
    for rule, count in sums.unjudged.items():
        why = reason(rule)
        found = {"rule": rule or None, "values": count, "says": why.says, "remedy": why.remedy}
        yield {"kind": "unjudged", **found}
    for kind, counts in (("failed", sums.failed), ("unread", sums.unread)):
        for name, count in counts.items():
            yield {"kind": kind, "class": name, "calls": count}
    for (client, host), requests in sums.unobserved.items():
        yield {"kind": "unobserved", "client": client, "host": host, "requests": requests}


def _timed(value: Any) -> Any:
    """Every `at` as a text."""
    if isinstance(value, dict):
        return {k: _moment(v) if k == "at" else _timed(v) for k, v in value.items()}
    return [_timed(item) for item in value] if isinstance(value, (list, tuple)) else value


def _moment(at: int) -> str | None:
    if not 0 < at < 1 << 62:
        return None
    return datetime.fromtimestamp(at / 1e9, UTC).isoformat(timespec="milliseconds")
