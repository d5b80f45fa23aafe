"""The folder `.otel-sealed`: telemetry of a local run as OTLP JSON lines, for its owner alone.

The folder ignores itself in git. Files have mode 0600, one for each signal and process, several
where they grow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

from opentelemetry.exporter.otlp.json.file import FileMetricExporter, FileSpanExporter
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from otel_sealed import vocab
from otel_sealed.cli.lines import SIGNALS, Lines, Store, open_private, prepare
from otel_sealed.errors import SealedError
from otel_sealed.instrument.guard import shield
from otel_sealed.triage.sums import failed

NAME: Final = ".otel-sealed"


@dataclass(frozen=True, slots=True)
class Recording:
    """Providers that write into the folder, and the files they write. Nothing global is set.

    `folder` is where; its key is what digests are to be made with.
    """

    tracer: TracerProvider
    meter: MeterProvider
    logger: LoggerProvider
    files: tuple[Path, ...]
    folder: Path


@contextmanager
def recording(service: str, parent: Path | None = None) -> Iterator[Recording]:
    """Record into `.otel-sealed` under `parent` (the working directory) until the block ends.

    Raises:
        SealedError: The folder or a file in it cannot be made.
    """
    folder = (parent or Path()) / NAME
    with ExitStack() as stack:
        try:
            prepare(folder)
            files = tuple(folder / f"{signal}-{os.getpid()}.jsonl" for signal in SIGNALS)
            traces, metrics, logs = (stack.enter_context(_private(file)) for file in files)
        except OSError as error:
            raise SealedError(
                error.strerror or "cannot be written",
                where=str(folder),
                remedy="run it where you may write",
            ) from None
        made = _providers(Resource.create({"service.name": service}), traces, metrics, logs)
        try:
            yield Recording(*made, files, folder)
        finally:
            made[1].force_flush()
            for provider in made:
                provider.shutdown()


@dataclass(frozen=True, slots=True)
class Lasting:
    """Providers that write into the folder as long as the process lives.

    `ours` is for the provider of the application itself.
    """

    tracer: TracerProvider
    meter: MeterProvider
    logger: LoggerProvider
    ours: SpanProcessor


def lasting(store: Store, run: str) -> Lasting:
    """Record into `store`; nothing that the disk says comes out, and nothing global is set.

    Spans and log events are written as they end, so that a process that is killed leaves them;
    metrics once a minute and at the end.
    """
    streams = [cast("IO[str]", Lines(store, f"{signal}-{run}")) for signal in SIGNALS]
    resource = Resource.create()
    spans = SimpleSpanProcessor(FileSpanExporter(stream=streams[0]))
    tracer = TracerProvider(resource=resource, sampler=ALWAYS_ON)
    tracer.add_span_processor(spans)
    reader = PeriodicExportingMetricReader(_OfCalls(stream=streams[1]), 60_000)
    meter = MeterProvider([reader], resource=resource)
    logger = LoggerProvider(resource=resource)
    logger.add_log_record_processor(SimpleLogRecordProcessor(FileLogExporter(stream=streams[2])))
    return Lasting(tracer, meter, logger, OursOnly(spans, resource))


class _OfCalls(FileMetricExporter):
    """Writes nothing for a process that never made a call, observed or not."""

    def export(self, metrics_data: Any, timeout_millis: float = 10_000, **kwargs: Any) -> Any:
        """What the exporter does, once there was a call."""
        called = any(
            metric.name == vocab.CALLS.name
            or (metric.name == vocab.UNOBSERVED.name and _counted(metric))
            for resource in metrics_data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        )
        if not called:
            return MetricExportResult.SUCCESS
        return super().export(metrics_data, timeout_millis, **kwargs)


def _counted(metric: Any) -> bool:
    """Whether anything was: a counter may be there with zeros alone."""
    return any(point.value for point in metric.data.data_points)


class OursOnly(SpanProcessor):
    """Hands on what we wrote on spans of somebody else, and nothing else of them."""

    _KEPT: Final = (vocab.PROVIDER, vocab.REQUEST_MODEL, vocab.OPERATION)

    def __init__(self, sink: SpanProcessor, resource: Resource) -> None:
        """`sink` gets such spans, with `resource` for theirs."""
        self._sink = sink
        self._resource = resource

    def on_end(self, span: ReadableSpan) -> None:
        """Look at one span. Nothing comes out: it would hit whoever ends the span."""
        with shield("folder.on_end"):
            attributes = span.attributes or {}
            if vocab.CARRY in attributes:
                self._sink.on_end(self._stripped(span, attributes))

    def _stripped(self, span: ReadableSpan, attributes: Mapping[str, Any]) -> ReadableSpan:
        kept = {k: v for k, v in attributes.items() if k.startswith(f"{vocab.SCOPE}.")}
        kept |= {k: vocab.model_name(attributes[k]) for k in self._KEPT if k in attributes}
        if error := failed(attributes):
            kept[vocab.ERROR_TYPE] = error
        words = (kept.get(vocab.OPERATION, "call"), kept.get(vocab.REQUEST_MODEL, ""))
        return ReadableSpan(
            name=" ".join(words).strip(),
            context=span.get_span_context(),
            parent=span.parent,
            resource=self._resource,
            attributes=kept,
            kind=span.kind,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=InstrumentationScope(vocab.SCOPE),
        )


def _private(path: Path) -> IO[str]:
    return os.fdopen(open_private(path), "a", encoding="utf-8")


def _providers(
    resource: Resource, traces: IO[str], metrics: IO[str], logs: IO[str]
) -> tuple[TracerProvider, MeterProvider, LoggerProvider]:
    tracer = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracer.add_span_processor(SimpleSpanProcessor(FileSpanExporter(stream=traces)))
    # written once, at the end: no thread, no clock
    reader = PeriodicExportingMetricReader(FileMetricExporter(stream=metrics), math.inf)
    meter = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    logger = LoggerProvider(resource=resource, shutdown_on_exit=False)
    logger.add_log_record_processor(SimpleLogRecordProcessor(FileLogExporter(stream=logs)))
    return tracer, meter, logger
