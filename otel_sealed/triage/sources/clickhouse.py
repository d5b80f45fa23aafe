"""Rows of the Collector's ClickHouse exporter, as `FORMAT JSONEachRow` (or `JSON`) prints them.

Tables `otel_traces` and `otel_logs`: attributes are maps of text, arrays JSON text in them; a
`Duration` is nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from otel_sealed import vocab
from otel_sealed.triage.sources.otlp import ident
from otel_sealed.triage.sources.signal import (
    EVENT,
    RESOURCE,
    SPAN,
    Json,
    Signal,
    nanoseconds,
    objects,
    text,
    typed,
    whole,
)


def takes(value: Any) -> bool:
    """Whether this is a row, or an object of rows."""
    return isinstance(value, dict) and (
        _is_row(value) or any(map(_is_row, objects(value.get("data"))))
    )


def _is_row(value: Json) -> bool:
    return isinstance(value.get("SpanAttributes", value.get("LogAttributes")), dict)


def signals(value: Any) -> Iterator[Signal]:
    """The spans or log events in it."""
    for row in [value] if _is_row(value) else filter(_is_row, objects(value.get("data"))):
        spans = "SpanAttributes" in row
        found = typed(row["SpanAttributes" if spans else "LogAttributes"].items())
        about = row.get("ResourceAttributes")
        resource = typed(about.items(), RESOURCE) if isinstance(about, dict) else {}
        resource.setdefault("service.name", text(row.get("ServiceName")))
        at = nanoseconds(row.get("Timestamp"))
        name = text(row.get("SpanName" if spans else "EventName"))
        yield Signal(
            SPAN if spans else EVENT,
            name if spans else name or text(found.get(vocab.EVENT_NAME)),
            at,
            ident(row.get("TraceId")),
            ident(row.get("SpanId")),
            found,
            resource,
            ident(row.get("ParentSpanId")),
            at + whole(row.get("Duration")),
            text(row.get("ScopeName")),
            text(row.get("ScopeVersion")),
        )
