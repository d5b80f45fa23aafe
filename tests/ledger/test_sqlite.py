"""A ledger in a file: what is in it, who may read it, and what becomes of one that is unwell."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.ledger.packed import unpack
from otel_sealed.ledger.shared import BATCH, MAX_WAITING, Clock, Health, SharedLedger, writer
from otel_sealed.ledger.shared.trust import bare
from otel_sealed.ledger.sqlite import SqliteStore, look, opened
from tests.ledger.shared import digest, turn

HOUR = 3_600.0
CANNOT = "the shared ledger (sqlite) cannot be used: {}; the memory of this process stands in"
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def made() -> Iterator[list[SharedLedger]]:
    """Ledgers to be closed."""
    ledgers: list[SharedLedger] = []
    yield ledgers
    for ledger in ledgers:
        ledger.close()


def ledger_of(
    path: Path, made: list[SharedLedger], *, clock: Any = None, **bounds: Any
) -> SharedLedger:
    if clock is None:
        options = {"max_turns": 1_000, "max_bytes": 2**26, "max_age_s": HOUR, **bounds}
        made.append(opened(path, **options))
    else:
        made.append(SharedLedger(SqliteStore(path, **bounds), name="sqlite", clock=clock))
    return made[-1]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


# ----------------------------------------------------------------------------------- what is in it


def test_the_processes_of_a_file_share_its_key(path: Path, made: list[SharedLedger]) -> None:
    one, two = ledger_of(path, made), ledger_of(path, made)
    assert len(one.key) == 32
    assert one.key == two.key


def test_two_files_have_two_keys(tmp_path: Path, made: list[SharedLedger]) -> None:
    keys = {ledger_of(tmp_path / name, made).key for name in ("a", "b")}
    assert len(keys) == 2


def test_the_file_and_those_beside_it_are_its_owners_alone(
    path: Path, made: list[SharedLedger]
) -> None:
    """Also where it was made by somebody careless."""
    path.touch(0o644)
    path.chmod(0o644)
    ledger = ledger_of(path, made)
    ledger.record(turn("a"))
    assert ledger.flush()
    modes = {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm"), "0o600")


def test_what_stands_in_the_file_is_packed_turns(path: Path, made: list[SharedLedger]) -> None:
    ledger = ledger_of(path, made)
    recorded = ledger.record(turn("a"))
    assert ledger.flush()
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT number, packed FROM turns").fetchall()
    connection.close()
    assert [unpack(bare(data), number=number) for number, data in rows] == [recorded]


def test_a_file_outlives_its_processes(path: Path, made: list[SharedLedger]) -> None:
    one = ledger_of(path, made)
    recorded = one.record(turn("a"))
    one.close()
    two = ledger_of(path, made)
    assert two.get(recorded.number) == recorded
    assert two.record(turn("b", parent=recorded.number)).number > recorded.number


def test_what_waits_is_written_when_the_ledger_is_closed(
    path: Path, made: list[SharedLedger]
) -> None:
    ledger = ledger_of(path, made)
    for number in range(700):
        ledger.record(turn(str(number)))
    ledger.close()
    assert look(path) == (700, True)


# ------------------------------------------------------------------------------------------ bounds


def test_turns_are_bounded_and_the_oldest_go_first(path: Path, made: list[SharedLedger]) -> None:
    ledger = ledger_of(path, made, max_turns=50)
    numbers = [ledger.record(turn(str(n))).number for n in range(120)]
    assert ledger.flush()
    ledger.record(turn("last"))
    assert ledger.flush()
    other = ledger_of(path, made)
    assert len(other) == 50
    assert ledger.evicted == 71
    assert [other.get(number) is None for number in (numbers[70], numbers[71])] == [True, False]
    assert (other.lookup(digest("70")), other.lookup(digest("71"))) == ((), (numbers[71],))


def test_bytes_are_bounded(path: Path, made: list[SharedLedger]) -> None:
    """The pages in use; the file does not grow much beyond."""
    bound = 400_000
    ledger = ledger_of(path, made, max_bytes=bound)
    for n in range(4_000):
        ledger.record(turn(f"{n} a", f"{n} b"))
        if n % 250 == 249:
            assert ledger.flush()
    ledger.close()
    assert path.stat().st_size < 2 * bound
    held = look(path).turns
    assert 100 < held < 4_000
    assert ledger.evicted == 4_000 - held


def test_age_is_bounded(path: Path, made: list[SharedLedger]) -> None:
    ledger = ledger_of(path, made, max_age_s=-1.0)
    ledger.record(turn("a"))
    assert ledger.flush()
    ledger.record(turn("b"))
    assert ledger.flush()
    assert (look(path).turns, ledger.evicted) == (0, 2)


def test_nothing_of_a_turn_is_left_behind(path: Path, made: list[SharedLedger]) -> None:
    ledger = ledger_of(path, made, max_age_s=-1.0)
    ledger.record(turn("a", "b"))
    ledger.close()
    with sqlite3.connect(path) as connection:
        left = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in ("turns", "keys", "conversations")
        ]
    connection.close()
    assert left == [0, 0, 0]


def test_memory_of_the_numbers_is_bounded(path: Path, made: list[SharedLedger]) -> None:
    """What memory calls a turn goes on rising; what that means is kept for the newest only."""
    ledger = ledger_of(path, made, max_turns=10)
    for n in range(2_999):
        ledger.record(turn(str(n)))
    newest = ledger.record(turn("2999"))
    assert len(ledger._numbers) <= 1_064
    assert ledger.get(newest.number) == newest
    assert ledger.lookup(digest("2999")) == (newest.number,)


# ----------------------------------------------------------------------------------- what is unwell


def still_works(ledger: SharedLedger, name: str = "mine") -> None:
    """Memory stands in."""
    recorded = ledger.record(turn(name))
    assert ledger.get(recorded.number) == recorded
    assert ledger.lookup(digest(name)) == (recorded.number,)
    assert ledger.last(recorded.conversation) == recorded.number
    assert len(ledger) >= 1


@pytest.mark.parametrize("case", ["folder missing", "a folder", "no database", "another's"])
def test_a_file_that_cannot_be_used_costs_one_line(
    case: str, path: Path, made: list[SharedLedger], caplog: pytest.LogCaptureFixture
) -> None:
    """The application goes on, and the file is left as it was."""
    caplog.set_level(logging.WARNING, "otel_sealed")
    kind = "DatabaseError"
    if case == "folder missing":
        path, kind = path / "no" / "such.db", "FileNotFoundError"
    elif case == "a folder":
        path.mkdir()
        kind = "IsADirectoryError"
    elif case == "no database":
        path.write_bytes(b"This is the diary of somebody else. " * 100)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE diary (entry TEXT)")
        connection.close()
    before = path.read_bytes() if path.is_file() else b""
    ledger = ledger_of(path, made)
    assert ledger.key == b""
    still_works(ledger)
    still_works(ledger, "again")
    assert lines(caplog) == [CANNOT.format(kind)]
    assert ledger.failures >= 1
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_locked_file_never_waits_a_call(
    path: Path, made: list[SharedLedger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds it for ever; what was recorded arrives when it lets go."""
    monkeypatch.setattr("otel_sealed.ledger.sqlite._WRITE_WAIT_S", 0.01)
    monkeypatch.setattr(writer, "_REST_S", (0.01,))
    ledger = ledger_of(path, made)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    still_works(ledger)
    assert not ledger.flush(0.2)
    assert ledger.failures >= 1
    still_works(ledger, "again")
    holder.execute("ROLLBACK")
    holder.close()
    assert ledger.flush(5.0)
    assert look(path).turns == 2


