"""google-genai by its other doors: chats, automatic function calling, Vertex, aiohttp, retries."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from google import genai
from google.auth.credentials import AnonymousCredentials
from google.genai import errors, types
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from otel_sealed.instrument import finalizing
from otel_sealed.instrument.loops import NAME
from tests.instrument.test_genai import CHUNKS, REFUSAL, VERSION, events, parsed, reply, sse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from otel_sealed.instrument import Handle
    from tests.instrument.conftest import Recorder, Spans, Wire

pytestmark = [
    pytest.mark.usefixtures("handle"),
    # the SDK's own, on the transport it chooses where aiohttp is installed
    pytest.mark.filterwarnings(
        "ignore:Inheritance class AiohttpClientSession from ClientSession:DeprecationWarning"
    ),
]

MODEL = "gemini-x"
INLINE = pytest.mark.skipif(VERSION < (1, 30), reason="this release has no inline batches")
CALL = {"functionCall": {"name": "weather", "args": {"city": "Bonn"}}, "thoughtSignature": "Ab+/"}
ASKS = json.dumps(
    {"candidates": [{"content": {"role": "model", "parts": [CALL]}, "finishReason": "STOP"}]}
).encode()


def weather(city: str) -> str:
    """Tell the weather."""
    seen_inside.append(trace.get_current_span())
    return f"fine in {city}"


weather.__annotations__ = {"city": str, "return": str}  # old releases read no strings
seen_inside: list[Any] = []


def given(**more: Any) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(tools=[weather], **more)


@pytest.fixture(autouse=True)
def forget() -> None:
    seen_inside.clear()


@pytest.fixture
def client(wire: Wire) -> Iterator[Any]:
    client = genai.Client(api_key="k", http_options={"base_url": wire.url})
    yield client
    client._api_client._httpx_client.close()


@pytest_asyncio.fixture(params=["httpx", "aiohttp"])
async def client_async(
    request: pytest.FixtureRequest, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    """An async client on either of the transports it may choose."""
    module = importlib.import_module("google.genai._api_client")
    if request.param == "aiohttp":
        pytest.importorskip("aiohttp")
        if VERSION < (1, 40) or not hasattr(module, "aiohttp"):
            pytest.skip("this release has no aiohttp, or cannot read a stream over it")
        monkeypatch.setattr(module, "has_aiohttp", True)
    client = genai.Client(api_key="k", http_options={"base_url": wire.url})
    yield client
    await closed(client._api_client)


async def closed(inner: Any) -> None:
    """Close whatever this release opened."""
    await inner._async_httpx_client.aclose()
    inner._httpx_client.close()
    sessions = [*getattr(inner, "_aiohttp_sessions", {}).values()]
    with contextlib.suppress(AttributeError):
        sessions.append(inner._aiohttp_session)
    for session in sessions:
        if hasattr(session, "close"):
            await session.close()


def sent(wire: Wire) -> list[Any]:
    return [json.loads(seen.body) for seen in wire.seen]


def under(spans: Spans) -> tuple[ReadableSpan, list[ReadableSpan]]:
    """(the span of the loop, those of its requests); the loop's is one, and ends last."""
    *inner, outer = spans.ended
    assert (outer.name, outer.kind, outer.attributes) == (f"{NAME} {MODEL}", SpanKind.INTERNAL, {})
    assert {span.parent.span_id if span.parent else 0 for span in inner} == {outer.context.span_id}
    assert {span.name for span in inner} == {f"generate_content {MODEL}"}
    return outer, inner


# ------------------------------------------------------------------------------------- chats


def test_a_chat(tracker: Recorder, wire: Wire, client: Any, spans: Spans) -> None:
    """Every message of a chat is one exchange, the history as it was sent."""
    wire.answers(reply("one"))
    wire.answers(reply("two"))
    chat = client.chats.create(model=MODEL)
    assert [chat.send_message("é").text for _ in range(2)] == ["one", "two"]
    assert [e.request for e in tracker.exchanges] == sent(wire)
    assert [parsed(e.response) for e in tracker.exchanges] == [
        json.loads(s.sent) for s in wire.seen
    ]
    assert len(sent(wire)[1]["contents"]) == 3
    assert spans.names == [f"generate_content {MODEL}"] * 2


