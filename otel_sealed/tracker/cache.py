"""The cache of judged prefixes: found by how a request begins, bounded by bytes.

The prefixes of one conversation are a line. A request is compared with a few lines, however many
there are: with those of its places. A line is in one place, the first on its way from mark to mark
(`wire.checkpoint`) with fewer than `ALIKE` lines; so conversations that begin alike are kept in
places further on, and those that differ early in the first.

Where not all lines fit, the one goes that was not used for longer, of any two. The oldest of all
would be the very one that comes next where conversations take turns, and none would be resumed; so
half are where a fifth does not fit, and what is used often stays.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from operator import attrgetter
from typing import NamedTuple

from otel_sealed.model import Facts, Head
from otel_sealed.tracker.prefix import Prefix
from otel_sealed.wire.checkpoint import History, Known, Segment

MAX_BYTES = 128 * 2**20
"""What is kept of the conversations of a process: 10,000 of 15 messages at once. One that does not
fit is read as a whole with each request, some milliseconds a call."""
LINE_BYTES = 1_000
"""What a line takes without its prefixes, measured (`benchmarks/conversations.py`)."""
MAX_PREFIXES = 8_192
"""Of one conversation: more than `matching.lines.MAX_LINE` turns."""
ALIKE = 4
"""Lines of one place, each compared with a request at a microsecond or less."""

_messages = attrgetter("messages")


class LineKey(NamedTuple):
    """A line: its dialect, how it begins, the rolling digest at its end, how many messages."""

    dialect: str
    first: int
    chain: bytes
    messages: int


class Given(NamedTuple):
    """What of a request bears on all its rows: facts, and the name its caller gave it.

    `around`: a hash of the bytes before and after its history, `head`: what was read from them.
    """

    facts: Facts
    hint: bytes
    around: int
    head: Head


class Shared(NamedTuple):
    """The judged prefixes that a request shares with a line, longest last.

    `known`: the bytes they are about, one segment a message; `given`: the request they were kept
    of; `line`: the line, as the cache knows it.
    """

    prefixes: tuple[Prefix, ...] = ()
    known: Known = Known()
    given: Given | None = None
    line: LineKey | None = None

    @property
    def messages(self) -> int:
        """How many messages the longest prefix has."""
        return self.prefixes[-1].messages if self.prefixes else 0

    def first(self, count: int) -> Shared:
        """The first `count` of the prefixes."""
        kept = self._replace(prefixes=self.prefixes[:count])
        return kept._replace(known=self.known.first(kept.messages))


class Place(NamedTuple):
    """Where a line is looked for: its dialect, and a hash of how it begins, up to mark `depth`."""

    dialect: str
    depth: int
    mark: int


@dataclass(slots=True)
class Line:
    """The prefixes of one conversation, and when they were used last."""

    key: LineKey
    place: Place
    prefixes: tuple[Prefix, ...]
    known: Known
    given: Given
    used: int
    index: int = 0

    @property
    def size(self) -> int:
        """Bytes held, within a third (`benchmarks/conversations.py`)."""
        return LINE_BYTES + self.prefixes[-1].size


class Cache:
    """Judged prefixes of the conversations of a process. One lock; bounded by their bytes."""

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

    def shared(self, dialect: str, history: History) -> Shared:
        """The longest prefixes that a history begins with."""
        with self._lock:
            lines = list(self._alike(dialect, history))
        found, count = None, 0
        for line in lines:
            agreed = history.agreed(line.known)
            if agreed > count:
                found, count = line, agreed
            if agreed == len(line.known.segments):
                break
        if found is None:
            return Shared()
        found.used = next(self._uses)
        shared = Shared(found.prefixes, found.known, found.given, found.key)
        return shared.first(bisect_right(found.prefixes, count, key=_messages))

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
        self,
        dialect: str,
        history: History,
        shared: Shared,
        segments: Sequence[Segment],
        chains: Sequence[bytes],
        prefixes: Sequence[Prefix],
        given: Given,
    ) -> None:
        """Remember `prefixes` next to those shared, in their line's place unless that is a fork.

        `segments`: what each message after those shared was read from; `chains`: the rolling digest
        before each of them, and at the end. It is no fork if all that the line is about is there,
        whatever bytes it was read from: a cache marker moves with each request.
        """
        prefixes = (*shared.prefixes, *prefixes)[:MAX_PREFIXES]
        last = prefixes[-1]
        known = history.known(shared.known, segments[: last.messages - shared.messages])
        key = LineKey(dialect, history.mark(0), last.chain, last.messages)
        with self._lock:
            line = shared.line
            longer = line is not None and line.messages <= last.messages
            if line and longer and chains[line.messages - shared.messages] == line.chain:
                self._forget(line)
            self._forget(key)
            place = self._place(key, history, known)
            self._add(Line(key, place, prefixes, known, given, next(self._uses)))
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
