"""`otel-sealed triage`: the incidents of a record; and what a provider's error is about."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from otel_sealed.cli import OK, UNUSABLE, VIOLATED, complain
from otel_sealed.cli import key as keys
from otel_sealed.cli.replay import is_evidence, key_of, replayed
from otel_sealed.cli.show import Screen, Ticker, json_line, plural, ticker
from otel_sealed.cli.strips import drawn
from otel_sealed.cli.tell import detail, flaw_line, incident_lines, incident_table, pasted_lines
from otel_sealed.cli.when import moment
from otel_sealed.errors import SealedError
from otel_sealed.telemetry.settings import read
from otel_sealed.triage import schema, tempo
from otel_sealed.triage.files import CUT, found_in
from otel_sealed.triage.incidents import ordered
from otel_sealed.triage.index import Filter, Index, Stats
from otel_sealed.triage.machine import (
    flaw_object,
    incident_object,
    pasted_object,
    sums_objects,
)
from otel_sealed.triage.pasted import Record, clues, resolve
from otel_sealed.triage.strip import of_incident
from otel_sealed.triage.sums import Sums, scope, screen
from otel_sealed.triage.words import explained

if TYPE_CHECKING:
    from otel_sealed.triage.model import Call, Flaw, Incident
    from otel_sealed.triage.strip import Strip

STDIN: Final = "-"
FEW: Final = 3
"""So many incidents are told one by one; more of them in a table."""
TABLE_WIDTH: Final = 145
"""Columns of the table of incidents: in a narrower terminal each has two lines instead."""
PROCESSES: Final = 2
MAX_ERROR: Final = 1 << 20
"""Most characters of a pasted error that are read: its classes look at far fewer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    paths: Sequence[str] = ()
    wanted: Filter = field(default_factory=Filter)
    error: str | None = field(default=None, repr=False)
    tempo: str = ""
    headers: Sequence[str] = ()
    limit: int = 50
    processes: int = PROCESSES
    as_json: bool = False


Work: TypeAlias = Callable[[Index, Asked], Callable[[], int]]
"""Asks an index all there is to know, and returns what prints it."""


def run(asked: Asked) -> int:
    """Say what there is. Status: 0 nothing found, 1 something, 2 unusable input."""
    if asked.error is not None and not (asked.paths or asked.tempo or _recorded()):
        with Index(None) as index:  # without a record a class still means what it means
            return _explained(index, asked)()
    return on_index(asked, _explained if asked.error is not None else _told)


def on_index(asked: Asked, work: Work) -> int:
    """The status of what `work` makes of the index; what it returns prints, once all is known.

    An index that turns out damaged is made anew, once. A file that was not read is named when all
    else is printed, and the status is 2. Of one that is cut what came before counts: with it the
    status is 2 only where nothing was found.
    """
    try:
        printed, unusable, cut, empty = _worked(asked, work)
    except schema.Corrupt:
        place = _place(_paths(asked))
        if place is None:
            raise
        place.unlink(missing_ok=True)
        printed, unusable, cut, empty = _worked(asked, work)
    if empty and (unusable or cut):
        return complain((unusable or cut)[0])
    status = printed()
    for line in (*unusable, *cut):
        complain(line)
    return UNUSABLE if unusable or (cut and status == OK) else status


def _worked(asked: Asked, work: Work) -> tuple[Callable[[], int], list[str], list[str], bool]:
    """What prints, a line for each file that was not read or is cut, whether there was no call."""
    paths = _paths(asked)
    with Index(_place(paths)) as index:
        _fill(index, paths, asked)
        stats, flaws = index.stats(), index.flaws()
        unusable = [error.line() for error in index.refused]
        cut = [error.line() for error in index.cut]
        if stats.refused or (not stats.calls and flaws):
            refused = [flaw for flaw in flaws[:FEW] if flaw.refused] or flaws[:1]
            cut += [_flawed(flaw) for flaw in refused if flaw.what == CUT]
            unusable += [_flawed(flaw) for flaw in refused if flaw.what != CUT]
        return work(index, asked), unusable, cut, not stats.calls


