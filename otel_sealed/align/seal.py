"""The fate of one received seal: where are its bytes, and if nowhere, what stands for them?"""

from __future__ import annotations

from collections.abc import Sequence

from otel_sealed.align.scene import Held, Placed, Scene, same_artifact
from otel_sealed.align.whole import cut_up, pieces, text_merged
from otel_sealed.diagnose import diagnose
from otel_sealed.model import (
    Block,
    Cause,
    Fate,
    Finding,
    Kind,
    Locus,
    SlotAt,
    Speaker,
    State,
    Turn,
    Value,
)
from otel_sealed.model.record import replace
from otel_sealed.wire.search import Spot, Stray

_SPOT_CAUSES = {Spot.ID: Cause.IN_ID, Spot.TEXT: Cause.IN_TEXT, Spot.SIGNED: Cause.IN_TEXT}


def seal_row(
    scene: Scene,
    turn: Turn,
    index: int,
    value: Value,
    placed: Placed | None,
    shape: Fate | None,
) -> tuple[Finding, bool]:
    """The row of one seal that came in, and whether a seal stands in its slot now."""
    block = turn.blocks[index]
    found = scene.seals.get(value.canon, [])
    row = Finding(value.artifact, Fate.INTACT, digest_in=value.digest, size_in=value.size)
    if turn.number in scene.held or scene.kept(turn, block):
        return _held(scene, row, scene.referrals(turn, block), value, found), bool(found)
    if not found or _taken(scene, value, found, placed):
        row, there = _either_absent(scene, row, turn, index, value, placed)
        return _by_sdk(row) if value.lost else row, there
    here = _choose(scene, value, found, placed)
    scene.explain(value.canon)
    fate, cause = _broken(scene, turn, index, block, here) or _moved(
        scene, turn, block, value, placed, here, shape
    )
    locus = None if fate is Fate.INTACT else Locus.PROCESS
    sent = here.value
    row = replace(
        row,
        fate=fate,
        cause=cause,
        locus=locus,
        returned=scene.path(here.slot),
        digest_out=sent.digest,
        size_out=sent.size,
    )
    return row, True


def _by_sdk(row: Finding) -> Finding:
    """The SDK's own object lacked it: nobody who builds on that object could have sent it."""
    if row.fate is Fate.MERGED:  # it ran together what came apart
        return replace(row, locus=Locus.SDK)
    if row.fate not in (Fate.DROPPED, Fate.MODIFIED):
        return row
    return replace(row, fate=Fate.SDK_LOSSY, locus=Locus.SDK)


def sent_as(row: Finding, value: Value, path: str | None = None) -> Finding:
    """`row` with the value that goes out and where it stands."""
    returned = row.returned if path is None else path
    return replace(row, digest_out=value.digest, size_out=value.size, returned=returned)


def _held(
    scene: Scene, row: Finding, referrals: Sequence[Placed], value: Value, found: list[Held]
) -> Finding:
    """The server keeps it: absence is right, sending it as well is once too often.

    So is a second reference, which is the item once more.
    """
    if not found and len(referrals) > 1:
        again = scene.path(referrals[1][0])
        return replace(row, fate=Fate.DUPLICATED, returned=again, locus=Locus.PROCESS)
    if not found:
        return replace(row, fate=Fate.SERVER_HELD)
    scene.explain(value.canon)
    row = sent_as(row, found[0].value, scene.path(found[0].slot))
    return replace(row, fate=Fate.DUPLICATED, cause=Cause.SERVER_STATE, locus=Locus.PROCESS)


def _taken(scene: Scene, value: Value, found: list[Held], placed: Placed | None) -> bool:
    """Whether a value that came several times stands in fewer places, and none of them is ours."""
    ours = placed is not None and scene.held_at(value.canon, placed[0]) is not None
    return not ours and len(found) < scene.issued[value.canon]


