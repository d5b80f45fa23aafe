"""Locating: which recorded turns does a request replay, and which conversation does it continue?

Theory of operation. Every message of the model in the request votes, by what it holds, for the
turns that may have brought it. Seals and ids are strong evidence, equal visible text is weak, and
a prefix equal to the one a turn answered says "this stands where that answer belongs". The turn
whose line of ancestors gathers most votes is the tip; the lineage is that line plus any turn found
by strong evidence elsewhere (a handed-over transcript). Weak evidence alone counts only when it is
unambiguous and long, or when the caller named the conversation. A tie is nobody: never guess.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from otel_sealed.model import Block, Kind, Lineage, Message, Role, SlotAt, Speaker, State, Turn

_STRONG = 8
_RESULT = 6
_CHAIN = 5
_LONG = 3
_WEAK = 1
_ENOUGH = _CHAIN
_LONG_TEXT = 24
_MAX_LINE = 4096


class Found(Protocol):
    """What locating needs of a ledger."""

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Serial numbers of the turns that hold a key, oldest first."""

    def get(self, number: int) -> Turn | None:
        """The turn of a serial number."""

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""


class Far(Found, Protocol):
    """A ledger that would rather be asked for much at once. Nothing but speed depends on it."""

    def expect(self, keys: Sequence[bytes]) -> None:
        """These keys will be looked up now."""


class Ledger(Found, Protocol):
    """What the tracker needs of a ledger."""

    def record(self, turn: Turn) -> Turn:
        """Remember a turn and return it numbered."""

    def __len__(self) -> int:
        """Turns held."""


class _Poll:
    """Votes of one request. Local to one call of `locate`."""

    def __init__(self, ledger: Found, conversation: bytes) -> None:
        self.ledger = ledger
        self.conversation = conversation
        self.votes: dict[int, int] = {}
        self.strong: set[int] = set()
        self.by_slot: dict[SlotAt, tuple[int, ...]] = {}
        self.sure: set[SlotAt] = set()
        self.by_message: dict[int, set[int]] = {}
        self.hits = 0
        self.misses = 0

    def look(self, key: bytes) -> tuple[int, ...]:
        found = self.ledger.lookup(key) if key else ()
        if found and self.conversation:
            same = tuple(n for n in found if self._same(n))
            found = same or found
        return found

    def vote(self, numbers: tuple[int, ...], weight: int) -> None:
        for n in numbers:
            self.votes[n] = self.votes.get(n, 0) + weight
        if weight >= _STRONG:
            self.strong.update(numbers)

    def _same(self, number: int) -> bool:
        turn = self.ledger.get(number)
        return turn is not None and turn.conversation == self.conversation


def locate(
    ledger: Found,
    messages: tuple[Message, ...],
    chains: tuple[bytes, ...],
    *,
    conversation: bytes = b"",
    continues: bool = False,
    reference: bytes = b"",
) -> Lineage:
    """The lineage of a request. `chains[i]` is the rolling digest of all messages before `i`.

    `continues`: where nothing is found, the request follows the last turn of `conversation`.
    """
    poll = _Poll(ledger, conversation)
    expect = getattr(ledger, "expect", None)
    if expect is not None:
        expect(_asked_for(messages, chains))
    for at, message in enumerate(messages):
        _poll_message(poll, at, message, chains[at])
    _keep_order(poll)
    if not (poll.votes or reference or conversation):
        return Lineage(hits=poll.hits, misses=poll.misses)
    held = _line(ledger, max(poll.look(reference), default=-1)) if reference else ()
    tip = _tip(poll)
    if tip < 0 and held:
        tip = held[-1].number
    spoken = continues or any(m.speaker is Speaker.MODEL for m in messages)
    if tip < 0 and conversation and spoken and not reference:
        tip = ledger.last(conversation)
    tip = _behind(ledger, tip)
    line = {turn.number: turn for turn in (*held, *_line(ledger, tip))}
    for number in sorted(poll.strong - line.keys()):
        turn = ledger.get(number)
        if turn is not None and not _rival(turn, line, poll):
            line[number] = turn
    turns = tuple(line[n] for n in sorted(line))
    owner = _owners(messages, poll, turns)
    return Lineage(
        turns=turns,
        owner=owner,
        held=frozenset(turn.number for turn in held),
        tip=tip,
        inferred=frozenset(line.keys() - poll.strong),
        hits=poll.hits,
        misses=poll.misses,
    )


