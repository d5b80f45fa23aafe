"""Forks of a process with a shared ledger: the child has everything of its own, and never waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.ledger import redis, sqlite
from otel_sealed.ledger.shared import SharedLedger
from tests.ledger.redis_server import redis_server
from tests.ledger.shared import KEY, digest, turn

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
HANGS_S = 20
"""A child that waits for what never comes is ended by then, and fails the test."""
BOUNDS = (1_000, 2**26, 3_600.0)


@pytest.fixture(params=["sqlite", "redis"])
def ledger(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SharedLedger]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            made = sqlite.opened(tmp_path / "ledger.db", *BOUNDS)
        else:
            monkeypatch.setattr(redis, "_WAIT_S", 5.0)
            made = redis.opened(stack.enter_context(redis_server()), *BOUNDS)
        made.keyed(KEY)
        yield made
        made.close()


def child(work: Callable[[], object]) -> int:
    """The status of a child that does `work`."""
    forked = os.fork()
    if forked == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANGS_S)
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(forked, 0)[1]


def connections(ledger: SharedLedger) -> list[object]:
    store: Any = ledger._store
    names = ("_client", "_reader", "_writer")
    return [found for name in names if (found := getattr(store, name, None)) is not None]


USES: dict[str, Callable[[SharedLedger], object]] = {
    "len": len,
    "lookup": lambda ledger: ledger.lookup(digest("a")),
    "get": lambda ledger: ledger.get(5),
    "last": lambda ledger: ledger.last(digest("elsewhere")),
    "expect": lambda ledger: ledger.expect([digest("a")]),
    "record": lambda ledger: (ledger.record(turn("b")), ledger.flush(10.0)),
}


@pytest.mark.parametrize("use", USES)
def test_a_child_never_uses_a_connection_of_its_parent(ledger: SharedLedger, use: str) -> None:
    """Whatever it does first."""
    ledger.record(turn("a"))
    assert ledger.flush(10.0)
    assert len(ledger) == 1
    parents = connections(ledger)

    def work() -> None:
        USES[use](ledger)
        assert not any(mine is theirs for mine in connections(ledger) for theirs in parents)
        assert ledger.failures == 0

    assert child(work) == 0
    assert ledger.flush(10.0)
    assert (len(ledger), ledger.failures) == (2 if use == "record" else 1, 0)


def test_a_child_of_a_thread_knows_what_its_parent_recorded(ledger: SharedLedger) -> None:
    recorded = ledger.record(turn("a"))
    assert ledger.flush(10.0)
    ended: list[int] = []

    def work() -> None:
        assert ledger.get(recorded.number) == recorded
        assert ledger.record(turn("b", parent=recorded.number)).number > recorded.number
        assert ledger.flush(10.0)

    thread = threading.Thread(target=lambda: ended.append(child(work)))
    thread.start()
    thread.join()
    assert ended == [0]
    assert len(ledger) == 2


_shared: list[SharedLedger] = []


def _recorded_in_a_child(name: str) -> int:
    (ledger,) = _shared
    number = ledger.record(turn(name)).number
    assert ledger.flush(10.0)
    return number


def test_children_of_multiprocessing_record_for_all(ledger: SharedLedger) -> None:
    ledger.record(turn("first"))
    assert ledger.flush(10.0)
    _shared[:] = [ledger]
    with get_context("fork").Pool(2) as pool:
        numbers = pool.map(_recorded_in_a_child, ["a", "b", "c", "d"], chunksize=1)
    assert [ledger.lookup(digest(name)) for name in "abcd"] == [(n,) for n in numbers]


def test_a_child_of_a_statement_under_way_does_not_wait_for_it(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A thread of the parent is in SQLite, and holds our locks: nobody frees them in the child."""
    ledger = sqlite.opened(tmp_path / "ledger.db", *BOUNDS)
    request.addfinalizer(ledger.close)
    ledger.record(turn("a"))
    assert ledger.flush()
    assert len(ledger) == 1
    store: Any = ledger._store
    inside, leave = threading.Event(), threading.Event()

    def stay() -> int:
        inside.set()
        return int(leave.wait(HANGS_S))

    store._reader.create_function("inside", 0, stay)

    def slow() -> None:
        with ledger._lock:
            ledger._asked(lambda: store._reader.execute("SELECT inside()").fetchone(), None)

    thread = threading.Thread(target=slow)
    thread.start()
    assert inside.wait(HANGS_S)

    def work() -> None:
        for use in USES.values():
            use(ledger)
        assert ledger.failures == 0

    status = child(work)
    leave.set()
    thread.join()
    assert status == 0


def test_a_child_that_ends_as_a_program_does_leaves_its_parents_connection_alone(
    tmp_path: Path,
) -> None:
    """To close it would wait for the thread that used it, for ever."""
    program = """
import os, signal, sys, threading
from pathlib import Path
from otel_sealed.ledger.sqlite import opened
ledger = opened(Path(sys.argv[1]), 1000, 2**26, 3600.0)
len(ledger)
reader = ledger._store._reader
inside, leave = threading.Event(), threading.Event()
reader.create_function("inside", 0, lambda: inside.set() or leave.wait(30) or 1)
threading.Thread(target=lambda: reader.execute("SELECT inside()").fetchone()).start()
inside.wait(20)
child = os.fork()
if child == 0:
    signal.alarm(20)
    len(ledger)
    sys.exit(0)
status = os.waitpid(child, 0)[1]
leave.set()
ledger.close()
sys.exit(status != 0)
"""
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "ledger.db")]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0


def test_a_store_that_hangs_in_a_child_hangs_no_call(
    ledger: SharedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its library holds at the fork is held for ever: a thread waits for it, and no call.

    The first question waits a moment for that thread, and no other does.
    """
    recorded = ledger.record(turn("a"))
    assert ledger.flush(10.0)
    waits: list[float] = []

    def work() -> None:
        monkeypatch.setattr(ledger._store, "open", lambda: threading.Event().wait())
        monkeypatch.setattr(ledger._writer, "_opened", Noted(waits))
        for held in (1, 2, 3):
            assert ledger.lookup(digest("a")) == (recorded.number,)
            assert ledger.last(digest("c")) == recorded.number
            assert len(ledger) == held
            ledger.record(turn("b", conversation="another"))
        assert waits[0] > 0
        assert set(waits[1:]) == {0.0}

    assert child(work) == 0


class Noted(threading.Event):
    """An event that notes how long it was waited for."""

    def __init__(self, waits: list[float]) -> None:
        super().__init__()
        self._waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        """Wait, and note it."""
        assert timeout is not None
        self._waits.append(timeout)
        return super().wait(timeout)


def test_numbers_and_turns_stay_together_where_a_fork_came_between(ledger: SharedLedger) -> None:
    """A thread of the parent had put a turn into memory, and not yet its number."""
    ledger._memory.record(turn("lost at the fork"))
    recorded = [ledger.record(turn(name)) for name in "abc"]
    assert [ledger.get(one.number) for one in recorded] == recorded
    assert ledger.lookup(digest("b")) == (recorded[1].number,)
    assert ledger.lookup(digest("lost at the fork")) == (recorded[0].number - 1,)
