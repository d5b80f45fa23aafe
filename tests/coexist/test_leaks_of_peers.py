"""What real packages write into spans: our exporter lets no sealed value out, the alarm rings."""

from __future__ import annotations

import base64

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_sealed.instrument import instrument
from otel_sealed.telemetry import leaks
from otel_sealed.telemetry.leaks import LeakAlarm
from otel_sealed.telemetry.redaction import RedactingSpanExporter
from otel_sealed.testing.strict import StrictProvider
from tests.coexist.conftest import Spans
from tests.coexist.peers import PEERS, QUESTION, Peer, drive

pytestmark = [
    # Their deprecations are theirs to mend.
    pytest.mark.filterwarnings("default"),
    pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS),
]

# Measured: OpenLLMetry leaves reasoning items and blocks out, logfire those of OpenAI, and so do
# OpenTelemetry's own of OpenAI and Gemini.
SILENT = frozenset(
    {
        "opentelemetry.instrumentation.genai.openai",
        "opentelemetry.instrumentation.google_genai",
        "opentelemetry.instrumentation.anthropic",
        "opentelemetry.instrumentation.openai.v1",
        "logfire.openai",
    }
)


def spellings(value: str) -> set[str]:
    """Forty characters of a value as text, in the other alphabet, and as the repr of its bytes."""
    found = {value, value.replace("+", "-").replace("/", "_")}
    plain = value.rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 != 1:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4))
        found.add(repr(data)[2:-1])
    return {text[:40] for text in found}


def texts(spans: tuple[ReadableSpan, ...]) -> str:
    """All that a span holds of text, as it is."""
    parts: list[str] = []
    for span in spans:
        parts.append(span.name)
        for attributes in (span.attributes, *(event.attributes for event in span.events)):
            parts += [f"{key}={value!s}" for key, value in (attributes or {}).items()]
    return "\n".join(parts)


def test_no_sealed_value_is_exported_and_the_alarm_rings_once(
    peer: Peer, spans: Spans, provider: StrictProvider
) -> None:
    clean, bare = InMemorySpanExporter(), InMemorySpanExporter()
    told: list[leaks.Leak] = []
    off = peer.put(spans)
    instrument(peer.sdk, tracer_provider=spans.provider)
    assert leaks._shared is not None
    leaks._shared._tell = told.append
    try:
        drive(peer.sdk, provider)
        drive(peer.sdk, provider)
        plain = spans.ended
        RedactingSpanExporter(clean).export(plain)
        RedactingSpanExporter(bare, prompts=True).export(plain)
        alarm = LeakAlarm()
        for _ in range(2):
            for span in plain:
                alarm.on_end(span)
    finally:
        off()
    sealed = {text for minted in provider.minted for text in spellings(minted.value)}
    before, after = texts(plain), texts(clean.get_finished_spans())
    assert {text for text in sealed if text in after} == set()
    leaked = any(text in before for text in sealed)
    assert leaked == (peer.scope not in SILENT)
    assert leaked == (f"{peer.scope}" in {leak.scope for leak in told})
    assert len(told) == len({(leak.scope, leak.key) for leak in told})
    assert QUESTION in before
    assert QUESTION not in texts(bare.get_finished_spans())


def test_spans_that_leak_nothing_are_exported_as_they_are(
    peer: Peer, spans: Spans, provider: StrictProvider
) -> None:
    off = peer.put(spans)
    instrument(peer.sdk, tracer_provider=spans.provider)
    seen: list[ReadableSpan] = []

    class Exporter(InMemorySpanExporter):
        def export(self, spans: object) -> object:  # type: ignore[override]
            seen.extend(spans)  # type: ignore[arg-type]
            return None

    try:
        drive(peer.sdk, provider, turns=1)
        RedactingSpanExporter(Exporter()).export(spans.ended)
    finally:
        off()
    sealed = {text for minted in provider.minted for text in spellings(minted.value)}
    for before, after in zip(spans.ended, seen, strict=True):
        held = any(text in texts((before,)) for text in sealed)
        assert (after is before) == (not held)
        assert set(after.attributes or {}) == set(before.attributes or {})
