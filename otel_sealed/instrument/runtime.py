"""What all calls of one `instrument()` share, and what this floor asks of those below it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from opentelemetry.trace import Span, Tracer

from otel_sealed.instrument import finalizing
from otel_sealed.model import Report
from otel_sealed.vocab import CONVERSATION_ID
from otel_sealed.wire import Api, Exchange


class Observes(Protocol):
    """The core, as this floor sees it."""

    def observe(self, exchange: Exchange) -> Report:
        """Judge the request, record the response."""


class Emits(Protocol):
    """Emission, as this floor sees it."""

    def emit(
        self,
        report: Report,
        span: Span | None,
        *,
        owned: bool,
        check_s: float = 0.0,
        error_type: str | None = None,
    ) -> None:
        """Write what a report says on `span`, into metrics and log events.

        `check_s`: seconds it took to read and judge the exchange.
        """

    def start_attributes(
        self, *, operation: str, provider: str, model: str, host: str, port: int | None = None
    ) -> dict[str, Any]:
        """What a span of our own starts with."""

    def instrumented(self, provider: str) -> None:
        """Start the series of a provider whose SDK is wrapped."""

    def noticing(self, client: str) -> None:
        """Start the series of an HTTP client that is wrapped."""

    def unobserved(self, client: str, host: str, *, suppressed: bool) -> None:
        """A request with turns of a model passed unobserved."""

    def internal_error(self, where: str, kind: str) -> None:
        """Count one fault of ours."""

    def on_collect(self, work: Callable[[], object]) -> None:
        """Do `work` whenever metrics are collected, in whatever thread does that."""

    def on_seams(self, count: Callable[[], tuple[int, int]]) -> None:
        """Ask `count` at each collection how many seams are wrapped, and how many are missing."""


class Where(NamedTuple):
    """Where a request is sent.

    Attributes:
        host: The host of the URL.
        port: Its port, None for the scheme's own.
        model: The model, where the URL names it and the body need not.
        cloud: The cloud that the path or the client names, whatever the host.
        project: The project that the path names, empty for none.
    """

    host: str
    port: int | None = None
    model: str | None = None
    cloud: str | None = None
    project: str = ""


class Sent(Protocol):
    """The last attempt of a request, read only once the call is over."""

    def body(self) -> Any:
        """What was sent: bytes, or the wire-shaped JSON they were made of."""

    def where(self) -> Where:
        """Where it was sent."""

    def credential(self) -> str | None:
        """What tells accounts apart and does not rotate by itself; None where nothing does."""

    def betas(self) -> tuple[str, ...]:
        """The beta features that headers ask for."""


class Open(Protocol):
    """A call whose stream is still to be read. `started`: in seconds of the clock of all calls."""

    started: float

    def settle(self) -> None:
        """Settle it, whatever of it was read."""

    def settle_if_left(self, before: float) -> None:
        """Settle it if its end had passed `before` that time, though nobody closed it."""


def _nothing() -> None:
    return None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Runtime:
    """What all calls of one `instrument()` share.

    `settled` is called after each settled call; `on` until it is taken back; `transport`: whether
    calls of HTTP clients that no SDK makes are observed.
    """

    tracker: Observes
    emitter: Emits
    tracer: Tracer
    account: Callable[[str], str]
    conversation_attribute: str = CONVERSATION_ID
    settled: Callable[[], None] = _nothing
    on: bool = True
    transport: bool = False
    _open: dict[int, Open] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def opened(self, call: Open) -> None:
        """A call returned a stream that is still to be read.

        Whoever holds that stream tells its call when it is dropped; a weak reference would be gone
        by then, if the collector found it and an event loop closes it later. Where nobody ever
        closes a stream this is the time at which the ones before are settled.
        """
        with self._lock:
            self._open[id(call)] = call
        self.settle_finished(before=call.started)

    def closed(self, call: Open) -> None:
        """A call is over."""
        if self._open:
            with self._lock:
                self._open.pop(id(call), None)

    def forget(self) -> None:
        """Leave the open streams to whoever else has them: this process was forked off."""
        self._open.clear()

    def settle_finished(self, before: float = inf) -> None:
        """Settle the streams that nobody will read on, of calls that started `before` then.

        Oldest first: a request is to be judged by what came before it.
        """
        if self._open:
            with self._lock:
                waiting = list(self._open.values())
            for call in waiting:
                if call.started < before:
                    finalizing.later(call.started, partial(call.settle_if_left, before))
        finalizing.catch_up(before)

    def settle_open(self) -> None:
        """Settle every stream, oldest first, whether its end was read or not."""
        with self._lock:
            waiting = sorted(self._open.values(), key=attrgetter("started"))
        for call in waiting:
            call.settle()
        finalizing.catch_up()


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of call it is: the wire, its `operation` there, and its GenAI operation name.

    `lacks`: artifacts that no object of the SDK's release can hold.
    `parts`: told the exchange of the whole call and its path with query, gives the turns in it; a
    call without is one turn. `transport`: what carries it if not an HTTP request of its own.
    `purpose`: what the form field of that name has to say for it to be of this sort.
    """

    api: Api
    name: str
    operation: str | None = None
    provider: str = ""
    lacks: frozenset[str] = frozenset()
    transport: str | None = None
    parts: Callable[[Exchange, str], Iterator[Exchange]] | None = None
    purpose: str = ""
