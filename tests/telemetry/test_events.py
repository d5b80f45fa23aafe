from __future__ import annotations

from typing import Any

import pytest
from opentelemetry._logs import SeverityNumber

from otel_sealed import vocab
from otel_sealed.model import (
    Cause,
    Confidence,
    Facts,
    Fate,
    Locus,
    ProviderVerdict,
    Rejection,
    Removal,
    Verdict,
)
from otel_sealed.telemetry.events import disagree, fingerprint
from otel_sealed.telemetry.settings import Settings
from tests.telemetry.builders import SEAL, Bench, finding, report

PYTHON = {"string": str, "int": int, "boolean": bool}
TYPES = {attribute.name: attribute.type for attribute in vocab.ATTRIBUTES}


def violation(**given: Any) -> Any:
    """The attributes of the event of one violating finding."""
    bench = Bench()
    facts = Facts(
        dialect="anthropic", vendor="anthropic", model="claude-opus-5", host="api.anthropic.com"
    )
    bench.call(
        report(finding(**{"fate": Fate.MODIFIED, "verdict": Verdict.BREAKS, **given}), facts=facts)
    )
    (record,) = bench.events()
    return record


def test_the_event_stands_alone() -> None:
    record = violation(
        rule="A1",
        cause=Cause.MASKED,
        detail="within 2048-2560 of 4096",
        locus=Locus.PROCESS,
        confidence=Confidence.PROVEN,
        disputed=True,
        rejection=Rejection.SIGNATURE_INVALID,
        provider_verdict=ProviderVerdict.REJECTED,
    )
    expected = {
        "otel_sealed.artifact": SEAL,
        "otel_sealed.fate": "modified",
        "otel_sealed.verdict": "breaks",
        "otel_sealed.rule": "A1",
        "otel_sealed.disputed": True,
        "otel_sealed.cause": "masked",
        "otel_sealed.diagnosis": "masked within 2048-2560 of 4096",
        "otel_sealed.locus": "process",
        "otel_sealed.confidence": "proven",
        "otel_sealed.provider_verdict": "rejected",
        "otel_sealed.rejection.class": "signature_invalid",
        "otel_sealed.received.position": "content.0",
        "otel_sealed.returned.position": "messages.1.content.0",
        "otel_sealed.received.size": 100,
        "otel_sealed.returned.size": 100,
        "otel_sealed.origin.trace_id": bytes(range(16)).hex(),
        "otel_sealed.origin.span_id": bytes(range(16, 24)).hex(),
        "otel_sealed.conversation.key": "11" * 16,
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-opus-5",
        "server.address": "api.anthropic.com",
        "otel_sealed.sdk.versions": ("anthropic=2.14.0",),
        "otel_sealed.fingerprint": fingerprint(SEAL, "modified", "A1", "anthropic"),
        "otel_sealed.occurrences": 1,
        "event.name": "otel_sealed.violation",
    }
    assert dict(record.attributes) == expected
    assert record.event_name == "otel_sealed.violation"
    assert record.body == (
        f"{SEAL} modified at messages.1.content.0 in a request to anthropic [A1]: refused by "
        "contract; send it back byte for byte as it came (conversation 11111111)"
    )


def test_event_values_have_the_types_of_the_vocabulary() -> None:
    record = violation(rule="A1")
    assert set(record.attributes) <= set(vocab.VIOLATION.attributes)
    for name, value in record.attributes.items():
        if not TYPES[name].endswith("[]"):
            assert type(value) is PYTHON[TYPES[name]]


@pytest.mark.parametrize(
    ("said", "severity"),
    [
        (ProviderVerdict.REJECTED, SeverityNumber.ERROR),
        (ProviderVerdict.UNREPORTED, SeverityNumber.ERROR),
        (ProviderVerdict.ACCEPTED, SeverityNumber.WARN),
        (ProviderVerdict.REMOVED, SeverityNumber.WARN),
    ],
)
def test_it_is_an_error_unless_the_provider_took_it(
    said: ProviderVerdict, severity: SeverityNumber
) -> None:
    bench = Bench()
    bench.call(report(finding(Fate.MODIFIED, Verdict.BREAKS), provider_verdict=said))
    (record,) = bench.events()
    assert record.severity_number is severity
    assert record.severity_text == severity.name


