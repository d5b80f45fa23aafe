"""Where the turns of a request are among those whose seals are in it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from otel_sealed.align import Outcome
from otel_sealed.model import Fate, Message, Speaker, Trait
from otel_sealed.model.record import record
from otel_sealed.tracker.prefix import Prefix, Row


@record(frozen=True, slots=True)
class Position:
    """The turns whose seals are in the request: oldest, newest; the tip; was anything compacted.

    `within`: by turn, the first and the last of its blocks whose seal is there. `live_from`: index,
    among the messages read, of the first one of the turn under way; negative where that began in
    the cached prefix. `loops`: of each message before that, the last block whose seal is in
    the loop it is of, as turn and index; a loop goes from one word of the user to the next.
    """

    first: int
    last: int
    tip: int
    compacted: bool
    live_from: int
    within: Mapping[int, tuple[int, int]]
    loops: Mapping[int, tuple[int, int]]

    def traits(self, number: int, index: int, at: int | None) -> set[Trait]:
        """Where a block of a turn is among them, `at` the message it is in or should be in."""
        found = set()
        first, last = self.within.get(number, (index, index))
        if at is not None and (number, index) < self.loops.get(at, (-1, -1)):
            found.add(Trait.GAP)
        elif self.first >= number and first >= index:
            found.add(Trait.FRONT)
        elif number < self.last or index < last:
            found.add(Trait.GAP)
        if number == self.tip:
            found.add(Trait.LAST_TURN)
        if self.compacted:
            found.add(Trait.AFTER_COMPACTION)
        return found


NOWHERE = Position(sys.maxsize, -1, -1, compacted=False, live_from=0, within={}, loops={})
"""Of no turn."""


def position_of(
    messages: Sequence[Message],
    outcomes: Sequence[Outcome],
    tip: int,
    live_from: int,
    prefix: Prefix,
    rows: Sequence[Row],
) -> Position:
    """That of the turns after a prefix; `rows` are its own, `live_from` that of `messages`."""
    within: dict[int, tuple[int, int]] = {}
    for o in outcomes:
        if o.turn is not None and o.sent_back:
            first, last = within.get(o.turn.number, (o.index, o.index))
            within[o.turn.number] = min(first, o.index), max(last, o.index)
    fates = {o.finding.fate for o in outcomes} | {row.finding.fate for row in rows}
    live_from = live_from or prefix.live_from - prefix.messages
    return Position(
        first=min((prefix.first_sealed, *within)),
        last=max((prefix.last_sealed, *within)),
        tip=tip,
        compacted=Fate.SUPERSEDED in fates,
        live_from=live_from,
        within=within,
        loops=_loops(messages[: max(live_from, 0)], outcomes),
    )


def _loops(messages: Sequence[Message], outcomes: Sequence[Outcome]) -> dict[int, tuple[int, int]]:
    """Message to the last block with its seal in the same loop, of those that are over."""
    word = 0
    loop_of = [word := word + (m.speaker is Speaker.USER) for m in messages]
    newest: dict[int, tuple[int, int]] = {}
    for o in outcomes:
        if o.turn is not None and o.sent_back and o.at is not None and o.at < len(loop_of):
            loop = loop_of[o.at]
            newest[loop] = max(newest.get(loop, (-1, -1)), (o.turn.number, o.index))
    return {at: newest[loop] for at, loop in enumerate(loop_of) if loop in newest}
