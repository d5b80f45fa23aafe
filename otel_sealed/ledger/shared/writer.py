"""Writing behind: a thread that hands turns to a store, and lets it alone while it is unwell."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from otel_sealed.ledger.packed import packed
from otel_sealed.ledger.shared.clock import Clock
from otel_sealed.ledger.shared.store import Row, Store
from otel_sealed.model import Turn
from otel_sealed.vocab import SCOPE

_LOG: Final = logging.getLogger(SCOPE)
MAX_WAITING: Final = 1_024
BATCH: Final = 256
_REST_S: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
STOP_S: Final = 2.0


class Health:
    """Whether a store is used: after a fault it rests, longer each time."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        """`name`: what the store is called in the log line."""
        self._name = name
        self._clock = clock
        self._faults = 0
        self._rests_until = 0.0
        self._untold: list[str] = []
        self._hook: Callable[[str], object] | None = None
        self.failures = 0

    def tell(self, hook: Callable[[str], object]) -> None:
        """Call `hook` with the class of every error, those that came before included."""
        self._hook = hook
        while self._untold:
            hook(self._untold.pop(0))

    def well(self) -> bool:
        """Whether to use it now."""
        return self._clock() >= self._rests_until

    def rest(self) -> float:
        """Seconds until it is used again."""
        return max(self._rests_until - self._clock(), 0.0)

    def worked(self) -> None:
        """It did."""
        self._faults = 0

    def failed(self, error: Exception) -> None:
        """It did not. The kind of the error is told, once, and never its text."""
        rest = _REST_S[min(self._faults, len(_REST_S) - 1)]
        self._rests_until = self._clock() + rest
        self._faults += 1
        self.failures += 1
        kind = type(error).__name__
        if self._hook is not None:
            self._hook(kind)
        elif len(self._untold) < BATCH:
            self._untold.append(kind)
        if self.failures == 1:
            _LOG.warning(
                "the shared ledger (%s) cannot be used: %s; the memory of this process stands in",
                self._name,
                kind,
            )


class Writer:
    """The thread that writes behind, begun with the first row and idle without any."""

    def __init__(self, store: Store, health: Health, clock: Clock, max_age_s: float) -> None:
        """Nothing is started yet."""
        self._store = store
        self._health = health
        self._clock = clock
        self._max_age_s = max_age_s
        self._turns: deque[Turn] = deque(maxlen=MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._start = threading.Lock()
        self._pid = os.getpid()
        self._events()
        self.pruned = 0
        self.given_up = 0

    def put(self, turn: Turn) -> None:
        """Have a turn written; the oldest that waits is given up where too many do."""
        self.given_up += len(self._turns) == MAX_WAITING
        self._turns.append(turn)
        self._idle.clear()
        self._wake.set()
        if self._thread is None:
            with self._start:
                self._begin()

    def tell(self, hook: Callable[[str], object]) -> None:
        """Have every failure counted by `hook`, which gets the class of the error."""
        self._health.tell(hook)

    def flush(self, timeout_s: float) -> bool:
        """Wait until nothing waits."""
        return self._idle.wait(timeout_s)

    def stop(self) -> None:
        """Write what waits, if that is quick, and end the thread."""
        thread, self._thread = self._thread, None
        self._stopping = True
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_S)

    def end(self) -> None:
        """The ledger is gone, or the process ends: stop, and let go of the store if it is ours."""
        if os.getpid() == self._pid:
            self.stop()
            with contextlib.suppress(*self._store.faults):
                self._store.close()

    def forked(self) -> None:
        """What waits is the parent's, and so is the thread."""
        self._pid = os.getpid()
        self._turns.clear()
        self._thread = None
        self._events()

    def _events(self) -> None:
        self._wake, self._idle = threading.Event(), threading.Event()
        self._idle.set()
        self._stopping = False

    def _begin(self) -> None:
        if self._thread is None:
            self._stopping = False
            thread = threading.Thread(target=self._run, name="otel_sealed.ledger", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is going down, or there are too many
                return
            self._thread = thread

    def _run(self) -> None:
        wake, idle = self._wake, self._idle
        while True:
            wake.wait()
            wake.clear()
            while self._turns and not (self._stopping and not self._health.well()):
                if self._health.well():
                    self._write()
                else:
                    wake.wait(self._health.rest())
                    wake.clear()
            if not self._turns:
                idle.set()
            if self._stopping:
                return

    def _write(self) -> None:
        turns: list[Turn] = []
        while self._turns and len(turns) < BATCH:
            turns.append(self._turns.popleft())
        try:
            oldest = self._clock.before(self._max_age_s)
            self.pruned += self._store.write([_row(turn) for turn in turns], oldest)
        except self._store.faults as error:
            self._health.failed(error)
            room = max(MAX_WAITING - len(self._turns), 0)
            kept = turns[max(len(turns) - room, 0) :]
            self._turns.extendleft(reversed(kept))
            self.given_up += len(turns) - len(kept)
        else:
            self._health.worked()


def _row(turn: Turn) -> Row:
    data, keys = packed(turn)
    return Row(turn.number, data, tuple(keys), turn.conversation)
