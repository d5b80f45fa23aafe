"""Which span a call is written on: the active GenAI client span of somebody else, or our own.

Theory of operation. Other tracers of model calls (the anthropic SDK's own, OTel's, OpenInference's,
logfire's) have their span current at the SDK's request method or below. Such a span is *claimed*
when the request is built. It must still be open when we write, and some end just before we would
know that the call is over: anthropic's ends its span in `Stream.close()` before it closes the body,
and when the body is dropped. So a claim shadows the `end` method of that one span object: whoever
ends it first tells the call, which writes what it knows, and then the real `end` runs. The shadow
goes with the first end or when the call is settled, whichever is first. Nothing else of a span we
do not own is touched, and nothing after its end.

A span is claimed by one call at a time, and by one call in all: what a second call under the same
span would write would replace what the first one wrote, so it opens its own.

Whose suppression. OpenTelemetry's suppression keys say that there shall be no spans, not who says
so. A suppression that was on when the application called the SDK is the application's: the call is
not observed. One that came on between there and the SDK's request is that of a tracer around the
SDK (logfire), which has a span of this very call and asks the others not to open a second one: the
call is observed, and written on that span. So a method of the SDK that such tracers call through is
an *entry*: it notes the suppression before them, and their span before the SDK opens one of its
own, which the suppression makes a non-recording one. Where no entry was noted, the span alone says
it: a recording span of a call of a model under suppression is that of a tracer.
"""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind

from otel_sealed.instrument.guard import shield

if TYPE_CHECKING:
    from collections.abc import Callable

# Spans that stand for one call of a model, by `gen_ai.operation.name`; agents, tools and workflows
# carry the same attribute and stand for many.
_CALLS: Final = frozenset({"chat", "generate_content", "text_completion", "compact", "responses"})
_NATIVE_SCOPES: Final = frozenset({"com.anthropic.sdk.python"})
_MARK: Final = "otel_sealed."
_SUPPRESSED: Final = tuple(
    key
    for key in (
        "suppress_instrumentation",
        getattr(otel_context, "_SUPPRESS_INSTRUMENTATION_KEY", None),
    )
    if key is not None
)

# Re-entrant: a collection inside it may close a stream whose span we hold.
_claims = threading.RLock()


class Claimant(Protocol):
    """A call that wants to know before its span ends."""

    def span_ending(self, claim: Claim) -> None:
        """The claimed span is about to end."""


class Entry:
    """One call of an SDK by the application, before any tracer between it and the request.

    `spoken`: whether a suppression was on by then. `span`: the active one just before the SDK opens
    one of its own; None where the release has no place to look at it.
    """

    __slots__ = ("client", "span", "spoken")

    def __init__(self, client: Any) -> None:
        """Notes the suppression of the current context."""
        self.client = client
        self.spoken = suppressed()
        self.span: Span | None = None


ENTRY: ContextVar[Entry | None] = ContextVar("otel_sealed_entry", default=None)


def suppressed() -> bool:
    """Whether spans are suppressed in the current context; there are two spellings of the key."""
    return any(map(otel_context.get_current().get, _SUPPRESSED))


def stands_aside() -> bool:
    """Whether a call is not to be looked at: the application asked for it, and no tracer did."""
    return not _under_suppression(None)[0] if suppressed() else False


def entered(client: Any) -> tuple[bool, Span | None]:
    """(whether a call by this client is observed, the span a suppressing tracer has for it)."""
    if not suppressed():
        return True, None
    entry = ENTRY.get()
    return _under_suppression(entry if entry is not None and entry.client is client else None)


def _under_suppression(entry: Entry | None) -> tuple[bool, Span | None]:
    active = entry.span if entry is not None else None
    active = active or trace.get_current_span()
    if active.is_recording() and stands_for_one_call(active):
        return True, active
    return entry is not None and not entry.spoken, None


class Claim:
    """A span of another tracer that one call writes on, with its `end` shadowed until released."""

    __slots__ = ("__weakref__", "_call", "_end", "native", "span")

    def __init__(self, span: Span, call: Claimant) -> None:
        """Shadows `span.end`. Raises AttributeError where the span's class has no room for it."""
        self.span = span
        self._call: Callable[[], Claimant | None] = weakref.ref(call)
        self._end: Callable[..., Any] = span.end
        self.native = _scope(span) in _NATIVE_SCOPES
        span.end = self._ending  # type: ignore[method-assign]

    def release(self) -> None:
        """Let go of the span: its own `end` again, unless somebody shadowed ours in turn."""
        with _claims:
            if _shadow(self.span) is self:
                del self.span.end  # the class's method, or what was shadowed, shows again
                if self.span.end != self._end:
                    self.span.end = self._end  # type: ignore[method-assign]
            self._call = _nobody

    @property
    def active(self) -> bool:
        """Whether a call still holds it."""
        return self._call() is not None

    def _ending(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call()
        if call is not None:
            with shield("span.ending"):
                call.span_ending(self)
            with shield("span.release"):
                self.release()
        return self._end(*args, **kwargs)


def _nobody() -> None:
    return None


def _shadow(span: Span) -> Claim | None:
    """The claim whose shadow is on `span`, if it is the outermost."""
    holder = getattr(getattr(span, "__dict__", {}).get("end"), "__self__", None)
    return holder if isinstance(holder, Claim) else None


def claim(call: Claimant, span: Span) -> Claim | None:
    """Claim the active `span` if it stands for one call of a model and is free; None otherwise."""
    if not span.is_recording() or not stands_for_one_call(span):
        return None
    with _claims:
        holder = _shadow(span)
        if holder is not None and holder.active:
            return None
        try:
            return Claim(span, call)
        except AttributeError:
            return None


def stands_for_one_call(span: Span) -> bool:
    """Whether a recording span carries what GenAI client spans carry, and nothing of ours yet."""
    attributes = getattr(span, "attributes", None) or {}
    for key in attributes:
        if key.startswith(_MARK):
            return False
    kind = getattr(span, "kind", None)
    operation = attributes.get("gen_ai.operation.name")
    if operation is not None:
        return operation in _CALLS and kind in (SpanKind.CLIENT, SpanKind.INTERNAL)
    if attributes.get("openinference.span.kind") == "LLM":
        return True
    named = "gen_ai.provider.name" in attributes or "gen_ai.system" in attributes
    return named and kind is SpanKind.CLIENT and "gen_ai.request.model" in attributes


def place(span: Span) -> bytes:
    """Trace id and span id, 24 bytes, or empty without a valid context."""
    at = span.get_span_context()
    if not at.is_valid:
        return b""
    return at.trace_id.to_bytes(16) + at.span_id.to_bytes(8)


def _scope(span: Span) -> str:
    scope = getattr(span, "instrumentation_scope", None)
    name = getattr(scope, "name", "")
    return name if isinstance(name, str) else ""
