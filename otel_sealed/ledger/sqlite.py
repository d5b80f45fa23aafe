"""The shared ledger in a SQLite file: for the processes of one machine, its owner's alone.

The file has mode 0600 and holds packed turns (`packed`), the first 64 bits of the keys they are
found by, and the key of the digests, which the processes share that have none configured. It is in
WAL mode, so that readers wait for nobody, and is never synced: a machine that dies may lose it, and
a damaged file is a fault like any other (`shared`). It has to be on a local disk.

Bounds: `max_turns` turns, `max_bytes` of the file, and the age the ledger says; what is beyond goes
oldest first, as many as one batch at a time. What is freed is used again; the file does not shrink.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from otel_sealed.ledger.index import MAX_SAME_KEY
from otel_sealed.ledger.memory import MAX_BYTES, MAX_TURNS
from otel_sealed.ledger.packed import Corrupt, found_by
from otel_sealed.ledger.shared import BATCH, Row, SharedLedger

__all__ = ["Look", "SqliteStore", "look", "opened"]

APPLICATION: Final = 0x0753EA1D
FORMAT: Final = 1
_KEY_BYTES: Final = 32
_READ_WAIT_S: Final = 0.02
_WRITE_WAIT_S: Final = 2.0
_PRIVATE: Final = 0o600
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
_FOUND: Final = """
    SELECT number, packed FROM {table} JOIN turns USING (number)
    WHERE key = ? ORDER BY number DESC LIMIT ?
