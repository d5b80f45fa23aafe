"""What the model was given before each turn of a line, put together from what each turn keeps.

A turn keeps only what its parent has not (`prefix`, after the first `prefix_shared` digests of its
parent's). So turns are compared with a request in the order they came: each adds its own part to
what is known of its parent, and all of them together cost what they keep, not their square.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from otel_sealed.model.records import Turn
from otel_sealed.steps import spend


class Prefixes:
    """The prefixes of some turns of a line, held against what a request gives the model now.

    `lengths`: by turn number, how many digests its prefix has; `agreed`: how many of them, from the
    first on, are those of the request. Turns whose request is unknown, or whose parent was
    forgotten, are in neither.
    """

    def __init__(self, turns: Sequence[Turn], of: Iterable[int], now: Sequence[bytes]) -> None:
        """`of`: the turns that are asked for; those they have their prefix from are added."""
        self._known = {turn.number: turn for turn in turns}
        self.lengths: dict[int, int] = {}
        self.agreed: dict[int, int] = {}
        for number in sorted(self._needed(of)):
            turn = self._known[number]
            if turn.chain and (not turn.prefix_shared or turn.parent in self.lengths):
                start = self._start(turn)
                self.lengths[number] = start + len(turn.prefix)
                before = self.agreed[turn.parent] if start else 0
                own = _common(turn.prefix, now[start:]) if before >= start else 0
                self.agreed[number] = min(before, start) + own

    def _start(self, turn: Turn) -> int:
        """How many digests of its prefix a turn has from its parent."""
        shared = turn.prefix_shared
        return min(shared, self.lengths[turn.parent]) if shared else 0

    def _needed(self, of: Iterable[int]) -> set[int]:
        needed: set[int] = set()
        for number in of:
            spend()
            turn = self._known.get(number)
            while turn is not None and turn.number not in needed:
                spend()
                needed.add(turn.number)
                turn = self._known.get(turn.parent) if turn.prefix_shared else None
        return needed

    def full(self, number: int) -> tuple[bytes, ...]:
        """The digests of all that the model was given before a turn that is in `lengths`."""
        parts: list[tuple[bytes, ...]] = []
        end = self.lengths[number]
        while end:
            turn = self._known[number]
            own = turn.prefix[: max(end - self._start(turn), 0)]
            spend(1 + len(own))
            parts.append(own)
            end, number = end - len(own), turn.parent
        return tuple(digest for part in reversed(parts) for digest in part)


def _common(before: Sequence[bytes], now: Sequence[bytes]) -> int:
    """How many leading digests two sequences have in common."""
    count = 0
    for was, is_ in zip(before, now, strict=False):
        if was != is_:
            break
        count += 1
    spend(count)
    return count
