"""Ledgers whose store somebody writes to who has no key: nobody is accused, nothing stops.

One process receives, the store is changed, another process continues what the first one received.
Whatever became of the store, what the second one says is what it would have said, or that it does
not know; and what it received itself it goes on to judge.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import redis as client

from otel_sealed.ledger import redis, sqlite
from otel_sealed.ledger.shared import Clock, SharedLedger
from otel_sealed.ledger.shared.trust import MAC
from tests.ledger.calls import KNOWN, MAY, begin, go_on, tracker
from tests.ledger.redis_server import redis_server

BOUNDS = (1_000, 2**26, 86_400.0)
PREFIX = "otel_sealed:1:"
NUMBERS = (2**63 - 1, 2**62, 2**47, 0, -1, -(2**63))
VALUES = (
    *NUMBERS,
    None,
    1.5,
    1e308,
    "",
    "zz",
    "ffffffffffffffff",
    "7fffffffffffffff",
    "9" * 400,
    b"",
    b"\x01",
    b"\x81",
    b"\xff" * 300,
    bytes(64),
)


class Pair:
    """Two processes of a store, and a way to it that is nobody's of theirs."""

    def __init__(self, here: SharedLedger, there: SharedLedger) -> None:
        self.ledgers = here, there
        self.here, self.there = (tracker(ledger) for ledger in self.ledgers)
        for kind in KNOWN:
            begin(self.here, f"{kind}1")
            begin(self.here, f"{kind}2")
        assert here.flush(10.0)

    def still_well(self, *, failures: bool = False) -> None:
        """Nobody is accused, and nothing stopped."""
        for kind, may in MAY.items():
            assert go_on(self.there, f"{kind}1", kind) in may
            assert go_on(self.here, f"{kind}2", kind) == KNOWN[kind]
            begin(self.there, f"{kind} later")
            assert go_on(self.there, f"{kind} later", kind) == KNOWN[kind]
        for ledger in self.ledgers:
            assert len(ledger) > 0
            if not failures:
                assert ledger.flush(10.0)
                assert (ledger.failures, ledger._writer.given_up) == (0, 0)
            assert ledger._clock.next() <= Clock().latest()

    def all_known(self) -> None:
        """What one process received is known in the other."""
        for kind, verdict in KNOWN.items():
            assert go_on(self.there, f"{kind}1", kind) == verdict


# ------------------------------------------------------------------------------------------ SQLite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def pair(path: Path) -> Iterator[Pair]:
    ledgers = sqlite.opened(path, *BOUNDS), sqlite.opened(path, *BOUNDS)
    yield Pair(*ledgers)
    for ledger in ledgers:
        ledger.close()


def change(path: Path, *statements: str | tuple[str, tuple[Any, ...]]) -> None:
    """What another program does to the file."""
    connection = sqlite3.connect(path, timeout=10.0)
    for statement in statements:
        asked = (statement,) if isinstance(statement, str) else statement
        with suppress(sqlite3.IntegrityError):
            connection.execute(*asked)
    connection.commit()
    connection.close()


def rows(path: Path, asked: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path, timeout=10.0)
    found = connection.execute(asked).fetchall()
    connection.close()
    return found


