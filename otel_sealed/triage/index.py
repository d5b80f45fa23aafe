"""The record, indexed on demand: what is new is read, and the incidents of what it touches.

Theory of operation. A file is known by device, inode and its first bytes, so that a rotated one is
not read twice. What was appended to it is read from where reading ended; a file that shrank, or
whose kind allows no other way (gzip, one JSON document), is read anew; what is gone from disk is
gone from the index. Calls are stored packed, and never all held in memory. At the end the
incidents of every conversation that has trouble and was touched are told anew and kept, so that a
question is a look into one small table.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any, Final, Self, cast

from otel_sealed.errors import SealedError
from otel_sealed.triage import files, schema
from otel_sealed.triage.files import Found, Piece
from otel_sealed.triage.incidents import RECENT_NS, incidents
from otel_sealed.triage.model import Call, Flaw, Incident
from otel_sealed.triage.packing import pack_incident, unpack_incident
from otel_sealed.triage.reading import Entry, unpacked

Progress = Callable[[str, int, int], None]
"""Told the file, and how many bytes of how many are read."""

ALONE_BYTES: Final = 32 << 20
"""Below this one process reads: another takes half a second to start."""
MAX_FLAWS: Final = 100
"""Flaws of a file that are named; all are counted."""
_HEAD: Final = 256
_READING: Final = 3


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
    """What the index holds: calls, lines that could not be used, when the newest call was made."""

    files: int
    calls: int
    broken: int
    newest: int


class Index:
    """The index of a record. A context manager; one process writes at a time."""

    def __init__(self, path: Path | None = None) -> None:
        """At `path`, or for this process alone."""
        self._db = schema.connect(path)
        self._new = 0

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
        known = {row[1:4]: row for row in self._db.execute(_FILES)}
        plans = []
        for path in paths:
            plan = _plan(path, known)
            if plan.anew or plan.begin < plan.size:
                plans.append(plan)
        gone = [row[0] for row in known.values()]
        gone += [plan.ident for plan in plans if plan.anew and plan.ident]
        if not plans and not gone:
            return
        with self._writing():
            touched = self._forget(gone)
            self._fill(plans, processes, progress)
            self._settle(touched, forgotten=bool(gone))

    def stream(self, name: str, source: IO[bytes]) -> None:
        """Read a stream to its end."""
        with self._writing():
            read = map(_read_here, files.of_stream(name, source))
            self._store_all(_Plan(Path(name), 0, 1, 0, anew=True), read)
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
            raise SealedError(
                f"the index cannot be written: {error}", remedy="it may be deleted"
            ) from None
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _forget(self, gone: Sequence[int]) -> set[bytes]:
        """Take files out; the conversations whose incidents they may have told."""
        if not gone:
            return set()
        marks = ",".join("?" * len(gone))
        for table, column in (("calls", "file"), ("flaws", "file"), ("files", "id")):
            self._db.execute(f"DELETE FROM {table} WHERE {column} IN ({marks})", gone)  # noqa: S608
        return {row[0] for row in self._db.execute("SELECT DISTINCT conversation FROM incidents")}

    def _fill(self, plans: Sequence[_Plan], processes: int, progress: Progress | None) -> None:
        total = sum(plan.size - plan.begin for plan in plans)
        done = 0
        with _readers(processes if total >= ALONE_BYTES else 1) as reading:
            for plan in plans:

                def told(found: Found, plan: _Plan = plan) -> None:
                    nonlocal done
                    done += found.read
                    if progress is not None:
                        progress(plan.path.name, done, total)

                self._store_all(plan, reading(files.pieces(plan.path, plan.begin, plan.line)), told)

    def _store_all(
        self, plan: _Plan, read: Iterable[Found], told: Callable[[Found], None] | None = None
    ) -> None:
        ident, end, line, broken = plan.ident, plan.begin, plan.line, plan.broken
        whole, unfinished = plan.whole, False
        if plan.anew:
            cursor = self._db.execute("INSERT INTO files (path) VALUES (?)", (str(plan.path),))
            ident = cursor.lastrowid or 0
        self._db.execute("DELETE FROM flaws WHERE file = ? AND line >= ?", (ident, line))
        for found in read:
            self._db.executemany(_CALL, ((ident, *entry) for entry in found.calls))
            room = max(0, MAX_FLAWS - broken)
            rows = [(ident, flaw.line, flaw.what) for flaw in found.flaws]
            self._db.executemany("INSERT INTO flaws VALUES (?, ?, ?)", rows[:room])
            broken += len(rows)
            end, line = end + found.read, line + found.lines
            whole, unfinished = whole or found.document, found.unfinished
            if told is not None:
                told(found)
        state = (*plan.identity, plan.head, plan.size, plan.changed, end, line, whole)
        self._db.execute(_FILE, (str(plan.path), *state, broken, unfinished, ident))

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
        (count,) = self._db.execute("SELECT count(*) FROM calls").fetchone()
        for name, value in (("newest", newest), ("calls", count)):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # -- asking ----------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """How much there is."""
        row = self._db.execute("SELECT count(*), coalesce(sum(broken), 0) FROM files").fetchone()
        return Stats(row[0], self._meta("calls"), row[1], self._meta("newest"))

    def flaws(self) -> list[Flaw]:
        """What could not be used, at most 100 of a file."""
        return [Flaw(*row) for row in self._db.execute(_FLAWS)]

    def incidents(self, wanted: Filter | None = None, limit: int = -1) -> list[Incident]:
        """The incidents, the newest first."""
        where, values = self._where(wanted or Filter())
        sql = f"SELECT body FROM incidents WHERE {where} ORDER BY last DESC, id LIMIT ?"  # noqa: S608
        newest = self._meta("newest")
        found = (unpack_incident(row[0]) for row in self._db.execute(sql, (*values, limit)))
        return [_grown(incident, newest) for incident in found]

    def count(self, wanted: Filter | None = None) -> int:
        """How many there are."""
        where, values = self._where(wanted or Filter())
        sql = f"SELECT count(*) FROM incidents WHERE {where}"  # noqa: S608
        return int(self._db.execute(sql, values).fetchone()[0])

    def conversation(self, key: str) -> list[Call]:
        """Every call of a conversation, in no particular order."""
        return list(self._calls_of(_bytes(key)))

    def refusals(self, rejection: str = "", limit: int = 1000) -> list[Call]:
        """The newest calls that were refused for their sealed state, of one class or of any."""
        where = "rejection = ?" if rejection else "rejection IS NOT NULL AND rejection != ?"
        sql = f"{_SELECT} WHERE {where} ORDER BY at DESC LIMIT ?"
        return [self._call(row) for row in self._db.execute(sql, (rejection, limit))]

    def keys(self) -> Iterator[str]:
        """The key of every conversation, those with trouble first."""
        seen = set()
        for sql in (
            "SELECT DISTINCT conversation FROM incidents",
            "SELECT DISTINCT conversation FROM calls",
        ):
            for (key,) in self._db.execute(sql):
                if key not in seen:
                    seen.add(key)
                    yield key.hex()

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
        rows = self._db.execute(f"{_SELECT} WHERE conversation = ?", (key,)).fetchall()
        return map(self._call, rows)

    def _call(self, row: tuple[Any, ...]) -> Call:
        path, *entry = row
        return unpacked(cast("Entry", tuple(entry)), path)

    def _meta(self, name: str) -> int:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else 0


_FILES: Final = """
SELECT id, device, inode, head, size, changed, read, line, whole, broken - unfinished FROM files
"""
_FILE: Final = """
UPDATE files SET path = ?, device = ?, inode = ?, head = ?, size = ?, changed = ?, read = ?,
    line = ?, whole = ?, broken = ?, unfinished = ? WHERE id = ?
