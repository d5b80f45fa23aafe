from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanLimits
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import INVALID_SPAN, StatusCode

from otel_sealed import vocab
from otel_sealed.model import Facts, Fate, ProviderVerdict, Rejection, Usage, Verdict
from otel_sealed.telemetry.alerts import Alert
from otel_sealed.telemetry.emit import Emitter
from otel_sealed.telemetry.fit import fit
from otel_sealed.telemetry.settings import Settings
from tests.telemetry.builders import KEY, SEAL, Bench, finding, received, report

FULL = report(
    finding(first=True),
    facts=Facts(
        dialect="anthropic",
        vendor="anthropic",
        platform="anthropic",
        host="api.anthropic.com:443",
        model="claude-opus-5",
    ),
    response_model="claude-opus-5-20260801",
    stop="tool_use",
    usage=Usage(100, 50, 30, 20, 10),
)


def test_a_span_of_ours_carries_the_genai_conventions() -> None:
    seen = Bench().call(FULL)
    assert {k: v for k, v in seen.items() if not k.startswith("otel_sealed.")} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-opus-5",
        "gen_ai.response.model": "claude-opus-5-20260801",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.reasoning.output_tokens": 30,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_write.input_tokens": 10,
        "server.address": "api.anthropic.com",
    }
    assert seen["otel_sealed.verdict"] == "ok"


def test_counts_nobody_gave_are_left_out_and_zero_is_kept() -> None:
    seen = Bench().call(report(usage=Usage(input_tokens=0)))
    assert seen["gen_ai.usage.input_tokens"] == 0
    assert "gen_ai.usage.output_tokens" not in seen


def test_a_span_of_somebody_else_gets_nothing_but_ours() -> None:
    bench = Bench()
    refused = report(
        finding(Fate.DROPPED, Verdict.BREAKS),
        provider_verdict=ProviderVerdict.REJECTED,
        rejection=Rejection.SIGNATURE_MISSING,
        facts=FULL.facts,
        usage=FULL.usage,
    )
    seen = bench.call(refused, owned=False, error_type="BadRequestError")
    assert {k for k in seen if not k.startswith("otel_sealed.")} == set()
    assert bench.last.status.status_code is StatusCode.UNSET


def test_a_refused_call_of_ours_is_an_error_of_its_class() -> None:
    bench = Bench()
    refused = report(
        provider_verdict=ProviderVerdict.REJECTED, rejection=Rejection.SIGNATURE_MISSING
    )
    assert bench.call(refused)["error.type"] == "signature_missing"
    assert bench.last.status.status_code is StatusCode.ERROR
    assert bench.call(refused, error_type="BadRequestError")["error.type"] == "BadRequestError"


def test_a_violation_alone_is_no_error_of_the_call() -> None:
    bench = Bench()
    assert "error.type" not in bench.call(report(finding(Fate.DROPPED, Verdict.BREAKS)))
    assert bench.last.status.status_code is StatusCode.UNSET


def test_a_cut_stream_finishes_with_an_error() -> None:
    assert Bench().call(report(complete=False))["gen_ai.response.finish_reasons"] == ("error",)


