"""On a span that is nearly full nothing of its owner is pushed out."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import SpanKind

from otel_sealed.instrument import instrument
from otel_sealed.testing.strict import StrictProvider
from tests.coexist.conftest import Spans
from tests.coexist.peers import drive


@pytest.mark.parametrize("held", [60, 95, 96, 120, 128])
def test_a_span_that_holds_many_attributes_loses_none(
    held: int, spans: Spans, provider: StrictProvider
) -> None:
    instrument("anthropic", tracer_provider=spans.provider)
    given: dict[str, Any] = {f"peer.{n}": n for n in range(held - 1)}
    given["gen_ai.operation.name"] = "chat"
    tracer = spans.provider.get_tracer("peer")
    with tracer.start_as_current_span("theirs", kind=SpanKind.CLIENT, attributes=given):
        drive("anthropic", provider, turns=1)
    theirs = next(span for span in spans.ended if span.name == "theirs")
    attributes = dict(theirs.attributes or {})
    assert {key: attributes.get(key) for key in given} == given
    assert (theirs.dropped_attributes, len(attributes) <= max(96, held)) == (0, True)
