"""One call, one GenAI client span: another tracer's while it is open, else our own."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from otel_sealed.instrument import uninstrument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from tests.instrument.conftest import Recorder, Spans, Wire

pytestmark = pytest.mark.usefixtures("handle")

NATIVE = hasattr(anthropic, "_tracing") or hasattr(anthropic._base_client, "start_api_call_span")
native = pytest.mark.skipif(not NATIVE, reason="this release of anthropic has no spans of its own")

ASK: dict[str, Any] = {
    "model": "claude-x",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hi"}],
}
MESSAGE = (
    b'{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],'
    b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}'
)
REFUSAL = b'{"type":"error","error":{"type":"invalid_request_error","message":"x"}}'
START = (
    b'event: message_start\ndata: {"type":"message_start","message":'
    + MESSAGE.replace(b'"end_turn"', b"null")
    + b"}\n\n"
)
TEXT = [
    (
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
        b'"content_block":{"type":"text","text":""}}\n\n'
    ),
    (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"hi"}}\n\n'
    ),
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
]
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
ERROR = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'


@pytest.fixture
def traced(
    wire: Wire,
    spans: Spans,
) -> Iterator[anthropic.Anthropic]:
    """A client whose SDK makes spans of its own."""
    with anthropic.Anthropic(
        api_key="k",
        base_url=wire.url,
        max_retries=1,
        open_telemetry={"tracer_provider": spans.provider},
    ) as client:
        yield client


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """OpenTelemetry logs whoever touches a span after its end; nobody may."""
    with caplog.at_level(logging.WARNING):
        yield
    late = [r.getMessage() for r in caplog.records if r.name.startswith("opentelemetry")]
    assert late == []


def ours(span: ReadableSpan) -> bool:
    return any(str(key).startswith("otel_sealed.") for key in span.attributes or {})


def written(spans: Spans) -> list[tuple[str, bool]]:
    """(name, whether we wrote on it) of every span that ended."""
    return [(span.name, ours(span)) for span in spans.ended]


@native
def test_native_whole(traced: anthropic.Anthropic, wire: Wire, spans: Spans) -> None:
    """A whole reply is written on the SDK's own span, and there is no other."""
    wire.answers(MESSAGE)
    traced.messages.create(**ASK)
    assert written(spans) == [("anthropic.messages.create", True)]


@native
def test_native_refusal(
    traced: anthropic.Anthropic, wire: Wire, spans: Spans, tracker: Recorder
) -> None:
    """A refusal is written on the SDK's own span, with its body observed before it ends."""
    wire.answers(REFUSAL, status=400)
    with pytest.raises(anthropic.BadRequestError):
        traced.messages.create(**ASK)
    assert written(spans) == [("anthropic.messages.create", True)]
    assert (tracker.one.response, tracker.one.status) == (REFUSAL, 400)


@native
def test_native_retries(traced: anthropic.Anthropic, wire: Wire, spans: Spans) -> None:
    """A retried call is one span."""
    wire.answers(REFUSAL, status=529, headers={"retry-after-ms": "1"})
    wire.answers(MESSAGE)
    traced.messages.create(**ASK)
    assert written(spans) == [("anthropic.messages.create", True)]


@native
def test_native_stream(
    traced: anthropic.Anthropic, wire: Wire, spans: Spans, tracker: Recorder
) -> None:
    """A stream read to its end is written on the SDK's own span."""
    wire.streams(START, *TEXT, STOP)
    list(traced.messages.create(**ASK, stream=True))
    assert written(spans) == [("anthropic.messages.create", True)]
    assert tracker.one.complete is True


@native
@pytest.mark.parametrize("how", ["close", "with", "helper", "raw", "drop"])
def test_native_early_end(
    traced: anthropic.Anthropic, wire: Wire, spans: Spans, tracker: Recorder, how: str
) -> None:
    """The SDK ends its span before it closes the body; what is known is on it all the same."""
    wire.streams(START, *TEXT, STOP)
    early_end(traced, how)
    gc.collect()
    assert written(spans) == [("anthropic.messages.create", True)]
    assert tracker.one.complete in (True, False)


def early_end(client: anthropic.Anthropic, how: str) -> None:
    if how == "helper":
        with client.messages.stream(**ASK) as helper:
            next(iter(helper))
    elif how == "raw":
        with client.messages.with_streaming_response.create(**ASK, stream=True) as raw:
            next(raw.iter_lines())
    else:
        stream = client.messages.create(**ASK, stream=True)
        if how == "with":
            with stream:
                next(stream)
        else:
            next(iter(stream))
            if how == "close":
                stream.close()


@native
def test_native_stream_error(
    traced: anthropic.Anthropic, wire: Wire, spans: Spans, tracker: Recorder
) -> None:
    """An error event ends the SDK's span; it is in what we observed before that."""
    wire.streams(START, ERROR)
    with pytest.raises(anthropic.APIStatusError):
        list(traced.messages.create(**ASK, stream=True))
    assert written(spans) == [("anthropic.messages.create", True)]
    assert tracker.one.events == START + ERROR


