"""The fates of all artifacts of one request.

Theory of operation. The lineage says which turns are expected and which places belong to which
turn. Within a turn the sent blocks are paired with the received ones (`pair`); each received seal
is then looked for: in the slot of its counterpart, in any other slot, and, only if it is in none,
anywhere in the body (`seal`). The first fate of the precedence that holds is its row. Companions
(signed text, id) get a row only beside a seal that is there. What the turn shows as a whole (split
over steps, reordered) is computed once for the turn (`whole`). At the end stand the seals of the
request that no turn explains. Nothing here knows a provider, a model or a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from otel_sealed.align.companions import companions, echoes, orphans
from otel_sealed.align.pair import pair
from otel_sealed.align.scene import (
    Outcome,
    Placed,
    Scene,
    as_returned,
    same_artifact,
)
from otel_sealed.align.seal import seal_row, sent_as
from otel_sealed.align.whole import closed_up, home, pieces, shape, unsigned_steps
from otel_sealed.contract import LEAST_SEAL, Names
from otel_sealed.model import (
    Block,
    Cause,
    Confidence,
    Fate,
    Finding,
    Kind,
    Lineage,
    Locus,
    Message,
    Origin,
    Role,
    SlotAt,
    State,
    Trait,
    Turn,
    Value,
)
from otel_sealed.model.record import replace
from otel_sealed.steps import spend
from otel_sealed.wire.search import Search

_ELSEWHERE = frozenset({Fate.MISPLACED, Fate.RETYPED})


def align(
    lineage: Lineage,
    messages: tuple[Message, ...],
    names: Names,
    probe: Search,
    vendor_of: Callable[[bytes], str],
) -> list[Outcome]:
    """Every artifact that was expected or sent, in order of receipt.

    `vendor_of` tells, by `canon` digest, the vendor that minted a value of any conversation (empty
    when nobody here saw it).
    """
    if not lineage.turns and not any(b.sealed for m in messages for b in m.blocks):
        return []
    lineage, twins = as_returned(lineage, messages)
    scene = Scene(lineage, messages, names, probe, vendor_of, twins)
    rows = [row for turn in scene.expected for row in _turn(scene, turn)]
    return [*rows, *_unexplained(scene)]


def _turn(scene: Scene, turn: Turn) -> Iterator[Outcome]:
    """All rows of one received turn."""
    if turn.number not in scene.regions:
        yield from _absent(scene, turn)
        return
    pairs = pair(turn.blocks, scene.regions[turn.number])
    scene.counterparts.update(slot for slot, _ in pairs.values())
    whole = shape(scene, turn, pairs)
    at = home(scene, turn, pairs)
    last = max((slot[0] for slot, _ in pairs.values()), default=at)
    touching = closed_up(turn, pairs)
    for index, block in enumerate(turn.blocks):
        placed = pairs.get(index)
        stands = placed[0][0] if placed else at
        joined = Fate.MERGED if index in touching else whole
        for row in _block(scene, turn, index, placed, joined):
            dated = _received(scene, turn, block, row)
            if row.fate is Fate.SPLIT:
                dated = replace(dated, traits=row.traits | unsigned_steps(scene, turn, pairs))
            end = last if row.fate is Fate.SPLIT else stands
            yield Outcome(dated, turn, index, block, placed[1] if placed else None, stands, end)
    yield from _made_up(scene, turn, pairs)
    if turn.number not in scene.held and not scene.covered(turn, len(turn.blocks) - 1):
        for row, index, (slot, sent) in orphans(turn, pairs, scene):
            block = turn.blocks[index]
            dated = _received(scene, turn, block, row)
            yield Outcome(dated, turn, index, block, sent, slot[0])


def _absent(scene: Scene, turn: Turn) -> Iterator[Outcome]:
    """The rows of a turn nothing of which stands in the request: those of its seals.

    Where the results of its calls are sent it is under way, and should stand before them.
    """
    at = scene.answered(turn)
    for index, block in enumerate(turn.blocks):
        for value in block.seals():
            if value.state is State.PRESENT:
                row, _ = seal_row(scene, turn, index, value, None, None)
                yield Outcome(_received(scene, turn, block, row), turn, index, block, None, at)


def _block(
    scene: Scene, turn: Turn, index: int, placed: Placed | None, whole: Fate | None
) -> Iterator[Finding]:
    block = turn.blocks[index]
    seals = [v for v in block.seals() if v.state is State.PRESENT]
    if not seals:
        if placed is not None and turn.number not in scene.held:
            yield from echoes(block, placed, scene)
            yield from _never_sealed(scene, turn, block, placed)
        return
    present = moved = merged = False
    own = scene.path(placed[0]) if placed else None
    cut = _in_pieces(scene, block, placed) if placed else False
    for value in seals:
        row, there = seal_row(scene, turn, index, value, placed, whole)
        if cut and row.fate is Fate.INTACT and not _signs(block):
            row = replace(row, fate=Fate.SPLIT, locus=Locus.PROCESS)
        if cut and row.fate is Fate.SPLIT:
            row = replace(row, traits=row.traits | {Trait.UNSIGNED_PART})
        dummy = _in_its_place(scene, value, placed) if row.fate in _ELSEWHERE else None
        if dummy is not None:
            row = replace(row, traits=row.traits | {Trait.DUMMY_IN_PLACE})
        yield row
        if dummy is not None:
            yield dummy
        present = present or there
        abroad = row.fate is Fate.FOREIGN and row.returned != own
        moved = moved or abroad or row.fate is Fate.RETYPED
        merged = merged or row.fate is Fate.MERGED
    if present and placed and not moved and _alike(block, placed[1]):
        yield from companions(block, placed, scene, scene.probe, merged=merged, cut=cut)


def _signs(block: Block) -> bool:
    """Whether the seal of a block vouches for a text beside it."""
    return any(value.role is Role.SIGNED for value in block.values)


def _in_pieces(scene: Scene, block: Block, placed: Placed) -> bool:
    """Whether a block is there in pieces of which one at most has its seal; they are explained.

    Its place may be that of the text alone, or that of a piece of another one that lost its seal.
    """
    tried = [placed[0]] if placed[1].sealed else [placed[0], *_near(scene, placed[0])]
    cut = next(filter(None, (pieces(scene, slot, block) for slot in tried)), frozenset())
    bare = [slot for slot in cut if not scene.block(slot).sealed]
    scene.explained.update((slot, v.artifact) for slot in bare for v in scene.block(slot).seals())
    return bool(cut)


def _near(scene: Scene, slot: SlotAt) -> Iterator[SlotAt]:
    """The next place of a message that nothing explains yet, and the one before."""
    at, index = slot
    blocks = scene.messages[at].blocks
    for later in range(index + 1, len(blocks)):
        spend()
        if not any(((at, later), v.artifact) in scene.explained for v in blocks[later].seals()):
            yield at, later
            break
    if index:
        yield at, index - 1


def _in_its_place(scene: Scene, value: Value, placed: Placed | None) -> Finding | None:
    """The row of a documented dummy in the slot of a seal that is somewhere else."""
    now = same_artifact(placed[1], value.artifact) if placed is not None else None
    if placed is None or now is None or now.canon not in scene.names.placeholders:
        return None
    scene.explained.add((placed[0], value.artifact))
    row = Finding(value.artifact, Fate.FABRICATED, cause=Cause.PLACEHOLDER, locus=Locus.PROCESS)
    return sent_as(row, now, scene.path(placed[0]))


def _alike(block: Block, sent: Block) -> bool:
    """Whether what went out has the same companions to be compared."""
    if block.type == sent.type:
        return True
    return [v.artifact for v in block.values] == [v.artifact for v in sent.values]


def _never_sealed(scene: Scene, turn: Turn, block: Block, placed: Placed) -> Iterator[Finding]:
    """A block that came without the seal its type has (cut stream, not asked for)."""
    values = block.seals()
    if not values:
        return
    slot, sent = placed
    came, artifact = values[0], values[0].artifact
    now = same_artifact(sent, artifact)
    row = Finding(artifact, Fate.UNSEALED, returned=scene.path(slot), locus=Locus.SOURCE)
    if came.state is State.CUT:
        row = replace(row, digest_in=came.digest, size_in=came.size)
    if now is not None and now.state is State.PRESENT:
        if scene.issued.get(now.canon) or (slot, artifact) in scene.explained:
            return  # a copy of another seal, or that seal encoded over: its own row says so
        scene.explained.add((slot, artifact))
        dummy = now.canon in scene.names.placeholders
        if dummy or came.state is not State.CUT:
            cause = Cause.PLACEHOLDER if dummy else None
            row = replace(row, fate=Fate.FABRICATED, cause=cause, locus=Locus.PROCESS)
        yield sent_as(row, now)
    elif block.kind is Kind.REASONING:
        cut = came.state in (State.EMPTY, State.CUT) or not turn.complete
        yield replace(row, fate=Fate.UNSEALED if cut else Fate.NOT_REQUESTED)


def _made_up(scene: Scene, turn: Turn, pairs: dict[int, Placed]) -> Iterator[Outcome]:
    """Sealed blocks amid a turn that came in whole and brought no such thing.

    Where nothing but text came, and nothing of that is there as it was, the place is the turn's all
    the same; but not a seal that somebody may have issued. Prose in a seal's slot is nobody's: it
    is made up where the turn is, before its first item and after its last, too.
    """
    if not turn.complete or turn.number in scene.held:
        return
    recast = not pairs
    if recast and any(b.kind is not Kind.TEXT or b.sealed for b in turn.blocks):
        return
    region = scene.regions.get(turn.number, [])
    taken = {slot for slot, _ in pairs.values()}
    slots = sorted(taken or (slot for slot, _ in region))
    full = {at for at, _ in slots if len(scene.messages[at].blocks) > 1}
    for slot, sent in region:
        amid = slot[0] in full or slots[0] < slot < slots[-1]
        if slot in taken or not sent.values:
            continue
        for value in sent.seals():
            if not (amid or scene.probe.prose(scene.path(slot), value.artifact)):
                continue
            known = value.canon in scene.issued or scene.vendor_of(value.canon)
            present = value.state is State.PRESENT
            if (slot, value.artifact) in scene.explained or known:
                continue
            if not present and sent.kind is not Kind.REASONING:
                continue
            if recast and value.size >= LEAST_SEAL:
                continue
            scene.explained.add((slot, value.artifact))
            row = Finding(value.artifact, Fate.FABRICATED, locus=Locus.PROCESS)
            cause = Cause.PLACEHOLDER if value.canon in scene.names.placeholders else None
            row = replace(sent_as(row, value, scene.path(slot)), cause=cause)
            yield Outcome(row, turn, 0, None, sent, slot[0])


def _unexplained(scene: Scene) -> Iterator[Outcome]:
    """Seals of the request that nobody here saw coming in, or that another vendor minted.

    As they are, or under any layer of encoding.
    """
    for held in scene.sealed():
        if (held.slot, held.value.artifact) in scene.explained:
            continue
        path = scene.path(held.slot)
        row = sent_as(Finding(held.value.artifact, Fate.UNKNOWN), held.value, path)
        forms = [held.value.canon, *scene.probe.encoded(path, held.value.artifact)]
        if not scene.names.placeholders.isdisjoint(forms):
            plain = held.value.canon in scene.names.placeholders
            cause = Cause.PLACEHOLDER if plain else Cause.DOUBLE_ENCODED
            row = replace(row, fate=Fate.FABRICATED, cause=cause, locus=Locus.PROCESS)
        elif scene.abroad(next(filter(None, map(scene.vendor_of, forms)), "")):
            row = replace(row, fate=Fate.FOREIGN, locus=Locus.PROCESS)
        yield Outcome(row, None, 0, None, held.block, held.slot[0])


def _received(scene: Scene, turn: Turn, block: Block, row: Finding) -> Finding:
    path = f"{turn.path}.{block.sub}" if turn.path and block.sub else turn.path or block.sub
    sure = turn.number not in scene.lineage.inferred or row.digest_in == row.digest_out
    return replace(
        row,
        received=Origin(turn.exchange, path, turn.origin, turn.model),
        confidence=Confidence.PROVEN if sure else Confidence.INFERRED,
    )
