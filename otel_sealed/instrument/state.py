"""Whether calls are observed or pass straight through, and who decides that while a process runs.

Theory of operation. A wrapper asks `passing()` at each call, and nothing else happens on the way of
a call: no file is looked at, no thread started, and the clock is read only while we rest.

* *killed*: the kill file exists. A daemon thread looks for it once a second. It starts after the
  first call is settled, or at once where the file is there when we are put on, since then no call
  will ever be settled. A child of `fork` has no such thread and gets one in the same ways.
* *resting*: more faults of ours in a minute than are allowed. It ends by itself.

Calls that are under way when the state changes are observed to their end.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from otel_sealed.instrument.guard import shield
from otel_sealed.vocab import ACTIVE, KILLED, RESTING, SCOPE

_LOG: Final = logging.getLogger(SCOPE)
MINUTE: Final = 60.0
LOOK_S: Final = 1.0


class State:
    """The state of one process. It waits for no lock: it is asked at every call."""

    def __init__(
        self,
        *,
        max_faults: int = 30,
        rest_s: float = 300.0,
        kill_file: str = "",
        clock: Callable[[], float] = time.monotonic,
        exists: Callable[[str], bool] = os.path.exists,
    ) -> None:
        """More than `max_faults` in a minute start a rest of `rest_s`."""
        self.kill_file = kill_file
        self.killed = False
        self._until = 0.0
        self._faults: deque[float] = deque(maxlen=max_faults + 1)
        self._rest_s = rest_s
        self._clock = clock
        self._exists = exists
        self._deciding = threading.Lock()

    @property
    def passing(self) -> bool:
        """Whether calls go straight through."""
        if self.killed:
            return True
        return self._until > 0 and self._resting()

    def _resting(self) -> bool:
        if self._clock() < self._until:
            return True
        self._until = 0.0
        return False

    def word(self) -> str:
        """The state in the word of the vocabulary."""
        if self.killed:
            return KILLED
        return RESTING if self.passing else ACTIVE

    def fault(self) -> None:
        """One fault of ours. Where another thread decides on one right now, that one is enough."""
        faults = self._faults
        now = self._clock()
        faults.append(now)
        if len(faults) < (faults.maxlen or 0) or now - faults[0] >= MINUTE:
            return
        if not self._deciding.acquire(blocking=False):
            return
        try:
            if not self.passing:
                self._rest(now, len(faults))
        finally:
            self._deciding.release()

    def _rest(self, now: float, count: int) -> None:
        self._faults = deque(maxlen=self._faults.maxlen)
        self._until = now + self._rest_s
        _LOG.warning(
            "%d internal errors within a minute: calls go through unobserved for %g seconds",
            count,
            self._rest_s,
        )

    def forked(self) -> None:
        """In a child of `fork`, where a thread that is not there may hold the lock."""
        self._deciding = threading.Lock()

    def look(self) -> None:
        """Look for the kill file. Never on the way of a call."""
        if not self.kill_file:
            return
        killed = self._exists(self.kill_file)
        if killed is not self.killed:
            self.killed = killed
            says = (
                "is there: calls go through unobserved" if killed else "is gone: calls are observed"
            )
            _LOG.warning("the kill file %s %s", self.kill_file, says)


class Watcher:
    """The thread that looks for the kill file of one state."""

    def __init__(self, state: State, *, every_s: float = LOOK_S) -> None:
        """Nothing is started yet."""
        self._state = state
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Look once, now; start the thread at once only where no call could start it later."""
        self._state.look()
        if self._state.killed:
            self.start()

    def start(self) -> None:
        """Start the thread unless it runs or there is nothing to look for."""
        if self._thread is not None or not self._state.kill_file or self._stop.is_set():
            return
        self._thread = threading.Thread(target=self._run, name="otel_sealed_kill", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; it does not start again."""
        self._stop.set()

    def forked(self) -> None:
        """In a child of `fork`: the thread stayed with the parent."""
        if self._thread is not None:
            self._thread = None
            self._stop = threading.Event()
            if self._state.killed:
                self.start()

    def _run(self) -> None:
        stop = self._stop
        while not stop.wait(self._every_s):
            with shield("state.look"):
                self._state.look()


# ------------------------------------------------------------------------- of this very process

_state = State()
_watcher = Watcher(_state)


def passing() -> bool:
    """Whether calls of this process go straight through. Asked several times in each call."""
    state = _state
    return state.killed or (state._until > 0 and state._resting())


def use(state: State, watcher: Watcher) -> None:
    """Make these the state and the watcher of this process, and end the watcher before them."""
    global _state, _watcher
    _watcher.stop()
    _state, _watcher = state, watcher


def reset() -> None:
    """Back to where nothing is decided: calls are observed, nobody watches."""
    state = State()
    use(state, Watcher(state))


def _forked() -> None:
    with shield("state.forked"):
        _state.forked()
        _watcher.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
