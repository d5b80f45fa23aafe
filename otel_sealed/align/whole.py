"""What a turn shows as a whole: where it stands, and whether its boundaries held."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise

from otel_sealed.align.pair import Placed
from otel_sealed.align.scene import Account, Held, Scene, same_artifact
from otel_sealed.model import Block, Fate, Kind, Role, Shadow, SlotAt, State, Trait, Turn, Value
from otel_sealed.steps import spend
from otel_sealed.wire.search import Shadows

_MAX_PIECES = 4


def home(scene: Scene, turn: Turn, pairs: dict[int, Placed]) -> int | None:
    """Index of the message most of the turn is in.

    Where nothing of it is there, but results of its calls are, it is under way and should be before
    them; else None.
    """
    slots = [slot for slot, _ in pairs.values()] or scene.part(turn).slots
    if not slots:
        return scene.answered(turn)
    counts: dict[int, int] = {}
    for at, _ in slots:
        counts[at] = counts.get(at, 0) + 1
    return max(counts, key=lambda at: (counts[at], at), default=None)


def shape(scene: Scene, turn: Turn, pairs: dict[int, Placed]) -> Fate | None:
    """`split` or `reordered` where the turn as a whole is, which each of its seals then has.

    A step is its calls and the reasoning before them, unless that is an item that must be paired:
    parted from its calls it is orphaned. Where every message of the model may be a step, one that
    begins with an unsigned call of the turn is a piece of it, too.
    """
    kinds = {Kind.CALL} if scene.names.paired else {Kind.CALL, Kind.REASONING}
    step = [(turn.blocks[i].kind, slot) for i, (slot, _) in pairs.items()]
    runs = {scene.run_of[slot[0]] for kind, slot in step if kind in kinds}
    if len(runs) > 1 and any(kind is Kind.CALL for kind, _ in step):
        return Fate.SPLIT
    if scene.names.messages_are_steps and unsigned_steps(scene, turn, pairs):
        return Fate.SPLIT
    spend(2 * len(turn.blocks))
    if all(pairs[i][0] < pairs[j][0] for i, j in pairwise(sorted(pairs))):
        return None
    last = last_sealed = (-1, -1)
    reasoned = False
    for i in sorted(pairs):
        slot, block = pairs[i][0], turn.blocks[i]
        if slot < last_sealed or (block.sealed and slot < last):
            return Fate.REORDERED
        last = max(last, slot)
        if block.sealed:
            last_sealed = max(last_sealed, slot)
            reasoned = reasoned or block.kind is Kind.REASONING
    return Fate.REORDERED if reasoned and _shuffled(turn, pairs) else None


def unsigned_steps(scene: Scene, turn: Turn, pairs: dict[int, Placed]) -> frozenset[Trait]:
    """How a turn is cut so that a piece of it begins with a call that bears no seal at all.

    Nothing for a turn whose calls came without one, or whose pieces each begin with a value.
    """
    calls = [i for i, block in enumerate(turn.blocks) if block.kind is Kind.CALL]
    if not calls or not turn.blocks[calls[0]].sealed:
        return frozenset()
    first: dict[int, Placed] = {}
    for placed in sorted((pairs[i] for i in calls if i in pairs), key=lambda placed: placed[0]):
        first.setdefault(placed[0][0], placed)
    bare = [slot[0] for slot, sent in first.values() if not sent.sealed]
    if not bare or len(first) == 1:
        return frozenset()
    begun = {scene.run_of[at]: at for at in reversed(first)}
    alone = not {*bare} & {*begun.values()}  # each run itself begins with a value
    return frozenset({Trait.UNSIGNED_STEP, Trait.SAME_STEP} if alone else {Trait.UNSIGNED_STEP})


def _shuffled(turn: Turn, pairs: dict[int, Placed]) -> bool:
    """Whether what the model said stands behind calls of its message that it made after it.

    Of a text it said twice nobody can tell which one is left.
    """
    said = Counter(block.payload for block in turn.blocks)
    last: dict[int, dict[Kind, SlotAt]] = {}
    for i in sorted(pairs):
        slot, block = pairs[i][0], turn.blocks[i]
        if not (block.anchors or said[block.payload] == 1):
            continue
        before = last.setdefault(slot[0], {})
        if any(kind is not block.kind and other > slot for kind, other in before.items()):
            return True
        before[block.kind] = max(before.get(block.kind, slot), slot)
    return False


def closed_up(turn: Turn, pairs: dict[int, Placed]) -> frozenset[int]:
    """Indices of seals that now touch because what parted their two runs is gone (A5, A20).

    That is a marker, or a call, with its result where the server made that. Reasoning that is gone
    has a row of its own, which says as much.
    """
    spend(len(turn.blocks))
    touching: set[int] = set()
    for before, after in pairwise(sorted(pairs)):
        gone = turn.blocks[before + 1 : after]
        parted = any(block.kind in (Kind.MARKER, Kind.CALL) for block in gone)
        beside = pairs[before][0][0] == pairs[after][0][0]
        ends = turn.blocks[before].sealed and turn.blocks[after].sealed
        if parted and beside and ends and not any(b.sealed and b.reasons for b in gone):
            touching |= {before, after}
    return frozenset(touching)


def text_merged(scene: Scene, turn: Turn, index: int, block: Block, here: Held) -> bool:
    """Whether the signed part now also holds the readable text of a neighbour."""
    if here.block.payload == block.payload or here.block.payload_chars <= block.payload_chars:
        return False
    path = scene.path(here.slot)
    spoken, texts = scene.part(turn).shadows_near(index)
    used = [spoken[i] for i in scene.probe.composed(path, texts)]
    if used and (index in used or not block.payload):
        return used != [index]
    others = Shadows(text for i, text in zip(spoken, texts, strict=True) if i != index)
    own = Shadows((Shadow(block.payload, block.payload_chars),))
    if block.payload and not scene.probe.holds_at(path, own):
        return False
    return bool(scene.probe.holds_at(path, others))


def in_pieces(scene: Scene, turn: Turn) -> dict[int, list[Account]]:
    """The blocks of a turn that are there in pieces, and of each the pieces without its seal.

    One piece at most has the seal. The place of a block may be that of its text alone, or that of a
    piece of another one that lost its seal: what an earlier block is in pieces of is passed over.
    """
    found: dict[int, list[Account]] = {}
    taken: set[SlotAt] = set()
    for index, (slot, sent) in sorted(scene.part(turn).pairs.items()):
        block = turn.blocks[index]
        if not block.sealed:
            continue
        tried = [slot] if sent.sealed else [slot, *_near(scene, block, slot, taken)]
        cut = next(filter(None, (pieces(scene, one, block) for one in tried)), frozenset())
        bare = [one for one in cut if not scene.block(one).sealed]
        taken.update(bare)
        if cut:
            found[index] = [
                (at, value.artifact) for at in bare for value in scene.block(at).seals()
            ]
    return found


def _near(scene: Scene, block: Block, slot: SlotAt, taken: set[SlotAt]) -> Iterator[SlotAt]:
    """The next place of a message that is no other block's for certain, and the one before."""
    at, index = slot
    blocks = scene.messages[at].blocks
    own = {value.canon for value in block.seals()}
    for later in range(index + 1, len(blocks)):
        spend()
        others = (scene.claims(v) and v.canon not in own for v in blocks[later].seals())
        if (at, later) not in taken and not any(others):
            yield at, later
            break
    if index:
        yield at, index - 1


