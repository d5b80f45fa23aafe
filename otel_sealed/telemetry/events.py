"""Log events `otel_sealed.violation`, `.disagreement` and `.leak`, over `opentelemetry._logs`.

Each has a sentence as its body. Violations and leaks are a line of Python logging, too (`lines`).

From 1.38 on a logger takes the parts of a record by keyword. Before, it takes a record, which in
1.35 and 1.36 has to be the SDK's own one with its resource; both shapes are told by signature.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import logging
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import _logs

from otel_sealed import vocab
from otel_sealed.model import ProviderVerdict, Rejection, Verdict
from otel_sealed.telemetry import lines
from otel_sealed.telemetry.alerts import MAX_KEYS, Throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.context import Context

    from otel_sealed.model import Removal, Report
    from otel_sealed.telemetry.alerts import Alert
    from otel_sealed.telemetry.attributes import Value
    from otel_sealed.telemetry.leaks import Leak

_BY_KEYWORD: Final = "event_name" in inspect.signature(_logs.Logger.emit).parameters
_BY_DESIGN: Final = frozenset({"turn_boundary"})
"""Removals a provider makes of its own design, whatever the client sent."""
_ASKED_FOR: Final = "drop_block"


def fingerprint(artifact: str, fate: str, rule: str, provider: str) -> str:
    """The same for the same kind of fault in every process; no key, since nothing is secret."""
    text = f"{artifact}\n{fate}\n{rule}\n{provider}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class EventLog:
    """Writes the events. `violation` is a sink of the alert room, which throttles it."""

    def __init__(
        self,
        logger_provider: LoggerProvider | None = None,
        *,
        version: str = "",
        sdk_versions: Mapping[str, str] | None = None,
        clock: Callable[[], float],
        events_per_hour: int = 60,
    ) -> None:
        self._logger = _logs.get_logger(vocab.SCOPE, version, logger_provider)
        self._sdks = [f"{name}={number}" for name, number in sorted((sdk_versions or {}).items())]
        self._throttle = Throttle(clock, events_per_hour, keys=MAX_KEYS // 10)

    def violation(self, alert: Alert, count: int, suppressed: int) -> None:
        """One violation: an error unless the provider took the request all the same."""
        attributes: dict[str, Value] = {
            vocab.ARTIFACT: alert.artifact,
            vocab.FATE: alert.fate.value,
            vocab.VERDICT: alert.verdict.value,
            vocab.RULE: alert.rule,
            vocab.CAUSE: alert.cause,
            vocab.DIAGNOSIS: alert.diagnosis,
            vocab.LOCUS: alert.locus,
            vocab.CONFIDENCE: alert.confidence.value,
            vocab.PROVIDER_VERDICT: alert.provider_verdict.value,
            vocab.REJECTION_CLASS: alert.rejection.value if alert.rejection else "",
            vocab.RECEIVED_POSITION: alert.received_position,
            vocab.RETURNED_POSITION: alert.returned_position,
            vocab.ORIGIN_TRACE: alert.origin_trace,
            vocab.ORIGIN_SPAN: alert.origin_span,
            vocab.FINGERPRINT: fingerprint(
                alert.artifact, alert.fate.value, alert.rule, alert.provider
            ),
        }
        if alert.disputed:
            attributes[vocab.DISPUTED] = True
        if alert.received_size is not None:
            attributes[vocab.RECEIVED_SIZE] = alert.received_size
        if alert.returned_size is not None:
            attributes[vocab.RETURNED_SIZE] = alert.returned_size
        attributes |= self._common(alert.conversation, alert.provider, alert.model, alert.host)
        attributes |= _counts(count, suppressed)
        level = logging.WARNING if alert.accepted else logging.ERROR
        sentence = lines.violation(alert, count, suppressed)
        self._report(vocab.VIOLATION, level, sentence, attributes, alert.context)

    def disagreement(
        self, report: Report, provider: str, *, context: Context | None = None
    ) -> bool:
        """Tell where the provider's verdict and ours differ; whether it was told."""
        if not disagree(report):
            return False
        verdict = report.verdict.value if report.verdict else ""
        rejection = report.rejection.value if report.rejection else ""
        conversation = report.conversation.hex()
        told = self._throttle.tick(
            (conversation, verdict, report.provider_verdict.value, rejection)
        )
        if told is None:
            return False
        attributes: dict[str, Value] = {
            vocab.VERDICT: verdict,
            vocab.PROVIDER_VERDICT: report.provider_verdict.value,
            vocab.REJECTION_CLASS: rejection,
        }
        model, host = vocab.model_name(report.facts.model), vocab.host_name(report.facts.host)
        attributes |= self._common(conversation, provider, model, host)
        attributes |= _counts(*told)
        sentence = lines.disagreement(report, provider)
        self._emit(vocab.DISAGREEMENT, logging.WARNING, sentence, attributes, context)
        return True

    def leak(self, leak: Leak) -> None:
        """One attribute of somebody's spans that holds sealed values."""
        attributes: dict[str, Value] = {
            vocab.LEAK_SCOPE: leak.scope,
            vocab.LEAK_KEY: leak.key,
            vocab.LEAK_SIZE: leak.size,
            vocab.LEAK_DIGEST: leak.digest,
        }
        self._report(vocab.LEAK, logging.WARNING, lines.leak(leak), attributes, leak.context)

    def _common(self, conversation: str, provider: str, model: str, host: str) -> dict[str, Value]:
        return {
            vocab.CONVERSATION_KEY: conversation,
            vocab.PROVIDER: provider,
            vocab.REQUEST_MODEL: model,
            vocab.SERVER_ADDRESS: host,
            vocab.SDK_VERSIONS: self._sdks,
        }

    @property
    def taken(self) -> bool:
        """Whether a logger provider takes the events."""
        # a logger made before there was a provider is a proxy of the real one
        real = getattr(self._logger, "_logger", self._logger)
        return not isinstance(real, _logs.NoOpLogger)

    def _report(
        self,
        event: vocab.Event,
        level: int,
        sentence: lines.Sentence,
        attributes: Mapping[str, Value],
        context: Context | None,
    ) -> None:
        """The event, and its line whatever becomes of the event."""
        try:
            self._emit(event, level, sentence, attributes, context)
        finally:
            lines.write(level, sentence, _named(event, attributes), taken=self.taken)

    def _emit(
        self,
        event: vocab.Event,
        level: int,
        sentence: lines.Sentence,
        attributes: Mapping[str, Value],
        context: Context | None,
    ) -> None:
        error = level >= logging.ERROR
        severity = _logs.SeverityNumber.ERROR if error else _logs.SeverityNumber.WARN
        parts: dict[str, Any] = {
            "severity_number": severity,
            "severity_text": severity.name,
            "body": str(sentence),
            "attributes": _named(event, attributes),
            "event_name": event.name,
            "context": context,
        }
        if _BY_KEYWORD:
            self._logger.emit(**parts)
        else:
            self._logger.emit(_record(self._logger, parts))


