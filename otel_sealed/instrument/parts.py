"""A call that is several turns of a model, or half of one: each part is told as a call of its own.

The parts get spans of our own below whatever span is active; a span of another tracer around the
call stands for none of them and is left alone. They carry the times of the call, since nothing
tells theirs. Their number is bounded, and their spans more so: a batch may have 100,000 entries.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from opentelemetry.trace import INVALID_SPAN, Span

from otel_sealed.instrument.body import Kept
from otel_sealed.instrument.entries import begins_like_lines
from otel_sealed.instrument.exchange import NOWHERE, Call
from otel_sealed.instrument.guard import internal_error, shield
from otel_sealed.instrument.runtime import Sent
from otel_sealed.instrument.span import place
from otel_sealed.instrument.tee import put
from otel_sealed.wire import Exchange

MOST_PARTS: Final = 10_000
"""Most parts of one call that are judged or recorded; that there were more is counted."""
MOST_SPANS: Final = 256
"""Most spans for the parts of one call; metrics and log events are there for all of them."""


class Lines(Kept):
    """Keeps a body that may be JSON lines, by its first bytes, and nothing of any other."""

    __slots__ = ()

    def keep(self, chunk: Any) -> None:
        """Remember a chunk that passes, or give the body up."""
        if not self.size and not self.encoding and not begins_like_lines(chunk):
            self.release()
        super().keep(chunk)


class Parts(Call):
    """Such a call."""

    claims = False

    def attempted(self, sent: Sent) -> None:
        """The attempt that was answered; what was seen of a streamed request stays."""
        if not isinstance(self._sent, Streamed):
            super().attempted(sent)

    def kept(self, encoding: str) -> Kept:
        """Files of any kind are downloaded where results of batches are."""
        return Lines(encoding) if self._kind.transport == "batch" else Kept(encoding)

    def _observe(self) -> None:
        path = getattr(self._sent, "path", str)()
        parts = self._kind.parts
        if parts is None:
            raise RuntimeError("a call of one part")
        where = self._sent.where() if self._sent is not None else NOWHERE
        exchange = self._exchange(INVALID_SPAN, where)
        whole = replace(exchange, conversation=self._one_conversation())
        for number, exchange in enumerate(islice(parts(whole, path), MOST_PARTS + 1)):
            if number == MOST_PARTS:
                internal_error("parts", "TooManyParts")
                return
            with shield("parts.observe"):
                told = self._own_span(_model(exchange), where) if number < MOST_SPANS else None
                self._tell(exchange, told)

    def _discard(self) -> None:
        getattr(self._sent, "release", _nothing)()
        super()._discard()

    def _one_conversation(self) -> str | None:
        """The entries of a batch are no conversation; whoever sends them may be in one."""
        return None if self._kind.transport == "batch" else self._conversation()

    def _tell(self, exchange: Exchange, span: Span | None) -> None:
        try:
            began = time.perf_counter()
            exchange.origin = place(span) if span is not None else b""
            report = self._runtime.tracker.observe(exchange)
            self._runtime.emitter.emit(
                report,
                span,
                owned=span is not None,
                check_s=time.perf_counter() - began,
                error_type=self._error,
            )
        finally:
            if span is not None:
                self._end(span)


def _nothing() -> None:
    return None


def _model(exchange: Exchange) -> str:
    body = exchange.request if exchange.request is not None else exchange.response
    model = body.get("model") if isinstance(body, dict) else None
    return model if isinstance(model, str) else exchange.model or ""


class Streamed:
    """A request whose body is sent as a stream (a file in a form), looked on as it passes."""

    def __init__(self, sent: Sent, request: Any, call: Call) -> None:
        """Puts a tee on the stream of `request`, an httpx or httpx2 request."""
        self._sent = sent
        self._kept = Kept()
        put(request, call, self._kept)

    def body(self) -> Any:
        """What passed; None where it was more than is kept."""
        return None if self._kept.full else b"".join(self._kept.chunks)

    def release(self) -> None:
        """Let go of what passed; the SDK's response holds on to its request."""
        self._kept.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_sent"], name)


def sent_of(sent: Sent, request: Any, call: Call) -> Any:
    """`sent`, or where the body of `request` is no bytes, one that keeps what passes of it."""
    if not isinstance(call, Parts):
        return sent
    try:
        _ = request.content
    except RuntimeError:  # httpx raises RequestNotRead for a body it did not keep
        return Streamed(sent, request, call)
    return sent