@native
def test_native_connection_error(
    spans: Spans,
) -> None:
    """A call that met no server is written on the SDK's own span."""
    client = anthropic.Anthropic(
        api_key="k",
        base_url="http://127.0.0.1:9",
        max_retries=0,
        open_telemetry={"tracer_provider": spans.provider},
    )
    with client, pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**ASK)
    assert written(spans) == [("anthropic.messages.create", True)]


@native
def test_native_post(traced: anthropic.Anthropic, wire: Wire, spans: Spans) -> None:
    """`client.post` has no span of the SDK's, so it gets ours."""
    wire.answers(MESSAGE)
    traced.post("/v1/messages", body=ASK, cast_to=object)
    assert written(spans) == [("chat claude-x", True)]


@native
async def test_native_async(
    wire: Wire,
    spans: Spans,
) -> None:
    """Async calls, streams, early ends and cancellation are one span each, the SDK's."""
    wire.answers(MESSAGE)
    client = anthropic.AsyncAnthropic(
        api_key="k", base_url=wire.url, open_telemetry={"tracer_provider": spans.provider}
    )
    async with client:
        await client.messages.create(**ASK)
        wire.replies.clear()
        wire.streams(START, *TEXT, STOP)
        async for _ in await client.messages.create(**ASK, stream=True):
            pass
        async with await client.messages.create(**ASK, stream=True) as stream:
            await anext(stream)
        task = asyncio.create_task(client.messages.create(**ASK))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    names = [name for name, _ in written(spans)]
    assert names == ["anthropic.messages.create"] * len(names)
    assert [mine for _, mine in written(spans)][:3] == [True] * 3


@native
def test_native_middleware(wire: Wire, spans: Spans, tracker: Recorder) -> None:
    """Middleware that sends an attempt again makes one exchange: the last one."""
    wire.answers(REFUSAL, status=400)
    wire.answers(MESSAGE)

    def again(request: Any, call_next: Any) -> Any:
        first = call_next(request)
        return first if first.http_response.is_success else call_next(request)

    client = anthropic.Anthropic(
        api_key="k",
        base_url=wire.url,
        middleware=[again],
        open_telemetry={"tracer_provider": spans.provider},
    )
    with client:
        assert client.messages.create(**ASK).id == "msg_1"
    assert (tracker.one.response, tracker.one.status) == (MESSAGE, 200)
    assert written(spans) == [("anthropic.messages.create", True)]


