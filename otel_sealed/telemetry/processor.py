"""Alerts from ended spans: what one span says came in, against what a later one says went out.

Theory of operation. Only span attributes are read, so a span may come from any process and any
version. A row that carries a verdict is taken at its word. A row without one is compared by digest:
it alarms if it is a seal that no span of the conversation received, while the conversation did
receive a seal of that kind which this request does not show. Nothing is said of a conversation
whose receiving spans were not seen, or not wholly (cut rows, forgotten digests); a value met there
is a stranger, and stays one. A row whose fate is `unknown` never alarms: another worker may have
received it.

What the call site told already is silent in the room. Digests are held per conversation, bounded,
the longest unused conversation forgotten first.
"""

from __future__ import annotations

import os
import re
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from otel_sealed import vocab
from otel_sealed.living import Living
from otel_sealed.model import Confidence, Fate, ProviderVerdict, Rejection, Verdict
from otel_sealed.telemetry import leaks
from otel_sealed.telemetry.alerts import SPANS, Alert, AlertRoom, listen, shared
from otel_sealed.telemetry.events import EventLog
from otel_sealed.telemetry.known import read
from otel_sealed.telemetry.shield import Shield, nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from enum import StrEnum

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

    from otel_sealed.telemetry.alerts import Callback
    from otel_sealed.telemetry.shield import OnError

MAX_CONVERSATIONS: Final = 4_000
MAX_DIGESTS: Final = 4_096
_DIGEST: Final = re.compile(r"[0-9a-f]{32}\Z")
_KEY: Final = re.compile(r"[0-9a-f]{8,64}\Z")
Member = TypeVar("Member", bound="StrEnum")


