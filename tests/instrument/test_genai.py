"""google-genai: what we read equals what the server received and sent, for all four methods."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import types
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from google import genai
from google.genai import errors

from otel_sealed.instrument import finalizing
from otel_sealed.wire import Api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.instrument.conftest import Recorder, Spans, Wire

pytestmark = pytest.mark.usefixtures("handle")

MODERN = hasattr(genai.types.Part(), "thought_signature")
VERSION = tuple(int(part) for part in genai.__version__.split(".")[:2])


def reply(text: str, finish: str | None = "STOP", **part: Any) -> bytes:
    candidate: dict[str, Any] = {
        "content": {
            "role": "model",
            "parts": [{"text": text, "thoughtSignature": "Ab+/cQ==", **part}],
        }
    }
    if finish:
        candidate["finishReason"] = finish
    return json.dumps({"candidates": [candidate]}).encode()


def sse(*payloads: bytes) -> list[bytes]:
    return [b"data: " + payload + b"\r\n\r\n" for payload in payloads]


@pytest.fixture
def client(wire: Wire) -> Iterator[genai.Client]:
    client = genai.Client(api_key="k", http_options={"base_url": wire.url})
    yield client
    client._api_client._httpx_client.close()


@pytest_asyncio.fixture
async def client_async(wire: Wire) -> AsyncIterator[genai.Client]:
    client = genai.Client(api_key="k", http_options={"base_url": wire.url})
    yield client
    http: Any = client._api_client._async_httpx_client
    await http.aclose()
    client._api_client._httpx_client.close()


def events(raw: Any) -> list[Any]:
    """The payloads of what we told the tracker."""
    if isinstance(raw, list):
        return [json.loads(one) if isinstance(one, str) else one for one in raw]
    return [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: ")]


def parsed(raw: Any) -> Any:
    return raw if isinstance(raw, dict) else json.loads(raw)


CHUNKS = [reply("a", None), reply("b", None), reply("")]


def test_whole(tracker: Recorder, wire: Wire, client: genai.Client, spans: Spans) -> None:
    """`generate_content` is one exchange, equal to the wire as JSON."""
    wire.answers(reply("hé\U0001f600"))
    got = client.models.generate_content(model="gemini-x", contents="é")
    assert got.text == "hé\U0001f600"
    seen = tracker.one
    assert (seen.api, seen.provider, seen.model, seen.host) == (
        Api.GENERATE_CONTENT,
        "google",
        "gemini-x",
        "127.0.0.1",
    )
    assert seen.request == json.loads(wire.seen[0].body)
    assert parsed(seen.response) == json.loads(wire.seen[0].sent)
    assert (seen.status, seen.complete, spans.names) == (200, True, ["generate_content gemini-x"])


async def test_whole_async(tracker: Recorder, wire: Wire, client_async: genai.Client) -> None:
    """The async `generate_content` is one exchange, equal to the wire as JSON."""
    wire.answers(reply("x"))
    await client_async.aio.models.generate_content(model="gemini-x", contents="é")
    assert tracker.one.request == json.loads(wire.seen[0].body)
    assert parsed(tracker.one.response) == json.loads(wire.seen[0].sent)


def test_stream(tracker: Recorder, wire: Wire, client: genai.Client) -> None:
    """A stream is one exchange with every payload, told at its end; the generator is one still."""
    wire.streams(*sse(*CHUNKS))
    stream = client.models.generate_content_stream(model="gemini-x", contents="é")
    assert isinstance(stream, types.GeneratorType)
    assert (wire.seen, tracker.exchanges) == ([], [])
    assert [chunk.text for chunk in stream] == ["a", "b", ""]
    seen = tracker.one
    assert events(seen.events) == [json.loads(chunk) for chunk in CHUNKS]
    assert seen.request == json.loads(wire.seen[0].body)
    assert (seen.response, seen.complete) == (None, True)


async def test_stream_async(tracker: Recorder, wire: Wire, client_async: genai.Client) -> None:
    """The same for an async stream."""
    wire.streams(*sse(*CHUNKS))
    stream = await client_async.aio.models.generate_content_stream(model="gemini-x", contents="é")
    assert isinstance(stream, types.AsyncGeneratorType)
    assert [chunk.text async for chunk in stream] == ["a", "b", ""]
    assert events(tracker.one.events) == [json.loads(chunk) for chunk in CHUNKS]
    assert tracker.one.complete is True


@pytest.mark.parametrize("read", [1, 3])
def test_early_close(tracker: Recorder, wire: Wire, client: genai.Client, read: int) -> None:
    """A stream closed early is observed once, whole only if its last chunk had come."""
    wire.streams(*sse(*CHUNKS))
    stream = client._api_client.request_streamed(
        "post", "models/gemini-x:streamGenerateContent?alt=sse", {"contents": []}, None
    )
    assert isinstance(stream, types.GeneratorType)
    for _ in range(read):
        next(stream)
    stream.close()
    assert events(tracker.one.events) == [json.loads(chunk) for chunk in CHUNKS[:read]]
    assert tracker.one.complete is (read == 3)


async def test_early_close_async(tracker: Recorder, wire: Wire, client_async: genai.Client) -> None:
    """The same for an async stream, and for one that is dropped before its first chunk."""
    wire.streams(*sse(*CHUNKS))
    path = "models/gemini-x:streamGenerateContent?alt=sse"
    stream = await client_async._api_client.async_request_streamed("post", path, {"contents": []})
    assert isinstance(stream, types.AsyncGeneratorType)
    await anext(stream)
    await stream.aclose()
    assert (len(events(tracker.one.events)), tracker.one.complete) == (1, False)
    unread = await client_async._api_client.async_request_streamed("post", path, {"contents": []})
    del unread
    gc.collect()
    await asyncio.sleep(0)
    finalizing.catch_up()  # as the end of the next call does
    assert [len(events(e.events or [])) for e in tracker.exchanges] == [1, 0]


def test_dropped(tracker: Recorder, wire: Wire, client: genai.Client) -> None:
    """A stream that is dropped half-read is observed once, as cut."""
    wire.streams(*sse(*CHUNKS))
    stream = client.models.generate_content_stream(model="gemini-x", contents="é")
    next(iter(stream))
    del stream
    gc.collect()
    assert tracker.one.complete is False


def test_throw_and_send() -> None:
    """`throw` and `send` reach the SDK's generator, and its return value comes back."""
    from otel_sealed.instrument.body import Kept
    from otel_sealed.instrument.tee import Reading, observed

    seen: list[Any] = []

    class Call:
        started = 0.0

        def body_over(self, kept: Kept, *, whole: bool, error: BaseException | None) -> None:
            if not kept.ended:
                kept.ended = error is None
                seen.append(whole)

    def inner() -> Any:
        try:
            seen.append((yield "a"))
        except KeyError:
            yield "caught"
        return "done"

    call: Any = Call()

    def outer(told: list[Any]) -> Any:
        told.append((yield from observed(inner(), Reading(call, Kept()), lambda *_: None)))

    told: list[Any] = []
    run = outer(told)
    assert next(run) == "a"
    assert run.throw(KeyError()) == "caught"
    assert list(run) == []
    run = outer(told)
    next(run)
    with pytest.raises(StopIteration):
        run.send("sent")
    assert (told, seen) == (["done", "done"], [True, "sent", True])


