"""What every source reads its backend's shape into: one span or one log event, with plain values.

Only attributes of our vocabulary are kept: whatever else a backend hands out is not looked at.
Nothing in here raises for what it is given, since a file may be cut, torn or of another program.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from otel_sealed import vocab

Json = dict[str, Any]

SPAN: Final = "span"
EVENT: Final = "event"
RESOURCE: Final = frozenset({"service.name", "service.version", "telemetry.sdk.version"})
WANTED: Final = frozenset(attribute.name for attribute in vocab.ATTRIBUTES)
_LISTS: Final = frozenset(a.name for a in vocab.ATTRIBUTES if a.type.endswith("[]"))
_NUMBERS: Final = frozenset(a.name for a in vocab.ATTRIBUTES if a.type == "int")
_FLAGS: Final = frozenset(a.name for a in vocab.ATTRIBUTES if a.type == "boolean")
_BILLION: Final = 1_000_000_000
_MAX_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Signal:
    """One span or log event: `name` is the span's or the event's, times are ns since the epoch."""

    kind: str
    name: str
    at: int
    trace: str
    span: str
    attributes: Json = field(repr=False)
    resource: Json = field(default_factory=dict, repr=False)
    parent: str = ""
    ended: int = 0
    scope: str = ""
    scope_version: str = ""


def objects(value: Any) -> list[Json]:
    """The objects of a list, nothing for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text, empty for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int:
    """A whole number, also one that stands as text; 0 for anything else."""
    if isinstance(value, str) and len(value) > _MAX_DIGITS:
        return 0
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def typed(pairs: Iterable[tuple[str, Any]], wanted: frozenset[str] = WANTED) -> Json:
    """Attributes of a backend that keeps text only, as the types of the vocabulary.

    Arrays stand as JSON text there, numbers and booleans as words.
    """
    return {name: _typed(name, value) for name, value in pairs if name in wanted}


def _typed(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name in _LISTS:
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return []
        return found if isinstance(found, list) else []
    if name in _NUMBERS:
        return whole(value)
    return value.lower() == "true" if name in _FLAGS else value


UNDERSCORED: Final = {name.replace(".", "_"): name for name in sorted(WANTED | RESOURCE)}
"""Names as stores without dots in labels spell them."""


def dotted(labels: Any) -> Iterator[tuple[str, Any]]:
    """Labels with the names of the vocabulary in them, whichever way they are spelt."""
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if isinstance(key, str):
            yield UNDERSCORED.get(key, key), value


def nanoseconds(value: Any) -> int:
    """Nanoseconds of `2026-11-30 01:34:09.442915379` (UTC), of a number in any unit, or 0."""
    if isinstance(value, str) and ("-" in value[1:] or ":" in value):
        return _of_date(value)
    number = whole(value)
    for digits, factor in ((11, _BILLION), (14, 1_000_000), (17, 1000)):
        if abs(number) < 10**digits:
            return number * factor
    return number if abs(number) < 10**19 else 0


def _of_date(value: str) -> int:
    from datetime import UTC, datetime

    head, _, tail = value.strip().rstrip("Z").replace("T", " ").partition(".")
    try:
        moment = datetime.strptime(head[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return 0
    fraction = tail[:9].ljust(9, "0")
    seconds = int(moment.timestamp())
    return seconds * _BILLION + (int(fraction) if fraction.isascii() and fraction.isdigit() else 0)
