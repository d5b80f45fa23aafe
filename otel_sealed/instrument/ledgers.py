"""The ledger that the settings choose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from otel_sealed.ledger.locate import Ledger
    from otel_sealed.telemetry.settings import Settings

_DAY_S: Final = 86_400.0


def opened(chosen: Settings) -> Ledger:
    """In memory, or in a file that processes share. Never raises on what the disk says."""
    from otel_sealed.ledger.memory import MemoryLedger
    from otel_sealed.telemetry.settings import ledger_file

    most = chosen.ledger_max_mb * 2**20
    file = ledger_file(chosen.ledger)
    if not file:
        return MemoryLedger(chosen.max_turns, most)
    from otel_sealed.ledger import sqlite

    return sqlite.opened(
        Path(file).expanduser(), chosen.max_turns, most, chosen.ledger_max_days * _DAY_S
    )
