"""A judged prefix: what is kept of how a request begins, for those that begin with the same bytes.

Model. A request repeats its history and adds a little. Its messages are a prefix that was judged
before and a suffix; where nothing was judged before, the prefix is empty (`Prefix(chain)`). The
suffix is read, located and aligned alone. Of the prefix its rows are what they were: those that are
well as counts and one rolling digest, the others as they are (`Row`). What a suffix needs to go on
from there are a few numbers: the rolling digests, the newest turn, the first and last turn with a
seal, where the turn under way began, the first change before a seal.

Invariants (tests/core/test_settled.py, tests/laws/test_l5_suffix.py: the cache equals the whole):
- *Closed.* A prefix ends where no turn of it goes on: all blocks and places of each turn, and the
  results of its calls, are on one side (`checkpoints`). So a suffix of the same conversation holds
  no key of it, unless a host moved one.
- *Final.* Each row of it is what it is by the prefix alone: its turn is not the newest, the seals
  before and after it are in the prefix, and so is the word of the user that ended its turn. Only
  rows of a turn that is still under way ask the suffix: has the user spoken since (`live`)?
- *Untouched.* By law L5 no row changes with a suffix that holds no key of the prefix, and that goes
  on where it ends. `touches` and `follows` ask just that of each suffix, and whoever answers
  otherwise is read as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from otel_sealed.digest import Digest
from otel_sealed.ledger.protocol import Found
from otel_sealed.model import (
    Block,
    Check,
    Finding,
    Head,
    Kind,
    Lineage,
    Message,
    Role,
    Shadow,
    Speaker,
    State,
    Turn,
)
from otel_sealed.model.record import record
from otel_sealed.steps import spend
from otel_sealed.wire.search import Search, Wanted


@record(frozen=True, slots=True)
class Told:
    """What the model was told, up to some point: a rolling digest and how many messages."""

    digest: bytes = b""
    count: int = 0


class Bound(NamedTuple):
    """A turn with a seal in the request: its number, the index of its message, its head.

    `path`: that of the first message before it that is not what it was.
    """

    number: int
    at: int
    head: Head
    path: str = ""


class Row(NamedTuple):
    """A row that is not well, as it was judged, before the provider's own answer is laid beside it.

    The keys of it that are no key of a turn in the request: `canon`, of a seal nobody saw coming;
    `lost`, the seal that is in no slot; `shadows`, its readable stand-ins.
    """

    finding: Finding
    canon: bytes = b""
    lost: Wanted | None = None
    shadows: tuple[Shadow, ...] = ()


@record(frozen=True, slots=True)
class Prefix:
    """The first `messages` messages of a request, judged. `chain` is their rolling digest.

    `tip`: the newest turn in it; `first_sealed` and `last_sealed`: the oldest and the newest one
    with a seal; `live_from`: index of the first message of the turn under way. `bound` has the
    first turn with a seal, the first with another head than that one's, and the first before which
    a message is not what it was: whatever the head is now, one of them has the first change.

    `checks` counts the rows that are well, `rolling` is a keyed digest over them, `sealed` how many
    are of seals. `rows` are those that are not well since the prefix kept before this one, `kept`
    how many there are up to here. Of these, `live` is the first message of one that is of the turn
    under way, `ended` the last of one that is not, and `later` the newest turn with one that has a
    seal before it. `size`: the bytes held up to here.
    """

    chain: bytes
    messages: int = 0
    told: Told = Told()
    tip: int = -1
    first_sealed: int = sys.maxsize
    last_sealed: int = -1
    live_from: int = 0
    bound: tuple[Bound, ...] = ()
    checks: tuple[Check, ...] = ()
    rolling: bytes = b""
    sealed: int = 0
    rows: tuple[Row, ...] = ()
    kept: int = 0
    live: int = sys.maxsize
    ended: int = -1
    later: int = -1
    size: int = 0

    @property
    def final(self) -> bool:
        """Whether no suffix can change a row, but for a word of the user in the turn under way."""
        return (self.later < 0 or self.later < self.last_sealed) and self.ended < self.live_from


class Above:
    """A ledger seen from the end of a prefix: only what is newer than its tip."""

    def __init__(self, ledger: Found, floor: int) -> None:
        """`floor`: serial number of the newest turn of the prefix."""
        self._ledger = ledger
        self._floor = floor

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Serial numbers above the floor of the turns that hold `key`."""
        return tuple(n for n in self._ledger.lookup(key) if n > self._floor)

    def get(self, number: int) -> Turn | None:
        """The turn of a number above the floor."""
        return self._ledger.get(number) if number > self._floor else None

    def last(self, conversation: bytes) -> int:
        """Never: a suffix is not placed by its conversation alone."""
        del conversation
        return -1


def touches(
    messages: Iterable[Message], search: Search, ledger: Found, tip: int, rows: Sequence[Row]
) -> bool:
    """Whether a suffix holds a key of the prefix that ends in `tip`, or a turn recorded since does.

    The keys are those of each turn up to `tip`, and those of `rows`, which may turn up anywhere.
    """
    blocks = [block for message in messages for block in message.blocks]
    if any(block.kind is Kind.COMPACTION for block in blocks):
        return True
    if any(n <= tip for block in blocks for key in _keys(block) for n in ledger.lookup(key)):
        return True
    if any(row.canon and ledger.lookup(row.canon) for row in rows):
        return True
    lost = tuple(row.lost for row in rows if row.lost is not None)
    if lost and search.find(lost):
        return True
    groups = {id(row.shadows): row.shadows for row in rows if row.shadows}
    shadows = [shadow for group in groups.values() for shadow in group]
    spend(len(rows) + len(shadows))
    return bool(shadows) and search.readable(shadows) is not None


def _keys(block: Block) -> Iterator[bytes]:
    for value in block.values:
        if value.role is Role.SEAL and value.state is State.PRESENT:
            yield value.canon
    yield from block.anchors
    yield from block.hidden


def follows(lineage: Lineage, told: Sequence[Told], tip: int) -> bool:
    """Whether the turns of a suffix go on from `tip`, each after what it answered.

    At least one does: which turn is the newest is no matter of the prefix.
    """
    homes: dict[int, int] = {}
    newest = tip
    for (at, _), number in sorted(lineage.owner.items()):
        homes.setdefault(number, at)
        if number < newest:
            return False
        newest = number
    for turn in lineage.turns:
        home = homes.get(turn.number)
        compacts = any(block.kind is Kind.COMPACTION for block in turn.blocks)
        if turn.parent != tip or home is None or compacts:
            return False
        if not turn.told or turn.told != told[home].digest:
            return False
        tip = turn.number
    return bool(lineage.turns)


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


def rolled(before: bytes, findings: Iterable[Finding], digest: Digest) -> bytes:
    """The rolling digest over rows: artifact and what went out for it."""
    for finding in findings:
        row = finding.artifact.encode() + b"=" + (finding.digest_out or finding.digest_in)
        before = digest.chain(before, row)
    return before
