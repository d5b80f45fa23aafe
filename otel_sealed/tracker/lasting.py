"""Rows that are not well and stay what they are, whatever a later request adds behind them.

Theory of operation. Most hosts lose something in every turn, and its row goes out with every later
request, the same each time. It is *lasting* when its turn is not the newest, and whether seals
stand before and behind it is decided. Then it is kept with its stand (`settled`) and told again as
it is. What can still change it is asked for each time. A seal that nobody saw coming may have been
recorded since. A lost seal, or its readable stand-in, may turn up in what follows. And what follows
must be as it was when the row was judged, which in a fork it may not be (`Needs`): the user has
spoken behind it or has not, and a later seal is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from otel_sealed.align import Outcome
from otel_sealed.align.scene import StandIns, same_artifact
from otel_sealed.ledger.protocol import Found
from otel_sealed.model import Fate, Finding, Role, Shadow, State, Trait, Turn
from otel_sealed.model.record import record
from otel_sealed.steps import spend
from otel_sealed.tracker.position import Position
from otel_sealed.wire.search import Search, Wanted

MAX_LASTING = 512
"""Rows kept of one conversation; behind more of them every request is read as a whole."""

# told from more than one turn, or of the request itself
_MOVING = frozenset(
    {
        Fate.STALE,
        Fate.SERVER_HELD,
        Fate.DUPLICATED,
        Fate.PREFIX_CHANGED,
        Fate.ISSUER_CHANGED,
    }
)


class Needs(NamedTuple):
    """What must be so in a request for rows to be what they were.

    `silence`: nobody has spoken since, they are of the turn under way; `word`: the user speaks in
    or behind the message of this index; `seal`: one of a later turn than this number is sent.
    """

    silence: bool = False
    word: int = -1
    seal: int = -1

    def joined(self, others: Iterable[Needs]) -> Needs:
        """What these rows and others need."""
        silence, word, seal = self
        for other in others:
            silence = silence or other.silence
            word, seal = max(word, other.word), max(seal, other.seal)
        return Needs(silence, word, seal)

    def met(self, live_from: int, last: int, *, spoken: bool) -> bool:
        """Whether all of it is so.

        `live_from`: the first message of the turn under way; `last`: the newest turn with a seal in
        the request; `spoken`: the user did, in what follows.
        """
        sealed = self.seal < 0 or self.seal < last
        return sealed and self.word < live_from and not (self.silence and spoken)


NOTHING = Needs()
_HANGS_ON_THE_PREFIX = frozenset({Trait.ADAPTIVE, Trait.BINDING, Trait.BARE_TURN})


@record(frozen=True, slots=True)
class Lasting:
    """A row as it was judged, before the provider's own answer is laid beside it.

    `canon`: digest of a seal nobody saw coming; `lost`: the seal that is in no slot, `shadows` its
    readable stand-ins.
    """

    finding: Finding
    needs: Needs = NOTHING
    canon: bytes = b""
    lost: Wanted | None = None
    shadows: tuple[Shadow, ...] = ()


class AllStandIns:
    """The readable stand-ins of several turns; each is gone through once."""

    def __init__(self) -> None:
        """Of no turn yet."""
        self._turns: dict[int, StandIns] = {}

    def of(self, turn: Turn) -> StandIns:
        """Those of one turn."""
        found = self._turns.get(turn.number)
        if found is None:
            found = self._turns[turn.number] = StandIns(turn)
        return found


def lasting(
    finding: Finding, outcome: Outcome, position: Position, offset: int, known: AllStandIns
) -> Lasting | None:
    """The row as one that stays, None where something behind it may change it.

    `offset`: how many messages stand before those that were read.
    """
    turn, block = outcome.turn, outcome.block
    at = outcome.at if outcome.end is None else outcome.end
    if finding.fate in _MOVING or (turn is not None and not position.decided(turn.number)):
        return None
    silence = at is not None and at >= position.live_from
    if silence and _HANGS_ON_THE_PREFIX <= finding.traits:
        return None  # whether it may be gone hangs on what is said before it (A13)
    word = -1 if at is None or silence else at + offset
    if turn is None:
        sent = same_artifact(outcome.sent, finding.artifact) if outcome.sent else None
        return None if sent is None else Lasting(finding, Needs(silence, word), canon=sent.canon)
    needs = Needs(silence, word, turn.number if position.first < turn.number else -1)
    came = same_artifact(block, finding.artifact) if block is not None else None
    sealed = came is not None and came.role is Role.SEAL and came.state is State.PRESENT
    elsewhere = finding.digest_out or finding.fate is Fate.SUPERSEDED
    if came is None or block is None or not sealed or elsewhere:
        return Lasting(finding, needs)
    wanted = Wanted(came.canon, came.size)
    return Lasting(finding, needs, lost=wanted, shadows=known.of(turn).of(block))


def disturbed(rows: Sequence[Lasting], search: Search, ledger: Found) -> bool:
    """Whether what follows, or what was recorded since, bears on one of `rows`."""
    if any(row.canon and ledger.lookup(row.canon) for row in rows):
        return True
    lost = tuple(row.lost for row in rows if row.lost is not None)
    if lost and search.find(lost):
        return True
    groups = {id(row.shadows): row.shadows for row in rows if row.shadows}
    shadows = [shadow for group in groups.values() for shadow in group]
    spend(len(rows) + len(shadows))
    return bool(shadows) and search.readable(shadows) is not None
