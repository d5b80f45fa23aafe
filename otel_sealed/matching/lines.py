"""Lines: which conversation a request continues, as the newest turn of it, and its ancestors.

Model. Turns form a forest: each continues its parent. A request replays turns of one path from a
root, its *line*; the newest of them is the *tip*. A path explains a key if one of its turns holds
it; of m places with the same key it explains as many as it has turns that hold it, at most m. The
tip is the turn whose path explains most keys, tier by tier (`evidence.Tier`), and that explains one
itself: a turn that explains nothing is not part of the line (a request without it is a fork).

Two tips that explain the same are a tie. Where certain evidence names one of them, both are in the
request, and the newest counts. Else nothing says which of them is meant, and the tip is the newest
turn before both that certain evidence names, or nobody.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from otel_sealed.ledger.protocol import Found
from otel_sealed.matching.evidence import Claims, Tier
from otel_sealed.model import Kind, Turn
from otel_sealed.steps import spend

MAX_LINE = 4096
"""Turns of one line: a loop of 4,096 steps is longer than any context window holds."""
Score = tuple[int, ...]
_NOTHING: Score = (0,) * len(Tier)
_PLACE: Score = tuple(int(tier is Tier.PLACE) for tier in reversed(Tier))


def best_tip(claims: Claims, *, continues: bool) -> int:
    """The newest turn that the evidence names; -1 where it is weak or tied.

    `continues`: the caller knows that the request continues the conversation.
    """
    forest = _Forest(claims)
    totals = forest.totals()
    if not totals:
        return -1
    best = max(totals.values())
    tips = [n for n, total in totals.items() if total == best and forest.own[n] > _NOTHING]
    if continues or (claims.conversation and len(tips) == 1):
        return tips[-1]
    if best < _PLACE:
        return -1
    if len(tips) > 1 and not any(n in claims.certain for n in tips):
        common = set(map(Nearest(claims.ledger, claims.certain), tips))
        return common.pop() if len(common) == 1 else -1
    return tips[-1]


class _Forest:
    """The turns that any evidence names, each with the nearest of them that it continues."""

    def __init__(self, claims: Claims) -> None:
        self._numbers = sorted(claims.named())
        above = Nearest(claims.ledger, self._numbers)
        self._parent = {n: above(n) for n in self._numbers}
        self._entered, self._left = self._intervals()
        self.own = dict.fromkeys(self._numbers, _NOTHING)
        for (tier, numbers), places in claims.counts.items():
            for n in self._explaining(numbers, places):
                self.own[n] = _plus(self.own[n], tier, places if len(numbers) == 1 else 1)

    def totals(self) -> dict[int, Score]:
        """What the path to each turn explains, oldest turn first."""
        totals: dict[int, Score] = {}
        for n in self._numbers:
            before = totals.get(self._parent[n], _NOTHING)
            own = self.own[n]
            totals[n] = tuple(map(sum, zip(before, own, strict=True)))
        return totals

    def _explaining(self, numbers: Sequence[int], places: int) -> Iterable[int]:
        """Those of the holders of a key that are among the first `places` on their path."""
        if len(numbers) <= places:
            return numbers
        spend(len(numbers) ** 2)
        return [
            n
            for at, n in enumerate(numbers)
            if sum(self._continues(n, before) for before in numbers[:at]) < places
        ]

    def _continues(self, number: int, before: int) -> bool:
        return self._entered[before] < self._entered[number] <= self._left[before]

    def _intervals(self) -> tuple[dict[int, int], dict[int, int]]:
        """By turn, the first and the last number of its subtree in a walk through the forest."""
        sizes = dict.fromkeys(self._numbers, 1)
        for n in reversed(self._numbers):
            if self._parent[n] >= 0:
                sizes[self._parent[n]] += sizes[n]
        entered: dict[int, int] = {}
        free: dict[int, int] = {}
        at = 0
        for n in self._numbers:
            parent = self._parent[n]
            if parent < 0:
                entered[n], at = at, at + sizes[n]
            else:
                entered[n] = free[parent]
                free[parent] += sizes[n]
            free[n] = entered[n] + 1
        return entered, {n: entered[n] + sizes[n] - 1 for n in self._numbers}


def _plus(score: Score, tier: Tier, count: int) -> Score:
    at = Tier.CERTAIN - tier
    return (*score[:at], score[at] + count, *score[at + 1 :])


class Nearest:
    """The nearest ancestor of a turn that is one of some turns. Each turn is visited once."""

    def __init__(self, ledger: Found, among: Collection[int]) -> None:
        """`among`: a turn continues none that was recorded after it, so the first ends the way."""
        self._ledger = ledger
        self._among = frozenset(among)
        self._least = min(self._among, default=-1)
        self._known: dict[int, int] = {}

    def __call__(self, number: int) -> int:
        """The number of the ancestor, or -1 where there is none."""
        passed: list[int] = []
        found = -1
        while number not in self._known:
            spend()
            passed.append(number)
            turn = self._ledger.get(number)
            if turn is None or turn.parent >= number:
                break
            if turn.parent in self._among:
                found = turn.parent
                break
            if turn.parent <= self._least:
                break
            number = turn.parent
        else:
            found = self._known[number]
        self._known.update(dict.fromkeys(passed, found))
        return found


def line_to(ledger: Found, tip: int, least: int = -1, most: int = sys.maxsize) -> tuple[Turn, ...]:
    """A turn and those it continued, oldest first.

    Of those before turn `least` the newest `most`, and those that hold the prefix of these.
    """
    line: list[Turn] = []
    absent = 0
    turn = ledger.get(tip) if tip >= 0 else None
    while turn is not None and len(line) < MAX_LINE:
        spend()
        line.append(turn)
        absent += turn.number < least
        if absent > most and not turn.prefix_shared:
            break
        turn = ledger.get(turn.parent) if turn.parent >= 0 else None
    return tuple(reversed(line))


def past(turns: Sequence[Turn], present: Collection[int], most: int) -> frozenset[int]:
    """The turns of each run of absent ones that are before the newest `most` of it.

    Not one that brought a compaction: that outlives its turn.
    """
    found: list[int] = []
    absent: list[int] = []
    for turn in (*turns, None):
        if turn is not None and turn.number not in present:
            if not compacts(turn):
                absent.append(turn.number)
            continue
        found += absent[: max(len(absent) - most, 0)]
        absent = []
    return frozenset(found)


def compacts(turn: Turn) -> bool:
    """Whether a turn brought a compaction."""
    return any(block.kind is Kind.COMPACTION and block.sealed for block in turn.blocks)
