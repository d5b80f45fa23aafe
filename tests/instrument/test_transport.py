"""Calls that HTTP clients make to known APIs by themselves are observed, and not changed."""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import anthropic
import brotli
import httpx
import httpx2
import pytest
import requests
import urllib3
from backports import zstd
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_sealed.instrument import finalizing, instrument, uninstrument
from otel_sealed.telemetry.settings import Settings
from otel_sealed.tracker import Tracker
from otel_sealed.wire.parse import Unread
from tests.instrument.test_clients import counted
from tests.instrument.test_suppression import suppressing

if TYPE_CHECKING:
    from otel_sealed.wire import Exchange
    from tests.instrument.conftest import Recorder, Spans, Wire

MESSAGES = "/v1/messages"
ASK = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "hé"}]}
RAW = json.dumps(ASK, ensure_ascii=False).encode()
REPLY = b'{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[]}'
EVENTS = (
    b'event: message_start\ndata: {"type":"message_start","message":{"model":"claude-x"}}\n\n',
    b'event: ping\ndata: {"type":"ping"}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
)
JSON = {"content-type": "application/json", "x-api-key": "key", "anthropic-beta": "one,two"}
BOTOCORE: Any = importlib.import_module("botocore.httpsession")
AWS: Any = importlib.import_module("botocore.awsrequest")


def _zstd(data: bytes) -> bytes:
    return zstd.compress(data)


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": _zstd,
}


@dataclass(frozen=True)
class Sender:
    """One way to post bytes: gives the chunks that its caller is handed."""

    name: str
    whole: Callable[[str], bytes]
    streamed: Callable[[str], Iterator[bytes]]
    decodes: tuple[str, ...] = tuple(ENCODINGS)
    lazy: bool = True


def _httpx_like(module: Any) -> Sender:
    def whole(url: str) -> bytes:
        return bytes(module.post(url, content=RAW, headers=JSON).content)

    def streamed(url: str) -> Iterator[bytes]:
        with module.stream("POST", url, content=RAW, headers=JSON) as reply:
            yield from reply.iter_bytes()

    return Sender(module.__name__, whole, streamed)


def _collected(run: Callable[[str], AsyncIterator[bytes]]) -> Callable[[str], Iterator[bytes]]:
    def streamed(url: str) -> Iterator[bytes]:
        async def all_of() -> list[bytes]:
            return [chunk async for chunk in run(url)]

        yield from asyncio.run(all_of())

    return streamed


def _httpx_async(module: Any) -> Sender:
    async def streamed(url: str) -> AsyncIterator[bytes]:
        async with (
            module.AsyncClient() as client,
            client.stream("POST", url, content=RAW, headers=JSON) as reply,
        ):
            async for chunk in reply.aiter_bytes():
                yield chunk

    async def whole(url: str) -> bytes:
        async with module.AsyncClient() as client:
            return bytes((await client.post(url, content=RAW, headers=JSON)).content)

    return Sender(
        f"{module.__name__} async",
        lambda url: asyncio.run(whole(url)),
        _collected(streamed),
        lazy=False,
    )


def _aiohttp(name: str, *, parsed: bool) -> Sender:
    sent: dict[str, Any] = {"json": ASK} if parsed else {"data": RAW}

    async def streamed(url: str) -> AsyncIterator[bytes]:
        async with (
            aiohttp.ClientSession(headers=JSON) as client,
            client.post(url, **sent) as reply,
        ):
            async for line in reply.content:
                yield line

    async def whole(url: str) -> bytes:
        async with (
            aiohttp.ClientSession(headers=JSON) as client,
            client.post(url, **sent) as reply,
        ):
            return await reply.read()

    return Sender(name, lambda url: asyncio.run(whole(url)), _collected(streamed), lazy=False)


def _requests(url: str) -> bytes:
    return bytes(requests.post(url, data=RAW, headers=JSON, timeout=10).content)


def _requests_streamed(url: str) -> Iterator[bytes]:
    with requests.post(url, data=RAW, headers=JSON, timeout=10, stream=True) as reply:
        yield from reply.iter_content(7)


