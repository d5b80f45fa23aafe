"""Polling: which recorded turns each message of a request speaks for, and for which turn they do.

Seals and ids are strong evidence, equal visible text is weak, and a prefix equal to the one a turn
answered says "this stands where that answer belongs". Weak evidence yields to strong: of a text
that several turns hold, of a call made twice, and of a turn that would stand before the one it
continued.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from otel_sealed.ledger.protocol import Found
from otel_sealed.model import Block, Kind, Message, Role, SlotAt, Speaker, State
from otel_sealed.steps import spend

_STRONG = 8
_RESULT = 6
_CHAIN = 5
_LONG = 3
_WEAK = 1
_ENOUGH = _CHAIN
_LONG_TEXT = 24


class Poll:
    """Votes of one request. Local to one call of `locate`.

    `votes` by turn, `strong` the turns something sure speaks for; `by_slot` the turns each block of
    the model may be of, `sure` the places with sure ones, `by_message` those of a whole message;
    `solid` the turns that more than a place or a few words speak for; `said` those that a long text
    of a message does, `strange` the messages with a seal that no turn has; `runs` the places that
    nobody else spoke between; `compacted` whether a known compaction is there. `without`: left out.
    """

    def __init__(
        self,
        ledger: Found,
        conversation: bytes,
        without: Collection[int] = (),
        *,
        continues: bool = False,
    ) -> None:
        """`continues`: the request continues `conversation` for sure."""
        self.ledger = ledger
        self.continues = continues
        self.without = without
        self.conversation = conversation
        self.votes: dict[int, int] = {}
        self.strong: set[int] = set()
        self.by_slot: dict[SlotAt, tuple[int, ...]] = {}
        self.sure: set[SlotAt] = set()
        self.solid: set[int] = set()
        self.said: dict[int, set[int]] = {}
        self.strange: set[int] = set()
        self.by_message: dict[int, set[int]] = {}
        self.runs: list[list[SlotAt]] = []
        self.compacted = False
        self._ids: dict[int, dict[bytes, set[bytes]]] = {}
        self.hits = 0
        self.misses = 0

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

    def look_like(self, block: Block) -> tuple[int, ...]:
        """The turns that hold the payload of a block, and not in calls with other ids."""
        found = self.look(block.payload)
        if block.kind is not Kind.CALL or not block.anchors:
            return found
        return tuple(n for n in found if not self._unlike(n, block))

    def _unlike(self, number: int, sent: Block) -> bool:
        """Whether all blocks of a turn with a call's payload have other ids (`Block.unlike`)."""
        if number not in self._ids:
            self._ids[number] = self._ids_of(number)
        ids = self._ids[number].get(sent.payload, set())
        return bool(ids) and ids.isdisjoint(sent.anchors)

    def _ids_of(self, number: int) -> dict[bytes, set[bytes]]:
        """By payload, the ids of the blocks of a turn; none where one has no id, or a seal."""
        turn = self.ledger.get(number)
        blocks = turn.blocks if turn is not None else ()
        unnamed = {block.payload for block in blocks if not block.anchors or block.sealed}
        found: dict[bytes, set[bytes]] = {}
        for block in blocks:
            spend()
            if block.payload not in unnamed:
                found.setdefault(block.payload, set()).update(block.anchors)
        return found

    def akin(self, number: int, others: Collection[int]) -> bool:
        """Whether a turn is of the vendor of others: else a seal among them went abroad."""
        turns = [self.ledger.get(n) for n in (number, *others)]
        return len({turn.vendor for turn in turns if turn is not None}) == 1

    def sure_in(self, run: Sequence[SlotAt]) -> set[int]:
        """The turns that sure blocks at these places are of."""
        return {n for slot in run if slot in self.sure for n in self.by_slot[slot]}

    def vote(self, numbers: tuple[int, ...], weight: int) -> None:
        """Speak for each of these turns."""
        for n in numbers:
            self.votes[n] = self.votes.get(n, 0) + weight
        if weight >= _STRONG:
            self.strong.update(numbers)

    def _same(self, number: int) -> bool:
        turn = self.ledger.get(number)
        return turn is not None and turn.conversation == self.conversation


