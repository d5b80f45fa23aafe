from __future__ import annotations

from threading import Thread
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_sealed.model import Confidence, Fate, ProviderVerdict, Verdict
from otel_sealed.telemetry.alerts import Alert
from otel_sealed.telemetry.processor import SealedSpanProcessor
from tests.telemetry.builders import SEAL, TEXT, Bench, digest, finding, received, report

FATES = ("otel_sealed.returned.fates", "otel_sealed.returned.verdicts")
JUDGED = (*FATES, "otel_sealed.findings", "otel_sealed.verdict", "otel_sealed.returned.rules")


def spans_of(*reports: Any, without: tuple[str, ...] = ()) -> list[ReadableSpan]:
    """Ended spans as another process would have made them, some attributes removed."""
    other, stripped = Bench(), Bench()
    for given in reports:
        attributes = other.call(given)
        span = stripped.emitter.tracer.start_span("chat")
        span.set_attributes({k: v for k, v in attributes.items() if k not in without})
        span.end()
    return list(stripped.spans.get_finished_spans())


def heard(spans: list[ReadableSpan], **given: Any) -> list[Alert]:
    alerts: list[Alert] = []
    processor = SealedSpanProcessor(callbacks=[alerts.append], strict=True, **given)
    for span in spans:
        processor.on_start(span)  # type: ignore[arg-type]
        processor.on_end(span)
    return alerts


MODIFIED = finding(Fate.MODIFIED, Verdict.BREAKS, rule="A1")


def test_another_processs_spans_without_fates_alarm_from_digests_alone_once() -> None:
    spans = spans_of(received(1), report(MODIFIED), without=JUDGED)
    assert not any(name in (span.attributes or {}) for span in spans for name in JUDGED)
    (alert,) = heard([*spans, spans[1], spans[1]])
    assert (alert.artifact, alert.fate, alert.digest) == (SEAL, Fate.MODIFIED, digest(2).hex())
    assert alert.confidence is Confidence.INFERRED
    assert alert.provider == "anthropic"
    assert alert.returned_position == "messages.1.content.0"
    assert alert.provider_verdict is ProviderVerdict.ACCEPTED


def test_another_processs_spans_with_fates_are_taken_at_their_word() -> None:
    (alert,) = heard(spans_of(received(1), report(MODIFIED)))
    assert (alert.fate, alert.verdict, alert.rule) == (Fate.MODIFIED, Verdict.BREAKS, "A1")
    assert alert.confidence is Confidence.PROVEN


def test_a_dropped_seal_alarms_by_its_verdict_and_never_by_its_digest() -> None:
    dropped = report(finding(Fate.DROPPED, Verdict.BREAKS))
    assert len(heard(spans_of(received(1), dropped))) == 1
    assert heard(spans_of(received(1), dropped, without=JUDGED)) == []


def test_an_intact_conversation_is_silent() -> None:
    back = report(finding(first=True))
    assert heard(spans_of(received(1), back)) == []
    assert heard(spans_of(received(1), back, without=JUDGED)) == []


def test_a_conversation_whose_receiving_span_was_not_seen_is_silent() -> None:
    assert heard(spans_of(report(MODIFIED), without=JUDGED)) == []
    other = received(1, conversation=b"\x22" * 16)
    assert heard(spans_of(other, report(MODIFIED), without=JUDGED)) == []


def test_a_kind_that_was_not_received_is_silent() -> None:
    stranger = finding(Fate.MODIFIED, Verdict.BREAKS, artifact="gemini.part.thought_signature")
    assert heard(spans_of(received(1), report(stranger), without=JUDGED)) == []


def test_a_stranger_stays_one_after_a_restart() -> None:
    old = finding(Fate.UNKNOWN, Verdict.UNVERIFIABLE, digest_out=digest(9))
    new = finding(first=True, digest_out=digest(1))
    calls = (
        report(old, received=received(1).received),
        report(old, new, received=received(2).received),
        report(old, finding(digest_out=digest(1)), finding(first=True, digest_out=digest(2))),
    )
    assert heard(spans_of(*calls)) == []
    assert heard(spans_of(*calls, without=JUDGED)) == []


def test_a_value_another_worker_received_is_unknown_and_silent() -> None:
    theirs = finding(Fate.UNKNOWN, Verdict.UNVERIFIABLE, digest_out=digest(9))
    assert heard(spans_of(received(1), report(theirs))) == []


