"""The in-process ledger: packed turns by serial number, and an index of every key they have.

Theory of operation. A turn (one response) is recorded once and gets the next serial number. It is
indexed under every digest that may survive in a later request: its seals (`canon`), ids, visible
payloads, its joined text, the id of the response, the rolling digest of the messages it answered.
No session id is needed: an outbound message is looked up by what it holds. `parent` links a turn to
the one its request continued, so the turns form trees; a fork is two children of one parent.

What is held is bytes (`packed`), and a small entry for each key (`index`): about 350 bytes a sealed
value with its companions, less than 400. What was just recorded or asked for is kept
unpacked beside it, so that a conversation that goes on unpacks nothing.

Bounds, all of them:
- `max_turns` turns, and `max_bytes` of memory: packed turns with their index and bookkeeping
  (`size`) take seven tenths of it at most, the rest is for turns kept unpacked and for what the
  allocator loses. Beyond either, the least recently touched turn goes first and counts into
  `evicted`. Recording and `get` touch a turn, `lookup` does not. A turn larger than all of it goes
  at once.
- 16 turns a key, the newest; a key that more turns have (a constant seal) names these.
- unpacked beside it: 1024 turns whose packed forms are 1 MiB together, and a 64th of `max_bytes`.
- 4096 names of at most 256 characters, and 4096 digests of accounts, systems and tools, are held
  once for all; others stand in each turn.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import islice
from typing import Final

from otel_sealed.ledger.index import ENTRY_BYTES, Index
from otel_sealed.ledger.packed import (
    Corrupt,
    Names,
    found_by,
    holds,
    key_count,
    keys_of,
    packed,
    unpack,
)
from otel_sealed.model import Turn
from otel_sealed.model.record import replace
from otel_sealed.steps import spend

__all__ = ["MemoryLedger", "keys_of"]

MAX_TURNS: Final = 20_000
MAX_BYTES: Final = 64 * 2**20
TURN_BYTES: Final = 144
"""What a turn costs beside its packed bytes and keys: its objects, its place in the order."""
_KEYS_A_TURN: Final = 12
_LIKELY_BYTES: Final = 1_024
_AT_ONCE: Final = 256
_LARGE: Final = 4_096
"""Bytes of a packed turn that are searched for a key as they are: about 0.2 us."""
MAX_LARGE_KEYS: Final = 50_000
"""Keys of large turns that are kept: less than 6 MB, and those of a turn of 10,000 blocks."""
WARM_TURNS: Final = 1_024
WARM_BYTES: Final = 2**20


class MemoryLedger:
    """Turns of this process. One lock; bounded; lives as long as its tracker.

    `size` is what it holds, in bytes; `evicted` counts turns forgotten to stay within the bounds,
    `corrupt` turns that could not be unpacked; `stateful`: a turn that was recorded had state.
    """

    def __init__(self, max_turns: int = MAX_TURNS, max_bytes: int = MAX_BYTES) -> None:
        """Raises ValueError where a bound is below 1."""
        for name, bound in (("max_turns", max_turns), ("max_bytes", max_bytes)):
            if bound < 1:
                raise ValueError(f"{name} must be at least 1, got {bound}")
        self._max = max_turns
        self._max_bytes = max_bytes * 7 // 10
        self._packed: dict[int, bytes] = {}
        self._oldest: dict[int, None] = {}
        self._warm = Warm(max_bytes=min(max_bytes // 64, WARM_BYTES))
        self._keys = LargeKeys()
        self._names = Names()
        likely = min(max_turns, max_bytes // _LIKELY_BYTES)
        self._index = Index(likely * _KEYS_A_TURN, self._packed)
        self._conversations = Index(likely, self._packed)
        self._next = 0
        self._lock = threading.Lock()
        self.size = 0
        self.evicted = 0
        self.corrupt = 0
        self.stateful = False

    def __len__(self) -> int:
        """Turns held."""
        return len(self._packed)

    def __contains__(self, number: int) -> bool:
        """Whether that turn is held."""
        return number in self._packed

    def forked(self) -> None:
        """In a child of `fork`, where a thread that is not there may hold the lock."""
        self._lock = threading.Lock()

    def record(self, turn: Turn) -> Turn:
        """Remember `turn` under the next serial number and return it numbered."""
        with self._lock:
            number = self._next
            self._next += 1
            numbered = replace(turn, number=number)
            data, keys = packed(numbered, self._names)
            self._packed[number] = data
            self.stateful = self.stateful or turn.stateful
            left = self.evicted + self.corrupt > 0
            self._index.add(keys, number, left=left)
            if turn.conversation:
                self._conversations.add((turn.conversation,), number, left=left)
            self._warm.keep(numbered, len(data))
            self.size += _cost(data)
            while len(self._packed) > self._max or self.size > self._max_bytes:
                self._forget(self._least_recent())
                self.evicted += 1
            return numbered

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Serial numbers of the turns that hold `key`, oldest first; at most 16."""
        with self._lock:
            return tuple([n for n in self._index.find(key) if self._holds(n, key)])

    def get(self, number: int) -> Turn | None:
        """The turn of that serial number, marked as used; None if forgotten."""
        with self._lock:
            data = self._packed.get(number)
            if data is None:
                return None
            self._packed[number] = self._packed.pop(number)
            self._oldest.pop(number, None)
            turn = self._warm.get(number)
            if turn is None:
                try:
                    turn = unpack(data, self._names, number)
                except Corrupt:
                    self._forget(number)
                    self.corrupt += 1
                    return None
                self._warm.keep(turn, len(data))
            return turn

    def last(self, conversation: bytes) -> int:
        """Serial number of the newest turn held of that conversation key, or -1."""
        with self._lock:
            for number in reversed(self._conversations.find(conversation)):
                if found_by(self._packed[number])[1] == conversation:
                    return number
            return -1

    def _holds(self, number: int, key: bytes) -> bool:
        """Whether a turn is found by a key. A large one is not searched for each of its keys."""
        data = self._packed[number]
        return holds(data, key) if len(data) < _LARGE else key in self._keys.of(number, data)

    def _least_recent(self) -> int:
        """The first of the order, with some of those behind it looked up at once.

        A dict keeps the order in half the memory of an `OrderedDict`, but finds its first key by
        passing over all that went before it.
        """
        if not self._oldest:
            self._oldest = dict.fromkeys(islice(self._packed, _AT_ONCE))
        return next(iter(self._oldest))

    def _forget(self, number: int) -> None:
        self._oldest.pop(number, None)
        self.size -= _cost(self._packed.pop(number))
        self._warm.forget(number)
        self._keys.forget(number)


