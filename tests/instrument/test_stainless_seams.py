"""What we read is what the server received and sent, byte for byte, for real SDKs."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pydantic
import pytest

from otel_sealed.wire import Api

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.instrument.conftest import Recorder, Spans, Wire

pytestmark = pytest.mark.usefixtures("handle")

MESSAGE = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "thinking", "thinking": "é\u2028", "signature": "Ab+/cQ=="}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    ensure_ascii=False,
).encode()
RESPONSE = json.dumps(
    {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-x",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "Ab+/cQ=="}
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
    }
).encode()
ASK: dict[str, Any] = {
    "model": "claude-x",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hé \U0001f600"}],
}
ANTHROPIC_EVENTS = [
    (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1",'
        b'"type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,'
        b'"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
    ),
    (
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
        b'"content_block":{"type":"text","text":""}}\n\n'
    ),
    (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"hi"}}\n\n'
    ),
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    (
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
        b'"stop_sequence":null},"usage":{"output_tokens":2}}\n\n'
    ),
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]
OPENAI_EVENTS = [
    b'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":'
    + RESPONSE
    + b"}\n\n",
    b'event: response.completed\ndata: {"type":"response.completed","sequence_number":1,"response":'
    + RESPONSE
    + b"}\n\n",
]


def claude(wire: Wire, **kwargs: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=2, **kwargs)


def claude_async(wire: Wire, **kwargs: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="k", base_url=wire.url, max_retries=2, **kwargs)


def gpt(wire: Wire, **kwargs: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=wire.url, max_retries=2, **kwargs)


def gpt_async(wire: Wire, **kwargs: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="k", base_url=wire.url, max_retries=2, **kwargs)


def test_create_anthropic(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """`messages.create` is one exchange with the bytes of both sides."""
    wire.answers(MESSAGE)
    with claude(wire) as client:
        message = client.messages.create(**ASK)
    assert type(message) is anthropic.types.Message
    seen = tracker.one
    assert (seen.api, seen.request, seen.response, seen.events, seen.status, seen.complete) == (
        Api.MESSAGES,
        wire.seen[0].body,
        wire.seen[0].sent,
        None,
        200,
        True,
    )
    assert (seen.host, seen.operation, seen.model) == ("127.0.0.1", None, None)
    assert spans.names == ["chat claude-x"]


async def test_create_anthropic_async(tracker: Recorder, wire: Wire) -> None:
    """The async `messages.create` is one exchange with the bytes of both sides."""
    wire.answers(MESSAGE)
    async with claude_async(wire) as client:
        await client.messages.create(**ASK)
    assert (tracker.one.request, tracker.one.response) == (wire.seen[0].body, wire.seen[0].sent)


@pytest.mark.parametrize("operation", [None, "compact"])
def test_create_openai(tracker: Recorder, wire: Wire, operation: str | None) -> None:
    """`responses.create` and `responses.compact` are one exchange each, told apart."""
    wire.answers(RESPONSE)
    with gpt(wire) as client:
        if operation is None:
            client.responses.create(model="gpt-x", input="é")
        elif hasattr(client.responses, "compact"):
            client.responses.compact(model="gpt-x", input="é")
        else:
            client.post("/responses/compact", body={"model": "gpt-x"}, cast_to=object)
    seen = tracker.one
    assert (seen.api, seen.operation, seen.request, seen.response) == (
        Api.RESPONSES,
        operation,
        wire.seen[0].body,
        wire.seen[0].sent,
    )


async def test_create_openai_async(tracker: Recorder, wire: Wire) -> None:
    """The async `responses.create` is one exchange with the bytes of both sides."""
    wire.answers(RESPONSE)
    async with gpt_async(wire) as client:
        await client.responses.create(model="gpt-x", input="é")
    assert (tracker.one.request, tracker.one.response) == (wire.seen[0].body, wire.seen[0].sent)


def test_stream_anthropic(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """A stream is observed at its end, with the very bytes that were streamed."""
    wire.streams(*ANTHROPIC_EVENTS)
    with claude(wire) as client:
        stream = client.messages.create(**ASK, stream=True)
        assert type(stream) is anthropic.Stream
        assert (tracker.exchanges, spans.names) == ([], [])
        assert len(list(stream)) == len(ANTHROPIC_EVENTS)
    seen = tracker.one
    assert (seen.request, seen.events, seen.response, seen.complete) == (
        wire.seen[0].body,
        wire.seen[0].sent,
        None,
        True,
    )
    assert spans.names == ["chat claude-x"]


def test_stream_helper_anthropic(tracker: Recorder, wire: Wire) -> None:
    """`messages.stream` keeps its type and its final message, and is one exchange."""
    wire.streams(*ANTHROPIC_EVENTS)
    with claude(wire) as client, client.messages.stream(**ASK) as stream:
        assert type(stream) is anthropic.MessageStream
        assert "".join(stream.text_stream) == "hi"
        assert stream.get_final_message().stop_reason == "end_turn"
    assert tracker.one.events == wire.seen[0].sent


async def test_stream_anthropic_async(tracker: Recorder, wire: Wire) -> None:
    """An async stream is observed with the very bytes that were streamed."""
    wire.streams(*ANTHROPIC_EVENTS)
    async with claude_async(wire) as client:
        stream = await client.messages.create(**ASK, stream=True)
        assert type(stream) is anthropic.AsyncStream
        assert len([event async for event in stream]) == len(ANTHROPIC_EVENTS)
    assert (tracker.one.events, tracker.one.complete) == (wire.seen[0].sent, True)


def test_stream_openai(tracker: Recorder, wire: Wire) -> None:
    """An OpenAI stream is observed with the very bytes that were streamed."""
    wire.streams(*OPENAI_EVENTS)
    with gpt(wire) as client:
        stream = client.responses.create(model="gpt-x", input="é", stream=True)
        assert type(stream) is openai.Stream
        assert [event.type for event in stream] == ["response.created", "response.completed"]
    assert (tracker.one.events, tracker.one.complete) == (wire.seen[0].sent, True)


async def test_stream_openai_async(tracker: Recorder, wire: Wire) -> None:
    """An async OpenAI stream that ends in `[DONE]` is observed to its end."""
    wire.streams(*OPENAI_EVENTS, b"data: [DONE]\n\n")
    async with gpt_async(wire) as client:
        stream = await client.responses.create(model="gpt-x", input="é", stream=True)
        assert [e.type async for e in stream] == ["response.created", "response.completed"]
    assert (tracker.one.events, tracker.one.complete) == (wire.seen[0].sent, True)


def test_raw_response(tracker: Recorder, wire: Wire) -> None:
    """`with_raw_response` hands out the same raw object and is one exchange."""
    wire.answers(MESSAGE)
    with claude(wire) as client:
        raw = client.messages.with_raw_response.create(**ASK)
        assert raw.http_response.content == MESSAGE
        assert raw.parse().id == "msg_1"
    assert tracker.one.response == MESSAGE


def test_streaming_response(tracker: Recorder, wire: Wire) -> None:
    """`with_streaming_response` stays unread until the application reads it."""
    wire.answers(MESSAGE[:20], MESSAGE[20:])
    with claude(wire) as client:
        with client.messages.with_streaming_response.create(**ASK) as raw:
            assert tracker.exchanges == []
            assert b"".join(raw.iter_bytes()) == MESSAGE
        seen = tracker.one
    assert (seen.response, seen.events, seen.complete) == (MESSAGE, None, True)


async def test_streaming_response_async(tracker: Recorder, wire: Wire) -> None:
    """The async `with_streaming_response` stays unread until the application reads it."""
    wire.answers(MESSAGE)
    async with (
        claude_async(wire) as client,
        client.messages.with_streaming_response.create(**ASK) as raw,
    ):
        assert tracker.exchanges == []
        assert (await raw.parse()).id == "msg_1"
    assert tracker.one.response == MESSAGE


def test_streaming_response_unread(tracker: Recorder, wire: Wire) -> None:
    """A streaming response that is left unread is observed as cut, without a body."""
    wire.answers(MESSAGE)
    with claude(wire) as client, client.messages.with_streaming_response.create(**ASK):
        pass
    seen = tracker.one
    assert (seen.response, seen.events, seen.complete, seen.status) == (None, None, False, 200)


def test_retries_are_one_exchange(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """Two failed attempts and a good one are one exchange and one span, with the last bodies."""
    busy = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "x"}})
    for _ in range(2):
        wire.answers(busy.encode(), status=529, headers={"retry-after-ms": "1"})
    wire.answers(MESSAGE)
    with claude(wire) as client:
        client.messages.create(**ASK)
    assert len(wire.seen) == 3
    assert (tracker.one.request, tracker.one.status) == (wire.seen[2].body, 200)
    assert spans.names == ["chat claude-x"]


@pytest.mark.parametrize("stream", [False, True])
def test_refusal(tracker: Recorder, wire: Wire, spans: Spans, *, stream: bool) -> None:
    """A refusal is observed with its body and raised as the SDK raises it."""
    refusal = b'{"type":"error","error":{"type":"invalid_request_error","message":"signature"}}'
    wire.answers(refusal, status=400)
    with claude(wire) as client, pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.create(**ASK, stream=stream)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ is True
    assert raised.value.response.content == refusal
    seen = tracker.one
    assert (seen.request, seen.response, seen.status) == (wire.seen[0].body, refusal, 400)
    (span,) = spans.ended
    assert (span.attributes or {})["error.type"] == "anthropic.BadRequestError"


async def test_refusal_openai_async(tracker: Recorder, wire: Wire) -> None:
    """An async refusal is observed with its body."""
    refusal = b'{"error":{"code":"invalid_encrypted_content","message":"x","type":"t"}}'
    wire.answers(refusal, status=400)
    async with gpt_async(wire) as client:
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model="gpt-x", input="é")
    assert (tracker.one.response, tracker.one.status) == (refusal, 400)


def test_parse_failure(tracker: Recorder, wire: Wire) -> None:
    """A reply that the SDK cannot parse into the wanted model is observed all the same."""

    class Wanted(pydantic.BaseModel):
        number: int

    text = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    output = [{**text, "content": [{"type": "output_text", "text": "no", "annotations": []}]}]
    body = json.dumps({**json.loads(RESPONSE), "output": output}).encode()
    wire.answers(body)
    with gpt(wire) as client, pytest.raises(pydantic.ValidationError):
        client.responses.parse(model="gpt-x", input="é", text_format=Wanted)
    assert tracker.one.response == body


def test_post_and_extra_body(tracker: Recorder, wire: Wire) -> None:
    """`client.post` and `extra_body` are read as they went out."""
    wire.answers(MESSAGE)
    with claude(wire) as client:
        client.post("/v1/messages?beta=true", body=ASK, cast_to=object)
        client.messages.create(**ASK, extra_body={"messages": [], "x": [1]})
    assert [e.request for e in tracker.exchanges] == [s.body for s in wire.seen]
    assert json.loads(tracker.exchanges[1].request)["x"] == [1]


def test_generators_are_left_alone(tracker: Recorder, wire: Wire) -> None:
    """A generator passed as `messages` reaches the server whole."""
    wire.answers(MESSAGE)
    with claude(wire) as client:
        ask = {**ASK, "messages": (m for m in ASK["messages"])}
        try:
            client.messages.create(**ask)
        except TypeError:
            pytest.skip("this release takes no generator")
    assert json.loads(wire.seen[0].body)["messages"] == ASK["messages"]
    assert tracker.one.request == wire.seen[0].body


@pytest.mark.parametrize("name", ["count_tokens", "batches"])
def test_what_is_no_turn(tracker: Recorder, wire: Wire, spans: Spans, name: str) -> None:
    """Counting tokens and making batches are no turns of a model."""
    wire.answers(b'{"input_tokens": 3}')
    with claude(wire) as client:
        client.post(f"/v1/messages/{name}", body=ASK, cast_to=object)
    assert (tracker.exchanges, spans.names) == ([], [])


def test_unsent_request(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """A request that the SDK cannot serialise was never sent, and is not observed."""
    wire.answers(MESSAGE)
    ask = {**ASK, "messages": [{"role": "user", "content": "\ud83d"}]}
    with claude(wire) as client, pytest.raises(UnicodeEncodeError):
        client.messages.create(**ask)
    assert (wire.seen, tracker.exchanges, spans.names) == ([], [], [])


def test_connection_error(tracker: Recorder, spans: Spans) -> None:
    """A request that met no server is observed without a reply; the error keeps its cause."""
    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0)
    with client, pytest.raises(anthropic.APIConnectionError) as raised:
        client.messages.create(**ASK)
    assert raised.value.__cause__ is not None
    seen = tracker.one
    assert (seen.response, seen.events, seen.status, seen.complete) == (None, None, None, False)
    assert json.loads(seen.request)["messages"] == ASK["messages"]
    assert spans.names == ["chat claude-x"]


async def test_cancel(
    eventually: Callable[[Callable[[], bool]], None], tracker: Recorder, wire: Wire, spans: Spans
) -> None:
    """A cancelled call raises CancelledError and is observed without a reply."""
    pause = threading.Event()
    wire.answers(MESSAGE[:9], MESSAGE[9:], pause=pause)
    async with claude_async(wire) as client:
        task = asyncio.create_task(client.messages.create(**ASK))
        await asyncio.to_thread(eventually, lambda: wire.seen != [])
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    pause.set()
    assert (tracker.one.response, tracker.one.complete) == (None, False)
    (span,) = spans.ended
    assert "CancelledError" in str((span.attributes or {})["error.type"])


def test_concurrent_calls(tracker: Recorder, wire: Wire) -> None:
    """Concurrent async calls are told apart."""
    wire.answers(MESSAGE)

    async def main() -> None:
        async with claude_async(wire) as client:
            asks = [{**ASK, "max_tokens": n} for n in range(1, 9)]
            await asyncio.gather(*(client.messages.create(**ask) for ask in asks))

    asyncio.run(main())
    assert sorted(e.request for e in tracker.exchanges) == sorted(s.body for s in wire.seen)


@pytest.mark.skipif(
    "middleware" not in inspect.signature(anthropic.Anthropic.__init__).parameters,
    reason="this release has no middleware",
)
def test_attempts_under_middleware_are_one_exchange(
    tracker: Recorder, wire: Wire, spans: Spans
) -> None:
    """There every attempt passes the seams, refused ones too; the last one counts."""
    refusal = b'{"type":"error","error":{"type":"invalid_request_error","message":"x"}}'
    wire.answers(refusal, status=529, headers={"retry-after-ms": "1"})
    wire.answers(MESSAGE)
    wire.answers(refusal, status=400)
    told: list[int] = []

    def looks(request: Any, call_next: Any) -> Any:
        reply = call_next(request)
        told.append(reply.status_code)
        return reply

    with claude(wire, middleware=[looks]) as client:
        client.messages.create(**ASK)
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**ASK)
    assert told == [529, 200, 400]
    seen = [(exchange.status, exchange.response) for exchange in tracker.exchanges]
    assert seen == [(200, MESSAGE), (400, refusal)]
    assert spans.names == ["chat claude-x"] * 2
