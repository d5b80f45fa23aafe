"""Rows that stand beside a present seal: signed text, ids, the carrier's envelope, orphans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from otel_sealed.align.scene import Placed, Scene, same_artifact
from otel_sealed.contract import Names
from otel_sealed.diagnose import diagnose
from otel_sealed.model import (
    Block,
    Cause,
    Fate,
    Finding,
    Kind,
    Locus,
    Role,
    SlotAt,
    Speaker,
    State,
    Trait,
    Turn,
    Value,
)
from otel_sealed.model.record import replace
from otel_sealed.wire.search import Search

_NEAR = 8
"""Items after one: what is further off is not looked at for what it is paired with."""
_NO_TEXT = frozenset({State.ABSENT, State.NULL})
_NO_ID = _NO_TEXT | {State.EMPTY}
"""An empty id is taken for none; an empty text is a text."""


def companions(
    block: Block, placed: Placed, scene: Scene, probe: Search, *, merged: bool, cut: bool
) -> Iterator[Finding]:
    """Signed text and id of `block`, compared with its counterpart, then its envelope.

    `cut`: the text is there in pieces.
    """
    slot, sent = placed
    path = scene.path(slot)
    for value in block.values:
        if value.role in (Role.SIGNED, Role.ID) and value.state in (State.PRESENT, State.EMPTY):
            now = same_artifact(sent, value.artifact)
            row = _companion(value, now, path, probe, merged=merged)
            if cut and value.role is Role.SIGNED:
                row = replace(_with(row, Fate.SPLIT, None), traits=frozenset({Trait.UNSIGNED_PART}))
            yield row
    envelope = scene.names.envelopes.get(block.type, "")
    if envelope and sent.type == block.type:
        traits = _other_envelope(block, sent, envelope, scene.names)
        if traits is not None:
            row = Finding(envelope, Fate.ENVELOPE_MODIFIED, returned=path, locus=Locus.PROCESS)
            yield replace(row, traits=traits)


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


def echoes(block: Block, placed: Placed, scene: Scene) -> Iterator[Finding]:
    """Readable state that is only to be sent back as it came; a row only where it is not."""
    slot, sent = placed
    for value in block.values:
        if value.role is not Role.ECHO or value.state is not State.PRESENT:
            continue
        now = same_artifact(sent, value.artifact)
        if now is None or now.digest != value.digest:
            lost = now is None or now.state is not State.PRESENT
            yield Finding(
                value.artifact,
                Fate.DROPPED if lost else Fate.MODIFIED,
                returned=scene.path(slot),
                size_in=value.size,
                locus=Locus.PROCESS,
            )


def _companion(
    value: Value, now: Value | None, path: str, probe: Search, *, merged: bool
) -> Finding:
    row = Finding(
        value.artifact,
        Fate.INTACT,
        returned=path,
        digest_in=value.digest,
        size_in=value.size,
        digest_out=now.digest if now else b"",
        size_out=now.size if now and now.state is not State.ABSENT else None,
    )
    gone = _NO_ID if value.role is Role.ID else _NO_TEXT
    if now is None or now.state in gone:
        return _with(row, Fate.DROPPED, None)
    if now.digest == value.digest:
        return row
    if value.role is Role.ID:
        return _with(row, Fate.MODIFIED, Cause.REPLACED)
    if merged:
        return _with(row, Fate.MERGED, None)
    sample = probe.sample(path, value.artifact, value.size, binary=False)
    change = diagnose(value, sample)
    return _with(row, Fate.MODIFIED, change.cause, change.detail)


def _with(row: Finding, fate: Fate, cause: Cause | None, detail: str = "") -> Finding:
    return Finding(
        row.artifact,
        fate,
        returned=row.returned,
        digest_in=row.digest_in,
        digest_out=row.digest_out,
        size_in=row.size_in,
        size_out=row.size_out,
        cause=cause,
        detail=detail,
        locus=Locus.PROCESS,
    )


def orphans(
    turn: Turn, pairs: Mapping[int, Placed], scene: Scene
) -> Iterator[tuple[Finding, int, Placed]]:
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
                    yield _orphan(names.orphans[turn.blocks[i].type], scene, placed), i, placed
        elif one[1].has_server_id:
            behind = all(slot > one[0] for slot, _ in followers.values())  # else it is reordered
            parted = behind and _parted(scene, turn, one[0])
            lost = not followers or (behind and group[0] not in followers)
            if parted if cut_off else parted or lost:
                yield _orphan(names.orphans[block.type], scene, one), index, one
            elif followers and behind:
                yield from _mispaired(scene, turn, index, one, followers)


def _mispaired(
    scene: Scene, turn: Turn, index: int, one: Placed, followers: Mapping[int, Placed]
) -> Iterator[tuple[Finding, int, Placed]]:
    """The row of a paired item whose next item is there, but not as it has to be known by."""
    first = min(followers, key=lambda i: followers[i][0])
    came, placed = turn.blocks[first], followers[first]
    block, sent = turn.blocks[index], placed[1]
    known = not {*sent.anchors}.isdisjoint(came.anchors)
    orphan = _orphan(scene.names.orphans[block.type], scene, one)
    if _interposed(scene, turn, one[0], placed[0]):
        yield replace(orphan, traits=frozenset({Trait.UNSURE_PAIR})), index, one
    elif not {*sent.anchors}.isdisjoint(block.anchors):
        row = _orphan(scene.names.orphans[came.type], scene, placed)
        yield replace(row, traits=frozenset({Trait.UNSURE_PAIR})), first, placed
    elif came.has_server_id and not known and came.type in scene.names.paired_by_id:
        yield replace(orphan, traits=frozenset({Trait.ID_LOST})), index, one


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


def _orphan(name: str, scene: Scene, placed: Placed) -> Finding:
    return Finding(name, Fate.ORPHANED, returned=scene.path(placed[0]), locus=Locus.PROCESS)
