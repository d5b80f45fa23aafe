"""Ledgers that nobody holds any more, and those of a process that ends: their writers end, too.

A writer that has a thread notices by itself that its ledger is gone. One without a thread holds a
store that is open, and nothing that waits: it is ended when the next ledger is made, or with the
process.
"""

from __future__ import annotations

import atexit
from typing import Any

from otel_sealed.ledger.shared.writer import Writer

_writers: dict[int, Writer] = {}


def with_owner(ledger: Any, writer: Writer) -> None:
    """End a writer when nobody holds its ledger, or when the process ends."""
    tidy()
    _writers[id(writer)] = writer
    writer.owned_by(ledger)


def tidy() -> None:
    """End what was left."""
    for key, writer in list(_writers.items()):
        if writer.orphaned():
            _writers.pop(key, None)
            writer.end()


def end_all() -> None:
    """Write what waits, as far as that is quick, and let go of every store."""
    while _writers:
        _, writer = _writers.popitem()
        writer.end()


# before whoever records into a ledger registers what is to be done at exit, and so run after it
atexit.register(end_all)
