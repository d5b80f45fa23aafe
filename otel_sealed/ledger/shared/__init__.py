"""A ledger that several processes share: memory in front of a store, which is written behind.

Theory of operation. What this process records is in its own memory at once, under a number of its
own clock, and on its way to the store in a thread that starts with the first record: no call waits
for the store to write. What is asked for is looked up in both, so a conversation that moves to
another process is known there as soon as the writer was, commonly a millisecond later.

Numbers rise along every line of turns, whichever processes recorded them: a number is the time, in
steps of 16 microseconds, above 16 bits that tell processes apart, and no clock stays behind a
number it has seen.

A store that is locked, full, read-only, damaged or away never harms the application. The first
fault is told in one log line, each counts into `failures`, and for a while, longer each time up to
a minute, the store is left alone; memory stands in, and at most `MAX_WAITING` turns wait for it to
come back. What nobody remembers is `unknown`, and accuses nobody.

Bounds: memory has those of `MemoryLedger`; the store prunes itself to the same number of turns, to
its own size and age, oldest first. What this process pruned, or gave up while it waited, counts
into `evicted`.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar, cast

from otel_sealed.ledger.index import MAX_SAME_KEY
from otel_sealed.ledger.memory import MAX_BYTES, MAX_TURNS, MemoryLedger, Warm
from otel_sealed.ledger.packed import Corrupt, unpack
from otel_sealed.ledger.shared.clock import Clock
from otel_sealed.ledger.shared.store import Far, Row, Store
from otel_sealed.ledger.shared.writer import BATCH, MAX_WAITING, STOP_S, Health, Writer
from otel_sealed.model import Turn

__all__ = ["BATCH", "MAX_WAITING", "Clock", "Health", "Row", "SharedLedger", "Store"]

_AT_ONCE: Final = 512
_EXPECTED_S: Final = 1.0
T = TypeVar("T")


class SharedLedger:
    """The turns of several processes. One lock for memory, one for reading the store."""

    def __init__(
        self,
        store: Store,
        *,
        name: str,
        max_turns: int = MAX_TURNS,
        max_bytes: int = MAX_BYTES,
        max_age_s: float = 7 * 86_400.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` stands for the store in the log; `clock` tells seconds.

        The store is opened here. Where that fails, memory stands in and it is tried again.
        """
        self.key = b""
        self._store = store
        self._memory = MemoryLedger(max_turns, max_bytes)
        self._numbers = array("Q")
        self._first = 0
        self._most_numbers = 4 * max_turns + 1_024
        self._read: Warm = Warm()
        self._clock = Clock()
        self._now = clock
        self._far = cast("Far", store) if hasattr(store, "lookups") else None
        self._expected = threading.local()
        self._health = Health(name, clock)
        self._writer = Writer(store, self._health, self._clock, max_age_s)
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._pid = os.getpid()
        self.corrupt = 0
        self._asked(self._open, None)
        weakref.finalize(self, Writer.end, self._writer)

    @property
    def failures(self) -> int:
        """How often the store could not be used."""
        return self._health.failures

    @property
    def evicted(self) -> int:
        """Turns this process pruned from the store, or gave up, to stay within the bounds."""
        return self._writer.pruned + self._writer.given_up

    def __len__(self) -> int:
        """Turns held: by the store, or by memory while that cannot be used."""
        return self._asked(self._store.count, None) or len(self._memory)

    def record(self, turn: Turn) -> Turn:
        """Remember `turn` under the next number and return it numbered."""
        self._notice_fork()
        with self._lock:
            numbered = replace(turn, number=self._clock.next())
            self._memory.record(turn)
            self._numbers.append(numbered.number)
            if len(self._numbers) > self._most_numbers:
                half = len(self._numbers) // 2
                self._first += half
                del self._numbers[:half]
            self._read.keep(numbered, _about(numbered))
        self._expected.until = 0.0
        self._writer.put(numbered)
        return numbered

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Numbers of the turns that hold `key`, oldest first; at most 16."""
        self._notice_fork()
        with self._lock:
            own = [self._number(serial) for serial in self._memory.lookup(key)]
            own = [number for number in own if number >= 0]
        there = self._foreseen(key)
        if there is None:
            there = self._asked(self._store.lookup, key)
        if not there:
            return tuple(own)
        self._clock.saw(there[-1])
        return tuple(sorted({*own, *there})[-MAX_SAME_KEY:])

    def expect(self, keys: Sequence[bytes]) -> None:
        """These keys will be looked up now, in this thread: fetch what a far store has of them."""
        far = self._far
        if far is None:
            return
        self._notice_fork()
        found: dict[bytes, list[int]] = {}
        for some in _chunks([key for key in dict.fromkeys(keys) if key]):
            found |= zip(some, self._asked(far.lookups, some) or (), strict=False)
        self._expected.until = self._now() + _EXPECTED_S
        self._expected.found = found
        named = dict.fromkeys(number for numbers in found.values() for number in numbers)
        for these in _chunks([number for number in named if self._near(number) is None]):
            for number, data in zip(these, self._asked(far.gets, these) or (), strict=False):
                if data is not None:
                    self._unpacked(number, data)

    def get(self, number: int) -> Turn | None:
        """The turn of that number; None if nobody holds it."""
        self._notice_fork()
        turn = self._near(number)
        if turn is not None or number < 0:
            return turn
        data = self._asked(self._store.get, number)
        return None if data is None else self._unpacked(number, data)

    def _near(self, number: int) -> Turn | None:
        with self._lock:
            return self._read.get(number) or self._own(number)

    def _unpacked(self, number: int, data: bytes) -> Turn | None:
        try:
            turn = unpack(data, number=number)
        except Corrupt:
            self.corrupt += 1
            return None
        with self._lock:
            self._read.forget(number)
            self._read.keep(turn, len(data))
        return turn

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""
        self._notice_fork()
        if not conversation:
            return -1
        with self._lock:
            own = self._number(self._memory.last(conversation))
        there = self._asked(self._store.last, conversation)
        return max(own, -1 if there is None else there)

    def tell(self, hook: Callable[[str], object]) -> None:
        """Have every failure counted by `hook`, which gets the class of the error."""
        self._health.tell(hook)

    def flush(self, timeout_s: float = STOP_S) -> bool:
        """Wait until all that was recorded is in the store; whether it is."""
        return self._writer.flush(timeout_s)

    def close(self) -> None:
        """Write what waits, as far as that is quick, and let go of the store."""
        self._writer.stop()
        with self._reading:
            self._store.close()

    def _own(self, number: int) -> Turn | None:
        at = bisect_left(self._numbers, max(number, 0))
        if at == len(self._numbers) or self._numbers[at] != number:
            return None
        turn = self._memory.get(self._first + at)
        return None if turn is None else replace(turn, number=number)

    def _foreseen(self, key: bytes) -> list[int] | None:
        """What was fetched for this thread a moment ago."""
        if self._now() >= getattr(self._expected, "until", 0.0):
            return None
        found: dict[bytes, list[int]] = self._expected.found
        return found.get(key)

    def _number(self, serial: int) -> int:
        """The number of a turn that memory calls `serial`; -1 where it is too long ago."""
        return self._numbers[serial - self._first] if serial >= self._first else -1

    def _open(self, _: None = None) -> None:
        self.key = self._store.open()

    def _asked(self, ask: Callable[..., T], what: object) -> T | None:
        """What the store says; None where it is not to be used, or fails."""
        if not self._health.well():
            return None
        with self._reading:
            try:
                said = ask() if what is None else ask(what)
            except self._store.faults as error:
                self._health.failed(error)
                return None
        return said

    def _notice_fork(self) -> None:
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            self._clock.forked()
            self._store.forked()
            self._writer.forked()


def _chunks(things: list[T]) -> Iterator[list[T]]:
    return (things[at : at + _AT_ONCE] for at in range(0, len(things), _AT_ONCE))


def _about(turn: Turn) -> int:
    """Bytes of the packed form, roughly."""
    return 400 + 200 * len(turn.blocks) + 17 * len(turn.prefix)
