"""The tables of the index, and opening it: a file beside the record, or one that leaves no trace.

It holds nothing that the record does not, and may be deleted at any time. An index of another
version, or one that was broken, is made anew.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = "triage.sqlite"
VERSION: Final = 3

_TABLES: Final = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, device INTEGER, inode INTEGER, head BLOB,
    size INTEGER, changed INTEGER, read INTEGER, line INTEGER, whole INTEGER, broken INTEGER,
    unfinished INTEGER
);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER, at INTEGER, trace BLOB, span BLOB,
    conversation BLOB, key TEXT, provider TEXT, model TEXT, troubled INTEGER, rejection TEXT,
    body TEXT
);
CREATE TABLE incidents (
    id TEXT, conversation BLOB, first INTEGER, last INTEGER, provider TEXT, model TEXT, fates TEXT,
    known INTEGER, body TEXT
);
CREATE TABLE flaws (file INTEGER, line INTEGER, what TEXT);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
"""
_PRAGMAS: Final = (
    "page_size = 16384",  # a call has some 2 KB: smaller pages would be half empty
    "synchronous = OFF",
    "journal_mode = TRUNCATE",
    "cache_size = -65536",
)
INDEXES: Final = {
    "calls_conversation": "calls (conversation)",
    "calls_trace": "calls (trace)",
    "calls_rejection": "calls (rejection, at) WHERE rejection IS NOT NULL",
    "calls_file": "calls (file)",
    "incidents_last": "incidents (known, last)",
    "incidents_conversation": "incidents (conversation)",
}


def connect(path: Path | None) -> sqlite3.Connection:
    """An index that is ready; None, or a place that cannot be written to: one that goes with us."""
    if path is not None:
        with suppress(OSError, sqlite3.Error):
            return _at(path)
    return _made(sqlite3.connect(""))


def _at(path: Path) -> sqlite3.Connection:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    os.close(os.open(path, flags, 0o600))
    database = sqlite3.connect(path, timeout=30.0)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            database.execute("SELECT count(*) FROM files").fetchone()
            return _tuned(database)
    except sqlite3.OperationalError:  # in use, or not ours to write
        database.close()
        raise
    except sqlite3.DatabaseError:
        version = -1
    if version == 0:
        return _made(database)
    database.close()
    path.unlink()
    return _at(path)


def _made(database: sqlite3.Connection) -> sqlite3.Connection:
    _tuned(database)
    database.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version = {VERSION};COMMIT;")
    return database


def _tuned(database: sqlite3.Connection) -> sqlite3.Connection:
    """A crash of the machine may cost the index, which is made anew; it need not wait for disks."""
    database.isolation_level = None
    for pragma in _PRAGMAS:
        database.execute(f"PRAGMA {pragma}")
    return database


def index(database: sqlite3.Connection) -> None:
    """Make the indexes that are missing: after the first filling, since it is faster then."""
    for name, what in INDEXES.items():
        database.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {what}")
