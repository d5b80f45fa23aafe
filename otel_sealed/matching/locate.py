"""Locating: which recorded turns does a request replay, and which conversation does it continue?

The evidence of the request (`evidence`) gives the tip and its line (`lines`); what the server keeps
for the request has a line of its own, and turns that certain evidence names elsewhere (a handed
over transcript) are added. Then each place of the model is given to one of these turns (`assign`).

A long conversation leaves turns out: trimmed away, compacted, kept by the server. Of a run of
turns that are not in the request the newest `absent` have rows, the others had theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from otel_sealed.ledger.protocol import Found
from otel_sealed.matching.assign import Assigned, assign
from otel_sealed.matching.evidence import Claims, Tier, collect, text_tier
from otel_sealed.matching.lines import best_tip, compacts, line_to, past
from otel_sealed.model import Lineage, Message, Role, SlotAt, Speaker, Turn
from otel_sealed.model.prefixes import Prefixes
from otel_sealed.steps import spend


def locate(  # noqa: PLR0913 - what a caller knows of a request, each by name
    ledger: Found,
    messages: tuple[Message, ...],
    chains: tuple[bytes, ...],
    *,
    conversation: bytes = b"",
    continues: bool = False,
    reference: bytes = b"",
    compacts: bool = False,
    without: Collection[int] = (),
    absent: int = sys.maxsize,
) -> Lineage:
    """The lineage of a request. `chains[i]` is the rolling digest of the first `i` messages.

    There is one more of them than messages.

    `continues`: where nothing is found, the request follows the last turn of `conversation`.
    `compacts`: it asks for a compaction and nothing else.
    `without`: turns that are not looked at. `absent`: how many turns in a row that are not in the
    request have rows all the same.
    """
    *before, chain = chains
    chains = tuple(before)
    expect(ledger, messages, chains)
    claims = collect(ledger, messages, chains, conversation, without)
    if not (claims.counts or reference or conversation):
        return Lineage(hits=claims.hits, misses=claims.misses)
    named = claims.named()
    least = min(named, default=sys.maxsize)
    held = (
        line_to(ledger, max(claims.look(reference), default=-1), least, absent) if reference else ()
    )
    voted = best_tip(claims, continues=continues)
    follows = continues and not reference
    tip = _tip(claims, voted, held, messages, (chain, compacts), follows=follows)
    own = () if held and held[-1].number == tip else line_to(ledger, tip, least, absent)
    line = {turn.number: turn for turn in (*held, *own)}
    more = dict(_elsewhere(claims, line))
    assigned = assign(messages, chains, claims.runs, _ordered(line | more))
    gone = more.keys() - claims.certain.keys() - {*assigned.owner.values()}
    if gone:
        more = {n: turn for n, turn in more.items() if n not in gone}
        assigned = assign(messages, chains, claims.runs, _ordered(line | more))
    line |= more
    turns = _ordered(line)
    ahead = _ahead(claims, assigned.owner, tip) if follows else ()
    if ahead:
        tip = ahead[-1].number
        line.update((turn.number, turn) for turn in ahead)
        turns = _ordered(line)
        assigned = assign(messages, chains, claims.runs, turns)
    owner = assigned.owner
    solid = claims.certain.keys() | _solid(claims, assigned, messages)
    known = {turn.number for turn in turns if turn.told} if continues else line.keys()
    open_ = (
        frozenset() if continues or reference else _open(solid, line, tip, {voted, *owner.values()})
    )
    return Lineage(
        turns=turns,
        owner=owner,
        held=frozenset(turn.number for turn in held),
        tip=tip,
        inferred=frozenset(line.keys() - claims.certain.keys()),
        unproven=() if reference else tuple(_unproven(claims, solid, owner, known)),
        open=frozenset() if continues or reference else open_ - {*without},
        past=past(turns, {*owner.values(), *named}, absent),
        hits=claims.hits,
        misses=claims.misses,
    )


def _elsewhere(claims: Claims, line: Mapping[int, Turn]) -> Iterator[tuple[int, Turn]]:
    """The turns beside the line that the evidence names, and of which it is not only a copy.

    Those without certain evidence are in the request only if a place turns out to be theirs.
    """
    found = claims.backed | claims.certain
    for number in sorted(found.keys() - line.keys()):
        turn = claims.ledger.get(number)
        if turn is not None and not _rival(found[number], line):
            yield number, turn


def _ordered(line: Mapping[int, Turn]) -> tuple[Turn, ...]:
    return tuple(line[n] for n in sorted(line))


def _solid(claims: Claims, assigned: Assigned, messages: Sequence[Message]) -> set[int]:
    """The turns with a call or long text of theirs in a run without a seal that nobody issued."""
    found: set[int] = set()
    for run in claims.runs:
        if not any(at in claims.unknown for at, _ in run):
            found.update(
                assigned.owner[at, index]
                for at, index in run
                if (at, index) in assigned.matched and _shows(messages[at], index)
            )
    return found


def _shows(message: Message, index: int) -> bool:
    chars = max(message.blocks[index].payload_chars, message.joined_chars)
    return text_tier(chars) is Tier.SUPPORTING


def _tip(
    claims: Claims,
    voted: int,
    held: Sequence[Turn],
    messages: Sequence[Message],
    asked: tuple[bytes, bool],
    *,
    follows: bool,
) -> int:
    """The newest turn the request continues, or -1: voted for, held by the server, or the last.

    `follows`: where nothing is found, it follows the last turn of its conversation, unless it asks
    what that one answered, or nothing that the model was asked in that conversation.
    """
    tip = voted
    if tip < 0 and held:
        tip = held[-1].number
    if tip < 0 and follows:
        tip = _followed(claims.ledger, claims.ledger.last(claims.conversation), messages)
    while tip in claims.without:
        spend()
        turn = claims.ledger.get(tip)
        tip = -1 if turn is None else turn.parent
    transcript = claims.conversation if follows and claims.compacted else b""
    return _behind(claims.ledger, tip, transcript, asked)


def _ahead(claims: Claims, owner: Mapping[SlotAt, int], tip: int) -> tuple[Turn, ...]:
    """The turns of a transcript after the tip, where the request ends in as many unknown answers.

    Only those whose requests were not seen: of others it is known where they are.
    """
    owned = [any(slot in owner for slot in run) for run in claims.runs]
    unknown = next((n for n, known in enumerate(reversed(owned)) if known), 0)
    if not unknown:
        return ()
    line = line_to(claims.ledger, claims.ledger.last(claims.conversation))
    ahead = tuple(turn for turn in line if turn.number > tip)
    known = any(turn.number == tip for turn in line) and not any(turn.told for turn in ahead)
    return ahead if known and len(ahead) == unknown else ()


def _followed(ledger: Found, last: int, messages: Sequence[Message]) -> int:
    """The newest turn up to `last` that a request in which none is found may follow, or -1."""
    line = line_to(ledger, last)
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


def _open(
    solid: Collection[int], line: Mapping[int, Turn], tip: int, found: Iterable[int]
) -> frozenset[int]:
    """Those `found`, and those at the end of the line, that are newer than all `solid` ones."""
    newest = max((n for n in solid if n in line), default=-1)
    newer = {n for n in found if n > newest}
    end = line.get(tip)
    while end is not None and end.number not in solid:
        spend()
        newer.add(end.number)
        end = line.get(end.parent)
    return frozenset(newer)


def _unproven(
    claims: Claims, solid: Collection[int], owner: Mapping[SlotAt, int], known: Collection[int]
) -> Iterator[tuple[int, tuple[SlotAt, ...]]]:
    """The `known` turns with the places, in one run, that little speaks for.

    Or that are next to a seal nobody saw coming.
    """
    for run in claims.runs:
        unknown = any(at in claims.unknown for at, _ in run)
        sure = claims.sure_in(run)
        places: dict[int, list[SlotAt]] = {}
        for slot in run:
            number = owner.get(slot)
            if number is None or number not in known or number in sure:
                continue
            if unknown or number not in solid:
                places.setdefault(number, []).append(slot)
        for number, slots in places.items():
            yield number, tuple(slots)


def expect(
    ledger: Found, messages: Sequence[Message], chains: Sequence[bytes], more: Iterable[bytes] = ()
) -> None:
    """Name to a remote ledger what will be looked up now, so that it fetches it at once.

    That is all `locate` asks for, and `more`.
    """
    prefetch = getattr(ledger, "expect", None)
    if prefetch is None:
        return
    keys = list(more)
    for message, chain in zip(messages, chains, strict=True):
        spend(1 + len(message.blocks))
        for block in message.blocks:
            keys += [v.canon for v in block.values if v.role is Role.SEAL]
            keys += (*block.anchors, *block.hidden)
        if message.speaker is Speaker.MODEL:
            keys += (chain, message.joined, *(block.payload for block in message.blocks))
    prefetch(keys)


def summarised(
    ledger: Found, texts: Iterable[bytes], conversation: bytes, absent: int = sys.maxsize
) -> Lineage | None:
    """The lineage of a request that quotes an earlier answer instead of replaying its turns.

    `texts`: digests of what its texts may be made of. None when no recorded answer is among them.
    """
    for digest in texts:
        numbers = ledger.lookup(digest)
        turns = [turn for turn in map(ledger.get, numbers) if turn is not None]
        same = [t for t in turns if not conversation or t.conversation == conversation]
        if same and same[-1].joined == digest:
            line = line_to(ledger, same[-1].number)
            return Lineage(turns=line, tip=same[-1].number, past=past(line, (), absent))
    return None


def _behind(ledger: Found, tip: int, transcript: bytes, asked: tuple[bytes, bool]) -> int:
    """The newer compaction of the conversation where the request ends on an older one.

    A request that ends on a compaction although the same conversation went on to compact again is
    a resume from an old checkpoint; one that replays anything after it is a fork, but not in a
    `transcript`, the key of a conversation with an older one in the request. What was `asked` (the
    digest of all messages, and whether for a compaction alone, which comes without a reason to
    stop) and answered before is asked again: it was sent when nothing newer was there.
    """
    turn = ledger.get(tip) if tip >= 0 else None
    if turn is None or not (compacts(turn) or transcript):
        return tip
    conversation = transcript or turn.conversation
    later = [t for t in line_to(ledger, ledger.last(conversation)) if t.number >= tip]
    if not later or later[0].number != tip:
        return tip
    if any(t.chain and (t.chain, not t.stop) == asked for t in later[1:2]):
        return tip
    return next((t.number for t in reversed(later) if compacts(t)), tip)


def _rival(places: Iterable[tuple[int, ...]], line: Mapping[int, Turn]) -> bool:
    """Whether a turn is only another holder of keys that a turn of the line explains."""
    return all(any(n in line for n in numbers) for numbers in places)
