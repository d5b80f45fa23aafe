"""The fates of all artifacts of one request.

Theory of operation. The lineage says which turns are expected and which places belong to which
turn. Within a turn the sent blocks are paired with the received ones (`pair`); where each seal is
that is in some slot is worked out once for the request (`Scene.answering`). Then each received seal
has its fate by one table (`table`), and with it the places it accounts for. Only when all of that
is known are the places asked about that no received value accounts for: blocks that came without a
seal and have one now, seals amid a turn that brought none, and those of nobody here. So the order
in which turns are gone through changes nothing. Nothing here knows a provider, a model or a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from otel_sealed.align.companions import companions, echoes, orphans
from otel_sealed.align.pair import Placed
from otel_sealed.align.rows import NO_TRAITS, Outcome, Source, row, source
from otel_sealed.align.scene import Account, Scene, as_returned, same_artifact
from otel_sealed.align.table import Pair, Result, fate_of
from otel_sealed.align.whole import closed_up, home, in_pieces, shape, unsigned_steps
from otel_sealed.contract import LEAST_SEAL, Names
from otel_sealed.diagnose import Change
from otel_sealed.model import (
    Block,
    Cause,
    Fate,
    Finding,
    Kind,
    Lineage,
    Message,
    State,
    Trait,
    Turn,
    Value,
)
from otel_sealed.model.record import replace
from otel_sealed.wire.search import Search

_ELSEWHERE = frozenset({Fate.MISPLACED, Fate.RETYPED})
_DUMMY = Change(Cause.PLACEHOLDER)


def align(
    lineage: Lineage,
    messages: tuple[Message, ...],
    names: Names,
    probe: Search,
    vendor_of: Callable[[bytes], str],
    visited: Callable[[Sequence[Turn]], Sequence[Turn]] = tuple,
) -> list[Outcome]:
    """Every artifact that was expected or sent, in order of receipt.

    `vendor_of` gives, by `canon` digest, the vendor that minted a value of any conversation (empty
    when nobody here saw it). `visited`: the order in which the turns are gone through, any.
    """
    if not lineage.turns and not any(b.sealed for m in messages for b in m.blocks):
        return []
    lineage, twins = as_returned(lineage, messages)
    scene = Scene(lineage, messages, names, probe, vendor_of, twins)
    sealed = {turn.number: _sealed(scene, turn) for turn in visited(scene.expected)}
    accounted = {a for blocks in sealed.values() for one in blocks.values() for a in one.accounts}
    others = {turn.number: _others(scene, turn, accounted) for turn in visited(scene.expected)}
    found: list[Outcome] = []
    made: set[Account] = set()
    for turn in scene.expected:
        blocks = others[turn.number] | sealed[turn.number]
        for index in sorted(blocks):
            found += blocks[index].outcomes
            made.update(blocks[index].accounts)
    return [*found, *_unexplained(scene, made)]


class Rows(NamedTuple):
    """The rows of one block, and the places that they account for."""

    outcomes: Sequence[Outcome]
    accounts: Sequence[Account] = ()


def _sealed(scene: Scene, turn: Turn) -> dict[int, Rows]:
    """The rows of the blocks of a turn that came with a seal."""
    came = ((index, block.seals()) for index, block in enumerate(turn.blocks))
    seals = {
        index: [value for value in values if value.state is State.PRESENT]
        for index, values in came
        if any(value.state is State.PRESENT for value in values)
    }
    if not seals:
        return {}
    pairs = scene.part(turn).pairs
    whole, at = shape(scene, turn, pairs), home(scene, turn, pairs)
    touching = closed_up(turn, pairs)
    last = max((slot[0] for slot, _ in pairs.values()), default=at)
    steps = unsigned_steps(scene, turn, pairs)
    cut = in_pieces(scene, turn)
    found: dict[int, Rows] = {}
    for index, values in seals.items():
        placed = pairs.get(index)
        joined = Fate.MERGED if index in touching else whole
        rows, accounts = _block(scene, turn, index, values, joined, steps, cut.get(index))
        stands = placed[0][0] if placed else at
        sent = placed[1] if placed else None
        block = turn.blocks[index]
        ends = ((one, last if one.fate is Fate.SPLIT else stands) for one in rows)
        outcomes = [Outcome(one, turn, index, block, sent, stands, end) for one, end in ends]
        found[index] = Rows(outcomes, accounts)
    return found


def _block(
    scene: Scene,
    turn: Turn,
    index: int,
    values: Sequence[Value],
    whole: Fate | None,
    steps: frozenset[Trait],
    bare: list[Account] | None,
) -> tuple[list[Finding], list[Account]]:
    """The rows of one block and the places they account for. `bare`: see `in_pieces`."""
    block, placed = turn.blocks[index], scene.part(turn).pairs.get(index)
    of = source(turn, block, scene.lineage.inferred)
    accounts = list(bare or ())
    rows: list[Finding] = []
    present = moved = merged = False
    for value in values:
        here = scene.answering.get((turn.number, index, value.artifact))
        now = same_artifact(placed[1], value.artifact) if placed is not None else None
        there = now if now is not None and now.state is State.PRESENT else None
        pair = Pair(
            scene, turn, index, block, value, placed, here, there, whole, cut=bare is not None
        )
        found = fate_of(pair)
        dummy = _in_its_place(pair) if found.fate in _ELSEWHERE else None
        traits = _traits(pair, found, steps, dummy)
        rows.append(_seal(found, value, of, traits))
        accounts += found.shown.accounts
        if dummy is not None and placed is not None:
            path, artifact = scene.path(placed[0]), value.artifact
            rows.append(
                row(artifact, Fate.FABRICATED, None, dummy, of=of, returned=path, change=_DUMMY)
            )
            accounts.append((placed[0], artifact))
        present = present or found.sealed
        elsewhere = placed is None or found.shown.path != scene.path(placed[0])
        moved = moved or found.fate is Fate.RETYPED or (found.fate is Fate.FOREIGN and elsewhere)
        merged = merged or found.fate is Fate.MERGED
    if present and placed and not moved and _alike(block, placed[1]):
        rows += companions(block, placed, scene, of, merged=merged, cut=bare is not None)
    return rows, accounts


def _seal(found: Result, value: Value, of: Source, traits: frozenset[Trait]) -> Finding:
    path, sent, _ = found.shown
    one = row(
        value.artifact,
        found.fate,
        found.value,
        sent,
        of=of,
        returned=path,
        change=found.change,
        traits=traits,
    )
    return one if found.locus is None else replace(one, locus=found.locus)


def _traits(
    pair: Pair, found: Result, steps: frozenset[Trait], dummy: Value | None
) -> frozenset[Trait]:
    """What the row of a seal says of its block besides its fate."""
    traits = NO_TRAITS
    if found.fate is Fate.SPLIT:
        traits = steps | {Trait.UNSIGNED_PART} if pair.cut else steps
    return traits | {Trait.DUMMY_IN_PLACE} if dummy is not None else traits


def _in_its_place(pair: Pair) -> Value | None:
    """The documented dummy in the slot of a seal that is somewhere else."""
    now = pair.now
    return now if now is not None and now.canon in pair.scene.names.placeholders else None


def _alike(block: Block, sent: Block) -> bool:
    """Whether what went out has the same companions to be compared."""
    if block.type == sent.type:
        return True
    return [v.artifact for v in block.values] == [v.artifact for v in sent.values]


def _others(scene: Scene, turn: Turn, accounted: AbstractSet[Account]) -> dict[int, Rows]:
    """The rows of the blocks of a turn that came without a seal; last those of the turn itself."""
    part, end = scene.part(turn), len(turn.blocks)
    if not part.region:
        return {}
    held = turn.number in scene.held
    found: dict[int, Rows] = {}
    for index, placed in part.pairs.items() if not held else ():
        block = turn.blocks[index]
        if not block.sealed:
            of = source(turn, block, scene.lineage.inferred)
            rows = [*echoes(block, placed, scene, of)]
            bare = _never_sealed(scene, turn, block, placed, of, accounted)
            rows += [bare] if bare is not None else []
            at = placed[0][0]
            outcomes = [Outcome(one, turn, index, block, placed[1], at, at) for one in rows]
            accounts = [(placed[0], bare.artifact)] if bare and bare.digest_out else []
            found[index] = Rows(outcomes, accounts)
    made = [*_made_up(scene, turn, accounted)]
    last = [outcome for outcome, _ in made]
    if not held and not scene.covered(turn, end - 1):
        for index, (slot, sent), traits in orphans(turn, part.pairs, scene):
            block, path = turn.blocks[index], scene.path(slot)
            of = source(turn, block, scene.lineage.inferred)
            name = scene.names.orphans[block.type]
            one = row(name, Fate.ORPHANED, of=of, returned=path, traits=traits)
            last.append(Outcome(one, turn, index, block, sent, slot[0]))
    found[end] = Rows(last, [account for _, account in made])
    return found


def _never_sealed(
    scene: Scene,
    turn: Turn,
    block: Block,
    placed: Placed,
    of: Source,
    accounted: AbstractSet[Account],
) -> Finding | None:
    """A block that came without the seal its type has (cut stream, not asked for)."""
    came = next(iter(block.seals()), None)
    if came is None:
        return None
    slot, sent = placed
    now, path = same_artifact(sent, came.artifact), scene.path(slot)
    begun = came if came.state is State.CUT else None
    if now is not None and now.state is State.PRESENT:
        if scene.issued.get(now.canon) or (slot, now.artifact) in accounted:
            return None  # a copy of another seal, or that seal encoded over: its own row says so
        dummy = now.canon in scene.names.placeholders
        fate = Fate.FABRICATED if dummy or begun is None else Fate.UNSEALED
        change = _DUMMY if dummy else None
        return row(now.artifact, fate, begun, now, of=of, returned=path, change=change)
    if block.kind is not Kind.REASONING:
        return None
    cut = came.state in (State.EMPTY, State.CUT) or not turn.complete
    fate = Fate.UNSEALED if cut else Fate.NOT_REQUESTED
    return row(came.artifact, fate, begun, of=of, returned=path)


def _made_up(
    scene: Scene, turn: Turn, accounted: AbstractSet[Account]
) -> Iterator[tuple[Outcome, Account]]:
    """Sealed blocks amid a turn that came in whole and brought no such thing.

    Where nothing but text came, and nothing of that is there as it was, the place is the turn's all
    the same; but not a seal that somebody may have issued. Prose in a seal's slot is nobody's: it
    is made up where the turn is, before its first item and after its last, too.
    """
    part = scene.part(turn)
    if not turn.complete or turn.number in scene.held:
        return
    recast = not part.pairs
    if recast and any(b.kind is not Kind.TEXT or b.sealed for b in turn.blocks):
        return
    taken = {slot for slot, _ in part.pairs.values()}
    slots = sorted(taken or part.slots)
    full = {at for at, _ in slots if len(scene.messages[at].blocks) > 1}
    for slot, sent in part.region:
        amid = slot[0] in full or slots[0] < slot < slots[-1]
        for value in sent.seals() if slot not in taken else ():
            path = scene.path(slot)
            if not (amid or scene.probe.prose(path, value.artifact)):
                continue
            present = value.state is State.PRESENT
            known = value.canon in scene.issued or scene.vendor_of(value.canon)
            if known or (slot, value.artifact) in accounted:
                continue
            if not present and sent.kind is not Kind.REASONING:
                continue
            if recast and value.size >= LEAST_SEAL:
                continue
            change = _DUMMY if value.canon in scene.names.placeholders else None
            one = row(value.artifact, Fate.FABRICATED, None, value, returned=path, change=change)
            yield Outcome(one, turn, 0, None, sent, slot[0]), (slot, value.artifact)


def _unexplained(scene: Scene, accounted: AbstractSet[Account]) -> Iterator[Outcome]:
    """Seals of the request that nobody here saw coming in, or that another vendor minted.

    As they are, or under any layer of encoding.
    """
    for slot, block, value in scene.sealed():
        if scene.claims(value) or (slot, value.artifact) in accounted:
            continue
        path = scene.path(slot)
        forms = [value.canon, *scene.probe.encoded(path, value.artifact)]
        fate, change = Fate.UNKNOWN, None
        if not scene.names.placeholders.isdisjoint(forms):
            plain = value.canon in scene.names.placeholders
            fate, change = Fate.FABRICATED, _DUMMY if plain else Change(Cause.DOUBLE_ENCODED)
        elif scene.abroad(next(filter(None, map(scene.vendor_of, forms)), "")):
            fate = Fate.FOREIGN
        one = row(value.artifact, fate, None, value, returned=path, change=change)
        yield Outcome(one, None, 0, None, block, slot[0])
