"""A loopback server that sends exactly what a test scripts, and a tracker that records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_sealed.instrument import Handle, guard, instrument, uninstrument
from otel_sealed.model import Facts, Report
from otel_sealed.wire import Exchange


@dataclass
class Reply:
    """What the server answers: `chunks` as they are, in writes of their own."""

    chunks: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    cut: bool = False
    pause: threading.Event | None = None


@dataclass
class Seen:
    """One request and the bytes of the body that answered it."""

    path: str
    body: bytes
    sent: bytes


class Wire:
    """The scripted server. The last reply is given again when the script is over."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.seen: list[Seen] = []
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                reply = wire.replies.pop(0) if len(wire.replies) > 1 else wire.replies[0]
                wire.seen.append(Seen(self.path, body, b"".join(reply.chunks)))
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for at, chunk in enumerate(reply.chunks):
                    if at and reply.pause is not None:
                        reply.pause.wait(10)
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                if reply.cut:
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")

            do_GET = do_DELETE = do_POST  # noqa: N815 - the base class says so

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answers(self, *chunks: bytes, **kwargs: Any) -> None:
        """Script one more reply."""
        self.replies.append(Reply(list(chunks), **kwargs))

    def streams(self, *events: bytes, **kwargs: Any) -> None:
        """Script one more event stream."""
        headers = {"content-type": "text/event-stream", **kwargs.pop("headers", {})}
        self.answers(*events, headers=headers, **kwargs)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Recorder:
    """A tracker that keeps what it is told."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.span_open: list[bool] = []
        self.error: Exception | None = None

    def observe(self, exchange: Exchange) -> Report:
        if self.error is not None:
            raise self.error
        self.exchanges.append(exchange)
        return Report(facts=Facts(dialect="anthropic", vendor="anthropic"))

    @property
    def one(self) -> Exchange:
        (exchange,) = self.exchanges
        return exchange


class Spans:
    """A tracer provider and what it exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.ended]


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(guard, "STRICT", True)
    # native spans of the anthropic SDK only where a test asks for them
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY", "false")
    yield
    uninstrument()


@pytest.fixture
def wire() -> Iterator[Wire]:
    server = Wire()
    yield server
    server.stop()


@pytest.fixture
def tracker() -> Recorder:
    return Recorder()


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def handle(tracker: Recorder, spans: Spans, reader: InMemoryMetricReader) -> Handle:
    return instrument(
        tracer_provider=spans.provider,
        meter_provider=MeterProvider([reader]),
        tracker=tracker,
    )


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 5
        while not condition():
            assert time.monotonic() < deadline, "did not happen within 5 s"
            time.sleep(0.005)

    return wait
