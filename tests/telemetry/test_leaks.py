"""A sealed value in an ended span raises the alarm once, and the work for it is bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from otel_sealed.telemetry import leaks
from otel_sealed.telemetry.emit import Emitter, Providers
from otel_sealed.telemetry.leaks import Alarm, Leak, LeakAlarm
from otel_sealed.telemetry.processor import SealedSpanProcessor
from otel_sealed.telemetry.scrub import Wire
from otel_sealed.telemetry.settings import Settings
from tests.telemetry.builders import LOG_EXPORTER

SEAL = "EqQBCkYI" * 20
ASKED: list[str] = []


def seen(text: str) -> bool:
    ASKED.append(text)
    return text == SEAL


WIRE = Wire(seen, lambda _: "d" * 32)


@pytest.fixture
def told() -> Any:
    found: list[Leak] = []
    ASKED.clear()
    leaks.share(Alarm(WIRE, found.append))
    yield found
    leaks.share(None)


def end(
    attributes: dict[str, Any], scope: str = "peer", event: dict[str, Any] | None = None
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(LeakAlarm())
    span = provider.get_tracer(scope).start_span("x", attributes=attributes)
    if event is not None:
        span.add_event("e", event)
    span.end()


def places(told: list[Leak]) -> list[tuple[str, str]]:
    return [(leak.scope, leak.key) for leak in told]


def test_it_is_told_once_for_each_scope_and_key(told: list[Leak]) -> None:
    for _ in range(3):
        end({"llm.output_messages.0.message_content.signature": SEAL, "ok": "x" * 200})
        end({"llm.output_messages.7.message_content.signature": SEAL})
        end({"llm.output_messages.0.message_content.signature": SEAL}, scope="other.peer")
        end({"input.value": json.dumps({"x": [SEAL]})})
    key = "llm.output_messages.n.message_content.signature"
    assert places(told) == [("peer", key), ("other.peer", key), ("peer", "input.value")]
    assert {(leak.size, leak.digest) for leak in told} == {(len(SEAL), "d" * 32)}


def test_it_looks_into_events_and_arrays(told: list[Leak]) -> None:
    end({"many": ["short", f"Block(signature='{SEAL}')"]}, event={"message": SEAL})
    assert places(told) == [("peer", "many"), ("peer", "message")]


def test_a_span_without_a_long_text_costs_no_look_up(told: list[Leak]) -> None:
    end({"a": "short", "b": 1, "c": [1, 2], "d": "x" * 39, "e": "plain words " * 50})
    assert (told, ASKED) == ([], [])


def test_names_that_are_not_vocabulary_do_not_go_out(told: list[Leak]) -> None:
    end({f"Secret-{SEAL}": SEAL}, scope="Secret Scope")
    assert places(told) == [("other", "other")]


def test_the_work_for_a_span_is_bounded(told: list[Leak], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "MOST_RUNS", 8)
    monkeypatch.setattr(leaks, "MOST_CHARACTERS", 4_000)
    end({f"k{n}": " ".join("r" * 30 + str(i) for i in range(1_000)) for n in range(10)})
    assert told == []
    assert len(ASKED) <= 8
    assert sum(map(len, ASKED)) <= 4_000


def test_both_ends_of_a_long_text_are_searched(told: list[Leak]) -> None:
    filler = "plain words " * 20_000
    end({"head": f"{SEAL} {filler}"})
    end({"tail": f"{filler} {SEAL}"})
    end({"middle": f"{filler} {SEAL} {filler}"})
    assert places(told) == [("peer", "head"), ("peer", "tail")]


def test_it_remembers_a_bounded_number_of_keys(
    told: list[Leak], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaks, "MOST_KEYS", 2)
    for name in ("a", "b", "c"):
        end({name: SEAL})
    assert places(told) == [("peer", "a"), ("peer", "b")]


def test_a_fault_of_ours_is_counted_and_never_raised() -> None:
    faults: list[tuple[str, str]] = []

    def fail(_: str) -> bool:
        raise RuntimeError(SEAL)

    wire = Wire(fail, str)
    leaks.share(Alarm(wire, lambda _: None, lambda where, kind: faults.append((where, kind))))
    end({"x": SEAL})
    leaks.share(None)
    end({"x": SEAL})
    assert faults == [("leaks", "RuntimeError")]


def test_a_leak_is_a_metric_an_event_and_a_line(caplog: pytest.LogCaptureFixture) -> None:
    reader, logs = InMemoryMetricReader(), LOG_EXPORTER()
    logger = LoggerProvider()
    logger.add_log_record_processor(SimpleLogRecordProcessor(logs))
    emitter = Emitter(
        Settings(),
        key=b"k" * 32,
        providers=Providers(meter=MeterProvider([reader]), logger=logger),
        strict=True,
    )
    leaks.share(Alarm(WIRE, emitter.leaked))
    provider = TracerProvider()
    provider.add_span_processor(SealedSpanProcessor())
    for _ in range(3):
        provider.get_tracer("peer").start_span("x", attributes={"input.value": SEAL}).end()
    leaks.share(None)
    (record,) = logs.get_finished_logs()
    assert record.log_record.attributes == {
        "otel_sealed.leak.scope": "peer",
        "otel_sealed.leak.key": "input.value",
        "otel_sealed.leak.size": len(SEAL),
        "otel_sealed.leak.digest": "d" * 32,
        "event.name": "otel_sealed.leak",
    }
    data = reader.get_metrics_data()
    assert data is not None
    points = [
        point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "otel_sealed.leaks"
        for point in metric.data.data_points
    ]
    assert [(dict(p.attributes or {}), p.value) for p in points] == [  # type: ignore[union-attr]
        ({"otel_sealed.place": "span"}, 1)
    ]
    assert [SEAL in r.getMessage() for r in caplog.records if r.name == "otel_sealed"] == [False]