def _urllib3(url: str) -> bytes:
    with urllib3.PoolManager() as pool:
        return bytes(pool.request("POST", url, body=RAW, headers=JSON).data)


def _urllib3_streamed(url: str) -> Iterator[bytes]:
    with urllib3.PoolManager() as pool:
        reply = pool.request("POST", url, body=RAW, headers=JSON, preload_content=False)
        while data := reply.read(16):
            yield data


def _prepared(url: str, *, streams: bool) -> Any:
    request = AWS.AWSRequest("POST", url, dict(JSON), RAW, stream_output=streams).prepare()
    return BOTOCORE.URLLib3Session().send(request)


def _botocore(url: str) -> bytes:
    return bytes(_prepared(url, streams=False).content)


def _botocore_streamed(url: str) -> Iterator[bytes]:
    yield from _prepared(url, streams=True).raw.stream(10)


SENDERS = (
    _httpx_like(httpx),
    _httpx_like(httpx2),
    _httpx_async(httpx),
    _httpx_async(httpx2),
    _aiohttp("aiohttp", parsed=False),
    _aiohttp("aiohttp json", parsed=True),
    Sender("requests", _requests, _requests_streamed),
    Sender("urllib3", _urllib3, _urllib3_streamed),
    Sender("botocore", _botocore, _botocore_streamed, decodes=("",)),
)
each = pytest.mark.parametrize("sender", SENDERS, ids=[sender.name for sender in SENDERS])
encoded = pytest.mark.parametrize(
    ("sender", "encoding"),
    [(sender, encoding) for sender in SENDERS for encoding in sender.decodes],
    ids=[f"{s.name}-{encoding or 'plain'}" for s in SENDERS for encoding in s.decodes],
)


@pytest.fixture
def on(tracker: Recorder, spans: Spans) -> Iterator[Recorder]:
    instrument("http", tracer_provider=spans.provider, tracker=tracker)
    yield tracker
    uninstrument()


def events_of(seen: Exchange) -> Any:
    """The bytes of the stream; they may come in several pieces."""
    return seen.events


@encoded
def test_a_whole_reply_is_observed_as_it_came_and_handed_on_as_it_is(
    on: Recorder, wire: Wire, spans: Spans, sender: Sender, encoding: str
) -> None:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    wire.answers(ENCODINGS[encoding](REPLY), headers=headers if encoding else JSON)
    assert sender.whole(wire.url + MESSAGES) == REPLY
    seen = on.one
    assert (seen.request, seen.response, seen.events) == (wire.seen[0].body, REPLY, None)
    assert (seen.api, seen.status, seen.complete, seen.betas) == (
        "messages",
        200,
        True,
        ("one", "two"),
    )
    assert seen.host == "127.0.0.1"
    assert seen.account not in (None, "key")
    assert len(spans.ended) == 1


@encoded
def test_a_stream_is_observed_as_it_came_and_handed_on_as_it_is(
    on: Recorder, wire: Wire, spans: Spans, sender: Sender, encoding: str
) -> None:
    whole = b"".join(EVENTS)
    packed = ENCODINGS[encoding](whole)
    chunks = EVENTS if not encoding else (packed[:9], packed[9:])
    wire.streams(*chunks, headers={"content-encoding": encoding} if encoding else {})
    assert b"".join(sender.streamed(wire.url + MESSAGES)) == whole
    seen = on.one
    assert (seen.request, seen.response, seen.events) == (wire.seen[0].body, None, whole)
    assert (seen.status, seen.complete) == (200, True)
    assert len(spans.ended) == 1


@each
def test_bytes_on_the_wire_are_those_without_us(wire: Wire, sender: Sender) -> None:
    wire.answers(REPLY)
    without = sender.whole(wire.url + MESSAGES)
    instrument("http")
    assert sender.whole(wire.url + MESSAGES) == without
    assert wire.seen[0].body == wire.seen[1].body


@each
def test_a_stream_that_is_cut_fails_for_its_reader_and_is_observed_as_cut(
    on: Recorder, wire: Wire, sender: Sender
) -> None:
    wire.streams(*EVENTS[:2], cut=True)
    errors = (
        httpx.HTTPError,
        httpx2.HTTPError,
        aiohttp.ClientError,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
    )
    got: list[bytes] = []
    with pytest.raises(errors):
        got.extend(sender.streamed(wire.url + MESSAGES))
    seen = bytes(on.one.events)
    assert b"".join(EVENTS[:2]).startswith(seen)
    assert seen.startswith(b"".join(got))
    assert (seen != b"", on.one.complete) == (True, False)


