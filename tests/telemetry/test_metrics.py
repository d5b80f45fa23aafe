from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_sealed import vocab
from otel_sealed.model import (
    Cause,
    Facts,
    Fate,
    Locus,
    ProviderVerdict,
    Receipt,
    Rejection,
    Removal,
    Verdict,
)
from otel_sealed.telemetry.metrics import SLOW_S, Metrics, Series
from otel_sealed.telemetry.names import base_model, provider_name
from tests.telemetry.builders import SEAL, TEXT, Bench, digest, finding, received, report


def test_violations_of_an_instrumented_provider_start_at_zero() -> None:
    bench = Bench()
    bench.emitter.instrumented("anthropic")
    bench.emitter.instrumented("google")
    assert bench.sums("otel_sealed.violations") == {
        ("anthropic", "breaks"): 0,
        ("anthropic", "degrades"): 0,
        ("gcp.gen_ai", "breaks"): 0,
        ("gcp.gen_ai", "degrades"): 0,
    }


def test_a_providers_first_call_starts_its_violations_too() -> None:
    bench = Bench()
    bench.call(report(finding()))
    assert bench.sums("otel_sealed.violations") == {
        ("anthropic", "breaks"): 0,
        ("anthropic", "degrades"): 0,
    }


def test_what_was_not_read_is_counted_by_reason() -> None:
    bench = Bench()
    bench.call(report())
    assert bench.sums("otel_sealed.unread") == {("anthropic", "size"): 0}
    for unread in (("size",), ("size",), ("request.json", "response.depth"), ("secret words",)):
        bench.call(report(unread=unread))
    assert bench.sums("otel_sealed.unread") == {
        ("anthropic", "size"): 2,
        ("anthropic", "request.json"): 1,
        ("anthropic", "response.depth"): 1,
        ("anthropic", "_OTHER"): 1,
    }


def test_violations_count_findings_by_provider_and_verdict_alone() -> None:
    bench = Bench()
    bench.call(
        report(
            finding(Fate.DROPPED, Verdict.BREAKS),
            finding(Fate.MODIFIED, Verdict.BREAKS),
            finding(Fate.MODIFIED, Verdict.DEGRADES, artifact=TEXT),
            finding(Fate.DROPPED, Verdict.ALLOWED),
        )
    )
    assert bench.sums("otel_sealed.violations") == {
        ("anthropic", "breaks"): 2,
        ("anthropic", "degrades"): 1,
    }
    for point in bench.points("otel_sealed.violations"):
        assert set(point.attributes) == {"gen_ai.provider.name", "otel_sealed.verdict"}


def test_checks_are_counted_by_artifact_fate_verdict_provider_and_model() -> None:
    bench = Bench()
    bench.call(report(finding(), finding(), finding(Fate.DROPPED, Verdict.BREAKS)))
    assert bench.sums("otel_sealed.artifact.checks") == {
        ("anthropic", "claude-opus-5", SEAL, "intact", "ok"): 2,
        ("anthropic", "claude-opus-5", SEAL, "dropped", "breaks"): 1,
    }


def test_calls_and_rejections_are_counted() -> None:
    bench = Bench()
    bench.call(report())
    bench.call(report(finding(), rejection=Rejection.SIGNATURE_INVALID))
    assert bench.sums("otel_sealed.calls") == {
        ("anthropic", "claude-opus-5", "none"): 1,
        ("anthropic", "claude-opus-5", "ok"): 1,
    }
    assert bench.sums("otel_sealed.rejections") == {
        ("anthropic", "claude-opus-5", "signature_invalid"): 1
    }


def test_sizes_fall_into_the_advised_buckets() -> None:
    bench = Bench()
    bench.call(report(received=(Receipt(SEAL, digest(1), 50_000, "content.0"),)))
    (point,) = bench.points("otel_sealed.artifact.size")
    assert point.explicit_bounds == vocab.SIZE.boundaries
    assert point.sum == 50_000
    assert point.bucket_counts[point.explicit_bounds.index(65_536.0)] == 1


def test_ledger_and_duration_are_told() -> None:
    bench = Bench()
    bench.call(report(lookups_hit=3, lookups_missed=1))
    assert bench.sums("otel_sealed.ledger.lookups") == {
        ("anthropic", "hit"): 3,
        ("anthropic", "miss"): 1,
    }
    assert [point.value for point in bench.points("otel_sealed.ledger.entries")] == [7]
    (duration,) = bench.points("otel_sealed.check.duration")
    assert duration.sum == pytest.approx(0.002)
    assert duration.explicit_bounds == vocab.DURATION.boundaries