"""
_FIND_KEY: Final = _FOUND.format(table="keys")
_FIND_CONVERSATION: Final = _FOUND.format(table="conversations")


class SqliteStore:
    """A file of turns. One connection for reading, one for writing."""

    faults: tuple[type[Exception], ...] = (sqlite3.Error, OSError)

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

    def open(self) -> bytes:
        """Make the file where there is none; the key in it. Raises sqlite3.Error or OSError."""
        writer = self._writing()
        ours = (secrets.token_bytes(_KEY_BYTES),)
        writer.execute("INSERT OR IGNORE INTO facts VALUES ('key', ?)", ours)
        (key,) = writer.execute("SELECT value FROM facts WHERE name = 'key'").fetchone()
        return bytes(key)

    def lookup(self, key: bytes) -> list[int]:
        """Numbers of the turns that hold `key`, ascending, at most the newest 16."""
        rows = self._reading().execute(_FIND_KEY, (_short(key), MAX_SAME_KEY)).fetchall()
        return [number for number, data in reversed(rows) if key in _found_by(data)[0]]

    def get(self, number: int) -> bytes | None:
        """A packed turn."""
        found = self._reading().execute("SELECT packed FROM turns WHERE number = ?", (number,))
        row = found.fetchone()
        return None if row is None else bytes(row[0])

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""
        asked = (_short(conversation), MAX_SAME_KEY)
        for number, data in self._reading().execute(_FIND_CONVERSATION, asked).fetchall():
            if _found_by(data)[1] == conversation:
                return int(number)
        return -1

    def count(self) -> int:
        """Turns held."""
        return int(self._fact(self._reading(), "turns"))

    def write(self, rows: Sequence[Row], oldest: int) -> int:
        """Keep turns and prune; how many were pruned."""
        writer = self._writing()
        with _transaction(writer):
            turns = [(row.number, row.data) for row in rows]
            put = writer.executemany("INSERT OR IGNORE INTO turns VALUES (?, ?)", turns)
            self._count(writer, put.rowcount)
            keys = [(_short(key), row.number) for row in rows for key in row.keys]
            writer.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", keys)
            named = [(_short(row.conversation), row.number) for row in rows if row.conversation]
            writer.executemany("INSERT OR IGNORE INTO conversations VALUES (?, ?)", named)
            return self._prune(writer, oldest)

    def forked(self) -> None:
        """Leave the connections to the parent: closing them here would drop its locks."""
        _left.extend(c for c in (self._reader, self._writer) if c is not None)
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
            # by its name as a URI: a file that is not there is a fault, and nothing to be made
            reader = _connect(f"{self._path.as_uri()}?mode=rw", _READ_WAIT_S)
            reader.execute("PRAGMA query_only = ON")
            self._reader = reader
        return self._reader

    def _writing(self) -> sqlite3.Connection:
        """A connection to the file that has the name now, with its tables."""
        if self._writer is not None and self._file == _identity(self._path):
            return self._writer
        if self._writer is not None:  # of a file that was deleted or replaced
            self._writer.close()
            self._writer = None
        _private(self._path)
        writer = _connect(self._path.as_uri(), _WRITE_WAIT_S)
        try:
            _prepare(writer)
        except BaseException:
            writer.close()
            raise
        self._writer, self._file = writer, _identity(self._path)
        self._files += 1
        return writer

    # -- bounds ----------------------------------------------------------------------------------

    def _prune(self, writer: sqlite3.Connection, oldest: int) -> int:
        """Delete the oldest turns beyond a bound, a batch at most."""
        over = int(self._fact(writer, "turns")) - self._max_turns
        if self._size(writer) > self._max_bytes:
            over = BATCH
        found = "SELECT number, packed FROM turns WHERE number < ? ORDER BY number LIMIT ?"
        old = writer.execute(found, (oldest, BATCH)).fetchall()
        if over > len(old):
            found = "SELECT number, packed FROM turns ORDER BY number LIMIT ?"
            old = writer.execute(found, (min(over, BATCH),)).fetchall()
        for number, data in old:
            keys, conversation = _found_by(data)
            gone = [(_short(key), number) for key in keys]
            writer.executemany("DELETE FROM keys WHERE key = ? AND number = ?", gone)
            named = (_short(conversation), number)
            writer.execute("DELETE FROM conversations WHERE key = ? AND number = ?", named)
            writer.execute("DELETE FROM turns WHERE number = ?", (number,))
        self._count(writer, -len(old))
        return len(old)

    @staticmethod
    def _size(connection: sqlite3.Connection) -> int:
        """Bytes of the file that are in use."""
        asked = ("page_count", "freelist_count", "page_size")
        pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in asked)
        return int((pages - free) * size)

    @staticmethod
    def _fact(connection: sqlite3.Connection, name: str) -> int:
        row = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])

    @staticmethod
    def _count(connection: sqlite3.Connection, more: int) -> None:
        connection.execute("UPDATE facts SET value = value + ? WHERE name = 'turns'", (more,))


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
    private = not stat.S_IMODE(path.stat().st_mode) & 0o077
    store = SqliteStore(path)
    try:
        return Look(store.count(), private)
    finally:
        store.close()


def _connect(uri: str, wait_s: float) -> sqlite3.Connection:
    # Used from several threads, one at a time: whoever asks holds a lock.
    return sqlite3.connect(
        uri, timeout=wait_s, isolation_level=None, check_same_thread=False, uri=True
    )


def _prepare(writer: sqlite3.Connection) -> None:
    """Make the tables. Raises sqlite3.DatabaseError where the file is somebody else's."""
    application = writer.execute("PRAGMA application_id").fetchone()[0]
    tables = writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    version = writer.execute("PRAGMA user_version").fetchone()[0]
    if tables and (application, version) != (APPLICATION, FORMAT):
        raise sqlite3.DatabaseError("no ledger of this format")
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = OFF")
    if not tables:
        with _transaction(writer):
            for statement in _SCHEMA.split(";"):
                writer.execute(statement)
            writer.execute(f"PRAGMA application_id = {APPLICATION}")
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


def _private(path: Path) -> None:
    """Make the file for its owner alone, or make it so: it holds a key. Raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, _PRIVATE)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(descriptor, _PRIVATE)
    finally:
        os.close(descriptor)


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _found_by(data: bytes) -> tuple[list[bytes], bytes]:
    try:
        return found_by(data)
    except Corrupt:
        return [], b""


def _short(key: bytes) -> int:
    """The first 64 bits of a key, as SQLite has integers."""
    return int.from_bytes(key[:8].ljust(8, b"\0"), "big", signed=True)
