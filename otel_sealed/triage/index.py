"""The record, indexed on demand: what is new is read, and the incidents of what it touches.

Theory of operation. A file is known by device, inode and its first bytes, so that a rotated one is
not read twice. What was appended to it is read from where reading ended; a file that shrank, or
whose kind allows no other way (gzip, one JSON document), is read anew; what is gone from disk is
gone from the index. Calls are stored packed, and never all held in memory. At the end the
incidents of every conversation that has trouble and was touched are made anew and kept, so that a
question is a look into one small table. A call is one (trace, span): the events of a call and its
span, read again from another file or not, are one.

What comes out of the index is checked (`schema.Corrupt`), and a file that cannot be read costs the
others nothing: it is in `refused` or `cut`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Self, cast

from otel_sealed.errors import SealedError
from otel_sealed.triage import files, schema
from otel_sealed.triage.files import MAX_FLAWS, Found
from otel_sealed.triage.incidents import RECENT_NS, incidents
from otel_sealed.triage.model import Call, Flaw, Incident
from otel_sealed.triage.packing import pack_incident, unpack_incident
from otel_sealed.triage.plans import Known, Plan, plan_of
from otel_sealed.triage.readers import read_here, readers
from otel_sealed.triage.reading import Stored, unpacked
from otel_sealed.triage.sums import Sums
from otel_sealed.triage.unobserved import Passed, passed

Progress = Callable[[str, int, int], None]
"""Told the file, and how many bytes of how many are read."""

ALONE_BYTES: Final = 32 << 20
"""Below this one process reads: another takes half a second to start."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which incidents are wanted; empty: all. Times are ns since the epoch, `until` excluded.

    `conversation` is the beginning of a key, `model` any part of a name, `ident` the beginning of
    an incident's id.
    """

    since: int = 0
    until: int = 0
    conversation: str = ""
    trace: str = ""
    provider: str = ""
    model: str = ""
    fate: str = ""
    ident: str = ""
    known: bool = False


@dataclass(frozen=True, slots=True)
class Stats:
    """What the index holds: calls, lines that could not be used, when the newest call was made.

    `refused` counts files, or parts of them, that were not read for their size, shape or damage.
    """

    files: int
    calls: int
    broken: int
    newest: int
    refused: int = 0


class Index:
    """The index of a record. A context manager; one process writes at a time."""

    def __init__(self, path: Path | None = None) -> None:
        """At `path`, or for this process alone."""
        self._db = schema.connect(path)
        self._new = 0
        self.refused: list[SealedError] = []
        """Files that could not be opened, or held nothing of use."""
        self.cut: list[SealedError] = []
        """Files that could not be read to their end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    # -- filling ---------------------------------------------------------------------------------

    def update(
        self, paths: Iterable[Path], *, processes: int = 1, progress: Progress | None = None
    ) -> None:
        """Read what is new in these files, and forget the files that are no longer among them.

        Raises:
            SealedError: The index cannot be written, as where the disk is full.
        """
        known = Known(self._files())
        plans = []
        for path in paths:
            try:
                plan = plan_of(path, known)
            except SealedError as error:
                self.refused.append(error)
                continue
            if plan.anew or plan.begin < plan.size:
                plans.append(plan)
        gone = [row[0] for row in known.rest()]
        gone += [plan.ident for plan in plans if plan.anew and plan.ident]
        if not plans and not gone:
            return
        with self._writing():
            touched = self._forget(gone)
            self._fill(plans, processes, progress)
            self._settle(touched, forgotten=bool(gone))

    def stream(self, name: str, source: IO[bytes]) -> None:
        """Read a stream to its end. One that is damaged further on is a flaw."""
        with self._writing():
            read = map(read_here, files.of_stream(name, source))
            self._store_all(Plan(Path(name), 0, 1, 0, anew=True), read)
            self._settle(set())

    def add(self, name: str, data: bytes) -> None:
        """Read a document that is in memory."""
        import io

        self.stream(name, io.BytesIO(data))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            (self._new,) = self._db.execute("SELECT coalesce(max(id), 0) FROM calls").fetchone()
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise _fault(error) from None
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _forget(self, gone: Sequence[int]) -> set[bytes]:
        """Take files out; the conversations whose incidents they may have told."""
        if not gone:
            return set()
        held = ("calls", "flaws", "unjudged", "unobserved")
        for table, column in (*((name, "file") for name in held), ("files", "id")):
            sql = f"DELETE FROM {table} WHERE {column} = ?"  # noqa: S608
            self._db.executemany(sql, ((ident,) for ident in gone))
        return {row[0] for row in self._db.execute("SELECT DISTINCT conversation FROM incidents")}

    def _fill(self, plans: Sequence[Plan], processes: int, progress: Progress | None) -> None:
        total = sum(plan.size - plan.begin for plan in plans)
        done = 0
        with readers(processes if total >= ALONE_BYTES else 1) as reading:
            for plan in plans:

                def told(found: Found, plan: Plan = plan) -> None:
                    nonlocal done
                    done += found.read
                    if progress is not None:
                        progress(plan.path.name, done, total)

                self._store_all(plan, reading(files.pieces(plan.path, plan.begin, plan.line)), told)

    def _store_all(
        self, plan: Plan, read: Iterable[Found], told: Callable[[Found], None] | None = None
    ) -> None:
        ident, end, line, broken = plan.ident, plan.begin, plan.line, plan.broken
        refused = plan.refused
        whole, unfinished = plan.whole, False
        if plan.anew:
            cursor = self._db.execute("INSERT INTO files (path) VALUES (?)", (str(plan.path),))
            ident = cursor.lastrowid or 0
        self._db.execute("DELETE FROM flaws WHERE file = ? AND line >= ?", (ident, line))
        for found in read:
            self._db.executemany(_CALL, ((ident, *stored) for stored, _ in found.calls))
            values = ((ident, *value) for _, unjudged in found.calls for value in unjudged)
            self._db.executemany("INSERT OR IGNORE INTO unjudged VALUES (?, ?, ?)", values)
            self._db.executemany(_PASSES, ((ident, *point) for point in found.unobserved))
            room = max(0, MAX_FLAWS - broken)
            rows = [(ident, flaw.line, flaw.what, int(flaw.refused)) for flaw in found.flaws]
            self._db.executemany("INSERT INTO flaws VALUES (?, ?, ?, ?)", rows[:room])
            broken, refused = broken + found.broken, refused + found.refused
            end, line = end + found.read, line + found.lines
            whole, unfinished = whole or found.document, found.unfinished
            if told is not None:
                told(found)
            if found.over:
                break
        state = (*plan.identity, plan.head, plan.size, plan.changed, end, line, whole)
        self._db.execute(_FILE, (str(plan.path), *state, broken, unfinished, refused, ident))

    def _settle(self, touched: set[bytes], *, forgotten: bool = False) -> None:
        """Indexes, and the incidents of what is new."""
        schema.index(self._db)
        new = (self._new,)
        touched |= {row[0] for row in self._db.execute(_TROUBLED, new)}
        touched |= {row[0] for row in self._db.execute(_GOES_ON, new)}
        for key in touched:
            self._db.execute("DELETE FROM incidents WHERE conversation = ?", (key,))
            found = incidents(self._calls_of(key))
            self._db.executemany(_INCIDENT, (_incident_columns(i, key) for i in found))
        sql = "SELECT coalesce(max(at), 0) FROM calls WHERE id > ?"
        (newest,) = self._db.execute(sql, (0,) if forgotten else new).fetchone()
        newest = newest if forgotten else max(newest, self._meta("newest"))
        (count,) = self._db.execute(_COUNT).fetchone()
        for name, value in (("newest", newest), ("calls", count)):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # -- asking ----------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """How much there is."""
        ((files, broken, refused),) = self._asked(_STATS, (), (int, int, int))
        return Stats(files, self._meta("calls"), broken, self._meta("newest"), refused)

    def sums(self) -> Sums:
        """What could not be judged of it."""
        return Sums(
            unjudged=Counter(dict(self._asked(_UNJUDGED, (), (str, int)))),
            failed=Counter(dict(self._asked(_FAILED, (), (str, int)))),
            unread=Counter(dict(self._asked(_UNREAD, (), (str, int)))),
            short=next(self._asked(_SHORT, (), (int,)))[0],
            unobserved=self._unobserved(),
        )

    def _unobserved(self) -> Passed:
        rows = self._asked(_PASSED, (), (str, str, str, int, int))
        return passed((path, (*who, start, requests)) for path, *who, start, requests in rows)

    def flaws(self) -> list[Flaw]:
        """What could not be used, at most 100 of a file; what was refused first."""
        rows = self._asked(_FLAWS, (), (str, int, str, int))
        return [Flaw(path, line, what, bool(refused)) for path, line, what, refused in rows]

    def incidents(self, wanted: Filter | None = None, limit: int = -1) -> list[Incident]:
        """The incidents, the newest first."""
        where, values = self._where(wanted or Filter())
        sql = f"SELECT body FROM incidents WHERE {where} ORDER BY last DESC, id LIMIT ?"  # noqa: S608
        newest = self._meta("newest")
        found = []
        for (body,) in self._asked(sql, (*values, limit), (str,)):
            with _ours():
                found.append(_grown(unpack_incident(body), newest))
        return found

    def count(self, wanted: Filter | None = None) -> int:
        """How many there are."""
        where, values = self._where(wanted or Filter())
        sql = f"SELECT count(*) FROM incidents WHERE {where}"  # noqa: S608
        ((count,),) = self._asked(sql, values, (int,))
        return int(count)

    def conversation(self, key: str) -> list[Call]:
        """Every call of a conversation, in no particular order."""
        return list(self._calls_of(_bytes(key)))

    def refusals(self, rejection: str = "", limit: int = 1000) -> Iterator[Call]:
        """The newest calls that were refused for their sealed state, of one class or of any.

        One after the other: mostly the first is the one that is meant.
        """
        where = "rejection = ?" if rejection else "rejection IS NOT NULL AND rejection != ?"
        sql = f"{_SELECT} WHERE {where} ORDER BY at DESC LIMIT ?"
        return map(self._call, self._asked(sql, (rejection, limit)))

    def keys(self) -> Iterator[str]:
        """The key of every conversation, those with trouble first."""
        seen = set()
        for sql in (
            "SELECT DISTINCT conversation FROM incidents",
            "SELECT DISTINCT conversation FROM calls",
        ):
            for (key,) in self._asked(sql, (), (bytes,)):
                if key not in seen:
                    seen.add(key)
                    yield key.hex()

    def _files(self) -> Iterator[tuple[Any, ...]]:
        numbers = (int,) * 7
        for row in self._asked(_FILES, (), (int, int, int, bytes, *numbers)):
            if min(row[4:]) < 0 or row[6] > row[4]:
                raise schema.Corrupt
            yield row

    def _asked(
        self, sql: str, values: Sequence[Any], kinds: Sequence[type] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a question, in which every value is of its kind, where that is given."""
        try:
            for row in self._db.execute(sql, values):
                if kinds and [*map(type, row)] != [*kinds]:
                    raise schema.Corrupt
                yield row
        except sqlite3.Error as error:
            raise _fault(error) from None

    def _where(self, wanted: Filter) -> tuple[str, list[Any]]:
        clauses, values = ["known <= ?"], [int(wanted.known)]  # type: list[str], list[Any]
        for clause, value in (
            ("last >= ?", wanted.since),
            ("first < ?", wanted.until),
            ("hex(conversation) LIKE ?", wanted.conversation and f"{wanted.conversation}%"),
            ("provider = ?", wanted.provider),
            ("instr(model, ?) > 0", wanted.model),
            ("instr(fates, ?) > 0", wanted.fate and f",{wanted.fate},"),
            ("id LIKE ?", wanted.ident and f"{wanted.ident}%"),
            (
                "conversation IN (SELECT conversation FROM calls WHERE trace = ?)",
                wanted.trace and _bytes(wanted.trace),
            ),
        ):
            if value:
                clauses.append(clause)
                values.append(value)
        return " AND ".join(clauses), values

    def _calls_of(self, key: bytes) -> Iterator[Call]:
        rows = list(self._asked(f"{_SELECT} WHERE conversation = ?", (key,)))
        return map(self._call, rows)

    def _call(self, row: tuple[Any, ...]) -> Call:
        path, *stored = row
        with _ours():
            return unpacked(cast("Stored", tuple(stored)), path)

    def _meta(self, name: str) -> int:
        sql = "SELECT value FROM meta WHERE name = ?"
        return next((row[0] for row in self._asked(sql, (name,), (int,))), 0)


@contextmanager
def _ours() -> Iterator[None]:
    """What is no record of ours is damage of the index."""
    try:
        yield
    except ValueError:
        raise schema.Corrupt from None


def _fault(error: sqlite3.Error) -> SealedError:
    """What a fault of SQLite's means: a full disk and the like is the machine's, else damage."""
    name = getattr(error, "sqlite_errorname", "")
    if isinstance(error, sqlite3.OperationalError) and name.startswith(_OF_THE_MACHINE):
        return SealedError(
            f"the index of the record cannot be used: {name}",
            remedy="is the disk full, read-only or in use? the index may be deleted",
        )
    return schema.Corrupt()


_OF_THE_MACHINE: Final = (
    *("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_READONLY"),
    *("SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_PERM"),
)


_FILES: Final = """
SELECT id, device, inode, head, size, changed, read, line, whole, broken - unfinished, refused
FROM files
"""
_FILE: Final = """
UPDATE files SET path = ?, device = ?, inode = ?, head = ?, size = ?, changed = ?, read = ?,
    line = ?, whole = ?, broken = ?, unfinished = ?, refused = ? WHERE id = ?
"""
_STATS: Final = """
SELECT count(*), coalesce(sum(broken), 0), coalesce(sum(refused), 0) FROM files
"""
_COUNT: Final = """
SELECT (SELECT count(*) FROM (SELECT DISTINCT trace, span FROM calls WHERE span != x''))
    + (SELECT count(*) FROM calls WHERE span = x'')
"""
_UNJUDGED: Final = "SELECT rule, count(DISTINCT value) FROM unjudged GROUP BY rule"
_FAILED: Final = """
SELECT failed, count(DISTINCT hex(trace) || hex(span)) FROM calls WHERE failed IS NOT NULL
GROUP BY failed
"""
_UNREAD: Final = """
SELECT unread, count(DISTINCT hex(trace) || hex(span)) FROM calls WHERE unread IS NOT NULL
GROUP BY unread
"""
_SHORT: Final = """
SELECT (SELECT count(*) FROM (SELECT DISTINCT trace, span FROM calls WHERE short AND span != x''))
    + (SELECT count(*) FROM calls WHERE short AND span = x'')
"""
_PASSED: Final = """
SELECT path, client, host, start, requests FROM unobserved JOIN files ON files.id = file
"""
_PASSES: Final = """
INSERT INTO unobserved VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET requests = max(requests, excluded.requests)
"""
_CALL: Final = "INSERT INTO calls VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INCIDENT: Final = "INSERT INTO incidents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TROUBLED: Final = "SELECT DISTINCT conversation FROM calls WHERE id > ? AND troubled"
_GOES_ON: Final = """
SELECT DISTINCT conversation FROM incidents
WHERE conversation IN (SELECT conversation FROM calls WHERE id > ?)
"""
_SELECT: Final = """
SELECT files.path, calls.line, at, trace, span, conversation, key, provider, model, troubled,
    rejection, failed, unread, short, body
FROM calls JOIN files ON files.id = calls.file
"""
_FLAWS: Final = """
SELECT path, flaws.line, what, flaws.refused FROM flaws JOIN files ON files.id = file
ORDER BY flaws.refused = 0, path, flaws.line
"""


def _incident_columns(incident: Incident, key: bytes) -> tuple[Any, ...]:
    fates = {part.fate for part in incident.parts}
    return (
        incident.id,
        key,
        incident.first_bad.at,
        incident.last_bad.at,
        incident.provider,
        incident.model,
        f",{','.join(sorted(fates))},",
        int(incident.known),
        pack_incident(incident),
    )


def _grown(incident: Incident, newest: int) -> Incident:
    """An incident as it is by the newest call on record."""
    recent = newest - incident.last_bad.at <= RECENT_NS
    return replace(incident, growing=incident.growing and recent)


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
