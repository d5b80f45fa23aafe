"""A ledger that several processes share: memory in front of a store, which is written behind.

Theory of operation. What this process records is in its own memory at once, under a number of its
own clock, and on its way to the store in a thread that starts with the first record: no call waits
for the store to write. What is asked for is looked up in both, so a conversation that moves to
another process is known there as soon as the writer was, commonly a millisecond later.

Numbers rise along every line of turns, whichever processes recorded them: a number is the time, in
steps of 16 microseconds, above 16 bits that tell processes apart, and no clock stays behind a
number it has seen.

A store that is locked, full, read-only, damaged or away never harms the application. The first
fault is reported in one log line, each counts into `failures`, and for a while, longer each time up
to a minute, the store is left alone; memory stands in, and at most `MAX_WAITING` turns wait for it
to come back. What nobody remembers is `unknown`, and accuses nobody.

Nothing that a store says is believed as it is: `trust` says who is trusted with what. What fails
its checks counts into `corrupt`, puts no store to rest, and is unknown.

A child of `fork` has connections, a writer, locks and numbers of its own, made before any of its
code runs, and again at the first use where nobody ran the hooks of Python's.

Bounds: memory has those of `MemoryLedger`; the store prunes itself to the same number of turns, to
its own size and age, oldest first. A turn is too old when the clock of the store and that of the
process both say so. What this process pruned, or gave up while it waited, counts into `evicted`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from otel_sealed.ledger.index import MAX_SAME_KEY
from otel_sealed.ledger.memory import MAX_BYTES, MAX_TURNS, MemoryLedger, Warm
from otel_sealed.ledger.packed import Corrupt, found_by, unpack
from otel_sealed.ledger.shared import ending
from otel_sealed.ledger.shared.clock import Clock
from otel_sealed.ledger.shared.genuine import Genuine
from otel_sealed.ledger.shared.store import Row, Store
from otel_sealed.ledger.shared.trust import Trust, usable_key
from otel_sealed.ledger.shared.writer import BATCH, MAX_WAITING, STOP_S, Health, Writer
from otel_sealed.living import Living
from otel_sealed.model import Turn

__all__ = ["BATCH", "MAX_WAITING", "Clock", "Health", "Row", "SharedLedger", "Store"]

_KEYS_AT_ONCE: Final = 512
_RECORDS_AT_ONCE: Final = 128
"""Of at most 256 KiB each (`trust.MAX_RECORD`): 32 MiB are in memory at once, whatever is there."""
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
        self._expected = threading.local()
        self._health = Health(name, clock)
        self._trust = Trust(self._clock, self._health.refuse)
        self._genuine = Genuine(self._trust)
        self._writer = Writer(store, self._health, self._clock, self._trust, max_age_s)
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._pid = os.getpid()
        self._asked(self._open, None)
        _ledgers.add(self)
        ending.with_owner(self, self._writer)

    def keyed(self, key: bytes) -> None:
        """The hash key of those who record and ask: what others signed with it is genuine."""
        self._trust.key(key)
        self._genuine = Genuine(self._trust)

    @property
    def failures(self) -> int:
        """How often the store could not be used."""
        return self._health.failures

    @property
    def corrupt(self) -> int:
        """How often something in the store was not what a holder of the key put there."""
        return self._health.refused

    @property
    def evicted(self) -> int:
        """Turns this process pruned from the store, or gave up, to stay within the bounds."""
        return self._writer.pruned + self._writer.given_up

    def __len__(self) -> int:
        """Turns held: by the store, or by memory while that cannot be used."""
        held = self._asked(self._store.count, None)
        return (0 if held is None else self._trust.count(held)) or len(self._memory)

    def record(self, turn: Turn) -> Turn:
        """Remember `turn` under the next number and return it numbered."""
        self._notice_fork()
        with self._lock:
            numbered = replace(turn, number=self._clock.next())
            serial = self._memory.record(turn).number
            while self._first + len(self._numbers) < serial:
                # a fork came between the lines above and below: of turns that have no number here
                self._numbers.append(numbered.number - 1)
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
            there = self._found([key])[key]
        if not there:
            return tuple(own)
        self._clock.saw(there[-1])
        return tuple(sorted({*own, *there})[-MAX_SAME_KEY:])

    def expect(self, keys: Sequence[bytes]) -> None:
        """These keys will be looked up now, in this thread: fetch what a far store has of them."""
        if self._store.far:
            self._notice_fork()
            found = self._found([key for key in dict.fromkeys(keys) if key])
            self._expected.until = self._now() + _EXPECTED_S
            self._expected.found = found

    def get(self, number: int) -> Turn | None:
        """The turn of that number; None if nobody holds it."""
        self._notice_fork()
        with self._lock:
            turn = self._read.get(number) or self._own(number)
        if turn is not None or not 0 <= number <= self._clock.latest():
            return turn
        data = next((data for _, data in self._records([number])), None)
        return None if data is None else self._unpacked(number, data)

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""
        self._notice_fork()
        if not conversation:
            return -1
        with self._lock:
            own = self._number(self._memory.last(conversation))
        there = self._asked(self._store.newest, conversation, self._clock.latest()) or ()
        for number in reversed(self._trust.numbers(there)):
            turn = self.get(number) if number > own else None
            if turn is not None and turn.conversation == conversation:
                return number
        return own

    def _found(self, keys: list[bytes]) -> dict[bytes, list[int]]:
        """For each key the turns in the store that hold it, but for those in memory."""
        named: dict[bytes, list[int]] = {key: [] for key in keys}
        latest, wanted = self._clock.latest(), dict[int, None]()
        for some in _chunks(keys, _KEYS_AT_ONCE):
            there = self._asked(self._store.numbers, some, latest) or ()
            for key, numbers in zip(some, there, strict=False):
                if numbers:
                    named[key] = self._trust.numbers(numbers)
                    wanted.update(dict.fromkeys(named[key]))
        if not wanted:
            return named
        with self._lock:
            others = [number for number in wanted if not self._mine(number)]
        holds = {number: _keys(data) for number, data in self._records(others)}
        return {
            key: [number for number in numbers if key in holds.get(number, ())]
            for key, numbers in named.items()
        }

    def _records(self, numbers: list[int]) -> Iterator[tuple[int, bytes]]:
        """The genuine ones of these turns, packed: kept from before, or read from the store."""
        unknown = []
        for number in numbers:
            data = self._genuine.get(number)
            if data is None:
                unknown.append(number)
            else:
                yield number, data
        for some in _chunks(unknown, _RECORDS_AT_ONCE):
            there = self._asked(self._store.records, some) or ()
            for number, value in zip(some, there, strict=False):
                data = self._genuine.read(number, value)
                if data is not None:
                    yield number, data

    def _unpacked(self, number: int, data: bytes) -> Turn | None:
        try:
            turn = unpack(data, number=number)
        except Corrupt:
            self._health.refuse()
            return None
        self._clock.saw(number)
        with self._lock:
            self._read.forget(number)
            self._read.keep(turn, len(data))
        return turn

    def tell(self, hook: Callable[[str], object]) -> None:
        """Have every failure counted by `hook`, which gets the class of the error."""
        self._health.tell(hook)

    def flush(self, timeout_s: float = STOP_S) -> bool:
        """Wait until all that was recorded is in the store; whether it is."""
        return self._writer.flush(timeout_s)

    def close(self) -> None:
        """Write what waits, as far as that is quick, and let go of the store."""
        if self._writer.stop():
            with self._reading:
                self._store.close()

    def _at(self, number: int) -> int:
        """What memory calls the turn of that number; -1 where it is none of this process's."""
        at = bisect_left(self._numbers, max(number, 0))
        known = at < len(self._numbers) and self._numbers[at] == number
        return self._first + at if known else -1

    def _own(self, number: int) -> Turn | None:
        turn = self._memory.get(self._at(number))
        return None if turn is None else replace(turn, number=number)

    def _mine(self, number: int) -> bool:
        return self._at(number) in self._memory

    def _foreseen(self, key: bytes) -> list[int] | None:
        """What was fetched for this thread a moment ago."""
        if self._now() >= getattr(self._expected, "until", 0.0):
            return None
        found: dict[bytes, list[int]] = self._expected.found
        return found.get(key)

    def _number(self, serial: int) -> int:
        """The number of a turn that memory calls `serial`; -1 where it is too long ago."""
        at = serial - self._first
        return self._numbers[at] if 0 <= at < len(self._numbers) else -1

    def _open(self, _: None = None) -> None:
        """Reach the store for the first time, and take the key that is kept there."""
        kept = self._store.open()
        self.key = usable_key(kept)
        if not self.key:
            self.key = secrets.token_bytes(32)
            if kept is not None:
                self._health.no_key()
        self._trust.key(self.key)

    def _asked(self, ask: Callable[..., T], what: object, *more: object) -> T | None:
        """What the store says; None where it is not to be used, or fails.

        Every reading goes through here.
        """
        self._notice_fork()
        if not (self._health.well() and self._writer.reached()):
            return None
        with self._reading:
            if not self._health.well():  # it failed while this thread waited for its turn
                return None
            try:
                return ask() if what is None else ask(what, *more)
            except Exception as error:  # noqa: BLE001 - whatever it was, it is the store's
                self._health.failed(error)
                return None

    def _notice_fork(self) -> None:
        if os.getpid() != self._pid:
            self._forked()

    def _forked(self) -> None:
        """In a child: what threads of the parent had in hand is not waited for, nor used."""
        self._pid = os.getpid()
        self._lock, self._reading = threading.Lock(), threading.Lock()
        for part in (self._memory, self._clock, self._genuine, self._store, self._writer):
            part.forked()
        ending.with_owner(self, self._writer)


_ledgers: Living[SharedLedger] = Living()


def _forked() -> None:
    for ledger in list(_ledgers):
        with contextlib.suppress(Exception):
            ledger._forked()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _chunks(things: list[T], size: int) -> Sequence[list[T]]:
    if len(things) <= size:
        return (things,) if things else ()
    return [things[at : at + size] for at in range(0, len(things), size)]


def _keys(data: bytes) -> Iterable[bytes]:
    """The keys that find a packed turn; none where it is of a version unknown here."""
    try:
        return frozenset(found_by(data)[0])
    except Corrupt:
        return ()


def _about(turn: Turn) -> int:
    """Bytes of the packed form, roughly."""
    return 400 + 200 * len(turn.blocks) + 17 * len(turn.prefix)
