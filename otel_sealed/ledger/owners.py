"""Owners: which turn of a lineage each block of the model in a request belongs to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from otel_sealed.ledger.poll import Poll
from otel_sealed.model import Message, SlotAt, Speaker, Turn


def owners(messages: tuple[Message, ...], poll: Poll, turns: tuple[Turn, ...]) -> dict[SlotAt, int]:
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


def _astray(messages: tuple[Message, ...], poll: Poll) -> set[tuple[SlotAt, int]]:
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
