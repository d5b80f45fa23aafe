"""Work that came up while the garbage collector ran, done later.

A dropped stream is closed by the collector, in whatever thread and statement it happens to run:
perhaps inside a lock of the tracker or of OpenTelemetry's metrics, which are not re-entrant. So
what a finalizer finds to do is queued, and done at the next safe point: the end of any other call,
`uninstrument()`, or the end of the process.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_collecting: int | None = None
_queue: deque[Callable[[], None]] = deque()


def watch() -> None:
    """Start to notice collections."""
    if _noticed not in gc.callbacks:
        gc.callbacks.append(_noticed)


def unwatch() -> None:
    """Stop to notice collections."""
    global _collecting  # noqa: PLW0603 - one collector a process
    if _noticed in gc.callbacks:
        gc.callbacks.remove(_noticed)
    _collecting = None


def running() -> bool:
    """Whether this very thread is inside a collection, or the interpreter is going down."""
    return _collecting == get_ident() or sys.is_finalizing()


def later(work: Callable[[], None]) -> None:
    """Queue `work`; safe anywhere, takes no lock."""
    _queue.append(work)


def catch_up() -> None:
    """Do what is queued, unless a collection runs in this thread."""
    while _queue and not running():
        try:
            work = _queue.popleft()
        except IndexError:  # another thread was faster
            return
        work()


def forget() -> None:
    """Let go of what is queued: this process was forked off, and its parent does it."""
    global _collecting  # noqa: PLW0603 - one collector a process
    _queue.clear()
    _collecting = None


def _noticed(phase: str, _info: dict[str, Any]) -> None:
    global _collecting  # noqa: PLW0603 - one collector a process
    _collecting = get_ident() if phase == "start" else None
