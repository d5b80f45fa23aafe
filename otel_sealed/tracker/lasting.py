"""Rows that are not well and stay what they are, whatever a later request adds behind them.

Theory of operation. Most hosts lose something in every turn, and its row goes out with every later
request, the same each time. It is *lasting* once nothing behind it can bear on it: its turn is not
the newest, and whether seals stand before and behind it is decided. Then it is kept with its stand
(`settled`) and told again as it is. Three things can still change it, and are asked for each time:
a seal that nobody saw coming may have been recorded since; a lost seal, or its readable stand-in,
may turn up in what follows; and a row of the loop under way is another when the user speaks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from otel_sealed.align import Outcome
from otel_sealed.align.scene import same_artifact
from otel_sealed.align.seal import stand_ins
from otel_sealed.ledger.locate import Found
from otel_sealed.model import Fate, Finding, Role, Shadow, State
from otel_sealed.model.quick import quick
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


@quick
@dataclass(frozen=True, slots=True)
class Lasting:
    """A row as it was judged, before the provider's own answer is laid beside it.

    `in_loop`: it is one of the turn under way; `canon`: digest of a seal nobody saw coming; `lost`:
    the seal that is in no slot, `shadows` its readable stand-ins.
    """

    finding: Finding
    in_loop: bool = False
    canon: bytes = b""
    lost: Wanted | None = None
    shadows: tuple[Shadow, ...] = ()


def lasting(finding: Finding, outcome: Outcome, position: Position) -> Lasting | None:
    """The row as one that stays, None where something behind it may change it."""
    turn, block = outcome.turn, outcome.block
    if finding.fate in _MOVING:
        return None
    in_loop = outcome.at is not None and outcome.at >= position.live_from
    if turn is None:
        sent = same_artifact(outcome.sent, finding.artifact) if outcome.sent else None
        return None if sent is None else Lasting(finding, in_loop, canon=sent.canon)
    if not position.decided(turn.number):
        return None
    came = same_artifact(block, finding.artifact) if block is not None else None
    sealed = came is not None and came.role is Role.SEAL and came.state is State.PRESENT
    if came is None or block is None or not sealed or finding.digest_out:
        return Lasting(finding, in_loop)
    if finding.fate is Fate.SUPERSEDED:  # wherever else it stands
        return Lasting(finding, in_loop)
    wanted = Wanted(came.canon, came.size)
    return Lasting(finding, in_loop, lost=wanted, shadows=stand_ins(turn, block))


def disturbed(rows: Sequence[Lasting], search: Search, ledger: Found) -> bool:
    """Whether what follows, or what was recorded since, bears on one of `rows`."""
    if any(row.canon and ledger.lookup(row.canon) for row in rows):
        return True
    lost = tuple(row.lost for row in rows if row.lost is not None)
    if lost and search.find(lost):
        return True
    shadows = tuple(shadow for row in rows for shadow in row.shadows)
    return bool(shadows) and search.readable(shadows, frozenset()) is not None
