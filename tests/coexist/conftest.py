"""Real packages of other tracers beside us, skipped where not installed (`.ci/run coexist`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_sealed.instrument import guard, uninstrument
from otel_sealed.testing.strict import StrictProvider


class Spans:
    """A tracer provider and what it exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(guard, "STRICT", True)
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY", "false")
    yield
    uninstrument()


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider() as strict_provider:
        yield strict_provider
