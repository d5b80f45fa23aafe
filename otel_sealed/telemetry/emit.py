"""A report of the core becomes span attributes, metrics, log events and alerts (design §3).

The parts are independent: a fault in one is counted and leaves the others. Metrics and alerts do
not depend on the span: an unsampled call counts and alarms like any other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from otel_sealed import vocab
from otel_sealed.model import ProviderVerdict
from otel_sealed.telemetry import attributes as shapes
from otel_sealed.telemetry import names
from otel_sealed.telemetry.alerts import Alert, AlertRoom, log_line
from otel_sealed.telemetry.events import EventLog
from otel_sealed.telemetry.metrics import Metrics
from otel_sealed.telemetry.processor import SealedSpanProcessor
from otel_sealed.telemetry.settings import key_id_of
from otel_sealed.telemetry.shield import Shield

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from otel_sealed.model import Finding, Report
    from otel_sealed.telemetry.alerts import Callback
    from otel_sealed.telemetry.attributes import Row, Value
    from otel_sealed.telemetry.settings import Settings

_DEFAULT_LIMIT: Final = 128
_ORIGIN_BYTES: Final = 24
_TRACE_BYTES: Final = 16
_SCALARS: Final = tuple(
    attribute.name
    for attribute in vocab.ATTRIBUTES
    if attribute.name in vocab.SPAN_ATTRIBUTES and not attribute.type.endswith("[]")
)


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
        self.tracer: Tracer = trace.get_tracer(vocab.SCOPE, version, providers.tracer)
        self._metrics = Metrics(providers.meter, version=version, entries=ledger_entries)
        self._shield = Shield(self._metrics.internal_error, strict=strict)
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
            sinks=(self._events.violation, log_line),
            callbacks=callbacks,
            events_per_hour=settings.events_per_hour,
        )
        self._strict = strict

    def processor(self) -> SealedSpanProcessor:
        """A span processor that feeds the same alert room."""
        return SealedSpanProcessor(
            self.room, on_error=self._metrics.internal_error, strict=self._strict
        )

    def instrumented(self, provider: str) -> None:
        """A provider's SDK is patched: its violation series start at 0."""
        name = names.provider_name(provider)
        self._shield.run("emit.prime", self._metrics.prime, name)

    def internal_error(self, where: str, kind: str) -> None:
        """Count a fault of ours: `where` in our words, `kind` the class of the exception."""
        self._shield.run("emit.error", self._metrics.internal_error, where, kind)

    def leak(self, place: str, count: int = 1) -> None:
        """Count sealed values that were taken out of telemetry."""
        self._shield.run("emit.leak", self._metrics.leak, place, count)

    def start_attributes(
        self, *, operation: str, provider: str, model: str, host: str, port: int | None = None
    ) -> dict[str, Any]:
        """What a sampler should see: the attributes a span of our own is created with."""
        found = self._shield.run("emit.start", _start, operation, provider, model, host, port)
        return found or {}

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
        rows = self._shield.run("emit.rows", shapes.rows_of, report, self._rekey)
        if rows is None:
            return
        provider = names.provider_of(report.facts)
        context = None if span is None else trace.set_span_in_context(span)
        if span is not None and span.is_recording():
            self._shield.run("emit.span", self._write, report, rows, span, owned, error_type)
        self._shield.run(
            "emit.metrics",
            self._metrics.call,
            report,
            provider,
            check_s=check_s,
            context=context,
        )
        self._shield.run("emit.alerts", self._alert, report, rows, provider, context)
        self._shield.run(
            "emit.disagreement", self._events.disagreement, report, provider, context=context
        )

    def _write(
        self,
        report: Report,
        rows: tuple[Row, ...],
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
        present = getattr(span, "attributes", None) or {}
        if owned:
            values = _conventional(report, present) | values
            error = error_type or _refusal(report)
            if error:
                values[vocab.ERROR_TYPE] = error
                span.set_status(StatusCode.ERROR)
        span.set_attributes(fit(values, present, limit=_limit(span), owned=owned))

    def _alert(
        self, report: Report, rows: tuple[Row, ...], provider: str, context: Context | None
    ) -> None:
        for finding, row in zip(report.findings, rows, strict=True):
            if finding.verdict.violates:
                self.room.tell(self._alert_of(report, finding, row, provider, context))

    def _alert_of(
        self, report: Report, finding: Finding, row: Row, provider: str, context: Context | None
    ) -> Alert:
        origin = finding.received
        minted = origin.span if origin and len(origin.span) == _ORIGIN_BYTES else b""
        said = finding.provider_verdict
        if said is ProviderVerdict.UNREPORTED:
            said = report.provider_verdict
        return Alert(
            conversation=report.conversation.hex(),
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
            provider=provider,
            model=vocab.model_name(report.facts.model),
            host=vocab.host_name(report.facts.host),
            context=context,
        )


def _start(
    operation: str, provider: str, model: str, host: str, port: int | None
) -> dict[str, Value]:
    values: dict[str, Value] = {vocab.OPERATION: vocab.word(operation)}
    if provider:
        values[vocab.PROVIDER] = names.provider_name(provider, host=host)
    if model:
        values[vocab.REQUEST_MODEL] = vocab.model_name(model)
    address = vocab.host_name(host)
    if address:
        values[vocab.SERVER_ADDRESS] = address
        given = host.rpartition(":")[2]
        number = port or (int(given) if ":" in host and given.isdecimal() else None)
        if number:
            values[vocab.SERVER_PORT] = number
    return values


def _conventional(report: Report, present: Mapping[str, Any]) -> dict[str, Any]:
    """`gen_ai.*` and `server.*` of a span of our own, as far as the report knows them."""
    facts, usage = report.facts, report.usage
    values: dict[str, Any] = {
        vocab.OPERATION: present.get(vocab.OPERATION)
        or names.operation_name(facts.operation, facts.dialect),
        vocab.PROVIDER: names.provider_of(facts),
        vocab.REQUEST_MODEL: vocab.model_name(facts.model),
        vocab.RESPONSE_MODEL: vocab.model_name(report.response_model),
        vocab.SERVER_ADDRESS: vocab.host_name(facts.host),
        vocab.INPUT_TOKENS: usage.input_tokens,
        vocab.OUTPUT_TOKENS: usage.output_tokens,
        vocab.REASONING_TOKENS: usage.reasoning_tokens,
        vocab.CACHE_READ_TOKENS: usage.cache_read_tokens,
        vocab.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
    }
    reason = names.finish_reason(report.stop, complete=report.complete)
    if reason:
        values[vocab.FINISH_REASONS] = [reason]
    return {name: value for name, value in values.items() if value not in (None, "")}


def _refusal(report: Report) -> str:
    if report.provider_verdict is not ProviderVerdict.REJECTED:
        return ""
    return report.rejection.value if report.rejection else vocab.FOLDED


def _diagnosis(finding: Finding) -> str:
    if finding.cause is None:
        return ""
    return vocab.phrase(f"{finding.cause.value.replace('_', ' ')} {finding.detail}".strip())


def _limit(span: Span) -> int | None:
    """How many attributes the span may hold; None for no bound. The default if it does not say."""
    limits = getattr(span, "_limits", None)
    limit = getattr(limits, "max_span_attributes", _DEFAULT_LIMIT)
    return limit if limit is None or isinstance(limit, int) else _DEFAULT_LIMIT


def fit(
    values: Mapping[str, Any], present: Mapping[str, Any], *, limit: int | None, owned: bool
) -> dict[str, Any]:
    """`values`, or less of them, so that nobody's attributes are pushed out of the span.

    On a span of somebody else three quarters of the limit (96 of 128) is the ceiling. Beyond it
    only scalars and the readable findings are written, and of those no more than fit.
    """
    if limit is None:
        limit = _DEFAULT_LIMIT if not owned else len(values) + len(present)
    ceiling = limit if owned else min(vocab.ATTRIBUTE_CEILING, limit * 3 // 4)
    room = ceiling - len(present)
    new = [name for name in values if name not in present]
    if len(new) <= room:
        return dict(values)
    others = [name for name in values if owned and name not in vocab.SPAN_ATTRIBUTES]
    kept: dict[str, Any] = {}
    for name in dict.fromkeys((vocab.VERDICT, vocab.FINDINGS, *_SCALARS, *others)):
        if name in values and (name in present or room > 0):
            kept[name] = values[name]
            room -= name not in present
    return kept
