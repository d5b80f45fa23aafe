"""Where the turns of a request stand among those whose seals are in it."""

from __future__ import annotations

from collections.abc import Mapping

from otel_sealed.model import Trait
from otel_sealed.model.record import record


@record(frozen=True, slots=True)
class Position:
    """The turns whose seals are in the request: oldest, newest; the tip; was anything compacted.

    `within`: by turn, the first and the last of its blocks whose seal is there. `live_from`: index,
    among the messages read, of the first one of the turn under way; negative where that began in
    what was settled before. `loops`: of each message before that, the last block whose seal is in
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
        """Where a block of a turn stands among them, `at` the message it stands in or should."""
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

    def decided(self, number: int) -> bool:
        """Whether that is so for good, whatever turns come behind the tip."""
        return number != self.tip and (self.first >= number or number < self.last)
