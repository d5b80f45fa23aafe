"""What is done later because an object died or a collection runs, without a frame of ours there.

Model. The interpreter runs a pending signal handler at the first bytecode of whatever Python frame
comes next, and what the handler raises comes out of that frame. Where the frame is a callback of
the garbage collector, of a weak reference or a `__del__`, the interpreter prints the exception and
drops it: the timeout, the interrupt or the exit that somebody asked for is lost. So nothing of ours
that these call is Python. Each is a function written in C, which is no frame:

* A stream that its reader drops is watched by a weak reference whose callback is `deque.append`.
  What is to be done then is done at the next safe point: the end of any other call,
  `uninstrument()`, or the end of the process.
* A collection is noted by methods of `dict` and `threading.local` in `gc.callbacks`: `pop` and
  `__setitem__` put the phase to the end of a dict, `__setattr__` marks the thread. Generators and
  `close` methods of the SDKs are also run by the collector, in whatever thread and statement it
  happens to run, perhaps inside a lock of the tracker or of OpenTelemetry's metrics, which are not
  re-entrant. They ask `running()`, and leave what they find to do for later, too.

The collector keeps no order, so each piece of work has its time, and the oldest is done first. What
an exception of the application's interrupts is left for the next time.
"""

from __future__ import annotations

import atexit
import gc
import sys
import weakref
from collections import deque
from math import inf
from operator import itemgetter
from threading import local
from typing import TYPE_CHECKING, Any

from otel_sealed.instrument.guard import shield

if TYPE_CHECKING:
    from collections.abc import Callable

_Work = tuple[float, "Callable[[], None]"]


class _Watched(weakref.ref[Any]):
    """A stream of a reader's, and what is to be done once it is dropped."""

    __slots__ = ("work",)
    work: _Work


_queue: deque[_Work] = deque()
_watched: dict[int, _Watched] = {}
_dropped: deque[_Watched] = deque()
_phases: dict[str, Any] = {}
_here = local()
_noticing = (_here.__setattr__, _phases.pop, _phases.__setitem__)
"""Each is called with the phase, `start` or `stop`, and a dict that is new each time."""


def watch() -> None:
    """Start to notice collections."""
    if not _watching():
        gc.callbacks.extend(_noticing)


def unwatch() -> None:
    """Stop to notice collections."""
    gc.callbacks[:] = [one for one in gc.callbacks if not any(one is ours for ours in _noticing)]
    _phases.clear()


# Registered first, and so run last: what collects after it is the interpreter going down, when the
# locals of greenlets cannot be set any more, and each collection would say so on stderr.
atexit.register(unwatch)


def _watching() -> bool:
    return any(one is _noticing[0] for one in gc.callbacks)


def running() -> bool:
    """Whether this very thread is inside a collection, or the interpreter is going down."""
    if sys.is_finalizing():
        return True
    last = next(reversed(_phases), "")
    return last == "start" and _phases[last] is getattr(_here, "start", None)


def when_dropped(stream: Any, at: float, work: Callable[[], None]) -> None:
    """Queue `work` that belongs to the time `at` once nobody holds `stream` any more."""
    watched = _Watched(stream, _dropped.append)
    watched.work = (at, work)
    _watched[id(watched)] = watched


def later(at: float, work: Callable[[], None]) -> None:
    """Queue `work` that belongs to the time `at`; safe anywhere, takes no lock."""
    _queue.append((at, work))


def catch_up(before: float = inf) -> None:
    """Do what is queued of a time before that one, oldest first; not while a collection runs."""
    while (_queue or _dropped) and not running() and (due := _due(before)):
        try:
            while due:
                with shield("finalizing.later"):
                    due.popleft()[1]()
        finally:
            _queue.extend(due)  # nothing, unless the application's own exception came in between


def _due(before: float) -> deque[_Work]:
    """Takes what is queued of a time before that one, oldest first."""
    found: list[_Work] = []
    while _dropped:
        try:
            watched = _dropped.popleft()
        except IndexError:  # another thread was faster
            break
        _watched.pop(id(watched), None)
        found.append(watched.work)
    while _queue:
        try:
            found.append(_queue.popleft())
        except IndexError:  # another thread was faster
            break
    _queue.extend(one for one in found if one[0] >= before)
    return deque(sorted((one for one in found if one[0] < before), key=itemgetter(0)))


def forget() -> None:
    """Let go of what is queued: this process was forked off, and its parent does it."""
    _queue.clear()
    _watched.clear()
    _dropped.clear()
    _phases.clear()