"""
_CALL: Final = "INSERT INTO calls VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INCIDENT: Final = "INSERT INTO incidents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TROUBLED: Final = "SELECT DISTINCT conversation FROM calls WHERE id > ? AND troubled"
_GOES_ON: Final = """
SELECT DISTINCT conversation FROM incidents
WHERE conversation IN (SELECT conversation FROM calls WHERE id > ?)
"""
_SELECT: Final = """
SELECT files.path, calls.line, at, trace, span, conversation, key, provider, model, troubled,
    rejection, body
FROM calls JOIN files ON files.id = calls.file
"""
_FLAWS: Final = """
SELECT path, flaws.line, what FROM flaws JOIN files ON files.id = file ORDER BY path, flaws.line
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


# ------------------------------------------------------------------------------ what is to be read


@dataclass(frozen=True, slots=True)
class _Plan:
    """A file and where reading goes on. `anew`: what was read of it is forgotten first."""

    path: Path
    begin: int
    line: int
    size: int
    ident: int = 0
    identity: tuple[int, int] = (0, 0)
    head: bytes = b""
    changed: int = 0
    whole: bool = False
    broken: int = 0
    anew: bool = False


def _plan(path: Path, known: dict[Any, tuple[Any, ...]]) -> _Plan:
    """What is to be read of a file; what is known of it is taken out of `known`."""
    try:
        stat = path.stat()
        with path.open("rb") as file:
            head = file.read(_HEAD)
        whole = files.packed(path)
    except OSError as error:
        raise SealedError(error.strerror or "cannot be read", where=str(path)) from None
    where = (stat.st_dev, stat.st_ino)
    keys = (k for k in known if k[:2] == where and _begins(head, k[2]))
    row = known.pop(next(keys, None), None)
    mark = _mark(head)
    fresh = _Plan(path, 0, 1, stat.st_size, 0, where, mark, stat.st_mtime_ns, whole, anew=True)
    if row is None:
        return fresh
    ident, *_, size, changed, begin, line, was_whole, broken = row
    if (stat.st_size, stat.st_mtime_ns) == (size, changed):
        return replace(fresh, begin=stat.st_size, ident=ident, anew=False)
    if was_whole or stat.st_size < size:
        return replace(fresh, ident=ident)
    return replace(fresh, begin=begin, line=line, ident=ident, broken=broken, anew=False)


