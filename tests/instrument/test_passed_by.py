"""Another instrumentation kept `request` as it was before us; its calls are observed as well."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from opentelemetry import context as otel_context
from opentelemetry.trace import SpanKind

from otel_sealed.instrument import finalizing, instrument, uninstrument

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder, Spans, Wire

ASK: dict[str, Any] = {"model": "claude-x", "max_tokens": 9, "messages": []}
MESSAGE = b'{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[]}'
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
REFUSAL = b'{"type":"error","error":{"type":"invalid_request_error","message":"x"}}'
OVERLOADED: dict[str, Any] = {"status": 529, "headers": {"retry-after-ms": "1"}}


@pytest.fixture
def client(wire: Wire, spans: Spans, tracker: Recorder) -> Iterator[anthropic.Anthropic]:
    """A client whose class got a `request` of another's before we came."""
    kept = anthropic.Anthropic.request

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        return kept(self, *args, **kwargs)

    anthropic.Anthropic.request = theirs  # type: ignore[method-assign]
    instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
    try:
        with anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=1) as made:
            yield made
    finally:
        del anthropic.Anthropic.request
        uninstrument()


def test_a_whole_reply(
    client: anthropic.Anthropic, wire: Wire, tracker: Recorder, spans: Spans
) -> None:
    wire.answers(MESSAGE)
    for _ in range(2):
        assert client.messages.create(**ASK).id == "msg_1"
    assert [seen.response for seen in tracker.exchanges] == [MESSAGE] * 2
    assert [seen.request for seen in tracker.exchanges] == [seen.body for seen in wire.seen]
    assert spans.names == ["chat claude-x"] * 2


def test_a_stream(client: anthropic.Anthropic, wire: Wire, tracker: Recorder, spans: Spans) -> None:
    wire.streams(STOP)
    stream = client.messages.create(**ASK, stream=True)
    assert tracker.exchanges == []
    assert [event.type for event in stream] == ["message_stop"]
    assert (tracker.one.events, tracker.one.complete) == (STOP, True)
    assert spans.names == ["chat claude-x"]


def test_a_refusal_and_a_retry(
    client: anthropic.Anthropic, wire: Wire, tracker: Recorder, spans: Spans
) -> None:
    """A retried call is one call, and the next one is another."""
    wire.answers(REFUSAL, **OVERLOADED)
    wire.answers(MESSAGE)
    wire.answers(REFUSAL, status=400)
    client.messages.create(**ASK)
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(**ASK)
    seen = [(exchange.status, exchange.response) for exchange in tracker.exchanges]
    assert seen == [(200, MESSAGE), (400, REFUSAL)]
    assert spans.names == ["chat claude-x"] * 2
    assert (spans.ended[1].attributes or {})["error.type"] == "anthropic.BadRequestError"


def test_a_call_without_a_response_is_told_with_the_next_one(
    client: anthropic.Anthropic, wire: Wire, tracker: Recorder
) -> None:
    wire.answers(b"", cut=True)
    with pytest.raises(anthropic.APIConnectionError):
        client.with_options(base_url="http://127.0.0.1:9").messages.create(**ASK)
    wire.replies.clear()
    wire.answers(MESSAGE)
    client.messages.create(**ASK)
    gc.collect()
    finalizing.catch_up()
    assert [exchange.status for exchange in tracker.exchanges] == [None, 200]


def test_what_is_no_turn_and_what_is_suppressed_is_not_looked_at(
    client: anthropic.Anthropic, wire: Wire, tracker: Recorder, spans: Spans
) -> None:
    wire.answers(b'{"input_tokens":1}')
    client.messages.count_tokens(model="claude-x", messages=[])
    wire.replies.clear()
    wire.answers(MESSAGE)
    token = otel_context.attach(otel_context.set_value("suppress_instrumentation", True))
    try:
        client.messages.create(**ASK)
    finally:
        otel_context.detach(token)
    assert (tracker.exchanges, spans.names) == ([], [])


async def test_an_async_client_that_kept_its_own(
    wire: Wire, spans: Spans, tracker: Recorder
) -> None:
    """One client, not its class, has a `request` of another's."""
    wire.answers(MESSAGE)
    async with anthropic.AsyncAnthropic(api_key="k", base_url=wire.url) as client:
        kept = client.request

        async def theirs(*args: Any, **kwargs: Any) -> Any:
            return await kept(*args, **kwargs)

        client.request = theirs  # type: ignore[method-assign]
        instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
        for _ in range(2):
            await client.messages.create(**ASK)
    assert [seen.response for seen in tracker.exchanges] == [MESSAGE] * 2
    assert spans.names == ["chat claude-x"] * 2


@pytest.mark.usefixtures("handle")
def test_a_tracer_that_silences_others_under_its_own_span_is_written_on(
    wire: Wire, spans: Spans, tracker: Recorder
) -> None:
    """As logfire does: the suppression is against second spans, and there is none."""
    wire.answers(MESSAGE)
    tracer = spans.provider.get_tracer("another")
    with (
        anthropic.Anthropic(api_key="k", base_url=wire.url) as client,
        tracer.start_as_current_span(
            "theirs", kind=SpanKind.INTERNAL, attributes={"gen_ai.operation.name": "chat"}
        ),
    ):
        token = otel_context.attach(otel_context.set_value("suppress_instrumentation", True))
        try:
            client.messages.create(**ASK)
        finally:
            otel_context.detach(token)
    assert (spans.names, len(tracker.exchanges)) == (["theirs"], 1)
    assert "otel_sealed.carry" in (spans.ended[0].attributes or {})
