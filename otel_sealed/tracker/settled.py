"""What of a conversation is settled: judged, all well, and not to be read again.

The place of this in the whole: docs/architecture.md#how-a-request-becomes-a-verdict.

Theory of operation. A request repeats the whole history and adds a little. When a request was
judged, the state behind each message is kept as a `Stand`, up to the first row that may still
change: the rolling digests, the newest turn, the counts of the rows that are well, and those that
are not (`lasting`). A later request that begins with the very same bytes resumes from the newest
such stand, and only what follows is read, located and judged; the rows before it are reported as
counts, or as they were. A fork resumes from the stand it shares, and so does a request in which
only a cache marker moved.

A stand is left, and the whole request judged anew, as soon as anything behind it could bear on what
is settled: other facts (model, thinking), a seal or id of an older turn, a compaction, a reference
to the server's state, a message that is not what it was. Another head (system, tools) is a row of
its own, which the first turns of different heads tell. So the verdicts are those of a reading of
everything; a test holds the two against each other.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from operator import attrgetter
from typing import NamedTuple

from otel_sealed.digest import Digest
from otel_sealed.ledger.protocol import Found
from otel_sealed.model import (
    Check,
    Facts,
    Finding,
    Head,
    Kind,
    Lineage,
    Message,
    Role,
    Speaker,
    State,
    Turn,
)
from otel_sealed.model.quick import quick
from otel_sealed.tracker.lasting import NOTHING, Lasting, Needs
from otel_sealed.wire.checkpoint import History, Known, Rest

MAX_STANDS = 8_192
MAX_BYTES = 128 * 2**20
"""What the stands of a process may hold: 10,000 conversations of 15 messages at once. What finds no
room is read as a whole with each request, some milliseconds a call."""
LINE_BYTES = 1_000
STAND_BYTES = 640
ROW_BYTES = 850
"""Measured (`benchmarks/conversations.py`): a line besides its stands, a stand with its segment,
and a row that is not well."""
ALIKE = 4
"""Lines of one place, each compared with a request at a microsecond or less."""


@quick
@dataclass(frozen=True, slots=True)
class Told:
    """What the model was told, up to some point: a rolling digest and how many messages."""

    digest: bytes = b""
    count: int = 0


class Headed(NamedTuple):
    """A turn with a seal in the request: its head, its number, the index of its message."""

    head: Head
    number: int
    at: int


class Broken(NamedTuple):
    """The first turn with a seal before which another message stands, and the path of that."""

    number: int
    at: int
    path: str


@quick
@dataclass(frozen=True, slots=True)
class Stand:
    """The state behind one message of a request that was judged up to there, for good.

    `checks` counts the settled rows that
    are well; `rolling` is a keyed digest over all of them; `first_sealed` and `last_sealed` are the
    oldest and the newest turn with a seal; `live_from` is the index of the first message of the
    turn under way. `heads` has the first turn, and the first with another head than that one's;
    `broken` the first whose messages are not what they were. `lasting` are the rows of this message
    that are not well, `lasted` how many there are up to here, `needs` what they need. `steady`:
    whether a reading may begin behind it, not amid what a row that is not well is about. `size`:
    the bytes of the stands up to here.
    """

    around: int
    facts: Facts
    head: Head
    hint: bytes
    messages: int
    chain: bytes
    told: Told
    tip: int
    first_sealed: int
    checks: tuple[Check, ...]
    rolling: bytes
    sealed: int
    last_sealed: int = -1
    live_from: int = 0
    heads: tuple[Headed, ...] = ()
    broken: Broken | None = None
    lasting: tuple[Lasting, ...] = ()
    lasted: int = 0
    needs: Needs = NOTHING
    steady: bool = True
    size: int = 0


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
    """Stands of the conversations of a process. One lock; bounded by the bytes they hold.

    A request is compared with a few lines, however many there are: those of its places. A line is
    in one place, the first on its way from mark to mark with fewer than `ALIKE` lines.

    Where there is no room for all, the line goes that was not used for longer, of any two. The
    oldest of all would be the very one that comes next where conversations take turns, and none
    would be resumed; so half are where a fifth has no room, and what is used often stays.
    """

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
            return  # no answer is settled: nothing begins behind it
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
        """Of two lines, half of all lines apart, the one that was not used for longer."""
        self._seed = (self._seed * 1_103_515_245 + 12_345) % 2**31  # as C's `rand` does
        lines = len(self._order)
        at = (self._seed >> 16) % lines  # its low bits repeat soon
        pair = self._order[at], self._order[(at + lines // 2) % lines]
        return min(pair, key=attrgetter("used"))


def _begins(line: LineKey, stands: Sequence[Stand]) -> bool:
    """Whether `stands` are of the same conversation, not of one that only begins alike."""
    return line.length <= len(stands) and stands[line.length - 1].chain == line.chain


class Above:
    """A ledger seen from a stand: only what is newer than its tip."""

    def __init__(self, ledger: Found, floor: int) -> None:
        """`floor`: serial number of the stand's newest turn."""
        self._ledger = ledger
        self._floor = floor

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Serial numbers above the floor of the turns that hold `key`."""
        return tuple(n for n in self._ledger.lookup(key) if n > self._floor)

    def get(self, number: int) -> Turn | None:
        """The turn of a number above the floor."""
        return self._ledger.get(number) if number > self._floor else None

    def last(self, conversation: bytes) -> int:
        """Never: a request is not placed by its conversation alone from a stand."""
        del conversation
        return -1


def before_tip(stands: tuple[Stand, ...]) -> tuple[Stand, ...]:
    """The stands from before the newest settled turn came in."""
    kept = len(stands)
    while kept and stands[kept - 1].tip == stands[-1].tip:
        kept -= 1
    return steadied(stands[:kept])


def steadied(stands: tuple[Stand, ...]) -> tuple[Stand, ...]:
    """The stands up to the last one a reading may begin behind."""
    kept = len(stands)
    while kept and not stands[kept - 1].steady:
        kept -= 1
    return stands[:kept]


def told_before(messages: Sequence[Message], start: Told, digest: Digest) -> list[Told]:
    """What was told before each of `messages`, and before the end."""
    told = [start]
    for message in messages:
        before = told[-1]
        if message.speaker is Speaker.MODEL:
            told.append(before)
        else:
            told.append(Told(digest.chain(before.digest, message.digest), before.count + 1))
    return told


def independent(messages: Iterable[Message], ledger: Found, floor: int) -> bool:
    """Whether nothing in `messages` bears on turns at or below the floor."""
    for message in messages:
        for block in message.blocks:
            if block.kind is Kind.COMPACTION:
                return False
            seals = (
                v.canon for v in block.values if v.role is Role.SEAL and v.state is State.PRESENT
            )
            for key in (*seals, *block.anchors, *block.hidden):
                if any(number <= floor for number in ledger.lookup(key)):
                    return False
    return True


def displaced(lineage: Lineage) -> int:
    """The oldest turn that stands, or stands again, behind a newer one; `sys.maxsize` if none."""
    newest, found = -1, sys.maxsize
    for _, number in sorted(lineage.owner.items()):
        found = min(found, number) if number < newest else found
        newest = max(newest, number)
    return found


def continues(lineage: Lineage, told: Sequence[Told], floor: int) -> bool:
    """Whether the turns found continue the stand, each answering what still stands before it.

    Where no turn was found there is none to hold what follows against.
    """
    if not lineage.turns or displaced(lineage) < sys.maxsize:
        return False
    homes: dict[int, int] = {}
    for (at, _), number in sorted(lineage.owner.items()):
        homes.setdefault(number, at)
    parent = floor
    for turn in lineage.turns:
        home = homes.get(turn.number)
        compacts = any(block.kind is Kind.COMPACTION for block in turn.blocks)
        if turn.parent != parent or home is None or compacts:
            return False
        if not turn.told or turn.told != told[home].digest:
            return False
        parent = turn.number
    return True


def rolled(before: bytes, findings: Iterable[Finding], digest: Digest) -> bytes:
    """The rolling digest over rows: artifact and what went out for it."""
    for finding in findings:
        row = finding.artifact.encode() + b"=" + (finding.digest_out or finding.digest_in)
        before = digest.chain(before, row)
    return before
