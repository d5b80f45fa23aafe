"""Jaeger JSON: what its query API and the "Trace JSON" of its page hand out.

`{"data": [{"traceID", "spans": [{"traceID", "spanID", "startTime", "duration", "tags", …}],
"processes"}]}`. Times are microseconds; arrays stand as JSON text in tags of type `string`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from otel_sealed.triage.sources.otlp import ident
from otel_sealed.triage.sources.signal import (
    RESOURCE,
    SPAN,
    Json,
    Signal,
    objects,
    text,
    typed,
    whole,
)

_SCOPE: Final = ("otel.scope.name", "otel.library.name")
_VERSION: Final = ("otel.scope.version", "otel.library.version")
_MICROSECOND: Final = 1000


def takes(value: Any) -> bool:
    """Whether this is an answer of the API, or one trace of it."""
    return isinstance(value, dict) and (
        _is_trace(value) or any(map(_is_trace, objects(value.get("data"))))
    )


def _is_trace(value: Json) -> bool:
    return "spans" in value and ("processes" in value or "traceID" in value)


def signals(value: Any) -> Iterator[Signal]:
    """The spans in it."""
    for trace in [value] if _is_trace(value) else objects(value.get("data")):
        processes = trace.get("processes")
        for span in objects(trace.get("spans")):
            name = text(span.get("processID"))
            process = processes.get(name) if isinstance(processes, dict) else span.get("process")
            yield _span(span, process if isinstance(process, dict) else {})


def _span(span: Json, process: Json) -> Signal:
    tags = dict(_pairs(span.get("tags")))
    resource = typed(_pairs(process.get("tags")), RESOURCE)
    resource.setdefault("service.name", text(process.get("serviceName")))
    at = whole(span.get("startTime")) * _MICROSECOND
    parents = (ident(r.get("spanID")) for r in objects(span.get("references")))
    return Signal(
        SPAN,
        text(span.get("operationName")),
        at,
        ident(text(span.get("traceID")).rjust(32, "0")),
        ident(text(span.get("spanID")).rjust(16, "0")),
        typed(tags.items()),
        resource,
        next(parents, "") or ident(span.get("parentSpanID")),
        at + whole(span.get("duration")) * _MICROSECOND,
        next((text(tags[key]) for key in _SCOPE if key in tags), ""),
        next((text(tags[key]) for key in _VERSION if key in tags), ""),
    )


def _pairs(tags: Any) -> Iterator[tuple[str, Any]]:
    for tag in objects(tags):
        yield text(tag.get("key")), tag.get("value")