def test_a_ledger_that_is_closed_while_it_writes_lets_the_write_end(
    path: Path, made: list[SharedLedger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close the connection of a thread that writes ends the process with a signal."""
    monkeypatch.setattr(writer, "STOP_S", 0.1)
    ledger = ledger_of(path, made)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    ledger.record(turn("a"))
    thread: Any = ledger._writer._thread
    ledger.close()
    assert thread.is_alive()
    holder.execute("ROLLBACK")
    holder.close()
    thread.join(20)
    assert look(path).turns == 1


def test_a_full_disk_costs_memory_of_other_processes_and_nothing_else(
    path: Path, made: list[SharedLedger], caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite's own word for it, from a file that may not grow."""
    caplog.set_level(logging.WARNING, "otel_sealed")
    ledger = ledger_of(path, made)
    ledger.record(turn("a"))
    assert ledger.flush()
    store: Any = ledger._store
    store._writer.execute("PRAGMA max_page_count = 1")
    for number in range(300):
        ledger.record(turn(str(number), "b", "c"))
    still_works(ledger)
    assert not ledger.flush(0.2)
    assert lines(caplog) == [CANNOT.format("OperationalError")]


def test_a_file_damaged_while_it_is_used_is_a_fault_like_any_other(
    path: Path, made: list[SharedLedger], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    one = ledger_of(path, made)
    numbers = [one.record(turn(str(number))).number for number in range(200)]
    one.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (size - 100))
    two = ledger_of(path, made)
    assert [two.get(number) for number in numbers[:3]] == [None] * 3
    assert two.lookup(digest("3")) == ()
    still_works(two)
    assert len(lines(caplog)) == 1


def test_a_damaged_turn_is_one_nobody_holds(path: Path, made: list[SharedLedger]) -> None:
    one = ledger_of(path, made)
    number = one.record(turn("a")).number
    one.close()
    with sqlite3.connect(path) as connection:
        (data,) = connection.execute("SELECT packed FROM turns").fetchone()
        connection.execute("UPDATE turns SET packed = ?", (data[:-9] + bytes(9),))
    connection.close()
    two = ledger_of(path, made)
    assert (two.get(number), two.corrupt, two.failures) == (None, 1, 0)


def test_a_file_that_was_deleted_is_made_anew(path: Path, made: list[SharedLedger]) -> None:
    ledger = ledger_of(path, made)
    ledger.record(turn("a"))
    assert ledger.flush()
    for file in path.parent.iterdir():
        file.unlink()
    ledger.record(turn("b"))
    assert ledger.flush()
    assert look(path) == (1, True)
    assert len(ledger_of(path, made)) == 1
    assert ledger.lookup(digest("b")) != ()


def test_a_store_that_is_unwell_rests_longer_each_time() -> None:
    now = [0.0]
    health = Health("x", lambda: now[0])
    rests = []
    for _ in range(6):
        health.failed(OSError("CANARY"))
        rests.append(health.rest())
        now[0] += health.rest()
        assert health.well()
    assert rests == [1, 2, 5, 15, 60, 60]
    health.worked()
    health.failed(OSError())
    assert (health.rest(), health.failures, health.well()) == (1, 7, False)


def test_no_more_than_so_many_turns_wait(path: Path, made: list[SharedLedger]) -> None:
    """The oldest are given up; memory has them still."""
    now = [0.0]
    ledger = ledger_of(path / "no" / "such.db", made, clock=lambda: now[0])
    for number in range(MAX_WAITING + 500):
        ledger.record(turn(str(number)))
    assert len(ledger._writer._turns) <= MAX_WAITING
    assert len(ledger) == MAX_WAITING + 500
    waiting = len(ledger._writer._turns)
    assert 500 - BATCH <= ledger.evicted <= MAX_WAITING + 500 - waiting


def test_the_error_is_told_by_its_kind_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    health = Health("x", lambda: 0.0)
    for _ in range(3):
        health.failed(OSError("CANARY"))
    (line,) = lines(caplog)
    assert "CANARY" not in line
    assert "OSError" in line


# ------------------------------------------------------------------------------------------ numbers


def test_numbers_rise_whatever_the_clock_does() -> None:
    now = [2_000_000_000 * 10**9]
    clock = Clock(lambda: now[0])
    one = clock.next()
    now[0] -= 10**15
    two = clock.next()
    clock.saw(two + (1 << 30))
    three = clock.next()
    assert one < two < two + (1 << 30) < three < 2**63
    assert Clock(lambda: 0).next() >= 0


def test_the_age_of_a_number_is_in_it() -> None:
    now = [2_000_000_000 * 10**9]
    clock = Clock(lambda: now[0])
    number = clock.next()
    assert clock.before(1.0) < number
    now[0] += 2 * 10**9
    assert clock.before(1.0) > number


# ------------------------------------------------------------------------------------------- forks


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_parent_and_child_go_on_with_one_file(path: Path, made: list[SharedLedger]) -> None:
    """Each with connections, a writer and numbers of its own; the child knows what came before."""
    ledger = ledger_of(path, made)
    before = ledger.record(turn("before"))
    assert ledger.flush()
    assert ledger.lookup(digest("before")) == (before.number,)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        status = 1
        try:
            assert ledger.get(before.number) == before
            mine = ledger.record(turn("child", parent=before.number))
            assert mine.number > before.number
            assert ledger.flush(10.0)
            assert ledger.failures == 0
            status = 0
        finally:
            os._exit(status)
    ledger.record(turn("parent", parent=before.number))
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.flush()
    assert len(ledger) == 3
    (found,) = ledger.lookup(digest("child"))
    told = ledger.get(found)
    assert told is not None
    assert told.parent == before.number


def test_many_processes_write_one_file(path: Path, made: list[SharedLedger]) -> None:
    """As many ledgers as that, each with a writer, at once."""
    ledgers = [ledger_of(path, made, max_turns=100_000) for _ in range(4)]

    def run(ledger: SharedLedger, name: int) -> None:
        for number in range(100):
            ledger.record(turn(f"{name} {number}"))

    threads = [threading.Thread(target=run, args=(x, n)) for n, x in enumerate(ledgers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ledger.flush(20.0) for ledger in ledgers)
    assert len(ledgers[0]) == 400
    assert [ledger.failures for ledger in ledgers] == [0] * 4
    assert all(len(ledgers[0].lookup(digest(f"{n} 99"))) == 1 for n in range(4))
