"""Turns found by their place alone, where another answer may stand.

Theory of operation. A turn answered a request, and where a later one begins with that request its
answer belongs behind it. But the same may have been asked more than once: again, or by another
process, or before a restart; the answer that stands there is then one nobody here saw, and nothing
of it was lost. So a turn is taken for the one that stands there only if something of it does: an
id, a longer text, text that holds one of its own, a seal that is one of its own changed. The same
calls are enough where nothing else, and no seal of another, stands beside them, and so are short
texts in their place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from otel_sealed.align.scene import Names, path_of, same_artifact
from otel_sealed.diagnose import diagnose
from otel_sealed.model import (
    Block,
    Cause,
    Kind,
    Lineage,
    Message,
    Shadow,
    SlotAt,
    State,
    Turn,
    Value,
)
from otel_sealed.wire.read import READABLE
from otel_sealed.wire.search import Search

_LONG_TEXT = 24


def doubtful(
    lineage: Lineage,
    messages: Sequence[Message],
    chains: Sequence[bytes],
    names: Names,
    probe: Search,
) -> frozenset[int]:
    """The turns of `lineage.placed` of which nothing stands in the request.

    `chains[i]` is the rolling digest of all messages before `i`.
    """
    if not lineage.placed:
        return frozenset()
    slots: dict[int, list[SlotAt]] = {}
    for slot, number in lineage.owner.items():
        slots.setdefault(number, []).append(slot)
    found = set()
    for turn in lineage.turns:
        if turn.number in lineage.placed:
            places = slots.get(turn.number, [])
            in_place = any(chains[at] == turn.chain for at, _ in places)
            run = _run(places, messages, names)
            if not _stands(turn, run, names, probe, in_place=in_place):
                found.add(turn.number)
    return frozenset(found)


def _run(slots: Collection[SlotAt], messages: Sequence[Message], names: Names) -> dict[str, Block]:
    """The blocks at these places, by their paths."""
    return {
        path_of(names.root, messages[at], index): messages[at].blocks[index]
        for at, index in sorted(slots)
    }


def _stands(
    turn: Turn, run: Mapping[str, Block], names: Names, probe: Search, *, in_place: bool
) -> bool:
    if not run:
        return False
    shadows = _texts(turn)
    held = [shadow for path in run for shadow in probe.holds_at(path, shadows)]
    if any(shadow.chars >= _LONG_TEXT for shadow in held):
        return True
    strange = False
    for path, block in run.items():
        for value in block.seals():
            if value.state is State.PRESENT and value.canon not in names.placeholders:
                if _changed(turn, value, path, names, probe):
                    return True
                strange = True
    if strange:
        return False
    own = {block.payload for block in turn.blocks} - {b""}
    visible = [block for block in run.values() if block.payload or block.anchors]
    told = in_place or not visible or any(block.kind is Kind.CALL for block in visible)
    return told and (bool(held) or all(block.payload in own for block in visible))


def _texts(turn: Turn) -> tuple[Shadow, ...]:
    """What the turn said and thought, as far as it can be read."""
    own = [
        Shadow(block.payload, block.payload_chars)
        for block in turn.blocks
        if block.payload and block.kind in READABLE
    ]
    return (*own, *(shadow for block in turn.blocks for shadow in block.shadows))


def _changed(turn: Turn, sent: Value, path: str, names: Names, probe: Search) -> bool:
    """Whether a seal in the request is one of the turn's own, changed."""
    for block in turn.blocks:
        came = same_artifact(block, sent.artifact)
        if came is None or came.state is State.ABSENT:
            continue
        binary = sent.artifact in names.binary
        sample = probe.sample(path, sent.artifact, came.size, binary=binary)
        if diagnose(came, sample).cause not in (Cause.REPLACED, Cause.EMPTIED):
            return True
    return False
