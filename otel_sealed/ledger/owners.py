"""Owners: which turn of a lineage each block of the model in a request belongs to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence

from otel_sealed.ledger.poll import Poll
from otel_sealed.model import Kind, Message, SlotAt, Speaker, Turn
from otel_sealed.steps import spend


def owners(messages: tuple[Message, ...], poll: Poll, turns: tuple[Turn, ...]) -> dict[SlotAt, int]:
    """Give each block of the model to one turn: by its keys, else by its neighbours, else by order.

    A key shared by several turns of the line (the same short text twice, the constant seal of a
    mock) goes to the turn of its neighbours in the message, else to that of those in its run (some
    dialects have an item a message), else to the first of them that is not yet told.
    """
    known = {turn.number for turn in turns}
    homes = _homes(messages, poll, known)
    local: dict[int, list[int]] = {}
    for number, places in homes.items():
        for place in places:
            local.setdefault(place, []).append(number)
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
        _send_home(found, message, local.get(at, ()), homes)
        sure = {numbers[0] for numbers in found.values() if len(numbers) == 1}
        mine = []
        for index, numbers in found.items():
            if numbers:
                before = current if current >= untold else -1
                beside = [n for n in numbers if n in sure] or _beside(numbers, near.get(at), before)
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
        self._calls: dict[int, int] = {}
        self._shown: dict[int, set[bytes]] = {}
        self._sealed: dict[int, bool] = {}
        held: dict[int, dict[int, int]] = {}
        for (at, index), numbers in poll.by_slot.items() if runs else ():
            for n in numbers:
                counts = held.setdefault(n, {})
                counts[self._run_of[at]] = counts.get(self._run_of[at], 0) + 1
                block = messages[at].blocks[index]
                if (at, index) in poll.sure and (block.anchors or n in poll.look(block.payload)):
                    self._homes.setdefault(n, set()).add(self._run_of[at])
        most = {n: max(counts.values()) for n, counts in held.items()}
        for slot in poll.sure:
            run = self._run_of[slot[0]]
            for n in poll.by_slot[slot]:
                spend()
                if n not in self._homes and most[n] > 1 and held[n][run] == most[n]:
                    self._homes[n] = {run}
        self._last_home = {n: max(homes) for n, homes in self._homes.items()}

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
        if at not in self._sealed:
            self._sealed[at] = any(block.sealed for block in blocks)
            spend(len(blocks))
        if self._sealed[at]:
            return False
        home = self._last_home[number]
        if number not in self._calls:
            self._calls[number] = sum(block.kind is Kind.CALL for block in turn.blocks)
            spend(len(turn.blocks))
        if home not in self._shown:
            run = self._poll.runs[home]
            self._shown[home] = {self._messages[a].blocks[i].payload for a, i in run}
            spend(len(run))
        near = home < self._run_of[at] < home + self._calls[number]
        return near and call.payload not in self._shown[home]


def _near(poll: Poll) -> dict[int, set[int]]:
    """Message to the turns that blocks of its run are of for sure."""
    near: dict[int, set[int]] = {}
    for run in poll.runs if poll.sure else ():
        found = poll.sure_in(run)
        if found:
            near.update(dict.fromkeys((at for at, _ in run), found))
    return near


def _beside(numbers: list[int], near: Collection[int] | None, before: int) -> list[int]:
    """Of turns that hold a block, those of its run: the one `before` it there, or any."""
    if near is None or len(numbers) == 1:
        return numbers
    if before in near and before in numbers:
        return [before]
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
    found: dict[int, list[int]],
    message: Message,
    local: Sequence[int],
    homes: Mapping[int, set[int]],
) -> None:
    """A block with nothing but the seal of a turn that stands elsewhere is a swapped seal.

    The carrier belongs to the turn whose blocks stand around it: the one of `local`.
    """
    for index, numbers in found.items():
        away = numbers and not any(n in local for n in numbers) and numbers[0] in homes
        if len(local) == 1 and away and not message.blocks[index].anchors:
            found[index] = [*local]


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
    """Runs of the model that nothing was found for, given to the turns missing at that place.

    Of several such runs in a row, and fewer turns that are missing there, the last ones.
    """
    owned = [next((owner[s] for s in run if s in owner), -1) for run in runs]
    found = set(owner.values())
    missing = [turn.number for turn in turns if turn.number not in found]
    spend(sum(map(len, runs)) + len(turns))
    before, index = -1, 0
    while index < len(runs):
        if owned[index] >= 0:
            before = owned[index]
            _fill_run(runs[index], owner, before)
            index += 1
            continue
        end = next((at for at in range(index, len(runs)) if owned[at] >= 0), len(runs))
        last = end == len(runs)
        low = bisect_right(missing, before)
        high = len(missing) if last else bisect_left(missing, owned[end])
        count = max(min(end - index, high - low), 0)
        low = high - count if last else low
        for run, number in zip(runs[end - count : end], missing[low : low + count], strict=True):
            owner.update(dict.fromkeys(run, number))
        del missing[low : low + count]
        index = end


def _fill_run(run: Sequence[SlotAt], owner: dict[SlotAt, int], first: int) -> None:
    """Places of a run without an owner belong to the turn of the place before, else to `first`."""
    now = first
    for slot in run:
        now = owner.setdefault(slot, now)
