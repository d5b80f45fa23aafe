"""What a test has planned to go wrong, each plan used up by the requests it meets."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .records import Dialect, Obj, Reply, encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Failure:
    """Answer with this, whatever is asked; `body` None means the dialect's own error body."""

    status: int
    body: bytes | str | Obj | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Malformed:
    """Send these bytes, or these events, in place of the reply."""

    sent: bytes | Sequence[Obj]
    status: int = 200
    content_type: str | None = None


@dataclass(slots=True)
class Plans:
    """The plans of one provider, safe to make in one thread and meet in another."""

    _replies: deque[Failure | Malformed] = field(default_factory=deque)
    _cuts: deque[int] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, plan: Failure | Malformed, times: int = 1) -> None:
        """Plan a reply for the next requests."""
        with self._lock:
            self._replies.extend([plan] * times)

    def cut(self, after_events: int) -> None:
        """Plan to break off the next event stream."""
        with self._lock:
            self._cuts.append(after_events)

    def clear(self) -> None:
        """Forget what has not happened yet."""
        with self._lock:
            self._replies.clear()
            self._cuts.clear()

    def reply(self, dialect: Dialect, *, streamed: bool) -> Reply | None:
        """Take the next planned reply, if there is one."""
        with self._lock:
            plan = self._replies.popleft() if self._replies else None
        match plan:
            case None:
                return None
            case Failure():
                body = dialect.failure(plan.status) if plan.body is None else plan.body
                return Reply(status=plan.status, body=_bytes(body), headers=plan.headers)
            case Malformed():
                return _malformed(plan, dialect, streamed=streamed)

    def shorten(self, reply: Reply) -> Reply:
        """Apply the next planned cut to a reply, if it is an event stream."""
        if reply.frames is None:
            return reply
        with self._lock:
            return replace(reply, cut_after=self._cuts.popleft()) if self._cuts else reply


def _malformed(plan: Malformed, dialect: Dialect, *, streamed: bool) -> Reply:
    kind = plan.content_type or ("text/event-stream" if streamed else "application/json")
    if isinstance(plan.sent, bytes):
        if streamed:
            return Reply(status=plan.status, frames=(plan.sent,), content_type=kind)
        return Reply(status=plan.status, body=plan.sent, content_type=kind)
    frames = tuple(dialect.frame(event) for event in plan.sent)
    kind = plan.content_type or "text/event-stream"
    return Reply(status=plan.status, frames=frames, content_type=kind)


def _bytes(body: bytes | str | Obj) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else encode(body)
