"""The leak alarm: a sealed value that came over the wire stands in somebody's ended span.

Theory of operation. `instrument()` shares what it saw on the wire as a `Wire`, which knows keyed
digests only. Every ended span is looked through, on the path of whoever ended it, so the work is
bounded: a span without a long string costs a walk over its attributes; of the others some
kilobytes are searched, and a few dozen runs are looked up. A leak is told once per scope and
attribute key a process, and that key is not searched again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from otel_sealed import vocab
from otel_sealed.telemetry.scrub import Wire, seen_runs
from otel_sealed.telemetry.shield import Shield, nobody

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

    from otel_sealed.telemetry.shield import OnError

SHORTEST: Final = 40
"""A shorter string is not looked at: the sealed values of real providers are longer."""
MOST_CHARACTERS: Final = 64 * 1024
"""Characters of one span that are searched; of a longer string its head and its tail."""
MOST_RUNS: Final = 64
MOST_KEYS: Final = 1_000
_NUMBER: Final = re.compile(r"(?<=\.)\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Leak:
    """Where a sealed value turned up: a scope and an attribute key, never the value."""

    scope: str
    key: str
    size: int
    digest: str
    context: Context | None = field(default=None, repr=False, compare=False)


Tell = Callable[[Leak], None]


class Alarm:
    """Looks through ended spans. Thread-safe; remembers at most so many keys, then is silent."""

    def __init__(self, wire: Wire, tell: Tell, on_error: OnError | None = None) -> None:
        """`tell` hears of every leak once; `on_error` of a fault of ours."""
        self.wire = wire
        self._tell = tell
        self.on_error = on_error or nobody
        self._told: set[tuple[str, str]] = set()
        self._lock = Lock()

    def look(self, span: ReadableSpan) -> None:
        """Tell of every attribute of `span` and its events that holds a sealed value."""
        texts = list(_long(span))
        if not texts:
            return
        scope = _scope(span)
        left = MOST_CHARACTERS
        for key, text in texts:
            name = _NUMBER.sub("n", key)
            if left <= 0 or (scope, name) in self._told:
                continue
            part = _ends(text, left)
            left -= len(part)
            found = next(seen_runs(part, self.wire.seen, MOST_RUNS), None)
            if found is not None and self._new(scope, name):
                self._tell(self._leak(scope, name, found[2], span))

    def _new(self, scope: str, name: str) -> bool:
        with self._lock:
            if (scope, name) in self._told or len(self._told) >= MOST_KEYS:
                return False
            self._told.add((scope, name))
            return True

    def _leak(self, scope: str, name: str, value: str, span: ReadableSpan) -> Leak:
        at = span.get_span_context()
        return Leak(
            scope=vocab.path(scope),
            key=vocab.path(name),
            size=len(value),
            digest=self.wire.digest(value),
            context=trace.set_span_in_context(trace.NonRecordingSpan(at)) if at else None,
        )


def _long(span: ReadableSpan) -> Iterator[tuple[str, str]]:
    """(key, text) of every long text in the attributes of a span and of its events."""
    yield from _texts(span.attributes)
    for event in span.events:
        yield from _texts(event.attributes)


def _texts(attributes: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    for key, value in (attributes or {}).items():
        if isinstance(value, str):
            if len(value) >= SHORTEST:
                yield key, value
        elif isinstance(value, (tuple, list)):
            for item in value:
                if isinstance(item, str) and len(item) >= SHORTEST:
                    yield key, item


def _ends(text: str, most: int) -> str:
    """`text`, or its two ends: a history grows at its end, an answer begins with its reasoning."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n{text[-(most // 2) :]}"


def _scope(span: ReadableSpan) -> str:
    name = getattr(span.instrumentation_scope, "name", "")
    return name if isinstance(name, str) else ""


class LeakAlarm(SpanProcessor):
    """The alarm as a processor of its own, for those who do not use `SealedSpanProcessor`."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing: what leaks is known when a span has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Look through the span. Never raises."""
        look(span)


_shared: Alarm | None = None


def share(alarm: Alarm | None) -> None:
    """Make `alarm` the one of this process."""
    global _shared  # noqa: PLW0603 - the wire is the process's
    _shared = alarm


def look(span: ReadableSpan) -> None:
    """Have the alarm of this process look through a span, if something is instrumented."""
    alarm = _shared
    if alarm is not None:
        Shield(alarm.on_error).run("leaks", alarm.look, span)


def wire() -> Wire:
    """What this process saw on the wire; nothing where nothing is instrumented."""
    alarm = _shared
    return alarm.wire if alarm is not None else _UNKNOWN


def fault(place: str, kind: str) -> None:
    """Count a fault of ours where the process counts them, if something is instrumented."""
    alarm = _shared
    if alarm is not None:
        alarm.on_error(place, kind)


_UNKNOWN: Final = Wire(seen=lambda _: False, digest=lambda _: "")
