"""Log events out of Loki (`query_range`) and out of Grafana's log download.

Loki: `{"data": {"resultType": "streams", "result": [{"stream": labels, "values": [[ns, line]]}]}}`;
attributes of OTLP logs are labels there, dots spelt as underscores, or stand in a third element
`{"structuredMetadata": …}` where labels are told apart. Grafana's "download as JSON" is a list of
`{"line", "timestamp", "fields"}`. All values are text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from otel_sealed import vocab
from otel_sealed.triage.sources.otlp import ident
from otel_sealed.triage.sources.signal import (
    EVENT,
    RESOURCE,
    Json,
    Signal,
    dotted,
    nanoseconds,
    objects,
    text,
    typed,
)

_IDS: Final = (("trace_id", "traceid", "traceID"), ("span_id", "spanid", "spanID"))
_PARTS: Final = ("structuredMetadata", "parsed")


def takes(value: Any) -> bool:
    """Whether this is an answer of Loki's, or a list of log lines that Grafana saved."""
    if isinstance(value, list):
        return any({"line", "timestamp", "fields"} <= item.keys() for item in objects(value))
    data = value.get("data") if isinstance(value, dict) else None
    return isinstance(data, dict) and data.get("resultType") == "streams"


def signals(value: Any) -> Iterator[Signal]:
    """The log events in it."""
    if isinstance(value, list):
        for item in objects(value):
            fields = item.get("fields")
            if isinstance(fields, dict):
                yield _event(nanoseconds(item.get("timestamp")), fields)
        return
    for stream in objects(value["data"].get("result")):
        labels = stream.get("stream")
        values = stream.get("values")
        for entry in values if isinstance(values, list) else ():
            if isinstance(entry, list) and entry:
                yield _event(nanoseconds(entry[0]), {**_dict(labels), **_more(*entry[2:3])})


def _more(extra: Any = None) -> Json:
    """What stands beside a line: flat, or told apart by where it comes from."""
    nested = _dict(extra)
    parts = [_dict(nested[name]) for name in _PARTS if name in nested]
    return {k: v for part in parts for k, v in part.items()} if parts else nested


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _event(at: int, labels: Json) -> Signal:
    named = list(dotted(labels))
    found = typed(named)
    ids = [next((labels[k] for k in keys if k in labels), "") for keys in _IDS]
    scope = (text(labels.get("scope_name")), text(labels.get("scope_version")))
    name = text(found.get(vocab.EVENT_NAME))
    trace, span = map(ident, ids)
    return Signal(EVENT, name, at, trace, span, found, typed(named, RESOURCE), "", at, *scope)