def test_a_chat_streamed(tracker: Recorder, wire: Wire, client: Any) -> None:
    """The same for a streamed one; the generator is one still."""
    wire.streams(*sse(*CHUNKS))
    chat = client.chats.create(model=MODEL)
    for _ in range(2):
        assert [chunk.text for chunk in chat.send_message_stream("é")] == ["a", "b", ""]
    assert [e.request for e in tracker.exchanges] == sent(wire)
    assert [events(e.events) for e in tracker.exchanges] == [[json.loads(c) for c in CHUNKS]] * 2


async def test_a_chat_async(tracker: Recorder, wire: Wire, client_async: Any) -> None:
    """The async chat, whole and streamed, on either transport."""
    wire.answers(reply("one"))
    wire.streams(*sse(*CHUNKS))
    chat = client_async.aio.chats.create(model=MODEL)
    assert (await chat.send_message("é")).text == "one"
    stream = await chat.send_message_stream("é")
    assert [chunk.text async for chunk in stream] == ["a", "b", ""]
    assert [e.request for e in tracker.exchanges] == sent(wire)
    assert events(tracker.exchanges[1].events) == [json.loads(chunk) for chunk in CHUNKS]


# ---------------------------------------------------------------- automatic function calling


@pytest.mark.parametrize("door", ["models", "chats"])
def test_a_loop(tracker: Recorder, wire: Wire, client: Any, spans: Spans, door: str) -> None:
    """Each request of a loop has a span, all have one parent, and tools run below it."""
    wire.answers(ASKS)
    wire.answers(reply("fine"))
    if door == "models":
        got = client.models.generate_content(model=MODEL, contents="é", config=given())
    else:
        got = client.chats.create(model=MODEL, config=given()).send_message("é")
    assert got.text == "fine"
    assert [e.request for e in tracker.exchanges] == sent(wire)
    outer, inner = under(spans)
    assert len(inner) == 2
    assert [span.get_span_context() for span in seen_inside] == [outer.context]
    assert trace.get_current_span() is trace.INVALID_SPAN


@pytest.mark.parametrize("door", ["models", "chats"])
def test_a_loop_streamed(
    tracker: Recorder, wire: Wire, client: Any, spans: Spans, door: str
) -> None:
    """The same for a streamed loop; between its chunks the caller's own span is current."""
    wire.streams(*sse(ASKS))
    wire.streams(*sse(*CHUNKS))
    if door == "models":
        stream = client.models.generate_content_stream(model=MODEL, contents="é", config=given())
    else:
        stream = client.chats.create(model=MODEL, config=given()).send_message_stream("é")
    current = [trace.get_current_span() for _ in stream]
    assert current
    assert set(current) == {trace.INVALID_SPAN}
    assert [e.request for e in tracker.exchanges] == sent(wire)
    assert len(under(spans)[1]) == 2


@pytest.mark.parametrize("door", ["models", "chats"])
async def test_a_loop_async(
    tracker: Recorder, wire: Wire, client_async: Any, spans: Spans, door: str
) -> None:
    """The async loop, on either transport."""
    wire.answers(ASKS)
    wire.answers(reply("fine"))
    aio = client_async.aio
    if door == "models":
        got = await aio.models.generate_content(model=MODEL, contents="é", config=given())
    else:
        got = await aio.chats.create(model=MODEL, config=given()).send_message("é")
    assert got.text == "fine"
    assert [e.request for e in tracker.exchanges] == sent(wire)
    assert len(under(spans)[1]) == 2


@pytest.mark.parametrize("door", ["models", "chats"])
async def test_a_loop_streamed_async(
    tracker: Recorder, wire: Wire, client_async: Any, spans: Spans, door: str
) -> None:
    """The async loop, streamed."""
    wire.streams(*sse(ASKS))
    wire.streams(*sse(*CHUNKS))
    aio = client_async.aio
    if door == "models":
        stream = await aio.models.generate_content_stream(model=MODEL, contents="é", config=given())
    else:
        stream = await aio.chats.create(model=MODEL, config=given()).send_message_stream("é")
    current = [trace.get_current_span() async for _ in stream]
    assert set(current) == {trace.INVALID_SPAN}
    assert [e.request for e in tracker.exchanges] == sent(wire)
    assert len(under(spans)[1]) == 2


