"""Calls of models that go past the SDKs are noticed at the HTTP clients, and nothing else is."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import json
import logging
import multiprocessing
import os
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
import requests
import urllib3
from google import genai
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_sealed.instrument import guard, instrument, state, uninstrument
from otel_sealed.instrument.clients import CLIENTS
from otel_sealed.telemetry.settings import Settings
from otel_sealed.testing.sweep import Sweeper
from tests.instrument.test_suppression import suppressing

if TYPE_CHECKING:
    from otel_sealed.instrument import Handle
    from tests.instrument.conftest import Recorder, Spans, Wire

ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}
RAW = json.dumps(ASK).encode()
MESSAGE = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[]}'
CHAT = b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[]}'
GEMINI = b'{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"}}]}'
OTHER = "_OTHER"
BOTOCORE: Any = importlib.import_module("botocore.session")
HERE = "127.0.0.1"
TYPE = {"content-type": "application/json"}


class Server:
    """Keeps each request as it came, byte for byte, and answers with its length."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = self.rfile.read(length) if length else self._chunks()
                line: Any = vars(self)["raw_requestline"]
                server.seen.append(line + self.headers.as_bytes() + body)
                moved = self.path.removeprefix("/moved")
                self.send_response(200 if moved == self.path else 307)
                if moved != self.path:
                    self.send_header("location", moved)
                said = b'{"length": %d}' % len(body)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST  # noqa: N815 - the base class says so

            def _chunks(self) -> bytes:
                if self.headers.get("transfer-encoding") != "chunked":
                    return b""
                found = b""
                while (line := self.rfile.readline()) and (size := int(line, 16)):
                    found += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return found

        self._server = ThreadingHTTPServer((HERE, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://{HERE}:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def counted(reader: InMemoryMetricReader) -> dict[tuple[str, str], int]:
    """(client, host) → how often, where anything was."""
    data = reader.get_metrics_data()
    return {
        (
            str(point.attributes["otel_sealed.http.client"]),
            str(point.attributes["server.address"]),
        ): value
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "otel_sealed.unobserved"
        for point in metric.data.data_points
        if isinstance(point.attributes, Mapping) and (value := getattr(point, "value", 0))
    }


# --------------------------------------------------------------------------- one of each client


def _httpx(url: str) -> int:
    return int(httpx.post(url, content=RAW, headers=TYPE).json()["length"])


def _httpx2(url: str) -> int:
    return int(httpx2.post(url, content=RAW, headers=TYPE).json()["length"])


def _httpx_streamed(url: str) -> int:
    with httpx.stream("POST", url, content=RAW, headers=TYPE) as reply:
        return int(json.loads(b"".join(reply.iter_bytes()))["length"])


def _httpx_async(url: str) -> int:
    async def send() -> int:
        async with httpx.AsyncClient() as client:
            reply = await client.post(url, content=RAW, headers=TYPE)
            return int(reply.json()["length"])

    return asyncio.run(send())


def _aiohttp(url: str) -> int:
    async def send() -> int:
        async with aiohttp.ClientSession() as client, client.post(url, json=ASK) as reply:
            return int((await reply.json())["length"])

    return asyncio.run(send())


def _aiohttp_relative(url: str) -> int:
    base, _, path = url.partition("/v1/")

    async def send() -> int:
        async with (
            aiohttp.ClientSession(base_url=f"{base}/v1/") as client,
            client.post(path, data=RAW, headers=TYPE) as reply,
        ):
            return int((await reply.json())["length"])

    return asyncio.run(send())


def _requests(url: str) -> int:
    return int(requests.post(url, data=RAW, headers=TYPE, timeout=10).json()["length"])


def _urllib3(url: str) -> int:
    with urllib3.PoolManager() as pool:
        return int(pool.request("POST", url, body=RAW, headers=TYPE).json()["length"])


def _urllib(url: str) -> int:
    request = urllib.request.Request(url, data=RAW, headers=TYPE)  # noqa: S310 - loopback
    with urllib.request.urlopen(request) as reply:  # noqa: S310 - the same
        return int(json.loads(reply.read())["length"])


SENDS: dict[str, tuple[str, Callable[[str], int]]] = {
    "httpx": ("httpx", _httpx),
    "httpx, streamed": ("httpx", _httpx_streamed),
    "httpx, async": ("httpx", _httpx_async),
    "httpx2": ("httpx2", _httpx2),
    "aiohttp": ("aiohttp", _aiohttp),
    "aiohttp, relative": ("aiohttp", _aiohttp_relative),
    "requests": ("requests", _requests),
    "urllib3": ("urllib3", _urllib3),
    "urllib": ("http.client", _urllib),
}
each = pytest.mark.parametrize(("client", "send"), SENDS.values(), ids=SENDS.keys())


@each
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
def test_a_turn_of_a_model_is_counted_once_and_reaches_the_server_as_without_us(
    client: str,
    send: Callable[[str], int],
    path: str,
    server: Server,
    tracker: Recorder,
    reader: InMemoryMetricReader,
) -> None:
    """Whatever clients are below: requests goes over urllib3, and that over http.client."""
    before = send(server.url + path)
    instrument(tracker=tracker, meter_provider=MeterProvider([reader]))
    assert send(server.url + path) == before
    assert counted(reader) == {(client, HERE): 1}
    assert server.seen[0] == server.seen[1]
    assert tracker.exchanges == []


@each
@pytest.mark.usefixtures("handle")
def test_what_sends_no_turn_is_not_counted(
    client: str, send: Callable[[str], int], server: Server, reader: InMemoryMetricReader
) -> None:
    for path in ("/v1/embeddings", "/v1/messages/count_tokens", "/v1/files", "/v1/models"):
        send(server.url + path)
    assert (counted(reader), len(server.seen)) == ({}, 4), client


@pytest.mark.usefixtures("handle")
def test_a_get_is_not_counted(server: Server, reader: InMemoryMetricReader) -> None:
    httpx.get(f"{server.url}/v1/chat/completions")
    requests.get(f"{server.url}/v1/chat/completions", timeout=10)
    assert counted(reader) == {}


def _bedrock(url: str) -> Any:
    session = BOTOCORE.Session()
    session.set_credentials("k", "s")
    client = session.create_client("bedrock-runtime", "eu-west-1", endpoint_url=url)
    say = {"role": "user", "content": [{"text": "x"}]}
    return client.converse(modelId="eu.anthropic.claude-opus-5", messages=[say])


@pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore")
@pytest.mark.usefixtures("handle")
def test_a_call_of_bedrock_is_counted_at_botocore(
    server: Server, reader: InMemoryMetricReader
) -> None:
    with suppress(Exception):  # the answer is none of Bedrock's
        _bedrock(server.url)
    assert (counted(reader), len(server.seen)) == ({("botocore", HERE): 1}, 1)


@pytest.mark.usefixtures("handle")
def test_a_redirect_and_a_retry_below_a_client_are_one_request(
    server: Server, reader: InMemoryMetricReader
) -> None:
    requests.post(f"{server.url}/moved/v1/chat/completions", data=RAW, timeout=10)
    httpx.post(f"{server.url}/moved/v1/chat/completions", content=RAW, follow_redirects=True)
    retries = urllib3.Retry(2, status_forcelist=[200], allowed_methods=None)
    with (
        urllib3.PoolManager(retries=retries) as pool,
        pytest.raises(urllib3.exceptions.MaxRetryError),
    ):
        pool.urlopen("POST", f"{server.url}/v1/chat/completions", body=RAW, redirect=False)
    assert counted(reader) == {(name, HERE): 1 for name in ("requests", "httpx", "urllib3")}


class Over(httpx.BaseTransport):
    """A transport of httpx that goes over requests, as gateways have them."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        reply = requests.post(str(request.url), data=request.content, timeout=10)
        return httpx.Response(reply.status_code, content=reply.content)


@pytest.mark.usefixtures("handle")
def test_a_client_over_another_client_is_one_request(
    server: Server, reader: InMemoryMetricReader
) -> None:
    with httpx.Client(transport=Over()) as client:
        client.post(f"{server.url}/v1/messages", json=ASK)
    assert counted(reader) == {("httpx", HERE): 1}


@pytest.mark.usefixtures("handle")
def test_hosts_are_named_up_to_a_number_and_cleaned(reader: InMemoryMetricReader) -> None:
    """A host for each customer must not use up the series."""
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as client:
        client.post("https://API.Anthropic.com:443/v1/messages", content=b"")
        client.post("https://user:secret@me.openai.azure.com/openai/responses", content=b"")
        for number in range(40):
            client.post(f"https://c{number}.example/v1/chat/completions", content=b"")
    found = counted(reader)
    assert found["httpx", "api.anthropic.com"] == found["httpx", "me.openai.azure.com"] == 1
    assert (len(found), found["httpx", OTHER]) == (17, 26)


def test_there_is_a_line_for_each_client_and_host(
    handle: Handle, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    assert handle.missing == ()
    with caplog.at_level(logging.INFO, "otel_sealed"):
        for send in (_httpx, _httpx, _requests):
            send(f"{server.url}/v1/messages")
    assert [record.getMessage() for record in caplog.records] == [
        f"calls of models over {name} to {HERE} pass unobserved: they do not go through an SDK"
        " that is observed; see `otel-sealed doctor`"
        for name in ("httpx", "requests")
    ]


def test_nothing_of_a_request_goes_out_but_its_host(
    handle: Handle, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    """Credentials, path, query, headers, body, and what is no host at all."""
    words = {at: f"Kennung-{at}-4f71c09be2d6" for at in ("user", "path", "query", "body", "header")}
    words["host"] = "kennung_host_5be102d7fa93"
    assert handle.missing == ()
    url = "https://{user}:{user}@{host}/{path}/v1/chat/completions?x={query}"
    with (
        httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as client,
        caplog.at_level(logging.DEBUG, "otel_sealed"),
    ):
        client.post(
            url.format(**words), json={"model": words["body"]}, headers={"x": words["header"]}
        )
    assert counted(reader) == {("httpx", OTHER): 1}
    said = [record.getMessage() for record in caplog.records if record.name == "otel_sealed"]
    assert len(said) == 1
    outputs: dict[str, str | bytes] = {"log": str(said), "metrics": str(reader.get_metrics_data())}
    assert Sweeper(words).sweep(outputs) == []


# ----------------------------------------------------------------------------- below an SDK


@pytest.fixture
def gemini(wire: Wire) -> Iterator[genai.Client]:
    with genai.Client(api_key="k", http_options={"base_url": wire.url}) as client:
        yield client


@pytest.mark.usefixtures("handle")
def test_an_observed_call_is_not_counted(
    wire: Wire, gemini: genai.Client, tracker: Recorder, reader: InMemoryMetricReader
) -> None:
    """Nor are its retries."""
    wire.answers(b"{}", status=529, headers={"retry-after-ms": "1"})
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK)
    wire.replies.clear()
    wire.answers(CHAT)
    with openai.OpenAI(api_key="k", base_url=f"{wire.url}/v1") as chat:
        chat.chat.completions.create(model="m", messages=[])
    wire.replies.clear()
    wire.answers(GEMINI)
    gemini.models.generate_content(model="m", contents="x")
    wire.replies.clear()
    wire.streams(b"data: " + GEMINI + b"\n\n")
    assert len(list(gemini.models.generate_content_stream(model="m", contents="x"))) == 1
    assert (counted(reader), len(tracker.exchanges)) == ({}, 4)


@pytest.mark.usefixtures("handle")
async def test_an_async_one_is_not_counted_either(
    wire: Wire, gemini: genai.Client, tracker: Recorder, reader: InMemoryMetricReader
) -> None:
    wire.answers(MESSAGE)
    async with anthropic.AsyncAnthropic(api_key="k", base_url=wire.url) as client:
        await asyncio.gather(*(client.messages.create(**ASK) for _ in range(3)))
    wire.replies.clear()
    wire.answers(GEMINI)
    await gemini.aio.models.generate_content(model="m", contents="x")
    wire.replies.clear()
    wire.streams(b"data: " + GEMINI + b"\n\n")
    stream = await gemini.aio.models.generate_content_stream(model="m", contents="x")
    assert len([chunk async for chunk in stream]) == 1
    await gemini.aio.aclose()
    assert (counted(reader), len(tracker.exchanges)) == ({}, 5)


@pytest.mark.usefixtures("handle")
def test_the_stream_of_an_observed_call_covers_its_own_request_alone(
    wire: Wire, gemini: genai.Client, reader: InMemoryMetricReader
) -> None:
    wire.streams(b"data: " + GEMINI + b"\n\n")
    stream = iter(gemini.models.generate_content_stream(model="m", contents="x"))
    next(stream)
    httpx.post(f"{wire.url}/v1/messages", json=ASK)
    stream.close()  # type: ignore[attr-defined]
    assert counted(reader) == {("httpx", HERE): 1}


@pytest.mark.usefixtures("handle")
def test_a_task_that_outlives_the_call_it_was_started_in_is_not_covered_by_it(
    wire: Wire, server: Server, reader: InMemoryMetricReader
) -> None:
    contexts: list[contextvars.Context] = []

    def hook(_: Any) -> None:
        contexts.append(contextvars.copy_context())

    wire.answers(MESSAGE)
    with (
        httpx2.Client(event_hooks={"request": [hook]}) as inner,
        anthropic.Anthropic(api_key="k", base_url=wire.url, http_client=inner) as client,
    ):
        client.messages.create(**ASK)
    contexts[0].run(_requests, f"{server.url}/v1/messages")
    assert counted(reader) == {("requests", HERE): 1}


def test_a_call_that_passed_our_hook_and_failed_covers_no_other(
    wire: Wire, tracker: Recorder, reader: InMemoryMetricReader
) -> None:
    """Another instrumentation kept `request` as it was before us."""
    kept = anthropic.Anthropic.request

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        return kept(self, *args, **kwargs)

    anthropic.Anthropic.request = theirs  # type: ignore[method-assign]
    try:
        instrument(tracker=tracker, meter_provider=MeterProvider([reader]))
        with (
            anthropic.Anthropic(
                api_key="k", base_url="http://127.0.0.1:9", max_retries=0
            ) as client,
            pytest.raises(anthropic.APIConnectionError),
        ):
            client.messages.create(**ASK)
        assert counted(reader) == {}
        wire.answers(MESSAGE)
        httpx2.post(f"{wire.url}/v1/messages", json=ASK)
        with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
            client.messages.create(**ASK)
        assert counted(reader) == {("httpx2", HERE): 1}
    finally:
        del anthropic.Anthropic.request
        uninstrument()


def test_a_call_of_an_sdk_that_was_not_named_is_counted(
    wire: Wire, tracker: Recorder, reader: InMemoryMetricReader
) -> None:
    instrument("openai", tracker=tracker, meter_provider=MeterProvider([reader]))
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK)
        client.messages.count_tokens(model="m", messages=[])
    assert counted(reader) == {("httpx2", HERE): 1}


def test_a_call_that_the_application_suppresses_is_counted_and_the_line_says_why(
    handle: Handle,
    wire: Wire,
    gemini: genai.Client,
    tracker: Recorder,
    spans: Spans,
    reader: InMemoryMetricReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What it brings is not recorded, so that a later call will be unknown: it is at least said."""
    assert handle.missing == ()
    wire.answers(MESSAGE)
    with (
        suppressing(),
        anthropic.Anthropic(api_key="k", base_url=wire.url) as client,
        caplog.at_level(logging.INFO, "otel_sealed"),
    ):
        client.messages.create(**ASK)
        gemini.models.generate_content(model="m", contents="x")
    assert (tracker.exchanges, spans.names) == ([], [])
    assert sum(counted(reader).values()) == 2
    assert "the application suppresses instrumentation there" in caplog.text


# ------------------------------------------------------------------------------ on and off


def test_off_nothing_is_noticed(
    server: Server, tracker: Recorder, reader: InMemoryMetricReader
) -> None:
    """Uninstrumented, killed, or switched off by the setting."""
    meter = MeterProvider([reader])
    with instrument(
        tracker=tracker, meter_provider=meter, settings=Settings(http_hooks=False)
    ) as h:
        assert not {client.module for client in CLIENTS} & {
            name.rsplit(".", 2)[0] for name in h.attached
        }
        _httpx(f"{server.url}/v1/messages")
    _httpx(f"{server.url}/v1/messages")
    instrument(tracker=tracker, meter_provider=meter)
    killed = state.State()
    killed.killed = True
    state.use(killed, state.Watcher(killed))
    _httpx(f"{server.url}/v1/messages")
    state.reset()
    assert counted(reader) == {}
    _httpx(f"{server.url}/v1/messages")
    assert counted(reader) == {("httpx", HERE): 1}


def test_a_fault_of_ours_harms_no_request(
    handle: Handle,
    server: Server,
    reader: InMemoryMetricReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "STRICT", False)

    def fails(*_: Any, **__: Any) -> None:
        raise KeyError

    monkeypatch.setattr(type(handle.runtime.emitter), "unobserved", fails)
    for _, send in SENDS.values():
        assert send(f"{server.url}/v1/messages") == len(RAW)
    assert counted(reader) == {}


def test_a_body_that_is_made_as_it_is_sent_is_not_used_up(
    handle: Handle, server: Server, reader: InMemoryMetricReader
) -> None:
    assert handle.missing == ()
    for path in ("/v1/chat/completions", "/v1/messages"):
        reply = httpx.post(server.url + path, content=iter([RAW[:9], RAW[9:]]))
        assert reply.json() == {"length": len(RAW)}
        posted = requests.post(server.url + path, data=iter([RAW[:9], RAW[9:]]), timeout=10)
        assert posted.json() == {"length": len(RAW)}
    assert counted(reader) == {("httpx", HERE): 1, ("requests", HERE): 1}


def _error(url: str, send: Callable[[str], Any]) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever the client raises
        send(url)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://[/v1/messages", "nowhere", "http://127.0.0.1:9/v1/messages"]
)
def test_a_request_that_cannot_be_sent_fails_as_without_us(url: str, tracker: Recorder) -> None:
    sends = (_httpx, _requests, _aiohttp, _urllib)
    before = [_error(url, send) for send in sends]
    with instrument(tracker=tracker):
        assert [_error(url, send)[0] for send in sends] == [kind for kind, _ in before]


def _child(url: str, pipe: Any) -> None:
    reader = InMemoryMetricReader()
    uninstrument()
    instrument("openai", meter_provider=MeterProvider([reader]))
    _requests(f"{url}/v1/messages")
    pipe.send(counted(reader))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("handle")
def test_a_child_of_fork_notices_for_itself(server: Server, reader: InMemoryMetricReader) -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_child, args=(server.url, there))
    child.start()
    assert here.poll(30), "the child hung"
    assert here.recv() == {("requests", HERE): 1}
    child.join(10)
    assert counted(reader) == {}
