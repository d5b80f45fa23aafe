"""One module a shape: what it takes, and the signals in it. They are told apart by content alone.

A source is a module with `takes(value)`, whether a parsed JSON value is of its shape, and
`signals(value)`, what is in it. A new backend is one more module here and one golden file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from otel_sealed.triage.sources import clickhouse, jaeger, loki, otlp
from otel_sealed.triage.sources.signal import Signal

Source: TypeAlias = tuple[Callable[[Any], bool], Callable[[Any], Iterator[Signal]]]

SOURCES: Final[tuple[Source, ...]] = (
    (otlp.takes, otlp.signals),
    (loki.takes, loki.signals),
    (jaeger.takes, jaeger.signals),
    (clickhouse.takes, clickhouse.signals),
)


def signals(value: Any) -> Iterator[Signal] | None:
    """The signals of a parsed value; None where no source takes it."""
    for takes, read in SOURCES:
        if takes(value):
            return read(value)
    return None