def _cost(data: bytes) -> int:
    return len(data) + TURN_BYTES + ENTRY_BYTES * (key_count(data) + 1)


class LargeKeys:
    """The keys of the large turns that were looked at last. Not thread-safe."""

    def __init__(self, most: int = MAX_LARGE_KEYS) -> None:
        """`most`: how many keys are kept; the turn that was kept first goes first."""
        self._most = most
        self._turns: OrderedDict[int, frozenset[bytes]] = OrderedDict()
        self._count = 0

    def of(self, number: int, data: bytes) -> frozenset[bytes]:
        """The keys of a turn, from its packed form where they are not kept."""
        keys = self._turns.get(number)
        if keys is None:
            try:
                keys = frozenset(found_by(data)[0])
            except Corrupt:  # `get` reports it
                keys = frozenset()
            spend(len(keys))
            self._turns[number] = keys
            self._count += len(keys)
            while self._count > self._most and len(self._turns) > 1:
                self.forget(next(iter(self._turns)))
        return keys

    def forget(self, number: int) -> None:
        """Let go of the keys of a turn."""
        self._count -= len(self._turns.pop(number, ()))


class Warm:
    """Turns as they are, for as long as they are in use: bounded by number and by packed bytes.

    Not thread-safe.
    """

    def __init__(self, max_turns: int = WARM_TURNS, max_bytes: int = WARM_BYTES) -> None:
        """The least recently used turn goes first."""
        self._max_turns = max_turns
        self._max_bytes = max_bytes
        self._turns: OrderedDict[int, tuple[Turn, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        """Turns kept."""
        return len(self._turns)

    def keep(self, turn: Turn, size: int) -> None:
        """Keep a turn that is not kept; `size` is that of its packed form."""
        self._turns[turn.number] = (turn, size)
        self._bytes += size
        while len(self._turns) > self._max_turns or self._bytes > self._max_bytes:
            self.forget(next(iter(self._turns)))

    def get(self, number: int) -> Turn | None:
        """A turn that is kept."""
        kept = self._turns.get(number)
        if kept is None:
            return None
        self._turns.move_to_end(number)
        return kept[0]

    def forget(self, number: int) -> None:
        """Let go of a turn, if it is kept."""
        kept = self._turns.pop(number, None)
        if kept is not None:
            self._bytes -= kept[1]
