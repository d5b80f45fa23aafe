"""One violation, one alert: from the call site or from the span, sampled or not."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs import export as log_export
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

import otel_sealed
from otel_sealed.telemetry.alerts import Alert, shared
from otel_sealed.testing.strict import StrictProvider
from tests.telemetry.builders import LOG_EXPORTER

ASK: dict[str, Any] = {
    "model": "claude-sonnet-4-6",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [{"name": "look_up", "description": "Look.", "input_schema": {"type": "object"}}],
}


def lose(url: str) -> str:
    """A host that keeps everything but thinking; the id of its tool call."""
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        messages: list[Any] = [{"role": "user", "content": "Which ledger?"}]
        message = client.messages.create(**ASK, messages=messages)
        call = next(block for block in message.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "42"}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
        otel_sealed.effect(call.id, {"looked": 1})
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**ASK, messages=messages)
        return str(call.id)


def violations(reader: InMemoryMetricReader) -> int:
    data: Any = reader.get_metrics_data()
    points = [
        point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "otel_sealed.violations"
        for point in metric.data.data_points
    ]
    return sum(point.value for point in points)


@pytest.mark.parametrize("sampler", [ALWAYS_ON, ALWAYS_OFF], ids=["sampled", "unsampled"])
def test_a_violation_counts_and_alerts_once(sampler: Sampler) -> None:
    alerts: list[Alert] = []
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracer = TracerProvider(sampler=sampler)
    tracer.add_span_processor(SimpleSpanProcessor(exporter))
    tracer.add_span_processor(otel_sealed.SealedSpanProcessor(callbacks=[alerts.append]))
    meter = MeterProvider(metric_readers=[reader])
    with (
        StrictProvider() as provider,
        otel_sealed.instrument("anthropic", tracer_provider=tracer, meter_provider=meter),
    ):
        lose(provider.anthropic_url)
    assert ["dropped"] == [alert.fate for alert in alerts]
    assert 1 == violations(reader)
    assert (2 if sampler is ALWAYS_ON else 0) == len(exporter.get_finished_spans())


def test_an_effect_the_app_told_is_on_the_span_that_carries_the_result() -> None:
    exporter = InMemorySpanExporter()
    tracer = TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(exporter))
    with (
        StrictProvider() as provider,
        otel_sealed.instrument("anthropic", tracer_provider=tracer),
    ):
        call = lose(provider.anthropic_url)
    last = dict(exporter.get_finished_spans()[-1].attributes or {})
    assert ("look_up",) == last["otel_sealed.tools.names"]
    assert (len('{"looked":1}'),) == last["otel_sealed.tools.effect_sizes"]
    assert call not in str(last)
    assert "breaks" == last["otel_sealed.verdict"]
    assert "rejected" == last["otel_sealed.provider_verdict"]
    assert str(last["otel_sealed.rules.version"]).startswith("20")


def test_an_effect_without_instrumentation_is_nothing() -> None:
    otel_sealed.effect("toolu_1", "x")
    assert None is shared()


def test_intact_here_and_refused_there_stand_side_by_side_on_the_span() -> None:
    exporter = InMemorySpanExporter()
    logs = LOG_EXPORTER()
    tracer, logger = TracerProvider(), LoggerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(exporter))
    logger.add_log_record_processor(log_export.SimpleLogRecordProcessor(logs))
    refusal = {
        "type": "invalid_request_error",
        "message": "Invalid `signature` in `thinking` block",
    }
    with (
        StrictProvider() as provider,
        otel_sealed.instrument("anthropic", tracer_provider=tracer, logger_provider=logger),
        anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url, max_retries=0) as client,
    ):
        messages: list[Any] = [{"role": "user", "content": "Which ledger?"}]
        message = client.messages.create(**ASK, messages=messages)
        call = next(block for block in message.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "42"}
        messages.append({"role": "assistant", "content": message.content})
        messages.append({"role": "user", "content": [result]})
        provider.fail_next(400, {"type": "error", "error": refusal})
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**ASK, messages=messages)
    last = dict(exporter.get_finished_spans()[-1].attributes or {})
    said = [last[f"otel_sealed.{name}"] for name in ("verdict", "provider_verdict")]
    assert ["ok", "rejected"] == said
    assert "signature_invalid" == last["otel_sealed.rejection.class"]
    names = [record.log_record.event_name for record in logs.get_finished_logs()]
    assert ["otel_sealed.disagreement"] == names
