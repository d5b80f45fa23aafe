"""What a shared ledger may not do to its process: raise, stop, be switched off, or harm others."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis as client

import otel_sealed
from otel_sealed.instrument import state
from otel_sealed.ledger import redis, sqlite
from otel_sealed.ledger.packed import pack
from otel_sealed.ledger.shared import BATCH, MAX_WAITING, Clock, SharedLedger
from otel_sealed.ledger.shared.clock import AHEAD_S
from otel_sealed.ledger.sqlite import APPLICATION, look
from tests.ledger.calls import KNOWN, begin, go_on, tracker
from tests.ledger.redis_server import redis_server
from tests.ledger.shared import KEY, digest, turn

DAY_S = 86_400.0
BOUNDS = (1_000, 2**26, 7 * DAY_S)
Opens = Callable[..., SharedLedger]


@pytest.fixture(params=["sqlite", "redis"])
def opens(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Opens]:
    """Opens one and the same ledger, once for each process."""
    with ExitStack() as stack:
        if request.param == "redis":
            monkeypatch.setattr(redis, "_WAIT_S", 5.0)
            url = stack.enter_context(redis_server())

        def one(*, ahead_s: float = 0.0, max_turns: int = 1_000) -> SharedLedger:
            bounds = (max_turns, *BOUNDS[1:])
            made = (
                redis.opened(url, *bounds)
                if request.param == "redis"
                else sqlite.opened(tmp_path / "ledger.db", *bounds)
            )
            stack.callback(made.close)
            made.keyed(KEY)
            made._clock._now_ns = lambda: time.time_ns() + int(ahead_s * 1e9)
            return made

        yield one


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def opened(path: Path) -> Iterator[Callable[[], SharedLedger]]:
    made: list[SharedLedger] = []

    def one() -> SharedLedger:
        made.append(sqlite.opened(path, *BOUNDS))
        made[-1].keyed(KEY)
        return made[-1]

    yield one
    for ledger in made:
        ledger.close()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "otel_sealed"]


# ------------------------------------------------------------------------------------------ clocks


@pytest.mark.parametrize("ahead_s", [2 * DAY_S, 30 * DAY_S, 3_650 * DAY_S])
def test_a_process_whose_clock_is_ahead_takes_no_turn_of_others(
    opens: Opens, ahead_s: float
) -> None:
    """However often it writes; and no clock but its own is moved."""
    here, there, ahead = opens(), opens(), opens(ahead_s=ahead_s)
    numbers = [here.record(turn(str(n))).number for n in range(20)]
    assert here.flush(10.0)
    for n in range(5):
        ahead.record(turn(f"ahead {n}"))
        assert ahead.flush(10.0)
    assert [there.lookup(digest(str(n))) for n in range(20)] == [(number,) for number in numbers]
    assert there.lookup(digest("ahead 1")) == ()
    assert there.lookup(digest("joined")) == tuple(numbers[-16:])
    assert there.record(turn("later")).number <= Clock().latest()
    assert (here.evicted, ahead.evicted) == (0, 0)


def test_a_process_whose_clock_is_a_little_ahead_is_believed(opens: Opens) -> None:
    """And along a line numbers rise all the same."""
    here, ahead = opens(), opens(ahead_s=AHEAD_S / 2)
    recorded = ahead.record(turn("a"))
    assert ahead.flush(10.0)
    assert here.lookup(digest("a")) == (recorded.number,)
    assert here.record(turn("b", parent=recorded.number)).number > recorded.number


def test_a_turn_goes_by_its_age_a_batch_at_a_time(opens: Opens) -> None:
    old, here = opens(ahead_s=-8 * DAY_S), opens()
    for n in range(BATCH + 20):
        old.record(turn(str(n)))
    assert old.flush(20.0)
    assert old.evicted == 0
    left = []
    for name in "abc":
        here.record(turn(name))
        assert here.flush(10.0)
        left.append(len(here))
    assert left == [21, 2, 3]


def test_of_too_many_turns_those_of_a_clock_that_is_ahead_go_first(opens: Opens) -> None:
    here, ahead = opens(max_turns=10), opens(ahead_s=30 * DAY_S)
    numbers = [here.record(turn(str(n))).number for n in range(5)]
    assert here.flush(10.0)
    for n in range(8):
        ahead.record(turn(f"ahead {n}"))
    assert ahead.flush(10.0)
    here.record(turn("a"))
    assert here.flush(10.0)
    assert len(here) == 10
    there = opens()
    assert [there.get(number) is None for number in numbers] == [False] * 5


def test_a_process_whose_clock_was_put_back_keeps_what_nobody_would_believe(opens: Opens) -> None:
    """Its numbers go on rising, and are more than a day from now."""
    here, there = opens(ahead_s=2 * DAY_S), opens()
    here.record(turn("a"))
    assert here.flush(10.0)
    here._clock._now_ns = time.time_ns
    recorded = here.record(turn("b"))
    assert here.flush(10.0)
    assert (here.get(recorded.number), here.evicted) == (recorded, 1)
    assert there.lookup(digest("b")) == ()


# ---------------------------------------------------------------------------------------- a writer


def test_a_writer_goes_on_whatever_is_raised(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no fault of the store's is not tried again for ever."""
    ledger = opens()
    ledger._health._clock = lambda: 0.0
    write, errors = ledger._store.write, [OverflowError("CANARY"), MemoryError(), KeyError("x")]

    def failing(*what: Any) -> int:
        if errors:
            raise errors.pop()
        return write(*what)

    monkeypatch.setattr(ledger._store, "write", failing)
    for name in "abc":
        ledger.record(turn(name))
        assert ledger.flush(10.0)
        ledger._health._rests_until = 0.0
    ledger.record(turn("d"))
    assert ledger.flush(10.0)
    assert (ledger.failures, ledger.evicted, opens().lookup(digest("d")) != ()) == (3, 3, True)