def test_one_set_attributes_and_nothing_else_on_a_foreign_span(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    span = bench.emitter.tracer.start_span("theirs")
    calls: list[str] = []
    for name in ("set_attribute", "set_attributes", "add_event", "set_status", "update_name"):
        monkeypatch.setattr(span, name, lambda *_, name=name: calls.append(name))
    bench.emitter.emit(FULL, span, owned=False, check_s=0.1)
    assert calls == ["set_attributes"]


def test_an_ended_span_is_not_touched(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    span = bench.emitter.tracer.start_span("theirs")
    span.end()
    bench.emitter.emit(report(finding(Fate.DROPPED, Verdict.BREAKS)), span, owned=False)
    assert not dict(bench.last.attributes or {})
    assert len(bench.events()) == 1
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


@pytest.mark.parametrize("theirs", [0, 50, 70, 90, 96, 120])
def test_a_foreign_span_is_never_filled_past_96_and_loses_nothing(theirs: int) -> None:
    bench = Bench()
    span = bench.emitter.tracer.start_span("theirs")
    span.set_attributes({f"their.{n}": n for n in range(theirs)})
    bench.emitter.emit(report(finding(Fate.DROPPED, Verdict.BREAKS)), span, owned=False)
    span.end()
    seen = dict(bench.last.attributes or {})
    assert len(seen) <= max(96, theirs)
    assert {f"their.{n}" for n in range(theirs)} <= set(seen)
    assert bench.last.dropped_attributes == 0
    arrays = {name for name, value in seen.items() if isinstance(value, tuple)}
    if theirs == 50:
        assert "otel_sealed.returned.digests" in arrays
    if theirs == 90:
        assert arrays == {"otel_sealed.findings"}
        assert seen["otel_sealed.verdict"] == "breaks"


def test_a_smaller_limit_is_respected_in_proportion() -> None:
    bench = Bench(limits=SpanLimits(max_span_attributes=40))
    span = bench.emitter.tracer.start_span("theirs")
    span.set_attributes({f"their.{n}": n for n in range(20)})
    bench.emitter.emit(report(finding(Fate.DROPPED, Verdict.BREAKS)), span, owned=False)
    span.end()
    assert len(bench.last.attributes or {}) == 30
    assert bench.last.dropped_attributes == 0


def test_a_span_of_ours_keeps_what_matters_under_a_small_limit() -> None:
    bench = Bench(limits=SpanLimits(max_span_attributes=10))
    seen = bench.call(report(finding(Fate.DROPPED, Verdict.BREAKS)))
    assert len(seen) == 10
    assert seen["otel_sealed.verdict"] == "breaks"
    assert "otel_sealed.findings" in seen
    assert bench.last.dropped_attributes == 0


def test_what_is_there_already_costs_no_room() -> None:
    kept = fit({"a": 1, "b": 2}, {"a": 0}, limit=2, owned=True)
    assert kept == {"a": 1, "b": 2}


def test_a_violation_in_an_unsampled_trace_counts_and_alarms_once() -> None:
    alerts: list[Alert] = []
    bench = Bench(sampler=ParentBased(ALWAYS_OFF), with_processor=True, callbacks=[alerts.append])
    assert bench.call(report(finding(Fate.DROPPED, Verdict.BREAKS))) == {}
    assert bench.sums("otel_sealed.violations")[("anthropic", "breaks")] == 1
    assert len(bench.events()) == 1
    assert len(alerts) == 1


@pytest.mark.parametrize("span", [None, INVALID_SPAN])
def test_without_a_span_all_else_goes_out(span: Any) -> None:
    bench = Bench()
    bench.emitter.emit(report(finding(Fate.DROPPED, Verdict.BREAKS)), span, owned=False)
    assert len(bench.events()) == 1
    assert bench.sums("otel_sealed.violations")[("anthropic", "breaks")] == 1


def test_a_sampler_sees_what_a_span_of_ours_starts_with() -> None:
    start = Bench().emitter.start_attributes
    assert start(
        operation="chat", provider="google", model="gemini-3-pro", host="localhost:8080"
    ) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gen_ai",
        "gen_ai.request.model": "gemini-3-pro",
        "server.address": "localhost",
        "server.port": 8080,
    }
    assert start(operation="chat", provider="", model="", host="") == {
        "gen_ai.operation.name": "chat"
    }


def test_the_operation_a_span_started_with_stays() -> None:
    bench = Bench()
    span = bench.emitter.tracer.start_span("x", attributes={"gen_ai.operation.name": "compact"})
    bench.emitter.emit(FULL, span, owned=True)
    assert (getattr(span, "attributes", {}))["gen_ai.operation.name"] == "compact"


def test_hostile_model_and_host_names_do_not_go_out() -> None:
    bench = Bench()
    blob = "EqQBCkYIBxgCKkCanary" + "A" * 60
    bench.call(
        report(
            finding(Fate.DROPPED, Verdict.BREAKS),
            facts=Facts(dialect="anthropic", vendor=blob, model=blob, host=blob + "/x?y"),
            response_model=blob,
        )
    )
    metrics = bench.reader.get_metrics_data()
    everything = [bench.last.to_json(), str(metrics)]
    everything += [str(dict(record.attributes)) for record in bench.events()]
    assert "Canary" not in json.dumps(everything)


def test_a_fault_in_one_part_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.emitter._shield._strict = False

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("content")

    monkeypatch.setattr("otel_sealed.telemetry.attributes.span_attributes", fail)
    bench.call(report(finding(Fate.DROPPED, Verdict.BREAKS)))
    assert bench.sums("otel_sealed.internal.errors") == {("ValueError", "emit.span"): 1}
    assert bench.sums("otel_sealed.violations")[("anthropic", "breaks")] == 1
    assert len(bench.events()) == 1


def test_the_key_id_follows_the_key_unless_it_is_named() -> None:
    assert Bench().call(received(1))["otel_sealed.hash.key_id"] == "cb62c1a3"
    named = Bench(settings=Settings(key_id="fleet-1")).call(received(1))
    assert named["otel_sealed.hash.key_id"] == "fleet-1"
    assert named["otel_sealed.hash.algorithm"] == "hmac-sha256-128"


def test_an_emitter_on_the_global_providers_is_silent_until_there_are_any() -> None:
    emitter = Emitter(Settings(), key=KEY, strict=True)
    emitter.instrumented("anthropic")
    span = emitter.tracer.start_span("chat")
    emitter.emit(report(finding(Fate.DROPPED, Verdict.BREAKS)), span, owned=True)
    span.end()


def test_a_limit_on_value_length_leaves_digests_whole_at_32() -> None:
    bench = Bench(limits=SpanLimits(max_attribute_length=32))
    seen = bench.call(report(finding(first=True), received=received(3).received))
    assert [len(value) for value in seen["otel_sealed.received.digests"]] == [32]
    assert seen["otel_sealed.received.artifacts"] == (SEAL,)
    assert len(seen[vocab.CONVERSATION_KEY]) == 32
