"""What no ratio of whole calls shows: frames before the request, first chunks, peaks of memory.

Time in our own frames is told by the interpreter's profile hook, which itself costs more than most
of what it measures. What a call of it adds to what it measures is measured, too, on a function that
does nothing, and taken off; the figure with it, an upper bound, is printed beside.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

from scenes import RANDOM, Sdk, Wire

Ours = Callable[[], AbstractContextManager[Any]]
CALLS = 30
LONG = 1000


class Stopwatch:
    """Nanoseconds in frames of ours, and in those they call, less the SDK's that they wrap.

    `spent` includes what the hook adds at each of `events`.
    """

    def __init__(self, sdk: str) -> None:
        """Not running."""
        self.spent = 0
        self.events = 0
        self._sdk = sdk if sdk != "google" else "genai"
        self._inside: list[bool] = []
        self._since = 0

    def start(self) -> None:
        """Watch this thread from now on."""
        self.spent, self.events = 0, 0
        self._inside, self._since = [], time.perf_counter_ns()
        sys.setprofile(self._told)

    def stop(self) -> None:
        """Watch no more."""
        sys.setprofile(None)

    def _told(self, frame: FrameType, event: str, _value: Any) -> None:
        now = time.perf_counter_ns()
        inside = self._inside
        if inside and inside[-1]:
            self.spent += now - self._since
            self.events += 1
        if event == "call":
            name = frame.f_code.co_filename
            if "otel_sealed" in name and "benchmarks" not in name:
                inside.append(True)
            elif f"/{self._sdk}/" in name or "/httpx" in name:  # both are what our hooks wrap
                inside.append(False)
            else:
                inside.append(bool(inside) and inside[-1])
        elif event == "return" and inside:
            inside.pop()
        self._since = time.perf_counter_ns()


def hook_cost() -> float:
    """Nanoseconds that an event adds to what is measured: of a loop over a function of nothing."""
    space: dict[str, Any] = {}
    source = "def nothing(): pass\ndef loop():\n    for _ in range(1000): nothing()\n"
    exec(compile(source, "otel_sealed/nothing.py", "exec"), space)  # noqa: S102 - to have that name
    watch = Stopwatch("none")
    found = []
    for _ in range(20):
        watch.start()
        space["loop"]()
        watch.stop()
        start = time.perf_counter_ns()
        space["loop"]()
        found.append((watch.spent - (time.perf_counter_ns() - start)) / watch.events)
    return statistics.median(found)


def before_sending(sdk: Sdk, ours: Ours, turns: int) -> tuple[float, float]:
    """Microseconds in our frames from the call on until the transport is asked, least of many.

    Without and with what the hook adds.
    """
    wire = Wire()
    client = sdk.client(wire)
    watch = Stopwatch(sdk.name)
    wire.on_sent = watch.stop
    history = sdk.opening("Question")
    for number in range(turns):
        history += sdk.step(number, sdk.turn(number))
    sdk.whole(wire, 0, sdk.turn(0))
    found = []
    with ours():
        for _ in range(CALLS if turns < LONG else CALLS // 3):
            watch.start()
            for _ in sdk.call(client, history):
                pass
            found.append((watch.spent, watch.events))
    spent, events = min(found)
    return (spent - events * hook_cost()) / 1e3, spent / 1e3


def first_chunk(sdk: Sdk, ours: Ours) -> tuple[float, float]:
    """Microseconds to the first event of a stream: (bare, added), medians of paired calls."""
    bare, added = [], []
    for _ in range(5):
        pair = [_to_first(sdk, how) for how in (nullcontext, ours)]
        bare.append(pair[0])
        added.append(pair[1] - pair[0])
    return statistics.median(bare), statistics.median(added)


def _to_first(sdk: Sdk, how: Ours) -> float:
    wire = Wire()
    found = []
    with how():
        client = sdk.client(wire)
        for number in range(CALLS):
            sdk.stream(wire, number)
            history = sdk.opening(f"Question {RANDOM.random()}")
            start = time.thread_time()
            events = sdk.call(client, history, stream=True)
            next(events)
            found.append(time.thread_time() - start)
            for _ in events:
                pass
    return statistics.median(found[2:]) * 1e6


def peak(sdk: Sdk, how: Ours, turns: int = 100) -> float:
    """KiB at the peak of a call with a long history that grew, above what stood before the call."""
    wire = Wire()
    client = sdk.client(wire)
    history = sdk.opening("Question")
    found = 0.0
    with how():
        for number in range(turns):
            turn = sdk.turn(number)
            sdk.whole(wire, number, turn)
            if number == turns - 1:
                gc.collect()
                tracemalloc.start()
            for _ in sdk.call(client, history):
                pass
            history += sdk.step(number, turn)
        found = tracemalloc.get_traced_memory()[1] / 1024
        tracemalloc.stop()
    return found


def show(sdk: Sdk, ours: Ours, *, as_json: bool) -> None:
    """Measure and print all three."""
    figures: dict[str, float] = {}
    for turns in (10, 1000) if sdk.name == "anthropic" else (10, 100):
        about = f"own frames before sending, {turns} turns, us"
        figures[about], figures[f"{about}, with the hook"] = before_sending(sdk, ours, turns)
    bare, added = first_chunk(sdk, ours)
    figures["time to the first event, bare, us"] = bare
    figures["time to the first event, added, us"] = added
    alone = peak(sdk, nullcontext)
    figures["peak memory of a call at 100 turns, bare, KiB"] = alone
    figures["peak memory of a call at 100 turns, added, KiB"] = peak(sdk, ours) - alone
    for name, figure in figures.items():
        if as_json:
            print(json.dumps({"sdk": sdk.name, "figure": name, "value": figure}), flush=True)
        else:
            print(f"{sdk.name:<11}{name:<60}{figure:>10.1f}", flush=True)
