"""What is the same in all calls of one shape, made once: their attributes and their counts.

Model. Most calls of a process are alike but for digests, sizes, tokens and the conversation. Of a
call without rows its *shape* is everything else that a report has. A plan is made of the first
report of a shape by those who write any report (`attributes`, `conventions`, `metrics`), and then
filled in with what differs. What has rows, was refused, or was not read as a whole has no plan.

Invariant: a planned call is written and counted as it would be without a plan
(tests/telemetry/test_planned.py varies every field of a report).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from otel_sealed import vocab
from otel_sealed.model import ProviderVerdict
from otel_sealed.telemetry import attributes as shapes
from otel_sealed.telemetry import names
from otel_sealed.telemetry.conventions import conventional

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from opentelemetry.trace import Span

    from otel_sealed.model import Report
    from otel_sealed.telemetry.attributes import Rekey
    from otel_sealed.telemetry.metrics import Counted, Metrics

MAX_PLANS: Final = 256
"""Shapes that are kept, each about 6 KB: a process has some ten for each model and host."""
_QUIET: Final = (ProviderVerdict.ACCEPTED, ProviderVerdict.UNREPORTED)
_TOKENS: Final = (
    (vocab.INPUT_TOKENS, "input_tokens"),
    (vocab.OUTPUT_TOKENS, "output_tokens"),
    (vocab.REASONING_TOKENS, "reasoning_tokens"),
    (vocab.CACHE_READ_TOKENS, "cache_read_tokens"),
    (vocab.CACHE_WRITE_TOKENS, "cache_write_tokens"),
)


class Plan(NamedTuple):
    """The attributes of a shape, with the values of its first call where they differ by call.

    `issuer` and `prefix` are places among the facts, -1 for none; `counted` what metrics count.
    """

    attributes: dict[str, Any]
    facts: list[str]
    issuer: int
    prefix: int
    issuer_digest: bytes
    tokens: tuple[tuple[str, str], ...]
    counted: Counted


class Plans:
    """The plans of a process. Thread-safe: a plan does not change, and one too many is harmless."""

    def __init__(self, metrics: Metrics, rekey: Rekey, *, key_id: str, rules_version: str) -> None:
        """`key_id` and `rules_version` are the same in all calls."""
        self._metrics = metrics
        self._rekey = rekey
        self._key_id = key_id
        self._rules_version = rules_version
        self._plans: dict[Hashable, Plan] = {}

    def plan(self, report: Report, own: Span | None) -> Plan | None:
        """The plan for a report, None where it has to be written by itself.

        `own`: the span, where it is one of our own.
        """
        if not _plannable(report):
            return None
        present = None if own is None else getattr(own, "attributes", None) or {}
        operation = None if present is None else present.get(vocab.OPERATION, "")
        shape = _shape(report, operation)
        plan = self._plans.get(shape)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[shape] = self._made(report, present)
        return plan

    def _made(self, report: Report, present: Mapping[str, Any] | None) -> Plan:
        values: dict[str, Any] = shapes.span_attributes(
            report, (), rekey=self._rekey, key_id=self._key_id, rules_version=self._rules_version
        )
        if present is not None:
            values = conventional(report, present) | values
        facts = list(values.get(vocab.FACTS, ()))
        return Plan(
            attributes=values,
            facts=facts,
            issuer=_place(facts, "issuer="),
            prefix=_place(facts, "prefix="),
            issuer_digest=shapes.issuer_of(report),
            tokens=tuple((name, field) for name, field in _TOKENS if name in values),
            counted=self._metrics.planned(report, names.provider_of(report.facts)),
        )

    def filled(self, plan: Plan, report: Report) -> dict[str, Any]:
        """The attributes of a call."""
        values = dict(plan.attributes)
        key = report.conversation
        if key:
            values[vocab.CONVERSATION_KEY] = key.hex()
            facts = plan.facts.copy()
            if plan.issuer >= 0:
                facts[plan.issuer] = f"issuer={self._rekey(key, plan.issuer_digest).hex()}"
            if plan.prefix >= 0:
                facts[plan.prefix] = f"prefix={self._rekey(key, report.prefix).hex()}"
            values[vocab.FACTS] = facts
        if report.received:
            values.update(shapes.received_values(report, self._rekey))
        if report.summary_size:
            values[vocab.SUMMARY_SIZE] = report.summary_size
        usage = report.usage
        for name, field in plan.tokens:
            values[name] = getattr(usage, field)
        return values


def _place(facts: list[str], begins: str) -> int:
    return next((at for at, fact in enumerate(facts) if fact.startswith(begins)), -1)


def _plannable(report: Report) -> bool:
    return not (
        report.findings
        or report.settled
        or report.unread
        or report.drift
        or report.receipts
        or report.removals
        or report.rest_count
        or report.rejection is not None
        or report.verdict is not None
        or report.provider_verdict not in _QUIET
        or len(report.received) > vocab.MAX_ROWS
    )


def _shape(report: Report, operation: str | None) -> Hashable:
    """All of a report, which `_plannable` lets pass, that a plan is made of."""
    usage = report.usage
    return (
        operation,
        report.facts,
        report.provider_verdict,
        report.carry,
        report.expected,
        report.excused,
        report.returned,
        report.received_types,
        report.returned_types,
        report.response_model,
        report.stop,
        report.complete,
        bool(report.conversation),
        bool(report.prefix),
        bool(report.summary_size),
        usage.input_tokens is None,
        usage.output_tokens is None,
        usage.reasoning_tokens is None,
        usage.cache_read_tokens is None,
        usage.cache_write_tokens is None,
        tuple([(row.artifact, row.path, bool(row.id)) for row in report.received])
        if report.received
        else (),
    )