def _asked_for(messages: tuple[Message, ...], chains: tuple[bytes, ...]) -> list[bytes]:
    """What `locate` is about to look up: a ledger that is far away fetches it at once."""
    keys = []
    for message, chain in zip(messages, chains, strict=True):
        for block in message.blocks:
            keys += [v.canon for v in block.values if v.role is Role.SEAL]
            keys += (*block.anchors, *block.hidden)
        if message.speaker is Speaker.MODEL:
            keys += (chain, message.joined, *(block.payload for block in message.blocks))
    return keys


def summarised(ledger: Found, told: Iterable[bytes], conversation: bytes) -> Lineage | None:
    """The lineage of a request that tells an earlier answer instead of replaying its turns.

    `told`: digests of what its texts may be made of. None when no recorded answer is among them.
    """
    for digest in told:
        numbers = ledger.lookup(digest)
        turns = [turn for turn in map(ledger.get, numbers) if turn is not None]
        same = [t for t in turns if not conversation or t.conversation == conversation]
        if same and same[-1].joined == digest:
            return Lineage(turns=_line(ledger, same[-1].number), tip=same[-1].number)
    return None


def _poll_message(poll: _Poll, at: int, message: Message, chain: bytes) -> None:
    """One message's votes: text it shares with others does not outvote its strong keys."""
    model = message.speaker is Speaker.MODEL
    strong = [_strong(poll, block) for block in message.blocks]
    sure = _agreed(strong)
    for block, numbers in zip(message.blocks, strong, strict=True):
        if numbers:
            poll.vote(_within(numbers, sure), _STRONG if model or block.sealed else _RESULT)
            poll.hits += 1
        elif block.sealed:
            poll.misses += 1
    if not model:
        return
    stranger = not any(strong) and _identified(message)
    before = () if stranger else _within(poll.look(chain), sure)
    poll.vote(before, _CHAIN)
    joined = _told_apart(poll.look(message.joined), sure, before)
    poll.vote(joined, _LONG if message.joined_chars >= _LONG_TEXT else _WEAK)
    poll.by_message[at] = {*joined, *before}
    for index, block in enumerate(message.blocks):
        long = block.payload_chars >= _LONG_TEXT
        told = not stranger or (long and block.kind is not Kind.CALL)
        weak = poll.look(block.payload) if told else ()
        poll.vote(_told_apart(weak, sure, {*before, *joined}), _LONG if long else _WEAK)
        poll.by_slot[(at, index)] = strong[index] or _within(weak, sure) or weak
        if strong[index]:
            poll.sure.add((at, index))


def _identified(message: Message) -> bool:
    """Whether a message has a seal and an id: with both unknown, it is of a turn unseen.

    Its place, or the same call, may be that of a turn seen all the same: of one asked for again.
    """
    blocks = message.blocks
    return any(block.sealed for block in blocks) and any(block.anchors for block in blocks)


def _keep_order(poll: _Poll) -> None:
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
    for n in weak:
        above = _nearest(poll, n, first)
        if above >= 0 and last.get(n, first[above]) < first[above]:
            del poll.votes[n]
            for slot in poll.by_slot.keys() - poll.sure:
                poll.by_slot[slot] = tuple(m for m in poll.by_slot[slot] if m != n)


def _agreed(strong: list[tuple[int, ...]]) -> frozenset[int]:
    """The turns that all blocks with strong keys agree on; where they do not, any they name."""
    named = [frozenset(numbers) for numbers in strong if numbers]
    if not named:
        return frozenset()
    return frozenset.intersection(*named) or frozenset.union(*named)


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


def _strong(poll: _Poll, block: Block) -> tuple[int, ...]:
    """Turns that all strong keys of a block agree on; where they disagree, those of its ids.

    A known id under another turn's seal is the carrier of that id, with a swapped seal in it.
    """
    keys = [v.canon for v in block.values if v.role is Role.SEAL and v.state is State.PRESENT]
    found: tuple[int, ...] = ()
    for key in (*block.anchors, *keys, *block.hidden):
        numbers = poll.look(key)
        both = tuple(n for n in numbers if n in found)
        found = both or found or numbers
    return found