def test_calls_show_the_two_verdicts_the_carry_and_the_host() -> None:
    bench = Bench()
    facts = Facts(
        dialect="anthropic", vendor="anthropic", model="claude-opus-5", host="API.anthropic.com:443"
    )
    bench.call(report(facts=facts))
    bench.call(
        report(finding(), facts=facts, provider_verdict=ProviderVerdict.REJECTED),
    )
    assert bench.sums("otel_sealed.outcomes") == {
        ("anthropic", "none", "accepted", "none", "api.anthropic.com"): 1,
        ("anthropic", "replayed", "rejected", "ok", "api.anthropic.com"): 1,
    }


def test_hosts_beyond_the_first_sixteen_are_one_series() -> None:
    bench = Bench()
    for number in range(40):
        facts = Facts(dialect="openai", vendor="openai", model="gpt-5", host=f"t{number}.example")
        bench.call(report(facts=facts))
    hosts = {key[-1]: value for key, value in bench.sums("otel_sealed.outcomes").items()}
    assert len(hosts) == 17
    assert hosts["_OTHER"] == 24


def test_what_had_to_come_back_and_what_did_are_counted() -> None:
    bench = Bench()
    bench.call(
        report(
            finding(),
            finding(Fate.MODIFIED, Verdict.BREAKS),
            finding(Fate.DROPPED, Verdict.DEGRADES),
            finding(Fate.DROPPED, Verdict.ALLOWED),
            finding(Fate.SERVER_HELD, digest_out=b"", returned=None),
            expected=5,
            returned=2,
        )
    )
    assert bench.sums("otel_sealed.artifact.expected") == {("anthropic", "claude-opus-5"): 3}
    assert bench.sums("otel_sealed.artifact.returned") == {("anthropic", "claude-opus-5"): 2}


def test_violations_are_counted_by_fingerprint_cause_and_locus_unless_they_are_known_losses() -> (
    None
):
    bench = Bench()
    bench.call(
        report(
            finding(
                Fate.MODIFIED,
                Verdict.BREAKS,
                rule="A9",
                cause=Cause.CUT_END,
                locus=Locus.PROCESS,
            ),
            finding(Fate.DROPPED, Verdict.DEGRADES),
            finding(Fate.DROPPED, Verdict.ALLOWED, rule="A3"),
        )
    )
    assert bench.sums("otel_sealed.violations.causes") == {
        ("anthropic", SEAL, "cut_end", "modified", "process", "A9", "breaks"): 1,
        ("anthropic", SEAL, "none", "dropped", "none", "none", "degrades"): 1,
    }


def test_what_the_provider_objects_to_is_counted_beside_our_verdict_and_by_host() -> None:
    bench = Bench()
    facts = Facts(dialect="anthropic", vendor="anthropic", model="claude-opus-5", host="a.example")
    bench.call(report(finding(), facts=facts))
    bench.call(report(finding(), facts=facts, provider_verdict=ProviderVerdict.UNREPORTED))
    bench.call(report(finding(), facts=facts, provider_verdict=ProviderVerdict.REJECTED))
    bench.call(report(facts=facts, provider_verdict=ProviderVerdict.REJECTED))
    bench.call(
        report(
            finding(Fate.DROPPED, Verdict.BREAKS),
            facts=facts,
            provider_verdict=ProviderVerdict.REJECTED,
        )
    )
    assert bench.sums("otel_sealed.objections") == {
        ("anthropic", "rejected", "ok", "a.example"): 1,
        ("anthropic", "rejected", "none", "a.example"): 1,
        ("anthropic", "rejected", "breaks", "a.example"): 1,
    }


@pytest.mark.parametrize(
    ("removals", "flags", "counted"),
    [
        ((Removal("invalid_signature"),), (), 1),
        ((Removal("turn_boundary"),), (), 0),
        ((Removal("invalid_signature", allowed=True),), (), 0),
        ((Removal("invalid_signature"),), ("drop_block",), 0),
        ((Removal("turn_boundary"), Removal("invalid_signature")), (), 1),
    ],
    ids=["unexpected", "by design", "allowed", "asked for", "both"],
)
def test_a_removal_is_an_objection_unless_it_is_by_design_or_asked_for(
    removals: tuple[Removal, ...], flags: tuple[str, ...], counted: int
) -> None:
    bench = Bench()
    facts = Facts(dialect="anthropic", vendor="anthropic", model="claude-opus-5", flags=flags)
    said = ProviderVerdict.REMOVED
    bench.call(report(finding(), facts=facts, provider_verdict=said, removals=removals))
    assert sum(bench.sums("otel_sealed.objections").values()) == counted


def test_beyond_the_bound_hosts_are_folded_before_what_the_provider_said() -> None:
    series = Series(limit=101)
    said = {"otel_sealed.provider_verdict": "rejected"}
    assert series.admit("m", said | {"server.address": "a"}) == said | {"server.address": "a"}
    assert series.admit("m", said | {"server.address": "b"}) == said | {"server.address": "_OTHER"}


