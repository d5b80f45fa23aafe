"""The scene of one comparison: the request and the lineage, indexed as the fates need them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from otel_sealed.align.pair import Placed, pair
from otel_sealed.contract import Names
from otel_sealed.model import (
    Block,
    Kind,
    Lineage,
    Message,
    Role,
    Shadow,
    SlotAt,
    Speaker,
    State,
    Turn,
    Value,
)
from otel_sealed.model.record import replace
from otel_sealed.steps import spend
from otel_sealed.wire.read import live_from
from otel_sealed.wire.search import Search, Shadows, Stray, Wanted

Account = tuple[SlotAt, str]
"""A place and the artifact there that some received value is, or became."""
NEIGHBOURS = 8
"""Blocks before and after one that it may have been joined with: a host joins what is adjacent."""


class Held(NamedTuple):
    """A sealed value standing in a request."""

    slot: SlotAt
    block: Block
    value: Value


class Scene:
    """All that the fates of one request are found from. Local to one comparison.

    It is data of the request and the lineage, worked out at the beginning or when it is first asked
    for: to ask changes no answer. `issued` counts how often each seal of the lineage came in.
    """

    def __init__(
        self,
        lineage: Lineage,
        messages: tuple[Message, ...],
        names: Names,
        probe: Search,
        vendor_of: Callable[[bytes], str],
        twins: Mapping[bytes, Value],
    ) -> None:
        """`vendor_of`: the vendor that minted a value of any conversation, empty if unknown.

        `twins`: see `as_returned`.
        """
        self.lineage = lineage
        self.twins = twins
        self._one = {twin.canon: canon for canon, twin in twins.items()}
        self.expected = lineage.expected
        self.messages = messages
        self.names = names
        self.held = lineage.held and {
            turn.number
            for turn in lineage.turns
            if turn.number in lineage.held and not self.foreign(turn)
        }
        self.referenced: dict[bytes, list[Placed]] = {}
        for at, message in enumerate(messages):
            for index, block in enumerate(message.blocks):
                for anchor in block.anchors if block.kind is Kind.MARKER else ():
                    self.referenced.setdefault(anchor, []).append(((at, index), block))
        self.probe = probe
        self.vendor_of = vendor_of
        self.seals: dict[bytes, list[Held]] = {}
        for held in self.sealed():
            self.seals.setdefault(self._issue(held.value), []).append(held)
        self.issued: dict[bytes, int] = {}
        for value in self._received():
            self.issued[value.canon] = self.issued.get(value.canon, 0) + 1
        self.issued |= {twin.canon: self.issued[canon] for canon, twin in twins.items()}
        self.regions: dict[int, list[Placed]] = {}
        for slot in sorted(lineage.owner):
            self.regions.setdefault(lineage.owner[slot], []).append((slot, self.block(slot)))
        self.run_of = self._runs()
        self.carries = self._latest_compaction(present=True)
        self.newest = self._latest_compaction(present=False)
        self._strays: Mapping[bytes, Stray] | None = None
        self._places: dict[str, SlotAt] | None = None
        self._parts: dict[int, Part] = {}
        self._results: dict[bytes, int] | None = None

    def _issue(self, value: Value) -> bytes:
        """Digest of the seal, one for both values of an item that came sealed in two ways."""
        return self._one.get(value.canon, value.canon)

    def held_at(self, canon: bytes, slot: SlotAt) -> Held | None:
        """The seal of that digest in the block at a place."""
        spend()
        return self._held_at.get((canon, slot))

    @cached_property
    def _held_at(self) -> dict[tuple[bytes, SlotAt], Held]:
        found: dict[tuple[bytes, SlotAt], Held] = {}
        for held in self.sealed():
            found.setdefault((self._issue(held.value), held.slot), held)
        return found

    @cached_property
    def counterparts(self) -> frozenset[SlotAt]:
        """The places of the blocks that received ones became."""
        parts = (self.part(turn) for turn in self.expected if turn.number in self.regions)
        return frozenset(slot for part in parts for slot, _ in part.pairs.values())

    @cached_property
    def answering(self) -> Mapping[tuple[int, int, str], Held]:
        """By turn, block and artifact, the place that answers for a seal that is in some slot.

        That is its counterpart's, else the next one of those that have it, in order of receipt; of
        what the server keeps, the first. A seal that came several times and is in fewer places is
        missing where its own counterpart has it not.
        """
        found: dict[tuple[int, int, str], Held] = {}
        taken: dict[bytes, int] = {}
        for turn in self.expected:
            pairs = self.part(turn).pairs
            for index, block in enumerate(turn.blocks):
                for value in block.seals():
                    places = self.seals.get(value.canon)
                    if not places or value.state is not State.PRESENT:
                        continue
                    placed = pairs.get(index)
                    ours = self.held_at(value.canon, placed[0]) if placed is not None else None
                    if self.stored(turn, block):
                        ours = places[0]
                    elif ours is None and len(places) >= self.issued[value.canon]:
                        nth = taken[value.canon] = taken.get(value.canon, -1) + 1
                        ours = places[min(nth, len(places) - 1)]
                    if ours is not None:
                        found[turn.number, index, value.artifact] = ours
        return found

    @cached_property
    def claimed(self) -> frozenset[bytes]:
        """The received seals that are in some slot: all of their places are accounted for."""
        return frozenset(self._issue(held.value) for held in self.answering.values())

    def claims(self, value: Value) -> bool:
        """Whether a value of the request is the seal of a received block, as it is."""
        return bool(value.canon) and self._issue(value) in self.claimed

    def block(self, slot: SlotAt) -> Block:
        """The block at a place."""
        return self.messages[slot[0]].blocks[slot[1]]

    def path(self, slot: SlotAt) -> str:
        """The dotted path of a block, as the provider writes it."""
        return self.messages[slot[0]].path(self.names.root, slot[1])

    def slot_at(self, path: str) -> SlotAt | None:
        """The place whose block holds the value at a dotted path."""
        if self._places is None:
            self._places = {
                self.path((at, index)): (at, index)
                for at, message in enumerate(self.messages)
                for index in range(len(message.blocks))
            }
            spend(len(self._places))
        while path:
            if path in self._places:
                return self._places[path]
            path = path.rpartition(".")[0]
        return None

    def sealed(self) -> Iterator[Held]:
        """Every sealed value of the request in order of its places."""
        for at, message in enumerate(self.messages):
            for index, block in enumerate(message.blocks):
                spend()
                for value in block.values:
                    if value.role is Role.SEAL and value.state is State.PRESENT:
                        yield Held((at, index), block, value)

    def foreign(self, turn: Turn) -> bool:
        """Whether the request goes to another vendor than the one that minted the turn."""
        return self.abroad(turn.vendor)

    def abroad(self, vendor: str) -> bool:
        """Whether `vendor` is known and another than the one the request goes to."""
        return bool(self.names.vendor and vendor and vendor != self.names.vendor)

    def part(self, turn: Turn) -> Part:
        """What the request has of a turn."""
        found = self._parts.get(turn.number)
        if found is None:
            found = self._parts[turn.number] = Part(self, turn)
        return found

    @cached_property
    def _lost(self) -> dict[bytes, Wanted]:
        """By `canon`, the seals of the lineage that are in no slot of the request, in order."""
        lost = (value for value in self._received() if value.canon not in self.seals)
        return {one.canon: one for value in lost for one in self._wanted(value)}

    def _wanted(self, value: Value) -> Iterator[Wanted]:
        """A seal to look for, in both of its values."""
        yield Wanted(value.canon, value.size)
        twin = self.twins.get(value.canon)
        if twin is not None:
            yield Wanted(twin.canon, twin.size)

    @cached_property
    def _order(self) -> tuple[list[Wanted], dict[bytes, int]]:
        """All received seals in order, and the first place of each there."""
        came = [one for value in self._received() for one in self._wanted(value)]
        first: dict[bytes, int] = {}
        for at, one in enumerate(came):
            first.setdefault(one.canon, at)
        return came, first

    def near(self, value: Value) -> Sequence[Wanted]:
        """The seals that came in shortly before and after one, and that one itself.

        Also those that go back at their own places: an accumulator may keep what it had.
        """
        came, first = self._order
        at = first.get(value.canon, 0)
        return came[max(at - NEIGHBOURS, 0) : at + NEIGHBOURS + 1]

    def stray(self, value: Value) -> Stray | None:
        """Where a seal that is in no slot was found in the body; the body is searched once."""
        if self._strays is None:
            self._strays = self.probe.find(tuple(self._lost.values()))
        return self._strays.get(value.canon)

    @cached_property
    def texts(self) -> Mapping[SlotAt, list[tuple[str, str]]]:
        """By block, path and text of the ordinary texts in it."""
        found: dict[SlotAt, list[tuple[str, str]]] = {}
        for path, text in self.probe.texts():
            slot = self.slot_at(path)
            if slot is not None:
                found.setdefault(slot, []).append((path, text))
        return found

    @cached_property
    def said(self) -> frozenset[str]:
        """Paths of the texts that the turn they belong to said: they stand in for nothing else."""
        own = {t.number: {block.payload for block in t.blocks} for t in self.lineage.turns}
        spend(sum(map(len, own.values())) + len(self.texts))
        return frozenset(
            path
            for slot, texts in self.texts.items()
            if self.block(slot).payload in own.get(self.lineage.owner.get(slot, -1), ())
            for path, _ in texts
        )

    def answered(self, turn: Turn) -> int | None:
        """Index of the message under way that has the result of a call of the turn, if any."""
        if self._results is None:
            self._results = {
                anchor: at
                for at in range(live_from(self.messages), len(self.messages))
                for block in self.messages[at].blocks
                if block.kind is Kind.RESULT
                for anchor in block.anchors
            }
        calls = (a for block in turn.blocks if block.kind is Kind.CALL for a in block.anchors)
        return next((self._results[a] for a in calls if a in self._results), None)

    def stored(self, turn: Turn, block: Block) -> bool:
        """Whether the provider keeps the block, and the request refers to it, or to all before."""
        return turn.number in self.held or bool(self.referrals(turn, block))

    def references(self, turn: Turn) -> dict[int, Placed]:
        """Index of each block of a turn that the request refers to so, and where it does."""
        found = {
            index: self.referrals(turn, block)
            for index, block in enumerate(turn.blocks if self.referenced else ())
        }
        return {index: places[0] for index, places in found.items() if places}

    def referrals(self, turn: Turn, block: Block) -> Sequence[Placed]:
        """Where the request refers to the block by its id, if the provider may have stored it."""
        if not self.referenced or turn.store is False or self.foreign(turn):
            return ()
        return next((self.referenced[a] for a in block.anchors if a in self.referenced), ())

    def covered(self, turn: Turn, index: int) -> bool:
        """Whether a later compaction that is in this request carries the block."""
        return self.carries is not None and (turn.number, index) < self.carries

    def _received(self) -> Iterator[Value]:
        for turn in self.expected:
            for block in turn.blocks:
                spend()
                for value in block.seals():
                    if value.state is State.PRESENT:
                        yield value

    def _runs(self) -> dict[int, int]:
        """Message index to the number of the step it belongs to."""
        run = 0
        found = {}
        for at, message in enumerate(self.messages):
            if message.speaker is not Speaker.MODEL and (
                self.names.tools_separate or message.speaker is not Speaker.TOOL
            ):
                run += 1
            found[at] = run
        return found

    def _latest_compaction(self, *, present: bool) -> SlotAt | None:
        """(turn, block) of the newest compaction seal issued, or of the newest in this request."""
        for turn in reversed(self.expected):
            spend(len(turn.blocks))
            for index in range(len(turn.blocks) - 1, -1, -1):
                block = turn.blocks[index]
                if block.kind is not Kind.COMPACTION or not block.sealed:
                    continue
                if not present or any(value.canon in self.seals for value in block.seals()):
                    return turn.number, index
        return None


def as_returned(
    lineage: Lineage, messages: tuple[Message, ...]
) -> tuple[Lineage, Mapping[bytes, Value]]:
    """The turns with one value of each seal that came in two, and the other by the first's `canon`.

    That which is in the request; else that whose id is, else the one that came last.
    """
    if not any(v.role is Role.ANEW for t in lineage.turns for b in t.blocks for v in b.values):
        return lineage, {}
    blocks = (block for message in messages for block in message.blocks)
    here = {v.canon if v.role is Role.SEAL else v.digest for b in blocks for v in b.values}
    twins: dict[bytes, Value] = {}
    turns = tuple(
        replace(turn, blocks=tuple(_as_returned(block, here, twins) for block in turn.blocks))
        for turn in lineage.turns
    )
    return replace(lineage, turns=turns), twins


def _as_returned(block: Block, sent: Collection[bytes], twins: dict[bytes, Value]) -> Block:
    """A block with one value of each; the other of its seal goes into `twins`."""
    last = {v.artifact: v for v in block.values if v.role is not Role.ANEW}
    first = last | {
        v.artifact: replace(v, role=last[v.artifact].role)
        for v in block.values
        if v.role is Role.ANEW and v.artifact in last
    }
    chosen, others = last, first
    if first != last and _here(first, sent) > _here(last, sent):
        chosen, others = first, last
    for name, value in chosen.items():
        if value.role is Role.SEAL and value != others[name]:
            twins[value.canon] = others[name]
    return replace(block, values=tuple(chosen.values()))


def _here(values: Mapping[str, Value], sent: Collection[bytes]) -> tuple[bool, bool]:
    """Whether a seal of them is in the request, and whether an id of them is."""
    seals = any(v.canon in sent for v in values.values() if v.role is Role.SEAL)
    return seals, any(v.digest in sent for v in values.values() if v.role is Role.ID)


class Part:
    """What a request has of one turn, and what the turn says: each asked for at most once."""

    def __init__(self, scene: Scene, turn: Turn) -> None:
        self._scene = scene
        self._turn = turn
        self.region = scene.regions.get(turn.number, [])
        spend(len(turn.blocks) + len(self.region))

    @cached_property
    def pairs(self) -> dict[int, Placed]:
        """Index of each received block to the sent one it became."""
        return pair(self._turn.blocks, self.region) if self.region else {}

    @cached_property
    def slots(self) -> list[SlotAt]:
        """The places of the turn, in their order."""
        return [slot for slot, _ in self.region]

    @cached_property
    def stand_ins(self) -> StandIns:
        """Readable stand-ins of the turn's seals."""
        return StandIns(self._turn)

    @cached_property
    def readable(self) -> list[int]:
        """Indices of the blocks whose payload is text that can be read."""
        blocks = enumerate(self._turn.blocks)
        return [i for i, b in blocks if b.payload and b.kind in (Kind.TEXT, Kind.REASONING)]

    @cached_property
    def dummy(self) -> str | None:
        """Path of a call that is none of the turn's sealed ones and bears a documented dummy."""
        own = {b.payload for b in self._turn.blocks if b.sealed}
        dummies = self._scene.names.placeholders
        calls = (
            (slot, b) for slot, b in self.region if b.kind is Kind.CALL and b.payload not in own
        )
        return next(
            (self._scene.path(s) for s, b in calls if any(v.canon in dummies for v in b.seals())),
            None,
        )

    @cached_property
    def quoted(self) -> Mapping[bytes, str]:
        """By digest, path of the first ordinary text of the turn that holds a stand-in."""
        shadows = Shadows(
            s for b in self._turn.blocks for s in b.shadows if s.digest not in self.stand_ins.spoken
        )
        found: dict[bytes, str] = {}
        for slot in self.slots if shadows else ():
            for path, text in self._scene.texts.get(slot, ()):
                for shadow in self._scene.probe.holds(text, shadows):
                    found.setdefault(shadow.digest, path)
        return found

    def substitute(self, block: Block) -> str | None:
        """Path of ordinary text that is, or in the turn's own messages holds, a stand-in."""
        shadows = self.stand_ins.of(block)
        if shadows is self.stand_ins.unsealed:
            return self._substitute
        return self._found(shadows)

    @cached_property
    def _substitute(self) -> str | None:
        return self._found(self.stand_ins.unsealed)

    def _found(self, shadows: tuple[Shadow, ...]) -> str | None:
        if not shadows:
            return None
        spend(len(shadows))
        exact = self._scene.probe.readable(shadows, self._scene.said)
        quoted = (self.quoted[s.digest] for s in shadows if s.digest in self.quoted)
        return exact or next(quoted, None)

    @cached_property
    def swallowed(self) -> frozenset[bytes]:
        """Digests of thinking of the turn that a longer text of another sealed part holds."""
        thoughts = Shadows(
            Shadow(b.payload, b.payload_chars)
            for b in self._turn.blocks
            if b.payload and b.kind is Kind.REASONING
        )
        probe, path = self._scene.probe, self._scene.path
        return frozenset(
            shadow.digest
            for slot, sent in self.region
            if thoughts and sent.sealed
            for shadow in probe.holds_at(path(slot), thoughts)
            if shadow.digest != sent.payload and shadow.chars < sent.payload_chars
        )

    def shadows_near(self, index: int) -> tuple[list[int], tuple[Shadow, ...]]:
        """Indices and texts of the readable blocks near a block, and its own."""
        first = bisect_left(self.readable, index - NEIGHBOURS)
        near = self.readable[first : bisect_left(self.readable, index + NEIGHBOURS + 1)]
        blocks = self._turn.blocks
        return near, tuple(Shadow(blocks[i].payload, blocks[i].payload_chars) for i in near)


class StandIns:
    """The readable stand-ins of the seals of a turn, less what it said as ordinary text anyway."""

    def __init__(self, turn: Turn) -> None:
        """Goes through the blocks of the turn once."""
        spend(len(turn.blocks))
        blocks = turn.blocks
        self.spoken = frozenset(b.payload for b in blocks if b.kind is Kind.TEXT and not b.shadows)
        self.unsealed = self._unsaid(s for b in blocks if not b.sealed for s in b.shadows)

    def of(self, block: Block) -> tuple[Shadow, ...]:
        """Those of a block: its own, else those of all blocks without a seal (`unsealed`)."""
        return self._unsaid(block.shadows) if block.shadows else self.unsealed

    def _unsaid(self, shadows: Iterable[Shadow]) -> tuple[Shadow, ...]:
        return tuple(s for s in shadows if s.digest not in self.spoken)


def same_artifact(block: Block, artifact: str) -> Value | None:
    """The value of that artifact name in a block, if the block has such a field."""
    return next((v for v in block.values if v.artifact == artifact), None)