def _tip(poll: _Poll) -> int:
    """The turn whose line gathers most votes; -1 when evidence is weak or tied."""
    scores: dict[int, int] = {}
    for number in sorted(poll.votes):
        above = _nearest(poll, number, scores)
        scores[number] = poll.votes[number] + (scores[above] if above >= 0 else 0)
    if not scores:
        return -1
    best = max(scores.values())
    tips = [n for n, score in scores.items() if score == best]
    if poll.conversation:
        return tips[-1]
    if best < _ENOUGH and not (len(tips) == 1 and best >= _LONG):
        return -1
    if len(tips) > 1 and not any(n in poll.strong for n in tips):
        return -1
    return tips[-1]


def _nearest(poll: _Poll, number: int, scores: Mapping[int, int]) -> int:
    turn = poll.ledger.get(number)
    while turn is not None and turn.parent not in scores:
        turn = poll.ledger.get(turn.parent)
    return -1 if turn is None else turn.parent


def _line(ledger: Found, tip: int) -> tuple[Turn, ...]:
    line: list[Turn] = []
    turn = ledger.get(tip) if tip >= 0 else None
    while turn is not None and len(line) < _MAX_LINE:
        line.append(turn)
        turn = ledger.get(turn.parent) if turn.parent >= 0 else None
    return tuple(reversed(line))


def _behind(ledger: Found, tip: int) -> int:
    """The newer compaction of the conversation where the request ends on an older one.

    A request that ends on a compaction although the same conversation went on to compact again is
    a resume from an old checkpoint; one that replays anything after it is a fork.
    """
    turn = ledger.get(tip) if tip >= 0 else None
    if turn is None or not _compacts(turn):
        return tip
    later = [t for t in _line(ledger, ledger.last(turn.conversation)) if t.number >= tip]
    if not later or later[0].number != tip:
        return tip
    return next((t.number for t in reversed(later) if _compacts(t)), tip)


def _compacts(turn: Turn) -> bool:
    return any(block.kind is Kind.COMPACTION and block.sealed for block in turn.blocks)


def _rival(turn: Turn, line: Mapping[int, Turn], poll: _Poll) -> bool:
    """Whether `turn` is only another holder of keys that a turn of the line explains."""
    for slot_numbers in poll.by_slot.values():
        if turn.number in slot_numbers and not any(n in line for n in slot_numbers):
            return False
    return True


def _owners(
    messages: tuple[Message, ...], poll: _Poll, turns: tuple[Turn, ...]
) -> dict[SlotAt, int]:
    """Give each block of the model to one turn: by its keys, else by its neighbours, else by order.

    A key shared by several turns of the line (the same short text twice, the constant seal of a
    mock) goes to the turn of its neighbours, else to the first of them that is not yet told.
    """
    known = {turn.number for turn in turns}
    homes = _homes(messages, poll, known)
    astray = _astray(messages, poll)
    owner: dict[SlotAt, int] = {}
    current = untold = -1
    for at, message in enumerate(messages):
        if message.speaker is not Speaker.MODEL:
            untold = current + 1
            continue
        found = {
            index: [
                n
                for n in poll.by_slot.get((at, index), ())
                if n in known and ((at, index), n) not in astray
            ]
            for index in range(len(message.blocks))
        }
        _send_home(found, message, at, homes)
        sure = {numbers[0] for numbers in found.values() if len(numbers) == 1}
        mine = []
        for index, numbers in found.items():
            if numbers:
                current = _next([n for n in numbers if n in sure] or numbers, untold, current)
                owner[(at, index)] = current
                mine.append(current)
        hinted = sorted(n for n in poll.by_message.get(at, ()) if n in known)
        if not mine and hinted:
            current = _next(hinted, untold, current)
            mine = [current]
        _fill(owner, at, len(message.blocks), mine)
    _by_order(messages, owner, turns)
    return owner


