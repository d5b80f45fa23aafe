"""The stands a judged request leaves behind, one behind each message (see `settled`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from otel_sealed.model import Check, Fate, Finding, Speaker, Verdict
from otel_sealed.model.quick import evolve
from otel_sealed.tracker.judging import Asked, Judged
from otel_sealed.tracker.settled import Stand, rolled
from otel_sealed.wire.checkpoint import Rest


def stands(asked: Asked, judged: Judged, rest: Rest) -> list[Stand]:
    """A stand behind each message read, up to the first row that is not well; newest last."""
    messages = asked.sent.messages
    rows = _by_message(judged)
    if rows is None:
        return []
    homes: dict[int, int] = {}
    for (at, _), number in sorted(judged.lineage.owner.items()):
        homes.setdefault(at, number)
    state = _start(asked, judged, rest)
    found: list[Stand] = []
    for at, message in enumerate(messages):
        findings = rows.get(at, [])
        if not all(well(finding) for finding in findings):
            break
        told = message.speaker is not Speaker.MODEL
        tip = homes.get(at, state.tip)
        seals = sum(1 for f in findings if f.artifact in asked.tools.seals)
        state = Stand(
            around=state.around,
            facts=state.facts,
            head=state.head,
            hint=state.hint,
            messages=state.messages + 1,
            chain=judged.chains[at + 1],
            told=judged.told[at + 1],
            tail=(() if tip != state.tip else state.tail) + ((message.digest,) if told else ()),
            tip=tip,
            first_sealed=min(state.first_sealed, tip if seals else sys.maxsize),
            checks=counted(state.checks, findings),
            rolling=rolled(state.rolling, findings, asked.core.digest),
            sealed=state.sealed + seals,
        )
        found.append(state)
    return found


def _start(asked: Asked, judged: Judged, rest: Rest) -> Stand:
    """The state before the first message read."""
    if judged.stand is not None:
        return evolve(judged.stand, around=rest.around)
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


def _by_message(judged: Judged) -> dict[int, list[Finding]] | None:
    """Rows by the message they stand in; None where one that is not well stands in none."""
    rows: dict[int, list[Finding]] = {}
    for finding, outcome in zip(judged.findings, judged.outcomes, strict=True):
        if outcome.at is None:
            return None
        rows.setdefault(outcome.at, []).append(finding)
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