def test_evictions_and_seams_are_asked_for_at_each_collection() -> None:
    bench = Bench()
    assert bench.sums("otel_sealed.ledger.evictions") == {(): 0}
    assert bench.sums("otel_sealed.seams") == {("attached",): 0, ("missing",): 0}
    bench.emitter.evicted = lambda: 5
    bench.emitter.on_seams(lambda: (12, 1))
    assert bench.sums("otel_sealed.ledger.evictions") == {(): 5}
    assert bench.sums("otel_sealed.seams") == {("attached",): 12, ("missing",): 1}


def test_internal_errors_and_leaks_are_counted() -> None:
    bench = Bench()
    bench.emitter.internal_error("exchange.observe", "KeyError")
    bench.emitter.internal_error("Not A Word", "no identifier!")
    bench.emitter.leak("span", 2)
    assert bench.sums("otel_sealed.internal.errors") == {
        ("KeyError", "exchange.observe"): 1,
        ("_OTHER", "other"): 1,
    }
    assert bench.sums("otel_sealed.leaks") == {("span",): 2}


def test_instruments_have_the_names_units_and_attributes_of_the_vocabulary() -> None:
    bench = Bench()
    bench.emitter.internal_error("place", "KeyError")
    bench.emitter.leak("span")
    bench.emitter.unobserved("httpx", "gateway.example", suppressed=False)
    bench.call(
        report(
            finding(Fate.DROPPED, Verdict.BREAKS),
            received=(Receipt(SEAL, digest(1), 5, "content.0"),),
            provider_verdict=ProviderVerdict.REJECTED,
            rejection=Rejection.OTHER,
            lookups_hit=1,
        )
    )
    data = bench.reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: (metric.unit, set(metric.data.data_points[0].attributes or {}))
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    assert found == {m.name: (m.unit, set(m.attributes)) for m in vocab.METRICS}


def test_unobserved_requests_are_counted_by_client_and_host_from_0_on() -> None:
    bench = Bench()
    bench.emitter.noticing("httpx")
    assert bench.sums("otel_sealed.unobserved") == {("httpx", "_OTHER"): 0}
    for host in ("Gateway.Example:8443", "gateway.example", "no host\n", ""):
        bench.emitter.unobserved("httpx", host, suppressed=False)
    assert bench.sums("otel_sealed.unobserved") == {
        ("httpx", "_OTHER"): 2,
        ("httpx", "gateway.example"): 2,
    }


def test_no_metric_is_of_the_genai_conventions_or_breaks_prometheus_names() -> None:
    for metric in vocab.METRICS:
        assert metric.name.startswith("otel_sealed.")
        assert not metric.name.endswith((".total", ".seconds", ".bytes", ".count"))
        assert metric.unit != "1"
        assert (metric.unit in {"By", "s"}) == (metric.instrument == "histogram")


def test_no_digest_or_id_is_ever_a_metric_attribute() -> None:
    bench = Bench()
    bench.call(report(finding(Fate.MODIFIED, Verdict.BREAKS), received=received(3).received))
    text = str(bench.reader.get_metrics_data())
    for secret in (digest(1).hex(), digest(2).hex(), digest(3).hex(), (b"\x11" * 16).hex()):
        assert secret not in text


def test_a_process_never_makes_more_than_500_series() -> None:
    reader = InMemoryMetricReader()
    metrics = Metrics(MeterProvider([reader]))
    for number in range(1200):
        metrics.call(
            report(
                finding(artifact=f"made.up.n{number}"),
                facts=Facts(
                    dialect="anthropic",
                    vendor=f"v{number}" if number % 2 else "openai",
                    model=f"gpt-{number % 90}.{number // 90}",
                ),
            ),
            f"v{number}",
            check_s=0.1,
        )
        metrics.internal_error(f"place{number}", "KeyError")
    data = reader.get_metrics_data()
    assert data is not None
    series = sum(
        len(metric.data.data_points)
        for scope in data.resource_metrics[0].scope_metrics
        for metric in scope.metrics
    )
    assert series <= 500


def test_beyond_the_bound_the_model_is_folded_first() -> None:
    series = Series(limit=101)
    first = {"otel_sealed.fate": "intact", "gen_ai.request.model": "gpt-5"}
    second = {"otel_sealed.fate": "intact", "gen_ai.request.model": "gpt-6"}
    assert series.admit("m", first) == first
    assert series.admit("m", second) == {
        "otel_sealed.fate": "intact",
        "gen_ai.request.model": "_OTHER",
    }
    assert series.admit("m", first) == first


