"""The fate of one received seal: a table in the order of precedence.

Model. A `Pair` is one received seal and what the request has of it. `FATES` has a group of rows for
each of four situations, of which exactly one holds (`group`): the provider keeps the block; the
seal's digest is in a slot; another value is in its own slot; it is gone. Of the rows of a group the
first that holds is the fate. A row reads the pair and changes nothing, so that neither the order of
turns nor that of seals matters; the last row of a group always holds.

The table is shown in docs/architecture.md#comparison. Each row fails a test when it is left out
(`python -m tests.laws.ablation --like table`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from otel_sealed.align.pair import Placed
from otel_sealed.align.scene import Account, Held, Scene
from otel_sealed.align.whole import cut_up, pieces, text_merged
from otel_sealed.diagnose import Change, diagnose
from otel_sealed.model import Block, Cause, Fate, Kind, Locus, Role, Speaker, Turn, Value
from otel_sealed.model.record import record, replace
from otel_sealed.steps import spend
from otel_sealed.wire.search import Spot, Stray


class Group(StrEnum):
    """The situation of a received seal."""

    KEPT = "the provider keeps it"
    IN_SLOT = "its digest is in a slot"
    CHANGED = "another value is in its slot"
    GONE = "no value is in its slot"


@record(frozen=True, slots=True)
class Pair:
    """One received seal, and what the request has of it.

    `placed`: the sent block that its own became. `here`: the place with its digest that answers for
    it. `now`: the value in its own slot. `shape`: what its turn shows as a whole. `cut`: its
    block is there in pieces.
    """

    scene: Scene
    turn: Turn
    index: int
    block: Block
    value: Value
    placed: Placed | None
    here: Held | None
    now: Value | None
    shape: Fate | None
    cut: bool

    @property
    def foreign(self) -> bool:
        """Whether the request goes to another vendor than the one that minted the seal."""
        return self.scene.foreign(self.turn)

    @property
    def stray(self) -> Stray | None:
        """Where in the body the bytes of the seal are, if they are in no slot for them."""
        return self.scene.stray(self.value)


class Shown(NamedTuple):
    """What a row points to: a path, the value there, and the places that it accounts for."""

    path: str | None
    value: Value | None = None
    accounts: tuple[Account, ...] = ()


class Result(NamedTuple):
    """The fate of a seal. `sealed`: there is a seal in its slot, or was one before it changed."""

    fate: Fate
    change: Change | None
    sealed: bool
    shown: Shown
    value: Value
    locus: Locus | None = None


# ------------------------------------------------------------------------------- what is shown


def _nothing(_pair: Pair) -> Shown:
    return Shown(None)


def _here(pair: Pair) -> Shown:
    if pair.here is None:
        return Shown(None)
    return Shown(pair.scene.path(pair.here.slot), pair.here.value)


def _again(pair: Pair) -> Shown:
    return Shown(pair.scene.path(pair.scene.referrals(pair.turn, pair.block)[1][0]))


def _slot(pair: Pair) -> Shown:
    """Its own place, and the other value there."""
    if pair.placed is None:
        return Shown(None)
    path, now = pair.scene.path(pair.placed[0]), pair.now
    return Shown(path, now, ((pair.placed[0], now.artifact),) if now else ())


def _pieces(pair: Pair) -> Shown:
    shown = _slot(pair)
    places = tuple((slot, pair.value.artifact) for slot in _in_slots(pair))
    return shown._replace(accounts=shown.accounts + places)


def _astray(pair: Pair) -> Shown:
    scene, stray = pair.scene, pair.stray
    if stray is None:
        return Shown(None)
    slot = scene.slot_at(stray.path) if stray.spot is Spot.SLOT else None
    there = tuple((slot, v.artifact) for v in scene.block(slot).seals()) if slot else ()
    return Shown(stray.path, None, _slot(pair).accounts + there)


def _readable(pair: Pair) -> Shown:
    return Shown(_substitute(pair))


def _other_call(pair: Pair) -> Shown:
    return Shown(pair.scene.part(pair.turn).dummy)


# ----------------------------------------------------------------------------- what is asked


def always(_pair: Pair) -> bool:
    """Nothing else holds."""
    return True


def referred_twice(pair: Pair) -> bool:
    """The request refers to the stored item a second time."""
    return pair.here is None and len(pair.scene.referrals(pair.turn, pair.block)) > 1


def not_sent(pair: Pair) -> bool:
    """It is not sent as well."""
    return pair.here is None


def outdated(pair: Pair) -> bool:
    """An older compaction, and the newest is not in the request."""
    scene = pair.scene
    older = scene.newest is not None and (pair.turn.number, pair.index) < scene.newest
    return pair.block.kind is Kind.COMPACTION and older and scene.carries != scene.newest


def abroad(pair: Pair) -> bool:
    """The request goes to another vendor than the one that issued it."""
    return pair.foreign


def holds_neighbour(pair: Pair) -> bool:
    """Its block also holds the readable text of a neighbour."""
    here = pair.here
    return here is not None and text_merged(pair.scene, pair.turn, pair.index, pair.block, here)


def touching(pair: Pair) -> bool:
    """What separated two runs of seals of the turn is gone (A5, A20)."""
    return pair.shape is Fate.MERGED


def steps_apart(pair: Pair) -> bool:
    """Calls of its turn are sent as several steps."""
    return pair.shape is Fate.SPLIT


def other_artifact(pair: Pair) -> bool:
    """It is in the slot of another artifact of the same wire."""
    other = pair.here is not None and pair.here.value.artifact != pair.value.artifact
    return other and pair.turn.dialect == pair.scene.names.dialect  # each wire has its own names


def too_often(pair: Pair) -> bool:
    """It is in more slots than it came in."""
    canon = pair.value.canon
    return len(pair.scene.seals[canon]) > pair.scene.issued[canon]


def bare_part(pair: Pair) -> bool:
    """Its own part, of nothing but the seal, gained or lost the key of an empty text."""
    here, came = pair.here, pair.block
    if here is None or not _ours(pair) or not _spoken(pair):
        return False
    empty = not (came.payload_chars or here.block.payload_chars)
    return empty and {came.kind, here.block.kind} == {Kind.TEXT, Kind.MARKER}


def other_kind(pair: Pair) -> bool:
    """It is on a block of another kind, or in a message that is not the model's."""
    return pair.here is not None and (
        pair.here.block.kind is not pair.block.kind or not _spoken(pair)
    )


