"""`otel-sealed triage`: the incidents of a record; and what a provider's error is about."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from otel_sealed.cli import OK, VIOLATED, complain
from otel_sealed.cli import key as keys
from otel_sealed.cli.replay import is_evidence, key_of, replayed
from otel_sealed.cli.show import Screen, Ticker, json_line, plural, ticker
from otel_sealed.cli.strips import drawn
from otel_sealed.cli.tell import detail, flaw_line, incident_table, pasted_lines
from otel_sealed.cli.when import moment
from otel_sealed.errors import SealedError
from otel_sealed.telemetry.settings import read
from otel_sealed.triage import schema, tempo
from otel_sealed.triage.files import found_in
from otel_sealed.triage.incidents import ordered
from otel_sealed.triage.index import Filter, Index
from otel_sealed.triage.machine import flaw_object, incident_object, pasted_object
from otel_sealed.triage.pasted import Record, clues, resolve
from otel_sealed.triage.strip import of_incident
from otel_sealed.triage.words import explained

if TYPE_CHECKING:
    from otel_sealed.triage.model import Call, Incident
    from otel_sealed.triage.strip import Strip

STDIN: Final = "-"
FEW: Final = 3
"""So many incidents are told one by one; more of them in a table."""
PROCESSES: Final = 2


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


def run(asked: Asked) -> int:
    """Say what there is. Status: 0 nothing found, 1 something, 2 unusable input."""
    with indexed(asked) as index:
        stats = index.stats()
        if not stats.calls and stats.broken:
            flaw = index.flaws()[0]
            where = f"{flaw.file}, line {flaw.line}" if flaw.line else flaw.file
            return complain(f"{where}: {flaw.what}")
        if asked.error is not None:
            return _explain(index, asked, _key(_paths(asked), _folder()))
        return _tell(index, asked)


@contextmanager
def indexed(asked: Asked) -> Iterator[Index]:
    """The index of what was asked for, filled."""
    paths = _paths(asked)
    with Index(_place(paths)) as index:
        _fill(index, paths, asked)
        yield index


def _folder() -> Path:
    return Path(read()[0].folder)


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
        index.stream(path, replayed(path, _key(paths, _folder())))
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


def _tell(index: Index, asked: Asked) -> int:
    wanted = asked.wanted
    if asked.tempo and wanted.trace:
        wanted = replace(wanted, trace=wanted.trace.rjust(32, "0"))
    found = index.incidents(wanted, asked.limit)
    total = index.count(wanted)
    if asked.as_json:
        for flaw in index.flaws():
            json_line(flaw_object(flaw))
        for incident in found:
            json_line(incident_object(incident))
    else:
        _print(index, found, total, asked)
    return VIOLATED if found else OK


def _print(index: Index, found: list[Incident], total: int, asked: Asked) -> None:
    out, stats = Screen(), index.stats()
    where = f"{plural(stats.calls, 'call')} in {plural(stats.files, 'file')}"
    out.line(f"{plural(total, 'incident')} in {where}")
    for line in _flaws(index):
        out.line(line)
    if len(found) > FEW:
        out.draw(incident_table(found))
        if total > len(found):
            out.line(f"and {total - len(found):,} older ones: --limit {total}")
        out.line(f"What a rule says: {explained('')}")
        out.line(f"More on one: otel-sealed triage --incident {found[0].id}")
    for incident in found if len(found) <= FEW else ():
        out.line()
        out.line(detail(incident))
        for strip in _strips(index, incident):
            out.line()
            out.draw(drawn(strip, out.width))
    hidden = 0 if asked.wanted.known else index.count(replace(asked.wanted, known=True)) - total
    if hidden:
        out.line(f"{plural(hidden, 'incident')} of known losses not shown: --known")


def _strips(index: Index, incident: Incident) -> list[Strip]:
    calls = index.conversation(incident.conversation) if incident.conversation else []
    return of_incident(ordered(calls), incident)


def _flaws(index: Index) -> Iterator[str]:
    flaws = index.flaws()
    for flaw in flaws[:3]:
        yield flaw_line(flaw)
    more = index.stats().broken - min(len(flaws), 3)
    if more > 0:
        yield f"and {plural(more, 'more line')} that could not be used"


# --------------------------------------------------------------------------------- a pasted error


def _explain(index: Index, asked: Asked, key: bytes) -> int:
    text = sys.stdin.read() if asked.error == STDIN else asked.error or ""
    if not text.strip():
        return complain("--error is empty", "paste what the provider said, or - and pipe it in")
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
    found = resolve(clue, record, key)
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


def _wanted(call: Call, wanted: Filter) -> bool:
    return (
        call.at >= wanted.since
        and (not wanted.until or call.at < wanted.until)
        and call.conversation.startswith(wanted.conversation)
        and wanted.provider in ("", call.provider)
        and wanted.model in call.model
        and wanted.trace in ("", call.trace)
    )