def _choose(scene: Scene, value: Value, found: list[Held], placed: Placed | None) -> Held:
    """The place that answers for this issue of the value: its counterpart's, else the next."""
    ours = scene.held_at(value.canon, placed[0]) if placed is not None else None
    if ours is not None:
        return ours
    nth = scene.taken.get(value.canon, 0)
    scene.taken[value.canon] = nth + 1
    return found[min(nth, len(found) - 1)]


def _broken(
    scene: Scene, turn: Turn, index: int, block: Block, here: Held
) -> tuple[Fate, Cause | None] | None:
    """What outweighs the place: an outdated, foreign or merged carrier."""
    older = scene.newest is not None and (turn.number, index) < scene.newest
    if block.kind is Kind.COMPACTION and older and scene.carries != scene.newest:
        return Fate.STALE, None
    if scene.foreign(turn):
        return Fate.FOREIGN, None
    if text_merged(scene, turn, index, block, here):
        return Fate.MERGED, None
    return None


def _moved(
    scene: Scene,
    turn: Turn,
    block: Block,
    value: Value,
    placed: Placed | None,
    here: Held,
    shape: Fate | None,
) -> tuple[Fate, Cause | None]:
    """The fate of a seal whose bytes stand in a slot, by where that slot is."""
    if shape in (Fate.MERGED, Fate.SPLIT):
        return shape, None
    if here.value.artifact != value.artifact and turn.dialect == scene.names.dialect:
        return Fate.RETYPED, None  # on another wire of its vendor's it has another name
    if len(scene.seals[value.canon]) > scene.issued[value.canon]:
        return Fate.DUPLICATED, None
    spoken = scene.messages[here.slot[0]].speaker is Speaker.MODEL
    if here.block.kind is not block.kind or not spoken:
        ours = spoken and placed is not None and placed[0] == here.slot
        bare = ours and _bare(block, here.block)
        return (Fate.RETYPED, None) if bare else (Fate.MISPLACED, Cause.WRONG_SLOT)
    if placed is None or placed[0] != here.slot:
        if placed is not None and placed[0] in pieces(scene, here.slot, block):
            return Fate.SPLIT, None  # the text is next to its seal
        return Fate.MISPLACED, Cause.WRONG_SLOT
    if block.kind is Kind.TEXT and here.block.type != block.type:
        return Fate.RETYPED, None  # an answer that is sent as a thought, or the other way round
    if shape is Fate.REORDERED:
        return Fate.REORDERED, None
    if here.value.digest != value.digest and here.value.canon == value.canon:
        return Fate.MODIFIED, Cause.RE_ENCODED
    return Fate.INTACT, None


def _either_absent(
    scene: Scene, row: Finding, turn: Turn, index: int, value: Value, placed: Placed | None
) -> tuple[Finding, bool]:
    """The same, of whichever value of an item sealed in two ways more can be said about."""
    found = _absent(scene, row, turn, index, value, placed)
    twin = scene.twins.get(value.canon)
    if twin is None or not _vague(found[0]):
        return found
    other = replace(row, digest_in=twin.digest, size_in=twin.size)
    second = _absent(scene, other, turn, index, twin, placed)
    return found if _vague(second[0]) else second


def _vague(row: Finding) -> bool:
    """Whether nothing is known of a seal but that it is not where it was."""
    return row.fate is Fate.DROPPED or row.cause is Cause.REPLACED


def _bare(came: Block, sent: Block) -> bool:
    """Whether a part of nothing but its seal gained or lost the key of an empty text."""
    empty = not (came.payload_chars or sent.payload_chars)
    return empty and {came.kind, sent.kind} == {Kind.TEXT, Kind.MARKER}


