"""In a child of `fork`: locks that a thread of the parent held are free again.

A forked child has one thread. Whatever another one held at that moment stays locked for ever, and
pre-fork servers and `multiprocessing` do fork beside running threads. So every lock of ours is made
anew in the child: those in our modules, and those in the objects of ours that hang on them. They
are found by their type, so that a new one is included by itself. Work that the parent has under way
is the parent's: the child forgets it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

from otel_sealed.instrument import finalizing
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.runtime import Runtime
from otel_sealed.living import Living

_LOCKS: Final = (type(threading.Lock()), type(threading.RLock()))
_OURS: Final = "otel_sealed"


def reborn() -> None:
    """Free every lock of ours, and forget the work of the parent."""
    for holder in _holders():
        for value in _values(holder):
            if isinstance(value, _LOCKS):
                value._at_fork_reinit()  # type: ignore[union-attr]
        if isinstance(holder, Runtime):
            holder.forget()
    finalizing.forget()


def _holders() -> Iterator[Any]:
    """Our modules, and every object of ours that can be reached from them by attributes."""
    waiting = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == _OURS]
    seen = {id(module) for module in waiting}
    while waiting:
        holder = waiting.pop()
        yield holder
        for value in _values(holder):
            for thing in list(value) if isinstance(value, Living) else (value,):
                ours = type(thing).__module__.partition(".")[0] == _OURS
                if ours and id(thing) not in seen:
                    seen.add(id(thing))
                    waiting.append(thing)


def _values(holder: Any) -> list[Any]:
    found = list(getattr(holder, "__dict__", {}).values())
    for kind in type(holder).__mro__:
        for name in vars(kind).get("__slots__", ()):
            value = getattr(holder, name, None)
            if value is not None:
                found.append(value)
    return found


def watch() -> None:
    """Notice forks, from now on and for good: what is registered for them cannot be taken back."""
    global _watching  # noqa: PLW0603 - one process
    if not _watching and hasattr(os, "register_at_fork"):
        _watching = True
        os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    with shield("forked"):
        reborn()


_watching = False
