"""Pairing: which sent block is which received one, within one turn.

A block is recognised by the first of these that holds for a pair both still free: an id; equal
visible payload; an equal seal; and last its place, when it is the only sealed block of its type
left between two recognised neighbours. Identity of the carrier comes before identity of the seal:
a seal found on another recognised carrier has been moved, it does not move its carrier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from otel_sealed.model import Block, Kind, Role, SlotAt, State

Placed = tuple[SlotAt, Block]


def pair(received: Sequence[Block], region: Sequence[Placed]) -> dict[int, Placed]:
    """Index in `received` to the sent block it became; blocks without counterpart are left out."""
    pairs: dict[int, Placed] = {}
    used: set[SlotAt] = set()
    for same in (_same_id, _same_payload, _same_seal, _same_marker):
        for index, block in enumerate(received):
            if index in pairs:
                continue
            for slot, sent in region:
                if slot not in used and same(block, sent):
                    pairs[index] = (slot, sent)
                    used.add(slot)
                    break
    _by_place(received, region, pairs, used)
    return pairs


def _same_id(block: Block, sent: Block) -> bool:
    return block.kind is sent.kind and any(a in sent.anchors for a in block.anchors)


def _same_payload(block: Block, sent: Block) -> bool:
    return bool(block.payload) and block.type == sent.type and block.payload == sent.payload


def _same_seal(block: Block, sent: Block) -> bool:
    came = (State.PRESENT, State.CUT)
    canons = {v.canon for v in block.values if v.role is Role.SEAL and v.state in came}
    return any(v.canon in canons for v in sent.values if v.state is State.PRESENT and v.canon)


def _same_marker(block: Block, sent: Block) -> bool:
    return block.kind is Kind.MARKER and block.type == sent.type and not block.values


def _by_place(
    received: Sequence[Block],
    region: Sequence[Placed],
    pairs: dict[int, Placed],
    used: set[SlotAt],
) -> None:
    order: dict[SlotAt, int] = {slot: at for at, (slot, _) in enumerate(region)}
    fits: tuple[Callable[[Block, Block], bool], ...] = (_sealed_alike, _same_type, _same_kind)
    for fit in fits:
        for index, block in enumerate(received):
            if index in pairs or not block.values:
                continue
            low = max((order[pairs[i][0]] for i in pairs if i < index), default=-1)
            high = min((order[pairs[i][0]] for i in pairs if i > index), default=len(region))
            for slot, sent in region[low + 1 : high]:
                if slot not in used and fit(block, sent):
                    pairs[index] = (slot, sent)
                    used.add(slot)
                    break


def _sealed_alike(block: Block, sent: Block) -> bool:
    """Where a text came in pieces, the one with the seal goes before the others."""
    return block.sealed and sent.sealed and _same_type(block, sent)


def _same_type(block: Block, sent: Block) -> bool:
    return block.type == sent.type and _may_replace(block, sent)


def _same_kind(block: Block, sent: Block) -> bool:
    """A sealed call or text of Gemini may have lost id and arguments alike; reasoning may not."""
    kinds = (Kind.CALL, Kind.TEXT, Kind.MEDIA)
    return block.kind is sent.kind and block.kind in kinds and not block.unlike(sent)


def _may_replace(block: Block, sent: Block) -> bool:
    """Two calls with different ids are two calls."""
    return not (block.anchors and sent.anchors and block.kind is Kind.CALL)
