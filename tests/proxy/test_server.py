"""The reverse proxy on loopback: bytes pass as without it, in both directions, and are judged."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import brotli
import pytest
from backports import zstd
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from otel_sealed.cli.proxy import serving
from otel_sealed.errors import SealedError
from otel_sealed.http import observer as watching
from otel_sealed.http.observer import Observer
from otel_sealed.instrument import build
from otel_sealed.proxy.upstreams import Upstreams
from otel_sealed.telemetry.settings import Settings

HERE = "127.0.0.1"
ASK = {
    "model": "claude-opus-4-6",
    "max_tokens": 9,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [{"role": "user", "content": "hé"}],
}
RAW = json.dumps(ASK, ensure_ascii=False).encode()
SEAL = "c2VhbA" * 20
REPLY = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [{"type": "thinking", "thinking": "So.", "signature": SEAL}],
    }
).encode()
EVENTS = (
    b'event: message_start\ndata: {"type":"message_start","message":{"model":"claude-x"}}\n\n',
    b'event: ping\ndata: {"type":"ping"}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
)
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


class Upstream:
    """Keeps each request as it came and answers with the bytes that a test scripts."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.chunks: list[bytes] = []
        self.go = threading.Semaphore(0)
        self.waits = False
        self._socket = socket.create_server((HERE, 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://{HERE}:{self.port}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with closing(connection):
            self.seen.append(read_request(connection))
            for chunk in self.chunks:
                if self.waits:
                    self.go.acquire(timeout=10)
                try:
                    connection.sendall(chunk)
                except OSError:
                    return

    def answers(self, body: bytes, *headers: str, chunked: bool = False) -> None:
        """One whole body."""
        length = "transfer-encoding: chunked" if chunked else f"content-length: {len(body)}"
        head = "\r\n".join(("HTTP/1.1 200 OK", *headers, length, "connection: close", "", ""))
        sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
        self.chunks = [head.encode() + sent]

    def streams(self, *chunks: bytes, headers: tuple[str, ...] = (), cut: bool = False) -> None:
        """Chunks, each in a write of its own."""
        lines = (
            *("HTTP/1.1 200 OK", "content-type: text/event-stream"),
            *(*headers, "transfer-encoding: chunked", "", ""),
        )
        self.chunks = ["\r\n".join(lines).encode("latin-1")]
        self.chunks += [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]
        self.chunks += [] if cut else [b"0\r\n\r\n"]

    def stop(self) -> None:
        self._socket.close()


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65_536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65_536)
    elif b"content-length: " in lower:
        size = int(lower.split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < size:
            body += connection.recv(1 << 20)
    return head + b"\r\n\r\n" + body


class Watched:
    """An observer, and the spans it wrote."""

    def __init__(self, name: str, settings: Settings | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([InMemoryMetricReader()])
        runtime = build.runtime(tracers, meters, LoggerProvider(), settings or Settings(), None)
        self.observer = Observer(runtime, name)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """What was judged by now."""
        return self._exporter.get_finished_spans()


@contextmanager
def watched(name: str, settings: Settings | None = None) -> Iterator[Watched]:
    """An observer that has judged everything once the block is over."""
    made = Watched(name, settings)
    try:
        yield made
    finally:
        made.observer.close()


class Bench:
    """A proxy in front of an upstream, and what it wrote."""

    def __init__(self, upstream: Upstream) -> None:
        self._watched = Watched("proxy")
        self.observer = self._watched.observer
        named = [f"{name}={upstream.url}" for name in ("anthropic", "openai", "gemini")]
        self._proxy = serving(Upstreams({}, named), self.observer, HERE, 0)
        self._stopped = False
        self.url = self._proxy.__enter__()
        self.port = int(self.url.rpartition(":")[2])

    def stop(self) -> None:
        """What is under way is over then, and judged."""
        if not self._stopped:
            self._stopped = True
            self._proxy.__exit__(None, None, None)
            self.observer.close()

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """What was judged, once all of it is."""
        self.stop()
        return self._watched.spans


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    made = Upstream()
    yield made
    made.stop()


@pytest.fixture
def bench(upstream: Upstream) -> Iterator[Bench]:
    made = Bench(upstream)
    yield made
    made.stop()


def post(port: int, path: str, body: bytes, *headers: str, chunked: bool = False) -> bytes:
    """All bytes of a response, by a client of sockets alone."""
    length = "transfer-encoding: chunked" if chunked else f"content-length: {len(body)}"
    lines = (f"POST {path} HTTP/1.1", "host: example", *headers, length, "connection: close")
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    with closing(socket.create_connection((HERE, port), timeout=20)) as connection:
        connection.sendall("\r\n".join((*lines, "", "")).encode() + sent)
        found = b""
        while more := connection.recv(1 << 20):
            found += more
        return found


def head(body: bytes) -> bytes:
    """The head of a request whose connection stays open."""
    length = f"content-length: {len(body)}"
    return f"POST /anthropic/v1/messages HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n".encode()


_HOP = (b"connection:", b"host:", b"date:", b"server:", b"transfer-encoding:", b"content-length:")


def parted(message: bytes) -> tuple[list[bytes], bytes]:
    """The headers that are not of the connection, and the body without its chunks."""
    head, _, body = message.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    kept = [line for line in headers if not line.lower().startswith(_HOP)]
    if b"transfer-encoding: chunked" in head.lower():
        plain = b""
        while body and (size := int(body.partition(b"\r\n")[0], 16)):
            rest = body.partition(b"\r\n")[2]
            plain, body = plain + rest[:size], rest[size + 2 :]
        body = plain
    return [first.rpartition(b" ")[0] if first.startswith(b"POST") else first, *kept], body


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
def test_a_whole_exchange_passes_byte_for_byte(
    bench: Bench,
    upstream: Upstream,
    encoding: str,
    chunked: bool,  # noqa: FBT001 - both framings
) -> None:
    """Both ends see what they see without the proxy: headers, their order, and bodies."""
    packed = PACK[encoding](REPLY)
    headers = [f"content-encoding: {encoding}"] if encoding else []
    more = ("content-type: application/json", "X-Odd: ä", *headers)
    upstream.answers(packed, *more, chunked=chunked)
    sent = ["X-Api-Key: k", "anthropic-version: 2023-06-01", "Accept-Encoding: gzip, br", *headers]
    body = PACK[encoding](RAW)
    direct = post(upstream.port, "/v1/messages?beta=true", body, *sent, chunked=chunked)
    through = post(bench.port, "/anthropic/v1/messages?beta=true", body, *sent, chunked=chunked)
    assert parted(through) == parted(direct)
    assert parted(upstream.seen[1]) == parted(upstream.seen[0])
    assert upstream.seen[1].startswith(b"POST /v1/messages?beta=true HTTP/1.1\r\n")
    (span,) = bench.spans
    attributes = dict(span.attributes or {})
    assert (attributes["otel_sealed.received.count"], span.name) == (1, "chat claude-opus-4-6")
    assert SEAL not in str(attributes)


@pytest.mark.parametrize("encoding", PACK)
def test_a_stream_passes_byte_for_byte(bench: Bench, upstream: Upstream, encoding: str) -> None:
    packed = PACK[encoding](b"".join(EVENTS))
    headers = (f"content-encoding: {encoding}",) if encoding else ()
    upstream.streams(packed[:11], packed[11:], headers=headers)
    direct = post(upstream.port, "/v1/messages", RAW)
    through = post(bench.port, "/anthropic/v1/messages", RAW)
    assert parted(through) == parted(direct)
    assert len(bench.spans) == 1


def test_a_chunk_is_never_held_back(bench: Bench, upstream: Upstream) -> None:
    """Each event reaches the client before the next one is sent upstream."""
    upstream.streams(*EVENTS)
    upstream.waits = True
    with closing(socket.create_connection((HERE, bench.port), timeout=10)) as client:
        head = (
            f"POST /anthropic/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(RAW)}\r\n\r\n"
        )
        client.sendall(head.encode() + RAW)
        found = b""
        for event in (b"\r\n\r\n", *EVENTS):
            upstream.go.release()
            while event not in found:
                found += client.recv(65_536)
    upstream.go.release()


def test_a_reply_that_is_cut_is_cut_for_the_client_too(bench: Bench, upstream: Upstream) -> None:
    upstream.streams(*EVENTS[:2], cut=True)
    try:
        found = post(bench.port, "/anthropic/v1/messages", RAW)
    except ConnectionError:
        found = b""
    assert not found.endswith(b"0\r\n\r\n")
    (span,) = bench.spans
    assert (span.attributes or {}).get("otel_sealed.verdict") is None


def test_a_client_that_leaves_ends_the_request(bench: Bench, upstream: Upstream) -> None:
    upstream.streams(*EVENTS)
    upstream.waits = True
    client = socket.create_connection((HERE, bench.port), timeout=10)
    client.sendall(head(RAW) + RAW)
    upstream.go.release()
    upstream.go.release()
    assert client.recv(65_536)
    client.close()
    for _ in range(8):
        upstream.go.release()
    bench.stop()
    assert bench.observer.held.bytes == 0


def test_an_upstream_that_is_not_there_is_said_in_json(upstream: Upstream) -> None:
    upstream.stop()
    made = Bench(upstream)
    try:
        found = post(made.port, "/anthropic/v1/messages", RAW)
    finally:
        made.stop()
    assert found.startswith(b"HTTP/1.1 502 ")
    said = json.loads(found.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert said.startswith("otel-sealed proxy: the upstream cannot be reached: ")


@pytest.mark.parametrize("path", ["/", "/v1/messages", "/example.org/x", "/anthropic.evil/v1"])
def test_nothing_but_the_list_is_reachable(bench: Bench, upstream: Upstream, path: str) -> None:
    assert post(bench.port, path, RAW).startswith(b"HTTP/1.1 404 ")
    assert upstream.seen == []


def test_what_is_no_turn_passes_and_is_counted_by_its_host(
    bench: Bench, upstream: Upstream
) -> None:
    upstream.answers(b'{"data":[]}', "content-type: application/json")
    post(bench.port, "/openai/v1/embeddings", b'{"input":"x"}')
    assert bench.spans == ()
    assert dict(bench.observer.passed.hosts) == {"127.0.0.1": 1}
    assert (bench.observer.judged, bench.observer.missed) == (0, 0)


def test_a_span_is_below_the_one_that_the_caller_names(bench: Bench, upstream: Upstream) -> None:
    upstream.answers(REPLY, "content-type: application/json")
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    post(bench.port, "/anthropic/v1/messages", RAW, f"traceparent: 00-{trace}-{parent}-01")
    (span,) = bench.spans
    context: Any = span.get_span_context()
    assert (f"{context.trace_id:032x}", span.parent and f"{span.parent.span_id:016x}") == (
        trace,
        parent,
    )
    assert (span.start_time or 0) < (span.end_time or 0)


def test_a_lost_seal_is_found_between_two_calls(bench: Bench, upstream: Upstream) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    thought = {"type": "thinking", "thinking": "So.", "signature": SEAL}
    said = {**json.loads(REPLY), "content": [thought, call], "stop_reason": "tool_use"}
    upstream.answers(json.dumps(said).encode(), "content-type: application/json")
    post(bench.port, "/anthropic/v1/messages", RAW)
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    again = {
        **ASK,
        "messages": [
            {"role": "user", "content": "hé"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    post(bench.port, "/anthropic/v1/messages", json.dumps(again, ensure_ascii=False).encode())
    _, second = bench.spans
    assert (second.attributes or {})["otel_sealed.verdict"] == "breaks"


def test_a_body_of_100_megabytes_passes_and_is_not_judged(
    bench: Bench, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is longer than what is read is kept by nobody, and counted."""
    monkeypatch.setattr(watching, "MOST_BODY", 1 << 20)
    upstream.answers(REPLY, "content-type: application/json")
    body = json.dumps({**ASK, "messages": [{"role": "user", "content": "x" * 100_000_000}]})
    found = post(bench.port, "/anthropic/v1/messages", body.encode())
    assert parted(found)[1] == REPLY
    assert upstream.seen[0].endswith(body[-64:].encode())
    bench.stop()
    assert (bench.observer.judged, bench.observer.held.bytes) == (0, 0)


def test_copies_together_are_bounded(bench: Bench, upstream: Upstream) -> None:
    bench.observer.held.most = 16
    upstream.answers(REPLY, "content-type: application/json")
    assert parted(post(bench.port, "/anthropic/v1/messages", RAW))[1] == REPLY
    assert (bench.spans, bench.observer.held.bytes) == ((), 0)


def test_many_streams_at_once_each_get_their_own(bench: Bench, upstream: Upstream) -> None:
    upstream.streams(*EVENTS)

    async def one(number: int) -> bytes:
        reader, writer = await asyncio.open_connection(HERE, bench.port)
        body = json.dumps({**ASK, "metadata": {"user_id": str(number)}}).encode()
        writer.write(head(body) + body)
        found = b""
        while not found.endswith(b"0\r\n\r\n"):
            found += await reader.read(65_536)
        writer.close()
        return parted(found)[1]

    async def all_of() -> list[bytes]:
        return await asyncio.gather(*(one(number) for number in range(100)))

    assert asyncio.run(all_of()) == [b"".join(EVENTS)] * 100
    assert (len(bench.spans), bench.observer.held.bytes) == (100, 0)


# --------------------------------------------------------------------------------- WebSocket


@pytest.fixture
def echo() -> Iterator[tuple[Any, list[Any]]]:
    """A server that keeps messages, and answers a request for a response with two events."""
    seen: list[Any] = []

    def handler(connection: ServerConnection) -> None:
        for message in connection:
            seen.append(message)
            if isinstance(message, bytes):
                connection.send(message)
                continue
            connection.send('{"type":"response.created","response":{"id":"r"}}')
            done = {"id": "resp_1", "model": "gpt-5.2", "status": "completed", "output": ITEMS}
            connection.send(json.dumps({"type": "response.completed", "response": done}))

    with serve(handler, HERE, 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server, seen
        server.shutdown()
        thread.join()


ITEMS = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL}]


def test_messages_of_a_websocket_pass_and_are_judged(echo: tuple[Any, list[Any]]) -> None:
    server, seen = echo
    upstream = Upstream()
    upstream.url = f"http://{HERE}:{server.socket.getsockname()[1]}"
    bench = Bench(upstream)
    asked = json.dumps({"type": "response.create", "model": "gpt-5.2", "input": "hé"})
    try:
        with connect(f"ws://{HERE}:{bench.port}/openai/responses", max_size=None) as socket_:
            socket_.send(asked)
            found = [json.loads(socket_.recv())["type"] for _ in range(2)]
            socket_.send(b"\x00\x01")
            assert socket_.recv() == b"\x00\x01"
    finally:
        bench.stop()
        upstream.stop()
    assert found == ["response.created", "response.completed"]
    assert seen == [asked, b"\x00\x01"]
    (span,) = bench.spans
    attributes = dict(span.attributes or {})
    assert attributes["otel_sealed.received.count"] == 1
    assert attributes["gen_ai.request.model"] == "gpt-5.2"


def test_a_refused_upgrade_is_refused_for_the_client(bench: Bench, upstream: Upstream) -> None:
    upstream.chunks = [b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n"]
    with (
        pytest.raises(Exception, match="426"),
        connect(f"ws://{HERE}:{bench.port}/openai/responses"),
    ):
        pass


# --------------------------------------------------------------------------------- upstreams


def test_a_variable_that_is_set_is_the_upstream() -> None:
    known = Upstreams({"ANTHROPIC_BASE_URL": "http://gateway.example/claude/"})
    assert known.of("/anthropic/v1/messages?x=1") == "http://gateway.example/claude/v1/messages?x=1"
    assert known.of("/openai/responses") == "https://api.openai.com/v1/responses"
    assert known.of("/other/responses") is None
    assert known.environment("http://127.0.0.1:1") == {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/anthropic",
        "OPENAI_BASE_URL": "http://127.0.0.1:1/openai",
        "OPENAI_API_BASE": "http://127.0.0.1:1/openai",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1/gemini",
    }


def test_a_command_is_given_the_base_urls_that_it_names() -> None:
    command = ["codex", "-c", "openai_base_url={openai}", "{other}"]
    assert Upstreams({}).filled(command, "http://x:1") == [
        *("codex", "-c", "openai_base_url=http://x:1/openai", "{other}"),
    ]


@pytest.mark.parametrize(
    "pair", ["", "mine", "mine=", "mine=ftp://x", "mine=http://", "a b=http://x"]
)
def test_an_upstream_that_is_none_is_named(pair: str) -> None:
    with pytest.raises(SealedError, match="is no upstream"):
        Upstreams({}, [pair])