COLUMNS = (
    ("turns", "number"),
    ("turns", "packed"),
    ("keys", "key"),
    ("keys", "number"),
    ("conversations", "key"),
    ("conversations", "number"),
    ("facts", "name"),
    ("facts", "value"),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_any_value_of_any_type_in_a_file_accuses_nobody(
    path: Path, pair: Pair, table: str, column: str, value: object
) -> None:
    change(path, (f"UPDATE OR IGNORE {table} SET {column} = ?", (value,)))  # noqa: S608
    pair.still_well()


@pytest.mark.parametrize("value", NUMBERS)
def test_entries_of_a_file_that_name_numbers_of_nobody_change_nothing(
    path: Path, pair: Pair, value: int
) -> None:
    """Also where a genuine record is there."""
    for table in ("keys", "conversations"):
        change(path, f"INSERT OR IGNORE INTO {table} SELECT key, {value} FROM {table}")  # noqa: S608
    change(path, f"INSERT OR IGNORE INTO turns SELECT {value}, packed FROM turns LIMIT 1")  # noqa: S608
    pair.still_well()
    pair.all_known()


def test_entries_of_a_file_that_name_every_genuine_record_change_nothing(
    path: Path, pair: Pair
) -> None:
    for table in ("keys", "conversations"):
        change(
            path,
            f"INSERT OR IGNORE INTO {table}"  # noqa: S608
            f" SELECT t.key, turns.number FROM {table} t, turns",
        )
    pair.still_well()
    pair.all_known()


def test_records_of_a_file_that_change_places_accuse_nobody(path: Path, pair: Pair) -> None:
    found = rows(path, "SELECT number, packed FROM turns ORDER BY number")
    moved = [data for _, data in found[1:]] + [found[0][1]]
    for (number, _), data in zip(found, moved, strict=True):
        change(path, ("UPDATE turns SET packed = ? WHERE number = ?", (data, number)))
    pair.still_well()
    assert pair.ledgers[1].corrupt > 0


def test_records_of_a_file_under_new_numbers_are_nobodys(path: Path, pair: Pair) -> None:
    for table in ("turns", "keys", "conversations"):
        change(path, f"UPDATE {table} SET number = number + 65536")  # noqa: S608
    pair.still_well()


@pytest.mark.parametrize("table", ["turns", "keys", "conversations", "facts"])
def test_any_row_of_a_file_may_go(path: Path, pair: Pair, table: str) -> None:
    """One after the other, each with a process that has read nothing yet; then all."""
    column = "name" if table == "facts" else "number, key" if table != "turns" else "number"
    which = " AND ".join(f"{name} = ?" for name in column.split(", "))
    for found in rows(path, f"SELECT {column} FROM {table}"):  # noqa: S608
        kept = rows(path, f"SELECT * FROM {table}")  # noqa: S608
        change(path, (f"DELETE FROM {table} WHERE {which}", found))  # noqa: S608
        there = sqlite.opened(path, *BOUNDS)
        for kind, may in MAY.items():
            assert go_on(tracker(there), f"{kind}1", kind) in may
        assert there.failures == 0
        there.close()
        marks = ", ".join("?" * len(kept[0]))
        change(path, *((f"REPLACE INTO {table} VALUES ({marks})", row) for row in kept))  # noqa: S608
    change(path, f"DELETE FROM {table}")  # noqa: S608
    pair.still_well()


def test_an_older_state_of_a_file_accuses_nobody(path: Path, pair: Pair) -> None:
    tables = ("turns", "keys", "conversations", "facts")
    older = {table: rows(path, f"SELECT * FROM {table}") for table in tables}  # noqa: S608
    for kind in KNOWN:
        begin(pair.here, f"{kind}3")
    assert pair.ledgers[0].flush()
    for table, kept in older.items():
        marks = ", ".join("?" * len(kept[0]))
        change(path, f"DELETE FROM {table}")  # noqa: S608
        change(path, *((f"INSERT INTO {table} VALUES ({marks})", row) for row in kept))  # noqa: S608
    pair.still_well()
    for kind, may in MAY.items():
        assert go_on(pair.there, f"{kind}3", kind) in may


@pytest.mark.parametrize("place", range(13))
def test_a_changed_bit_accuses_nobody_whatever_the_checksum_says(
    path: Path, pair: Pair, place: int
) -> None:
    """In each of thirteen parts of every record."""
    for number, data in rows(path, "SELECT number, packed FROM turns"):
        changed = bytearray(data)
        for at in range(place, len(data) - MAC - 4, 13):
            changed[at] ^= 1
        body = bytes(changed[: -MAC - 4])
        forged = body + crc32(body).to_bytes(4, "little") + data[-MAC:]
        change(path, ("UPDATE turns SET packed = ? WHERE number = ?", (forged, number)))
    pair.still_well()
    assert pair.ledgers[1].corrupt > 0


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW x AS SELECT 1",
        "CREATE TRIGGER x AFTER INSERT ON turns BEGIN DELETE FROM turns; END",
    ],
)
def test_a_file_with_code_of_others_is_not_used(path: Path, pair: Pair, made: str) -> None:
    change(path, made)
    fresh = sqlite.opened(path, *BOUNDS)
    assert go_on(tracker(fresh), "faithful1", "faithful") == "unverifiable"
    assert fresh.failures > 0
    fresh.close()
    assert len(pair.ledgers[0]) > 0


def test_a_statement_that_does_not_end_is_ended(path: Path, pair: Pair) -> None:
    """A view in the place of a table, made while the file is in use."""
    endless = "WITH RECURSIVE n(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM n)"
    view = f"CREATE VIEW keys AS {endless} SELECT key, -key number FROM n"  # noqa: S608
    change(path, "DROP TABLE keys", view)
    pair.still_well(failures=True)


@pytest.mark.parametrize("size", [0, 1, 100, 4_096, 5_000])
def test_a_file_cut_off_while_it_is_used_accuses_nobody(path: Path, pair: Pair, size: int) -> None:
    for ledger in pair.ledgers:
        assert len(ledger) == 4
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.truncate(size)
    pair.still_well(failures=True)


