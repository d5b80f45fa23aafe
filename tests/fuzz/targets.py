"""What is fuzzed, and what has to hold of each example.

Nothing escapes: no exception comes out, but where the interface says so. Whatever is returned has
the types its record declares, holds no content, and took work in proportion to what was read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import logging
import socketserver
import sqlite3
import sys
import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from otel_sealed.cli import main
from otel_sealed.contract import Exchange
from otel_sealed.ledger import redis, sqlite
from otel_sealed.ledger.packed import Corrupt, pack, unpack
from otel_sealed.model import Report, Turn
from otel_sealed.testing.sweep import reprs
from otel_sealed.tracker import Tracker
from tests.core.conversations import APIS, KEY, MATRIX, conversation
from tests.fuzz.strategies import CANARY, bodies, cells, damage, files, replies, streams
from tests.ledger.shared import turn
from tests.telemetry.builders import Bench

IN_BASE64 = [b64encode(b" " * at + CANARY.encode()).decode()[4:15] for at in range(3)]
FORMS = [form.lower() for form in (CANARY, CANARY.encode().hex(), *IN_BASE64)]
"""What the canary is looked for as: itself, in hexadecimal, and within base64 at any place."""
CALLS, CALLS_A_BYTE = 2_000, 2
"""Calls of Python functions for one exchange, which grow with its bytes and with nothing else."""
PLAIN = (str, int, float, bool, bytes, type(None), Enum)


def swept(**outputs: str) -> None:
    """No output holds the canary. Other encodings are what `tests/test_canary.py` sweeps for."""
    for name, text in outputs.items():
        low = text.lower()
        assert [] == [form for form in FORMS if form in low], name


def well_typed(value: Any) -> bool:
    """Whether a record is made of records, containers and plain values."""
    if dataclasses.is_dataclass(value):
        return all(well_typed(getattr(value, f.name)) for f in dataclasses.fields(value))
    if isinstance(value, (tuple, list, frozenset)):
        return all(map(well_typed, value))
    if isinstance(value, dict):
        return all(map(well_typed, value)) and all(map(well_typed, value.values()))
    return isinstance(value, PLAIN)


@contextlib.contextmanager
def counted() -> Iterator[list[int]]:
    """How many Python functions are called."""
    calls = [0]

    def called(_frame: Any, event: str, _argument: Any) -> None:
        calls[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def observed(tracker: Tracker, one: Exchange, bench: Bench | None = None) -> Report:
    """What is reported, and emitted, of one exchange."""
    with counted() as calls:
        report = tracker.observe(one)
    size = sum(len(repr(body)) for body in (one.request, one.response, one.events))
    assert calls[0] <= CALLS + CALLS_A_BYTE * size
    assert isinstance(report, Report)
    assert well_typed(report)
    assert 0 <= report.returned <= report.expected - report.excused
    swept(report=reprs([report]))
    if bench is not None:
        swept(span=repr(bench.call(report)))
    return report


def emitted(bench: FuzzBench) -> None:
    """Nothing of content in what an application exports."""
    swept(
        metrics=bench.meters_json,
        events="\n".join(repr(vars(x.log_record)) for x in bench.logs.get_finished_logs()),
    )


def check_bodies(plan: list[Any]) -> None:
    tracker, bench = Tracker(KEY), FuzzBench()
    for one, asked, answer in plan:
        observed(tracker, dataclasses.replace(one, request=asked, response=answer), bench)
        observed(tracker, dataclasses.replace(one, request=asked, response=answer, status=400))
    emitted(bench)


def check_streams(example: tuple[str, int, Any, bool]) -> None:
    dialect, number, sent, complete = example
    tracker, bench = Tracker(KEY), FuzzBench()
    for at, one in enumerate(conversation(dialect)):
        if at == number:
            cut = Exchange(
                api=APIS[dialect],
                provider=one.provider,
                request=one.request,
                events=sent,
                status=200,
                complete=complete,
            )
            observed(tracker, cut, bench)
        else:
            observed(tracker, one, bench)
    emitted(bench)


class FuzzBench(Bench):
    """A bench of which the metrics are swept as a whole."""

    @property
    def meters_json(self) -> str:
        data = self.reader.get_metrics_data()
        return data.to_json() if data else ""


def check_files(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evidence"
        path.write_bytes(data)
        for command in (["verify", "--json"], ["triage", "--json"], ["sessions", "--json"]):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main([*command, str(path)])
            said = f"{out.getvalue()}\n{err.getvalue()}"
            assert status in {0, 1, 2}, command
            assert "our own fault" not in said, said[-400:]
            for line in out.getvalue().splitlines():
                assert isinstance(json.loads(line), dict | list), line
            swept(said=said)


def check_packed(data: bytes) -> None:
    try:
        found = unpack(data)
    except Corrupt:
        return
    assert isinstance(found, Turn)


@st.composite
def packed(draw: st.DrawFn) -> bytes:
    return damage(draw, pack(turn("one", "two", conversation=draw(st.text(max_size=3)))))


@st.composite
def rows(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, Any]]]:
    """(dialect, (which table, which column, what is written there))."""
    places = st.tuples(st.integers(0, 9), st.integers(0, 9), cells)
    return draw(st.sampled_from(MATRIX)), draw(st.lists(places, min_size=1, max_size=4))


def check_rows(example: tuple[str, list[tuple[int, int, Any]]]) -> None:
    dialect, wrong = example
    plan = conversation(dialect)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        with contextlib.closing(sqlite.opened(path, 1_000, 2**22, 1e6)) as ledger:
            key = ledger.key or KEY
            for one in plan[:3]:
                Tracker(key, ledger=ledger).observe(one)
            ledger.flush()
        spoil_rows(path, wrong)
        with contextlib.closing(sqlite.opened(path, 1_000, 2**22, 1e6)) as ledger:
            tracker = Tracker(key, ledger=ledger)
            for one in plan[3:]:
                accused = [f for f in observed(tracker, one).findings if f.verdict.violates]
                assert accused == [], accused


def spoil_rows(path: Path, wrong: list[tuple[int, int, Any]]) -> None:
    """Write what does not belong there; a column that takes no such value stays as it is."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for table, column, value in wrong:
            (name,) = tables[table % len(tables)]
            columns = [row[1] for row in file.execute(f"PRAGMA table_info({name})")]
            with contextlib.suppress(sqlite3.Error, UnicodeEncodeError):
                file.execute(f"UPDATE {name} SET {columns[column % len(columns)]} = ?", (value,))  # noqa: S608 - the names are the file's own
                file.commit()