def beside_text(pair: Pair) -> bool:
    """Its text is there in pieces, next to it."""
    if pair.here is None or pair.placed is None or _ours(pair):
        return False
    return pair.placed[0] in pieces(pair.scene, pair.here.slot, pair.block)


def other_block(pair: Pair) -> bool:
    """It is on another block than the one that its own became."""
    return not _ours(pair)


def other_type(pair: Pair) -> bool:
    """An answer is sent as a thought, or the other way round."""
    here = pair.here
    return here is not None and pair.block.kind is Kind.TEXT and here.block.type != pair.block.type


def out_of_order(pair: Pair) -> bool:
    """The blocks of its turn are in another order."""
    return pair.shape is Fate.REORDERED


def respelled(pair: Pair) -> bool:
    """The same bytes are spelled in another way."""
    return pair.here is not None and (
        pair.here.value.digest != pair.value.digest and pair.here.value.canon == pair.value.canon
    )


def unsigned_pieces(pair: Pair) -> bool:
    """Its block is there in pieces, and it signs no text."""
    return pair.cut and not any(value.role is Role.SIGNED for value in pair.block.values)


def dummy_there(pair: Pair) -> bool:
    """A documented placeholder is in its slot."""
    return pair.now is not None and pair.now.canon in pair.scene.names.placeholders


def text_in_slot(pair: Pair) -> bool:
    """The slot holds readable text of the turn that stands in for it."""
    texts = pair.scene.part(pair.turn).stand_ins.of(pair.block)
    return pair.scene.probe.slot_holds(_own(pair), pair.value.artifact, texts)


def two_in_slot(pair: Pair) -> bool:
    """The slot holds several seals that came in near it."""
    near = pair.scene.near(pair.value)
    return pair.scene.probe.joined_seals(_own(pair), pair.value.artifact, near) > 1


def seal_in_pieces(pair: Pair) -> bool:
    """Sealed slots of the turn hold it in pieces."""
    return bool(_in_slots(pair))


def encoded_for_other(pair: Pair) -> bool:
    """It is encoded over, and the request goes to another vendor."""
    return pair.foreign and changed(pair).cause is Cause.DOUBLE_ENCODED


def carried(pair: Pair) -> bool:
    """A later compaction that is in this request carries it."""
    return pair.now is None and pair.scene.covered(pair.turn, pair.index)


def bare_pieces(pair: Pair) -> bool:
    """Sealed slots of the turn hold it in pieces, but for its own."""
    return pair.now is None and bool(_in_slots(pair))


def astray_in_id(pair: Pair) -> bool:
    """Its bytes are in an id."""
    return pair.stray is not None and pair.stray.spot is Spot.ID