def polled(
    ledger: Found,
    messages: Sequence[Message],
    chains: Sequence[bytes],
    conversation: bytes,
    without: Collection[int],
    *,
    continues: bool,
) -> Poll:
    """The votes of all messages. `chains[i]` is the rolling digest of those before `i`."""
    poll = Poll(ledger, conversation, without, continues=continues)
    poll.runs = _runs(messages)
    starts = {run[0][0] for run in poll.runs}
    here: tuple[int, ...] = ()
    for at, message in enumerate(messages):
        here = poll.look(chains[at]) if at in starts else here
        poll_message(poll, at, message, chains[at], here)
    keep_order(poll)
    hear(poll)
    return poll


def hear(poll: Poll) -> None:
    """Believe long texts, but not beside a seal nobody saw coming: many an answer says the same."""
    for run in poll.runs:
        places = {at for at, _ in run}
        if places.isdisjoint(poll.strange):
            for at in places:
                poll.solid.update(poll.said.get(at, ()))


def poll_message(
    poll: Poll, at: int, message: Message, chain: bytes, here: Collection[int]
) -> None:
    """One message's votes: text it shares with others does not outvote its strong keys.

    `here`: the turns that answered just what is before this run of the model, or the last one. Of
    several that have the same keys (the one answer of a mock) it is one of those.
    """
    model = message.speaker is Speaker.MODEL
    strong = [_of_these(_strong(poll, block), here) for block in message.blocks]
    sure = _agreed(strong)
    for block, numbers in zip(message.blocks, strong, strict=True):
        if numbers:
            poll.vote(_within(numbers, sure), _STRONG if model or block.sealed else _RESULT)
            poll.solid.update(_within(numbers, sure))
            poll.hits += 1
            poll.compacted = poll.compacted or (block.sealed and block.kind is Kind.COMPACTION)
        elif block.sealed:
            poll.misses += 1
            poll.strange.add(at)
    if not model:
        return
    stranger = not any(strong) and _identified(message)
    before = () if stranger else _within(poll.look(chain), sure)
    poll.vote(before, _CHAIN)
    joined = _told_apart(poll.look(message.joined), sure, before)
    poll.vote(joined, _LONG if message.joined_chars >= _LONG_TEXT else _WEAK)
    said = poll.said[at] = set(joined if message.joined_chars >= _LONG_TEXT else ())
    poll.by_message[at] = {*joined, *before}
    for index, block in enumerate(message.blocks):
        long = block.payload_chars >= _LONG_TEXT
        told = not stranger or (long and block.kind is not Kind.CALL)
        weak = poll.look_like(block) if told else ()
        if block.sealed and not (strong[index] or long):
            # a seal that no turn has speaks against a few words that one said elsewhere
            weak = tuple(n for n in weak if n in sure or n in before or n in joined)
        apart = _told_apart(weak, sure, {*before, *joined})
        poll.vote(apart, _LONG if long else _WEAK)
        if long:
            said.update(apart)
        poll.by_slot[(at, index)] = strong[index] or _within(weak, sure) or weak
        if strong[index]:
            poll.sure.add((at, index))


def _identified(message: Message) -> bool:
    """Whether a message has a seal and an id: with both unknown, it is of a turn unseen.

    Its place, or the same call, may be that of a turn seen all the same: of one asked for again.
    """
    blocks = message.blocks
    return any(block.sealed for block in blocks) and any(block.anchors for block in blocks)


def keep_order(poll: Poll) -> None:
    """Take back what weak evidence says of a turn that would stand before the turn it continued."""
    weak = poll.votes.keys() - poll.strong
    if not weak or not poll.sure:
        return
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for slot in sorted(poll.by_slot):
        for n in poll.by_slot[slot]:
            last[n] = slot[0]
            if slot in poll.sure:
                first.setdefault(n, slot[0])
    for at, numbers in poll.by_message.items():
        last.update((n, max(at, last.get(n, at))) for n in numbers)
    before = set()
    above_of = Nearest(poll, first)
    for n in weak:
        above = above_of(n)
        if above >= 0 and last.get(n, first[above]) < first[above]:
            del poll.votes[n]
            before.add(n)
    for slot in poll.by_slot.keys() - poll.sure if before else ():
        poll.by_slot[slot] = tuple(m for m in poll.by_slot[slot] if m not in before)