def _mark(head: bytes) -> bytes:
    """What the first bytes of a file are known by: how many, and their hash, never they."""
    return len(head).to_bytes(2) + hashlib.sha256(head).digest()


def _begins(head: bytes, mark: bytes | None) -> bool:
    """Whether a file still begins as it did: one that grows may have had fewer first bytes."""
    if not mark:
        return False
    length = int.from_bytes(mark[:2])
    return 0 < length <= len(head) and _mark(head[:length]) == mark


# ------------------------------------------------------------------------------------ who reads it


def _read_here(piece: Piece | Flaw) -> Found:
    return files.read(piece) if isinstance(piece, Piece) else Found(flaws=[piece])


Reading = Callable[[Iterable[Piece | Flaw]], Iterator[Found]]


@contextmanager
def _readers(processes: int) -> Iterator[Reading]:
    """Who reads pieces: this process, or others and this one, which writes between two pieces."""
    if processes < 2:  # noqa: PLR2004 - this one
        yield lambda pieces: map(_read_here, pieces)
        return
    with ProcessPoolExecutor(processes - 1, mp_context=get_context("spawn")) as pool:
        yield lambda pieces: _shared(pool, processes - 1, pieces)


def _shared(
    pool: ProcessPoolExecutor, others: int, pieces: Iterable[Piece | Flaw]
) -> Iterator[Found]:
    """What the pieces hold, in their order: others read ahead, and what they cannot take, we do."""
    ahead: deque[Future[Found] | Found] = deque()
    for piece in pieces:
        busy = sum(isinstance(item, Future) and not item.done() for item in ahead)
        if isinstance(piece, Piece) and busy < _READING * others:
            ahead.append(pool.submit(files.read, piece))
        else:
            ahead.append(_read_here(piece))
        while ahead and (len(ahead) > 2 * _READING * others or _done(ahead[0])):
            yield _taken(ahead.popleft())
    while ahead:
        yield _taken(ahead.popleft())


def _done(item: Future[Found] | Found) -> bool:
    return not isinstance(item, Future) or item.done()


def _taken(item: Future[Found] | Found) -> Found:
    return item.result() if isinstance(item, Future) else item
