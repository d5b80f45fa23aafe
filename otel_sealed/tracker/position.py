"""Where the turns of a request stand among those whose seals are in it."""

from __future__ import annotations

from dataclasses import dataclass

from otel_sealed.model import Trait
from otel_sealed.model.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class Position:
    """The turns whose seals are in the request: oldest, newest; the tip; was anything compacted.

    `live_from`: index, among the messages read, of the first one of the turn under way; negative
    where that began in what was settled before.
    """

    first: int
    last: int
    tip: int
    compacted: bool
    live_from: int

    def traits(self, number: int) -> set[Trait]:
        """Where a turn stands among them."""
        found = set()
        if self.first >= number:
            found.add(Trait.FRONT)
        elif number < self.last:
            found.add(Trait.GAP)
        if number == self.tip:
            found.add(Trait.LAST_TURN)
        if self.compacted:
            found.add(Trait.AFTER_COMPACTION)
        return found

    def decided(self, number: int) -> bool:
        """Whether that is so for good, whatever turns come behind the tip."""
        return number != self.tip and (self.first >= number or number < self.last)