def test_a_recorded_event_belongs_to_its_span() -> None:
    bench = Bench()
    bench.call(report(finding(Fate.MODIFIED, Verdict.BREAKS)))
    (record,) = bench.events()
    context = bench.last.get_span_context()
    assert context is not None
    assert (record.trace_id, record.span_id) == (context.trace_id, context.span_id)


@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.ALLOWED, Verdict.UNVERIFIABLE])
def test_only_violations_are_events(verdict: Verdict) -> None:
    bench = Bench()
    bench.call(report(finding(Fate.DROPPED, verdict)))
    assert bench.events() == []


def test_held_back_events_are_counted_in_the_next_one() -> None:
    bench = Bench(settings=Settings(events_per_hour=1))
    for rule in ("A1", "A2", "A3"):
        bench.call(report(finding(Fate.MODIFIED, Verdict.BREAKS, rule=rule)))
    bench.now = 4000.0
    bench.call(report(finding(Fate.MODIFIED, Verdict.BREAKS, rule="A4")))
    assert [r.attributes.get("otel_sealed.suppressed") for r in bench.events()] == [None, 2]


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    assert fingerprint("a.b.c", "modified", "A1", "anthropic") == "84128f1df092f79b"


def test_without_diagnosis_the_event_says_only_the_cause() -> None:
    bench = Bench(settings=Settings(diagnose=False))
    bench.call(report(finding(Fate.MODIFIED, Verdict.BREAKS, cause=Cause.MASKED, detail="at 1")))
    (record,) = bench.events()
    assert record.attributes["otel_sealed.cause"] == "masked"
    assert "otel_sealed.diagnosis" not in record.attributes


def test_a_diagnosis_that_is_no_plain_phrase_is_left_out() -> None:
    record = violation(cause=Cause.MASKED, detail="EqQBCkYIBxgCKkCanaryCanary")
    assert "otel_sealed.diagnosis" not in record.attributes


BREAKS = report(finding(Fate.DROPPED, Verdict.BREAKS))
REMOVED = {"provider_verdict": ProviderVerdict.REMOVED}
REJECTED = {"provider_verdict": ProviderVerdict.REJECTED}
DROP = Facts(dialect="anthropic", vendor="anthropic", flags=("drop_block",))


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        (BREAKS, True),
        (report(finding(Fate.DROPPED, Verdict.BREAKS), **REJECTED), False),
        (report(finding(Fate.DROPPED, Verdict.DEGRADES)), False),
        (report(finding()), False),
        (report(finding(), rejection=Rejection.SIGNATURE_INVALID, **REJECTED), True),
        (report(rejection=Rejection.SIGNATURE_INVALID, **REJECTED), True),
        (report(finding(), rejection=Rejection.OTHER, **REJECTED), False),
        (report(finding(), **REJECTED), False),
        (
            report(
                finding(Fate.UNKNOWN, Verdict.UNVERIFIABLE),
                rejection=Rejection.SIGNATURE_INVALID,
                **REJECTED,
            ),
            False,
        ),
        (report(finding(), removals=(Removal("model_mismatch"),), **REMOVED), True),
        (report(finding(), removals=(Removal("model_mismatch", allowed=True),), **REMOVED), False),
        (report(finding(), removals=(Removal("turn_boundary"),), **REMOVED), False),
        (report(finding(), facts=DROP, removals=(Removal("prefix_mismatch"),), **REMOVED), False),
        (report(finding(), provider_verdict=ProviderVerdict.UNREPORTED), False),
    ],
)
def test_the_provider_and_we_differ(given: Any, differs: bool) -> None:  # noqa: FBT001
    assert disagree(given) is differs


def test_a_disagreement_is_an_event_of_its_own_and_a_warning() -> None:
    bench = Bench()
    for _ in range(3):
        bench.call(report(finding(), rejection=Rejection.SIGNATURE_INVALID, **REJECTED))
    (record,) = bench.events("otel_sealed.disagreement")
    assert record.severity_number is SeverityNumber.WARN
    assert dict(record.attributes) == {
        "otel_sealed.verdict": "ok",
        "otel_sealed.provider_verdict": "rejected",
        "otel_sealed.rejection.class": "signature_invalid",
        "otel_sealed.conversation.key": "11" * 16,
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-opus-5",
        "otel_sealed.sdk.versions": ("anthropic=2.14.0",),
        "otel_sealed.occurrences": 1,
        "event.name": "otel_sealed.disagreement",
    }
