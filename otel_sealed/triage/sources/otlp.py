"""OTLP JSON, as files of ours and of the Collector have it, as Tempo answers, and as Grafana saves.

Source of the shapes: OTLP 1.x file exporter (a `…Data` object a line, hex ids); Tempo's HTTP API
(`batches`, or `trace.resourceSpans` in version 2; ids in base64, 64-bit numbers as text); Grafana's
"download trace" (`batches` of `instrumentationLibrarySpans`, numbers as numbers, trace ids of old
releases cut to 16 digits); Jaeger's API version 3 (`result.resourceSpans`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

from otel_sealed import vocab
from otel_sealed.triage.sources.signal import (
    EVENT,
    RESOURCE,
    SPAN,
    WANTED,
    Json,
    Signal,
    nanoseconds,
    objects,
    text,
    whole,
)

_SPANS: Final = ("resourceSpans", "batches")
_WRAPPERS: Final = ("trace", "result")
_HEX: Final = re.compile(r"\A[0-9a-fA-F]+\Z")
_DIGITS: Final = 20
_HEX_SIZES: Final = (32, 16)
_KEYS: Final = frozenset({*_SPANS, "resourceLogs", "resourceMetrics"})


def takes(value: Any) -> bool:
    """Whether this is OTLP in any of its wrappings."""
    return isinstance(value, dict) and (
        not _KEYS.isdisjoint(value)
        or any(
            isinstance(value.get(name), dict) and not _KEYS.isdisjoint(value[name])
            for name in _WRAPPERS
        )
    )


def signals(value: Any) -> Iterator[Signal]:
    """The spans and log events in it; metrics have nothing to tell of a single call."""
    for name in _WRAPPERS:
        if isinstance(value.get(name), dict):
            value = value[name]
    for name in _SPANS:
        for resource in objects(value.get(name)):
            yield from _spans(resource)
    for resource in objects(value.get("resourceLogs")):
        about = attributes(resource.get("resource"), RESOURCE)
        for scope in objects(resource.get("scopeLogs")):
            named = _scope(scope)
            for log in objects(scope.get("logRecords")):
                yield _log(log, about, named)


def _spans(resource: Json) -> Iterator[Signal]:
    about = attributes(resource.get("resource"), RESOURCE)
    for key in ("scopeSpans", "instrumentationLibrarySpans"):
        for scope in objects(resource.get(key)):
            name, version = _scope(scope)
            for span in objects(scope.get("spans")):
                yield Signal(
                    SPAN,
                    text(span.get("name")),
                    nanoseconds(span.get("startTimeUnixNano")),
                    ident(span.get("traceId")),
                    ident(span.get("spanId")),
                    attributes(span),
                    about,
                    ident(span.get("parentSpanId")),
                    nanoseconds(span.get("endTimeUnixNano")),
                    name,
                    version,
                )


def _log(log: Json, about: Json, scope: tuple[str, str]) -> Signal:
    found = attributes(log)
    at = nanoseconds(log.get("timeUnixNano")) or nanoseconds(log.get("observedTimeUnixNano"))
    name = text(log.get("eventName")) or text(found.get(vocab.EVENT_NAME))
    trace, span = ident(log.get("traceId")), ident(log.get("spanId"))
    return Signal(EVENT, name, at, trace, span, found, about, "", at, *scope)


def _scope(scope: Json) -> tuple[str, str]:
    for key in ("scope", "instrumentationLibrary"):
        found = scope.get(key)
        if isinstance(found, dict):
            return text(found.get("name")), text(found.get("version"))
    return "", ""


def ident(value: Any) -> str:
    """A trace or span id in lower hex, from hex or from the base64 of protobuf JSON; else empty."""
    found = text(value)
    if len(found) in _HEX_SIZES and _HEX.match(found):
        return found.lower()
    if not 8 <= len(found) <= 24:  # noqa: PLR2004 - 8 or 16 bytes in base64
        return ""
    try:
        raw = base64.b64decode(found + "=" * (-len(found) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) in (8, 16) else ""


def attributes(holder: Any, wanted: frozenset[str] = WANTED) -> Json:
    """The attributes of an OTLP object that the vocabulary knows."""
    found: Json = {}
    listed = holder.get("attributes") if isinstance(holder, dict) else None
    for item in listed if isinstance(listed, list) else ():
        try:
            key = item["key"]
            if key in wanted:
                found[key] = _value(item["value"])
        except (KeyError, TypeError):
            continue
    return found


def _value(value: Any) -> Any:
    if "stringValue" in value:
        return value["stringValue"]
    if "intValue" in value:
        return whole(value["intValue"])
    if "arrayValue" in value:
        return _array(value["arrayValue"])
    return next((value[k] for k in ("boolValue", "doubleValue") if k in value), None)


def _array(value: Any) -> list[Any]:
    items = value.get("values") if isinstance(value, dict) else None
    if not isinstance(items, list):
        return []
    try:  # an array is of one kind: texts, or numbers that fit a store
        if items and "intValue" in items[0]:
            return [int(item["intValue"][:_DIGITS]) for item in items]
        return [item["stringValue"] for item in items]
    except (KeyError, TypeError, ValueError):
        return [_value(item) if isinstance(item, dict) else None for item in items]
