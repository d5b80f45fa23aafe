"""Work that came up while the garbage collector ran, done later.

A dropped stream is closed by the collector, in whatever thread and statement it happens to run:
perhaps inside a lock of the tracker or of OpenTelemetry's metrics, which are not re-entrant. So
what a finalizer finds to do is queued, and done at the next safe point: the end of any other call,
`uninstrument()`, or the end of the process. The collector keeps no order, so each has its time.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from math import inf
from operator import itemgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_collecting: int | None = None
_queue: deque[tuple[float, Callable[[], None]]] = deque()


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


def later(at: float, work: Callable[[], None]) -> None:
    """Queue `work` that belongs to the time `at`; safe anywhere, takes no lock."""
    _queue.append((at, work))


def catch_up(before: float = inf) -> None:
    """Do what is queued of a time before that one, oldest first; not while a collection runs."""
    while _queue and not running() and (due := _due(before)):
        for _, work in due:
            work()


def _due(before: float) -> list[tuple[float, Callable[[], None]]]:
    """Takes what is queued of a time before that one, oldest first."""
    found = []
    while _queue:
        try:
            found.append(_queue.popleft())
        except IndexError:  # another thread was faster
            break
    _queue.extend(one for one in found if one[0] >= before)
    return sorted((one for one in found if one[0] < before), key=itemgetter(0))


def forget() -> None:
    """Let go of what is queued: this process was forked off, and its parent does it."""
    global _collecting  # noqa: PLW0603 - one collector a process
    _queue.clear()
    _collecting = None


def _noticed(phase: str, _info: dict[str, Any]) -> None:
    global _collecting  # noqa: PLW0603 - one collector a process
    _collecting = get_ident() if phase == "start" else None
