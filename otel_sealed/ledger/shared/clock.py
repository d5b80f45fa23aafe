"""Numbers of turns: they rise in a process, and along every line of turns across processes."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

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

    def before(self, seconds: float) -> int:
        """The least number of that long ago."""
        return self._step(self._now_ns() - int(seconds * 1e9)) << _TAG_BITS

    def forked(self) -> None:
        """Be told apart from the parent."""
        self._tag = secrets.randbits(_TAG_BITS)

    @staticmethod
    def _step(nanoseconds: int) -> int:
        return max(nanoseconds - _EPOCH_NS, 0) >> _STEP_BITS