@pytest.mark.parametrize("sender", [s for s in SENDERS if s.lazy], ids=lambda one: one.name)
def test_a_stream_that_its_reader_leaves_is_observed_as_far_as_it_was_read(
    on: Recorder, wire: Wire, sender: Sender
) -> None:
    wire.streams(*EVENTS)
    chunks = sender.streamed(wire.url + MESSAGES)
    first = next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    del chunks
    gc.collect()
    finalizing.catch_up()
    assert bytes(on.one.events).startswith(first)


def test_a_response_of_aiohttp_that_is_closed_early_is_observed_as_cut(
    on: Recorder, wire: Wire
) -> None:
    wire.streams(*EVENTS[:1], b"x" * 300_000, *EVENTS[2:])

    async def leave() -> bytes:
        async with (
            aiohttp.ClientSession() as client,
            client.post(wire.url + MESSAGES, data=RAW) as reply,
        ):
            return await reply.content.readline()

    line = asyncio.run(leave())
    gc.collect()
    finalizing.catch_up()
    assert (on.one.events or b"").startswith(line)
    assert on.one.complete is False


def test_every_way_to_read_aiohttp_gives_what_came(on: Recorder, wire: Wire) -> None:
    wire.streams(*EVENTS)
    ways: dict[str, Callable[[Any], Any]] = {
        "iter_any": lambda content: content.iter_any(),
        "iter_chunked": lambda content: content.iter_chunked(5),
        "iter_chunks": lambda content: content.iter_chunks(),
        "lines": lambda content: content,
    }

    async def read(way: Callable[[Any], Any]) -> bytes:
        async with (
            aiohttp.ClientSession() as client,
            client.post(wire.url + MESSAGES, data=RAW) as reply,
        ):
            assert isinstance(reply.content, aiohttp.StreamReader)
            found = [chunk async for chunk in way(reply.content)]
            return b"".join(c[0] if isinstance(c, tuple) else c for c in found)

    for way in ways.values():
        assert asyncio.run(read(way)) == b"".join(EVENTS)
    assert [seen.events for seen in on.exchanges] == [b"".join(EVENTS)] * len(ways)


@each
def test_a_refusal_is_observed_with_its_status(on: Recorder, wire: Wire, sender: Sender) -> None:
    said = b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'
    wire.answers(said, status=400)
    assert sender.whole(wire.url + MESSAGES) == said
    assert (on.one.status, on.one.response) == (400, said)


@each
def test_what_cannot_be_reached_is_the_error_that_it_was(
    on: Recorder, spans: Spans, sender: Sender
) -> None:
    with pytest.raises(Exception, match=r".") as without:
        sender.whole("http://127.0.0.1:9/v1/messages")
    assert type(without.value).__module__.partition(".")[0] in {
        "httpx",
        "httpx2",
        "aiohttp",
        "requests",
        "urllib3",
        "botocore",
    }
    assert (on.one.status, on.one.response) == (None, None)
    assert [span.attributes.get("error.type") for span in spans.ended if span.attributes] != [None]


@each
def test_what_is_no_api_passes(on: Recorder, wire: Wire, spans: Spans, sender: Sender) -> None:
    wire.answers(REPLY)
    assert sender.whole(f"{wire.url}/v1/embeddings") == REPLY
    assert (on.exchanges, spans.ended) == ([], ())


def test_a_path_of_an_api_with_another_body_is_counted_and_not_observed(
    tracker: Recorder, wire: Wire, reader: InMemoryMetricReader, spans: Spans
) -> None:
    """A survey is sent to `/v1/messages` as well; it names a model and has no messages."""
    from opentelemetry.sdk.metrics import MeterProvider

    instrument(
        "http",
        tracer_provider=spans.provider,
        meter_provider=MeterProvider([reader]),
        tracker=tracker,
    )
    wire.answers(b"{}")
    httpx.post(wire.url + MESSAGES, json={"model": "t", "recipient": "x"})
    assert (tracker.exchanges, spans.ended) == ([], ())
    assert counted(reader) == {("httpx", "127.0.0.1"): 1}


