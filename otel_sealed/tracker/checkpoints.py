"""The prefixes of a judged request that are kept for those that follow it (`prefix`).

One is kept after each message where it is closed and final, up to the first row that more than one
turn, or the newest, bears on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from otel_sealed.align import Outcome
from otel_sealed.align.prefix import first_break
from otel_sealed.align.scene import StandIns, same_artifact
from otel_sealed.align.surroundings import exempt, sealed_homes
from otel_sealed.model import (
    Check,
    Fate,
    Finding,
    Kind,
    Role,
    Speaker,
    State,
    Trait,
    Turn,
    Verdict,
)
from otel_sealed.model.record import replace
from otel_sealed.steps import spend
from otel_sealed.tracker.judging import Asked, Judged
from otel_sealed.tracker.position import Position
from otel_sealed.tracker.prefix import Bound, Prefix, Row, rolled
from otel_sealed.wire.search import Wanted

PREFIX_BYTES = 480
MESSAGE_BYTES = 130
ROW_BYTES = 850
"""Measured (`benchmarks/conversations.py`): a prefix, a message in it, a row that is not well."""
MAX_ROWS = 512
"""Rows kept of one conversation; with more of them every request is read as a whole."""

_MOVING = frozenset(
    {Fate.STALE, Fate.SERVER_HELD, Fate.DUPLICATED, Fate.PREFIX_CHANGED, Fate.ISSUER_CHANGED}
)
"""Of more than one turn, or of the request itself."""
_HANGS_ON_THE_HEAD = frozenset({Trait.ADAPTIVE, Trait.BINDING, Trait.BARE_TURN})
"""Whether thinking of the turn under way may be gone hangs on all before it, the head too (A13)."""

Pair = tuple[Finding, Outcome]


def checkpoints(asked: Asked, judged: Judged) -> list[Prefix]:
    """What to keep after the prefix that a request was judged from, shortest first."""
    tips: dict[int, int] = {}
    for (at, _), number in judged.lineage.owner.items():
        tips[at] = max(tips.get(at, -1), number)
    pairs = _by_message(judged, tips)
    ends = _ends(asked, judged, pairs)
    _, bound = sealed_homes(judged.outcomes, asked.tools.seals)
    broken, path = _broken(asked, judged, bound)
    bound_at: dict[int, list[Turn]] = {}
    for turn in judged.lineage.turns:
        if turn.chain and turn.number in bound:
            bound_at.setdefault(bound[turn.number], []).append(turn)
    stand_ins: dict[int, StandIns] = {}
    state, found = replace(judged.prefix, rows=()), []
    for at, end in enumerate(ends):
        spend()
        rows = _rows(pairs.get(at, ()), judged.position, stand_ins)
        if rows is None or state.kept + len(rows) > MAX_ROWS:
            break
        here = state.messages
        new = [
            Bound(t.number, here, t.head, path if t.number == broken else "")
            for t in bound_at.get(at, ())
        ]
        state = _grown(asked, judged, state, at, pairs.get(at, ()), rows)
        tip = max(state.tip, tips.get(at, -1))
        state = replace(state, tip=tip, bound=_bound(state.bound, new))
        if end <= at and state.tip >= 0 and state.final:
            state = replace(state, size=state.size + PREFIX_BYTES)
            found.append(state)
            state = replace(state, rows=())
    return found


def _grown(
    asked: Asked,
    judged: Judged,
    before: Prefix,
    at: int,
    pairs: Sequence[Pair],
    rows: Sequence[Row],
) -> Prefix:
    """`before` and message `at` after it, whose rows that are not well are `rows`."""
    message, position = asked.sent.messages[at], judged.position
    offset = before.messages - at
    well_ = [finding for finding, _ in pairs if well(finding)]
    sealed = [o.turn.number for _, o in pairs if o.turn is not None and o.sent_back]
    others = [o for finding, o in pairs if not well(finding)]
    places = [o.at if o.end is None else o.end for o in others]
    live = [p + offset for p in places if p is not None and p >= position.live_from]
    ended = [p + offset for p in places if p is not None and p < position.live_from]
    later = [o.turn.number for o in others if o.turn and position.first < o.turn.number]
    # results with words after them begin a turn of the user once the model has answered them
    spoke = message.speaker is Speaker.USER or (
        message.speaker is Speaker.TOOL
        and any(block.kind is not Kind.RESULT for block in message.blocks)
    )
    return replace(
        before,
        messages=before.messages + 1,
        chain=judged.chains[at + 1],
        told=judged.told[at + 1],
        first_sealed=min((before.first_sealed, *sealed)),
        last_sealed=max((before.last_sealed, *sealed)),
        live_from=before.messages + 1 if spoke else before.live_from,
        checks=counted(before.checks, well_),
        rolling=rolled(before.rolling, well_, asked.core.digest),
        sealed=before.sealed + sum(f.artifact in asked.tools.seals for f in well_),
        rows=(*before.rows, *rows),
        kept=before.kept + len(rows),
        live=min((before.live, *live)),
        ended=max((before.ended, *ended)),
        later=max((before.later, *later)),
        size=before.size + MESSAGE_BYTES + ROW_BYTES * len(rows),
    )


def _rows(
    pairs: Iterable[Pair], position: Position, stand_ins: dict[int, StandIns]
) -> list[Row] | None:
    """The rows of a message that are not well; None where one may change with another turn."""
    found = []
    for finding, outcome in pairs:
        if not well(finding):
            row = _row(finding, outcome, position, stand_ins)
            if row is None:
                return None
            found.append(row)
    return found


def _row(
    finding: Finding, outcome: Outcome, position: Position, stand_ins: dict[int, StandIns]
) -> Row | None:
    turn, block = outcome.turn, outcome.block
    if finding.fate in _MOVING or (turn is not None and turn.number == position.tip):
        return None
    at = outcome.at if outcome.end is None else outcome.end
    live = at is not None and at >= position.live_from
    if live and _HANGS_ON_THE_HEAD <= finding.traits:
        return None
    if turn is None:
        sent = same_artifact(outcome.sent, finding.artifact) if outcome.sent else None
        return None if sent is None else Row(finding, canon=sent.canon)
    came = same_artifact(block, finding.artifact) if block is not None else None
    sealed = came is not None and came.role is Role.SEAL and came.state is State.PRESENT
    elsewhere = finding.digest_out or finding.fate is Fate.SUPERSEDED
    if came is None or block is None or not sealed or elsewhere:
        return Row(finding)
    known = stand_ins.get(turn.number)
    if known is None:
        known = stand_ins[turn.number] = StandIns(turn)
    return Row(finding, lost=Wanted(came.canon, came.size), shadows=known.of(block))


def _ends(asked: Asked, judged: Judged, pairs: Mapping[int, Sequence[Pair]]) -> list[int]:
    """For each message, the last one that a turn in it, or in one before it, goes on to.

    A turn is where its blocks are, and its rows, and the results of its calls. A compaction goes on
    from the beginning to where it is, if rows of the request are what they are by it.
    """
    messages, owner = asked.sent.messages, judged.lineage.owner
    ends = list(range(len(messages)))
    begins: dict[int, int] = {}
    of = {a: t.number for t in judged.lineage.turns for block in t.blocks for a in block.anchors}

    def goes_on(number: int, at: int) -> None:
        first = begins.setdefault(number, at)
        ends[min(first, at)] = max(ends[min(first, at)], first, at)

    for at, message in enumerate(messages):
        spend(1 + len(message.blocks))
        for finding, outcome in pairs.get(at, ()):
            if outcome.turn is not None:
                goes_on(outcome.turn.number, at)
                if not well(finding):
                    goes_on(outcome.turn.number, _place(asked, judged, finding.returned, at))
        for index, block in enumerate(message.blocks):
            for number in {owner.get((at, index), -1), *(of.get(a, -1) for a in block.anchors)}:
                if number >= 0:
                    goes_on(number, at)
            if block.kind is Kind.COMPACTION and judged.position.compacted:
                ends[0] = at
    return list(accumulate(ends, max))


def _broken(asked: Asked, judged: Judged, bound: Mapping[int, int]) -> tuple[int, str]:
    """The first turn before which another message is, and the path of that; (-1, "") if none.

    A request has one such row, and where that is of the head now it may not be the next time. A
    suffix has none (`follows`).
    """
    changed = any(finding.fate is Fate.PREFIX_CHANGED for finding in judged.findings)
    if judged.prefix.messages or not changed:
        return -1, ""
    root, free = asked.tools.dialect.root, exempt(judged.outcomes, bound)
    found = first_break(judged.lineage.turns, bound, None, asked.sent.messages, free, root)
    return (found.turn.number, found.detail) if found is not None else (-1, "")


def _place(asked: Asked, judged: Judged, path: str | None, otherwise: int) -> int:
    """Index, among the messages read, of the one a path leads into."""
    root, _, inside = (path or "").partition(".")
    index = inside.partition(".")[0]
    if root != asked.tools.dialect.root or not index.isdecimal():
        return otherwise
    return int(index) - judged.prefix.messages


def _bound(before: tuple[Bound, ...], new: Iterable[Bound]) -> tuple[Bound, ...]:
    """With those of `new` that may have the first change (`Prefix.bound`)."""
    for one in new:
        if one.path or (not before[1:] and all(one.head != known.head for known in before)):
            before = (*before, one)
    return before


def _by_message(judged: Judged, tips: Mapping[int, int]) -> dict[int, list[Pair]]:
    """Rows by the message they are in.

    Those of a turn that is gone as a whole are with the next turn after it that is there: `tips`,
    message to turn. The one of the prefix is made anew with each request.
    """
    newest: list[int] = []
    places: list[int] = []
    for place, tip in sorted(tips.items()):
        if not newest or tip > newest[-1]:
            newest.append(tip)
            places.append(place)
    rows: dict[int, list[Pair]] = {}
    for finding, outcome in zip(judged.findings, judged.outcomes, strict=True):
        if finding.fate is Fate.PREFIX_CHANGED:
            continue
        at, turn = outcome.at, outcome.turn
        if at is None and turn is not None:
            after = bisect_right(newest, turn.number)
            at = places[after] if after < len(places) else None
        if at is not None:
            rows.setdefault(at, []).append((finding, outcome))
    return rows


def well(finding: Finding) -> bool:
    """Whether a row need not be shown again and stays what it is whatever follows."""
    return finding.fate is Fate.INTACT and finding.verdict is Verdict.OK


def counted(before: tuple[Check, ...], findings: Iterable[Finding]) -> tuple[Check, ...]:
    """`before` with the rows of `findings` counted in."""
    found = {(c.artifact, c.fate, c.verdict, c.rule): c.count for c in before}
    for f in findings:
        key = (f.artifact, f.fate, f.verdict, f.rule)
        found[key] = found.get(key, 0) + 1
    return tuple([Check(*key, count) for key, count in found.items()])