def _flawed(flaw: Flaw) -> str:
    where = f"{flaw.file}, line {flaw.line}" if flaw.line else flaw.file
    return f"{where}: {flaw.what}"


def _folder() -> Path:
    return Path(read()[0].folder)


def _recorded() -> bool:
    """Whether anything is in the folder that is read where none is named."""
    folder = _folder()
    return folder.is_dir() and any(folder.iterdir())


def _paths(asked: Asked) -> list[str]:
    return list(asked.paths) or ([] if asked.tempo else [str(_folder())])


def asked_filter(  # noqa: PLR0913 - one option each
    *,
    since: str = "",
    until: str = "",
    conversation: str = "",
    trace: str = "",
    provider: str = "",
    model: str = "",
    fate: str = "",
    incident: str = "",
    known: bool = False,
) -> Filter:
    """The filter that options stand for.

    Raises:
        SealedError: A time is none.
    """
    return Filter(
        since=moment(since, "--since"),
        until=moment(until, "--until"),
        conversation=conversation.lower(),
        trace=trace.lower(),
        provider=provider,
        model=model,
        fate=fate,
        ident=incident.lower(),
        known=known,
    )


def _place(paths: Sequence[str]) -> Path | None:
    """Beside the record, where it is one folder; else nowhere."""
    only = Path(paths[0]) if len(paths) == 1 else None
    return only / schema.NAME if only is not None and only.is_dir() else None


def _key(paths: Sequence[str], folder: Path) -> bytes:
    """The key of the record: the configured one, else that of the folder it stands in."""
    configured = read()[0].key()
    if configured is not None:
        return configured
    for path in (*map(Path, paths), folder):
        found = keys.read(path if path.is_dir() else path.parent)
        if found:
            return found
    own = [path for path in paths if is_evidence(path)]
    return key_of(own) if own else b""


def _fill(index: Index, paths: Sequence[str], asked: Asked) -> None:
    named = [path for path in paths if path != STDIN]
    own = [path for path in named if is_evidence(path)]
    named = [path for path in named if path not in own]
    if named:
        with ticker() as ticks:
            files = found_in(named)
            index.update(files, processes=_processes(asked), progress=_progress(ticks))
    for path in own:
        try:
            index.stream(path, replayed(path, _key(paths, _folder()), index.cut))
        except SealedError as error:
            index.refused.append(error)
    if STDIN in paths:
        index.stream("stdin", sys.stdin.buffer)
    if asked.tempo:
        headers = dict(_header(text) for text in asked.headers)
        index.add("tempo", tempo.trace(asked.tempo, asked.wanted.trace, headers))


def _processes(asked: Asked) -> int:
    return min(asked.processes, os.cpu_count() or 1)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not (colon and name.strip() and value.strip().isprintable()):
        raise SealedError("no header", where="--header", remedy="NAME: VALUE")
    return name.strip(), value.strip()


def _progress(ticks: Ticker) -> Any:
    def told(file: str, done: int, total: int) -> None:
        ticks.say(f"{file}, {done * 100 // max(total, 1)} %")

    return told


# ------------------------------------------------------------------------------------ incidents


def _told(index: Index, asked: Asked) -> Callable[[], int]:
    wanted = asked.wanted
    if asked.tempo and wanted.trace:
        wanted = replace(wanted, trace=wanted.trace.rjust(32, "0"))
    total = index.count(wanted)
    known = 0 if wanted.known else index.count(replace(wanted, known=True)) - total
    incidents = index.incidents(wanted, asked.limit)
    few = incidents if len(incidents) <= FEW and not asked.as_json else []
    found = Found(
        incidents=incidents,
        total=total,
        known=known,
        stats=index.stats(),
        sums=index.sums(),
        flaws=index.flaws(),
        strips=[_strips(index, incident) for incident in few],
    )

    def printed() -> int:
        (_as_json if asked.as_json else _print)(found)
        return VIOLATED if incidents else OK

    return printed


