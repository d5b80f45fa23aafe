"""Rows that stand beside a present seal: signed text, ids, the carrier's envelope, orphans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from otel_sealed.align.pair import Placed
from otel_sealed.align.rows import NO_TRAITS, Source, row
from otel_sealed.align.scene import Scene, same_artifact
from otel_sealed.contract import Names
from otel_sealed.diagnose import Change, diagnose
from otel_sealed.model import (
    Block,
    Cause,
    Fate,
    Finding,
    Kind,
    Role,
    SlotAt,
    Speaker,
    State,
    Trait,
    Turn,
    Value,
)
from otel_sealed.model.record import replace

_NEAR = 8
"""Items after one: what is further off is not looked at for what it is paired with."""
_NO_TEXT = frozenset({State.ABSENT, State.NULL})
_NO_ID = _NO_TEXT | {State.EMPTY}
"""An empty id is taken for none; an empty text is a text."""


def companions(
    block: Block, placed: Placed, scene: Scene, of: Source, *, merged: bool, cut: bool
) -> Iterator[Finding]:
    """Signed text and id of `block`, compared with its counterpart, then its envelope.

    `cut`: the text is there in pieces.
    """
    slot, sent = placed
    path = scene.path(slot)
    for value in block.values:
        if value.role in (Role.SIGNED, Role.ID) and value.state in (State.PRESENT, State.EMPTY):
            now = same_artifact(sent, value.artifact)
            pieces = cut and value.role is Role.SIGNED
            fate, change = _SPLIT if pieces else _companion(value, now, path, scene, merged=merged)
            traits = _IN_PIECES if pieces else NO_TRAITS
            yield row(
                value.artifact, fate, value, now, of=of, returned=path, change=change, traits=traits
            )
    envelope = scene.names.envelopes.get(block.type, "")
    if envelope and sent.type == block.type:
        found = _other_envelope(block, sent, envelope, scene.names)
        if found is not None:
            yield row(envelope, Fate.ENVELOPE_MODIFIED, of=of, returned=path, traits=found)


def _other_envelope(
    block: Block, sent: Block, envelope: str, names: Names
) -> frozenset[Trait] | None:
    """What sort of gained or changed keys a block has; None where it has none.

    A readable key may be empty or gone. In other words, or made up, it says something else.
    """
    gained = set(sent.extras) - set(block.extras)
    if gained:
        return frozenset({Trait.PASSED_KEY}) if gained <= names.passed else frozenset()
    came, now = same_artifact(block, envelope), same_artifact(sent, envelope)
    if came is None or now is None or now.state is not State.INVALID:
        return None
    return None if came.digest == now.digest else frozenset({Trait.RESTATED})


def echoes(block: Block, placed: Placed, scene: Scene, of: Source) -> Iterator[Finding]:
    """Readable state that is only to be sent back as it came; a row only where it is not.

    Its digest is nobody's business, its size is.
    """
    slot, sent = placed
    for value in block.values:
        if value.role is not Role.ECHO or value.state is not State.PRESENT:
            continue
        now = same_artifact(sent, value.artifact)
        if now is None or now.digest != value.digest:
            lost = now is None or now.state is not State.PRESENT
            fate = Fate.DROPPED if lost else Fate.MODIFIED
            yield row(
                value.artifact,
                fate,
                replace(value, digest=b""),
                of=of,
                returned=scene.path(slot),
            )


_SPLIT = (Fate.SPLIT, None)
_IN_PIECES = frozenset({Trait.UNSIGNED_PART})


def _companion(
    value: Value, now: Value | None, path: str, scene: Scene, *, merged: bool
) -> tuple[Fate, Change | None]:
    """The fate of a signed text or an id, and how it changed."""
    gone = _NO_ID if value.role is Role.ID else _NO_TEXT
    if now is None or now.state in gone:
        return Fate.DROPPED, None
    if now.digest == value.digest:
        return Fate.INTACT, None
    if value.role is Role.ID:
        return Fate.MODIFIED, Change(Cause.REPLACED)
    if merged:
        return Fate.MERGED, None
    sample = scene.probe.sample(path, value.artifact, value.size, binary=False)
    return Fate.MODIFIED, diagnose(value, sample)


class Orphan(NamedTuple):
    """An item, `which` one of its turn, that is sent without the one it came with."""

    which: int
    placed: Placed
    traits: frozenset[Trait] = NO_TRAITS


def orphans(turn: Turn, pairs: Mapping[int, Placed], scene: Scene) -> Iterator[Orphan]:
    """Items that kept their server id and stand without the item they came with.

    A paired item (reasoning) and the group that follows it up to the next paired item need each
    other: the reasoning needs the first of the group as its next item, each member needs the
    reasoning. A reference to a stored item is that item. What followed where the answer was cut off
    never came, and is missed all the same where somebody else speaks next.
    """
    names = scene.names
    if not any(block.type in names.paired for block in turn.blocks):
        return
    here = {**scene.references(turn), **pairs}
    for index, block in enumerate(turn.blocks):
        if block.type not in names.paired:
            continue
        group = _group(turn, index, names)
        cut_off = index == len(turn.blocks) - 1 and not turn.ended
        if not (group or cut_off):
            continue
        one = here.get(index)
        followers = {i: here[i] for i in group if i in here}
        if one is None:
            for i, placed in followers.items():
                if placed[1].has_server_id:
                    yield Orphan(i, placed)
        elif one[1].has_server_id:
            behind = all(slot > one[0] for slot, _ in followers.values())  # else it is reordered
            parted = behind and _parted(scene, turn, one[0])
            lost = not followers or (behind and group[0] not in followers)
            if parted if cut_off else parted or lost:
                yield Orphan(index, one)
            elif followers and behind:
                yield from _mispaired(scene, turn, index, one, followers)


def _mispaired(
    scene: Scene, turn: Turn, index: int, one: Placed, followers: Mapping[int, Placed]
) -> Iterator[Orphan]:
    """The row of a paired item whose next item is there, but not as it has to be known by."""
    first = min(followers, key=lambda i: followers[i][0])
    came, placed = turn.blocks[first], followers[first]
    sent = placed[1]
    known = not {*sent.anchors}.isdisjoint(came.anchors)
    if _interposed(scene, turn, one[0], placed[0]):
        yield Orphan(index, one, frozenset({Trait.UNSURE_PAIR}))
    elif not {*sent.anchors}.isdisjoint(turn.blocks[index].anchors):
        yield Orphan(first, placed, frozenset({Trait.UNSURE_PAIR}))
    elif came.has_server_id and not known and came.type in scene.names.paired_by_id:
        yield Orphan(index, one, frozenset({Trait.ID_LOST}))


def _interposed(scene: Scene, turn: Turn, start: SlotAt, end: SlotAt) -> bool:
    """Whether a text that is none of the turn's is between two of its items."""
    said = {block.payload for block in turn.blocks if block.kind is Kind.TEXT}
    return any(
        block.kind is Kind.TEXT and block.payload not in said
        for block in _between(scene, start, end)
    )


def _between(scene: Scene, start: SlotAt, end: SlotAt) -> list[Block]:
    """The blocks between two places of the same message or of neighbouring ones."""
    return [
        block
        for at in range(start[0], min(end[0], start[0] + _NEAR) + 1)
        for index, block in enumerate(scene.messages[at].blocks)
        if start < (at, index) < end
    ]


def _parted(scene: Scene, turn: Turn, slot: SlotAt) -> bool:
    """Whether somebody else, or the model in another turn, speaks right behind a place."""
    at, index = slot
    if index + 1 < len(scene.messages[at].blocks) or at + 1 >= len(scene.messages):
        return False
    other = scene.lineage.owner.get((at + 1, 0), turn.number) != turn.number
    return other or scene.messages[at + 1].speaker is not Speaker.MODEL


def _group(turn: Turn, index: int, names: Names) -> list[int]:
    group = []
    for i in range(index + 1, len(turn.blocks)):
        block = turn.blocks[i]
        if block.type in names.paired or block.kind is Kind.COMPACTION:
            break
        if block.type in names.orphans:
            group.append(i)
    return group
