"""`otel-sealed verify`: recorded exchanges, judged by the core that judges live calls.

A file is a transcript, or a recording of the wire that people have anyway (`evidence`). Every file
is judged by a memory of its own, so that what it shows does not depend on which other files are
named beside it.
"""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from otel_sealed.cli import OK, VIOLATED, complain, printable
from otel_sealed.cli.show import (
    Screen,
    Ticker,
    json_line,
    plural,
    size,
    table,
    ticker,
    verdict,
)
from otel_sealed.contract import Pair
from otel_sealed.errors import SealedError
from otel_sealed.evidence import reading
from otel_sealed.model import Fate, Finding, ProviderVerdict, Rejection, Report, Verdict
from otel_sealed.providers import dialects
from otel_sealed.rulebook import reason
from otel_sealed.telemetry.families import FORM, pair
from otel_sealed.tracker import Tracker
from otel_sealed.triage.sums import reason as unjudged
from otel_sealed.triage.words import explained

_COLUMNS = ("artifact", "came in", "went back", "fate", "verdict", "the provider")


@dataclass(frozen=True, slots=True)
class Row:
    """One artifact of one request of one file."""

    file: str
    exchange: int
    finding: Finding

    def as_json(self) -> dict[str, Any]:
        """The object of README.md#commands; every key is always there."""
        found = self.finding
        origin = found.received
        return {
            "file": self.file,
            "exchange": self.exchange,
            "artifact": found.artifact,
            "fate": found.fate,
            "verdict": found.verdict,
            "rule": found.rule or None,
            "disputed": found.disputed,
            "cause": found.cause,
            "locus": found.locus,
            "received": {"exchange": origin.exchange, "path": origin.path} if origin else None,
            "returned": {"path": found.returned} if found.returned is not None else None,
            "size": {"received": found.size_in, "returned": found.size_out},
            "provider_verdict": found.provider_verdict,
            "rejection": found.rejection,
        }


@dataclass(slots=True)
class _Judged:
    """One file: what it showed, as far as it is usable.

    `rows` are those that are printed; `hidden` counts the others, which are intact once more: of
    these a long conversation has as many as the square of its turns. `bad` degrade or break;
    `unjudged` counts by rule what could not be judged.
    """

    file: str
    unit: str = "line"
    passed: str = ""
    rows: list[Row] = field(default_factory=list)
    hidden: int = 0
    bad: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    error: SealedError | None = None

    def add(self, row: Row) -> None:
        """Count a row, and keep it if it says something new."""
        found = row.finding
        self.bad += found.verdict.violates
        if found.verdict is Verdict.UNVERIFIABLE:
            self.unjudged[found.rule] += 1
        if found.first or found.fate is not Fate.INTACT:
            self.rows.append(row)
        else:
            self.hidden += 1


def run(files: list[str], *, families: str = "", as_json: bool) -> int:
    """Judge files and print the rows; the exit status says what they showed.

    `families` names a file of models that read what others sealed; one that is not usable in whole
    ends the run, since its verdicts would not be those that were asked for.
    """
    try:
        pairs = _pairs(families)
    except SealedError as unusable:
        return complain(unusable.line())
    worst = OK
    for file in files:
        judged = _Judged(file)
        try:
            with ticker(printing=as_json) as ticks:
                for row in _rows(judged, pairs, ticks, every=as_json):
                    worst = max(worst, VIOLATED if row.finding.verdict.violates else OK)
                    if as_json:
                        json_line(row.as_json())
                    else:
                        judged.add(row)
        except SealedError as unusable:
            judged.error = unusable
        if as_json and judged.passed:
            complain(f"{file}{judged.passed}")
        if not as_json and (judged.rows or judged.hidden or judged.error is None):
            _print(judged)
        if judged.error is not None:
            worst = complain(judged.error.line())
    return worst


def _pairs(path: str) -> tuple[Pair, ...]:
    if not path:
        return ()
    entries, complaints = FORM.look(path)
    if complaints:
        raise SealedError(complaints[0], where=path)
    return tuple(pair(entry) for entry in entries)


