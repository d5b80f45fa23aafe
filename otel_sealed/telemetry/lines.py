"""What is said to people: one sentence for each event, and the Python log line that carries it.

The sentence is the body of the log event and the message of the line, so one violation would be two
records where Python logging is bridged into OpenTelemetry. There the line goes to every handler but
the bridge, as long as a logger provider takes the event. Where none does, the bridge gets the line
with the event's attributes, and that is the one record. A bridge that another handler feeds from
another thread (`QueueHandler`) is not seen.

No sentence holds content: names are of our vocabulary, conversations are keyed digests.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from otel_sealed import vocab
from otel_sealed.model import Fate, ProviderVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otel_sealed.model import Report
    from otel_sealed.telemetry.alerts import Alert
    from otel_sealed.telemetry.attributes import Value
    from otel_sealed.telemetry.leaks import Leak

_LOG: Final = logging.getLogger(vocab.SCOPE)
_BRIDGE: Final = "LoggingHandler"
"""The handler of opentelemetry-sdk and of opentelemetry-instrumentation-logging, and what derives
from it. It is known by name: neither package need be there."""


class Sentence(NamedTuple):
    """A sentence as a template, by which log tools group, and what fills it."""

    template: str
    values: tuple[object, ...] = ()

    def __str__(self) -> str:
        return self.template % self.values


def write(
    level: int, sentence: Sentence, attributes: Mapping[str, Value], *, taken: bool = False
) -> None:
    """Log a sentence; `taken`: the event with `attributes` went to a logger provider."""
    if not _LOG.isEnabledFor(level):
        return
    path, line, function, _ = _LOG.findCaller()
    record = _LOG.makeRecord(
        _LOG.name, level, path, line, *sentence, None, function, None if taken else attributes
    )
    if taken and any(map(_is_bridge, _handlers())):
        _without_bridges().handle(record)
    else:
        _LOG.handle(record)


def _handlers() -> Iterator[logging.Handler]:
    """All handlers a record of ours reaches, as `Logger.callHandlers` finds them."""
    logger: logging.Logger | None = _LOG
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def _without_bridges() -> logging.Logger:
    """A logger like ours, whose handlers are those it reaches but the bridges."""
    alike = logging.Logger(_LOG.name)  # noqa: LOG001 - not one of the process's own
    alike.filters, alike.disabled = _LOG.filters, _LOG.disabled
    alike.handlers = [handler for handler in _handlers() if not _is_bridge(handler)]
    # without any, Python would print it: an application that bridges everything prints nothing
    alike.addHandler(logging.NullHandler())
    return alike


def _is_bridge(handler: logging.Handler) -> bool:
    """Whether it makes OpenTelemetry log records, itself or as the target of a buffer."""
    target = getattr(handler, "target", None)
    bases = [*type(handler).__mro__, *(type(target).__mro__ if target is not None else ())]
    return any(
        base.__name__ == _BRIDGE and base.__module__.startswith("opentelemetry.") for base in bases
    )


# ---------------------------------------------------------------------------------- the sentences

_REMEDY: Final = {
    Fate.DROPPED: "send it back with the turn it came in",
    Fate.MODIFIED: "send it back byte for byte as it came",
    Fate.SUBSTITUTED: "send the sealed block itself, not its readable text",
    Fate.FABRICATED: "send what the provider issued, or leave out the block that has none",
    Fate.FOREIGN: "do not ship one vendor's sealed values to another",
    Fate.MERGED: "keep blocks apart as they came",
    Fate.SPLIT: "keep the turn in one piece as it came",
    Fate.RETYPED: "send the block under the type it came with",
    Fate.DUPLICATED: "send it once, or refer to the stored state, not both",
    Fate.MISPLACED: "put it back on the part and message it came with",
    Fate.REORDERED: "keep the order of the blocks of a turn",
    Fate.STALE: "send the newest compaction only",
    Fate.UNSEALED: "leave out what a cut stream never completed",
    Fate.NOT_REQUESTED: "ask for sealed reasoning when state is not stored",
    Fate.ABSENT_AT_SOURCE: "nothing to fix here: the provider sent no seal",
    Fate.SDK_LOSSY: "update the SDK, or read the value from the raw response",
    Fate.ORPHANED: "keep an item with its id together with the item it came with",
    Fate.ENVELOPE_MODIFIED: "send the block without added keys",
    Fate.PREFIX_CHANGED: "keep system, tools and earlier messages unchanged",
    Fate.ISSUER_CHANGED: "stay with the platform and account that issued it",
}


def violation(alert: Alert, count: int, suppressed: int) -> Sentence:
    """What, where, what to do."""
    if alert.returned_position:
        where = f" at {alert.returned_position}"
    else:
        where = f", received at {alert.received_position}," if alert.received_position else ""
    rule = f" [{alert.rule}]" if alert.rule else ""
    times = f", seen {count} times" if count > 1 else ""
    held = f", {suppressed} other events held back" if suppressed else ""
    return Sentence(
        "%s %s%s in a request to %s%s: %s; %s (conversation %s%s%s)",
        (
            alert.artifact,
            alert.fate.value,
            where,
            alert.provider or "the provider",
            rule,
            _outcome(alert),
            _REMEDY.get(alert.fate, "send it back as it came"),
            alert.conversation[:8] or "unknown",
            times,
            held,
        ),
    )


def _outcome(alert: Alert) -> str:
    if alert.verdict is Verdict.BREAKS:
        return "against the contract, though accepted" if alert.accepted else "refused by contract"
    return "reasoning may be lost" if alert.disputed or alert.inferred else "reasoning is lost"


_ANSWER: Final = {
    ProviderVerdict.REJECTED: "refused",
    ProviderVerdict.REMOVED: "removed sealed values from",
    ProviderVerdict.ACCEPTED: "accepted",
}


def disagreement(report: Report, provider: str) -> Sentence:
    """What the provider did, and what we said of the request."""
    return Sentence(
        "%s %s a request that was judged %s (conversation %s)",
        (
            provider or "the provider",
            _ANSWER.get(report.provider_verdict, "answered"),
            report.verdict.value if report.verdict else "to hold nothing sealed",
            report.conversation.hex()[:8] or "unknown",
        ),
    )


def unobserved(client: str, host: str, *, suppressed: bool) -> Sentence:
    """Whose requests pass unobserved, and where more is said."""
    why = (
        "the application suppresses instrumentation there"
        if suppressed
        else "they do not go through an SDK that is observed; see `otel-sealed doctor`"
    )
    where = "other hosts" if host == vocab.FOLDED else host
    return Sentence("calls of models over %s to %s pass unobserved: %s", (client, where, why))


def leak(found: Leak) -> Sentence:
    """What leaks where, and what to do."""
    return Sentence(
        "a sealed value is in attribute %s of spans of %s: wrap the exporter in "
        "RedactingSpanExporter, or switch that capture off",
        (found.key, found.scope or "an unnamed scope"),
    )
