"""Own evidence as a record: transcripts, cassettes, HAR files and flows, replayed through the core.

Each exchange becomes the span and the log events it would have left, had it been observed. A span's
id is the number of its exchange, from 1, so that what triage says can be found in the file. Where
the recording tells times the spans have them, else 0, which reads as not told.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind

from otel_sealed.cli import note
from otel_sealed.cli.demo import quiet
from otel_sealed.contract import Exchange
from otel_sealed.errors import SealedError
from otel_sealed.evidence import looks_like, reading
from otel_sealed.instrument.span import place
from otel_sealed.providers import dialects
from otel_sealed.providers.vendors import resolve
from otel_sealed.telemetry.emit import About, Emitter, Providers
from otel_sealed.telemetry.settings import Settings
from otel_sealed.tracker import Tracker
from otel_sealed.wire.parse import as_text

_MANY: Final = 100_000
_TIMES: Final = ("timeUnixNano", "observedTimeUnixNano")


def replayed(path: str, key: bytes, cut: list[SealedError]) -> io.BytesIO:
    """The OTLP JSON lines that the calls of a file would have left; digests are made with `key`.

    What cannot be read further on goes into `cut`; what came before counts.

    Raises:
        SealedError: Nothing of it could be read.
    """
    replay = _Replay(path, key)
    count = 0
    try:
        with quiet(), reading(path) as source:
            for exchange in source.exchanges:
                number = exchange.number or 0
                replay.observe(exchange, number, source.times.get(number, 0))
                count += 1
            if told := source.passed.line():
                note(f"{path}{told}")
    except SealedError as error:
        if not count:
            raise
        cut.append(error)
    return io.BytesIO("".join(replay.lines()).encode())


class _Numbered(IdGenerator):
    """Ids that are the number of the exchange; in that of the trace the file is in front of it."""

    def __init__(self, path: str) -> None:
        self.number = 1
        digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).digest()
        self._file = int.from_bytes(digest[:8]) << 64

    def generate_span_id(self) -> int:
        return self.number

    def generate_trace_id(self) -> int:
        return self._file + self.number


class _Replay:
    """One core and one emitter, writing into memory."""

    def __init__(self, path: str, key: bytes) -> None:
        self._spans, self._logs = io.StringIO(), io.StringIO()
        self._ids = _Numbered(path)
        self._times: dict[str, int] = {}
        resource = Resource({})
        tracer = TracerProvider(
            resource=resource, sampler=ALWAYS_ON, id_generator=self._ids, shutdown_on_exit=False
        )
        tracer.add_span_processor(SimpleSpanProcessor(FileSpanExporter(stream=self._spans)))
        logger = LoggerProvider(resource=resource, shutdown_on_exit=False)
        exporter = FileLogExporter(stream=self._logs)
        logger.add_log_record_processor(SimpleLogRecordProcessor(exporter))
        self._tracker = Tracker(key, settles=False, absent=sys.maxsize)
        self._emitter = Emitter(
            Settings(events_per_hour=_MANY),
            key=key,
            providers=Providers(tracer, NoOpMeterProvider(), logger),
            about=About(),
            clock=lambda: 0.0,
        )

    def observe(self, exchange: Exchange, number: int, at: int) -> None:
        """One call, as it would have been seen."""
        self._ids.number = number + 1
        self._times[f"{number + 1:016x}"] = at
        dialect = dialects().get(exchange.api)
        own = dialect.vendor if dialect else ""
        host, model = exchange.host or "", _model(exchange)
        vendor, _ = resolve(exchange.provider, host, model, own)
        start = self._emitter.start_attributes(
            operation="chat", provider=vendor, model=model, host=host
        )
        span = self._emitter.tracer.start_span(
            "chat", kind=SpanKind.CLIENT, attributes=start, start_time=at
        )
        report = self._tracker.observe(replace(exchange, origin=place(span)))
        self._emitter.emit(report, span, owned=True)
        span.end(end_time=at)

    def lines(self) -> Iterator[str]:
        """Spans and log events, these with the times of their spans."""
        yield self._spans.getvalue()
        for line in self._logs.getvalue().splitlines():
            logs = json.loads(line)
            for record in _records(logs):
                at = self._times.get(as_text(record.get("spanId")), 0)
                record.update(dict.fromkeys(_TIMES, str(at)))
            yield json.dumps(logs) + "\n"


def _model(exchange: Exchange) -> str:
    body = exchange.request
    return exchange.model or as_text(body.get("model") if isinstance(body, dict) else "")


def _records(logs: Any) -> Iterator[dict[str, Any]]:
    for resource in logs.get("resourceLogs", ()):
        for scope in resource.get("scopeLogs", ()):
            yield from cast("list[dict[str, Any]]", scope.get("logRecords", []))


def key_of(paths: Iterable[str]) -> bytes:
    """A key that these files alone give: the same in every run, and of no use without them."""
    digest = hashlib.sha256()
    for path in paths:
        with Path(path).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.digest()


def is_evidence(path: str) -> bool:
    """Whether a file is own evidence and no record; never a pipe, which cannot be read twice."""
    try:
        return Path(path).is_file() and looks_like(path)
    except SealedError:
        return False  # read as a record, it is named as what it is