@dataclass(slots=True)
class _Memory:
    """Digests of one conversation: received by artifact kind, and strangers met."""

    received: dict[str, set[str]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    whole: bool = True

    def receive(self, artifact: str, digest: str) -> None:
        if self._room():
            self.received.setdefault(artifact, set()).add(digest)
            self.seen.add(digest)

    def estrange(self, digest: str) -> None:
        if self._room():
            self.strangers.add(digest)

    def _room(self) -> bool:
        self.whole = self.whole and len(self.seen) + len(self.strangers) < MAX_DIGESTS
        return self.whole


@dataclass(frozen=True, slots=True)
class _Row:
    artifact: str
    digest: str
    position: str
    size: int | None
    fate: Fate | None
    verdict: Verdict | None
    rule: str
    cause: str


class SealedSpanProcessor(SpanProcessor):
    """Feeds the alert room from ended spans.

    Without a room it feeds that of the process, so that a call that `instrument()` saw alerts
    once; where nothing is instrumented it has a room of its own.

    Never raises: an exception out of a processor would reach the application, and keep the span
    from every later processor.
    """

    def __init__(
        self,
        room: AlertRoom | None = None,
        *,
        callbacks: Iterable[Callback] = (),
        on_error: OnError | None = None,
        max_conversations: int = MAX_CONVERSATIONS,
        strict: bool = False,
    ) -> None:
        self._shield = Shield(on_error or nobody, strict=strict)
        self._given = room
        self._own = room or _own_room(self._shield)
        self._is_alone = False
        self._cancels = [cancel for cb in callbacks for cancel in self._subscribe(cb)]
        self._max = max_conversations
        self._memories: OrderedDict[str, _Memory] = OrderedDict()
        self._lock = Lock()
        _living.add(self)

    def _subscribe(self, callback: Callback) -> list[Callable[[], None]]:
        own = self._own.subscribe(callback)
        return [own] if self._given else [own, listen(callback)]

    def shutdown(self) -> None:
        """Let go of the callbacks."""
        for cancel in self._cancels:
            cancel()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing: what matters is known when a span has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Compare the span with what its conversation received, and look for leaks in it."""
        self._shield.run("processor", self._on_end, span)
        leaks.look(span)

    def _on_end(self, span: ReadableSpan) -> None:
        attributes = span.attributes or {}
        conversation = attributes.get(vocab.CONVERSATION_KEY)
        if not isinstance(conversation, str) or not _KEY.match(conversation):
            return
        rows = _returned(attributes)
        if attributes.get(vocab.KNOWN) is True:
            rows = [row for row in rows if row.verdict is None or not row.verdict.violates]
        with self._lock:
            memory = self._memory(conversation)
            found = _compare(memory, rows)
            _remember(memory, attributes)
        for row, inferred in found:
            alert = _alert(span, attributes, conversation, row, inferred)
            (self._given or shared() or self._alone()).tell(alert, source=SPANS)

    def _alone(self) -> AlertRoom:
        """The room of its own; the list of known losses is read where it is needed, once."""
        if not self._is_alone:
            self._is_alone = True
            self._own.known = read(os.environ.get("OTEL_SEALED_KNOWN"))
        return self._own

    def _memory(self, conversation: str) -> _Memory:
        memory = self._memories.pop(conversation, None) or _Memory()
        self._memories[conversation] = memory
        while len(self._memories) > self._max:
            self._memories.popitem(last=False)
        return memory


_living: Living[SealedSpanProcessor] = Living()  # whose locks are freed in a forked child


def _own_room(shield: Shield) -> AlertRoom:
    events = EventLog(clock=time.monotonic)
    return AlertRoom(shield, clock=time.monotonic, sinks=(events.violation,))


def _compare(memory: _Memory, rows: list[_Row]) -> list[tuple[_Row, bool]]:
    """The rows that alarm, and whether from their digest alone."""
    found: list[tuple[_Row, bool]] = []
    shown = {row.digest for row in rows}
    for row in rows:
        if row.verdict is not None and row.fate is not None:
            if row.verdict.violates:
                found.append((row, False))
            elif row.fate is Fate.UNKNOWN and row.digest not in memory.seen:
                memory.estrange(row.digest)
        elif _comparable(row) and row.digest not in memory.seen | memory.strangers:
            missing = memory.received.get(row.artifact, set()) - shown
            if missing and memory.whole:
                found.append((row, True))
            memory.estrange(row.digest)
    return found


_SETTLED: Final = frozenset({Fate.INTACT, Fate.UNKNOWN, Fate.SERVER_HELD, Fate.SUPERSEDED})


def _comparable(row: _Row) -> bool:
    return (
        vocab.is_seal(row.artifact)
        and bool(row.position)
        and bool(_DIGEST.match(row.digest))
        and row.fate not in _SETTLED
    )


def _remember(memory: _Memory, attributes: Mapping[str, Any]) -> None:
    artifacts = _strings(attributes.get(vocab.RECEIVED_ARTIFACTS))
    digests = _strings(attributes.get(vocab.RECEIVED_DIGESTS))
    count = attributes.get(vocab.RECEIVED_COUNT, len(digests))
    if count != len(digests) or attributes.get(vocab.TRUNCATED) is True:
        memory.whole = False
    for artifact, digest in zip(artifacts, digests, strict=False):
        if _DIGEST.match(digest):
            memory.receive(artifact, digest)


def _returned(attributes: Mapping[str, Any]) -> list[_Row]:
    artifacts = _strings(attributes.get(vocab.RETURNED_ARTIFACTS))

    def column(name: str) -> list[str]:
        values = _strings(attributes.get(name))
        return values if len(values) == len(artifacts) else [""] * len(artifacts)

    sizes = attributes.get(vocab.RETURNED_SIZES)
    aligned = isinstance(sizes, tuple | list) and len(sizes) == len(artifacts)
    positions = column(vocab.RETURNED_POSITIONS)
    if vocab.RETURNED_POSITIONS not in attributes:
        positions = [vocab.OTHER] * len(artifacts)
    columns = zip(
        artifacts,
        column(vocab.RETURNED_DIGESTS),
        positions,
        sizes if aligned and sizes else [None] * len(artifacts),
        column(vocab.RETURNED_FATES),
        column(vocab.RETURNED_VERDICTS),
        column(vocab.RETURNED_RULES),
        column(vocab.RETURNED_CAUSES),
        strict=True,
    )
    return [
        _Row(
            artifact=vocab.word(artifact),
            digest=digest if _DIGEST.match(digest) else "",
            position=vocab.path(position),
            size=size if isinstance(size, int) and size >= 0 else None,
            fate=_member(Fate, fate),
            verdict=_member(Verdict, verdict),
            rule=vocab.rule_id(rule),
            cause=vocab.word(cause) if cause else "",
        )
        for artifact, digest, position, size, fate, verdict, rule, cause in columns
    ]


def _alert(
    span: ReadableSpan,
    attributes: Mapping[str, Any],
    conversation: str,
    row: _Row,
    inferred: bool,  # noqa: FBT001 - internal, always given
) -> Alert:
    at = span.get_span_context()
    said = _member(ProviderVerdict, attributes.get(vocab.PROVIDER_VERDICT))
    return Alert(
        conversation=conversation,
        artifact=row.artifact,
        digest=row.digest,
        fate=Fate.MODIFIED if inferred or row.fate is None else row.fate,
        verdict=Verdict.DEGRADES if inferred or row.verdict is None else row.verdict,
        rule=row.rule,
        cause=row.cause,
        confidence=Confidence.INFERRED if inferred else Confidence.PROVEN,
        provider_verdict=said or ProviderVerdict.UNREPORTED,
        rejection=_member(Rejection, attributes.get(vocab.REJECTION_CLASS)),
        returned_position=row.position,
        returned_size=row.size,
        provider=_word(attributes.get(vocab.PROVIDER)),
        model=vocab.model_name(attributes.get(vocab.REQUEST_MODEL)),
        host=vocab.host_name(attributes.get(vocab.SERVER_ADDRESS)),
        service=service_of(span),
        inferred=inferred,
        context=trace.set_span_in_context(trace.NonRecordingSpan(at)) if at else None,
    )


def service_of(source: object) -> str:
    """`service.name` of whatever has a resource, a span or a provider; empty without."""
    attributes = getattr(getattr(source, "resource", None), "attributes", None) or {}
    name = attributes.get("service.name")
    return name if isinstance(name, str) else ""


def _word(value: object) -> str:
    return vocab.word(value) if value else ""


def _member(enum: type[Member], value: Any) -> Member | None:
    try:
        return enum(value)
    except ValueError:
        return None


def _strings(value: object) -> list[str]:
    """The elements of a string array as a list; empty for anything else."""
    if not isinstance(value, tuple | list):
        return []
    return [item if isinstance(item, str) else "" for item in value]
