"""What looking on costs, against the bare SDK, paired in one run.

    python benchmarks/cost.py [--sdk anthropic] [--case small] [--rounds 7] [--json]

Each round measures every arm of a case once, in an order that changes, in one process against a
transport in memory. The clock is the CPU time of the whole process: the exporting threads count,
and so does what is left to drain at the end. Quote the medians of the ratios. A null run (bare
against bare) is printed beside them; differences under 5 % mean nothing, and no more does anything
within the spread of the null run.

Cases: `small` are first calls of about 4 KB. `plain` are such calls with nothing sealed in them and
no thinking asked for: an answer of text and a tool call. `stream` are streams of 260 events, a
chunk each. `warm` are the last calls of a conversation that grew, a turn a call, to 100 turns and
1 MB; `first` is a call of that size by a process that never saw the conversation. `lossy` is `warm`
with a host that loses every seal, `window` with one that sends the last 20 turns only, and
`restarted` the calls that come after such a first one.

Arms: `ours` opens a span of its own. `enriching` writes on the active span of another tracer; its
base is that span alone, so that the price of the span is not counted as ours. The arms of a case
run in the same rounds; another instrumentation is another `Arm`, and `peers.py` measures those that
are on the market, each in a process of its own. An arm that watches and wrote on fewer
spans than there were calls ends the run: one that is asleep costs nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import frames
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind
from scenes import RANDOM, SDKS, Sdk, Wire

import otel_sealed

TURNS = 100
LAST = 12
WINDOW = 20
SMALL = 60
STREAMS = 12


class Nowhere(SpanExporter):
    """Takes spans and drops them; `ours` counts those that we wrote on."""

    ours = 0

    def export(self, spans: Any) -> SpanExportResult:
        """Take them."""
        self.ours += sum("otel_sealed.provider_verdict" in span.attributes for span in spans)
        return SpanExportResult.SUCCESS


# the anthropic SDK makes a span of its own, without a provider one that does not record; under it
# the one that is to be enriched would not be the active one
os.environ["ANTHROPIC_OPEN_TELEMETRY"] = "false"
NOWHERE = Nowhere()
TRACER = TracerProvider()
TRACER.add_span_processor(BatchSpanProcessor(NOWHERE))
READER = InMemoryMetricReader()
METER = MeterProvider(metric_readers=[READER])


def drain() -> None:
    """Have everything exported that waits for it."""
    TRACER.force_flush()
    READER.get_metrics_data()


def ours(sdk: str) -> AbstractContextManager[Any]:
    """We, on that SDK."""
    return otel_sealed.instrument(sdk, tracer_provider=TRACER, meter_provider=METER)


@contextmanager
def genai_span() -> Iterator[None]:
    """A span as other tracers of model calls open it."""
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "x",
        "gen_ai.request.model": "m",
    }
    tracer = TRACER.get_tracer("benchmark")
    with tracer.start_as_current_span("chat m", kind=SpanKind.CLIENT, attributes=about):
        yield


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to make the same calls.

    `base` is the arm it adds to. `around` is entered for a block of calls on the SDK of that name,
    `each` around each call.
    """

    name: str
    base: str
    around: Callable[[str], AbstractContextManager[Any]] = lambda _sdk: nullcontext()
    each: Callable[[], AbstractContextManager[Any]] = nullcontext


ARMS = [
    Arm("bare", ""),
    Arm("null", "bare"),
    Arm("ours", "bare", ours),
    Arm("spanned", "bare", each=genai_span),
    Arm("enriching", "spanned", ours, genai_span),
]


# ------------------------------------------------------------------------------------------ cases


def timed(
    sdk: Sdk,
    arm: Arm,
    client: Any,
    history: list[Any],
    *,
    stream: bool = False,
    plain: bool = False,
) -> float:
    """CPU seconds of one call, read to its end."""
    start = time.process_time()
    with arm.each():
        for _ in sdk.call(client, history, stream=stream, plain=plain):
            pass
    return time.process_time() - start


def first_calls(sdk: Sdk, arm: Arm, *, plain: bool = False) -> Iterator[float]:
    """Calls that begin a conversation each."""
    wire = Wire()
    client = sdk.client(wire)
    for number in range(SMALL):
        sdk.whole(wire, number, sdk.plain(number) if plain else sdk.turn(number))
        history = sdk.opening(f"Question {RANDOM.random()}")
        yield timed(sdk, arm, client, history, plain=plain)


def streams(sdk: Sdk, arm: Arm) -> Iterator[float]:
    """The same, streamed."""
    wire = Wire()
    client = sdk.client(wire)
    for number in range(STREAMS):
        sdk.stream(wire, number)
        history = sdk.opening(f"Question {RANDOM.random()}")
        yield timed(sdk, arm, client, history, stream=True)


def warm(sdk: Sdk, arm: Arm, *, lossy: bool = False, window: int = TURNS) -> Iterator[float]:
    """The last calls of a conversation that grew from nothing, its host faithful or lossy.

    Of the turns the host sends the last `window`.
    """
    wire = Wire()
    client = sdk.client(wire)
    opening = sdk.opening(f"Question {RANDOM.random()}")
    steps: list[list[Any]] = []
    for number in range(TURNS):
        turn = sdk.turn(number)
        sdk.whole(wire, number, turn)
        history = opening + [item for step in steps[-window:] for item in step]
        spent = timed(sdk, arm, client, history)
        steps.append(sdk.step(number, turn, lossy=lossy))
        if number >= TURNS - LAST:
            yield spent