def test_a_writer_that_ended_begins_again(opens: Opens) -> None:
    ledger = opens()
    ledger.record(turn("a"))
    assert ledger.flush(10.0)
    thread: Any = ledger._writer._thread
    ledger._writer._stopping = True
    ledger._writer._ring()
    thread.join(10.0)
    assert not thread.is_alive()
    ledger.record(turn("b"))
    assert ledger.flush(10.0)
    assert len(ledger) == 2


def test_what_waits_is_bounded_and_what_is_given_up_counted(opens: Opens) -> None:
    ledger = opens()
    ledger._health.failed(OSError())
    ledger._health._clock = lambda: 0.0
    for n in range(MAX_WAITING + 300):
        ledger.record(turn(str(n)))
    assert (len(ledger._writer._turns), ledger.evicted) == (MAX_WAITING, 300)


def test_a_turn_too_large_to_share_is_in_memory_alone(opens: Opens) -> None:
    ledger = opens()
    recorded = ledger.record(turn(*map(str, range(3_000))))
    small = ledger.record(turn("small"))
    assert ledger.flush(10.0)
    assert ledger.get(recorded.number) == recorded
    there = opens()
    assert (there.get(recorded.number), there.get(small.number)) == (None, small)
    assert ledger.evicted == 1


# ------------------------------------------------------------------------------------- the process


