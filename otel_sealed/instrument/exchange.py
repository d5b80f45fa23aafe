"""One logical call from its first attempt to the end of its reply: gathered, then observed once.

Theory of operation. Before the request's bytes are sent a `Call` collects references and reads the
current span; nothing is parsed, hashed or started. While the reply passes it keeps references to
its bytes. When the call is over it is *settled*, exactly once, by whichever comes first:

* a whole reply: the SDK's request method returns or raises;
* a stream: its body is read to the end, closed, fails, or is dropped;
* a claimed span of another tracer (`span.py`) is about to end;
* a later call of this process is settled, and this stream already brought its closing event:
  what came in is recorded before what goes out is judged, even if the reader never read on.

To settle is: choose the span, `tracker.observe`, `emitter.emit`, end the span if it is ours.

Locking: `_lock` is held while a call is settled, so that a span's real `end` waits for what is
being written on it. It is re-entrant, and no two calls' locks are ever held together.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind

from otel_sealed.contract import REFUSED
from otel_sealed.instrument import finalizing
from otel_sealed.instrument.body import Kept, aws_events, ended, is_events, payloads, plain
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.runtime import Kind, Runtime, Sent, Where
from otel_sealed.instrument.span import Claim, claim, place
from otel_sealed.vocab import model_name
from otel_sealed.wire import Exchange
from otel_sealed.wire.parse import Unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context

NOWHERE: Final = Where("")
"""Of a call that sent nothing."""


class Call:
    """One logical call, retries included. Used by the thread or task that makes it."""

    claims: ClassVar[bool] = True
    """Whether a span of another tracer stands for it, and is written on."""

    # what a call begins with stands here: it is made while the application waits
    late = False
    """Begun at its first attempt, since its beginning was not seen."""
    _duration_s: float | None = None
    _settled = False
    _returned = False
    _sent: Sent | None = None
    _claim: Claim | None = None
    _active: Span | None = None
    outer: Span | None = None
    """A span of this call that another tracer opened, where the active one does not record."""
    _context: Context | None = None
    _status: int | None = None
    _content_type = ""
    _body: Any = None
    _kept: Kept | None = None
    _error: str | None = None
    _handed: Callable[[], Any] | None = None

    def __init__(self, runtime: Runtime, kind: Kind, model: str = "") -> None:
        """`model` is what the caller asked for, as far as known without reading the body."""
        self._runtime = runtime
        self._kind = kind
        self._model = model
        self._started_ns = time.time_ns()
        self.started = time.perf_counter()
        self._lock = threading.RLock()

    # ------------------------------------------------------------------------- what is gathered

    def sending(self, sent: Sent) -> None:
        """An attempt is about to be sent; the last one counts."""
        if self._sent is not None:
            self._status = self._body = self._kept = None
        self._sent = sent
        if self._claim is None:
            self._context = otel_context.get_current()
            self._active = trace.get_current_span(self._context)
            if self.outer is not None and not self._active.is_recording():
                self._active = self.outer
            self._claim = claim(self, self._active) if self.claims else None

    def covers(self, request: object) -> bool:
        """Whether an HTTP request that is sent in this context is one of its attempts.

        One that began late is current until it has a response, which it may never have: of it only
        the very request that was built is.
        """
        if self._settled:
            return False
        return not self.late or getattr(self._sent, "_request", None) is request

    def attempted(self, sent: Sent) -> None:
        """The attempt that was answered, where it is not the one that was built."""
        self._sent = sent

    def answered(self, status: int | None, body: Any) -> None:
        """A reply is there as a whole; the last one counts."""
        self._status, self._body, self._kept = status, body, None

    def kept(self, encoding: str) -> Kept:
        """What is to hold the body of its reply, of that content-encoding, while it passes."""
        return Kept(encoding)

    def streaming(self, status: int | None, kept: Kept, content_type: str = "") -> None:
        """A reply is there whose body is still to be read, into `kept`; the last one counts."""
        self._status, self._kept, self._content_type = status, kept, content_type
        self._body = None

    # ---------------------------------------------------------------------------- how it is over

    def body_over(self, kept: Kept, *, whole: bool, error: BaseException | None = None) -> None:
        """The body kept in `kept` was read to its end (`whole`), closed, or failed."""
        if kept.ended:
            return
        kept.ended, kept.whole = True, whole
        if error is not None and kept is self._kept:
            self._error = error_type(error)
        if kept is self._kept and self._returned:
            self.settle()

    def helped_by(self, helper: Callable[[], Any], finished: Callable[[Any], Any]) -> None:
        """A helper of the SDK's, weakly referred to, adds the stream up to an object."""

        def handed() -> Any:
            found = helper()
            return None if found is None else finished(found)

        self._handed = handed

    def returned(self, result: Any = None) -> None:
        """The SDK's request method returned to its caller, with the object made of the reply."""
        self._returned = True
        if result is not None and self._kept is None:
            self._handed = lambda: result
        if self._sent is None:
            self._discard()
        elif self._kept is None or self._kept.ended:
            self.settle()
        else:
            self._runtime.opened(self)

    def failed(self, error: BaseException) -> None:
        """The SDK's request method raised; nothing of `error` but its type is kept."""
        self._returned = True
        self._error = error_type(error)
        if self._sent is None:
            self._discard()
        else:
            self.settle()

    def span_ending(self, claim: Claim) -> None:
        """The claimed span is about to end.

        A native span ends with its call, so the call is settled. Any other may end before its
        stream is read (a `with` block around the call alone); then the span is left to itself,
        and the call gets one of its own, below it, when it is over.
        """
        over = self._kept is None or self._kept.ended or self._is(Kept.over)
        replied = self._status is not None or self._error is not None
        if finalizing.running() or not (claim.native or (over and replied)):
            self._claim = None
            self._context = trace.set_span_in_context(claim.span, self._context)
        self._finish_time()
        if self._claim is not None:
            self.settle()

    def settle_if_left(self, before: float) -> None:
        """Settle a stream whose end had passed `before` that time, though nobody closed it."""
        if self._is(lambda kept: kept.left(before)):
            with self._lock:
                self._finish_time()
                self._settle()

    def settle(self) -> None:
        """Observe and emit, once. What finalizers find to settle waits for a safe point."""
        self._finish_time()
        if finalizing.running():
            finalizing.later(self.started, self.settle)
            return
        try:
            self._runtime.closed(self)  # whether it is over need not be looked up
            self._runtime.settle_finished(before=self.started)
        except Exception:
            with shield("exchange.settle_finished"):
                raise
        self._settle()
        finalizing.catch_up()
        try:
            self._runtime.settled()
        except Exception:
            with shield("exchange.settled"):
                raise

    # ------------------------------------------------------------------------------- settlement

    def _settle(self) -> None:
        with self._lock:
            if self._settled:
                return
            self._settled = True
            try:
                self._observe()
            except Exception:
                with shield("exchange.observe"):
                    raise
            finally:
                try:
                    self._discard()
                except Exception:
                    with shield("exchange.release"):
                        raise

    def _observe(self) -> None:
        where = self._sent.where() if self._sent is not None else NOWHERE
        span, owned = self._span(where)
        try:
            began = time.perf_counter()
            report = self._runtime.tracker.observe(self._exchange(span, where))
            if owned and not self._model and report.facts.model:
                span.update_name(self._named(report.facts.model))
            self._runtime.emitter.emit(
                report,
                span,
                owned=owned,
                check_s=time.perf_counter() - began,
                error_type=self._error or self._refusal(),
            )
        finally:
            if owned:
                self._end(span)

    def _end(self, span: Span) -> None:
        span.end(self._started_ns + int((self._duration_s or 0.0) * 1e9))

    def _span(self, where: Where) -> tuple[Span, bool]:
        """The claimed span, while it records, or one of our own that began with the call."""
        if self._claim is not None and self._claim.span.is_recording():
            return self._claim.span, False
        return self._own_span(self._model or where.model or "", where), True

    def _own_span(self, model: str, where: Where) -> Span:
        """A span of our own that began with the call."""
        attributes = self._runtime.emitter.start_attributes(
            operation=self._kind.name,
            provider=self._provider(where),
            model=model,
            host=where.host,
            port=where.port,
        )
        return self._runtime.tracer.start_span(
            self._named(model),
            context=self._context,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=self._started_ns,
        )

    def _provider(self, where: Where) -> str:
        return where.cloud or self._kind.provider

    def _named(self, model: str) -> str:
        return f"{self._kind.name} {model_name(model)}".rstrip()

    def _refusal(self) -> str | None:
        """The `error.type` of a refusal that the SDK raises above us, as HTTP spans have it."""
        return str(self._status) if self._status is not None and self._status >= REFUSED else None

    def _exchange(self, span: Span, where: Where) -> Exchange:
        sent = self._sent
        if sent is None:
            raise RuntimeError("nothing was sent")
        credential = sent.credential()
        response, events, complete = self._reply()
        return Exchange(
            api=self._kind.api,
            provider=where.cloud or self._kind.provider,
            operation=self._kind.operation,
            model=where.model,
            host=where.host or None,
            conversation=self._conversation(),
            account=self._runtime.account(credential) if credential else None,
            betas=sent.betas(),
            transport=self._kind.transport,
            request=sent.body(),
            response=response,
            events=events,
            status=self._status,
            complete=complete,
            origin=place(span),
            sdk=self._sdk(),
            sdk_lacks=self._kind.lacks,
        )

    def _sdk(self) -> Any:
        """The SDK's own object for the reply, where there is one and it is finished."""
        if self._handed is None:
            return None
        try:
            return self._handed()
        except Exception:
            with shield("exchange.sdk"):
                raise
        return None

    def _conversation(self) -> str | None:
        """The conversation that the active span names, if it names one."""
        attributes = getattr(self._active, "attributes", None) or {}
        named = attributes.get(self._runtime.conversation_attribute)
        return named if isinstance(named, str) and named else None

    def _reply(self) -> tuple[Any, Any, bool]:
        """(response, events, complete); what cannot be read is an `Unread` and never complete."""
        kept = self._kept
        if kept is None:
            if isinstance(self._body, bytes) and is_events(self._body):
                return None, self._body, True
            return self._body, None, self._status is not None
        if kept.full:
            return Unread("size"), None, False
        complete = kept.whole or kept.over()
        if kept.chunks and not isinstance(kept.chunks[0], bytes):
            return None, payloads(kept.chunks), complete
        data = plain(b"".join(kept.chunks), kept.encoding)
        if isinstance(data, Unread):
            return data, None, False
        complete = complete or ended(data)
        if "eventstream" in self._content_type:
            return None, aws_events(data), complete
        if is_events(data) or "event-stream" in self._content_type:
            return None, data, complete
        return data or None, None, complete

    # -------------------------------------------------------------------------------- odds, ends

    def _is(self, over: Callable[[Kept], bool]) -> bool:
        with self._lock:
            return not self._settled and self._kept is not None and over(self._kept)

    def _finish_time(self) -> None:
        if self._duration_s is None:
            self._duration_s = time.perf_counter() - self.started

    def _discard(self) -> None:
        """Let go of everything that holds content or other people's objects."""
        self._settled = True
        self._runtime.closed(self)
        if self._claim is not None:
            self._claim.release()
        if self._kept is not None:
            self._kept.release()
        self._sent = self._claim = self._active = self._body = self._kept = self._handed = None


def error_type(error: BaseException) -> str:
    """The `error.type` of an exception: its class, as the GenAI conventions have it."""
    kind = type(error)
    if kind.__module__ in ("builtins", ""):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
