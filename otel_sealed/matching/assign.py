"""Assignment: which turn of a line each place of the model in a request belongs to.

Model. The turns of the line came in one after the other, and a request replays them in that order,
with edits: it lacks some, has others, and changed some. So this is an alignment of two sequences,
the blocks of the turns and the places of the model:

1. *Anchors.* A place whose certain evidence names one turn of the line is of that turn. So is one
   whose text or call is that of the turn that such a place of its message, else of its run, is of;
   else of a turn in its place; else of one turn and said in no other message. A block is in one
   place, by the best evidence, and a text next to a seal that is none of these turns' is the
   weakest. A bare seal, but a compaction, was moved, and anchors nothing, where its run is of one
   other turn by all else, or where it is next to another text and its own block is elsewhere. The
   longest run of anchors in order of the turns is the skeleton. Of the others, those with certain
   evidence were moved, the rest are coincidence.
2. *Gaps.* Between two anchors, blocks and places are matched by the keys they share: the longest
   common subsequence, of several the one with the latest. A block is matched once.
3. *Whole turns.* Turns without a place and runs without a turn, between the same anchors, are
   matched in order at the least cost. A run behind the result of a call is of a later turn than it.
4. *The rest.* A place without a turn has that of the place before it in its message, then in its
   run, else after it. A run without any is nobody's.

A gap with more than `MAX_GAP` of both has no matches: its places are nobody's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from otel_sealed.matching.evidence import (
    agreed_on,
    certain,
    ids_by_payload,
    likely,
    strong_keys,
    unlike,
)
from otel_sealed.model import Block, Kind, Message, Role, SlotAt, Turn
from otel_sealed.steps import spend

MAX_GAP: Final = 32
"""Blocks, or places, of a gap that are compared with all on the other side: so a gap costs that
many steps for each of them. More on both sides have no evidence of their own anywhere in a row,
which no host is known to send; the number bounds the cost and is not measured."""
CHANGED: Final = 2
"""What it costs that a run is a turn with other blocks of the same types."""
REPLACED: Final = 5
"""What it costs that it has none of the same types: less than `2 * LOST`, since a host that
replaces an answer is likelier than one that loses it and has another in the same place."""
NEVER: Final = 7
"""What it costs that a run is not later than the result of a call of its turn: more than
`2 * LOST`, so that leaving both out is always cheaper."""
LOST: Final = 3
"""What a turn without a run costs, and a run without a turn: more than a change, so that a changed
turn is found in its place."""


class Assigned(NamedTuple):
    """Whose each place is.

    `owner`: place to the number of its turn; `matched`: the places that have it by a key of theirs,
    not by their order or their neighbours.
    """

    owner: dict[SlotAt, int]
    matched: frozenset[SlotAt]


class _Anchor(NamedTuple):
    """A place (its number among all of the model) and the block it is: `part` of a turn, or -1."""

    slot: int
    turn: int
    part: int


_FIRST: Final = _Anchor(-1, 0, -1)


def assign(
    messages: Sequence[Message],
    chains: Sequence[bytes],
    runs: Sequence[Sequence[SlotAt]],
    turns: Sequence[Turn],
) -> Assigned:
    """Give each place of the model to at most one of `turns`, which are in order, oldest first.

    `chains[i]`: rolling digest of the messages before `i`; `runs`: the places of the model, by run.
    """
    found = _Assignment(messages, chains, runs, turns)
    if turns and runs:
        found.anchor()
        found.gaps()
        found.fill()
    return Assigned(found.owner, frozenset(found.matched))


class _Assignment:
    """One assignment under way: steps 1 to 4 of the model."""

    def __init__(
        self,
        messages: Sequence[Message],
        chains: Sequence[bytes],
        runs: Sequence[Sequence[SlotAt]],
        turns: Sequence[Turn],
    ) -> None:
        self.owner: dict[SlotAt, int] = {}
        self.matched: set[SlotAt] = set()
        self._messages = messages
        self._chains = chains
        self._runs = runs
        self._turns = turns
        self._at = {turn.number: at for at, turn in enumerate(turns)}
        self._slots = [slot for run in runs for slot in run]
        self._run_of = [at for at, run in enumerate(runs) for _ in run]
        self._skeleton: list[_Anchor] = []
        self._swapped: set[int] = set()
        self._unknown: set[int] = set()
        self._agreed: dict[int, frozenset[int]] = {}
        self._placed: dict[bytes, list[int]] = {}
        self._end = _Anchor(len(self._slots), len(turns), 0)
        self._free: dict[tuple[int, bytes], deque[int]] = {}
        self._ids: dict[int, Mapping[bytes, set[bytes]]] = {}
        self._holders: dict[bytes, list[int]] = {}
        for at, turn in enumerate(turns):
            if turn.chain:
                self._placed.setdefault(turn.chain, []).append(at)
            for index, block in enumerate(turn.blocks):
                spend()
                for key in _keys(block, turn.joined):
                    holders = self._holders.setdefault(key, [])
                    if not holders or holders[-1] != at:
                        holders.append(at)
                    self._free.setdefault((at, key), deque()).append(index)

    # -- 1. anchors ----------------------------------------------------------------------------

    def anchor(self) -> None:
        """Find the anchors, and the skeleton among them."""
        named = self._certain()
        rest = [slot for slot in range(len(self._slots)) if slot not in named]
        shown = dict(self._shown(rest))
        bare = {slot: turn for slot, turn in named.items() if self._bare(slot, turn)}
        taken: set[tuple[int, int]] = set()
        fixed = [self._anchor(*one, taken) for one in named.items() if one[0] not in bare]
        self._swapped.update(self._swaps(named, shown, bare, taken))
        alone = {slot: turn for slot, turn in bare.items() if not self._says(slot, turn)}
        fixed += self._own_bare({k: v for k, v in bare.items() if k not in alone}, taken)
        beside = dict(self._beside(rest, named))
        others = {slot: turn for slot, turn in shown.items() if slot not in beside}
        sealed = {slot for slot in others if self._slots[slot][0] in self._unknown}
        found = [self._anchor(*one, taken) for one in beside.items()]
        found += [self._anchor(*one, taken) for one in others.items() if one[0] not in sealed]
        fixed += self._own_bare(alone, taken)
        found += [self._anchor(slot, others[slot], taken) for slot in sorted(sealed)]
        weaker = sorted(one for one in found if one.part >= 0)
        fixed.sort()
        place = attrgetter("slot")
        for before, after in pairwise((_FIRST, *_longest(fixed), self._end)):
            first, last = (bisect_right(weaker, one.slot, key=place) for one in (before, after))
            fitting = [one for one in weaker[first:last] if before.turn <= one.turn <= after.turn]
            self._skeleton += [*_longest(fitting), after]
        self._skeleton.pop()
        for one in (*fixed, *self._skeleton):
            self._own(one.slot, one.turn)

    def _certain(self) -> dict[int, int]:
        """Place to the one turn that certain evidence names; `_agreed` has those of messages."""
        named: dict[int, int] = {}
        start = 0
        starts = {run[0][0] for run in self._runs}
        here: Sequence[int] = ()
        for at, group in groupby(self._slots, key=lambda slot: slot[0]):
            places = range(start, start := start + sum(1 for _ in group))
            blocks = self._messages[at].blocks
            here = self._placed.get(self._chains[at], ()) if at in starts else here
            strong = [
                likely(certain(block, self._look, self._same_vendor), here) for block in blocks
            ]
            agreed = self._agreed[at] = agreed_on(strong)
            if any(b.sealed and not found for b, found in zip(blocks, strong, strict=True)):
                self._unknown.add(at)
            for slot, numbers in zip(places, strong, strict=True):
                only = [n for n in numbers if n in agreed]
                if len(only) == 1:
                    named[slot] = only[0]
        return named

    def _shown(self, slots: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Those of some places whose text or call names one turn, and that turn.

        One in its place; else the one that has it, if no other message says the same. A message
        with a seal that is none of these turns' is asked last.
        """
        said: dict[bytes, set[int]] = {}
        plain: dict[bytes, set[int]] = {}
        for slot, (at, _) in enumerate(self._slots) if slots else ():
            for key in self._texts(slot):
                said.setdefault(key, set()).add(at)
                if at not in self._unknown:
                    plain.setdefault(key, set()).add(at)
        for slot in slots:
            at = self._slots[slot][0]
            here = self._placed.get(self._chains[at], ())
            for key in self._texts(slot):
                holders = self._like(slot, key)
                placed = [turn for turn in holders if turn in here]
                alone = len((said if at in self._unknown else plain)[key]) == 1
                if len(placed) == 1 or (len(holders) == 1 and alone):
                    yield slot, (placed or holders)[0]
                    break

    def _beside(self, slots: Sequence[int], named: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Those of some places whose text or call is of the one turn that is named next to it.

        That is in its message, else in its run.
        """
        messages: dict[int, set[int]] = {}
        runs: dict[int, set[int]] = {}
        for slot, turn in named.items():
            if slot not in self._swapped:
                messages.setdefault(self._slots[slot][0], set()).add(turn)
                runs.setdefault(self._run_of[slot], set()).add(turn)
        for slot in slots:
            for near in (messages.get(self._slots[slot][0]), runs.get(self._run_of[slot])):
                found = self._one_of(near, slot) if near else None
                if found is not None:
                    yield slot, found
                    break

    def _one_of(self, turns: Collection[int], slot: int) -> int | None:
        """The turn that has the first key of a place that exactly one of some turns has."""
        for key in self._texts(slot):
            found = [turn for turn in self._like(slot, key) if turn in turns]
            if len(found) == 1:
                return found[0]
        return None

    def _own_bare(self, bare: Mapping[int, int], taken: set[tuple[int, int]]) -> Iterator[_Anchor]:
        """The anchors of bare seals that were not moved; of the others it is noted."""
        for slot, turn in bare.items():
            if slot in self._swapped:
                continue
            one = self._anchor(slot, turn, taken)
            if one.part >= 0:
                yield one
            else:
                self._swapped.add(slot)

    def _says(self, slot: int, turn: int) -> bool:
        """Whether what a place shows, if anything, is what the turn showed."""
        payload = self._block(slot).payload
        return not payload or turn in self._holders.get(payload, [])

    def _swaps(
        self,
        named: Mapping[int, int],
        shown: Mapping[int, int],
        bare: Mapping[int, int],
        taken: Collection[tuple[int, int]],
    ) -> Iterator[int]:
        """The places with a bare seal of another turn than the one their run is of.

        That is the one turn its ids, calls and texts are of, or else the one that answered what is
        before it. A seal in its own turn's place is not swapped, nor one in a block that the other
        turn has none of left: that is its own block, in another place.
        """
        run_of = self._run_of
        turns: dict[int, set[int]] = {}
        for slot, turn in (*shown.items(), *named.items()) if bare else ():
            if slot not in bare:
                turns.setdefault(run_of[slot], set()).add(turn)
        left: dict[int, Counter[Kind]] = {}
        there = Counter((run_of[s], turn, self._block(s).kind) for s, turn in shown.items())
        for slot, turn in bare.items():
            here = self._placed.get(self._chains[self._slots[slot][0]], ())
            start = self._placed.get(self._chains[self._runs[run_of[slot]][0][0]], ())
            others = turns.get(run_of[slot]) or {*start}
            if turn in here or turn in others or len(others) != 1:
                continue
            kind, (other,) = self._block(slot).kind, others
            if other not in left:
                blocks = enumerate(self._turns[other].blocks)
                spend(len(self._turns[other].blocks))
                left[other] = Counter(
                    b.kind for at, b in blocks if b.sealed and (other, at) not in taken
                )
            if left[other][kind] > there[run_of[slot], other, kind]:
                yield slot

    def _look(self, key: bytes) -> tuple[int, ...]:
        spend()
        return tuple(self._holders.get(key, ()))

    def _same_vendor(self, some: Collection[int], others: Collection[int]) -> bool:
        return len({self._turns[at].vendor for at in (*some, *others)}) == 1

    def _texts(self, slot: int) -> tuple[bytes, ...]:
        at, index = self._slots[slot]
        block, message = self._messages[at].blocks[index], self._messages[at]
        if block.kind is Kind.TEXT and message.joined and message.joined != block.payload:
            return (block.payload, message.joined) if block.payload else (message.joined,)
        return (block.payload,) if block.payload else ()

    def _like(self, slot: int, key: bytes) -> list[int]:
        """The turns that hold a text or call of a place, and not in calls with other ids.

        Of several, those that the rest of its message is of.
        """
        block = self._block(slot)
        holders = self._holders.get(key, [])
        agreed = self._agreed[self._slots[slot][0]]
        if agreed and len(holders) > 1:
            holders = [at for at in holders if at in agreed] or holders
        spend(len(holders))
        return [at for at in holders if not unlike(self._ids_of(at), block)]

    def _ids_of(self, at: int) -> Mapping[bytes, set[bytes]]:
        if at not in self._ids:
            self._ids[at] = ids_by_payload(self._turns[at].blocks)
        return self._ids[at]

    def _bare(self, slot: int, turn: int) -> bool:
        """Whether nothing but a seal says that a place is of a turn and of no other one.

        A compaction is meant to be where others were.
        """
        block = self._block(slot)
        if block.kind is Kind.COMPACTION:
            return False
        named = any((turn, key) in self._free for key in block.anchors)
        return not named and self._holders.get(block.payload, []) != [turn]

    def _anchor(self, slot: int, turn: int, taken: set[tuple[int, int]]) -> _Anchor:
        """The place with the first block of the turn that has a key of it and is not taken."""
        for key in self._keys(slot):
            free = self._free.get((turn, key))
            while free:
                spend()
                part = free.popleft()
                if (turn, part) not in taken:
                    taken.add((turn, part))
                    return _Anchor(slot, turn, part)
        return _Anchor(slot, turn, -1)

    def _keys(self, slot: int) -> tuple[bytes, ...]:
        """The keys of a place, the strong ones first; those of a swapped seal say nothing."""
        strong = () if slot in self._swapped else strong_keys(self._block(slot))
        return (*strong, *self._texts(slot))

    def _block(self, slot: int) -> Block:
        at, index = self._slots[slot]
        return self._messages[at].blocks[index]

    def _own(self, slot: int, turn: int) -> None:
        place = self._slots[slot]
        self.owner[place] = self._turns[turn].number
        self.matched.add(place)

    # -- 2. and 3. gaps ------------------------------------------------------------------------

    def gaps(self) -> None:
        """Match what is between the anchors of the skeleton."""
        for unknown in (False, True):
            skeleton, self._skeleton = self._skeleton, []
            for before, after in pairwise((_FIRST, *skeleton, self._end)):
                if after.slot - before.slot > 1:
                    self._skeleton += self._gap(before, after, unknown=unknown)
                self._skeleton.append(after)
            self._skeleton.pop()
        owned = set(self.owner.values())
        low = 0
        waiting: list[int] = []
        for run_at, run in enumerate(self._runs):
            mine = [self._at[self.owner[slot]] for slot in run if slot in self.owner]
            if not mine:
                waiting.append(run_at)
                continue
            if waiting:
                self._whole(waiting, low, min(mine), owned)
                waiting = []
            low = max(low, *mine)
        if waiting:
            self._whole(waiting, low, len(self._turns), owned)

    def _gap(self, before: _Anchor, after: _Anchor, *, unknown: bool) -> list[_Anchor]:
        """Match blocks and places; `unknown`: those next to a seal that is none of the turns'."""
        slots = [
            slot
            for slot in range(before.slot + 1, after.slot)
            if self._slots[slot] not in self.owner
            and (self._slots[slot][0] in self._unknown) is unknown
            and self._may_match(slot, before, after)
        ]
        if not slots:
            return []
        blocks = list(self._between(before, after))
        spend(len(blocks))
        found = sorted(_Anchor(slot, *block) for block, slot in _common(blocks, slots, self._alike))
        for one in found:
            self._own(one.slot, one.turn)
        return found

    def _may_match(self, slot: int, before: _Anchor, after: _Anchor) -> bool:
        return any(
            before.turn <= turn <= after.turn
            for key in self._keys(slot)
            for turn in self._like(slot, key)
        )

    def _between(self, before: _Anchor, after: _Anchor) -> Iterator[tuple[int, int]]:
        for turn in range(before.turn, min(after.turn + 1, len(self._turns))):
            first = before.part + 1 if turn == before.turn else 0
            last = after.part if turn == after.turn else len(self._turns[turn].blocks)
            yield from ((turn, index) for index in range(first, last))

    def _alike(self, came: tuple[int, int], slot: int) -> bool:
        turn, index = came
        spend()
        block, joined = self._turns[turn].blocks[index], self._turns[turn].joined
        shared = {*_keys(block, joined)}.intersection(self._keys(slot))
        return any(turn in self._like(slot, key) for key in shared)

    def _whole(self, runs: Sequence[int], low: int, high: int, owned: Collection[int]) -> None:
        """Match runs without a turn with turns without a place, from `low` to before `high`."""
        turns = [at for at in range(low, high) if self._turns[at].number not in owned]
        if not turns or min(len(turns), len(runs)) > MAX_GAP:
            return
        over = self._over

        def cost(turn: int, run: int) -> int:
            places = self._runs[run]
            if turn <= over[run]:
                return NEVER
            if turn in self._placed.get(self._chains[places[0][0]], ()):
                return 0
            types = {block.type for block in self._turns[turn].blocks}
            sent = {self._messages[at].blocks[index].type for at, index in places}
            return CHANGED if not types.isdisjoint(sent) else REPLACED

        for turn, run in _cheapest(turns, runs, cost):
            self.owner.update(dict.fromkeys(self._runs[run], self._turns[turn].number))

    @cached_property
    def _over(self) -> list[int]:
        """For each run the newest turn that a result before it answers, -1 for none."""
        newest, at, found = -1, 0, []
        for run in self._runs:
            for message in self._messages[at : run[0][0]]:
                for block in message.blocks:
                    spend()
                    if block.kind is Kind.RESULT:
                        newest = max(newest, *self._answered(block))
            at = run[-1][0] + 1
            found.append(newest)
        return found

    def _answered(self, result: Block) -> Iterator[int]:
        """The one turn whose call has the id of a result, or -1."""
        yield -1
        for key in result.anchors:
            holders = self._holders.get(key, [])
            if len(holders) == 1:
                yield holders[0]

    # -- 4. the rest ---------------------------------------------------------------------------

    def fill(self) -> None:
        """Give places without a turn that of their neighbours."""
        for run in self._runs:
            for _, group in groupby(run, key=lambda slot: slot[0]):
                self._fill(list(group))
            self._fill(run)

    def _fill(self, slots: Sequence[SlotAt]) -> None:
        now = next((self.owner[slot] for slot in slots if slot in self.owner), None)
        if now is not None:
            for slot in slots:
                now = self.owner.setdefault(slot, now)


def _keys(block: Block, joined: bytes) -> Iterator[bytes]:
    """All keys of a received block; those of a text include the text of its turn in one piece.

    A seal that was cut, or that another event of the stream brought in other bytes, is one, too.
    """
    yield from block.anchors
    yield from (v.canon for v in block.values if v.canon and v.role in (Role.SEAL, Role.ANEW))
    yield from block.hidden
    if block.payload:
        yield block.payload
    if joined and block.kind is Kind.TEXT and joined != block.payload:
        yield joined


def _longest(anchors: Sequence[_Anchor]) -> list[_Anchor]:
    """The longest part of `anchors`, in order of their places, whose turns never go back."""
    ends: list[int] = []
    chosen: list[int] = []
    before: list[int] = []
    for at, one in enumerate(anchors):
        spend()
        place = bisect_right(ends, one.turn)
        before.append(chosen[place - 1] if place else -1)
        if place == len(ends):
            ends.append(one.turn)
            chosen.append(at)
        else:
            ends[place], chosen[place] = one.turn, at
    found: list[_Anchor] = []
    at = chosen[-1] if chosen else -1
    while at >= 0:
        found.append(anchors[at])
        at = before[at]
    return found[::-1]


def _common(
    blocks: list[tuple[int, int]],
    slots: list[int],
    alike: Callable[[tuple[int, int], int], bool],
) -> list[tuple[tuple[int, int], int]]:
    """A longest common subsequence, of several the latest; none beyond `MAX_GAP`."""
    found: list[tuple[tuple[int, int], int]] = []
    while blocks and slots and alike(blocks[-1], slots[-1]):
        spend()
        found.append((blocks.pop(), slots.pop()))
    start = 0
    while start < min(len(blocks), len(slots)) and alike(blocks[start], slots[start]):
        spend()
        found.append((blocks[start], slots[start]))
        start += 1
    blocks, slots = blocks[start:], slots[start:]
    if not blocks or not slots or min(len(blocks), len(slots)) > MAX_GAP:
        return found
    spend(len(blocks) * len(slots))
    same = [[alike(block, slot) for slot in slots] for block in blocks]
    best = [[0] * (len(slots) + 1) for _ in range(len(blocks) + 1)]
    for i, row in enumerate(same):
        for j, equal in enumerate(row):
            best[i + 1][j + 1] = best[i][j] + 1 if equal else max(best[i][j + 1], best[i + 1][j])
    i, j = len(blocks), len(slots)
    while i and j:
        if same[i - 1][j - 1]:
            i, j = i - 1, j - 1
            found.append((blocks[i], slots[j]))
        elif best[i - 1][j] >= best[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


def _cheapest(
    turns: Sequence[int], runs: Sequence[int], cost: Callable[[int, int], int]
) -> Iterator[tuple[int, int]]:
    """Pairs of turns and runs, in order, that cost the least with what is left over; the latest."""
    spend(len(turns) * len(runs))
    costs = [[cost(turn, run) for run in runs] for turn in turns]
    best = [[at * LOST for at in range(len(runs) + 1)]]
    for i, row in enumerate(costs):
        line = [best[i][0] + LOST]
        for j, pair in enumerate(row):
            line.append(min(best[i][j] + pair, best[i][j + 1] + LOST, line[j] + LOST))
        best.append(line)
    i, j = len(turns), len(runs)
    while i and j:
        if best[i][j] == best[i - 1][j - 1] + costs[i - 1][j - 1]:
            i, j = i - 1, j - 1
            yield turns[i], runs[j]
        elif best[i][j] == best[i - 1][j] + LOST:
            i -= 1
        else:
            j -= 1