def test_a_loop_closed_early(wire: Wire, client: Any, spans: Spans, tracker: Recorder) -> None:
    """A loop that is not read on ends with its generator, and so does its request."""
    wire.streams(*sse(*CHUNKS))
    stream = client.models.generate_content_stream(model=MODEL, contents="é", config=given())
    next(stream)
    stream.close()
    gc.collect()
    finalizing.catch_up()
    assert sorted(spans.names) == [f"{NAME} {MODEL}", f"generate_content {MODEL}"]
    assert tracker.one.complete is False


def test_a_refusal_inside_a_loop(wire: Wire, client: Any, spans: Spans) -> None:
    """What the SDK raises passes, and both spans say so."""
    wire.answers(json.dumps(REFUSAL).encode(), status=400)
    with pytest.raises(errors.ClientError):
        client.models.generate_content(model=MODEL, contents="é", config=given())
    assert [dict(span.attributes or {}).get("error.type") for span in spans.ended] == [
        "google.genai.errors.ClientError"
    ] * 2


@pytest.mark.parametrize(
    "config",
    [
        None,
        {"tools": [{"google_search": {}}]},
        given(automatic_function_calling={"disable": True}),
    ],
    ids=["no tools", "no functions", "switched off"],
)
def test_what_is_no_loop_has_no_span_around_it(
    wire: Wire, client: Any, spans: Spans, config: Any
) -> None:
    """A call that cannot become several stands alone."""
    wire.answers(reply("x"))
    client.models.generate_content(model=MODEL, contents="é", config=config)
    assert spans.names == [f"generate_content {MODEL}"]


def test_a_loop_under_the_span_of_a_tracer(wire: Wire, client: Any, spans: Spans) -> None:
    """Where another's span stands for the whole call, its first request is written on that."""
    wire.answers(ASKS)
    wire.answers(reply("fine"))
    tracer = spans.provider.get_tracer("another")
    with tracer.start_as_current_span(
        "theirs",
        kind=SpanKind.CLIENT,
        attributes={"gen_ai.operation.name": "generate_content"},
    ):
        client.models.generate_content(model=MODEL, contents="é", config=given())
    assert sorted(spans.names) == [f"generate_content {MODEL}", "theirs"]
    assert all("otel_sealed.carry" in (span.attributes or {}) for span in spans.ended)


# ---------------------------------------------------------------- transports and platforms


async def test_async_doors_on_either_transport(
    tracker: Recorder, wire: Wire, client_async: Any
) -> None:
    """Whole replies and streams are equal to the wire whichever HTTP library carries them."""
    wire.answers(reply("x"))
    wire.streams(*sse(*CHUNKS))
    models = client_async.aio.models
    await models.generate_content(model=MODEL, contents="é")
    stream = await models.generate_content_stream(model=MODEL, contents="é")
    assert [chunk.text async for chunk in stream] == ["a", "b", ""]
    whole, streamed = tracker.exchanges
    assert parsed(whole.response) == json.loads(wire.seen[0].sent)
    assert events(streamed.events) == [json.loads(chunk) for chunk in CHUNKS]
    assert [e.request for e in tracker.exchanges] == sent(wire)