def _absent(
    scene: Scene, row: Finding, turn: Turn, index: int, value: Value, placed: Placed | None
) -> tuple[Finding, bool]:
    """The fate of a seal whose bytes stand in no slot, and whether another value does."""
    now = same_artifact(placed[1], value.artifact) if placed is not None else None
    there = now is not None and now.state is State.PRESENT
    if scene.covered(turn, index) and not there:
        return replace(row, fate=Fate.SUPERSEDED), False
    row = replace(row, locus=Locus.PROCESS)
    if placed is not None:
        if now is not None and there:
            scene.explained.add((placed[0], now.artifact))
            if now.canon in scene.names.placeholders and not scene.foreign(turn):
                stray = scene.stray(value)  # a dummy in its place: is it itself anywhere else?
                if stray is not None:
                    return _astray(scene, row, turn, stray), False
            row = sent_as(row, now, scene.path(placed[0]))
            return _changed(scene, row, turn, index, value, placed[0], now)
        row = replace(row, returned=scene.path(placed[0]))
        if cut_up(scene, turn, placed[0], value):
            return replace(row, fate=Fate.SPLIT), True
    stray = scene.stray(value)
    if stray is not None:
        return _astray(scene, row, turn, stray), False
    block = turn.blocks[index]
    path = scene.part(turn).substitute(block)
    if path is not None:
        return replace(row, fate=Fate.SUBSTITUTED, returned=path), False
    if block.kind is Kind.REASONING and block.payload in scene.part(turn).swallowed:
        return replace(row, fate=Fate.MERGED), False
    path = scene.part(turn).dummy if placed is None and block.kind is Kind.CALL else None
    if path is not None:
        return replace(row, fate=Fate.FABRICATED, cause=Cause.PLACEHOLDER, returned=path), False
    cause = None if scene.regions.get(turn.number) else Cause.WHOLE_TURN
    return replace(row, fate=Fate.DROPPED, cause=cause), False


def _changed(
    scene: Scene, row: Finding, turn: Turn, index: int, value: Value, slot: SlotAt, now: Value
) -> tuple[Finding, bool]:
    """Another value stands in the seal's own slot."""
    path, artifact = scene.path(slot), value.artifact
    if now.canon in scene.names.placeholders:
        return replace(row, fate=Fate.FABRICATED, cause=Cause.PLACEHOLDER), False
    if scene.probe.slot_holds(path, artifact, scene.part(turn).stand_ins.of(turn.blocks[index])):
        return replace(row, fate=Fate.SUBSTITUTED, cause=Cause.READABLE_TEXT), False
    if scene.probe.joined_seals(path, artifact, scene.near(value)) > 1:
        return replace(row, fate=Fate.MERGED, cause=Cause.TWO_SEALS), True
    if cut_up(scene, turn, slot, value):
        return replace(row, fate=Fate.SPLIT), True
    binary = artifact in scene.names.binary
    sample = scene.probe.sample(path, artifact, value.size, binary=binary)
    change = diagnose(value, sample, scene.issued.keys())
    crossed = change.cause is Cause.DOUBLE_ENCODED and scene.foreign(turn)
    fate = Fate.FOREIGN if crossed else Fate.MODIFIED
    return replace(row, fate=fate, cause=change.cause, detail=change.detail), True


def _astray(scene: Scene, row: Finding, turn: Turn, stray: Stray) -> Finding:
    """The bytes stand somewhere that is no slot for them."""
    row = replace(row, returned=stray.path)
    slot = scene.slot_at(stray.path) if stray.spot is Spot.SLOT else None
    if slot is not None:
        scene.explained.update((slot, held.artifact) for held in scene.block(slot).seals())
    cause = _SPOT_CAUSES.get(stray.spot, Cause.WRONG_SLOT)
    if scene.foreign(turn):
        encoded = Cause.DOUBLE_ENCODED if stray.depth else None
        return replace(row, fate=Fate.FOREIGN, cause=cause if stray.spot is Spot.ID else encoded)
    if stray.depth and stray.spot is Spot.SLOT:
        return replace(row, fate=Fate.MODIFIED, cause=Cause.DOUBLE_ENCODED)
    if stray.part and stray.spot is Spot.SLOT:  # glued to another seal, in that one's slot
        return replace(row, fate=Fate.MERGED, cause=Cause.TWO_SEALS)
    return replace(row, fate=Fate.MISPLACED, cause=cause)
