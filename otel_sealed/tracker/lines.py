"""Where the stands of conversations are kept: found by how a request begins, bounded by bytes.

The stands of one conversation are a line. A request is compared with a few lines, however many
there are: with those of its places. A line is in one place, the first on its way from mark to mark
(`wire.checkpoint`) with fewer than `ALIKE` lines; so conversations that begin alike are kept in
places further on, and those that differ early in the first.

Where not all lines fit, the one goes that was not used for longer, of any two. The oldest of all
would be the very one that comes next where conversations take turns, and none would be resumed; so
half are where a fifth does not fit, and what is used often stays.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from operator import attrgetter
from typing import NamedTuple

from otel_sealed.tracker.settled import Stand, steadied
from otel_sealed.wire.checkpoint import History, Known, Rest

MAX_BYTES = 128 * 2**20
"""What is kept of the conversations of a process: 10,000 of 15 messages at once. One that does not
fit is read as a whole with each request, some milliseconds a call."""
LINE_BYTES = 1_000
"""What a line takes without its stands, measured (`benchmarks/conversations.py`)."""
MAX_STANDS = 8_192
ALIKE = 4
"""Lines of one place, each compared with a request at a microsecond or less."""


class LineKey(NamedTuple):
    """A line of stands: its dialect, how it begins, the rolling digest at its end, its length."""

    dialect: str
    first: int
    chain: bytes
    length: int


class Resumed(NamedTuple):
    """A request that begins with settled bytes: the stands it shares, and what follows.

    `known`: the bytes the stands are about, one segment each; `line`: the line of stands it shares
    them with, as `Settled` knows it.
    """

    stands: tuple[Stand, ...]
    rest: Rest
    line: LineKey | None = None
    known: Known = Known()


class Place(NamedTuple):
    """Where a line is looked for: its dialect, and a hash of how it begins, up to mark `depth`."""

    dialect: str
    depth: int
    mark: int


@dataclass(slots=True)
class Line:
    """The stands of one conversation, and when they were used last."""

    key: LineKey
    place: Place
    stands: tuple[Stand, ...]
    known: Known
    used: int
    index: int = 0

    @property
    def size(self) -> int:
        """Bytes held, within a third (`benchmarks/conversations.py`)."""
        return LINE_BYTES + self.stands[-1].size


class Settled:
    """Stands of the conversations of a process. One lock; bounded by the bytes they hold."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        """`max_bytes`: what all lines may hold."""
        self._max = max_bytes
        self._held = 0
        self._lines: dict[LineKey, Line] = {}
        self._order: list[Line] = []
        self._places: dict[Place, dict[LineKey, Line]] = {}
        self._depths: dict[tuple[str, int], list[int]] = {}
        self._uses = count()
        self._seed = 1
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def held(self) -> int:
        """Bytes all lines hold, as they are counted."""
        return self._held

    def resume(self, dialect: str, history: History) -> Resumed:
        """The longest stand a history begins with and what follows it. Raises Unread."""
        with self._lock:
            lines = list(self._alike(dialect, history))
        best: tuple[Stand, ...] = ()
        begins, found = Known(), None
        for line in lines:
            agreed = history.agreed(line.known)
            if agreed > len(best):
                best, begins, found = line.stands[:agreed], line.known, line
            if agreed == len(line.stands):
                break
        if found is not None:
            found.used = next(self._uses)
        best = steadied(best)
        begins = begins.first(len(best))
        return Resumed(
            best, history.rest(begins.length), found.key if found is not None else None, begins
        )

    def _alike(self, dialect: str, history: History) -> Iterator[Line]:
        """The lines that may begin as the history does: those of the longest marks, newest first.

        `_depths`: how many lines have this first mark, and how deep they are at most.
        """
        _, deepest = self._depths.get((dialect, history.mark(0)), (0, -1))
        for depth in range(deepest, -1, -1):
            place = self._places.get(Place(dialect, depth, history.mark(depth)))
            if place is not None:
                yield from islice(reversed(place.values()), ALIKE)

    def keep(
        self, dialect: str, history: History, resumed: Resumed, stands: Sequence[Stand]
    ) -> None:
        """Remember `stands` behind those shared, in their line's place unless that is a fork."""
        line = resumed.line
        known = history.known(resumed.known, resumed.rest.segments[: len(stands)])
        stands = (*resumed.stands, *stands)[:MAX_STANDS]
        known = known.first(len(stands))
        key = LineKey(dialect, history.mark(0), stands[-1].chain, len(stands))
        if stands[-1].tip < 0:
            return  # without an answer in it no request resumes from it
        with self._lock:
            if line is not None and _begins(line, stands):
                self._forget(line)
            self._forget(key)
            self._add(Line(key, self._place(key, history, known), stands, known, next(self._uses)))
            while self._held > self._max:
                self._forget(self._older().key)

    def _place(self, key: LineKey, history: History, known: Known) -> Place:
        found = Place(key.dialect, 0, key.first)
        while len(self._places.get(found, ())) >= ALIKE:
            depth = found.depth + 1
            if history.reach(depth) > known.length:
                break
            found = Place(key.dialect, depth, history.mark(depth))
        return found

    def _add(self, line: Line) -> None:
        line.index = len(self._order)
        self._order.append(line)
        self._lines[line.key] = line
        self._held += line.size
        self._places.setdefault(line.place, {})[line.key] = line
        depths = self._depths.setdefault((line.key.dialect, line.key.first), [0, 0])
        depths[0] += 1
        depths[1] = max(depths[1], line.place.depth)

    def _forget(self, key: LineKey) -> None:
        line = self._lines.pop(key, None)
        if line is None:
            return
        self._held -= line.size
        last = self._order.pop()
        if last is not line:
            last.index = line.index
            self._order[last.index] = last
        place = self._places[line.place]
        del place[key]
        if not place:
            del self._places[line.place]
        depths = self._depths[(key.dialect, key.first)]
        depths[0] -= 1
        if not depths[0]:
            del self._depths[(key.dialect, key.first)]

    def _older(self) -> Line:
        """Of two lines, one from anywhere, the one that was not used for longer."""
        self._seed = (self._seed * 1_103_515_245 + 12_345) % 2**31  # as C's `rand` does
        lines = len(self._order)
        at = (self._seed >> 16) % lines  # its low bits repeat soon
        pair = self._order[at], self._order[(at + lines // 2) % lines]
        return min(pair, key=attrgetter("used"))


def _begins(line: LineKey, stands: Sequence[Stand]) -> bool:
    """Whether `stands` are of the same conversation, not of one that only begins alike."""
    return line.length <= len(stands) and stands[line.length - 1].chain == line.chain
