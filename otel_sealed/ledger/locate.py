"""Locating: which recorded turns does a request replay, and which conversation does it continue?

Theory of operation. Every message of the model in the request votes, by what it holds, for the
turns that may have brought it. Seals and ids are strong evidence, equal visible text is weak, and
a prefix equal to the one a turn answered says "this stands where that answer belongs". The turn
whose line of ancestors gathers most votes is the tip; the lineage is that line plus any turn found
by strong evidence elsewhere (a handed-over transcript). Weak evidence alone counts only when it is
unambiguous and long, or when the caller named the conversation. A tie is nobody: never guess.

A long conversation leaves turns behind: trimmed away, compacted, kept by the server. Of a run of
turns that are not in the request the newest `absent` have rows, the others had theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from otel_sealed.ledger.beside import Beside, overlooked
from otel_sealed.ledger.owners import owners
from otel_sealed.ledger.poll import Poll, best_tip, polled
from otel_sealed.ledger.protocol import Found
from otel_sealed.model import Kind, Lineage, Message, Role, SlotAt, Speaker, Turn
from otel_sealed.model.prefixes import Prefixes
from otel_sealed.steps import spend

_MAX_LINE = 4096


def locate(
    ledger: Found,
    messages: tuple[Message, ...],
    chains: tuple[bytes, ...],
    *,
    conversation: bytes = b"",
    continues: bool = False,
    reference: bytes = b"",
    without: Collection[int] = (),
    absent: int = sys.maxsize,
) -> Lineage:
    """The lineage of a request. `chains[i]` is the rolling digest of all messages before `i`.

    `continues`: where nothing is found, the request follows the last turn of `conversation`.
    `without`: turns that are not looked at. `absent`: how many turns in a row that are not in the
    request have rows all the same.
    """
    expect(ledger, messages, chains)
    asked = _Asked(messages, chains, conversation, continues, reference, without, absent)
    lineage = _lineage(ledger, asked)
    missed = overlooked(ledger, lineage, messages)
    return _lineage(Beside(ledger, missed), asked) if missed else lineage


class _Asked(NamedTuple):
    """What `locate` is asked for."""

    messages: tuple[Message, ...]
    chains: tuple[bytes, ...]
    conversation: bytes
    continues: bool
    reference: bytes
    without: Collection[int]
    absent: int


def _lineage(ledger: Found, asked: _Asked) -> Lineage:
    messages, chains, conversation, continues, reference, without, absent = asked
    poll = polled(ledger, messages, chains, conversation, without, continues=continues)
    if not (poll.votes or reference or conversation):
        return Lineage(hits=poll.hits, misses=poll.misses)
    least = min(poll.votes, default=sys.maxsize)
    held = _line(ledger, max(poll.look(reference), default=-1), least, absent) if reference else ()
    voted = best_tip(poll)
    follows = continues and not reference
    tip = _tip(poll, voted, held, messages, follows=follows)
    own = () if held and held[-1].number == tip else _line(ledger, tip, least, absent)
    line = {turn.number: turn for turn in (*held, *own)}
    places = _places(poll)
    for number in sorted(poll.strong - line.keys()):
        turn = ledger.get(number)
        if turn is not None and not _rival(places.get(number, ()), line):
            line[number] = turn
    turns = tuple(line[n] for n in sorted(line))
    owner = owners(messages, poll, turns)
    ahead = _ahead(poll, owner, tip) if follows else ()
    if ahead:
        tip = ahead[-1].number
        line.update((turn.number, turn) for turn in ahead)
        turns = (*turns, *ahead)
        owner = owners(messages, poll, turns)
    told = continues or reference
    known = {turn.number for turn in turns if turn.told} if continues else line.keys()
    placed = set() if told else _placed(poll, line, tip, {voted, *owner.values()})
    return Lineage(
        turns=turns,
        owner=owner,
        held=frozenset(turn.number for turn in held),
        tip=tip,
        inferred=frozenset(line.keys() - poll.strong),
        placed=frozenset(placed - set(without)),
        guessed=() if reference else tuple(_guessed(poll, owner, placed, known)),
        past=_past(turns, {*owner.values(), *poll.votes}, absent),
        hits=poll.hits,
        misses=poll.misses,
    )


def _tip(
    poll: Poll, voted: int, held: Sequence[Turn], messages: Sequence[Message], *, follows: bool
) -> int:
    """The newest turn the request continues, or -1: voted for, held by the server, or the last.

    `follows`: where nothing is found, it follows the last turn of its conversation, unless it asks
    what that one answered, or nothing that the model was told in that conversation.
    """
    tip = voted
    if tip < 0 and held:
        tip = held[-1].number
    if tip < 0 and follows:
        tip = _followed(poll.ledger, poll.ledger.last(poll.conversation), messages)
    while tip in poll.without:
        spend()
        turn = poll.ledger.get(tip)
        tip = -1 if turn is None else turn.parent
    return _behind(poll.ledger, tip, poll.conversation if follows and poll.compacted else b"")


def _ahead(poll: Poll, owner: Mapping[SlotAt, int], tip: int) -> tuple[Turn, ...]:
    """The turns of a transcript behind the tip, where the request ends in as many unknown answers.

    Only such whose requests were not seen: of others it is known where they stand.
    """
    owned = [any(slot in owner for slot in run) for run in poll.runs]
    strange = next((n for n, known in enumerate(reversed(owned)) if known), 0)
    if not strange:
        return ()
    line = _line(poll.ledger, poll.ledger.last(poll.conversation))
    ahead = tuple(turn for turn in line if turn.number > tip)
    known = any(turn.number == tip for turn in line) and not any(turn.told for turn in ahead)
    return ahead if known and len(ahead) == strange else ()


def _followed(ledger: Found, last: int, messages: Sequence[Message]) -> int:
    """The newest turn up to `last` that a request in which none is found may follow, or -1."""
    line = _line(ledger, last)
    now = tuple(m.digest for m in messages if m.speaker is not Speaker.MODEL)
    prefixes = Prefixes(line, [turn.number for turn in line], now)
    for turn in reversed(line):
        length = prefixes.lengths.get(turn.number)
        if length is None:
            return turn.number
        if not now or prefixes.agreed[turn.number] < max(length, len(now)):
            was = prefixes.full(turn.number)
            return -1 if set(was).isdisjoint(now) else turn.number
    return -1


def _placed(poll: Poll, line: Mapping[int, Turn], tip: int, found: Iterable[int]) -> set[int]:
    """Those `found`, and at the end of the line, that little but their place speaks for."""
    newest = max((n for n in poll.solid if n in line), default=-1)
    placed = {n for n in found if n > newest}
    end = line.get(tip)
    while end is not None and end.number not in poll.solid:
        spend()
        placed.add(end.number)
        end = line.get(end.parent)
    return placed


def _guessed(
    poll: Poll, owner: Mapping[SlotAt, int], placed: Collection[int], known: Collection[int]
) -> Iterator[tuple[int, tuple[SlotAt, ...]]]:
    """Other turns with the places, in one run, that little speaks for.

    Or that stand beside a seal nobody saw coming. Only those `known`.
    """
    for run in poll.runs:
        strange = any(at in poll.strange for at, _ in run)
        sure = poll.sure_in(run)
        places: dict[int, list[SlotAt]] = {}
        for slot in run:
            number = owner.get(slot)
            if number is None or number not in known or number in placed or number in sure:
                continue
            if strange or number not in poll.solid:
                places.setdefault(number, []).append(slot)
        for number, slots in places.items():
            yield number, tuple(slots)


def expect(
    ledger: Found, messages: Sequence[Message], chains: Sequence[bytes], more: Iterable[bytes] = ()
) -> None:
    """Tell a ledger that is far away what will be looked up now, so that it fetches it at once.

    That is all `locate` asks for, and `more`.
    """
    told = getattr(ledger, "expect", None)
    if told is None:
        return
    keys = list(more)
    for message, chain in zip(messages, chains, strict=True):
        spend(1 + len(message.blocks))
        for block in message.blocks:
            keys += [v.canon for v in block.values if v.role is Role.SEAL]
            keys += (*block.anchors, *block.hidden)
        if message.speaker is Speaker.MODEL:
            keys += (chain, message.joined, *(block.payload for block in message.blocks))
    told(keys)


def summarised(
    ledger: Found, told: Iterable[bytes], conversation: bytes, absent: int = sys.maxsize
) -> Lineage | None:
    """The lineage of a request that tells an earlier answer instead of replaying its turns.

    `told`: digests of what its texts may be made of. None when no recorded answer is among them.
    """
    for digest in told:
        numbers = ledger.lookup(digest)
        turns = [turn for turn in map(ledger.get, numbers) if turn is not None]
        same = [t for t in turns if not conversation or t.conversation == conversation]
        if same and same[-1].joined == digest:
            line = _line(ledger, same[-1].number)
            return Lineage(turns=line, tip=same[-1].number, past=_past(line, (), absent))
    return None


def _past(turns: Sequence[Turn], present: Collection[int], most: int) -> frozenset[int]:
    """The turns of each run of absent ones that stand before the newest `most` of it.

    Not one that brought a compaction: that outlives its turn.
    """
    past: list[int] = []
    absent: list[int] = []
    for turn in (*turns, None):
        if turn is not None and turn.number not in present:
            if not _compacts(turn):
                absent.append(turn.number)
            continue
        past += absent[: max(len(absent) - most, 0)]
        absent = []
    return frozenset(past)


def _line(ledger: Found, tip: int, least: int = -1, most: int = sys.maxsize) -> tuple[Turn, ...]:
    """A turn and those it continued, oldest first.

    Of those before turn `least` the newest `most`, and those that know what these were told.
    """
    line: list[Turn] = []
    absent = 0
    turn = ledger.get(tip) if tip >= 0 else None
    while turn is not None and len(line) < _MAX_LINE:
        spend()
        line.append(turn)
        absent += turn.number < least
        if absent > most and not turn.prefix_shared:
            break
        turn = ledger.get(turn.parent) if turn.parent >= 0 else None
    return tuple(reversed(line))


def _behind(ledger: Found, tip: int, transcript: bytes) -> int:
    """The newer compaction of the conversation where the request ends on an older one.

    A request that ends on a compaction although the same conversation went on to compact again is
    a resume from an old checkpoint; one that replays anything after it is a fork, but not in a
    `transcript`, the key of a conversation with an older one in the request.
    """
    turn = ledger.get(tip) if tip >= 0 else None
    if turn is None or not (_compacts(turn) or transcript):
        return tip
    conversation = transcript or turn.conversation
    later = [t for t in _line(ledger, ledger.last(conversation)) if t.number >= tip]
    if not later or later[0].number != tip:
        return tip
    return next((t.number for t in reversed(later) if _compacts(t)), tip)


def _compacts(turn: Turn) -> bool:
    return any(block.kind is Kind.COMPACTION and block.sealed for block in turn.blocks)


def _places(poll: Poll) -> dict[int, list[tuple[int, ...]]]:
    """By turn, the turns that each place may be of that may be of it."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for numbers in poll.by_slot.values():
        spend(1 + len(numbers))
        for number in numbers:
            found.setdefault(number, []).append(numbers)
    return found


def _rival(places: Iterable[tuple[int, ...]], line: Mapping[int, Turn]) -> bool:
    """Whether a turn is only another holder of keys that a turn of the line explains."""
    return all(any(n in line for n in numbers) for numbers in places)