def _agreed(strong: list[tuple[int, ...]]) -> frozenset[int]:
    """The turns that all blocks with strong keys agree on; where they do not, any they name."""
    named = [frozenset(numbers) for numbers in strong if numbers]
    if not named:
        return frozenset()
    return frozenset.intersection(*named) or frozenset.union(*named)


def _of_these(numbers: tuple[int, ...], likely: Collection[int]) -> tuple[int, ...]:
    """Those of several turns with a key that are likely, or all."""
    if len(numbers) < 2:  # noqa: PLR2004 - one turn is no choice
        return numbers
    return tuple(n for n in numbers if n in likely) or numbers


def _within(numbers: tuple[int, ...], sure: Collection[int]) -> tuple[int, ...]:
    """`numbers`, or those of them that are sure where something is."""
    return tuple(n for n in numbers if n in sure) if sure else numbers


def _told_apart(
    weak: tuple[int, ...], sure: Collection[int], likely: Collection[int]
) -> tuple[int, ...]:
    """Of the turns that hold a visible text, those that something else speaks for, or the only one.

    A text that several turns hold, and nothing tells apart, is evidence for none of them.
    """
    if sure:
        return _within(weak, sure)
    backed = tuple(n for n in weak if n in likely)
    return backed or (weak if len(weak) == 1 else ())


def _strong(poll: Poll, block: Block) -> tuple[int, ...]:
    """Turns that all strong keys of a block agree on; where they disagree, those of its ids.

    A known id under another turn's seal is the carrier of that id, with a swapped seal in it; and
    so is, where there are no ids, a call or a text that only one other turn made.
    """
    keys = [v.canon for v in block.values if v.role is Role.SEAL and v.state is State.PRESENT]
    found: tuple[int, ...] = ()
    for key in (*block.anchors, *keys, *block.hidden):
        numbers = poll.look(key)
        both = tuple(n for n in numbers if n in found)
        found = both or found or numbers
    if (
        found
        and not block.anchors
        and (block.kind is Kind.CALL or block.payload_chars >= _LONG_TEXT)
    ):
        carriers = poll.look(block.payload)
        if len(carriers) == 1 and carriers[0] not in found and poll.akin(carriers[0], found):
            return carriers
    return found


def best_tip(poll: Poll) -> int:
    """The turn whose line gathers most votes; -1 when evidence is weak or tied.

    Of answers to the same request that are told apart by nothing, the last sure turn before them.
    """
    scores: dict[int, int] = {}
    above_of = Nearest(poll, poll.votes)
    for number in sorted(poll.votes):
        above = above_of(number)
        scores[number] = poll.votes[number] + (scores[above] if above >= 0 else 0)
    if not scores:
        return -1
    best = max(scores.values())
    tips = [n for n, score in scores.items() if score == best]
    if poll.continues or (poll.conversation and len(tips) == 1):
        return tips[-1]
    if best < _ENOUGH and not (len(tips) == 1 and best >= _LONG):
        return -1
    if len(tips) > 1 and not any(n in poll.strong for n in tips):
        common = set(map(Nearest(poll, poll.strong), tips))
        return common.pop() if len(common) == 1 else -1
    return tips[-1]


class Nearest:
    """The nearest ancestor of a turn that is one of some turns. Each turn is visited once."""

    def __init__(self, poll: Poll, among: Collection[int]) -> None:
        """`among`: a turn continues none that was recorded after it, so the first ends the way."""
        self._ledger = poll.ledger
        self._among = frozenset(among)
        self._least = min(self._among, default=-1)
        self._known: dict[int, int] = {}

    def __call__(self, number: int) -> int:
        """The number of the ancestor, or -1 where there is none."""
        passed: list[int] = []
        found = -1
        while number not in self._known:
            spend()
            passed.append(number)
            turn = self._ledger.get(number)
            if turn is None or turn.parent >= number:
                break
            if turn.parent in self._among:
                found = turn.parent
                break
            if turn.parent <= self._least:
                break
            number = turn.parent
        else:
            found = self._known[number]
        self._known.update(dict.fromkeys(passed, found))
        return found


def _runs(messages: Sequence[Message]) -> list[list[SlotAt]]:
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
