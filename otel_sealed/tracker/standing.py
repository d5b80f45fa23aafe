"""The stands a judged request leaves behind, one behind each message (see `settled`)."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from otel_sealed.align import Outcome
from otel_sealed.align.prefix import first_break
from otel_sealed.align.surroundings import exempt, sealed_homes
from otel_sealed.model import Check, Fate, Finding, Kind, Message, Speaker, Turn, Verdict
from otel_sealed.model.record import replace
from otel_sealed.steps import spend
from otel_sealed.tracker.judging import Asked, Judged
from otel_sealed.tracker.lasting import MAX_LASTING, lasting
from otel_sealed.tracker.settled import (
    ROW_BYTES,
    STAND_BYTES,
    Broken,
    Headed,
    Stand,
    displaced,
    rolled,
)
from otel_sealed.wire.checkpoint import Rest

Row = tuple[Finding, Outcome]


def stands(asked: Asked, judged: Judged, rest: Rest) -> list[Stand]:
    """A stand behind each message read, up to the first row that may still change; newest last."""
    tips: dict[int, int] = {}
    for (at, _), number in sorted(judged.lineage.owner.items()):
        tips.setdefault(at, number)
    moved = displaced(judged.lineage)
    rows = _by_message(judged, tips)
    _, bound = sealed_homes(judged.outcomes, asked.tools.seals)
    bound_at: dict[int, list[Turn]] = {}
    for turn in judged.lineage.turns:
        if turn.chain and turn.number in bound:
            bound_at.setdefault(bound[turn.number], []).append(turn)
    between = _between(asked, judged, rows)
    broken = _broken(asked, judged, bound)
    state = _start(asked, judged, rest)
    found: list[Stand] = []
    speakers = [message.speaker for message in asked.sent.messages]
    model = max((at for at, who in enumerate(speakers) if who is Speaker.MODEL), default=-1)
    for at in range(len(asked.sent.messages)):
        spend()
        heads = [Headed(t.head, t.number, state.messages) for t in bound_at.get(at, ())]
        tip = tips.get(at, state.tip)
        if tip > moved:
            break  # where that one was, it may seem that nobody is
        behind = _behind(
            asked, judged, state, at, rows.get(at, []), tip, heads, answered=at < model
        )
        if behind is None:
            break
        reached = broken if broken is not None and broken.at <= state.messages else None
        if reached is not None or at in between:
            behind = replace(behind, steady=at not in between, broken=reached)
        found.append(behind)
        state = behind
    return found


def _behind(
    asked: Asked,
    judged: Judged,
    before: Stand,
    at: int,
    rows: Sequence[Row],
    tip: int,
    heads: Iterable[Headed],
    *,
    answered: bool,
) -> Stand | None:
    """The state behind message `at` whose rows are `rows`; None where one may still change.

    `answered`: a message of the model follows.
    """
    message = asked.sent.messages[at]
    offset = before.messages - at
    findings = [finding for finding, _ in rows if well(finding)]
    known = asked.stand_ins
    rest = [lasting(*row, judged.position, offset, known) for row in rows if not well(row[0])]
    kept = [row for row in rest if row is not None]
    needs = before.needs.joined(row.needs for row in kept) if kept else before.needs
    if len(kept) < len(rest) or before.lasted + len(kept) > MAX_LASTING:
        return None
    if needs.silence and not answered and _mixed(message):
        return None
    sealed = [o.turn.number for _, o in rows if o.turn is not None and o.sent_back]
    user = message.speaker is Speaker.USER
    return Stand(
        around=before.around,
        facts=before.facts,
        head=before.head,
        hint=before.hint,
        messages=before.messages + 1,
        chain=judged.chains[at + 1],
        told=judged.told[at + 1],
        tip=tip,
        first_sealed=min(before.first_sealed, *sealed) if sealed else before.first_sealed,
        last_sealed=max(before.last_sealed, *sealed) if sealed else before.last_sealed,
        checks=counted(before.checks, findings),
        rolling=rolled(before.rolling, findings, asked.core.digest),
        sealed=before.sealed + sum(1 for f in findings if f.artifact in asked.tools.seals),
        live_from=before.messages + 1 if user else before.live_from,
        heads=_heads(before.heads, heads),
        lasting=tuple(kept),
        lasted=before.lasted + len(kept),
        needs=needs,
        size=before.size + STAND_BYTES + ROW_BYTES * len(kept),
    )


def _between(asked: Asked, judged: Judged, rows: Mapping[int, Sequence[Row]]) -> frozenset[int]:
    """The messages behind which no reading may begin: amid all that bears on the rows of a turn.

    That is their own places, where bytes were found instead, and all its blocks.
    """
    places: dict[int, set[int]] = {}
    for at, told in rows.items():
        for finding, outcome in told:
            if outcome.turn is not None:
                found = places.setdefault(outcome.turn.number, {at})
                found.add(at)
                if not well(finding):
                    found.add(_place(asked, judged, finding.returned, at))
    for (at, _), number in judged.lineage.owner.items() if places else ():
        if number in places:
            places[number].add(at)
    between: set[int] = set()
    end = 0
    for first, last in sorted((min(found), max(found)) for found in places.values()):
        between.update(range(max(first, end), last))
        end = max(end, last)
    spend(len(places) + len(between))
    return frozenset(between)


def _broken(asked: Asked, judged: Judged, bound: Mapping[int, int]) -> Broken | None:
    """The first turn before which another message stands, if the row of the prefix may be of it.

    A request has one such row, and where that tells of the head now it may not the next time.
    """
    if judged.stand is not None:
        return judged.stand.broken
    if not any(finding.fate is Fate.PREFIX_CHANGED for finding in judged.findings):
        return None
    root, free = asked.tools.dialect.root, exempt(judged.outcomes, bound)
    found = first_break(judged.lineage.turns, bound, None, asked.sent.messages, free, root)
    if found is None:
        return None
    return Broken(found.turn.number, bound[found.turn.number], found.detail)


def _place(asked: Asked, judged: Judged, path: str | None, otherwise: int) -> int:
    """Index, among the messages read, of the one a path leads into."""
    root, _, inside = (path or "").partition(".")
    index = inside.partition(".")[0]
    if root != asked.tools.dialect.root or not index.isdecimal():
        return otherwise
    return int(index) - (judged.stand.messages if judged.stand is not None else 0)


def _heads(before: tuple[Headed, ...], new: Iterable[Headed]) -> tuple[Headed, ...]:
    """The first turn's head and the first other one: whatever the head is now, one tells it."""
    for one in new:
        if not before or (len(before) == 1 and one.head != before[0].head):
            before = (*before, one)
    return before


