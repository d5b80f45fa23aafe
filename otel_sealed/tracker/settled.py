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
from collections.abc import Iterable, Sequence
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
from otel_sealed.model.record import record
from otel_sealed.tracker.lasting import NOTHING, Lasting, Needs

STAND_BYTES = 640
ROW_BYTES = 850
"""Measured (`benchmarks/conversations.py`): a stand with its segment, a row that is not well."""


@record(frozen=True, slots=True)
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


@record(frozen=True, slots=True)
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