def _astray(messages: tuple[Message, ...], poll: _Poll) -> set[tuple[SlotAt, int]]:
    """Places with the turns that they have no more than a visible payload of, and that stand apart.

    A call made twice, or an "OK." said twice, is not that of a turn whose id stands elsewhere, or
    whose seal stands elsewhere amid more of it: before a restart it may be of a turn unseen.
    """
    weak = poll.by_slot.keys() - poll.sure
    if not weak or not poll.sure:
        return set()
    run_of = {slot: number for number, run in enumerate(_runs(messages)) for slot in run}
    held: dict[int, dict[int, int]] = {}
    homes: dict[int, set[int]] = {}
    for slot, numbers in poll.by_slot.items():
        run, (at, index) = run_of[slot], slot
        for n in numbers:
            counts = held.setdefault(n, {})
            counts[run] = counts.get(run, 0) + 1
            if slot in poll.sure and messages[at].blocks[index].anchors:
                homes.setdefault(n, set()).add(run)
    for at, index in poll.sure:
        for n in poll.by_slot[(at, index)]:
            here = run_of[(at, index)]
            most = max(held[n].values())
            if n not in homes and most > 1 and held[n][here] == most:
                homes[n] = {here}
    return {
        (slot, n)
        for slot in weak
        for n in poll.by_slot[slot]
        if n in homes and run_of[slot] not in homes[n]
    }


def _homes(
    messages: tuple[Message, ...], poll: _Poll, known: Collection[int]
) -> dict[int, set[int]]:
    """Turn to the messages in which blocks of it stand that are more than a seal."""
    homes: dict[int, set[int]] = {}
    for (at, index), numbers in poll.by_slot.items():
        block = messages[at].blocks[index]
        if (block.anchors or not block.sealed) and len(numbers) == 1 and numbers[0] in known:
            homes.setdefault(numbers[0], set()).add(at)
    return homes


def _send_home(
    found: dict[int, list[int]], message: Message, at: int, homes: Mapping[int, set[int]]
) -> None:
    """A block with nothing but the seal of a turn that stands elsewhere is a swapped seal.

    The carrier belongs to the turn whose blocks stand around it.
    """
    local = [number for number, places in homes.items() if at in places]
    for index, numbers in found.items():
        away = numbers and not any(n in local for n in numbers) and numbers[0] in homes
        if len(local) == 1 and away and not message.blocks[index].anchors:
            found[index] = local


def _next(numbers: list[int], untold: int, current: int) -> int:
    """The first of `numbers` not told yet, else the first not before the current one."""
    later = [n for n in numbers if n >= untold] or [n for n in numbers if n >= current]
    return min(later, default=numbers[-1])


def _fill(owner: dict[SlotAt, int], at: int, count: int, mine: list[int]) -> None:
    """Blocks without a key of their own belong to the turn of the block before, else after."""
    if not mine:
        return
    now = mine[0]
    for index in range(count):
        now = owner.setdefault((at, index), now)


def _by_order(
    messages: tuple[Message, ...], owner: dict[SlotAt, int], turns: tuple[Turn, ...]
) -> None:
    """Runs of the model that nothing was found for, given to the turns missing at that place."""
    runs = _runs(messages)
    owned = [next((owner[s] for s in run if s in owner), -1) for run in runs]
    found = set(owner.values())
    for index, run in enumerate(runs):
        before = next((n for n in reversed(owned[:index]) if n >= 0), -1)
        if owned[index] >= 0:
            for slot in run:
                if slot not in owner:
                    owner[slot] = next(
                        (owner[s] for s in reversed(run) if s < slot and s in owner), owned[index]
                    )
            continue
        after = next((n for n in owned[index + 1 :] if n >= 0), None)
        gap = sum(1 for n in owned[index:] if n < 0) if after is None else _gap(owned, index)
        missing = [
            t.number
            for t in turns
            if t.number not in found and t.number > before and (after is None or t.number < after)
        ]
        if missing and gap <= len(missing):
            chosen = missing[-gap] if after is None else missing[0]
            owned[index] = chosen
            found.add(chosen)
            owner.update(dict.fromkeys(run, chosen))


def _gap(owned: list[int], index: int) -> int:
    """How many runs from `index` on belong to nobody, before the next that does."""
    return next(count for count, number in enumerate(owned[index:]) if number >= 0)


def _runs(messages: tuple[Message, ...]) -> list[list[SlotAt]]:
    runs: list[list[SlotAt]] = []
    open_run = False
    for at, message in enumerate(messages):
        if message.speaker is Speaker.MODEL:
            if not open_run:
                runs.append([])
            runs[-1].extend((at, index) for index in range(len(message.blocks)))
            open_run = True
        else:
            open_run = False
    return [run for run in runs if run]
