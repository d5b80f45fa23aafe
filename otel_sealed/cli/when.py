"""Times as people write and read them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Final

from otel_sealed.errors import SealedError

BILLION: Final = 1_000_000_000
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"(\d{1,6})([smhdw])")


def moment(text: str, where: str) -> int:
    """Nanoseconds of `2h` (ago), of a date or of a date and time (UTC unless it says); 0 for none.

    Raises:
        SealedError: It is neither.
    """
    if not text:
        return 0
    ago = _AGO.fullmatch(text)
    if ago:
        return time.time_ns() - int(ago[1]) * _UNITS[ago[2]] * BILLION
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise SealedError(
            "no time", where=where, remedy="2h, 2026-11-30, 2026-11-30T14:00"
        ) from None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return int(when.timestamp() * 1_000_000) * 1000


def clock(at: int) -> str:
    """A moment in UTC for people."""
    return datetime.fromtimestamp(at / BILLION, UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else "?"


def span(ns: int) -> str:
    """How long something took or lasted."""
    seconds = ns / BILLION
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms"