def foreign_in_id(pair: Pair) -> bool:
    """Its bytes are in an id, and the request goes to another vendor."""
    return pair.foreign and astray_in_id(pair)


def foreign_encoded(pair: Pair) -> bool:
    """Its bytes are somewhere in an encoding, and the request goes to another vendor."""
    return pair.foreign and pair.stray is not None and pair.stray.depth > 0


def foreign_astray(pair: Pair) -> bool:
    """Its bytes are somewhere, and the request goes to another vendor."""
    return pair.foreign and pair.stray is not None


def encoded_in_slot(pair: Pair) -> bool:
    """A slot holds an encoding of it."""
    return _in_a_slot(pair) and pair.stray is not None and pair.stray.depth > 0


def glued(pair: Pair) -> bool:
    """The slot of another seal holds it as well."""
    return _in_a_slot(pair) and pair.stray is not None and pair.stray.part


def astray_in_text(pair: Pair) -> bool:
    """Its bytes are in a text."""
    return pair.stray is not None and pair.stray.spot in (Spot.TEXT, Spot.SIGNED)


def astray(pair: Pair) -> bool:
    """Its bytes are in a place that is none for a seal."""
    return pair.stray is not None


def in_words(pair: Pair) -> bool:
    """Readable text that stands in for it is sent as ordinary text."""
    return _substitute(pair) is not None


def swallowed(pair: Pair) -> bool:
    """Its thinking is in a longer text of another sealed block of the turn."""
    block = pair.block
    held = block.kind is Kind.REASONING and block.payload
    return bool(held) and block.payload in pair.scene.part(pair.turn).swallowed


def other_call_made_up(pair: Pair) -> bool:
    """Its call is gone, and another call of the turn has a documented placeholder."""
    gone = pair.placed is None and pair.block.kind is Kind.CALL
    return gone and pair.scene.part(pair.turn).dummy is not None


def turn_gone(pair: Pair) -> bool:
    """Nothing of its turn is in the request."""
    return not pair.scene.part(pair.turn).region


def changed(pair: Pair) -> Change:
    """How the value in the slot differs from the one that came."""
    scene, value = pair.scene, pair.value
    binary = value.artifact in scene.names.binary
    sample = scene.probe.sample(_own(pair), value.artifact, value.size, binary=binary)
    return diagnose(value, sample, scene.issued.keys())


def _own(pair: Pair) -> str:
    return pair.scene.path(pair.placed[0]) if pair.placed is not None else ""


def _ours(pair: Pair) -> bool:
    """Whether the place with its digest is the one its own block became."""
    return pair.here is not None and pair.placed is not None and pair.placed[0] == pair.here.slot


def _spoken(pair: Pair) -> bool:
    """Whether that place is in a message of the model."""
    here = pair.here
    return here is not None and pair.scene.messages[here.slot[0]].speaker is Speaker.MODEL


def _in_a_slot(pair: Pair) -> bool:
    return pair.stray is not None and pair.stray.spot is Spot.SLOT


def _in_slots(pair: Pair) -> tuple[Any, ...]:
    return cut_up(pair.scene, pair.turn, pair.placed[0], pair.value) if pair.placed else ()


def _substitute(pair: Pair) -> str | None:
    return pair.scene.part(pair.turn).substitute(pair.block)


# -------------------------------------------------------------------------------- the table


class Row(NamedTuple):
    """A fate, and when it holds. `cause`: what goes with it, or how that is found.

    `sealed`: there is a seal in its slot, so that what accompanies it is compared too.
    """

    fate: Fate
    cause: Cause | Callable[[Pair], Change] | None
    when: Callable[[Pair], bool]
    shows: Callable[[Pair], Shown] = _nothing
    sealed: bool = False

    @property
    def name(self) -> str:
        """What the row is called, once in its group."""
        return self.when.__name__


def _in_slot(fate: Fate, cause: Cause | None, when: Callable[[Pair], bool]) -> Row:
    return Row(fate, cause, when, _here, sealed=True)