@pytest.fixture
def instrumented(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts the library on, with these settings."""

    def on(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"OTEL_SEALED_{name}", value)
        otel_sealed.instrument("anthropic")

    yield on
    otel_sealed.uninstrument()


NO_KEYS = [None, "short", "x" * 32, b"", b"x", b"x" * 15, b"x" * 65, 99_999_999_999, 1.5, -1, 0]


@pytest.mark.parametrize("key", NO_KEYS, ids=repr)
def test_a_file_with_no_usable_key_costs_one_line(
    path: Path,
    opened: Callable[[], SharedLedger],
    instrumented: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    key: object,
) -> None:
    opened().close()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE f (name TEXT PRIMARY KEY, value) WITHOUT ROWID")
        connection.execute("INSERT INTO f SELECT * FROM facts WHERE name != 'key'")
        connection.execute("INSERT INTO f VALUES ('key', ?)", (key,))
        connection.execute("DROP TABLE facts")
        connection.execute("ALTER TABLE f RENAME TO facts")
    connection.close()
    instrumented(LEDGER=str(path))
    (line,) = lines(caplog)
    assert line.startswith("the shared ledger (sqlite) holds no usable hash key")


@pytest.mark.parametrize("key", ["x", "x" * 15, "x" * 65, "list", "x" * 2**20], ids=len)
def test_a_server_with_no_usable_key_costs_one_line(
    monkeypatch: pytest.MonkeyPatch,
    instrumented: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    key: str,
) -> None:
    monkeypatch.setattr(redis, "_WAIT_S", 5.0)
    with redis_server() as url:
        with client.Redis.from_url(url) as tenant:
            if key == "list":
                tenant.rpush("otel_sealed:1:key", key)
            else:
                tenant.set("otel_sealed:1:key", key)
        instrumented(LEDGER=url, REDIS_KEEPS_KEY="true")
        (line,) = lines(caplog)
        otel_sealed.uninstrument()
    assert line.startswith("the shared ledger (redis) holds no usable hash key")


def test_processes_that_share_no_key_are_reported(
    monkeypatch: pytest.MonkeyPatch,
    instrumented: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once, and what is to be set."""
    monkeypatch.setattr(redis, "_WAIT_S", 5.0)
    with redis_server() as url:
        instrumented(LEDGER=url)
        with client.Redis.from_url(url) as tenant:
            assert tenant.keys("*") == []
        otel_sealed.uninstrument()
    (line,) = lines(caplog)
    assert "OTEL_SEALED_HASH_KEY" in line
    assert "OTEL_SEALED_REDIS_KEEPS_KEY" in line


def test_a_configured_key_never_goes_to_a_server(
    monkeypatch: pytest.MonkeyPatch,
    instrumented: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(redis, "_WAIT_S", 5.0)
    with redis_server() as url:
        instrumented(LEDGER=url, HASH_KEY=KEY.hex(), REDIS_KEEPS_KEY="true")
        with client.Redis.from_url(url) as tenant:
            assert tenant.keys("*") == []
        otel_sealed.uninstrument()
    assert lines(caplog) == []


def test_a_ledger_that_fails_puts_nothing_to_rest_but_itself(
    tmp_path: Path, instrumented: Callable[..., None]
) -> None:
    """Where one fault a minute of ours would."""
    instrumented(LEDGER=str(tmp_path / "no" / "such.db"), ERRORS_PER_MINUTE="0")
    assert not state.passing()


# ---------------------------------------------------------------------------------------- the file


def test_a_symbolic_link_is_refused_and_what_it_leads_to_left_alone(
    tmp_path: Path, opened: Callable[[], SharedLedger], path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    target = tmp_path / "target"
    target.write_bytes(b"")
    target.chmod(0o644)
    path.symlink_to(target)
    ledger = opened()
    begin(tracker(ledger), "a")
    assert [go_on(tracker(ledger), "a", kind) for kind in KNOWN] == list(KNOWN.values())
    ledger._health._rests_until = 0.0
    assert ledger.lookup(digest("a")) == ()
    assert (stat.S_IMODE(target.stat().st_mode), target.read_bytes()) == (0o644, b"")
    says = (
        "the shared ledger (sqlite) cannot be used: SymbolicLinkError; the memory of this process"
    )
    assert lines(caplog) == [f"{says} stands in"]
    with pytest.raises(OSError, match="symbolic link"):
        look(path)


def test_a_link_put_there_while_the_file_is_used_is_not_followed(
    tmp_path: Path, opened: Callable[[], SharedLedger], path: Path
) -> None:
    ledger = opened()
    ledger.record(turn("a"))
    assert ledger.flush()
    target = tmp_path / "target"
    path.rename(target)
    path.symlink_to(target)
    ledger.record(turn("b"))
    assert not ledger.flush(0.2)
    assert ledger.failures > 0


def test_a_folder_above_it_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ledger = sqlite.opened(tmp_path / "link" / "ledger.db", *BOUNDS)
    ledger.record(turn("a"))
    ledger.close()
    assert look(tmp_path / "real" / "ledger.db") == (1, True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this platform")
def test_what_is_no_file_is_left_as_it_is(path: Path, opened: Callable[[], SharedLedger]) -> None:
    os.mkfifo(path, 0o644)
    path.chmod(0o644)
    assert opened().failures == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_file_of_the_format_before_keeps_its_key_and_no_turn(
    path: Path, opened: Callable[[], SharedLedger]
) -> None:
    """Its turns had no MAC; those that a process of that release still writes are unknown."""
    old = opened()
    key = old.key
    begin(tracker(old), "faithful")
    old.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    new = opened()
    assert (new.key, len(new), new.failures) == (key, 0, 0)
    number = Clock().next()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO turns VALUES (?, ?)", (number, pack(turn("old"))))
    connection.close()
    assert (new.get(number), new.corrupt, new.failures) == (None, 0, 0)
    assert look(path).turns == 0
    assert sqlite3.connect(path).execute("PRAGMA application_id").fetchone() == (APPLICATION,)


WORKER = """
import sys
from pathlib import Path
from otel_sealed.ledger.sqlite import opened
from tests.ledger.calls import begin, tracker
ledger = opened(Path(sys.argv[1]), 100000, 2**28, 1e5)
process = tracker(ledger)
for number in range(10**6):
    begin(process, f"{sys.argv[2]}x{number}")
    if number % 8 == 7 and ledger.flush(5.0):
        print(number, flush=True)
"""


def test_of_processes_killed_at_any_moment_nothing_written_is_lost(
    path: Path, request: pytest.FixtureRequest
) -> None:
    """And nobody is accused for what was not."""
    root = str(Path(__file__).parents[2])
    written: dict[str, int] = {}
    for burst in range(3):
        workers = {
            f"{burst}y{n}": subprocess.Popen(
                [sys.executable, "-c", WORKER, str(path), f"{burst}y{n}"],
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": root},
                text=True,
            )
            for n in range(2)
        }
        for at, (name, worker) in enumerate(workers.items()):
            assert worker.stdout is not None
            for _ in range(1 + at + burst):
                written[name] = int(worker.stdout.readline())
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            worker.stdout.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    ledger = sqlite.opened(path, 100_000, 2**28, DAY_S)
    request.addfinalizer(ledger.close)
    process = tracker(ledger)
    for name, last in written.items():
        verdicts = {go_on(process, f"{name}x{number}", "faithful") for number in range(last + 1)}
        assert verdicts == {"ok"}
    assert (ledger.failures, ledger.corrupt) == (0, 0)


def test_threads_that_wait_for_a_store_that_failed_ask_it_no_more(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many threads that ask at once, one waits for an answer that does not come."""
    ledger = opens()
    asked: list[None] = []
    go = threading.Event()

    def fails(*_: Any, **__: Any) -> Any:
        asked.append(None)
        go.wait(10.0)
        raise OSError

    monkeypatch.setattr(ledger._store, "numbers", fails)
    threads = [threading.Thread(target=ledger.lookup, args=(digest("a"),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    ledger.lookup(digest("b"))
    assert len(asked) == 1
