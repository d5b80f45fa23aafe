"""Evidence: what each message of a request says about the recorded turns it may be of.

Model. A recorded turn is indexed under keyed digests (`ledger`). A message of a request holds some
of the same digests; each such key is evidence, of one of the tiers of `Tier`. Tiers are compared
one after the other, never added up.

Invariants:
1. A message that holds certain evidence is of the turns that evidence names; nothing weaker in it
   is asked for.
2. A key that several turns hold is evidence for each of them, and chooses between none of them.
3. A block with another id than all blocks of its kind in a turn is no evidence for that turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum

from otel_sealed.ledger.protocol import Found
from otel_sealed.model import Block, Kind, Message, Role, SlotAt, Speaker, State
from otel_sealed.steps import spend


class Tier(IntEnum):
    """The evidence table: what a key is, and how well it identifies a turn.

    A higher tier outweighs any number of keys of lower ones.
    """

    WORDS = 0
    """A text or call of fewer than `LONG_TEXT` characters: many an answer is the same few words."""
    PLACE = 1
    """The messages before it are those the turn answered; the answer may be another one."""
    SUPPORTING = 2
    """A longer text, or a call with longer arguments: it is rarely equal by chance."""
    BACKED = 3
    """A text or call in its turn's place: two kinds of evidence in one message agree."""
    CERTAIN = 4
    """A seal, also one inside an id, or an id: the provider issues each once. The id of a result is
    that of a call, which was made in this history."""


LONG_TEXT = 24
"""Characters. Shorter answers ("Done.", "Let me check.") are given in many conversations. It is not
measured on recordings: tests of faithful hosts and of losses hold with it. A greeting is longer and
said often all the same, which is why a text in several turns chooses between none of them."""


