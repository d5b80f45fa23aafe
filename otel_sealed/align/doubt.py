"""Turns found by their place alone, where another answer may stand.

Theory of operation. A turn answered a request, and where a later one begins with that request its
answer belongs behind it. But the same may have been asked more than once: again, or by another
process, or before a restart; the answer that stands there is then one nobody here saw, and nothing
of it was lost. So a turn is taken for the one that stands there only if something of it does: an
id, be it in a text that tells of its call, a longer text, text that holds one of its own, a seal
that is one of its own changed. The same calls are enough where nothing else, no other id and no
seal of another, stands beside them, and so are short texts in their place. Of a turn that only a
few words or the order of the others give a place before a sure one (`strange`), that place is asked
in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from otel_sealed.align.scene import LEAST_SEAL, Names, path_of, same_artifact
from otel_sealed.diagnose import akin
from otel_sealed.model import (
    Block,
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
    return frozenset(
        turn.number
        for turn in lineage.turns
        if turn.number in lineage.placed
        and not _stands(turn, slots.get(turn.number, []), messages, chains, names, probe)
    )


def strange(
    lineage: Lineage,
    messages: Sequence[Message],
    chains: Sequence[bytes],
    names: Names,
    probe: Search,
) -> frozenset[SlotAt]:
    """The places of `lineage.guessed` where nothing of their turn stands.

    Each run of the model is asked for itself: the same word may have been said in several.
    """
    turns = {turn.number: turn for turn in lineage.turns} if lineage.guessed else {}
    return frozenset(
        slot
        for number, slots in lineage.guessed
        if not _stands(turns[number], slots, messages, chains, names, probe)
        for slot in slots
    )


def _stands(
    turn: Turn,
    slots: Collection[SlotAt],
    messages: Sequence[Message],
    chains: Sequence[bytes],
    names: Names,
    probe: Search,
) -> bool:
    """Whether something of the turn stands at these places."""
    if not slots:
        return False
    in_place = any(chains[at] == turn.chain for at, _ in slots)
    run = {
        path_of(names.root, messages[at], index): messages[at].blocks[index]
        for at, index in sorted(slots)
    }
    if _carved(turn, run, probe):
        return True
    sent = [(path, value) for path, block in run.items() for value in block.seals()]
    seals = [_seal(turn, value, path, names, probe) for path, value in sent]
    if True in seals or False in seals:
        return True in seals
    shadows = _texts(turn)
    held = [shadow for path in run for shadow in probe.holds_at(path, shadows)]
    if any(shadow.chars >= _LONG_TEXT for shadow in held):
        return True
    called = {a for block in turn.blocks if block.kind is Kind.CALL for a in block.anchors}
    if called and any(not called.isdisjoint(probe.named(path)) for path in run):
        return True
    own = {block.payload for block in turn.blocks} - {b""}
    visible = [block for block in run.values() if block.payload or block.anchors]
    for block in visible:
        same = [came for came in turn.blocks if came.kind is block.kind]
        if same and all(came.unlike(block) for came in same):
            return False
    told = in_place or not visible or any(block.kind is Kind.CALL for block in visible)
    return told and (bool(held) or all(block.payload in own for block in visible))


def _carved(turn: Turn, run: Mapping[str, Block], probe: Search) -> bool:
    """Whether an answer that was text with tags is sent as reasoning and text."""
    kinds = [block.kind for block in run.values()]
    if kinds != [Kind.REASONING, Kind.TEXT] or len(turn.blocks) != 1:
        return False
    came = turn.blocks[0]
    thought, rest = run
    said = Shadow(came.payload, came.payload_chars)
    return came.kind is Kind.TEXT and probe.carved((thought, rest), said)


def _texts(turn: Turn) -> tuple[Shadow, ...]:
    """What the turn said and thought, as far as it can be read."""
    own = [
        Shadow(block.payload, block.payload_chars)
        for block in turn.blocks
        if block.payload and block.kind in READABLE
    ]
    return (*own, *(shadow for block in turn.blocks for shadow in block.shadows))


def _seal(turn: Turn, sent: Value, path: str, names: Names, probe: Search) -> bool | None:
    """Whether a seal in the request is one of the turn's own, changed; None where it is no seal."""
    if sent.state is not State.PRESENT or sent.canon in names.placeholders:
        return None
    binary = sent.artifact in names.binary
    issued = sent.size >= LEAST_SEAL
    for block in turn.blocks:
        came = same_artifact(block, sent.artifact)
        if came is None or came.state is State.ABSENT:
            continue
        sample = probe.sample(path, sent.artifact, came.size, binary=binary)
        if akin(came, sample):
            return True
        issued = issued and sample is not None and not sample.foreign_alphabet
    return False if issued else None
