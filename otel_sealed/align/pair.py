"""Pairing: which sent block is which received one, within one turn.

A block is recognised by the first of these that holds for a pair both still free: an id; equal
visible payload with an equal seal; equal visible payload; an equal seal; and last its place, when
it is the only sealed block of its type left between two recognised neighbours. Identity of the
carrier comes before identity of the seal: a seal found on another recognised carrier has been
moved, it does not move its carrier.

Both sides are gone through in their order, and the first free sent block that fits is taken. Each
kind of evidence has an index of the region, so that the work is linear in received and sent blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice

from otel_sealed.model import Block, Kind, Role, SlotAt, State
from otel_sealed.steps import spend

Placed = tuple[SlotAt, Block]
Keys = Callable[[Block], Iterator[Hashable]]

_TRIED = 8
"""Free calls or texts that are held against one that lost its id and its arguments, the first."""


def pair(received: Sequence[Block], region: Sequence[Placed]) -> dict[int, Placed]:
    """Index in `received` to the sent block it became; blocks without counterpart are left out."""
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for came, sent in _EVIDENCE:
        if len(pairs) == len(received):
            break
        places = _Places(((key, at) for at, (_, b) in enumerate(region) for key in sent(b)), used)
        for index, block in enumerate(received):
            if index not in pairs:
                at = places.take(came(block))
                if at is not None:
                    pairs[index] = at
    if len(pairs) < len(received):
        _by_place(received, region, pairs, used)
    return {index: region[at] for index, at in pairs.items()}


class _Places:
    """The free places of a region by key, each in the order of the region."""

    def __init__(self, keyed: Iterable[tuple[Hashable, int]], used: set[int]) -> None:
        self._used = used
        self._by_key: dict[Hashable, deque[int]] = {}
        for key, at in keyed:
            spend()
            self._by_key.setdefault(key, deque()).append(at)

    def first(self, keys: Iterable[Hashable], low: int = -1) -> int | None:
        """The first free place after `low` that has one of `keys`; earlier ones are let go of."""
        found = None
        for key in keys:
            spend()
            places = self._by_key.get(key)
            while places and (places[0] in self._used or places[0] <= low):
                spend()
                places.popleft()
            if places and (found is None or places[0] < found):
                found = places[0]
        return found

    def take(self, keys: Iterable[Hashable]) -> int | None:
        """The first free place that has one of `keys`, which is then no longer free."""
        found = self.first(keys)
        if found is not None:
            self._used.add(found)
        return found

    def free(self, key: Hashable, low: int, high: int) -> Iterator[int]:
        """The free places of a key between two others."""
        self.first((key,), low)
        for at in self._by_key.get(key, ()):
            spend()
            if at >= high:
                return
            if at not in self._used:
                yield at


def _ids(block: Block) -> Iterator[Hashable]:
    return ((block.kind, anchor) for anchor in block.anchors)


def _payload(block: Block) -> Iterator[tuple[str, bytes]]:
    if block.payload:
        yield block.type, block.payload


def _came_seals(block: Block) -> Iterator[Hashable]:
    came = (State.PRESENT, State.CUT)
    return (v.canon for v in block.values if v.role is Role.SEAL and v.state in came and v.canon)


def _sent_seals(block: Block) -> Iterator[Hashable]:
    return (v.canon for v in block.values if v.state is State.PRESENT and v.canon)


def _came_whole(block: Block) -> Iterator[Hashable]:
    return ((*shown, seal) for shown in _payload(block) for seal in _came_seals(block))


def _sent_whole(block: Block) -> Iterator[Hashable]:
    return ((*shown, seal) for shown in _payload(block) for seal in _sent_seals(block))


def _came_marker(block: Block) -> Iterator[Hashable]:
    if block.kind is Kind.MARKER and not block.values:
        yield block.type


def _type(block: Block) -> Iterator[Hashable]:
    yield block.type


_EVIDENCE: tuple[tuple[Keys, Keys], ...] = (
    (_ids, _ids),
    (_came_whole, _sent_whole),
    (_payload, _payload),
    (_came_seals, _sent_seals),
    (_came_marker, _type),
)
"""What a received block and the sent one it became have in common, the surest first."""


def _by_place(
    received: Sequence[Block], region: Sequence[Placed], pairs: dict[int, int], used: set[int]
) -> None:
    """Pair what nothing but its place, between two recognised neighbours, speaks for.

    Where a text came in pieces, the one with the seal goes before the others. A sealed call or text
    of Gemini may have lost id and arguments alike; reasoning may not.
    """
    sealed = ((key, at) for at, (_, b) in enumerate(region) if b.sealed for key in _named(b))
    typed = ((key, at) for at, (_, b) in enumerate(region) for key in _named(b))
    kinds = ((b.kind, at) for at, (_, b) in enumerate(region))
    for keyed, only_sealed, same_kind in (
        (sealed, True, False),
        (typed, False, False),
        (kinds, False, True),
    ):
        places = _Places(keyed, used)
        highs = _next_paired(len(received), len(region), pairs)
        low = -1
        for index, block in enumerate(received):
            spend()
            at = pairs.get(index)
            if at is None and block.values and (block.sealed or not only_sealed):
                if same_kind:
                    at = _alike(places, block, region, low, highs[index])
                else:
                    at = places.first(_replaceable(block), low)
                    at = at if at is not None and at < highs[index] else None
                if at is not None:
                    pairs[index] = at
                    used.add(at)
            low = low if at is None else max(low, at)


def _next_paired(count: int, end: int, pairs: dict[int, int]) -> list[int]:
    """By index, the first place that a later received block was paired with."""
    later = (pairs.get(index, end) for index in range(count - 1, 0, -1))
    return list(accumulate(chain((end,), later), min))[::-1]


def _named(block: Block) -> Iterator[Hashable]:
    """The type of a block, and whether it is a call with an id: two such are two calls."""
    yield block.type, block.kind is Kind.CALL and bool(block.anchors)


def _replaceable(block: Block) -> Iterator[Hashable]:
    yield block.type, False
    if not (block.kind is Kind.CALL and block.anchors):
        yield block.type, True


def _alike(
    places: _Places, block: Block, region: Sequence[Placed], low: int, high: int
) -> int | None:
    """The first free place between two others with a block of the kind, and with no other id."""
    if block.kind not in (Kind.CALL, Kind.TEXT, Kind.MEDIA):
        return None
    free = islice(places.free(block.kind, low, high), _TRIED)
    return next((at for at in free if not block.unlike(region[at][1])), None)