def pieces(scene: Scene, slot: SlotAt, block: Block) -> frozenset[SlotAt]:
    """The places, `slot` among them, that have a sealed block in pieces, as a stream brought it.

    Neighbours of one kind, of which none but the one at `slot` has a seal: their texts set end to
    end are its signed text; where it has no such text there is nothing in them. Empty where it is
    in one piece, or not there.
    """
    signed = next((v for v in block.values if v.role is Role.SIGNED), None)
    if signed is None:
        return _hollow(scene, slot, block)
    if signed.state is not State.PRESENT:
        return frozenset()
    before = _run(scene, slot, signed.size, -1)
    after = _run(scene, slot, signed.size, 1)
    if not (before or after):
        return frozenset()
    places, own = [*reversed(before), slot, *after], len(before)
    sums = [0, *accumulate(scene.probe.text_size(scene.path(place)) for place in places)]
    ends = {total: at for at, total in enumerate(sums) if at > own}  # the widest of a sum
    for first, total in enumerate(sums[: own + 1]):
        last = ends.get(total + signed.size, 0)
        if last - first > 1:
            paths = [scene.path(place) for place in places[first:last]]
            if scene.probe.joined_texts(paths) == signed.digest:
                return frozenset(places[first:last])
    return frozenset()


def _hollow(scene: Scene, slot: SlotAt, block: Block) -> frozenset[SlotAt]:
    """A place and its neighbours that are blocks of reasoning of that type with nothing in them."""
    if block.kind is not Kind.REASONING:
        return frozenset()
    near = (*_run(scene, slot, 0, -1), *_run(scene, slot, 0, 1))
    empty = [at for at in near if scene.block(at).type == block.type]
    return frozenset((slot, *empty)) if empty else frozenset()


def _run(scene: Scene, slot: SlotAt, most: int, step: int) -> list[SlotAt]:
    """The next places of a message with blocks of one kind and no seal, of `most` bytes of text.

    An empty block that another one of the turn became is no piece of this one.
    """
    at, index = slot
    blocks = scene.messages[at].blocks
    kind = blocks[index].kind
    found: list[SlotAt] = []
    while 0 <= (index := index + step) < len(blocks) and most >= 0:
        spend()
        if blocks[index].sealed or blocks[index].kind is not kind:
            break
        size = scene.probe.text_size(scene.path((at, index)))
        if not size and (at, index) in scene.counterparts:
            break
        most -= size
        found.append((at, index))
    return found


def cut_up(scene: Scene, turn: Turn, slot: SlotAt, value: Value) -> tuple[SlotAt, ...]:
    """The sealed slots of a turn, from `slot` on, that hold one seal in pieces, or none."""
    slots = scene.part(turn).slots
    after = bisect_right(slots, slot)
    later = slots[after : after + _MAX_PIECES]
    return next(filter(None, (_pieces(scene, start, value) for start in (slot, *later))), ())


def _pieces(scene: Scene, slot: SlotAt, value: Value) -> tuple[SlotAt, ...]:
    """A slot and the sealed slots right after it, if they hold one seal in pieces."""
    places: list[SlotAt] = []
    size = 0
    for place in _following(scene, slot):
        now = same_artifact(scene.block(place), value.artifact)
        if now is None or now.state is not State.PRESENT:
            break
        places.append(place)
        size += now.size
        if size >= value.size:
            break
    named = tuple((scene.path(place), value.artifact) for place in places)
    whole = len(places) > 1 and scene.probe.joined_slots(named) == value.canon
    return tuple(places) if whole else ()


def _following(scene: Scene, slot: SlotAt) -> list[SlotAt]:
    """The next few places from `slot` on, over the edges of messages that hold one block each."""
    places: list[SlotAt] = []
    at, index = slot
    while at < min(slot[0] + _MAX_PIECES, len(scene.messages)) and len(places) < _MAX_PIECES:
        if index < len(scene.messages[at].blocks):
            places.append((at, index))
            index += 1
        else:
            at, index = at + 1, 0
    spend(len(places))
    return places