class Claims:
    """The evidence of one request. Local to one call of `locate`.

    `counts`: by tier and the turns that hold a key, how many places have such a key. `certain`: the
    turns that certain evidence names, each with the sets of turns that such places name with it;
    `backed`: the same of a long text, or a call, in the place of one turn, and of a long thought
    whose seal is gone. `sure`: by place of the
    model, the turns certain evidence names. `unknown`: messages with a seal that no turn has.
    `runs`: places of the model with nobody else between them. `compacted`: whether a known
    compaction is in the request. `hits`, `misses`: lookups by strong keys.
    """

    def __init__(self, ledger: Found, conversation: bytes, without: Collection[int]) -> None:
        """`conversation`: narrows what keys find, where it has any; `without`: left out."""
        self.ledger = ledger
        self.conversation = conversation
        self.without = without
        self.counts: Counter[tuple[Tier, tuple[int, ...]]] = Counter()
        self.certain: dict[int, list[tuple[int, ...]]] = {}
        self.backed: dict[int, list[tuple[int, ...]]] = {}
        self.sure: dict[SlotAt, tuple[int, ...]] = {}
        self.unknown: set[int] = set()
        self.runs: list[list[SlotAt]] = []
        self.compacted = False
        self.hits = 0
        self.misses = 0
        self._ids: dict[int, Mapping[bytes, set[bytes]]] = {}

    def named(self) -> set[int]:
        """All turns that any evidence names."""
        return {n for _, numbers in self.counts for n in numbers}

    def look(self, key: bytes) -> tuple[int, ...]:
        """The turns that hold a key; those of the conversation alone, where there are any."""
        spend()
        found = self.ledger.lookup(key) if key else ()
        if found and self.without:
            found = tuple(n for n in found if n not in self.without)
        if found and self.conversation:
            same = tuple(n for n in found if self._same(n))
            found = same or found
        return found

    def sure_in(self, run: Sequence[SlotAt]) -> set[int]:
        """The turns that certain evidence at these places names."""
        return {n for slot in run for n in self.sure.get(slot, ())}

    def add(self, at: int, message: Message, chain: bytes, start: bytes) -> None:
        """Collect the evidence of message `at`; `chain`: rolling digest of those before it.

        `start`: that of those before this run of the model, or the last one.
        """
        model = message.speaker is Speaker.MODEL
        strong = [self._strong(block) for block in message.blocks]
        if any(len(numbers) > 1 for numbers in strong):
            here = self.look(start)
            strong = [likely(numbers, here) for numbers in strong]
        agreed = agreed_on(strong)
        for index, (block, numbers) in enumerate(zip(message.blocks, strong, strict=True)):
            if numbers:
                named = tuple(n for n in numbers if n in agreed)
                self._certain(named, copied=block.sealed and not model)
                self.hits += 1
                self.compacted |= block.sealed and block.kind is Kind.COMPACTION
                if model:
                    self.sure[at, index] = named
            elif block.sealed:
                self.misses += 1
                self.unknown.add(at)
        if model and not agreed:
            self._weaker(message, chain)

    def _certain(self, named: tuple[int, ...], *, copied: bool) -> None:
        """`copied`: a seal in a message that is not the model's: that is no place of its turn."""
        self.counts[Tier.CERTAIN, named] += 1
        for n in named:
            places = self.certain.setdefault(n, [])
            if not copied:
                places.append(named)

    def _weaker(self, message: Message, chain: bytes) -> None:
        """Collect what a message without certain evidence says.

        One with a seal and an id, both unknown, is of a turn nobody saw: its place, or the same
        call, may be that of a turn seen all the same.
        """
        blocks = message.blocks
        unseen = any(b.sealed for b in blocks) and any(b.anchors for b in blocks)
        here = () if unseen else self.look(chain)
        self._count(Tier.PLACE, here)
        if message.joined and all(block.payload != message.joined for block in blocks):
            self._text(self.look(message.joined), message.joined_chars, here)
        stripped = not any(b.sealed for b in blocks)
        for block in blocks:
            if block.payload and (not unseen or block.kind is not Kind.CALL):
                numbers = self.look_like(block)
                self._text(numbers, block.payload_chars, here)
                if stripped and block.kind is Kind.REASONING and identifies(block):
                    self._thought(numbers)

    def _text(self, numbers: tuple[int, ...], chars: int, here: Collection[int]) -> None:
        backed = tuple(n for n in numbers if n in here)
        self._count(Tier.BACKED if backed else text_tier(chars), backed or numbers)
        if len(backed) == 1 and text_tier(chars) is Tier.SUPPORTING:
            self.backed.setdefault(backed[0], []).append(numbers)

    def _thought(self, numbers: tuple[int, ...]) -> None:
        """A long thought without a seal: hardly any answer thinks the same, so it is the turn's."""
        if len(numbers) == 1:
            self.backed.setdefault(numbers[0], []).append(numbers)

    def _count(self, tier: Tier, numbers: tuple[int, ...]) -> None:
        if numbers:
            self.counts[tier, numbers] += 1

    def look_like(self, block: Block) -> tuple[int, ...]:
        """The turns that hold the payload of a block, and not in calls with other ids."""
        return tuple(n for n in self.look(block.payload) if not self._unlike(n, block))

    def _unlike(self, number: int, sent: Block) -> bool:
        if number not in self._ids:
            turn = self.ledger.get(number)
            self._ids[number] = ids_by_payload(turn.blocks if turn is not None else ())
        return unlike(self._ids[number], sent)

    def _strong(self, block: Block) -> tuple[int, ...]:
        return certain(block, self.look, self._same_vendor)

    def _same_vendor(self, numbers: Collection[int], others: Collection[int]) -> bool:
        """Whether turns are all of one vendor: else a seal among them was sent to another one."""
        turns = [self.ledger.get(n) for n in (*numbers, *others)]
        return len({turn.vendor for turn in turns if turn is not None}) == 1

    def _same(self, number: int) -> bool:
        turn = self.ledger.get(number)
        return turn is not None and turn.conversation == self.conversation


