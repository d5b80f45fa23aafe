"""Incidents as JSON text and back, for the index, whose word is not taken for what comes back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any, Final, TypeVar, cast

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


def unpack_incident(body: Any) -> Incident:
    """The incident again.

    Raises:
        ValueError: It is none: another shape, a value of another type, or one that no print shows.
    """
    try:
        return _incident(json.loads(body))
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("no incident") from None


def _incident(found: dict[str, Any]) -> Incident:
    found["outcome"] = Outcome(found["outcome"])
    found["evidence"] = Evidence(found["evidence"])
    found["parts"] = tuple(map(_broken, found["parts"]))
    for name in ("minted", "last_good", "first_bad", "last_bad"):
        found[name] = _turn(found[name], missing=name in _MISSING)
    about = found["about"]
    found["about"] = _plain(About, {**about, "sdks": tuple(map(_text, about["sdks"]))})
    found["remedies"] = tuple(_plain(Remedy, item) for item in found["remedies"])
    if not found["parts"]:
        raise ValueError("no incident")
    return _plain(Incident, found)


def _broken(found: dict[str, Any]) -> Broken:
    turns = {name: _turn(found[name], missing=name in _MISSING) for name in ("minted", "first")}
    return _plain(Broken, {**found, **turns})


def _turn(found: dict[str, Any] | None, *, missing: bool) -> Turn | None:
    return None if found is None and missing else _plain(Turn, found)


_MISSING: Final = ("minted", "last_good")
_LONGEST: Final = 2000
"""Characters of the longest text of ours, with room: a rule in words."""
_MOST: Final = 1 << 63
_Made = TypeVar("_Made")


def _plain(kind: type[_Made], found: Any) -> _Made:
    """A record of its fields, those of the plain types checked."""
    declared = {f.name: f.type for f in fields(cast("Any", kind))}
    if found.keys() != declared.keys():
        raise ValueError("other fields")
    for name, type_ in declared.items():
        value = found[name]
        if type_ == "str":
            _text(value)
        elif type_ == "int":
            if type(value) is not int or not -_MOST <= value < _MOST:
                raise ValueError("no number")
        elif type_ == "bool" and type(value) is not bool:
            raise ValueError("no flag")
    return kind(**found)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        raise ValueError("no text of ours")
    return value
