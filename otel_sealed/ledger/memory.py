"""The in-process ledger: turns by serial number, and an index from every key they can be found by.

Theory of operation. A turn (one response) is recorded once and gets the next serial number. It is
indexed under every digest that may survive in a later request: its seals (`canon`), ids, visible
payloads, its joined text, the id of the response, the rolling digest of the messages it answered.
No session id is needed: an outbound message is looked up by what it holds. `parent` links a turn to
the one its request continued, so the turns form trees; a fork is two children of one parent.
Both the turns and the index are bounded by `max_turns`; the least recently touched turn goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from otel_sealed.model import Role, State, Turn

_MAX_SAME_KEY = 16


class MemoryLedger:
    """Turns of this process. One lock; bounded by `max_turns`; lives as long as its tracker."""

    def __init__(self, max_turns: int = 20_000) -> None:
        """`max_turns`: turns kept; older ones are forgotten and counted in `evicted`."""
        if max_turns < 1:
            msg = f"max_turns must be at least 1, got {max_turns}"
            raise ValueError(msg)
        self._max = max_turns
        self._turns: OrderedDict[int, Turn] = OrderedDict()
        self._index: dict[bytes, tuple[int, ...]] = {}
        self._last: dict[bytes, int] = {}
        self._next = 0
        self._lock = threading.Lock()
        self.evicted = 0

    def __len__(self) -> int:
        """Turns held."""
        return len(self._turns)

    def record(self, turn: Turn) -> Turn:
        """Remember `turn` under the next serial number and return it numbered."""
        with self._lock:
            numbered = replace(turn, number=self._next)
            self._next += 1
            self._turns[numbered.number] = numbered
            for key in keys_of(numbered):
                self._index[key] = (*self._index.get(key, ())[1 - _MAX_SAME_KEY :], numbered.number)
            if numbered.conversation:
                self._last[numbered.conversation] = numbered.number
            while len(self._turns) > self._max:
                self._forget()
            return numbered

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Serial numbers of the turns that hold `key`, oldest first; at most 16."""
        with self._lock:
            return self._index.get(key, ())

    def get(self, number: int) -> Turn | None:
        """The turn of that serial number, marked as used; None if forgotten."""
        with self._lock:
            turn = self._turns.get(number)
            if turn is not None:
                self._turns.move_to_end(number)
            return turn

    def last(self, conversation: bytes) -> int:
        """Serial number of the newest turn recorded under that conversation key, or -1."""
        with self._lock:
            return self._last.get(conversation, -1)

    def _forget(self) -> None:
        number, turn = self._turns.popitem(last=False)
        self.evicted += 1
        for key in keys_of(turn):
            left = tuple(n for n in self._index.get(key, ()) if n != number)
            if left:
                self._index[key] = left
            else:
                self._index.pop(key, None)
        if self._last.get(turn.conversation) == number:
            del self._last[turn.conversation]


def keys_of(turn: Turn) -> Iterator[bytes]:
    """Every digest a later request may show of `turn`, each once."""
    seen: set[bytes] = {b""}
    for key in _all_keys(turn):
        if key not in seen:
            seen.add(key)
            yield key


def _all_keys(turn: Turn) -> Iterator[bytes]:
    for block in turn.blocks:
        for value in block.values:
            if value.role is Role.SEAL and value.state in (State.PRESENT, State.CUT):
                yield value.canon
        yield from block.anchors
        yield block.payload
    yield turn.joined
    yield turn.response_key
    yield turn.thread
    yield turn.chain