async def test_throw_and_send_async() -> None:
    """`athrow` and `asend` reach the SDK's async generator."""
    from otel_sealed.instrument.body import Kept
    from otel_sealed.instrument.tee import Reading, observed_async

    seen: list[Any] = []

    class Call:
        started = 0.0

        def body_over(self, kept: Kept, *, whole: bool, error: BaseException | None) -> None:
            if not kept.ended:
                kept.ended = error is None
                seen.append(whole)

    async def inner() -> Any:
        try:
            seen.append((yield "a"))
        except KeyError:
            yield "caught"

    call: Any = Call()
    run = observed_async(inner(), Reading(call, Kept()), lambda *_: None)
    assert await anext(run) == "a"
    assert await run.athrow(KeyError()) == "caught"
    assert [x async for x in run] == []
    run = observed_async(inner(), Reading(call, Kept()), lambda *_: None)
    await anext(run)
    with pytest.raises(StopAsyncIteration):
        await run.asend("sent")
    assert seen == [True, "sent", True]


REFUSAL = {"error": {"code": 400, "message": "signature", "status": "INVALID_ARGUMENT"}}


@pytest.mark.parametrize("stream", [False, True])
def test_refusal(
    tracker: Recorder,
    wire: Wire,
    client: genai.Client,
    spans: Spans,
    *,
    stream: bool,
) -> None:
    """A refusal is observed with its body and raised as the SDK raises it."""
    wire.answers(json.dumps(REFUSAL).encode(), status=400)
    models = client.models

    def ask() -> Any:
        if stream:
            return list(models.generate_content_stream(model="gemini-x", contents="é"))
        return models.generate_content(model="gemini-x", contents="é")

    with pytest.raises(errors.ClientError) as raised:
        ask()
    assert raised.value.code == 400
    seen = tracker.one
    assert (seen.response, seen.events, seen.status) == (REFUSAL, None, 400)
    assert seen.request == json.loads(wire.seen[0].body)
    (span,) = spans.ended
    assert (span.attributes or {})["error.type"] == "google.genai.errors.ClientError"


