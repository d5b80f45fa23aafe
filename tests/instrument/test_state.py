"""Pass-through: who decides on it, and what a call costs and shows while it holds."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from opentelemetry.sdk.metrics import MeterProvider

from otel_sealed.instrument import guard, instrument, state
from otel_sealed.instrument.state import State, Watcher
from otel_sealed.telemetry.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from otel_sealed.instrument import Handle
    from tests.instrument.conftest import Recorder, Spans, Wire

ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}
MESSAGE = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[]}'


class Turned:
    """A state under a clock to turn and a kill file to make."""

    def __init__(self, **given: Any) -> None:
        self.now = 1000.0
        self.file = False
        self.state = State(
            clock=lambda: self.now, exists=lambda _: self.file, kill_file="off", **given
        )

    def passing(self) -> bool:
        return self.state.passing

    def fault(self, times: int = 1, every_s: float = 0.0) -> None:
        for _ in range(times):
            self.state.fault()
            self.now += every_s


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    yield
    state.reset()


def thread_of(watcher: Watcher) -> threading.Thread | None:
    return watcher._thread


def call(wire: Wire) -> None:
    wire.replies.clear()
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK)


# ---------------------------------------------------------------------------------- too many faults


def test_at_first_calls_are_observed() -> None:
    turned = Turned()
    assert (turned.passing(), turned.state.word()) == (False, "active")


def test_30_faults_in_a_minute_are_borne_and_the_next_one_starts_a_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    turned = Turned()
    turned.fault(30)
    assert turned.state.word() == "active"
    turned.fault()
    assert (turned.passing(), turned.state.word()) == (True, "resting")
    assert [record.getMessage() for record in caplog.records] == [
        "31 internal errors within a minute: calls go through unobserved for 300 seconds"
    ]


def test_slower_faults_are_borne_for_ever() -> None:
    turned = Turned()
    turned.fault(1000, every_s=2.0)
    assert turned.state.word() == "active"


def test_a_rest_ends_by_itself_and_another_one_needs_as_many_faults_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    turned = Turned(max_faults=2, rest_s=10.0)
    turned.fault(3)
    turned.now += 9.9
    assert turned.passing() is True
    turned.now += 0.1
    assert (turned.passing(), turned.state.word()) == (False, "active")
    turned.fault(2)
    assert turned.passing() is False
    turned.fault()
    assert turned.passing() is True
    assert len(caplog.records) == 2


def test_faults_while_resting_say_nothing_and_do_not_prolong_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    turned = Turned(max_faults=0, rest_s=10.0)
    turned.fault(50)
    turned.now += 10.0
    assert turned.passing() is False
    assert len(caplog.records) == 1


def test_of_many_threads_one_starts_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    turned = Turned(max_faults=5)
    threads = [threading.Thread(target=turned.fault, args=(50,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert turned.passing() is True
    assert len(caplog.records) == 1


# ------------------------------------------------------------------------------------ the kill file


def test_the_kill_file_turns_it_off_and_on_again_with_a_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    turned = Turned()
    words = []
    for turned.file in (False, True, True, False, False):
        turned.state.look()
        words.append(turned.state.word())
    assert words == ["active", "killed", "killed", "active", "active"]
    assert [record.getMessage() for record in caplog.records] == [
        "the kill file off is there: calls go through unobserved",
        "the kill file off is gone: calls are observed",
    ]


def test_without_a_kill_file_no_thread_is_ever_started() -> None:
    watcher = Watcher(State(kill_file=""))
    watcher.begin()
    watcher.start()
    assert watcher._thread is None


def test_to_begin_with_no_thread_is_started_unless_the_file_is_there() -> None:
    turned = Turned()
    watcher = Watcher(turned.state)
    watcher.begin()
    assert thread_of(watcher) is None
    turned.file = True
    watcher.begin()
    thread = thread_of(watcher)
    assert thread is not None
    assert thread.daemon is True
    watcher.stop()
    thread.join(5)


def test_the_thread_looks_and_ends(eventually: Callable[[Callable[[], bool]], None]) -> None:
    turned = Turned()
    watcher = Watcher(turned.state, every_s=0.001)
    watcher.start()
    thread = watcher._thread
    assert thread is not None
    watcher.start()
    assert watcher._thread is thread
    turned.file = True
    eventually(lambda: turned.state.killed)
    turned.file = False
    eventually(lambda: not turned.state.killed)
    watcher.stop()
    thread.join(5)
    assert not thread.is_alive()


def test_a_look_that_fails_is_counted_and_the_thread_goes_on(
    monkeypatch: pytest.MonkeyPatch, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    monkeypatch.setattr(guard, "STRICT", False)
    counted: list[tuple[str, str]] = []
    guard.on_error(lambda where, kind: counted.append((where, kind)))

    def fails(_: str) -> bool:
        raise PermissionError

    watcher = Watcher(State(kill_file="off", exists=fails), every_s=0.001)
    watcher.start()
    eventually(lambda: len(counted) > 2)
    watcher.stop()
    thread = thread_of(watcher)
    assert thread is not None
    thread.join(5)  # its last look must not be another test's
    guard.on_error(None)
    assert set(counted) == {("state.look", "PermissionError")}


# ----------------------------------------------------------------------------------- on real calls


def test_while_passing_nothing_of_ours_runs_and_afterwards_it_does_again(
    handle: Handle, tracker: Recorder, wire: Wire, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    del handle
    turned = Turned()
    state.use(turned.state, Watcher(turned.state))
    call(wire)
    ours = _functions_called(lambda: call(wire))
    assert {"stainless.py", "exchange.py"} <= ours
    turned.file = True
    turned.state.look()
    monkeypatch.setattr(tracker, "error", AssertionError("told while passing"))
    assert _functions_called(lambda: call(wire)) == {"seam.py", "state.py"}
    monkeypatch.setattr(tracker, "error", None)
    turned.file = False
    turned.state.look()
    call(wire)
    assert (len(tracker.exchanges), len(spans.names)) == (3, 3)


def _functions_called(what: Callable[[], None]) -> set[str]:
    """The files of `otel_sealed/instrument` that run in this thread meanwhile."""
    files: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.parts[-3:-1] == ("otel_sealed", "instrument"):
            files.add(path.name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        what()
    finally:
        sys.setprofile(before)
    return files


def test_a_call_under_way_is_observed_to_its_end(
    handle: Handle, tracker: Recorder, wire: Wire
) -> None:
    del handle
    turned = Turned()
    state.use(turned.state, Watcher(turned.state))
    wire.streams(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        stream = client.messages.create(**ASK, stream=True)
        turned.file = True
        turned.state.look()
        for _ in stream:
            pass
        stream.close()
    assert [exchange.complete for exchange in tracker.exchanges] == [True]


def test_no_thread_before_the_first_request_is_sent_and_one_after_it(
    tracker: Recorder, wire: Wire, tmp_path: Path, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    file = tmp_path / "off"
    instrument("anthropic", tracker=tracker, settings=Settings(kill_file=str(file)))
    state._watcher._every_s = 0.001
    assert thread_of(state._watcher) is None
    call(wire)
    assert thread_of(state._watcher) is not None
    file.touch()
    eventually(state.passing)
    call(wire)
    assert len(tracker.exchanges) == 1
    file.unlink()
    eventually(lambda: not state.passing())
    call(wire)
    assert len(tracker.exchanges) == 2


def test_a_kill_file_that_is_there_from_the_start_is_honoured_and_noticed_when_it_goes(
    tracker: Recorder, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "off"
    file.touch()
    monkeypatch.setattr(state, "LOOK_S", 0.001)
    instrument("anthropic", tracker=tracker, settings=Settings(kill_file=str(file)))
    call(wire)
    assert tracker.exchanges == []
    file.unlink()
    state._state.look()
    call(wire)
    assert len(tracker.exchanges) == 1


def test_faults_of_every_floor_count(
    spans: Spans, reader: InMemoryMetricReader, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the guard and those of emission; the state is a metric, one of three at 1."""
    monkeypatch.setattr(guard, "STRICT", False)
    handle = instrument(
        "anthropic",
        tracer_provider=spans.provider,
        meter_provider=MeterProvider([reader]),
        settings=Settings(errors_per_minute=3, rest_seconds=60),
    )
    emitter: Any = handle.runtime.emitter
    guard.internal_error("here", "KeyError")
    emitter.internal_error("here", "KeyError")
    emitter._shield.run("there", {}.__getitem__, "missing")
    assert _states(reader) == {"active": 1, "killed": 0, "resting": 0}
    guard.internal_error("here", "KeyError")
    assert _states(reader) == {"active": 0, "killed": 0, "resting": 1}
    call(wire)
    assert spans.names == []