@pytest.mark.parametrize(
    ("attributes", "kind", "enriched"),
    [
        ({"gen_ai.operation.name": "chat"}, SpanKind.CLIENT, True),
        ({"gen_ai.operation.name": "chat"}, SpanKind.INTERNAL, True),
        (
            {"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "m"},
            SpanKind.CLIENT,
            True,
        ),
        ({"openinference.span.kind": "LLM"}, SpanKind.INTERNAL, True),
        ({"openinference.span.kind": "AGENT"}, SpanKind.INTERNAL, False),
        ({"gen_ai.operation.name": "invoke_agent"}, SpanKind.CLIENT, False),
        ({"gen_ai.operation.name": "execute_tool"}, SpanKind.INTERNAL, False),
        ({}, SpanKind.SERVER, False),
    ],
)
def test_who_is_enriched(
    wire: Wire,
    spans: Spans,
    attributes: dict[str, str],
    kind: SpanKind,
    *,
    enriched: bool,
) -> None:
    """Only a span that stands for one call of a model is written on; below others is ours."""
    wire.answers(MESSAGE)
    tracer = spans.provider.get_tracer("somebody")
    with (
        anthropic.Anthropic(api_key="k", base_url=wire.url) as client,
        tracer.start_as_current_span("theirs", kind=kind, attributes=attributes) as theirs,
    ):
        client.messages.create(**ASK)
    if enriched:
        assert written(spans) == [("theirs", True)]
    else:
        assert written(spans) == [("chat claude-x", True), ("theirs", False)]
        parent = spans.ended[0].parent
        assert parent is not None
        assert parent.span_id == theirs.get_span_context().span_id


def test_their_span_keeps_its_own(
    wire: Wire,
    spans: Spans,
) -> None:
    """On a span of somebody else no status, no `error.type` and no `gen_ai.*` is set."""
    wire.answers(REFUSAL, status=400)
    given = {"gen_ai.operation.name": "chat"}
    tracer = spans.provider.get_tracer("somebody")
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        span = tracer.start_span("theirs", kind=SpanKind.CLIENT, attributes=given)
        current = trace.use_span(span, record_exception=False, set_status_on_exception=False)
        with current, pytest.raises(anthropic.BadRequestError):
            client.messages.create(**ASK)
        assert "end" not in vars(span)
        span.end()
    (ended,) = spans.ended
    assert ended.status.is_unset
    foreign = {
        k: v for k, v in (ended.attributes or {}).items() if not k.startswith("otel_sealed.")
    }
    assert foreign == given


def test_span_that_ends_before_its_stream(
    wire: Wire,
    spans: Spans,
) -> None:
    """A span that ends around the call alone is left to itself; the stream gets ours, below it."""
    wire.streams(START, *TEXT, STOP)
    tracer = spans.provider.get_tracer("somebody")
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        with tracer.start_as_current_span(
            "theirs", kind=SpanKind.CLIENT, attributes={"gen_ai.operation.name": "chat"}
        ):
            stream = client.messages.create(**ASK, stream=True)
        assert written(spans) == [("theirs", False)]
        list(stream)
    assert written(spans) == [("theirs", False), ("chat claude-x", True)]
    parent, theirs = spans.ended[1].parent, spans.ended[0].context
    assert parent is not None
    assert theirs is not None
    assert parent.span_id == theirs.span_id


def test_second_call_under_one_span(
    wire: Wire,
    spans: Spans,
) -> None:
    """A second call under the same span gets its own, lest it replaces what the first wrote."""
    wire.answers(MESSAGE)
    tracer = spans.provider.get_tracer("somebody")
    with (
        anthropic.Anthropic(api_key="k", base_url=wire.url) as client,
        tracer.start_as_current_span(
            "theirs", kind=SpanKind.CLIENT, attributes={"gen_ai.operation.name": "chat"}
        ),
    ):
        client.messages.create(**ASK)
        client.messages.create(**ASK)
    assert written(spans) == [("chat claude-x", True), ("theirs", True)]


def test_span_without_room_for_a_shadow(wire: Wire, spans: Spans) -> None:
    """A span whose class has no room for our shadow is left alone."""

    class Slotted(trace.NonRecordingSpan):
        __slots__ = ("attributes", "kind")

        def is_recording(self) -> bool:
            return True

        def __setattr__(self, name: str, value: object) -> None:
            if name == "end":
                raise AttributeError(name)
            super().__setattr__(name, value)

    theirs = Slotted(trace.INVALID_SPAN_CONTEXT)
    theirs.attributes = {"gen_ai.operation.name": "chat"}
    theirs.kind = SpanKind.CLIENT
    wire.answers(MESSAGE)
    with (
        anthropic.Anthropic(api_key="k", base_url=wire.url) as client,
        trace.use_span(theirs),
    ):
        client.messages.create(**ASK)
    assert written(spans) == [("chat claude-x", True)]


def test_own_span(wire: Wire, spans: Spans, tracker: Recorder) -> None:
    """Our own span is a client span that began with the call; the exchange names it."""
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK)
    (span,) = spans.ended
    assert span.context is not None
    assert (span.kind, tracker.one.origin) == (
        SpanKind.CLIENT,
        span.context.trace_id.to_bytes(16) + span.context.span_id.to_bytes(8),
    )
    attributes = span.attributes or {}
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["server.address"] == "127.0.0.1"
    assert attributes["server.port"] == int(wire.url.rpartition(":")[2])
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time > span.start_time


@pytest.mark.parametrize("key", ["suppress_instrumentation", "api"])
def test_suppressed(wire: Wire, spans: Spans, tracker: Recorder, key: str) -> None:
    """Both spellings of the suppression key make us stand aside."""
    name = key if key != "api" else otel_context._SUPPRESS_INSTRUMENTATION_KEY
    wire.answers(MESSAGE)
    token = otel_context.attach(otel_context.set_value(name, True))
    try:
        with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
            client.messages.create(**ASK)
    finally:
        otel_context.detach(token)
    assert (tracker.exchanges, written(spans)) == ([], [])


def test_conversation_id(wire: Wire, spans: Spans, tracker: Recorder) -> None:
    """The conversation that the active span names is the exchange's."""
    wire.answers(MESSAGE)
    tracer = spans.provider.get_tracer("somebody")
    with (
        anthropic.Anthropic(api_key="k", base_url=wire.url) as client,
        tracer.start_as_current_span("theirs", attributes={"gen_ai.conversation.id": "c1"}),
    ):
        client.messages.create(**ASK)
    assert tracker.one.conversation == "c1"


def test_stream_after_uninstrument(wire: Wire, tracker: Recorder) -> None:
    """A stream that was begun before `uninstrument` is observed to its end."""
    wire.streams(START, *TEXT, STOP)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        stream = client.messages.create(**ASK, stream=True)
        uninstrument()
        list(stream)
    assert tracker.one.events == wire.seen[0].sent


def test_dropped_unread(wire: Wire, tracker: Recorder) -> None:
    """A stream that is dropped unread is observed, as cut."""
    wire.streams(START, *TEXT, STOP)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK, stream=True)
        gc.collect()
        uninstrument()
        assert tracker.one.complete is False