def test_nothing_is_wrapped_where_a_setting_says_so(tracker: Recorder, wire: Wire) -> None:
    handle = instrument("http", tracker=tracker, settings=Settings(http_hooks=False))
    wire.answers(REPLY)
    httpx.post(wire.url + MESSAGES, content=RAW, headers=JSON)
    assert (handle.attached, tracker.exchanges) == ((), [])


def test_a_call_of_an_sdk_is_observed_once(tracker: Recorder, wire: Wire) -> None:
    instrument("anthropic", "http", tracker=tracker)
    wire.answers(REPLY)
    with anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=0) as client:
        client.messages.create(model="claude-x", max_tokens=9, messages=[])
    assert tracker.one.response == REPLY


def test_a_call_of_an_sdk_that_is_not_named_is_observed_at_its_client(
    on: Recorder, wire: Wire
) -> None:
    wire.answers(REPLY)
    with anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=0) as client:
        client.messages.create(model="claude-x", max_tokens=9, messages=[])
    assert on.one.response == REPLY


def test_an_attempt_that_is_made_anew_is_another_call(on: Recorder, wire: Wire) -> None:
    wire.answers(b'{"type":"error"}', status=529)
    wire.answers(REPLY)
    for _ in range(2):
        httpx.post(wire.url + MESSAGES, content=RAW, headers=JSON)
    assert [seen.status for seen in on.exchanges] == [529, 200]


def test_what_an_application_suppresses_is_not_observed(on: Recorder, wire: Wire) -> None:
    wire.answers(REPLY)
    with suppressing():
        httpx.post(wire.url + MESSAGES, content=RAW, headers=JSON)
    assert on.exchanges == []


def test_without_it_the_same_call_is_counted(tracker: Recorder, wire: Wire) -> None:
    instrument("anthropic", tracker=tracker)
    wire.answers(REPLY)
    httpx.post(wire.url + MESSAGES, content=RAW, headers=JSON)
    assert tracker.exchanges == []


def test_what_was_added_is_taken_off_and_the_count_stays(tracker: Recorder, wire: Wire) -> None:
    handle = instrument("anthropic", tracker=tracker)
    before = handle.attached
    with instrument("http"):
        assert "aiohttp.client_reqrep.ClientRequest.send" in handle.attached
    assert handle.attached == before
    wire.answers(REPLY)
    httpx.post(wire.url + MESSAGES, content=RAW, headers=JSON)
    assert tracker.exchanges == []


def test_a_body_that_is_streamed_up_is_sent_and_said_to_be_unread(on: Recorder, wire: Wire) -> None:
    wire.answers(REPLY)
    body: Any = iter([RAW])
    url = "https://api.anthropic.com/v1/messages"
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=request.read()))
    with httpx.Client(transport=transport) as client:
        assert client.post(url, content=body).content == RAW
    assert not isinstance(on.one.request, Unread)
    assert on.one.request in (None, RAW)


def test_a_lost_seal_is_found_at_a_plain_client(wire: Wire, spans: Spans) -> None:
    """Two calls of `requests`: what the first brought is missing in the second."""
    instrument("http", tracer_provider=spans.provider, tracker=Tracker(b"k" * 32))
    thought = {"type": "thinking", "thinking": "So it is.", "signature": "c2VhbA" * 20}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    said = {
        **json.loads(REPLY),
        "content": [thought, call],
        "stop_reason": "tool_use",
    }
    wire.answers(json.dumps(said).encode())
    url = wire.url + MESSAGES
    asked: dict[str, Any] = {**ASK, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    requests.post(url, json=asked, headers=JSON, timeout=10)
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    asked["messages"] = [
        {"role": "user", "content": "hé"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    requests.post(url, json=asked, headers=JSON, timeout=10)
    findings = (spans.ended[1].attributes or {})["otel_sealed.findings"]
    assert any("dropped anthropic.thinking.signature" in str(one) for one in findings)  # type: ignore[union-attr]
