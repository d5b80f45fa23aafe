"""The tables of the index, and opening it: a file in the folder of the record, or a passing one.

It holds nothing that the record does not, and may be deleted at any time. It is not trusted: a
repository may bring one along. An index of another version, with other tables than ours or with any
more, or that was made as another file (it knows its device and inode, which no copy has) is made
anew; so is one whose rows turn out to be none of ours when they are read (`Corrupt`).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from otel_sealed.errors import SealedError

NAME: Final = "triage.sqlite"
VERSION: Final = 5

_TABLES: Final = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, device INTEGER, inode INTEGER, head BLOB,
    size INTEGER, changed INTEGER, read INTEGER, line INTEGER, whole INTEGER, broken INTEGER,
    unfinished INTEGER, refused INTEGER
);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER, at INTEGER, trace BLOB, span BLOB,
    conversation BLOB, key TEXT, provider TEXT, model TEXT, troubled INTEGER, rejection TEXT,
    failed TEXT, unread TEXT, short INTEGER, body TEXT
);
CREATE TABLE incidents (
    id TEXT, conversation BLOB, first INTEGER, last INTEGER, provider TEXT, model TEXT, fates TEXT,
    known INTEGER, body TEXT
);
CREATE TABLE unjudged (
    file INTEGER, value BLOB, rule TEXT, PRIMARY KEY (file, value, rule)
) WITHOUT ROWID;
CREATE TABLE unobserved (
    file INTEGER, client TEXT, host TEXT, start INTEGER, requests INTEGER,
    PRIMARY KEY (file, client, host, start)
) WITHOUT ROWID;
CREATE TABLE flaws (file INTEGER, line INTEGER, what TEXT, refused INTEGER);
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
_PRAGMAS: Final = (
    "page_size = 16384",  # a call has some 2 KB: smaller pages would be half empty
    "synchronous = OFF",
    "journal_mode = TRUNCATE",
    "cache_size = -65536",
)
INDEXES: Final = {
    "calls_conversation": "calls (conversation)",
    "calls_span": "calls (trace, span)",
    "calls_rejection": "calls (rejection, at) WHERE rejection IS NOT NULL",
    "calls_failed": "calls (failed, trace, span) WHERE failed IS NOT NULL",
    "calls_unread": "calls (unread, trace, span) WHERE unread IS NOT NULL",
    "calls_short": "calls (trace, span) WHERE short",
    "calls_file": "calls (file)",
    "incidents_last": "incidents (known, last)",
    "incidents_conversation": "incidents (conversation)",
}


class Corrupt(SealedError):  # noqa: N818 - a state of the index, not a fault of ours
    """A row of the index is none of ours: it is to be made anew."""

    def __init__(self) -> None:
        """Says nothing of what it holds."""
        super().__init__("the index of the record is damaged", remedy="delete triage.sqlite in it")


def connect(path: Path | None) -> sqlite3.Connection:
    """An index that is ready; None, or a place that cannot be written to: one that goes with us."""
    if path is not None:
        with suppress(OSError, sqlite3.Error):
            return _at(path)
    return _made(sqlite3.connect(""))


def _at(path: Path) -> sqlite3.Connection:
    here = _opened(path)
    database = sqlite3.connect(path, timeout=30.0)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == VERSION and _ours(database, here):
            return _tuned(database)
        fresh = version == 0 and not database.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:  # in use, or not ours to write
        database.close()
        raise
    except sqlite3.DatabaseError:
        fresh = False
    if fresh:
        return _made(database, here)
    database.close()
    path.unlink()
    here = _opened(path)
    return _made(sqlite3.connect(path, timeout=30.0), here)


def _opened(path: Path) -> tuple[int, int]:
    """Device and inode of the file, made where there is none; a link in its place is an error."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    file = os.open(path, flags, 0o600)
    try:
        found = os.fstat(file)
    finally:
        os.close(file)
    return found.st_dev, found.st_ino


def _ours(database: sqlite3.Connection, here: tuple[int, int]) -> bool:
    """Whether it has our tables and nothing else, and was made as this very file."""
    schema = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    known = _KNOWN | _INDEXES
    if not _KNOWN.items() <= schema.items() or not schema.items() <= known.items():
        return False
    made = dict(database.execute("SELECT name, value FROM meta WHERE name IN ('device', 'inode')"))
    return (made.get("device"), made.get("inode")) == (str(here[0]), str(here[1]))


def _made(database: sqlite3.Connection, here: tuple[int, int] = (0, 0)) -> sqlite3.Connection:
    _tuned(database)
    database.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version = {VERSION};COMMIT;")
    known = zip(("device", "inode"), map(str, here), strict=True)
    database.executemany("INSERT INTO meta VALUES (?, ?)", known)
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


def _declared() -> dict[str, str]:
    database = sqlite3.connect(":memory:")
    try:
        database.executescript(_TABLES)
        return dict(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    finally:
        database.close()


_KNOWN: Final = _declared()
_INDEXES: Final = {name: f"CREATE INDEX {name} ON {what}" for name, what in INDEXES.items()}