# ------------------------------------------------------------------------------------------- Redis


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture
def server(served: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(redis, "_WAIT_S", 5.0)  # where it is Python that answers
    return served


@pytest.fixture
def far(server: str, tenant: Any) -> Iterator[Pair]:
    tenant.flushall()
    with ExitStack() as stack:
        ledgers = [redis.opened(server, *BOUNDS) for _ in range(2)]
        for ledger in ledgers:
            stack.callback(ledger.close)
        yield Pair(*ledgers)


@pytest.fixture
def tenant(server: str) -> Iterator[Any]:
    """Somebody else who may write that server."""
    other = client.Redis.from_url(server)
    yield other
    other.close()


KINDS = ("t", "k", "c", "all")
MEMBERS = (
    b"ffffffffffffffff",
    b"7fffffffffffffff",
    b"8000000000000000",
    b"0000000000000000",
    b"FFFFFFFFFFFFFFFF",
    b"zz",
    b"",
    b"0x00000000000001",
    b"0000_0000_0000_1",
    b" 000000000000001",
    b"-000000000000001",
    b"f" * 400,
    b"\xff" * 16,
    b"\0" * 16,
)


def names(tenant: Any, kind: str) -> list[bytes]:
    """The keys of a kind, of which there are some."""
    found = sorted(tenant.scan_iter(f"{PREFIX}{kind}" + ("" if kind == "all" else ":*")))
    assert found
    return found


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_member_of_any_set_accuses_nobody(
    tenant: Any, far: Pair, kind: str, member: bytes
) -> None:
    for name in names(tenant, kind):
        tenant.zadd(name, {member: 0})
    far.still_well()
    far.all_known()


OTHERS: dict[str, Callable[[Any, bytes], object]] = {
    "a list": lambda tenant, name: tenant.rpush(name, "x"),
    "a hash": lambda tenant, name: tenant.hset(name, "x", "y"),
    "a set": lambda tenant, name: tenant.sadd(name, "0" * 16),
    "a sorted set": lambda tenant, name: tenant.zadd(name, {"0" * 16: 1}),
    "scores": lambda tenant, name: tenant.zadd(name, {"x": float("inf"), "y": float("-inf")}),
    "a text": lambda tenant, name: tenant.set(name, "zz"),
    "a number": lambda tenant, name: tenant.set(name, 2**63 - 1),
    "nothing": lambda tenant, name: tenant.set(name, b""),
    "an old record": lambda tenant, name: tenant.set(name, b"\x01" * 300),
    "much": lambda tenant, name: tenant.set(name, b"\x81" * 2**20),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_any_type_accuses_nobody(tenant: Any, far: Pair, kind: str, other: str) -> None:
    """And writing replaces it."""
    for name in names(tenant, kind):
        tenant.delete(name)
        OTHERS[other](tenant, name)
    far.still_well()
    for outcome in KNOWN:
        begin(far.here, f"{outcome}1")
    assert far.ledgers[0].flush(10.0)
    far.all_known()


def test_values_of_a_server_that_change_places_accuse_nobody(tenant: Any, far: Pair) -> None:
    found = names(tenant, "t")
    values = tenant.mget(found)
    tenant.mset(dict(zip(found, [*values[1:], values[0]], strict=True)))
    far.still_well()
    assert far.ledgers[1].corrupt > 0


def test_every_number_in_every_set_changes_nothing(tenant: Any, far: Pair) -> None:
    members = [name.removeprefix(f"{PREFIX}t:".encode()) for name in names(tenant, "t")]
    for name, member in itertools.product((*names(tenant, "k"), *names(tenant, "c")), members):
        tenant.zadd(name, {member: 0})
    far.still_well()
    far.all_known()


def test_any_key_of_a_server_may_go(tenant: Any, far: Pair, server: str) -> None:
    """One after the other, each with a process that has read nothing yet; then all."""
    for name in [name for kind in KINDS for name in names(tenant, kind)]:
        kept = tenant.dump(name)
        tenant.delete(name)
        there = redis.opened(server, *BOUNDS)
        for kind, may in MAY.items():
            assert go_on(tracker(there), f"{kind}1", kind) in may
        assert there.failures == 0
        there.close()
        tenant.restore(name, 0, kept, replace=True)
    tenant.flushall()
    far.still_well()


@pytest.mark.parametrize("place", range(13))
def test_a_changed_bit_of_a_value_accuses_nobody(tenant: Any, far: Pair, place: int) -> None:
    for name in names(tenant, "t"):
        data = bytearray(tenant.get(name))
        for at in range(place, len(data) - MAC - 4, 13):
            data[at] ^= 1
        body = bytes(data[: -MAC - 4])
        tenant.set(name, body + crc32(body).to_bytes(4, "little") + data[-MAC:])
    far.still_well()
    assert far.ledgers[1].corrupt > 0