class Garbage(socketserver.ThreadingTCPServer):
    """A server that answers each command with the next of what it was given."""

    daemon_threads = True
    allow_reuse_address = True
    replies: tuple[bytes, ...] = ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what is looked for."""


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Garbage)
        for reply in self.server.replies:
            if not self.request.recv(1 << 16):
                return
            self.request.sendall(reply)


def check_replies(example: tuple[str, list[bytes]]) -> None:
    dialect, answers = example
    with Garbage(("127.0.0.1", 0), Handler) as server:
        server.replies = tuple(answers)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            url = f"redis://127.0.0.1:{server.server_address[1]}"
            with contextlib.closing(redis.opened(url, 1_000, 2**22, 1e6)) as ledger:
                tracker = Tracker(KEY, ledger=ledger)
                for one in conversation(dialect, turns=3):
                    accused = [f for f in observed(tracker, one).findings if f.verdict.violates]
                    assert accused == [], accused
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of input: how it is made, and what has to hold of an example."""

    name: str
    examples: st.SearchStrategy[Any]
    check: Callable[[Any], None]


TARGETS = (
    Target("bodies", bodies(), check_bodies),
    Target("streams", streams(), check_streams),
    Target("files", files(), check_files),
    Target("packed", packed(), check_packed),
    Target("rows", rows(), check_rows),
    Target("replies", st.tuples(st.sampled_from(MATRIX), replies), check_replies),
)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Log lines go to where they are swept, not to the terminal."""
    log = logging.getLogger("otel_sealed")
    before, log.propagate, out = log.propagate, False, io.StringIO()
    handler = logging.StreamHandler(out)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before
    swept(log=out.getvalue())
