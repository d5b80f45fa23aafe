"""Acceptance: a turn keeps places that little speaks for only if something of it is there.

Model. A turn answered a request, and where a later one begins with that request its answer belongs
after it. But the same may have been asked more than once: again, or by another process, or before a
restart; then the answer in that place is one nobody here saw, and nothing of it was lost. So what
is `unproven` in a lineage is asked for, each run by itself, since the same words may have been said
in several. The first row of `QUESTIONS` that holds decides; where none does, nothing of the turn is
there. Where an answer somebody else sealed is in the place of a turn, what words alone say of the
turns that continued it is chance.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from otel_sealed.contract import LEAST_SEAL, Names
from otel_sealed.diagnose import akin
from otel_sealed.matching.evidence import LONG_TEXT
from otel_sealed.model import Block, Kind, Lineage, Message, Shadow, SlotAt, State, Turn, Value
from otel_sealed.steps import spend
from otel_sealed.wire.blocks import READABLE
from otel_sealed.wire.search import Search, Shadows

_NEAR = 4
"""Seals of a turn, before and after its place in the order, that a changed one is compared with."""


def rejected(
    lineage: Lineage,
    messages: Sequence[Message],
    chains: Sequence[bytes],
    names: Names,
    probe: Search,
) -> tuple[frozenset[int], frozenset[SlotAt]]:
    """The turns that the request does not replay, and the places that are not their turn's.

    `chains[i]` is the rolling digest of all messages before `i`.
    """
    came = {turn.number: _Came(turn) for turn in lineage.turns} if lineage.unproven else {}
    there: set[int] = set()
    places: set[SlotAt] = set()
    replaced = sys.maxsize
    for number, slots in lineage.unproven:
        part = _Part(came[number], slots, messages, chains, names, probe)
        if part.accepted():
            there.add(number)
        else:
            places.update(slots)
            if part.in_place and part.other_seal():
                replaced = min(replaced, number)
    by_chance = {number for number in lineage.inferred if number > replaced}
    return (lineage.open - there) | by_chance, frozenset(places)


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
            if block.kind is Kind.REASONING and block.sealed and block.payload_chars >= LONG_TEXT
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


class _Part:
    """A turn and some places of one run."""

    def __init__(
        self,
        came: _Came,
        slots: Sequence[SlotAt],
        messages: Sequence[Message],
        chains: Sequence[bytes],
        names: Names,
        probe: Search,
    ) -> None:
        self._came = came
        self._names = names
        self._probe = probe
        self.in_place = any(chains[at] == came.turn.chain for at, _ in slots)
        self._run = {
            messages[at].path(names.root, index): messages[at].blocks[index]
            for at, index in sorted(slots)
        }

    def accepted(self) -> bool:
        """Whether something of the turn is at these places."""
        return next((answer for ask, answer in QUESTIONS if ask(self)), False)

    def carved(self) -> bool:
        """A turn that was text with tags is sent as reasoning and text."""
        kinds = [block.kind for block in self._run.values()]
        if kinds != [Kind.REASONING, Kind.TEXT] or len(self._came.turn.blocks) != 1:
            return False
        came = self._came.turn.blocks[0]
        thought, rest = self._run
        said = Shadow(came.payload, came.payload_chars)
        return came.kind is Kind.TEXT and self._probe.carved((thought, rest), said)

    def own_thought(self) -> bool:
        """A long thought of the turn is there, whatever seal is next to it."""
        return any(block.payload in self._came.thoughts for block in self._run.values())

    def edited_seal(self) -> bool:
        """A seal there is one of the turn's own, changed."""
        return True in self._seals

    def other_seal(self) -> bool:
        """A seal there is nobody's: somebody else issued it."""
        return False in self._seals

    def long_text(self) -> bool:
        """A long text of the turn is in a text there."""
        return any(shadow.chars >= LONG_TEXT for shadow in self._held)

    def named_call(self) -> bool:
        """A text there has the id of a call of the turn."""
        calls = self._came.calls
        return bool(calls) and any(not calls.isdisjoint(self._probe.named(p)) for p in self._run)

    def other_id(self) -> bool:
        """A block there has an id that no block of its kind in the turn has."""
        return any(self._came.unlike(block) for block in self._visible)

    def same_words(self) -> bool:
        """All that is shown there is the turn's, and it is in its place, or a call."""
        visible, payloads = self._visible, self._came.payloads
        placed = self.in_place or not visible or any(b.kind is Kind.CALL for b in visible)
        return placed and (bool(self._held) or all(b.payload in payloads for b in visible))

    @cached_property
    def _visible(self) -> list[Block]:
        return [block for block in self._run.values() if block.payload or block.anchors]

    @cached_property
    def _held(self) -> list[Shadow]:
        texts = self._came.texts
        return [shadow for path in self._run for shadow in self._probe.holds_at(path, texts)]

    @cached_property
    def _seals(self) -> set[bool]:
        return {own for own in self._own_seals() if own is not None}

    def _own_seals(self) -> Iterator[bool | None]:
        """For each seal: is it one of the turn's own, changed? None: it is no seal."""
        sent = [(path, value) for path, block in self._run.items() for value in block.seals()]
        total = Counter(value.artifact for _, value in sent)
        passed: Counter[str] = Counter()
        for path, value in sent:
            own, name = self._came.seals.get(value.artifact, []), value.artifact
            # some may be gone before it, or after it: its place is counted from both ends
            starts = (passed[name], len(own) - total[name] + passed[name])
            places = {at for start in starts for at in range(start - _NEAR, start + _NEAR + 1)}
            near = [own[at] for at in sorted(places) if 0 <= at < len(own)]
            passed[name] += 1
            yield self._own_seal(near, value, path)

    def _own_seal(self, near: Sequence[Value], sent: Value, path: str) -> bool | None:
        if sent.state is not State.PRESENT or sent.canon in self._names.placeholders:
            return None
        binary = sent.artifact in self._names.binary
        issued = sent.size >= LEAST_SEAL
        for came in near:
            spend()
            sample = self._probe.sample(path, sent.artifact, came.size, binary=binary)
            if akin(came, sample):
                return True
            issued = issued and sample is not None and not sample.foreign_alphabet
        return False if issued else None


QUESTIONS: Final[tuple[tuple[Callable[[_Part], bool], bool], ...]] = (
    (_Part.carved, True),
    (_Part.own_thought, True),
    (_Part.edited_seal, True),
    (_Part.other_seal, False),
    (_Part.long_text, True),
    (_Part.named_call, True),
    (_Part.other_id, False),
    (_Part.same_words, True),
)
"""What is asked of a part, in this order, and whether the turn is there if so. What identifies goes
before what contradicts, but for a seal of somebody else: many an answer says the same long text."""
