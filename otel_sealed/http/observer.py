"""Exchanges that passed by, judged after they are over, away from those who wait for their bytes.

Model. Whoever passes bytes on (a proxy, a gateway's processor) copies them into `Copy`s while they
pass, and hands over one `Seen` for each exchange that is over. A thread of this observer turns them
into exchanges of a model, in the order in which they were handed over, judges them, and writes a
span of our own for each, below the span that the caller's `traceparent` names.

Bounds. One body has `MOST_BODY` bytes, all copies together `MOST_HELD`, and `MOST_WAITING`
exchanges wait. What is beyond is passed on like everything else, and counted as unobserved: part of
a body is never judged.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from otel_sealed.contract import REFUSED, Exchange
from otel_sealed.http.adapter import Reading
from otel_sealed.http.records import Capture, Passed
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.http import Url
from otel_sealed.instrument.routes import sends_turn
from otel_sealed.instrument.runtime import Runtime
from otel_sealed.instrument.span import place
from otel_sealed.providers import dialects
from otel_sealed.providers.vendors import resolve
from otel_sealed.telemetry.names import operation_name
from otel_sealed.vocab import model_name

MOST_BODY: Final = 64 * 2**20
"""Bytes of one body that are kept (64 MiB): what is longer is read by nobody (`wire.parse`)."""
MOST_HELD: Final = 512 * 2**20
"""Bytes of all copies together (512 MiB): 500 streams of a megabyte each at once."""
MOST_WAITING: Final = 1_000
"""Exchanges that wait to be judged: some seconds of work."""
_JOIN_S: Final = 30.0
"""Seconds for which an end waits for what is still to be judged."""
_TRACE: Final = TraceContextTextMapPropagator()


class Held:
    """The bytes of all copies of one server. Thread-safe as far as a count needs it."""

    __slots__ = ("_lock", "bytes", "most")

    def __init__(self, most: int = MOST_HELD) -> None:
        """`most`: bytes that may be held at once."""
        self.most = most
        self.bytes = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Whether so many bytes more may be held; they are, then."""
        with self._lock:
            if self.bytes + size > self.most:
                return False
            self.bytes += size
            return True

    def give(self, size: int) -> None:
        """So many are held no more."""
        with self._lock:
            self.bytes -= size


class Copy:
    """One body, or the messages of one direction, kept while it passes. Used by one thread."""

    __slots__ = ("_held", "_size", "full", "parts")

    def __init__(self, held: Held) -> None:
        """`held` counts what this and all others hold."""
        self._held = held
        self._size = 0
        self.full = False
        self.parts: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Keep what passes, or give the whole body up."""
        if self.full:
            return
        if self._size + len(data) > MOST_BODY or not self._held.take(len(data)):
            self.full = True
            self.release()
            return
        self._size += len(data)
        self.parts.append(data)

    def release(self) -> None:
        """Let go of what is held."""
        self._held.give(self._size)
        self._size = 0
        self.parts = []

    def whole(self) -> bytes:
        """The body."""
        return b"".join(self.parts)


@dataclass(slots=True)
class Seen:
    """One exchange that is over.

    Attributes:
        method: Of the request.
        url: Where it went, as one URL.
        headers: Of the request, names in lower case.
        request: Its body.
        response: That of the response, or the messages that answered.
        status: None where no response came.
        answered: Headers of the response, names in lower case.
        whole: Whether both bodies were seen from beginning to end.
        complete: Whether the reply was sent to its end.
        messages: Whether `response` holds messages of a WebSocket.
        started_ns: When the request began, in ns since the epoch; `ended_ns`: when it was over.
    """

    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    request: Copy = field(repr=False)
    response: Copy = field(repr=False)
    status: int | None = None
    answered: dict[str, str] = field(default_factory=dict, repr=False)
    whole: bool = True
    complete: bool = True
    messages: bool = False
    started_ns: int = 0
    ended_ns: int = 0

    def capture(self) -> Capture:
        """The exchange as the adapter takes it."""
        parts = self.response.parts
        return Capture(
            method=self.method,
            url=self.url,
            headers=self.headers,
            request=self.request.whole() or None,
            status=self.status,
            answered=self.answered,
            response=None if self.messages else self.response.whole(),
            complete=self.complete,
            events=[part.decode("utf-8", "replace") for part in parts] if self.messages else None,
            transport="websocket" if self.messages else None,
        )

    def release(self) -> None:
        """Let go of both bodies."""
        self.request.release()
        self.response.release()


class Observer:
    """Judges what is handed over. `judged` and `missed` count exchanges with turns of a model."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        """`name` is what unobserved requests are counted under."""
        self.passed = Passed()
        self.held = Held()
        self.judged = 0
        self.missed = 0
        self._runtime = runtime
        self._name = name
        self._reading = Reading(self.passed, runtime.account)
        self._waiting: queue.Queue[Seen | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name=f"otel_sealed_{name}", daemon=True)
        self._thread.start()

    def hand(self, seen: Seen) -> None:
        """Take an exchange over; never waits."""
        try:
            self._waiting.put_nowait(seen)
        except queue.Full:
            self._miss(seen)

    def close(self) -> None:
        """Judge what is still waiting, and end."""
        self._waiting.put(None)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while (seen := self._waiting.get()) is not None:
            try:
                with shield(f"{self._name}.observe"):
                    self._observe(seen)
            finally:
                seen.release()

    def _observe(self, seen: Seen) -> None:
        if not seen.whole or seen.request.full or seen.response.full:
            self._miss(seen)
            return
        unread = self.passed.bodies
        exchange = self._reading.exchange(seen.capture(), None)
        if exchange is not None:
            self.judged += 1
            self._judge(seen, exchange)
        elif self.passed.bodies > unread:
            self._miss(seen)

    def _miss(self, seen: Seen) -> None:
        """Count an exchange that nobody judges, if it had a turn of a model."""
        try:
            url = Url.of(seen.url)
            if seen.method == "POST" and sends_turn(url.host, url.path, seen.request.whole()):
                self.missed += 1
                self._runtime.emitter.unobserved(self._name, url.host, suppressed=False)
        except ValueError:
            pass  # a URL that cannot be parsed is none of an API
        finally:
            seen.release()

    def _judge(self, seen: Seen, exchange: Exchange) -> None:
        emitter, dialect = self._runtime.emitter, dialects()[exchange.api]
        host, model = exchange.host or "", exchange.model or ""
        operation = operation_name(exchange.operation or "", dialect.name)
        span = self._runtime.tracer.start_span(
            f"{operation} {model_name(model)}".rstrip(),
            context=_TRACE.extract(seen.headers),
            kind=SpanKind.CLIENT,
            attributes=emitter.start_attributes(
                operation=operation,
                provider=resolve(exchange.provider, host, model, dialect.vendor)[0],
                model=model,
                host=host,
                port=None,
            ),
            start_time=seen.started_ns or None,
        )
        try:
            began = time.perf_counter()
            exchange.origin = place(span)
            report = self._runtime.tracker.observe(exchange)
            if report.facts.model and not model:
                span.update_name(f"{operation} {model_name(report.facts.model)}")
            refused = seen.status is not None and seen.status >= REFUSED
            emitter.emit(
                report,
                span,
                owned=True,
                check_s=time.perf_counter() - began,
                error_type=str(seen.status) if refused else None,
            )
        finally:
            span.end(seen.ended_ns or None)


def lowered(headers: Any) -> dict[str, str]:
    """Pairs of names and values as a mapping of lower-case names; of several values the last."""
    return {_text(name).lower(): _text(value) for name, value in headers}


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