async def test_cancelled_on_either_transport(
    tracker: Recorder,
    wire: Wire,
    client_async: Any,
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    """A cancelled call is observed without a reply, and the cancellation passes."""
    gate = threading.Event()
    body = reply("x")
    wire.answers(body[:9], body[9:], pause=gate)
    call = client_async.aio.models.generate_content(model=MODEL, contents="é")
    task = asyncio.create_task(call)
    await asyncio.to_thread(eventually, lambda: bool(wire.seen))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    assert (tracker.one.status, tracker.one.response) == (None, None)


async def test_a_stream_that_breaks_off_on_either_transport(
    tracker: Recorder, wire: Wire, client_async: Any
) -> None:
    """A dropped connection is the application's to see; what came before is observed as cut."""
    wire.streams(*sse(*CHUNKS[:1]), cut=True)
    stream = await client_async.aio.models.generate_content_stream(model=MODEL, contents="é")
    with pytest.raises(Exception, match=r"(?i)peer closed|incomplete|payload|connection|transfer"):
        [chunk async for chunk in stream]
    assert tracker.one.complete is False
    assert events(tracker.one.events) == [json.loads(CHUNKS[0])]


@pytest.mark.parametrize("stream", [False, True])
def test_vertex(
    handle: Handle, tracker: Recorder, wire: Wire, spans: Spans, *, stream: bool
) -> None:
    """On Vertex the project is the account, and the client says who answers, whatever the host."""
    credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
    credentials.token = "t"
    client = genai.Client(
        vertexai=True,
        project="p",
        location="l",
        credentials=credentials,
        http_options={"base_url": wire.url},
    )
    if stream:
        wire.streams(*sse(*CHUNKS))
        assert len(list(client.models.generate_content_stream(model=MODEL, contents="é"))) == 3
    else:
        wire.answers(reply("x"))
        client.models.generate_content(model=MODEL, contents="é")
    inner: Any = client._api_client
    inner._httpx_client.close()
    assert "projects/p/locations/l/publishers/google/models/gemini-x:" in wire.seen[0].path
    assert (tracker.one.model, tracker.one.request) == (MODEL, sent(wire)[0])
    assert (tracker.one.account, tracker.one.provider) == (handle.runtime.account("p"), "vertex")
    assert spans.names == [f"generate_content {MODEL}"]


def test_a_retried_call_is_one_exchange(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """The last attempt counts, where the application asked for retries."""
    if not hasattr(types, "HttpRetryOptions"):
        pytest.skip("this release never retries")
    wire.answers(json.dumps(REFUSAL).encode(), status=503)
    wire.answers(reply("x"))
    options: Any = {
        "base_url": wire.url,
        "retry_options": {"attempts": 2, "initial_delay": 0.01, "max_delay": 0.02, "jitter": 0},
    }
    client: Any = genai.Client(api_key="k", http_options=options)
    client.models.generate_content(model=MODEL, contents="é")
    client._api_client._httpx_client.close()
    assert len(wire.seen) == 2
    assert (tracker.one.status, parsed(tracker.one.response)) == (200, json.loads(reply("x")))
    assert len(spans.names) == 1


def test_counting_tokens_is_no_turn(tracker: Recorder, wire: Wire, client: Any) -> None:
    """`count_tokens` sends a history and is no call of the model."""
    wire.answers(b'{"totalTokens": 3}')
    assert client.models.count_tokens(model=MODEL, contents="é").total_tokens == 3
    assert tracker.exchanges == []


# ------------------------------------------------------------------------------------ batches


@INLINE
def test_the_requests_of_an_inline_batch(
    tracker: Recorder, wire: Wire, client: Any, spans: Spans
) -> None:
    """Each inline request is an exchange, judged when it is sent, with a span of its own."""
    wire.answers(b'{"name": "batches/b", "metadata": {"state": "BATCH_STATE_PENDING"}}')
    asks: Any = [{"contents": [{"role": "user", "parts": [{"text": t}]}]} for t in "ab"]
    client.batches.create(model=MODEL, src=asks)
    inner = sent(wire)[0]["batch"]["inputConfig"]["requests"]["requests"]
    assert [e.request for e in tracker.exchanges] == [entry["request"] for entry in inner]
    assert {(e.model, e.response, e.transport) for e in tracker.exchanges} == {
        (MODEL, None, "batch")
    }
    assert spans.names == [f"batch_request {MODEL}"] * 2


@INLINE
def test_the_responses_of_an_inline_batch(tracker: Recorder, wire: Wire, client: Any) -> None:
    """Each response is an exchange when the batch is fetched; one that runs still brings none."""
    running = {"name": "batches/b", "metadata": {"state": "BATCH_STATE_PENDING"}}
    good, bad = json.loads(reply("x")), {"code": 3, "message": "no"}
    done = {
        "name": "batches/b",
        "done": True,
        "metadata": {
            "state": "BATCH_STATE_SUCCEEDED",
            "model": f"models/{MODEL}",
            "output": {
                "inlinedResponses": {"inlinedResponses": [{"response": good}, {"error": bad}]}
            },
        },
    }
    wire.answers(json.dumps(running).encode())
    wire.answers(json.dumps(done).encode())
    client.batches.get(name="batches/b")
    assert tracker.exchanges == []
    client.batches.get(name="batches/b")
    assert [(e.request, e.response, e.status, e.model) for e in tracker.exchanges] == [
        (None, good, 200, MODEL),
        (None, {"error": bad}, 400, MODEL),
    ]