def test_beyond_the_bound_the_verdict_outlasts_what_was_found_of_which_artifact() -> None:
    series = Series(limit=101)
    labels = {"otel_sealed.verdict": "breaks", "gen_ai.request.model": "gpt-5"}
    for number in range(60):
        series.admit("m", {**labels, "otel_sealed.artifact": f"a{number}"})
    assert series.admit("m", {**labels, "otel_sealed.artifact": "new"}) == {
        "otel_sealed.verdict": "breaks",
        "gen_ai.request.model": "_OTHER",
        "otel_sealed.artifact": "_OTHER",
    }


def test_where_even_that_is_too_much_everything_is_folded() -> None:
    series = Series(limit=101)
    for number in range(200):
        series.admit("m", {"otel_sealed.verdict": f"v{number}", "otel_sealed.fate": "intact"})
    assert series.admit("m", {"otel_sealed.verdict": "v", "otel_sealed.fate": "intact"}) == {
        "otel_sealed.verdict": "_OTHER",
        "otel_sealed.fate": "_OTHER",
    }
    assert len(series) <= 101


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("claude-opus-5", "claude-opus-5"),
        ("claude-3-7-sonnet-20250219", "claude-3-7-sonnet"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "claude-3-7-sonnet"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-8",
            "claude-opus-4-8",
        ),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2", "_OTHER"),
        ("ft:gpt-4o-2024-08-06:acme-corp:secret:abc123", "gpt-4o"),
        ("gpt-5.6-sol", "gpt-5.6-sol"),
        ("gpt-4.1", "gpt-4.1"),
        ("gpt-4o-acme-production", "gpt-4o"),
        ("o3", "o3"),
        ("o4-mini-2025-04-16", "o4-mini"),
        ("models/gemini-2.5-flash-preview-05-20", "gemini-2.5-flash"),
        ("gemini-1.5-pro-002", "gemini-1.5-pro"),
        ("projects/acme/locations/eu/publishers/google/models/gemini-3-pro", "gemini-3-pro"),
        ("projects/acme/locations/eu/endpoints/123456", "_OTHER"),
        ("anthropic/claude-fable-5-1:beta", "claude-fable-5-1"),
        ("x-ai/grok-4-fast", "grok-4-fast"),
        ("mistral-large-2411", "mistral-large"),
        ("acme-prod-deployment", "_OTHER"),
        ("claude", "_OTHER"),
        ("ft:", "_OTHER"),
        ("", "_OTHER"),
        ("gpt-" + "A" * 5000, "_OTHER"),
    ],
)
def test_models_are_folded_to_a_known_base(name: str, base: str) -> None:
    assert base_model(name) == base


@pytest.mark.parametrize(
    ("vendor", "platform", "host", "name"),
    [
        ("anthropic", "anthropic", "", "anthropic"),
        ("anthropic", "bedrock", "", "aws.bedrock"),
        ("anthropic", "", "bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"),
        ("anthropic", "vertex", "", "gcp.vertex_ai"),
        ("openai", "azure", "", "azure.ai.openai"),
        ("anthropic", "azure", "", "azure.ai.inference"),
        ("google", "gemini", "", "gcp.gemini"),
        ("google", "", "", "gcp.gen_ai"),
        ("google", "", "eu-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("xai", "xai", "", "x_ai"),
        ("zhipu", "zhipu", "", "zhipu"),
        ("anthropic", "openrouter", "openrouter.ai", "anthropic"),
        ("google", "openrouter", "openrouter.ai", "gcp.gen_ai"),
        ("", "openrouter", "openrouter.ai", "openrouter"),
        ("Evil Vendor!", "", "", "other"),
    ],
)
def test_providers_have_their_conventional_names(
    vendor: str, platform: str, host: str, name: str
) -> None:
    assert provider_name(vendor, platform=platform, host=host) == name


def test_an_unknown_provider_is_folded_on_metrics() -> None:
    bench = Bench()
    bench.call(report(finding(), facts=Facts(dialect="anthropic", vendor="zhipu", model="glm-5")))
    assert bench.sums("otel_sealed.calls") == {("_OTHER", "glm-5", "ok"): 1}


def test_a_counter_in_a_sampled_call_points_to_its_span() -> None:
    bench = Bench()
    bench.call(report(finding(Fate.DROPPED, Verdict.BREAKS)))
    exemplars = [e for p in bench.points("otel_sealed.violations") for e in p.exemplars]
    context = bench.last.get_span_context()
    assert context is not None
    assert {e.span_id for e in exemplars if e.span_id} == {context.span_id}


@pytest.mark.parametrize(("seconds", "linked"), [(SLOW_S / 2, False), (SLOW_S, True)])
def test_a_check_that_took_long_points_to_its_span(seconds: float, linked: bool) -> None:  # noqa: FBT001
    bench = Bench()
    bench.call(report(facts=Facts(dialect="anthropic", vendor="anthropic")), check_s=seconds)
    points = bench.points("otel_sealed.check.duration")
    assert [1] == [p.count for p in points]
    assert linked == any(e.span_id for p in points for e in p.exemplars)