def _named(event: vocab.Event, attributes: Mapping[str, Value]) -> dict[str, Value]:
    """The attributes that say something, and the event's name."""
    known = {name: value for name, value in attributes.items() if value not in ("", [])}
    return {**known, vocab.EVENT_NAME: event.name}


def _counts(count: int, suppressed: int) -> dict[str, Value]:
    counts: dict[str, Value] = {vocab.OCCURRENCES: count}
    if suppressed:
        counts[vocab.SUPPRESSED] = suppressed
    return counts


def _record(logger: Logger, parts: dict[str, Any]) -> Any:
    """A record for a logger before 1.38: the SDK's own, with the resource it exports under."""
    real = getattr(logger, "_logger", logger)
    resource = getattr(real, "resource", None)
    if resource is None:
        return _logs.LogRecord(**parts)
    sdk: Any = importlib.import_module("opentelemetry.sdk._logs")
    return sdk.LogRecord(**parts, resource=resource)


def disagree(report: Report) -> bool:
    """Whether the provider's own verdict contradicts ours.

    A refusal for another reason than sealed state does not, nor does a removal by the provider's
    design or on request; and what we called unverifiable claimed nothing.
    """
    harmless = report.verdict in {None, Verdict.OK, Verdict.ALLOWED}
    match report.provider_verdict:
        case ProviderVerdict.REJECTED:
            sealed = report.rejection not in {None, Rejection.OTHER}
            return sealed and (harmless or report.verdict is Verdict.DEGRADES)
        case ProviderVerdict.REMOVED:
            return harmless and any(_unexpected(report, removal) for removal in report.removals)
        case ProviderVerdict.ACCEPTED:
            return report.verdict is Verdict.BREAKS
        case ProviderVerdict.UNREPORTED:
            return False


def all_known(report: Report, known: Sequence[bool]) -> bool:
    """Whether there are violations, and every one of them is a known loss.

    `known` says so of each finding; empty if none is.
    """
    pairs = zip(report.findings, known, strict=False)
    return any(known) and all(accepted for f, accepted in pairs if f.verdict.violates)


def objected(report: Report, known: Sequence[bool] = ()) -> bool:
    """Whether the provider refused or removed sealed state, and that is news.

    It is none where it removed what it removes by design or on request, and where all that is
    wrong is a known loss, unless the provider refuses what was known to degrade only.
    """
    match report.provider_verdict:
        case ProviderVerdict.REJECTED:
            return not all_known(report, known) or disagree(report)
        case ProviderVerdict.REMOVED:
            unexpected = any(_unexpected(report, removal) for removal in report.removals)
            return unexpected and not all_known(report, known)
        case ProviderVerdict.ACCEPTED | ProviderVerdict.UNREPORTED:
            return False


def _unexpected(report: Report, removal: Removal) -> bool:
    asked_for = removal.allowed or _ASKED_FOR in report.facts.flags
    return not asked_for and removal.reason not in _BY_DESIGN
