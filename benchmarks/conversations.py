"""What a call costs with many live conversations in one process, and what is kept of them.

    python benchmarks/conversations.py [--live 100,1000,10000] [--turns 5] [--alike] [--json]

Conversations take turns: each grows to `--turns` turns through the tracker, a call of each at a
time, and of the last round the calls are measured, in a sample spread over all. `resumed` is the
share of those calls that began at a checkpoint; where it falls, a call costs what a reading of
everything does. `--alike`: all begin with the same 4 KB. The clock is the CPU time of the process.

Memory is asked for in a second run under tracemalloc, of a thousand conversations at most: what is
freed when all checkpoints are forgotten, and by how much what was counted differs. `rss` is what
the process grew by in the first run, ledger included.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
import tracemalloc
from base64 import b64encode
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from otel_sealed.contract import Api, Exchange
from otel_sealed.tracker import Tracker

PREAMBLE = "Read the task, look at the repository, and answer in the form that was asked for. " * 50
MEASURED = 1_000
"""Calls that are timed, and conversations whose checkpoints are weighed: enough for a median."""


def answer(number: int, turn: int) -> dict[str, Any]:
    """The answer of a turn: the same bytes each time it is asked for."""
    source = random.Random(f"{number} {turn}")
    content = [
        {"type": "thinking", "thinking": source.randbytes(100).hex(), "signature": seal(source)},
        {"type": "text", "text": source.randbytes(100).hex()},
    ]
    return {
        "id": f"msg_{number}_{turn}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": content,
        "stop_reason": "end_turn",
    }


def seal(source: random.Random) -> str:
    """A signature as long as a short one of Anthropic's."""
    return b64encode(source.randbytes(301)).decode()


def call(number: int, turn: int, beginning: str) -> Exchange:
    """The call of a turn, with the history a faithful host sends."""
    said: list[dict[str, Any]] = [{"role": "user", "content": f"{beginning}Question {number}"}]
    for past in range(turn):
        said.append({"role": "assistant", "content": answer(number, past)["content"]})
        said.append({"role": "user", "content": f"And then, {past}?"})
    request = {"model": "claude-opus-5", "max_tokens": 900, "system": "A clerk.", "messages": said}
    return Exchange(
        api=Api.MESSAGES,
        provider="anthropic",
        host="api.anthropic.com",
        request=json.dumps(request).encode(),
        response=json.dumps(answer(number, turn)).encode(),
        status=200,
    )


def in_turn(live: int, turns: int, beginning: str) -> dict[str, float]:
    """Microseconds of a call of the last round, the share resumed, and MiB."""
    tracker, before = Tracker(b"k" * 32), resident()
    for turn in range(turns - 1):
        for number in range(live):
            tracker.observe(call(number, turn, beginning))
    step = max(live // MEASURED, 1)
    taken, resumed = [], []
    for number in range(live):
        one = call(number, turns - 1, beginning)
        start = time.process_time_ns()
        report = tracker.observe(one)
        if number % step == 0:
            taken.append((time.process_time_ns() - start) / 1e3)
            resumed.append(bool(report.settled))
    gc.collect()
    settled = tracker._core.cache  # noqa: SLF001 - what it counts is no part of the interface
    return {
        "live": live,
        "us": statistics.median(taken),
        "p90": statistics.quantiles(taken, n=10)[-1],
        "resumed": statistics.mean(resumed),
        "rss": (resident() - before) / 2**20,
        "kept": settled.held / 2**20 if settled is not None else 0,
    }


def held(live: int, turns: int, beginning: str) -> dict[str, float]:
    """MiB that are free when all checkpoints are forgotten, and what was counted."""
    tracker = Tracker(b"k" * 32)
    settled = tracker._core.cache  # noqa: SLF001 - the same
    if settled is None:
        raise SystemExit("this tracker keeps no checkpoints")
    tracemalloc.start()
    for turn in range(turns):
        for number in range(live):
            tracker.observe(call(number, turn, beginning))
    counted, keys = settled.held, list(settled._lines)  # noqa: SLF001 - the same
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for key in keys:
        settled._forget(key)  # noqa: SLF001 - the same
    del keys
    gc.collect()
    freed = before - tracemalloc.get_traced_memory()[0]
    return {"counted": counted / 2**20, "freed": freed / 2**20, "error": counted / freed - 1}


def resident() -> int:
    """Bytes of this process in memory."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * 4096


def isolated(function: Any, *arguments: Any) -> dict[str, float]:
    """The result of a process of its own, so that no run sees the memory of another."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found: dict[str, float] = pool.submit(function, *arguments).result()
        return found


def main(arguments: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--live", default="100,1000,10000")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--alike", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    beginning = PREAMBLE if given.alike else ""
    rows = []
    for live in map(int, given.live.split(",")):
        row = isolated(in_turn, live, given.turns, beginning)
        row |= isolated(held, min(live, MEASURED), given.turns, beginning)
        rows.append(row)
        if not given.json:
            print(
                f"{live:7} live  {row['us']:7.0f} us a call (p90 {row['p90']:.0f})  "
                f"resumed {row['resumed']:4.0%}  rss +{row['rss']:.0f} MiB  "
                f"kept {row['kept']:.1f} MiB  "
                f"counted {row['counted']:.2f} of {row['freed']:.2f} MiB ({row['error']:+.0%})"
            )
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
