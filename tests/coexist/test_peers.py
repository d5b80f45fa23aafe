"""Beside another instrumentation: one span a call is ours, and either may come and go first."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from otel_sealed.instrument import instrument
from otel_sealed.testing.strict import StrictProvider
from tests.coexist.conftest import Spans
from tests.coexist.peers import PEERS, Peer, drive

pytestmark = [
    # Their deprecations are theirs to mend.
    pytest.mark.filterwarnings("default"),
    pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS),
]
both_orders = pytest.mark.parametrize("first", ["ours", "theirs"])


def scopes(spans: Spans) -> list[str]:
    return [span.instrumentation_scope.name for span in spans.ended if span.instrumentation_scope]


def marked(spans: Spans) -> list[ReadableSpan]:
    return [span for span in spans.ended if "otel_sealed.carry" in (span.attributes or {})]


def ours(peer: Peer, spans: Spans) -> Any:
    return instrument(peer.sdk, tracer_provider=spans.provider)


@both_orders
def test_exactly_one_span_of_a_call_carries_our_attributes(
    peer: Peer, first: str, spans: Spans, provider: StrictProvider
) -> None:
    if first == "ours":
        ours(peer, spans)
    off = peer.put(spans)
    ours(peer, spans)
    try:
        calls = drive(peer.sdk, provider)
    finally:
        off()
    verdicts = [(span.attributes or {}).get("otel_sealed.verdict") for span in marked(spans)]
    assert [None, "ok", "ok"] == verdicts
    assert calls == len(marked(spans))
    assert peer.scope in scopes(spans)


@both_orders
@pytest.mark.parametrize("gone", ["ours", "theirs"])
def test_taking_one_off_leaves_the_other_working(
    peer: Peer, first: str, gone: str, spans: Spans, provider: StrictProvider
) -> None:
    if first == "ours":
        handle = ours(peer, spans)
        off = peer.put(spans)
    else:
        off = peer.put(spans)
        handle = ours(peer, spans)
    (handle.uninstrument if gone == "ours" else off)()
    handle.mend()  # as whenever metrics are collected: some restore a method over ours
    calls = drive(peer.sdk, provider)
    seen = (len(marked(spans)), peer.scope in scopes(spans))
    (off if gone == "ours" else handle.uninstrument)()
    spans.exporter.clear()
    drive(peer.sdk, provider)
    assert seen == ((0, True) if gone == "ours" else (calls, peer.stays))
    assert (spans.ended == ()) is not peer.stays


def test_a_long_conversation_costs_their_span_no_attribute(
    peer: Peer, spans: Spans, provider: StrictProvider
) -> None:
    """With and without us their spans end with the same attributes of theirs."""
    off = peer.put(spans)
    try:
        drive(peer.sdk, provider, turns=8)
        without = theirs(peer, spans)
        spans.exporter.clear()
        ours(peer, spans)
        drive(peer.sdk, provider, turns=8)
    finally:
        off()
    assert without == theirs(peer, spans)


def theirs(peer: Peer, spans: Spans) -> list[tuple[list[str], int]]:
    """Of each span of theirs the keys of its own, and how many attributes it lost."""
    return [
        (
            sorted(key for key in span.attributes or {} if not key.startswith("otel_sealed.")),
            span.dropped_attributes,
        )
        for span in spans.ended
        if span.instrumentation_scope is not None and span.instrumentation_scope.name == peer.scope
    ]


def test_a_call_of_theirs_that_fails_is_one_span_with_our_verdict(
    peer: Peer, spans: Spans, provider: StrictProvider
) -> None:
    off = peer.put(spans)
    ours(peer, spans)
    provider.fail_next(529)
    try:
        with pytest.raises(Exception, match=r"529|Overloaded|overloaded"):
            drive(peer.sdk, provider, turns=1)
    finally:
        off()
    assert len(marked(spans)) == 1
