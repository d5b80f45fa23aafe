"""Writing behind: a thread that hands turns to a store, and lets it alone while it is unwell."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final

from otel_sealed.ledger.packed import packed
from otel_sealed.ledger.shared.clock import Clock
from otel_sealed.ledger.shared.store import Row, Store
from otel_sealed.ledger.shared.trust import Trust, fits
from otel_sealed.model import Turn
from otel_sealed.vocab import SCOPE

_LOG: Final = logging.getLogger(SCOPE)
MAX_WAITING: Final = 1_024
BATCH: Final = 256
_REST_S: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
STOP_S: Final = 2.0
REACH_S: Final = 0.1
"""What the first question of a forked child waits for its thread: SQLite opens in milliseconds."""


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
        self.refused = 0

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
        self._counted(kind)
        if self.failures == 1:
            _LOG.warning(
                "the shared ledger (%s) cannot be used: %s; the memory of this process stands in",
                self._name,
                kind,
            )

    def refuse(self) -> None:
        """Something in it is not what a holder of the key put there. It goes on being used."""
        self.refused += 1
        self._counted("Corrupt")
        if self.refused == 1:
            _LOG.warning(
                "the shared ledger (%s) holds what no process with this hash key wrote, or what was"
                " changed since: ignored, and counted",
                self._name,
            )

    def no_key(self) -> None:
        """It holds a key that is none."""
        self._counted("UnusableKey")
        _LOG.warning(
            "the shared ledger (%s) holds no usable hash key: this process has one of its own, and"
            " joins no values with others; set OTEL_SEALED_HASH_KEY, or remove that key",
            self._name,
        )

    def _counted(self, kind: str) -> None:
        if self._hook is not None:
            self._hook(kind)
        elif len(self._untold) < BATCH:
            self._untold.append(kind)


class Writer:
    """The thread that writes, begun with the first row and idle without any.

    In a child of `fork` it is also who reaches the store first. Another thread of the parent may
    have held a lock inside the store's library at the fork, which nobody can free in the child;
    what waits for it is then this thread, and no call (`reached`).

    What it is woken by is put into a queue written in C, which may be put into at any time: also by
    a weak reference to the ledger, in a garbage collection, once nobody holds that any more.
    """

    def __init__(
        self, store: Store, health: Health, clock: Clock, trust: Trust, max_age_s: float
    ) -> None:
        """Nothing is started yet."""
        self._store = store
        self._health = health
        self._clock = clock
        self._trust = trust
        self._max_age_s = max_age_s
        self._turns: deque[Turn] = deque(maxlen=MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._owner: weakref.ref[object] | None = None
        self._pid = os.getpid()
        self._wait_s = REACH_S
        self._events()
        self._opened.set()
        self.pruned = 0
        self.given_up = 0

    def owned_by(self, ledger: object) -> None:
        """End by itself when nobody holds `ledger` any more."""
        self._owner = weakref.ref(ledger, self._wake.put)

    def orphaned(self) -> bool:
        """Whether nobody holds its ledger, and no thread of its own is there to end it."""
        thread = self._thread
        return self._gone() and (thread is None or not thread.is_alive())

    def put(self, turn: Turn) -> None:
        """Have a turn written; the oldest that waits is given up where too many do."""
        self.given_up += len(self._turns) == MAX_WAITING
        self._turns.append(turn)
        self._idle.clear()
        self._go()

    def reached(self) -> bool:
        """Whether the store answered this process, in a child of `fork` the thread of its own."""
        if self._opened.is_set():
            return True
        self._go()
        wait_s, self._wait_s = self._wait_s, 0.0
        return self._opened.wait(wait_s)

    def tell(self, hook: Callable[[str], object]) -> None:
        """Have every failure counted by `hook`, which gets the class of the error."""
        self._health.tell(hook)

    def flush(self, timeout_s: float) -> bool:
        """Wait until nothing waits."""
        return self._idle.wait(timeout_s)

    def stop(self) -> bool:
        """Write what waits, if that is quick, and end the thread; whether it has ended.

        The store of one that has not is in use: SQLite crashes where another thread closes the
        connection that it writes with. It is left to the end of the process then.
        """
        thread, self._thread = self._thread, None
        self._stopping = True
        self._ring()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(STOP_S)
        return not thread.is_alive()

    def end(self) -> None:
        """The ledger is gone, or the process ends: stop, and let go of a store that nobody reads.

        Where the process ends, other threads may be reading still.
        """
        if os.getpid() == self._pid and self.stop() and self._gone():
            with contextlib.suppress(Exception):
                self._store.close()

    def forked(self) -> None:
        """What waits is the parent's, and so is the thread."""
        self._pid = os.getpid()
        self._turns.clear()
        self._thread = None
        self._events()

    def _events(self) -> None:
        # looked up here: gevent puts its own in that place, also after this module was imported
        self._wake: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._idle, self._opened = threading.Event(), threading.Event()
        self._idle.set()
        self._stopping = False
        self._wait_s = REACH_S
        self._start = threading.Lock()

    def _go(self) -> None:
        """Wake the thread, and begin it where there is none or it ended."""
        self._ring()
        thread = self._thread
        if thread is None or not thread.is_alive():
            with self._start:
                self._begin(thread)

    def _ring(self) -> None:
        """Wake the thread; one that was not taken yet does it for all."""
        if self._wake.empty():
            self._wake.put(None)

    def _gone(self) -> bool:
        return self._owner is not None and self._owner() is None

    def _begin(self, ended: threading.Thread | None) -> None:
        if self._thread is ended:
            self._stopping = False
            thread = threading.Thread(target=self._run, name="otel_sealed.ledger", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is going down, or there are too many
                return
            self._thread = thread

    def _run(self) -> None:
        wake, idle, opened = self._wake, self._idle, self._opened
        if not opened.is_set():
            try:
                self._store.open()
            except Exception as error:  # noqa: BLE001 - whatever it was, the thread goes on
                self._health.failed(error)
            opened.set()
        while True:
            wake.get()
            self._stopping = self._stopping or self._gone()
            while self._turns and not (self._stopping and not self._health.well()):
                if self._health.well():
                    self._write()
                else:
                    with contextlib.suppress(queue.Empty):
                        wake.get(timeout=self._health.rest())
                    self._stopping = self._stopping or self._gone()
            if not self._turns:
                idle.set()
            if self._stopping:
                break
        if self._gone():
            with contextlib.suppress(Exception):
                self._store.close()

    def _write(self) -> None:
        turns: list[Turn] = []
        while self._turns and len(turns) < BATCH:
            turns.append(self._turns.popleft())
        try:
            latest = self._clock.latest()
            rows = [row for turn in turns if (row := self._row(turn, latest)) is not None]
            self.pruned += self._store.write(rows, self._oldest(), latest)
        except self._store.faults as error:
            self._health.failed(error)
            room = max(MAX_WAITING - len(self._turns), 0)
            kept = turns[max(len(turns) - room, 0) :]
            self._turns.extendleft(reversed(kept))
            self.given_up += len(turns) - len(kept)
        except Exception as error:  # noqa: BLE001 - no fault of the store's: never to be written
            self._health.failed(error)
            self.given_up += len(turns)
        else:
            self.given_up += len(turns) - len(rows)
            self._health.worked()

    def _oldest(self) -> int:
        """What is older than this is too old, by the store's clock and by ours."""
        there = self._trust.count(self._store.now_ns())
        return self._clock.before(self._max_age_s, there) if there else 0

    def _row(self, turn: Turn, latest: int) -> Row | None:
        """A turn as it is kept; None for one that nobody would believe.

        It is too large, or its number is ahead of the clock, which was put back.
        """
        data, keys = packed(turn)
        data = self._trust.signed(turn.number, data)
        if turn.number > latest or not fits(data):
            return None
        return Row(turn.number, data, tuple(keys), turn.conversation)
