"""An exporter around another one that takes sealed values out of spans, whoever made them.

Other instrumentations copy ciphertext into attributes, by design or by the repr of an object. The
application's own span is left as it is; what is exported is a copy, and only where something was
taken out. What cannot be looked at is not let through: its long strings are left out.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_sealed.telemetry import leaks
from otel_sealed.telemetry.scrub import SHORTEST, Wire, marker, scrubbed, sealed_key
from otel_sealed.telemetry.shield import Shield

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from otel_sealed.telemetry.shield import OnError

LONGEST: Final = 16 * 1024 * 1024
"""Longer texts are not looked at and not let through."""
_UNREAD: Final = "[not let through]"
_PROMPTS: Final = re.compile(
    r"\A(?:gen_ai\.(?:input\.messages|output\.messages|system_instructions|tool\.definitions"
    r"|tool\.call\.(?:arguments|result)|(?:prompt|completion)(?:\.|$))"
    r"|llm\.(?:(?:input|output)_messages\.\d+\..*(?:content|text|arguments)$|prompts?(?:\.|$)"
    r"|completions?(?:\.|$)|prompt_template\.)"
    r"|(?:input|output)\.value$|(?:request|response)_data$|all_messages_events$|events$"
    r"|ai\.(?:prompt|response)(?:\.|$)|langfuse\.(?:observation|trace)\.(?:input|output)$"
    r"|traceloop\.entity\.(?:input|output)$|(?:prompt|completion|input|output)$)"
)
_PROMPT_EVENTS: Final = re.compile(r"gen_ai\.|llm\.")
Value = Any


class RedactingSpanExporter(SpanExporter):
    """Exports through `exporter`, without sealed values and, if asked, without prompts.

    What counts as sealed is what a known key names, and what `instrument()` saw on the wire. Never
    raises but what `exporter` raises.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        prompts: bool = False,
        wire: Wire | None = None,
        on_error: OnError | None = None,
    ) -> None:
        """`wire` is what was seen there; that of the process when None."""
        self._exporter = exporter
        self._prompts = prompts
        self._wire = wire
        self._shield = Shield(on_error or leaks.fault)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export the spans, those that hold something sealed as clean copies."""
        clean = [self._clean(span) for span in spans]
        return self._exporter.export([span for span in clean if span is not None])

    def shutdown(self) -> None:
        """That of the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """That of the exporter."""
        return self._exporter.force_flush(timeout_millis)

    def _clean(self, span: ReadableSpan) -> ReadableSpan | None:
        wire = self._wire or leaks.wire()
        clean = self._shield.run("redaction", self._cleaned, span, wire)
        return clean or self._shield.run("redaction.emptied", _emptied, span)

    def _cleaned(self, span: ReadableSpan, wire: Wire) -> ReadableSpan:
        prompts = _PROMPTS if self._prompts else None

        def on_span(key: str, text: str) -> str:
            return redacted(key, text, wire, prompts)

        def in_event(key: str, text: str) -> str:
            return "[content]" if self._prompts else redacted(key, text, wire, None)

        changed: dict[str, Any] = {}
        attributes = _mapped(span.attributes, on_span)
        if attributes is not None:
            changed["_attributes"] = _bounded(getattr(span, "_attributes", None), attributes)
        for name in ("_events", "_links"):
            parts = list(getattr(span, name[1:]) or ())
            content = self._prompts and name == "_events"
            new = [
                _part(part, in_event if content and _is_prompt(part) else on_span) for part in parts
            ]
            if any(a is not b for a, b in zip(new, parts, strict=True)):
                changed[name] = new
        title = scrubbed(span.name, wire)
        if title != span.name:
            changed["_name"] = title
        changed |= _status(span, wire)
        return _copy(span, changed) if changed else span


def redacted(key: str, text: str, wire: Wire, prompts: re.Pattern[str] | None) -> str:
    """The text of one attribute as it may go out."""
    if prompts is not None and text and prompts.match(key):
        return f"[content {len(text)}]"
    if len(text) > LONGEST:
        return f"{_UNREAD[:-1]} {len(text)}]"
    if text and sealed_key(key, text) and not text.startswith("[sealed "):
        return marker(wire, text)
    return scrubbed(text, wire)


def _mapped(
    attributes: Mapping[str, Value] | None, clean: Callable[[str, str], str]
) -> dict[str, Value] | None:
    """The attributes with every text cleaned; None where none changed."""
    changed = {
        key: new
        for key, value in (attributes or {}).items()
        if (new := _value(key, value, clean)) is not value
    }
    return {**(attributes or {}), **changed} if changed else None


def _value(key: str, value: Value, clean: Callable[[str, str], str]) -> Value:
    if isinstance(value, str):
        return clean(key, value)
    if isinstance(value, Mapping):
        found = _mapped(value, clean)
        return value if found is None else found
    if isinstance(value, (tuple, list)):
        new = [_value(key, item, clean) for item in value]
        same = all(a is b for a, b in zip(new, value, strict=True))
        return value if same else type(value)(new)
    return value


def _part(part: Any, clean: Callable[[str, str], str]) -> Any:
    """An event or link with clean attributes; the same object where they were clean."""
    attributes = _mapped(part.attributes, clean)
    if attributes is None:
        return part
    return _copy(part, {"_attributes": _bounded(getattr(part, "_attributes", None), attributes)})


def _is_prompt(event: Any) -> bool:
    return _PROMPT_EVENTS.match(str(getattr(event, "name", ""))) is not None


def _status(span: ReadableSpan, wire: Wire) -> dict[str, Any]:
    words = getattr(span.status, "description", None)
    clean = scrubbed(words, wire) if isinstance(words, str) else words
    return {} if clean is words else {"_status": _copy(span.status, {"_description": clean})}


def _bounded(old: Any, new: dict[str, Value]) -> Any:
    """`new` in the kind of mapping that `old` is, which remembers how many were dropped."""
    if not isinstance(old, BoundedAttributes):
        return new
    made = BoundedAttributes(old.maxlen, new, immutable=True, max_value_len=old.max_value_len)
    made.dropped = old.dropped
    return made


def _copy(thing: Any, changed: dict[str, Any]) -> Any:
    clone = copy.copy(thing)
    for name, value in changed.items():
        object.__setattr__(clone, name, value)
    return clone


def _emptied(span: ReadableSpan) -> ReadableSpan:
    """A span we could not look at, without anything that may hold something sealed."""
    kept = {
        key: value
        for key, value in (span.attributes or {}).items()
        if not isinstance(value, (str, tuple, list, Mapping)) or len(value) < SHORTEST
    }
    kept = {key: v for key, v in kept.items() if not isinstance(v, (tuple, list, Mapping))}
    copied: ReadableSpan = _copy(span, {"_attributes": kept, "_events": [], "_links": []})
    return copied