def _states(reader: InMemoryMetricReader) -> dict[Any, Any]:
    data: Any = reader.get_metrics_data()
    (metric,) = (
        metric
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "otel_sealed.state"
    )
    points = metric.data.data_points
    return {point.attributes["otel_sealed.state"]: point.value for point in points}


@pytest.mark.parametrize("name", ["OTEL_SEALED_ENABLED", "OTEL_SDK_DISABLED"])
def test_switched_off_nothing_is_patched_and_nothing_goes_out(
    name: str,
    spans: Spans,
    reader: InMemoryMetricReader,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even the state: there is nothing that could be in one."""
    meters = MeterProvider([reader])
    monkeypatch.setenv(name, "false" if name.endswith("ENABLED") else "true")
    handle = instrument(tracer_provider=spans.provider, meter_provider=meters)
    call(wire)
    assert (handle.attached, spans.names, reader.get_metrics_data()) == ((), [], None)


def test_uninstrumenting_ends_it_all(tracker: Recorder) -> None:
    handle = instrument("anthropic", tracker=tracker, settings=Settings(kill_file="off"))
    watcher = state._watcher
    watcher.start()
    handle.uninstrument()
    thread = watcher._thread
    assert thread is not None
    thread.join(5)
    assert (thread.is_alive(), state.passing()) == (False, False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_of_fork_gets_a_thread_of_its_own(tmp_path: Path) -> None:
    """In the parent it runs; in the child it is gone, and starts with the child's next call."""
    code = (
        "import os, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from otel_sealed.instrument import state\n"
        "now = state.State(kill_file=sys.argv[1])\n"
        "state.use(now, state.Watcher(now))\n"
        "state._watcher.start()\n"
        "if pid := os.fork():\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "before = state._watcher._thread\n"
        "state._watcher.start()\n"
        "alive = state._watcher._thread.is_alive()\n"
        "os._exit(0 if before is None and alive else 1)\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", code, tmp_path / "off"], check=False).returncode == 0
    )
