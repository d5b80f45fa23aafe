"""Reading what a folder holds: OTLP JSON lines, ours or a Collector's, as plain values.

Tolerant, since a file may be cut, torn or of another program: what cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel_sealed import vocab
from otel_sealed.errors import SealedError
from otel_sealed.triage.sources import otlp
from otel_sealed.triage.sources.signal import RESOURCE, Json, objects, whole
from otel_sealed.wire import intake
from otel_sealed.wire.parse import Unread, as_text


@dataclass(frozen=True, slots=True)
class Record:
    """One span, log event or data point: its name, attributes, service, and when, in ns.

    `span` is the id of the span it is, or is of; empty for a data point.
    """

    kind: str
    name: str
    attributes: Json
    service: str
    at: int
    span: str = ""


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
        with path.open("rb") as file:
            for line in intake.lines(file, intake.MAX_LINE):
                with suppress(Unread, RecursionError):
                    yield from _of_line(intake.value_of(line or b""))


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
    if not otlp.takes(line):
        return
    for found in otlp.signals(line):
        service = as_text(found.resource.get("service.name"))
        yield Record(found.kind, found.name, found.attributes, service, found.at, found.span)
    yield from _points(line)


def _points(line: Json) -> Iterator[Record]:
    """The data points of sums and gauges, which triage has no use for."""
    for resource in objects(line.get("resourceMetrics")):
        about = otlp.attributes(resource.get("resource"), RESOURCE)
        service = as_text(about.get("service.name"))
        for scope in objects(resource.get("scopeMetrics")):
            for metric in objects(scope.get("metrics")):
                data = next((metric[kind] for kind in ("sum", "gauge") if kind in metric), None)
                for point in objects(data.get("dataPoints")) if isinstance(data, dict) else ():
                    at, name = whole(point.get("timeUnixNano")), as_text(metric.get("name"))
                    yield Record("point", name, otlp.attributes(point), service, at)
