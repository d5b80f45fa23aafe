"""Turns found by their place alone, where another answer may stand.

Theory of operation. A turn answered a request, and where a later one begins with that request its
answer belongs behind it. But the same may have been asked more than once: again, or by another
process, or before a restart; the answer that stands there is then one nobody here saw, and nothing
of it was lost. So a turn is taken for the one that stands there only if something of it does: an
id, be it in a text that tells of its call, a longer text, text that holds one of its own, a seal
that is one of its own changed. A longer thought is nobody else's, whatever seal stands beside it.
The same calls are enough where nothing else, no other id and no seal of another, stands beside
them, and so are short texts in their place. Of a turn that only a few words or the order of the
others give a place before a sure one (`strange`), that place is asked in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from otel_sealed.align.scene import LEAST_SEAL, Names, path_of
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
from otel_sealed.steps import spend
from otel_sealed.wire.read import READABLE
from otel_sealed.wire.search import Search, Shadows

_LONG_TEXT = 24
_NEAR = 4
"""Seals of a turn, before and after its place in the order, that a changed one is held against."""


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
        and not _stands(_Came(turn), slots.get(turn.number, []), messages, chains, names, probe)
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
    turns = {turn.number: _Came(turn) for turn in lineage.turns} if lineage.guessed else {}
    return frozenset(
        slot
        for number, slots in lineage.guessed
        if not _stands(turns[number], slots, messages, chains, names, probe)
        for slot in slots
    )


class _Came:
    """A turn, and what is asked of it, each at most once."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    @cached_property
    def texts(self) -> Shadows:
        """What the turn said and thought, as far as it can be read."""
        blocks = self.turn.blocks
        own = [
            Shadow(block.payload, block.payload_chars)
            for block in blocks
            if block.payload and block.kind in READABLE
        ]
        return Shadows((*own, *(shadow for block in blocks for shadow in block.shadows)))

    @cached_property
    def calls(self) -> frozenset[bytes]:
        """The ids of its calls."""
        blocks = self.turn.blocks
        return frozenset(a for b in blocks if b.kind is Kind.CALL for a in b.anchors)

    @cached_property
    def thoughts(self) -> frozenset[bytes]:
        """Digests of its signed thoughts that are long enough to be no other answer's."""
        return frozenset(
            block.payload
            for block in self.turn.blocks
            if block.kind is Kind.REASONING and block.sealed and block.payload_chars >= _LONG_TEXT
        )

    @cached_property
    def payloads(self) -> frozenset[bytes]:
        """Digests of what its blocks show."""
        return frozenset(block.payload for block in self.turn.blocks) - {b""}

    @cached_property
    def seals(self) -> Mapping[str, list[Value]]:
        """Its seals by artifact, in their order."""
        found: dict[str, list[Value]] = {}
        for block in self.turn.blocks:
            spend()
            seen = set()
            for value in block.values:
                if value.artifact not in seen and value.state is not State.ABSENT:
                    found.setdefault(value.artifact, []).append(value)
                seen.add(value.artifact)
        return found

    @cached_property
    def _ids(self) -> Mapping[Kind, set[bytes]]:
        """By kind of its blocks, all their ids; none where one of them has no id, or a seal."""
        found: dict[Kind, set[bytes]] = {}
        unnamed = {b.kind for b in self.turn.blocks if not b.anchors or b.sealed}
        for block in self.turn.blocks:
            spend()
            if block.kind not in unnamed:
                found.setdefault(block.kind, set()).update(block.anchors)
        return found

    def unlike(self, sent: Block) -> bool:
        """Whether all its blocks of a kind have other ids than the one that is sent."""
        ids = self._ids.get(sent.kind, set())
        return bool(ids and sent.anchors) and ids.isdisjoint(sent.anchors)


def _stands(
    came: _Came,
    slots: Collection[SlotAt],
    messages: Sequence[Message],
    chains: Sequence[bytes],
    names: Names,
    probe: Search,
) -> bool:
    """Whether something of the turn stands at these places."""
    if not slots:
        return False
    turn = came.turn
    in_place = any(chains[at] == turn.chain for at, _ in slots)
    run = {
        path_of(names.root, messages[at], index): messages[at].blocks[index]
        for at, index in sorted(slots)
    }
    if _carved(turn, run, probe):
        return True
    if any(block.payload in came.thoughts for block in run.values()):
        return True
    sent = [(path, value) for path, block in run.items() for value in block.seals()]
    seals = {own for own in _own_seals(came, sent, names, probe) if own is not None}
    if seals:
        return True in seals
    held = [shadow for path in run for shadow in probe.holds_at(path, came.texts)]
    if any(shadow.chars >= _LONG_TEXT for shadow in held):
        return True
    if came.calls and any(not came.calls.isdisjoint(probe.named(path)) for path in run):
        return True
    visible = [block for block in run.values() if block.payload or block.anchors]
    if any(came.unlike(block) for block in visible):
        return False
    told = in_place or not visible or any(block.kind is Kind.CALL for block in visible)
    return told and (bool(held) or all(block.payload in came.payloads for block in visible))


def _carved(turn: Turn, run: Mapping[str, Block], probe: Search) -> bool:
    """Whether an answer that was text with tags is sent as reasoning and text."""
    kinds = [block.kind for block in run.values()]
    if kinds != [Kind.REASONING, Kind.TEXT] or len(turn.blocks) != 1:
        return False
    came = turn.blocks[0]
    thought, rest = run
    said = Shadow(came.payload, came.payload_chars)
    return came.kind is Kind.TEXT and probe.carved((thought, rest), said)


def _own_seals(
    came: _Came, sent: Sequence[tuple[str, Value]], names: Names, probe: Search
) -> Iterator[bool | None]:
    """For each seal at these places: is it one of the turn's own, changed? None: it is no seal."""
    total = Counter(value.artifact for _, value in sent)
    passed: Counter[str] = Counter()
    for path, value in sent:
        own, name = came.seals.get(value.artifact, []), value.artifact
        # some may be gone before it, or after it: its place is counted from both ends
        starts = (passed[name], len(own) - total[name] + passed[name])
        places = {at for start in starts for at in range(start - _NEAR, start + _NEAR + 1)}
        near = [own[at] for at in sorted(places) if 0 <= at < len(own)]
        passed[name] += 1
        yield _own_seal(near, value, path, names, probe)


def _own_seal(
    near: Sequence[Value], sent: Value, path: str, names: Names, probe: Search
) -> bool | None:
    if sent.state is not State.PRESENT or sent.canon in names.placeholders:
        return None
    binary = sent.artifact in names.binary
    issued = sent.size >= LEAST_SEAL
    for came in near:
        spend()
        sample = probe.sample(path, sent.artifact, came.size, binary=binary)
        if akin(came, sample):
            return True
        issued = issued and sample is not None and not sample.foreign_alphabet
    return False if issued else None
