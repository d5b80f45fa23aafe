"""Numbers of turns: they rise in a process, and along every line of turns across processes."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

MOST: Final = 2**63 - 1
"""The greatest number: what SQLite has as an integer."""
AHEAD_S: Final = 86_400.0
"""How far another process's clock may be ahead: a day, more than a wrong time zone makes it.

A number later than that is refused, so that one wrong clock moves no other by more.
"""
_TAG_BITS: Final = 16
_STEP_BITS: Final = 14
"""Nanoseconds a step of the clock: 2**14."""
_EPOCH_NS: Final = 1_735_689_600 * 10**9
"""2025-01-01 UTC."""


class Clock:
    """Numbers that rise, in this process and beyond every number it was shown."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        """`now_ns`: nanoseconds since 1970."""
        self._now_ns = now_ns
        self._last = 0
        self._lock = threading.Lock()
        self._tag = secrets.randbits(_TAG_BITS)

    def next(self) -> int:
        """A number of this process above all it gave or was shown."""
        with self._lock:
            self._last = max(self._last + 1, self._step(self._now_ns()))
            return self._last << _TAG_BITS | self._tag

    def saw(self, number: int) -> None:
        """A number of another process."""
        with self._lock:
            self._last = max(self._last, number >> _TAG_BITS)

    def before(self, seconds: float, now_ns: int | None = None) -> int:
        """The least number of that long ago, by this clock and by `now_ns`, whichever is less."""
        now = self._now_ns() if now_ns is None else min(now_ns, self._now_ns())
        return self._step(now - int(seconds * 1e9)) << _TAG_BITS

    def latest(self) -> int:
        """The greatest number that another process may have given by now."""
        return min(self.before(-AHEAD_S) | (1 << _TAG_BITS) - 1, MOST)

    def forked(self) -> None:
        """Differ from the parent, one of whose threads may hold the lock."""
        self._lock = threading.Lock()
        self._tag = secrets.randbits(_TAG_BITS)

    @staticmethod
    def _step(nanoseconds: int) -> int:
        return max(nanoseconds - _EPOCH_NS, 0) >> _STEP_BITS
