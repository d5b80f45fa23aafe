"""A report of the core becomes span attributes, metrics, log events and alerts.

The names are in docs/attributes.md.

The parts are independent: a fault in one is counted and leaves the others. Metrics and alerts do
not depend on the span: an unsampled call counts and alarms like any other.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from otel_sealed import vocab
from otel_sealed.model import ProviderVerdict
from otel_sealed.telemetry import attributes as shapes
from otel_sealed.telemetry import lines, names
from otel_sealed.telemetry.alerts import Alert, AlertRoom
from otel_sealed.telemetry.conventions import conventional, refusal, started
from otel_sealed.telemetry.events import EventLog, all_known
from otel_sealed.telemetry.fit import fit, limit_of
from otel_sealed.telemetry.known import read
from otel_sealed.telemetry.metrics import Gauges, Metrics
from otel_sealed.telemetry.noise import Noise
from otel_sealed.telemetry.planned import Plans
from otel_sealed.telemetry.processor import SealedSpanProcessor, service_of
from otel_sealed.telemetry.settings import key_id_of
from otel_sealed.telemetry.shield import Shield

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from otel_sealed.model import Finding, Report
    from otel_sealed.telemetry.alerts import Callback
    from otel_sealed.telemetry.attributes import Row
    from otel_sealed.telemetry.leaks import Leak
    from otel_sealed.telemetry.planned import Plan
    from otel_sealed.telemetry.settings import Settings

_ORIGIN_BYTES: Final = 24
_TRACE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Providers:
    """Where telemetry goes; None is the global provider, also one that is set later."""

    tracer: TracerProvider | None = None
    meter: MeterProvider | None = None
    logger: LoggerProvider | None = None


@dataclass(frozen=True, slots=True)
class About:
    """What telemetry says about who made it: our version, that of the rules, the SDKs watched."""

    version: str = ""
    rules_version: str = ""
    sdk_versions: Mapping[str, str] = field(default_factory=dict)


class Watch(Protocol):
    """Decides whether calls are observed at all, and wants to know of our faults."""

    def word(self) -> str:
        """The state the process is in, as `vocab.STATES` has it."""

    def fault(self) -> None:
        """One internal error was counted."""


class _Idle:
    """Nobody watches."""

    def word(self) -> str:
        return vocab.ACTIVE

    def fault(self) -> None:
        """Nothing."""


class Emitter:
    """All emission of a process. Every method may be called from any thread, none raises."""

    def __init__(
        self,
        settings: Settings,
        *,
        key: bytes,
        providers: Providers | None = None,
        about: About | None = None,
        clock: Callable[[], float] = time.monotonic,
        ledger_entries: Callable[[], int] | None = None,
        callbacks: Iterable[Callback] = (),
        strict: bool = False,
    ) -> None:
        """`key` keys the digests of the reports; `ledger_entries` counts what the ledger holds.

        `strict` re-raises our own faults, as tests want it.
        """
        providers, about = providers or Providers(), about or About()
        version = about.version
        self._settings = settings
        self._rekey = shapes.rekey_with(key)
        self._key_id = settings.key_id or key_id_of(key)
        self._rules_version = about.rules_version
        self._tracer_provider = providers.tracer
        self.tracer: Tracer = trace.get_tracer(vocab.SCOPE, version, providers.tracer)
        self.watch: Watch = _Idle()
        self._collected: Callable[[], object] = lambda: None
        self._seams: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.evicted: Callable[[], int] = lambda: 0
        self._metrics = Metrics(
            providers.meter,
            version=version,
            gauges=Gauges(
                entries=ledger_entries,
                evicted=self._evicted,
                state=self._state,
                seams=self._count_seams,
            ),
        )
        self._shield = Shield(self._fault, strict=strict)
        self._events = EventLog(
            providers.logger,
            version=version,
            sdk_versions=about.sdk_versions,
            clock=clock,
            events_per_hour=settings.events_per_hour,
        )
        self.room = AlertRoom(
            self._shield,
            clock=clock,
            sinks=(self._events.violation,),
            callbacks=callbacks,
            events_per_hour=settings.events_per_hour,
            known=read(settings.known),
        )
        self._plans = Plans(
            self._metrics, self._rekey, key_id=self._key_id, rules_version=self._rules_version
        )
        self._noise = Noise()
        self._unobserved: set[tuple[str, str]] = set()
        self._strict = strict

    def processor(self) -> SealedSpanProcessor:
        """A span processor that feeds the same alert room."""
        return SealedSpanProcessor(self.room, on_error=self._fault, strict=self._strict)

    def instrumented(self, provider: str) -> None:
        """A provider's SDK is patched: its violation series start at 0."""
        name = names.provider_name(provider)
        self._shield.run("emit.prime", self._metrics.prime, name)

    def internal_error(self, where: str, kind: str) -> None:
        """Count a fault of ours: `where` in our words, `kind` the class of the exception."""
        self._shield.run("emit.error", self._fault, where, kind)

    def store_error(self, kind: str) -> None:
        """Count a fault of a shared ledger's store. It puts nothing to rest but that store."""
        self._shield.run("emit.error", self._metrics.internal_error, "ledger", kind)

    def on_collect(self, work: Callable[[], object]) -> None:
        """Do `work` whenever metrics are collected: a safe point off the way of every call."""
        self._collected = work

    def on_seams(self, count: Callable[[], tuple[int, int]]) -> None:
        """Ask `count` at each collection how many seams are wrapped, and how many are missing."""
        self._seams = count

    def _count_seams(self) -> tuple[int, int]:
        return self._seams()

    def _evicted(self) -> int:
        return self.evicted()

    def _state(self) -> str:
        self._shield.run("emit.collect", self._collected)
        self._shield.run("emit.collect", self._metrics.flush)
        return self.watch.word()

    def _fault(self, where: str, kind: str) -> None:
        self.watch.fault()
        self._metrics.internal_error(where, kind)

    def noticing(self, client: str) -> None:
        """Requests of an HTTP client are noticed from now on: its series starts at 0."""
        self._shield.run("emit.prime", self._metrics.noticing, client)

    def unobserved(self, client: str, host: str, *, suppressed: bool) -> None:
        """A request with turns of a model passed unobserved; a line for each client and host."""
        shown = self._shield.run("emit.unobserved", self._metrics.unobserved, client, host)
        if shown is None or (client, shown) in self._unobserved:
            return
        self._unobserved.add((client, shown))
        said = lines.unobserved(client, shown, suppressed=suppressed)
        self._shield.run("emit.unobserved", lines.write, logging.WARNING, said, {})

    def leak(self, place: str, count: int = 1) -> None:
        """Count sealed values that were taken out of telemetry."""
        self._shield.run("emit.leak", self._metrics.leak, place, count)

    def leaked(self, leak: Leak) -> None:
        """A sealed value stands in a span: count it, and tell in an event and in a line."""
        self._shield.run("emit.leak", self._metrics.leak, "span")
        self._shield.run("emit.leak", self._events.leak, leak)

    def start_attributes(
        self, *, operation: str, provider: str, model: str, host: str, port: int | None = None
    ) -> dict[str, Any]:
        """What a sampler should see: the attributes a span of our own is created with."""
        found = self._shield.run("emit.start", started, operation, provider, model, host, port)
        return dict(found or {})

    def emit(
        self,
        report: Report,
        span: Span | None,
        *,
        owned: bool,
        check_s: float = 0.0,
        error_type: str | None = None,
    ) -> None:
        """Tell all of one call. `span` is ours (`owned`) or somebody's, recording or not.

        `check_s`: seconds it took to read and judge the exchange. `error_type` is the error of the
        call itself, for a span of our own.
        """
        written = span if span is not None and span.is_recording() else None
        plan = None
        if not (owned and error_type):
            plan = self._shield.run("emit.plan", self._plans.plan, report, span if owned else None)
        if plan is not None:
            if written is not None:
                self._shield.run("emit.span", self._fill, plan, report, written, owned)
            count = self._metrics.count
            self._shield.run("emit.metrics", count, plan.counted, report, check_s, span)
            self._shield.run("emit.noise", self._noise.call, ())
            return
        context = None if span is None else trace.set_span_in_context(span)
        rows = self._shield.run("emit.rows", shapes.rows_of, report, self._rekey)
        if rows is None:
            return
        provider = names.provider_of(report.facts)
        known = self._shield.run("emit.known", self._known, report, rows, provider) or ()
        if written is not None:
            self._shield.run(
                "emit.span", self._write, report, rows, known, written, owned, error_type
            )
        self._shield.run(
            "emit.metrics",
            self._metrics.call,
            report,
            provider,
            check_s=check_s,
            context=context,
            known=known,
        )
        self._shield.run("emit.alerts", self._alert, report, rows, provider, context)
        self._shield.run("emit.noise", self._noise.call, report.findings)
        self._shield.run("emit.disagreement", self._disagree, report, provider, known, context)

    def _known(self, report: Report, rows: tuple[Row, ...], provider: str) -> tuple[bool, ...]:
        """Of each finding, whether it is a known loss; empty where there is no list."""
        if not self.room.known:
            return ()
        model, service = vocab.model_name(report.facts.model), self._service()
        return tuple(
            row.verdict.violates
            and self.room.known.covers(row.artifact, row.fate, provider, model, service)
            for row in rows
        )

    def _disagree(
        self, report: Report, provider: str, known: Sequence[bool], context: Context | None
    ) -> None:
        # that a known loss is accepted is known, too; that it is refused is news
        refused = report.provider_verdict is ProviderVerdict.REJECTED
        if refused or not all_known(report, known):
            self._events.disagreement(report, provider, context=context)

    def _service(self) -> str:
        return service_of(self._tracer_provider or trace.get_tracer_provider())

    def _write(
        self,
        report: Report,
        rows: tuple[Row, ...],
        known: Sequence[bool],
        span: Span,
        owned: bool,  # noqa: FBT001 - positional through the shield
        error_type: str | None,
    ) -> None:
        values: dict[str, Any] = shapes.span_attributes(
            report,
            rows,
            rekey=self._rekey,
            key_id=self._key_id,
            rules_version=self._rules_version,
        )
        if all_known(report, known):
            values[vocab.KNOWN] = True
        present = getattr(span, "attributes", None) or {}
        if owned:
            values = conventional(report, present) | values
            error = error_type or refusal(report)
            if error:
                values[vocab.ERROR_TYPE] = error
                span.set_status(StatusCode.ERROR)
        span.set_attributes(fit(values, present, limit=limit_of(span), owned=owned))

    def _fill(
        self,
        plan: Plan,
        report: Report,
        span: Span,
        owned: bool,  # noqa: FBT001 - positional through the shield
    ) -> None:
        values = self._plans.filled(plan, report)
        present = getattr(span, "attributes", None) or {}
        span.set_attributes(fit(values, present, limit=limit_of(span), owned=owned))

    def _alert(
        self, report: Report, rows: tuple[Row, ...], provider: str, context: Context | None
    ) -> None:
        if report.verdict is None or not report.verdict.violates:
            return
        call: dict[str, Any] = {
            "conversation": report.conversation.hex(),
            "provider": provider,
            "model": vocab.model_name(report.facts.model),
            "host": vocab.host_name(report.facts.host),
            "service": self._service(),
            "context": context,
        }
        for finding, row in zip(report.findings, rows, strict=True):
            if finding.verdict.violates:
                self.room.tell(self._alert_of(report, finding, row, call))

    def _alert_of(
        self, report: Report, finding: Finding, row: Row, call: Mapping[str, Any]
    ) -> Alert:
        origin = finding.received
        minted = origin.span if origin and len(origin.span) == _ORIGIN_BYTES else b""
        said = finding.provider_verdict
        if said is ProviderVerdict.UNREPORTED:
            said = report.provider_verdict
        return Alert(
            artifact=row.artifact,
            digest=row.digest,
            fate=finding.fate,
            verdict=finding.verdict,
            rule=row.rule,
            disputed=finding.disputed,
            cause=row.cause,
            diagnosis=_diagnosis(finding) if self._settings.diagnose else "",
            locus=finding.locus.value if finding.locus else "",
            confidence=finding.confidence,
            provider_verdict=said,
            rejection=finding.rejection or report.rejection,
            received_position=vocab.path(origin.path) if origin else "",
            returned_position=vocab.path(finding.returned),
            received_size=finding.size_in,
            returned_size=finding.size_out,
            origin_trace=minted[:_TRACE_BYTES].hex(),
            origin_span=minted[_TRACE_BYTES:].hex(),
            **call,
        )


def _diagnosis(finding: Finding) -> str:
    if finding.cause is None:
        return ""
    return vocab.phrase(f"{finding.cause.value.replace('_', ' ')} {finding.detail}".strip())