FATES: Final[dict[Group, tuple[Row, ...]]] = {
    Group.KEPT: (
        Row(Fate.DUPLICATED, None, referred_twice, _again),
        Row(Fate.SERVER_HELD, None, not_sent),
        Row(Fate.DUPLICATED, Cause.SERVER_STATE, always, _here, sealed=True),
    ),
    Group.IN_SLOT: (
        _in_slot(Fate.STALE, None, outdated),
        _in_slot(Fate.FOREIGN, None, abroad),
        _in_slot(Fate.MERGED, None, holds_neighbour),
        _in_slot(Fate.MERGED, None, touching),
        _in_slot(Fate.SPLIT, None, steps_apart),
        _in_slot(Fate.RETYPED, None, other_artifact),
        _in_slot(Fate.DUPLICATED, None, too_often),
        _in_slot(Fate.RETYPED, None, bare_part),
        _in_slot(Fate.MISPLACED, Cause.WRONG_SLOT, other_kind),
        _in_slot(Fate.SPLIT, None, beside_text),
        _in_slot(Fate.MISPLACED, Cause.WRONG_SLOT, other_block),
        _in_slot(Fate.RETYPED, None, other_type),
        _in_slot(Fate.REORDERED, None, out_of_order),
        _in_slot(Fate.MODIFIED, Cause.RE_ENCODED, respelled),
        _in_slot(Fate.SPLIT, None, unsigned_pieces),
        _in_slot(Fate.INTACT, None, always),
    ),
    Group.CHANGED: (
        Row(Fate.FABRICATED, Cause.PLACEHOLDER, dummy_there, _slot),
        Row(Fate.SUBSTITUTED, Cause.READABLE_TEXT, text_in_slot, _slot),
        Row(Fate.MERGED, Cause.TWO_SEALS, two_in_slot, _slot, sealed=True),
        Row(Fate.SPLIT, None, seal_in_pieces, _pieces, sealed=True),
        Row(Fate.FOREIGN, Cause.DOUBLE_ENCODED, encoded_for_other, _slot, sealed=True),
        Row(Fate.MODIFIED, changed, always, _slot, sealed=True),
    ),
    Group.GONE: (
        Row(Fate.SUPERSEDED, None, carried),
        Row(Fate.SPLIT, None, bare_pieces, _pieces, sealed=True),
        Row(Fate.FOREIGN, Cause.IN_ID, foreign_in_id, _astray),
        Row(Fate.FOREIGN, Cause.DOUBLE_ENCODED, foreign_encoded, _astray),
        Row(Fate.FOREIGN, None, foreign_astray, _astray),
        Row(Fate.MODIFIED, Cause.DOUBLE_ENCODED, encoded_in_slot, _astray),
        Row(Fate.MERGED, Cause.TWO_SEALS, glued, _astray),
        Row(Fate.MISPLACED, Cause.IN_ID, astray_in_id, _astray),
        Row(Fate.MISPLACED, Cause.IN_TEXT, astray_in_text, _astray),
        Row(Fate.MISPLACED, Cause.WRONG_SLOT, astray, _astray),
        Row(Fate.SUBSTITUTED, None, in_words, _readable),
        Row(Fate.MERGED, None, swallowed, _slot),
        Row(Fate.FABRICATED, Cause.PLACEHOLDER, other_call_made_up, _other_call),
        Row(Fate.DROPPED, Cause.WHOLE_TURN, turn_gone, _slot),
        Row(Fate.DROPPED, None, always, _slot),
    ),
}


def group(pair: Pair) -> Group:
    """The situation of a seal. A dummy in its slot says nothing where it is itself elsewhere."""
    if pair.scene.stored(pair.turn, pair.block):
        return Group.KEPT
    if pair.here is not None:
        return Group.IN_SLOT
    if pair.now is None or (dummy_there(pair) and not pair.foreign and pair.stray is not None):
        return Group.GONE
    return Group.CHANGED


def fate_of(pair: Pair) -> Result:
    """The first row that holds, of whichever value of an item sealed in two ways says more."""
    found = _first(pair)
    twin = pair.scene.twins.get(pair.value.canon)
    if twin is not None and _vague(found):
        second = _first(replace(pair, value=twin))
        found = found if _vague(second) else second
    return _by_sdk(found) if pair.value.lost and pair.here is None else found


def _first(pair: Pair) -> Result:
    spend()
    row = next(row for row in FATES[group(pair)] if row.when(pair))
    cause = row.cause
    change = cause(pair) if callable(cause) else Change(cause) if cause else None
    return Result(row.fate, change, row.sealed, row.shows(pair), pair.value)


def _by_sdk(found: Result) -> Result:
    """The SDK's own object lacked it: nobody who builds on that object could have sent it."""
    if found.fate is Fate.MERGED:  # it ran together what came apart
        return found._replace(locus=Locus.SDK)
    if found.fate in (Fate.DROPPED, Fate.MODIFIED):
        return found._replace(fate=Fate.SDK_LOSSY, locus=Locus.SDK)
    return found


def _vague(found: Result) -> bool:
    """Whether nothing is known of a seal but that it is not where it was."""
    replaced = found.change is not None and found.change.cause is Cause.REPLACED
    return found.fate is Fate.DROPPED or replaced
