"""The ledger that the settings choose."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from otel_sealed.vocab import SCOPE

if TYPE_CHECKING:
    from otel_sealed.ledger.protocol import Ledger
    from otel_sealed.telemetry.settings import Settings

_LOG: Final = logging.getLogger(SCOPE)
_DAY_S: Final = 86_400.0


def opened(chosen: Settings) -> Ledger:
    """In memory, in a file, or on a server. Never raises on what the disk or the server says."""
    from otel_sealed.ledger.memory import MemoryLedger
    from otel_sealed.telemetry.settings import ledger_file, ledger_server

    most = chosen.ledger_max_mb * 2**20
    bounds = (chosen.max_turns, most, chosen.ledger_max_days * _DAY_S)
    file = ledger_file(chosen.ledger)
    if ledger_server(chosen.ledger):
        try:
            from otel_sealed.ledger.redis import opened as on_server

            keeps = chosen.redis_keeps_key and chosen.key() is None
            if not keeps and chosen.key() is None:
                _LOG.warning(
                    "OTEL_SEALED_LEDGER: processes share no key, so none can join what another one"
                    " recorded; set OTEL_SEALED_HASH_KEY, or OTEL_SEALED_REDIS_KEEPS_KEY=true"
                )
            return on_server(chosen.ledger, *bounds, keeps_key=keeps)
        except (ImportError, ValueError) as error:
            _LOG.warning(
                "OTEL_SEALED_LEDGER: Redis cannot be used: %s; install otel-sealed[redis]; the"
                " memory of this process stands in",
                type(error).__name__,
            )
    if not file:
        return MemoryLedger(chosen.max_turns, most)
    from otel_sealed.ledger import sqlite

    return sqlite.opened(Path(file).expanduser(), *bounds)
