"""Reports built by hand, and the real SDK with everything kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs import export as log_export
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from otel_sealed.model import (
    Carry,
    Facts,
    Fate,
    Finding,
    Origin,
    ProviderVerdict,
    Receipt,
    Report,
    Verdict,
)
from otel_sealed.telemetry.emit import About, Emitter, Providers
from otel_sealed.telemetry.settings import Settings

KEY = bytes(range(32))
SEAL = "anthropic.thinking.signature"
TEXT = "anthropic.thinking.text"
CONVERSATION = b"\x11" * 16
LOG_EXPORTER: Any = getattr(
    log_export, "InMemoryLogRecordExporter", getattr(log_export, "InMemoryLogExporter", None)
)


def digest(number: int) -> bytes:
    return number.to_bytes(16)


def finding(fate: Fate = Fate.INTACT, verdict: Verdict = Verdict.OK, **given: Any) -> Finding:
    """A finding of a seal; `given` overrides."""
    values: dict[str, Any] = {
        "artifact": SEAL,
        "fate": fate,
        "verdict": verdict,
        "received": Origin(exchange=0, path="content.0", span=bytes(range(24))),
        "returned": None if fate is Fate.DROPPED else "messages.1.content.0",
        "digest_in": digest(1),
        "digest_out": b"" if fate is Fate.DROPPED else digest(2 if fate is Fate.MODIFIED else 1),
        "size_in": 100,
        "size_out": None if fate is Fate.DROPPED else 100,
    }
    return Finding(**{**values, **given})


def report(*findings: Finding, **given: Any) -> Report:
    """A report on an anthropic call with these findings; `given` overrides."""
    worst = max((f.verdict for f in findings), key=lambda v: v.rank, default=None)
    rest = [f for f in findings if not f.first and f.verdict is Verdict.OK]
    values: dict[str, Any] = {
        "rest_count": len(rest),
        "rest_digest": sha256(b"".join(f.digest_out for f in rest)).digest(),
        "facts": Facts(dialect="anthropic", vendor="anthropic", model="claude-opus-5"),
        "findings": findings,
        "verdict": worst,
        "provider_verdict": ProviderVerdict.ACCEPTED,
        "carry": Carry.REPLAYED if findings else Carry.NONE,
        "conversation": CONVERSATION,
        "expected": len(findings),
        "excused": sum(not f.digest_out and not f.verdict.violates for f in findings),
        "returned": sum(f.returned is not None for f in findings),
    }
    return Report(**{**values, **given})


def received(*numbers: int, **given: Any) -> Report:
    """A report on a call that only brought seals with these digests."""
    receipts = tuple(Receipt(SEAL, digest(n), 100, f"content.{n}") for n in numbers)
    return report(received=receipts, **given)


@dataclass
class Bench:
    """A whole SDK in memory, an emitter on it, and a clock to turn."""

    sampler: Sampler = ALWAYS_ON
    limits: SpanLimits | None = None
    settings: Settings = field(default_factory=Settings)
    with_processor: bool = False
    callbacks: Sequence[Callable[[Any], None]] = ()
    now: float = 0.0

    def __post_init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.logs = LOG_EXPORTER()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider(sampler=self.sampler, span_limits=self.limits)
        self.loggers = LoggerProvider()
        self.loggers.add_log_record_processor(log_export.SimpleLogRecordProcessor(self.logs))
        self.meters = MeterProvider([self.reader])
        self.entries = 7
        self.emitter = Emitter(
            self.settings,
            key=KEY,
            providers=Providers(self.tracers, self.meters, self.loggers),
            about=About("1.0", "2026.11", {"anthropic": "2.14.0"}),
            clock=lambda: self.now,
            ledger_entries=lambda: self.entries,
            callbacks=self.callbacks,
            strict=True,
        )
        if self.with_processor:
            self.tracers.add_span_processor(self.emitter.processor())
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))

    def call(
        self, given: Report, *, owned: bool = True, check_s: float = 0.002, **more: Any
    ) -> dict[str, Any]:
        """One call of ours (or on another's span); its span's attributes, {} if unsampled."""
        span = self.emitter.tracer.start_span("chat")
        self.emitter.emit(given, span, owned=owned, check_s=check_s, **more)
        span.end()
        ended = self.spans.get_finished_spans()
        return dict(ended[-1].attributes or {}) if ended else {}

    @property
    def last(self) -> ReadableSpan:
        return self.spans.get_finished_spans()[-1]

    def events(self, name: str = "otel_sealed.violation") -> list[Any]:
        """Log records of an event so far."""
        records = [item.log_record for item in self.logs.get_finished_logs()]
        return [record for record in records if record.event_name == name]

    def points(self, name: str) -> list[Any]:
        """Data points of a metric."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def sums(self, name: str) -> dict[tuple[str, ...], float]:
        """Values of a counter by its attribute values, in the order of their names."""
        return {
            tuple(str(point.attributes[key]) for key in sorted(point.attributes)): point.value
            for point in self.points(name)
        }
