"""Reading what a folder holds: OTLP JSON lines, ours or a Collector's, as plain values.

Tolerant, since a file may be cut, torn or of another program: what cannot be read is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel_sealed import vocab
from otel_sealed.errors import SealedError
from otel_sealed.wire.parse import as_text

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One span, log event or data point: its name, attributes, service, and when, in ns."""

    kind: str
    name: str
    attributes: Json
    service: str
    at: int


@dataclass(frozen=True, slots=True)
class Loss:
    """One finding that degrades or breaks, as far as a record says."""

    artifact: str
    fate: str
    verdict: str
    rule: str
    provider: str
    model: str
    service: str
    known: bool
    at: int


def files_in(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    """The files among the paths, and the `.jsonl` files of the folders among them.

    Raises:
        SealedError: A path is neither.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(path.glob("*.jsonl"))
        elif path.is_file():
            found.append(path)
        else:
            raise SealedError("no such file or folder", where=str(path))
    return tuple(dict.fromkeys(found))


def records(files: Iterable[Path]) -> Iterator[Record]:
    """Every record of the files, in their order."""
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                with suppress(ValueError, RecursionError):
                    yield from _of_line(json.loads(line))


def calls(found: Iterable[Record]) -> Iterator[Record]:
    """The spans we wrote on."""
    return (r for r in found if r.kind == "span" and vocab.CARRY in r.attributes)


def losses(found: Iterable[Record]) -> Iterator[Loss]:
    """What degrades or breaks, from spans, log events and metrics alike: each says it its way."""
    for record in found:
        if record.kind == "span":
            yield from _of_span(record)
        elif record.name in (vocab.VIOLATION.name, vocab.CHECKS.name):
            loss = _of_labels(record)
            if loss.verdict in _VIOLATING:
                yield loss


# ------------------------------------------------------------------------------------- losses

_VIOLATING = ("degrades", "breaks")


def _of_labels(record: Record) -> Loss:
    a = record.attributes
    return Loss(
        artifact=as_text(a.get(vocab.ARTIFACT)),
        fate=as_text(a.get(vocab.FATE)),
        verdict=as_text(a.get(vocab.VERDICT)),
        rule=as_text(a.get(vocab.RULE)),
        provider=as_text(a.get(vocab.PROVIDER)),
        model=as_text(a.get(vocab.REQUEST_MODEL)),
        service=record.service,
        known=False,
        at=record.at,
    )


def _of_span(record: Record) -> Iterator[Loss]:
    a = record.attributes
    artifacts = _texts(a.get(vocab.RETURNED_ARTIFACTS))
    columns = [
        _texts(a.get(name)) or [""] * len(artifacts)
        for name in (vocab.RETURNED_FATES, vocab.RETURNED_VERDICTS, vocab.RETURNED_RULES)
    ]
    for artifact, fate, verdict, rule in zip(artifacts, *columns, strict=False):
        if verdict in _VIOLATING:
            yield Loss(
                artifact=artifact,
                fate=fate,
                verdict=verdict,
                rule=rule,
                provider=as_text(a.get(vocab.PROVIDER)),
                model=as_text(a.get(vocab.REQUEST_MODEL)),
                service=record.service,
                known=a.get(vocab.KNOWN) is True,
                at=record.at,
            )


def _texts(value: Any) -> list[str]:
    return [as_text(item) for item in value] if isinstance(value, list) else []


# --------------------------------------------------------------------------------------- OTLP


def _of_line(line: Any) -> Iterator[Record]:
    for resource, scope in _scopes(line, "resourceSpans", "scopeSpans"):
        for span in _objects(scope.get("spans")):
            at = _int(span.get("startTimeUnixNano"))
            yield _record("span", span.get("name"), span, resource, at)
    for resource, scope in _scopes(line, "resourceLogs", "scopeLogs"):
        for log in _objects(scope.get("logRecords")):
            at = _int(log.get("timeUnixNano")) or _int(log.get("observedTimeUnixNano"))
            name = log.get("eventName") or plain(log).get(vocab.EVENT_NAME)
            yield _record("event", name, log, resource, at)
    for resource, scope in _scopes(line, "resourceMetrics", "scopeMetrics"):
        for metric in _objects(scope.get("metrics")):
            data = next((metric[kind] for kind in ("sum", "gauge") if kind in metric), None)
            for point in _objects(data.get("dataPoints")) if isinstance(data, dict) else ():
                at = _int(point.get("timeUnixNano"))
                yield _record("point", metric.get("name"), point, resource, at)


def _record(kind: str, name: Any, holder: Json, resource: Json, at: int) -> Record:
    service = as_text(plain(resource).get("service.name"))
    return Record(kind, as_text(name), plain(holder), service, at)


def _scopes(line: Any, outer: str, inner: str) -> Iterator[tuple[Json, Json]]:
    for resource in _objects(line.get(outer)) if isinstance(line, dict) else ():
        about = resource.get("resource")
        for scope in _objects(resource.get(inner)):
            yield about if isinstance(about, dict) else {}, scope


def plain(holder: Json) -> Json:
    """The attributes of an OTLP object as a dict."""
    return {
        str(item.get("key")): _value(item.get("value"))
        for item in _objects(holder.get("attributes"))
    }


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    if "intValue" in value:
        return _int(value["intValue"])
    if "arrayValue" in value:
        return [_value(item) for item in _objects((value["arrayValue"] or {}).get("values"))]
    return next((value[k] for k in ("stringValue", "boolValue", "doubleValue") if k in value), None)


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _int(value: Any) -> int:
    """64-bit numbers are strings in OTLP JSON."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