def _rows(
    judged: _Judged, families: tuple[Pair, ...], ticks: Ticker, *, every: bool
) -> Iterator[Row]:
    """The rows of a file, as far as it is usable; unless `every`, the intact once more as a count.

    That count is what a conversation has settled, so that its history is not read again each time.
    """
    key = secrets.token_bytes(32)
    tracker = Tracker(key, settles=not every, families=families, absent=sys.maxsize)
    with reading(judged.file) as source:
        judged.unit = source.unit
        for exchange in source.exchanges:
            number = exchange.number or 0
            ticks.say(f"{judged.file}, {source.unit} {number + 1}")
            report = tracker.observe(exchange)
            judged.hidden += sum(check.count for check in report.settled)
            for finding in report.findings:
                yield Row(judged.file, number, finding)
            _refuse_unread(judged, report)
        judged.passed = source.passed.line()


def _refuse_unread(judged: _Judged, report: Report) -> None:
    if not report.unread:
        return
    where = f"{judged.file}, {judged.unit} {report.exchange + 1}"
    if "api" in report.unread:
        known = ", ".join(dialects())
        raise SealedError("its api is not read by this version", where=where, remedy=known)
    raise SealedError(f"cannot be read: {', '.join(report.unread)}", where=where)


# ---------------------------------------------------------------------------------- for people


def _print(judged: _Judged) -> None:
    out = Screen()
    rows = judged.rows
    if rows:
        cells = [_cells(row, judged.unit) for row in rows]
        whole = table((judged.unit, *_COLUMNS), cells, judged.unit)
        if out.fits(whole):
            out.draw(whole)
        else:
            for row in cells:
                out.line(_lines(row, judged.unit))
    out.line(_summary(judged))
    for rule, count in judged.unjudged.items():
        out.line(f"{plural(count, 'row')} could not be judged: {unjudged(rule).says} [{rule}]")
    for line in _reasons(rows):
        out.line(line)


def _cells(row: Row, unit: str) -> tuple[str | Text, ...]:
    found = row.finding
    origin = found.received
    came = f"{unit} {origin.exchange + 1} {origin.path}" if origin else "never seen"
    back = found.returned or ""
    return (
        str(row.exchange + 1),
        found.artifact,
        f"{came} {size(found.size_in)}".strip(),
        f"{back} {size(found.size_out)}".strip() or "nothing",
        f"{found.fate} ({found.cause})" if found.cause else found.fate.value,
        _judged(found),
        said(found.provider_verdict, found.rejection),
    )


def _lines(cells: Sequence[str | Text], unit: str) -> Text:
    """The same on three lines, for a narrow terminal, which would fold names and places."""
    number, artifact, came, back, fate, judged, said_ = (
        printable(cell) if isinstance(cell, str) else cell for cell in cells
    )
    answered = f"; {said_}" if said_ else ""
    head = Text.assemble(f"{unit} {number}  {artifact} {fate}: ", judged, answered)
    return head.append(f"\n  came in    {came}\n  went back  {back}")


def _judged(found: Finding) -> Text:
    """The verdict; a disputed one says so."""
    shown = verdict(found.verdict, found.rule)
    return shown.append(" disputed") if found.disputed else shown


def said(provider: ProviderVerdict, rejection: Rejection | None) -> str:
    """What the provider said, in a word or two."""
    if provider is ProviderVerdict.UNREPORTED:
        return "refused: of no known class" if rejection is Rejection.OTHER else ""
    return f"{provider}: {rejection}" if rejection else provider.value


def _summary(judged: _Judged) -> str:
    file, bad, hidden = judged.file, judged.bad, judged.hidden
    count = len(judged.rows) + hidden
    again = f", {hidden:,} of them intact once more and not shown" if hidden else ""
    if not count:
        return f"{file}: nothing sealed was due or sent{judged.passed}"
    verb = "degrades or breaks" if bad == 1 else "degrade or break"
    return f"{file}: {plural(count, 'row')}{again}; {bad:,} {verb}{judged.passed}"


def _reasons(rows: list[Row]) -> Iterator[str]:
    """What the rules behind the verdicts say, each once."""
    bad = [row.finding for row in rows if row.finding.verdict.violates]
    yield from dict.fromkeys(
        f"{found.rule}: {reason(found)}{_doubt(found)} ({explained(found.rule)})" for found in bad
    )


def _doubt(found: Finding) -> str:
    return ", disputed: sources disagree" if found.disputed else ""