def test_companions_are_not_compared_by_digest() -> None:
    text = finding(Fate.MODIFIED, Verdict.DEGRADES, artifact=TEXT)
    assert heard(spans_of(received(1), report(text), without=JUDGED)) == []


def test_where_not_all_that_came_in_is_listed_nothing_is_said() -> None:
    many = received(*range(100, 200))
    assert heard(spans_of(many, report(MODIFIED), without=JUDGED)) == []


def test_a_cut_digest_is_no_digest() -> None:
    first, second = spans_of(received(1), report(MODIFIED), without=JUDGED)
    bench = Bench()
    span = bench.emitter.tracer.start_span("chat")
    cut = dict(second.attributes or {})
    cut["otel_sealed.returned.digests"] = (digest(2).hex()[:16],)
    span.set_attributes(cut)
    span.end()
    assert heard([first, bench.last]) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"otel_sealed.conversation.key": 5},
        {"otel_sealed.conversation.key": "no hex!!"},
        {"otel_sealed.returned.artifacts": "text"},
        {"otel_sealed.returned.digests": ["a", "b", "c"]},
        {"otel_sealed.returned.sizes": ["x"]},
        {"otel_sealed.returned.positions": [1]},
        {"otel_sealed.returned.verdicts": ["nonsense"]},
        {"otel_sealed.received.count": "many"},
    ],
)
def test_attributes_of_any_kind_never_raise(broken: dict[str, Any]) -> None:
    first, second = spans_of(received(1), report(MODIFIED))
    bench = Bench()
    for span in (first, second):
        copy = bench.emitter.tracer.start_span("chat")
        copy.set_attributes({**dict(span.attributes or {}), **broken})
        copy.end()
    heard(list(bench.spans.get_finished_spans()))


def test_a_fault_of_ours_reaches_neither_the_application_nor_later_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults: list[tuple[str, str]] = []

    def fail(*_: Any) -> None:
        raise KeyError("x")

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    processor = SealedSpanProcessor(on_error=lambda *fault: faults.append(fault))
    monkeypatch.setattr(processor, "_on_end", fail)
    provider.add_span_processor(processor)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("t").start_as_current_span("chat"):
        pass
    assert faults == [("processor", "KeyError")]
    assert len(exporter.get_finished_spans()) == 1


def test_call_site_and_processor_together_tell_once() -> None:
    alerts: list[Alert] = []
    bench = Bench(with_processor=True, callbacks=[alerts.append])
    bench.call(received(1))
    bench.call(report(MODIFIED, finding(Fate.DROPPED, Verdict.BREAKS, digest_in=digest(5))))
    assert len(alerts) == 2
    assert {alert.confidence for alert in alerts} == {Confidence.PROVEN}
    assert len(bench.events()) == 2


def test_readable_companions_are_told_once_too() -> None:
    alerts: list[Alert] = []
    bench = Bench(with_processor=True, callbacks=[alerts.append])
    bench.call(report(finding(Fate.MODIFIED, Verdict.DEGRADES, artifact=TEXT)))
    bench.call(report(finding(Fate.PREFIX_CHANGED, Verdict.BREAKS, artifact="request.prefix")))
    assert len(alerts) == 2


def test_conversations_are_forgotten_longest_unused_first() -> None:
    first, second = spans_of(received(1), report(MODIFIED), without=JUDGED)
    others = spans_of(*(received(1, conversation=digest(n)) for n in range(10)))
    assert heard([first, *others, second], max_conversations=5) == []
    assert len(heard([first, *others, second], max_conversations=50)) == 1


def test_a_conversation_with_too_many_digests_falls_silent() -> None:
    many = [received(*range(n * 60 + 100, n * 60 + 160)) for n in range(70)]
    assert heard(spans_of(*many, report(MODIFIED), without=JUDGED)) == []


def test_eight_threads_end_spans_at_once_and_one_alert_comes() -> None:
    first, second = spans_of(received(1), report(MODIFIED), without=JUDGED)
    alerts: list[Alert] = []
    processor = SealedSpanProcessor(callbacks=[alerts.append], strict=True)
    processor.on_end(first)

    def end() -> None:
        for _ in range(50):
            processor.on_end(second)

    threads = [Thread(target=end) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(alerts) == 1
