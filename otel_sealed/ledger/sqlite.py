"""The shared ledger in a SQLite file: for the processes of one machine, its owner's alone.

The file has mode 0600 and is no symbolic link. It holds packed turns (`packed`), each with a MAC
(`shared.trust`), the first 64 bits of the keys they are found by, and the key of the digests, which
the processes share that have none configured. It is in WAL mode, so that readers wait for nobody,
and is never synced: a machine that dies may lose it, and a damaged file is a fault like any other
(`shared`). It has to be on a local disk.

Bounds: `max_turns` turns, `max_bytes` of the file, and the age the ledger says, counted from the
time of the file system; what is too much goes oldest first, as many as one batch at a time. What is
freed is used again; the file does not shrink.

A file of format 1, whose records had no MAC, keeps its key and loses its turns when it is opened.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from otel_sealed.ledger.index import MAX_SAME_KEY
from otel_sealed.ledger.memory import MAX_BYTES, MAX_TURNS
from otel_sealed.ledger.packed import Corrupt, found_by
from otel_sealed.ledger.shared import BATCH, Row, SharedLedger, files
from otel_sealed.ledger.shared.trust import KEY_BYTES, MAX_RECORD, bare

__all__ = ["Look", "SqliteStore", "look", "opened"]

APPLICATION: Final = 0x0753EA1D
FORMAT: Final = 2
_UNSIGNED: Final = 1
_KEY_BYTES: Final = 32
_READ_WAIT_S: Final = 0.02
_WRITE_WAIT_S: Final = 2.0
_STEPS: Final = 10**6
"""Steps of SQLite's machine after which a statement is ended: none of ours takes a tenth of it."""
_UNPRUNED: Final = 16 * BATCH
"""As many turns above the bound are plausible: a batch of each of some processes that write."""
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS turns (number INTEGER PRIMARY KEY, packed BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS keys (
        key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS conversations (
        key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
    INSERT OR IGNORE INTO facts VALUES ('turns', 0);
"""
_NUMBERS: Final = """
    SELECT number FROM {table} WHERE key = ? AND number <= ? ORDER BY number DESC LIMIT ?
"""
_FIND_KEY: Final = _NUMBERS.format(table="keys")
_FIND_CONVERSATION: Final = _NUMBERS.format(table="conversations")
_UNSIGNED_GONE: Final = """
    DELETE FROM turns; DELETE FROM keys; DELETE FROM conversations;
    REPLACE INTO facts VALUES ('turns', 0)
"""
_BLOB: Final = """
    SELECT {before}CASE WHEN typeof({0}) = 'blob' AND length({0}) <= {most} THEN {0} ELSE 0 END
    FROM {table} WHERE {which}
"""
"""What is of another type, or larger than anything here, is not read: a number is there instead."""
_KEY: Final = _BLOB.format(
    "value", before="", most=KEY_BYTES.stop, table="facts", which="name = 'key'"
)
_TURNS: Final = partial(_BLOB.format, "packed", most=MAX_RECORD, table="turns")
_RECORD: Final = _TURNS(before="", which="number = ?")
_OLD: Final = _TURNS(before="number, ", which="number < ? ORDER BY number LIMIT ?")
_LATE: Final = _TURNS(before="number, ", which="number > ? ORDER BY number DESC LIMIT ?")
_HELD: Final = "SELECT value FROM facts WHERE name = 'turns'"


class SqliteStore:
    """A file of turns. One connection for reading, one for writing."""

    faults: tuple[type[Exception], ...] = (sqlite3.Error, OSError)
    far = False

    def __init__(self, path: Path, max_turns: int = MAX_TURNS, max_bytes: int = MAX_BYTES) -> None:
        """Nothing is opened yet."""
        self._path = path.absolute()
        self._max_turns = max_turns
        self._max_bytes = max_bytes
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._files = 0
        self._read_of = 0

    def open(self) -> object:
        """Make the file where there is none; the key in it. Raises sqlite3.Error or OSError."""
        writer = self._writing()
        ours = (secrets.token_bytes(_KEY_BYTES),)
        writer.execute("INSERT OR IGNORE INTO facts VALUES ('key', ?)", ours)
        return next(iter(_column(writer, _KEY)), 0)

    def numbers(self, keys: Sequence[bytes], latest: int) -> list[list[object]]:
        """For each key the numbers of turns that may hold it, at most the newest 16 to `latest`."""
        reader = self._reading()
        return [_column(reader, _FIND_KEY, _short(key), latest, MAX_SAME_KEY) for key in keys]

    def newest(self, conversation: bytes, latest: int) -> list[object]:
        """Numbers of turns that may be of a conversation, at most the newest 16 to `latest`."""
        which = (_short(conversation), latest, MAX_SAME_KEY)
        return _column(self._reading(), _FIND_CONVERSATION, *which)

    def records(self, numbers: Sequence[int]) -> list[object]:
        """What is kept under each of these numbers, or None."""
        reader = self._reading()
        found = [_column(reader, _RECORD, number) for number in numbers]
        return [next(iter(rows), None) for rows in found]

    def count(self) -> object:
        """Turns held."""
        return next(iter(_column(self._reading(), _HELD)), 0)

    def now_ns(self) -> int:
        """The time of the file system, as a change of the file has it."""
        self._writing()
        os.utime(self._path)
        return self._path.stat().st_mtime_ns

    def write(self, rows: Sequence[Row], oldest: int, latest: int) -> int:
        """Keep turns and prune; how many were pruned."""
        writer = self._writing()
        with _transaction(writer):
            turns = [(row.number, row.data) for row in rows]
            put = writer.executemany("INSERT OR IGNORE INTO turns VALUES (?, ?)", turns)
            held = self._held(writer, put.rowcount)
            keys = [(_short(key), row.number) for row in rows for key in row.keys]
            writer.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", keys)
            named = [(_short(row.conversation), row.number) for row in rows if row.conversation]
            writer.executemany("INSERT OR IGNORE INTO conversations VALUES (?, ?)", named)
            return self._prune(writer, held, oldest, latest)

    def forked(self) -> None:
        """Leave the connections to the parent, for good.

        Closing one would drop locks of the parent, and waits for ever where a thread was using it.
        """
        for connection in (self._reader, self._writer):
            if connection is not None:
                _left.append(connection)
                with contextlib.suppress(Exception):  # where there is no such thing
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._reader = self._writer = None

    def close(self) -> None:
        """Close both connections."""
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None

    # -- connections -----------------------------------------------------------------------------

    def _reading(self) -> sqlite3.Connection:
        if self._reader is None or self._read_of != self._files:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            self._read_of = self._files
            files.no_link(self._path)
            # by its name as a URI: a file that is not there is a fault, and nothing to be made
            reader = _connect(f"{self._path.as_uri()}?mode=rw", _READ_WAIT_S)
            try:
                reader.execute("PRAGMA query_only = ON")
                _ours(reader)
            except BaseException:
                reader.close()
                raise
            self._reader = reader
        return self._reader

    def _writing(self) -> sqlite3.Connection:
        """A connection to the file that has the name now, with its tables."""
        if self._writer is not None and self._file == files.identity(self._path):
            return self._writer
        if self._writer is not None:  # of a file that was deleted or replaced
            self._writer.close()
            self._writer = None
        made = files.private(self._path)
        writer = _connect(self._path.as_uri(), _WRITE_WAIT_S)
        try:
            _prepare(writer)
            files.same(self._path, made)
        except BaseException:
            writer.close()
            raise
        self._writer, self._file = writer, made
        self._files += 1
        return writer

    # -- bounds ----------------------------------------------------------------------------------

    def _prune(self, writer: sqlite3.Connection, held: int, oldest: int, latest: int) -> int:
        """Delete turns that are too many or too old, a batch at most."""
        over = min(held - self._max_turns, BATCH)
        if self._size(writer) > self._max_bytes:
            over = BATCH
        gone = writer.execute(_OLD, (oldest, BATCH)).fetchall()
        if over > len(gone):
            gone = writer.execute(_LATE, (latest, over)).fetchall()
            gone += writer.execute(_OLD, (latest + 1, over - len(gone))).fetchall()
        for number, data in gone:
            keys, conversation = _found_by(data)
            named = [(_short(key), number) for key in keys]
            writer.executemany("DELETE FROM keys WHERE key = ? AND number = ?", named)
            of = (_short(conversation), number)
            writer.execute("DELETE FROM conversations WHERE key = ? AND number = ?", of)
            writer.execute("DELETE FROM turns WHERE number = ?", (number,))
        writer.execute("REPLACE INTO facts VALUES ('turns', ?)", (held - len(gone),))
        return len(gone)

    def _held(self, writer: sqlite3.Connection, more: int) -> int:
        """Turns held after `more` came, counted anew where what the file says cannot be."""
        said = next(iter(_column(writer, _HELD)), None)
        if type(said) is int and 0 <= said <= self._max_turns + _UNPRUNED:
            return said + more
        return int(writer.execute("SELECT count(*) FROM turns").fetchone()[0])

    @staticmethod
    def _size(connection: sqlite3.Connection) -> int:
        """Bytes of the file that are in use."""
        asked = ("page_count", "freelist_count", "page_size")
        pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in asked)
        return int((pages - free) * size)


_left: list[sqlite3.Connection] = []
"""Connections of a parent process, kept so that nobody closes them."""


def opened(path: Path, max_turns: int, max_bytes: int, max_age_s: float) -> SharedLedger:
    """The ledger in a file. Never raises: where the file cannot be used, memory stands in."""
    store = SqliteStore(path, max_turns, max_bytes)
    return SharedLedger(
        store, name="sqlite", max_turns=max_turns, max_bytes=max_bytes, max_age_s=max_age_s
    )


class Look(NamedTuple):
    """A file as `doctor` sees it: how many turns it holds, and whether only its owner may read."""

    turns: int
    private: bool


def look(path: Path) -> Look:
    """Look at a ledger that is there. Raises sqlite3.Error or OSError."""
    files.no_link(path)
    private = not stat.S_IMODE(path.stat().st_mode) & 0o077
    store = SqliteStore(path)
    try:
        held = store.count()
        return Look(held if type(held) is int else 0, private)
    finally:
        store.close()


def _connect(uri: str, wait_s: float) -> sqlite3.Connection:
    # Used from several threads, one at a time: whoever asks holds a lock.
    connection = sqlite3.connect(
        uri, timeout=wait_s, isolation_level=None, check_same_thread=False, uri=True
    )
    connection.text_factory = bytes  # no text there is of use, and decoding some of it would raise
    connection.set_progress_handler(lambda: 1, _STEPS)
    return connection


def _ours(connection: sqlite3.Connection) -> int:
    """The format of a file. Raises sqlite3.DatabaseError where it is somebody else's.

    A view or a trigger in it would be code of whoever made it.
    """
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    other = "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')"
    code = connection.execute(other).fetchone()[0]
    if application != APPLICATION or version not in (FORMAT, _UNSIGNED) or code:
        raise sqlite3.DatabaseError("no ledger of this format")
    return int(version)


def _prepare(writer: sqlite3.Connection) -> None:
    """Make the tables. Raises sqlite3.DatabaseError where the file is somebody else's."""
    tables = writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    version = _ours(writer) if tables else FORMAT
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = OFF")
    if not tables:
        with _transaction(writer):
            for statement in _SCHEMA.split(";"):
                writer.execute(statement)
            writer.execute(f"PRAGMA application_id = {APPLICATION}")
            writer.execute(f"PRAGMA user_version = {FORMAT}")
    elif version == _UNSIGNED:
        with _transaction(writer):
            for statement in _UNSIGNED_GONE.split(";"):
                writer.execute(statement)
            writer.execute(f"PRAGMA user_version = {FORMAT}")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _column(connection: sqlite3.Connection, asked: str, *values: int) -> list[object]:
    """The first value of every row."""
    return [row[0] for row in connection.execute(asked, values).fetchall()]


def _found_by(record: object) -> tuple[list[bytes], bytes]:
    """What a record is found by, nothing where it is none: only to delete what belongs to it."""
    try:
        return found_by(bare(record)) if type(record) is bytes and record else ([], b"")
    except Corrupt:
        return [], b""


def _short(key: bytes) -> int:
    """The first 64 bits of a key, as SQLite has integers."""
    return int.from_bytes(key[:8].ljust(8, b"\0"), "big", signed=True)
