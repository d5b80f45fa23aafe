"""Where traffic goes: a scrape endpoint for Prometheus, an OTLP receiver, or both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_sealed.cli.exporters import configured, targets
from otel_sealed.errors import SealedError

SERVICE: Final = "otel-sealed-demo"
_LOOPBACK: Final = "127.0.0.1"
_INTERVAL_MS: Final = 10_000
_SIGNALS: Final = {
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}


@dataclass(frozen=True, slots=True)
class Outlets:
    """Providers, and in words where they lead. Nothing global is set."""

    tracer: TracerProvider
    meter: MeterProvider
    logger: LoggerProvider
    where: str


@contextmanager
def outlets(*, scrape: int | None, otlp: str) -> Iterator[Outlets]:
    """Providers until the block ends; then everything is flushed and the port is free again.

    Args:
        scrape: Port of the loopback for Prometheus, 0 for any; None for none.
        otlp: Base URL of a receiver over HTTP; empty for what the environment says.

    Raises:
        ModuleNotFoundError: The extra `prometheus` is not installed.
        SealedError: The port is taken.
    """
    with ExitStack() as stack:
        readers: list[MetricReader] = []
        where: list[str] = []
        if scrape is not None:
            reader, url = stack.enter_context(_scraped(scrape))
            readers.append(reader)
            where.append(f"Metrics for Prometheus at {url}")
        exporters = _exporters(otlp)
        if exporters:
            if "metrics" in exporters:
                readers.append(_periodic(exporters["metrics"]))
            where.append(f"OTLP to {otlp or 'where the environment says'}")
        made = _providers(readers, exporters)
        try:
            yield Outlets(*made, "; ".join(where))
        finally:
            for provider in made:
                provider.shutdown()


@contextmanager
def _scraped(port: int) -> Iterator[tuple[MetricReader, str]]:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    reader = PrometheusMetricReader(registry=registry)
    try:
        server, thread = start_http_server(port, _LOOPBACK, registry)
    except OSError as error:
        raise SealedError(
            error.strerror or "cannot be listened on",
            where=f"{_LOOPBACK}:{port}",
            remedy="--scrape 0 takes any free port",
        ) from None
    try:
        yield reader, f"http://{_LOOPBACK}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _exporters(otlp: str) -> dict[str, Any]:
    """One exporter a signal, over the protocol that is asked for; none if nothing is configured."""
    if otlp:
        base = otlp.rstrip("/")
        return {s: _exporter(s, "http")(endpoint=f"{base}/v1/{s}") for s in _SIGNALS}
    if not configured(os.environ):
        return {}
    found = {target.signal: target.protocol for target in targets(os.environ)}
    return {s: _exporter(s, found[s])() for s in _SIGNALS if s in found}


def _exporter(signal: str, protocol: str) -> Any:
    module, name = _SIGNALS[signal]
    kind = "grpc" if protocol == "grpc" else "http"
    return getattr(import_module(f"opentelemetry.exporter.otlp.proto.{kind}.{module}"), name)


def _periodic(exporter: Any) -> MetricReader:
    given = os.environ.get("OTEL_METRIC_EXPORT_INTERVAL")
    return PeriodicExportingMetricReader(exporter, None if given else _INTERVAL_MS)


def _providers(
    readers: list[MetricReader], exporters: dict[str, Any]
) -> tuple[TracerProvider, MeterProvider, LoggerProvider]:
    service = os.environ.get("OTEL_SERVICE_NAME") or SERVICE
    resource = Resource.create({"service.name": service})
    tracer = TracerProvider(resource=resource, shutdown_on_exit=False)
    meter = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    logger = LoggerProvider(resource=resource, shutdown_on_exit=False)
    if "traces" in exporters:
        tracer.add_span_processor(BatchSpanProcessor(exporters["traces"]))
    if "logs" in exporters:
        logger.add_log_record_processor(BatchLogRecordProcessor(exporters["logs"]))
    return tracer, meter, logger