def _mixed(message: Message) -> bool:
    """Whether it continues a loop only while the model has not answered it.

    See `wire.read.live_from`.
    """
    results = all(block.kind is Kind.RESULT for block in message.blocks)
    return message.speaker is Speaker.TOOL and not results


def _start(asked: Asked, judged: Judged, rest: Rest) -> Stand:
    """The state before the first message read."""
    if judged.stand is not None:
        return replace(judged.stand, around=rest.around, head=asked.sent.head)
    return Stand(
        around=rest.around,
        facts=asked.facts,
        head=asked.sent.head,
        hint=asked.hint,
        messages=0,
        chain=judged.chains[0],
        told=judged.told[0],
        tip=-1,
        first_sealed=sys.maxsize,
        checks=(),
        rolling=b"",
        sealed=0,
    )


def _by_message(judged: Judged, tips: Mapping[int, int]) -> dict[int, list[Row]]:
    """Rows by the message they stand in.

    Those of a turn that is gone as a whole are settled with the next turn behind it that is there:
    `tips`, message to turn. The one of the prefix is told anew with each request.
    """
    newest: list[int] = []
    places: list[int] = []
    for place, tip in sorted(tips.items()):
        if not newest or tip > newest[-1]:
            newest.append(tip)
            places.append(place)
    rows: dict[int, list[Row]] = {}
    for finding, outcome in zip(judged.findings, judged.outcomes, strict=True):
        if finding.fate is Fate.PREFIX_CHANGED:
            continue
        at, turn = outcome.at, outcome.turn
        if at is None and turn is not None:
            behind = bisect_right(newest, turn.number)
            at = places[behind] if behind < len(places) else None
        if at is not None:
            rows.setdefault(at, []).append((finding, outcome))
    return rows


def well(finding: Finding) -> bool:
    """Whether a row needs no telling again and stays what it is whatever is added behind it."""
    return finding.fate is Fate.INTACT and finding.verdict is Verdict.OK


def counted(before: tuple[Check, ...], findings: Iterable[Finding]) -> tuple[Check, ...]:
    """`before` with the rows of `findings` counted in."""
    found = {(c.artifact, c.fate, c.verdict, c.rule): c for c in before}
    for f in findings:
        key = (f.artifact, f.fate, f.verdict, f.rule)
        check = found.get(key)
        one = Check(*key, 1)
        found[key] = replace(check, count=check.count + 1) if check is not None else one
    return tuple(found.values())
