"""Owners: which turn of a lineage each block of the model in a request belongs to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from otel_sealed.ledger.poll import Poll
from otel_sealed.model import Kind, Message, SlotAt, Speaker, Turn


def owners(messages: tuple[Message, ...], poll: Poll, turns: tuple[Turn, ...]) -> dict[SlotAt, int]:
    """Give each block of the model to one turn: by its keys, else by its neighbours, else by order.

    A key shared by several turns of the line (the same short text twice, the constant seal of a
    mock) goes to the turn of its neighbours in the message, else to that of those in its run (some
    dialects have an item a message), else to the first of them that is not yet told.
    """
    known = {turn.number for turn in turns}
    homes = _homes(messages, poll, known)
    apart = _Apart(messages, poll)
    near = _near(poll)
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
                if n in known
                and ((at, index) in poll.sure or not apart.from_(at, n) or apart.torn(at, index, n))
            ]
            for index in range(len(message.blocks))
        }
        _send_home(found, message, at, homes)
        sure = {numbers[0] for numbers in found.values() if len(numbers) == 1}
        mine = []
        for index, numbers in found.items():
            if numbers:
                beside = [n for n in numbers if n in sure] or _beside(
                    numbers, near.get(at), current
                )
                current = _next(beside, untold, current)
                owner[(at, index)] = current
                mine.append(current)
        likely = poll.by_message.get(at, ())
        hinted = sorted(n for n in likely if n in known and not apart.from_(at, n))
        if not mine and hinted:
            current = _next(hinted, untold, current)
            mine = [current]
        _fill(owner, at, len(message.blocks), mine)
    _by_order(poll.runs, owner, turns)
    return owner


class _Apart:
    """Which turns surely stand in other runs of the model than a message is in.

    A call made twice, or an "OK." said twice, is not that of a turn whose id stands elsewhere, or
    whose seal stands elsewhere on or amid more of it: before a restart it may be of a turn unseen.
    """

    def __init__(self, messages: tuple[Message, ...], poll: Poll) -> None:
        self._messages = messages
        self._poll = poll
        runs = poll.runs if poll.sure else []
        self._run_of = {at: number for number, run in enumerate(runs) for at, _ in run}
        self._homes: dict[int, set[int]] = {}
        held: dict[int, dict[int, int]] = {}
        for (at, index), numbers in poll.by_slot.items() if runs else ():
            for n in numbers:
                counts = held.setdefault(n, {})
                counts[self._run_of[at]] = counts.get(self._run_of[at], 0) + 1
                block = messages[at].blocks[index]
                if (at, index) in poll.sure and (block.anchors or n in poll.look(block.payload)):
                    self._homes.setdefault(n, set()).add(self._run_of[at])
        for slot in poll.sure:
            run = self._run_of[slot[0]]
            for n in poll.by_slot[slot]:
                most = max(held[n].values())
                if n not in self._homes and most > 1 and held[n][run] == most:
                    self._homes[n] = {run}

    def from_(self, at: int, number: int) -> bool:
        """Whether turn `number` stands apart from message `at`."""
        homes = self._homes.get(number)
        return homes is not None and self._run_of.get(at) not in homes

    def torn(self, at: int, index: int, number: int) -> bool:
        """Whether a call without an id is one the turn made at once with those in its home.

        It stands a step or a few behind them and is missing there; and nothing in its message has a
        seal, as an answer of its own would.
        """
        blocks, turn = self._messages[at].blocks, self._poll.ledger.get(number)
        call = blocks[index]
        if turn is None or call.kind is not Kind.CALL or call.anchors:
            return False
        if any(block.sealed for block in blocks):
            return False
        home = max(self._homes[number])
        calls = sum(block.kind is Kind.CALL for block in turn.blocks)
        there = {self._messages[a].blocks[i].payload for a, i in self._poll.runs[home]}
        return home < self._run_of[at] < home + calls and call.payload not in there


def _near(poll: Poll) -> dict[int, set[int]]:
    """Message to the turns that blocks of its run are of for sure."""
    near: dict[int, set[int]] = {}
    for run in poll.runs if poll.sure else ():
        found = poll.sure_in(run)
        if found:
            near.update(dict.fromkeys((at for at, _ in run), found))
    return near


def _beside(numbers: list[int], near: Collection[int] | None, current: int) -> list[int]:
    """Of turns that hold a block, those that stand in its run: the one before it, or any."""
    if near is None or len(numbers) == 1:
        return numbers
    if current in near and current in numbers:
        return [current]
    return [n for n in numbers if n in near] or numbers


def _homes(
    messages: tuple[Message, ...], poll: Poll, known: Collection[int]
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
    runs: Sequence[Sequence[SlotAt]], owner: dict[SlotAt, int], turns: tuple[Turn, ...]
) -> None:
    """Runs of the model that nothing was found for, given to the turns missing at that place."""
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