def collect(
    ledger: Found,
    messages: Sequence[Message],
    chains: Sequence[bytes],
    conversation: bytes,
    without: Collection[int],
) -> Claims:
    """The evidence of all messages. `chains[i]` is the rolling digest of those before `i`."""
    claims = Claims(ledger, conversation, without)
    claims.runs = runs_of(messages)
    starts = {run[0][0] for run in claims.runs}
    start = b""
    for at, message in enumerate(messages):
        start = chains[at] if at in starts else start
        claims.add(at, message, chains[at], start)
    return claims


def certain(
    block: Block,
    look: Callable[[bytes], tuple[int, ...]],
    same_vendor: Callable[[Collection[int], Collection[int]], bool],
) -> tuple[int, ...]:
    """Turns that all strong keys of a block agree on; where they disagree, those of its ids.

    A known id with another turn's seal is the carrier of that id, with a swapped seal in it; and so
    is, where there are no ids, a call or a long text that only one other turn of the vendor made.
    """
    found: tuple[int, ...] = ()
    for key in strong_keys(block):
        numbers = look(key)
        both = tuple(n for n in numbers if n in found)
        found = both or found or numbers
    if found and not block.anchors and identifies(block):
        carriers = look(block.payload)
        if len(carriers) == 1 and carriers[0] not in found and same_vendor(carriers, found):
            return carriers
    return found


def ids_by_payload(blocks: Sequence[Block]) -> dict[bytes, set[bytes]]:
    """By payload, the ids of blocks that have it; none where one has no id, or a seal."""
    unnamed = {block.payload for block in blocks if not block.anchors or block.sealed}
    found: dict[bytes, set[bytes]] = {}
    for block in blocks:
        spend()
        if block.payload not in unnamed:
            found.setdefault(block.payload, set()).update(block.anchors)
    return found


def unlike(ids: Mapping[bytes, set[bytes]], sent: Block) -> bool:
    """Whether all blocks of a turn with the payload of a call have other ids (`Block.unlike`).

    `ids`: those of the turn (`ids_by_payload`).
    """
    if sent.kind is not Kind.CALL or not sent.anchors:
        return False
    own = ids.get(sent.payload, set())
    return bool(own) and own.isdisjoint(sent.anchors)


def text_tier(chars: int) -> Tier:
    """The tier of an equal text, or of a call, of that many characters."""
    return Tier.SUPPORTING if chars >= LONG_TEXT else Tier.WORDS


def strong_keys(block: Block) -> tuple[bytes, ...]:
    """The keys of a block that are certain: its ids, its seals, and seals inside its ids."""
    seals = [v.canon for v in block.values if v.role is Role.SEAL and v.state is State.PRESENT]
    return (*block.anchors, *seals, *block.hidden)


def identifies(block: Block) -> bool:
    """Whether what a block shows identifies its turn: a call, or a long text."""
    return block.kind is Kind.CALL or block.payload_chars >= LONG_TEXT


def likely(numbers: tuple[int, ...], here: Collection[int]) -> tuple[int, ...]:
    """Of several turns that hold a key (a mock's one answer), those in their place, or all."""
    if len(numbers) == 1:
        return numbers
    return tuple(n for n in numbers if n in here) or numbers


def agreed_on(strong: Sequence[tuple[int, ...]]) -> frozenset[int]:
    """The turns that all blocks with strong keys agree on; where they do not, any they name."""
    named = [frozenset(numbers) for numbers in strong if numbers]
    if not named:
        return frozenset()
    return frozenset.intersection(*named) or frozenset.union(*named)


def runs_of(messages: Sequence[Message]) -> list[list[SlotAt]]:
    """The places of the model in a request, by run: nobody else speaks inside a run."""
    runs: list[list[SlotAt]] = []
    open_run = False
    for at, message in enumerate(messages):
        spend(1 + len(message.blocks))
        if message.speaker is Speaker.MODEL:
            if not open_run:
                runs.append([])
            runs[-1].extend((at, index) for index in range(len(message.blocks)))
            open_run = True
        else:
            open_run = False
    return [run for run in runs if run]
