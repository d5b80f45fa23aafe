"""A ledger that nobody holds any more ends by itself, and every one ends with its process."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.ledger.shared import SharedLedger, ending
from otel_sealed.ledger.sqlite import opened
from tests.ledger.shared import digest, turn

TREE = Path(__file__).parents[2]


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def made(path: Path) -> SharedLedger:
    return opened(path, 100, 1 << 20, 60.0)


def looked_at(ledger: SharedLedger) -> tuple[Any, threading.Thread | None]:
    """Its store, and the thread of its writer."""
    return ledger._store, ledger._writer._thread


def test_a_ledger_that_is_dropped_writes_what_waits_and_closes_its_store(path: Path) -> None:
    ledger = made(path)
    ledger.record(turn("a"))
    store, thread = looked_at(ledger)
    del ledger
    gc.collect()
    assert thread is not None
    thread.join(10.0)
    assert (thread.is_alive(), store._reader, store._writer) == (False, None, None)
    assert made(path).lookup(digest("a")) != ()


def test_a_ledger_that_never_wrote_is_closed_when_the_next_is_made(path: Path) -> None:
    ledger = made(path)
    store, thread = looked_at(ledger)
    assert (thread, store._reader is None and store._writer is None) == (None, False)
    del ledger
    gc.collect()
    made(path)
    assert (store._reader, store._writer) == (None, None)


def test_ledgers_that_come_and_go_leave_nothing_behind(path: Path) -> None:
    for _ in range(20):
        made(path)
    gc.collect()
    ending.tidy()
    assert [writer for writer in ending._writers.values() if writer._gone()] == []


def test_a_process_that_ends_writes_what_waits(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.ledger.test_ending import made, turn\n"
        "made(Path(sys.argv[1])).record(turn('a')); ledger = made(Path(sys.argv[1]))\n"
        "ledger.record(turn('b'))"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TREE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    there = made(path)
    assert [there.lookup(digest(name)) != () for name in "ab"] == [True, True]