@dataclass(frozen=True, slots=True)
class Found:
    """What is printed of a record. `known` counts incidents that are not shown for being known."""

    incidents: list[Incident]
    total: int
    known: int
    stats: Stats
    sums: Sums
    flaws: list[Flaw]
    strips: list[list[Strip]]


def _as_json(found: Found) -> None:
    for flaw in found.flaws:
        json_line(flaw_object(flaw))
    for incident in found.incidents:
        json_line(incident_object(incident))
    for unjudged in sums_objects(found.sums):
        json_line(unjudged)


def _print(found: Found) -> None:
    out, stats = Screen(), found.stats
    where = f"{plural(stats.calls, 'call')} in {plural(stats.files, 'file')}"
    judged = scope(stats.calls, found.sums)
    out.line("; ".join(filter(None, (f"{plural(found.total, 'incident')} in {where}", judged))))
    for line in (*screen(found.sums), *_flaws(found)):
        out.line(line)
    shown = found.incidents
    if len(shown) > FEW:
        if out.width < TABLE_WIDTH:
            for incident in shown:
                out.line(incident_lines(incident))
        else:
            out.draw(incident_table(shown))
        if found.total > len(shown):
            out.line(f"and {found.total - len(shown):,} older ones: --limit {found.total}")
        out.line(f"What a rule says: {explained('')}")
        out.line(f"More on one: otel-sealed triage --incident {shown[0].id}")
    for incident, strips in zip(shown, found.strips, strict=False):
        out.line()
        out.line(detail(incident))
        for strip in strips:
            out.line()
            out.draw(drawn(strip, out.width))
    if found.known:
        out.line(f"{plural(found.known, 'incident')} of known losses not shown: --known")


def _strips(index: Index, incident: Incident) -> list[Strip]:
    calls = index.conversation(incident.conversation) if incident.conversation else []
    return of_incident(ordered(calls), incident)


def _flaws(found: Found) -> Iterator[str]:
    flaws = found.flaws[:FEW]
    yield from map(flaw_line, flaws)
    more = found.stats.broken - len(flaws)
    if more > 0:
        yield f"and {plural(more, 'more line')} that could not be used"


# --------------------------------------------------------------------------------- a pasted error


def _explained(index: Index, asked: Asked) -> Callable[[], int]:
    text = sys.stdin.read(MAX_ERROR) if asked.error == STDIN else asked.error or ""
    if not text.strip():
        remedy = "paste what the provider said, or - and pipe it in"
        raise SealedError("--error is empty", remedy=remedy)
    clue = clues(text)
    del text
    wanted = asked.wanted

    def refusals(rejection: str) -> Iterator[Call]:
        return (call for call in index.refusals(rejection) if _wanted(call, wanted))

    def incidents(conversation: str) -> list[Incident]:
        return (
            index.incidents(Filter(conversation=conversation, known=True)) if conversation else []
        )

    record = Record(refusals, index.conversation, incidents, index.keys)
    key = _key(_paths(asked), _folder())
    found = resolve(clue, record, key)

    def printed() -> int:
        if asked.as_json:
            json_line(pasted_object(found))
        else:
            out = Screen()
            for line in pasted_lines(found, ids=bool(clue.ids), key=bool(key)):
                out.line(line)
            for incident in found.incidents[:1]:
                out.line()
                out.line(detail(incident))
        return VIOLATED if found.victim or found.incidents else OK

    return printed


def _wanted(call: Call, wanted: Filter) -> bool:
    return (
        call.at >= wanted.since
        and (not wanted.until or call.at < wanted.until)
        and call.conversation.startswith(wanted.conversation)
        and wanted.provider in ("", call.provider)
        and wanted.model in call.model
        and wanted.trace in ("", call.trace)
    )
