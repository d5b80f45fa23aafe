"""`otel-sealed demo`: real SDKs, a strict provider, hosts that lose sealed state."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from otel_sealed.cli import OK, VIOLATED, complain
from otel_sealed.cli.key import keyed
from otel_sealed.cli.show import Screen, Ticker, json_line, plural, size, table, ticker, verdict
from otel_sealed.errors import SealedError
from otel_sealed.model import Fate, Finding, ProviderVerdict, Verdict
from otel_sealed.telemetry.settings import load
from otel_sealed.vocab import SCOPE

if TYPE_CHECKING:
    from otel_sealed.testing.hosts import Host, Played, Row

_SERVICE: Final = "otel-sealed-demo"
_COLUMNS: Final = (
    "host",
    "turn",
    "came in",
    "went back",
    "fate",
    "verdict",
    "the provider said",
)
_WENT_BACK: Final = {
    Fate.DROPPED: "nothing",
    Fate.SUBSTITUTED: "its readable text",
    Fate.FABRICATED: "a placeholder",
    Fate.FOREIGN: "the same, to another vendor",
    Fate.RETYPED: "the same, as another type",
    Fate.SPLIT: "the same, in pieces",
    Fate.MERGED: "joined with its neighbour",
    Fate.ENVELOPE_MODIFIED: "the block with one key more",
    Fate.ORPHANED: "alone, its reasoning missing",
}


def run(*, as_json: bool) -> int:
    """Play every host, print what it showed, leave telemetry behind."""
    done: list[Played] = []
    with ticker(printing=as_json) as ticks, quiet():
        ticks.say("loading the SDKs")
        known, play, recording = parts()
        with recording(_SERVICE) as made:
            playing = play(
                _told(known, ticks),
                tracer_provider=made.tracer,
                meter_provider=made.meter,
                logger_provider=made.logger,
                settings=keyed(load(), made.folder),
            )
            for played in playing:
                done.append(played)
                if as_json:
                    json_line(as_object(played))
    if not as_json:
        _print(done, [str(path) for path in made.files])
    strange = [played.host.name for played in done if not played.as_known]
    for name in strange:
        complain(f"{name} did not show what it is known for")
    return VIOLATED if strange else OK


def _told(known: tuple[Host, ...], ticks: Ticker) -> Iterator[Host]:
    for number, host in enumerate(known, 1):
        ticks.say(f"{host.name}, {number} of {len(known)}")
        yield host


def parts() -> tuple[tuple[Host, ...], Any, Any]:
    """Hosts, player and folder: what only the extra `demo` brings, imported as late as can be.

    Raises:
        SealedError: It is not installed.
    """
    try:
        from otel_sealed.cli.folder import recording
        from otel_sealed.testing.hosts import hosts, play

        return hosts(), play, recording
    except ModuleNotFoundError as error:
        raise SealedError(
            f"the demo needs the package that has {error.name}",
            remedy="python -m pip install 'otel-sealed[demo]'",
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the warnings of our own log off the terminal: the table says the same."""
    log = logging.getLogger(SCOPE)
    handler, before = logging.NullHandler(), log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.propagate = before
        log.removeHandler(handler)


def as_object(played: Played) -> dict[str, Any]:
    """One host as `--json` prints it."""
    return {
        "host": played.host.name,
        "dialect": played.host.dialect,
        "faithful": played.host.faithful,
        "findings": [
            {
                "turn": row.turn,
                "artifact": row.finding.artifact,
                "fate": row.finding.fate,
                "verdict": row.finding.verdict,
                "rule": row.finding.rule or None,
                "provider_verdict": row.finding.provider_verdict,
                "rejection": row.finding.rejection,
            }
            for row in played.rows
        ],
    }


# ---------------------------------------------------------------------------------- for people


@dataclass(slots=True)
class _Group:
    """Rows of one host that tell the same."""

    finding: Finding
    turns: list[int] = field(default_factory=list)
    origins: set[tuple[int, str]] = field(default_factory=set)


def _print(done: list[Played], files: list[str]) -> None:
    out = Screen()
    out.draw(table(_COLUMNS, (cells for played in done for cells in _cells(played)), "turn"))
    out.line()
    out.line("What the hosts do:")
    width = max(len(played.host.name) for played in done)
    for played in done:
        out.line(f"  {played.host.name:{width}}  {played.host.says}")
    out.line()
    for line in _summary(done):
        out.line(line)
    out.line(f"Spans, metrics and log events, without content: {', '.join(files)}")


def _cells(played: Played) -> Iterator[tuple[str | Text, ...]]:
    if played.host.faithful:
        yield _whole(played)
        return
    for group in _groups(row for row in played.rows if row.finding.fate is not Fate.INTACT):
        found = group.finding
        yield (
            played.host.name,
            _turns(group.turns),
            _came(group),
            _went(found),
            found.fate.value,
            verdict(found.verdict, found.rule),
            _said(found),
        )


def _whole(played: Played) -> tuple[str | Text, ...]:
    """A host that loses nothing, in one row. What came with the last response was never due."""
    due = [receipt for report in played.reports[:-1] for receipt in report.received]
    return (
        played.host.name,
        _turns([1, len(played.reports)]),
        f"{plural(len(due), 'sealed value')}, {size(sum(receipt.size for receipt in due))}",
        "all of them, in every request",
        Fate.INTACT.value,
        verdict(Verdict.OK),
        played.reports[-1].provider_verdict.value,
    )


def _groups(rows: Iterable[Row]) -> list[_Group]:
    groups: dict[tuple[str, ...], _Group] = {}
    for row in rows:
        found = row.finding
        group = groups.setdefault(
            (found.artifact, found.fate, found.verdict, found.rule), _Group(found)
        )
        group.turns.append(row.turn)
        if found.received:
            group.origins.add((found.received.exchange, found.received.path))
    return list(groups.values())


def _turns(turns: list[int]) -> str:
    first, last = min(turns), max(turns)
    return str(first) if first == last else f"{first}-{last}"


def _came(group: _Group) -> str:
    found, count = group.finding, len(group.origins)
    if count > 1:
        return f"{found.artifact}, {count} values"
    return ", ".join(x for x in (found.artifact, size(found.size_in)) if x)


def _went(found: Finding) -> str:
    if found.fate is Fate.MODIFIED:
        how = f", {found.cause.value.replace('_', ' ')}" if found.cause else ""
        if found.artifact.endswith(".text"):
            how = ", edited"
        return f"{size(found.size_out) or 'another value'}{how}"
    return _WENT_BACK.get(found.fate, found.fate.value)


def _said(found: Finding) -> str:
    if found.provider_verdict is ProviderVerdict.REJECTED:
        return f"refused ({found.rejection}), ends here"
    return found.provider_verdict.value


def _summary(done: list[Played]) -> Iterator[str]:
    faithful = [played for played in done if played.host.faithful]
    others = [played for played in done if not played.host.faithful]
    kept = sum(len(played.rows) for played in faithful)
    clean = all(not played.losses for played in faithful)
    yield (
        f"{len(faithful)} faithful hosts: {kept} values checked, "
        f"{'all intact' if clean else 'NOT all intact'}."
    )
    refused = sum(played.refused for played in others)
    silent = sum(
        not played.refused and any(row.finding.verdict.violates for row in played.rows)
        for played in others
    )
    yield (
        f"{len(others)} unfaithful hosts: the provider refused {refused}, "
        f"and took {silent} without a word although reasoning was lost or changed."
    )
