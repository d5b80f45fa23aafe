"""The stands a judged request leaves behind, one behind each message (see `settled`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from otel_sealed.align import Outcome
from otel_sealed.align.prefix import first_break
from otel_sealed.align.surroundings import sealed_homes
from otel_sealed.model import Cause, Check, Fate, Finding, Kind, Message, Speaker, Verdict
from otel_sealed.model.quick import evolve
from otel_sealed.tracker.judging import Asked, Judged
from otel_sealed.tracker.lasting import MAX_LASTING, lasting
from otel_sealed.tracker.settled import Headed, Stand, rolled
from otel_sealed.wire.checkpoint import Rest

Row = tuple[Finding, Outcome]


def stands(asked: Asked, judged: Judged, rest: Rest) -> list[Stand]:
    """A stand behind each message read, up to the first row that may still change; newest last."""
    rows = _by_message(judged)
    if rows is None:
        return []
    tips: dict[int, int] = {}
    for (at, _), number in sorted(judged.lineage.owner.items()):
        tips.setdefault(at, number)
    _, bound = sealed_homes(judged.outcomes, asked.tools.seals)
    between = _between(asked, judged, rows)
    end = min(len(asked.sent.messages), _masked(asked, judged, bound))
    state = _start(asked, judged, rest)
    found: list[Stand] = []
    for at in range(end):
        heads = [
            Headed(turn.head, turn.number, state.messages)
            for turn in judged.lineage.turns
            if bound.get(turn.number) == at and turn.chain
        ]
        tip = tips.get(at, state.tip)
        behind = _behind(asked, judged, state, at, rows.get(at, []), tip, heads)
        if behind is None:
            break
        state = evolve(behind, steady=False) if at in between else behind
        found.append(state)
    return found


def _behind(
    asked: Asked,
    judged: Judged,
    before: Stand,
    at: int,
    rows: Sequence[Row],
    tip: int,
    heads: Iterable[Headed],
) -> Stand | None:
    """The state behind message `at` whose rows are `rows`; None where one may still change."""
    message = asked.sent.messages[at]
    findings = [finding for finding, _ in rows if well(finding)]
    rest = [lasting(*row, judged.position) for row in rows if not well(row[0])]
    kept = [row for row in rest if row is not None]
    loops = before.loops or any(row.in_loop for row in kept)
    if len(kept) < len(rest) or before.lasted + len(kept) > MAX_LASTING:
        return None
    if loops and at == len(asked.sent.messages) - 1 and _mixed(message):
        return None
    told = message.speaker is not Speaker.MODEL
    sealed = [outcome.turn.number for f, outcome in rows if outcome.turn and f.digest_out]
    user = message.speaker is Speaker.USER
    return Stand(
        around=before.around,
        facts=before.facts,
        head=before.head,
        hint=before.hint,
        messages=before.messages + 1,
        chain=judged.chains[at + 1],
        told=judged.told[at + 1],
        tail=(() if tip != before.tip else before.tail) + ((message.digest,) if told else ()),
        tip=tip,
        first_sealed=min(before.first_sealed, *sealed) if sealed else before.first_sealed,
        checks=counted(before.checks, findings),
        rolling=rolled(before.rolling, findings, asked.core.digest),
        sealed=before.sealed + sum(1 for f in findings if f.artifact in asked.tools.seals),
        live_from=before.messages + 1 if user else before.live_from,
        heads=_heads(before.heads, heads),
        lasting=tuple(kept),
        lasted=before.lasted + len(kept),
        loops=loops,
    )


def _between(asked: Asked, judged: Judged, rows: Mapping[int, Sequence[Row]]) -> frozenset[int]:
    """The messages behind which no reading may begin: amid all that bears on a row not well.

    That is its own place, where its bytes were found instead, and the other blocks of its turn.
    """
    places: dict[int, set[int]] = {}
    for at, told in rows.items():
        for finding, outcome in told:
            if outcome.turn is not None and not well(finding):
                found = places.setdefault(outcome.turn.number, set())
                found |= {at, _place(asked, judged, finding.returned, at)}
    if not places:
        return frozenset()
    for (at, _), number in judged.lineage.owner.items():
        if number in places:
            places[number].add(at)
    return frozenset(at for found in places.values() for at in range(min(found), max(found)))


def _masked(asked: Asked, judged: Judged, bound: Mapping[int, int]) -> int:
    """The message of the first turn before which another message stands, if only the head is told.

    A request has one row for its prefix, and that another time tells of the message instead.
    """
    if judged.stand is not None or not any(map(_of_head, judged.findings)):
        return sys.maxsize
    root = asked.tools.dialect.root
    broken = first_break(judged.lineage.turns, bound, None, asked.sent.messages, root=root)
    return sys.maxsize if broken is None else bound[broken.turn.number]


def _of_head(finding: Finding) -> bool:
    return finding.fate is Fate.PREFIX_CHANGED and finding.cause is not Cause.MESSAGE


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
    """Whether it continues a loop only while it is the last (see `wire.read.live_from`)."""
    results = all(block.kind is Kind.RESULT for block in message.blocks)
    return message.speaker is Speaker.TOOL and not results


def _start(asked: Asked, judged: Judged, rest: Rest) -> Stand:
    """The state before the first message read."""
    if judged.stand is not None:
        return evolve(judged.stand, around=rest.around, head=asked.sent.head)
    return Stand(
        around=rest.around,
        facts=asked.facts,
        head=asked.sent.head,
        hint=asked.hint,
        messages=0,
        chain=judged.chains[0],
        told=judged.told[0],
        tail=(),
        tip=-1,
        first_sealed=sys.maxsize,
        checks=(),
        rolling=b"",
        sealed=0,
    )


def _by_message(judged: Judged) -> dict[int, list[Row]] | None:
    """Rows by the message they stand in; None where one that is not well stands in none.

    Another head is told anew with each request, and stands in none for that.
    """
    rows: dict[int, list[Row]] = {}
    for finding, outcome in zip(judged.findings, judged.outcomes, strict=True):
        if _of_head(finding):
            continue
        if outcome.at is None:
            return None
        rows.setdefault(outcome.at, []).append((finding, outcome))
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
        found[key] = evolve(check, count=check.count + 1) if check is not None else one
    return tuple(found.values())
