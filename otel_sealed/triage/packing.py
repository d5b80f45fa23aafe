"""Incidents as JSON text and back, for the index."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from otel_sealed.triage.model import (
    About,
    Broken,
    Evidence,
    Incident,
    Outcome,
    Remedy,
    Turn,
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