@pytest.mark.parametrize("stream", [False, True])
async def test_refusal_async(
    tracker: Recorder, wire: Wire, client_async: genai.Client, *, stream: bool
) -> None:
    """The same for async calls."""
    wire.answers(json.dumps(REFUSAL).encode(), status=400)
    models = client_async.aio.models

    async def ask() -> Any:
        if stream:
            return [c async for c in await models.generate_content_stream(model="g", contents="é")]
        return await models.generate_content(model="g", contents="é")

    with pytest.raises(errors.ClientError):
        await ask()
    assert (tracker.one.response, tracker.one.status) == (REFUSAL, 400)


@pytest.mark.skipif(
    not hasattr(errors.APIError, "raise_error"),
    reason="this release takes an error event for a chunk",
)
def test_error_event(tracker: Recorder, wire: Wire, client: genai.Client) -> None:
    """An error event in a stream is raised as the SDK raises it, and is among the events."""
    broken = {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}
    wire.streams(*sse(CHUNKS[0], json.dumps(broken).encode()))
    with pytest.raises(errors.APIError):
        list(client.models.generate_content_stream(model="gemini-x", contents="é"))
    assert events(tracker.one.events) == [json.loads(CHUNKS[0]), broken]
    assert (tracker.one.complete, tracker.one.status) == (False, 200)


def test_unparsed_reply(tracker: Recorder, wire: Wire, client: genai.Client) -> None:
    """A reply that fails the SDK's own validation is observed all the same."""
    if not MODERN:
        pytest.skip("this release has no field for it")
    body = reply("x", thoughtSignature="not base64!")
    wire.answers(body)
    with pytest.raises(ValueError, match="thought"):
        client.models.generate_content(model="gemini-x", contents="é")
    assert parsed(tracker.one.response) == json.loads(body)


def test_request_is_not_touched(tracker: Recorder, wire: Wire, client: genai.Client) -> None:
    """The dict the SDK made is handed on as it is, by reference."""
    wire.answers(reply("x"))
    request: dict[str, Any] = {"contents": [{"parts": [{"text": "é"}]}], "_url": {"model": "m"}}
    before = copy.deepcopy({k: v for k, v in request.items() if k != "_url"})
    client._api_client.request("post", path="models/gemini-x:generateContent", request_dict=request)
    assert tracker.one.request == before
    assert json.loads(wire.seen[0].body) == before


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("models/gemini-x:generateContent", "gemini-x"),
        ("publishers/google/models/gemini-x:generateContent", "gemini-x"),
        ("projects/p/locations/l/endpoints/123:streamGenerateContent?alt=sse", "123"),
        ("tunedModels/mine:generateContent", "mine"),
        ("models/gemini-x:countTokens", None),
        ("models/gemini-x:batchGenerateContent", None),
        ("models/gemini-x:embedContent", None),
    ],
)
def test_which_are_turns(
    tracker: Recorder,
    wire: Wire,
    client: genai.Client,
    path: str,
    model: str | None,
) -> None:
    """Only generating content is a turn; its model is in the path."""
    wire.answers(reply("x"))
    client._api_client.request("post", path, {"contents": []}, None)
    assert [e.model for e in tracker.exchanges] == ([model] if model else [])


def test_function_calling_loop(
    tracker: Recorder, wire: Wire, client: genai.Client, spans: Spans
) -> None:
    """Each request of automatic function calling is an exchange and a span, below one for all."""

    def weather(city: str) -> str:
        """Tell the weather."""
        return f"fine in {city}"

    weather.__annotations__ = {"city": str, "return": str}  # old releases read no strings

    call = {"functionCall": {"name": "weather", "args": {"city": "Bonn"}}}
    parts = [{**call, "thoughtSignature": "Ab+/cQ=="}]
    content = {"role": "model", "parts": parts}
    wire.answers(
        json.dumps({"candidates": [{"content": content, "finishReason": "STOP"}]}).encode()
    )
    wire.answers(reply("fine"))
    config = genai.types.GenerateContentConfig(tools=[weather])
    got = client.models.generate_content(model="gemini-x", contents="é", config=config)
    assert got.text == "fine"
    assert [e.request for e in tracker.exchanges] == [json.loads(s.body) for s in wire.seen]
    assert spans.names == [
        *["generate_content gemini-x"] * 2,
        "automatic_function_calling gemini-x",
    ]


def test_accounts(tracker: Recorder, wire: Wire) -> None:
    """Accounts are told apart by a keyed stand-in, never by the credential."""
    wire.answers(reply("x"))
    for key in ("one", "two", "one"):
        client = genai.Client(api_key=key, http_options={"base_url": wire.url})
        client.models.generate_content(model="gemini-x", contents="é")
        client._api_client._httpx_client.close()
    one, two, again = (e.account for e in tracker.exchanges)
    assert one == again != two
    assert one not in (None, "one")