def restarted(sdk: Sdk, arm: Arm) -> Iterator[float]:
    """The last calls of a conversation that another process began, but for the first of them."""
    wire = Wire()
    client = sdk.client(wire)
    history = sdk.opening(f"Question {RANDOM.random()}")
    for number in range(TURNS):
        turn = sdk.turn(number)
        if number >= TURNS - LAST - 1:
            sdk.whole(wire, number, turn)
            spent = timed(sdk, arm, client, history)
            if number >= TURNS - LAST:
                yield spent
        history += sdk.step(number, turn)


def first_sight(sdk: Sdk, arm: Arm) -> Iterator[float]:
    """Calls with a long history that this process never saw."""
    wire = Wire()
    client = sdk.client(wire)
    for _ in range(3):
        history = sdk.opening(f"Question {RANDOM.random()}")
        for number in range(TURNS):
            history += sdk.step(number, sdk.turn(number))
        sdk.whole(wire, 0, sdk.turn(0))
        yield timed(sdk, arm, client, history)


CASES: dict[str, Callable[[Sdk, Arm], Iterator[float]]] = {
    "small": first_calls,
    "plain": lambda sdk, arm: first_calls(sdk, arm, plain=True),
    "stream": streams,
    "warm": warm,
    "lossy": lambda sdk, arm: warm(sdk, arm, lossy=True),
    "window": lambda sdk, arm: warm(sdk, arm, window=WINDOW),
    "restarted": restarted,
    "first": first_sight,
}


def block(sdk: Sdk, arm: Arm, case: str) -> float:
    """CPU microseconds a call: the median call, and its share of what is drained at the end."""
    drain()
    gc.collect()
    watched = NOWHERE.ours
    with ExitStack() as stack:
        stack.enter_context(arm.around(sdk.name))
        spent = list(CASES[case](sdk, arm))
        start = time.process_time()
        drain()
        drained = (time.process_time() - start) / (
            TURNS if case in ("warm", "lossy", "window") else len(spent)
        )
    watched = NOWHERE.ours - watched
    if watched < len(spent) if arm.around is ours else watched:
        sys.exit(f"{case}, {arm.name}: {watched} spans of ours for {len(spent)} calls")
    return (statistics.median(spent) + drained) * 1e6


# ---------------------------------------------------------------------------------------- results


@dataclass(frozen=True, slots=True)
class Row:
    """One arm of one case: microseconds of the bare SDK and added to its base, and the ratio.

    `ratio` is that of bare with what was added to bare; `low` and `high` are its quartiles.
    """

    sdk: str
    case: str
    arm: str
    bare_us: float
    added_us: float
    ratio: float
    low: float
    high: float


def measure(sdk: Sdk, case: str, arms: list[Arm], rounds: int) -> Iterator[Row]:
    """All arms of one case."""
    for arm in arms:  # imports, caches, specialised bytecode
        block(sdk, arm, case)
    found: dict[str, list[float]] = {arm.name: [] for arm in arms}
    for _ in range(rounds):
        for arm in random.sample(arms, len(arms)):
            found[arm.name].append(block(sdk, arm, case))
    bare = found["bare"]
    for arm in arms:
        if not arm.base:
            continue
        added = [us - base for us, base in zip(found[arm.name], found[arm.base], strict=True)]
        ratios = [1 + more / base for more, base in zip(added, bare, strict=True)]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        yield Row(
            sdk.name,
            case,
            arm.name,
            statistics.median(bare),
            statistics.median(added),
            ratio,
            low,
            high,
        )


def main() -> None:
    """Run what is asked for and print it as it comes."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sdk", choices=[sdk.name for sdk in SDKS], action="append")
    options.add_argument("--case", choices=[*CASES, "frames"], action="append")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    if not chosen.json:
        print(
            f"{'sdk':<11}{'case':<8}{'arm':<11}{'bare us':>10}{'added us':>10}{'ratio':>8}  "
            "quartiles"
        )
    for sdk in SDKS:
        if chosen.sdk and sdk.name not in chosen.sdk:
            continue
        for case in CASES:
            if chosen.case and case not in chosen.case:
                continue
            for row in measure(sdk, case, ARMS, max(2, chosen.rounds)):
                show(row, as_json=chosen.json)
        if not chosen.case or "frames" in chosen.case:
            frames.show(sdk, lambda sdk=sdk: ours(sdk.name), as_json=chosen.json)


def show(row: Row, *, as_json: bool) -> None:
    """Print one row."""
    if as_json:
        print(json.dumps({name: getattr(row, name) for name in Row.__slots__}), flush=True)
        return
    spread = f"{row.low:.2f} to {row.high:.2f}"
    print(
        f"{row.sdk:<11}{row.case:<8}{row.arm:<11}{row.bare_us:>10.0f}{row.added_us:>10.0f}"
        f"{row.ratio:>8.2f}  {spread}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
