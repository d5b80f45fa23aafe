"""What we cost beside the others, against the bare SDK, paired in one run.

    python benchmarks/peers.py [--sdk anthropic] [--rounds 7] [--json]

`.ci/run peers` installs the others and runs it. Every arm is a process of its own with one
instrumentation at its defaults, over a transport in memory; in each round every arm does the same
block of work once, the bare SDK first and last. The clock is the CPU time of the arm's whole
process, its export thread included: spans and log records are encoded as OTLP, and dropped.

Printed are medians over the rounds of each arm's ratio to the first bare block of its round. `null`
is the last bare block, by a process of its own: what its ratio is off from 1 is noise. Differences
under 5 % mean nothing, and are printed as `=`. `spans` says how many an arm made for each call: one
that makes none is not watching.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from scenes import RANDOM, Sdk, Wire
from scenes import SDKS as ALL

SDKS: Final = {sdk.name: sdk for sdk in ALL}
SMALL: Final = 60
STREAMS: Final = 12
TURNS: Final = {"anthropic": 100, "openai": 40, "google": 40}
"""Turns of the conversation; the typed histories of the other two cost them 10 times as much."""
NOISE: Final = 0.05
NATIVE: Final = "ANTHROPIC_OPEN_TELEMETRY"
_KEPT: Final[list[Any]] = []
_SEEN: Final[list[int]] = []
CASES: Final = ("small", "stream", "growing")


@dataclass(frozen=True)
class Arm:
    """One way to watch an SDK. `puts` are `module:Class`, `logfire:method` or `ours`, in order."""

    puts: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    @property
    def installed(self) -> bool:
        """Whether everything it needs is here."""
        return all(_there(put.partition(":")[0]) for put in self.puts if put != "ours")


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


_OTEL: Final = "opentelemetry.instrumentation"
_INFERENCE: Final = "openinference.instrumentation"
ARMS: Final[dict[str, dict[str, Arm]]] = {
    "anthropic": {
        "ours": Arm(("ours",)),
        "native": Arm(env={NATIVE: "true"}),
        "native + ours": Arm(("ours",), {NATIVE: "true"}),
        "opentelemetry": Arm((f"{_OTEL}.genai.anthropic:AnthropicInstrumentor",)),
        "opentelemetry + ours": Arm((f"{_OTEL}.genai.anthropic:AnthropicInstrumentor", "ours")),
        "openinference": Arm((f"{_INFERENCE}.anthropic:AnthropicInstrumentor",)),
        "openllmetry": Arm((f"{_OTEL}.anthropic:AnthropicInstrumentor",)),
        "logfire": Arm(("logfire:instrument_anthropic",)),
    },
    "openai": {
        "ours": Arm(("ours",)),
        "opentelemetry": Arm((f"{_OTEL}.genai.openai:OpenAIInstrumentor",)),
        "openinference": Arm((f"{_INFERENCE}.openai:OpenAIInstrumentor",)),
        "openllmetry": Arm((f"{_OTEL}.openai:OpenAIInstrumentor",)),
        "logfire": Arm(("logfire:instrument_openai",)),
    },
    "google": {
        "ours": Arm(("ours",)),
        "opentelemetry": Arm((f"{_OTEL}.google_genai:GoogleGenAiSdkInstrumentor",)),
        "openinference": Arm((f"{_INFERENCE}.google_genai:GoogleGenAIInstrumentor",)),
        "openllmetry": Arm((f"{_OTEL}.google_generativeai:GoogleGenerativeAiInstrumentor",)),
        "logfire": Arm(("logfire:instrument_google_genai",)),
    },
}
"""Logfire's instrumentation of google-genai is OpenTelemetry's, with its content capture on."""


# --------------------------------------------------------------------------- inside an arm


class Work:
    """The cases, over one client. Each returns how many calls it made."""

    def __init__(self, sdk: Sdk) -> None:
        """The client is made once, after whatever watches it was put on."""
        self._sdk = sdk
        self._wire = Wire()
        self._client = sdk.client(self._wire)

    def small(self) -> int:
        """First calls of conversations."""
        for number in range(SMALL):
            self._sdk.whole(self._wire, number, self._sdk.turn(number))
            self._call(self._opening())
        return SMALL

    def stream(self) -> int:
        """The same, streamed."""
        for number in range(STREAMS):
            self._sdk.stream(self._wire, number)
            self._call(self._opening(), stream=True)
        return STREAMS

    def growing(self) -> int:
        """A conversation that grows by a turn a call, faithful."""
        history, turns = self._opening(), TURNS[self._sdk.name]
        for number in range(turns):
            turn = self._sdk.turn(number)
            self._sdk.whole(self._wire, number, turn)
            self._call(history)
            history = [*history, *self._sdk.step(number, turn)]
        return turns

    def _opening(self) -> list[Any]:
        return self._sdk.opening(f"Question {RANDOM.random()}")

    def _call(self, history: list[Any], *, stream: bool = False) -> None:
        for _ in self._sdk.call(self._client, history, stream=stream):
            pass


def _telemetry() -> tuple[Any, Any]:
    """Global providers whose exporters encode what they get; (span processor, log processor)."""
    from opentelemetry import _logs, metrics, trace
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import (
        BatchLogRecordProcessor,
        LogRecordExporter,
        LogRecordExportResult,
    )
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    class Spans(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            encode_spans(spans).SerializeToString()
            _SEEN.append(len(spans))
            return SpanExportResult.SUCCESS

    class Logs(LogRecordExporter):
        def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
            encode_logs(batch).SerializeToString()
            return LogRecordExportResult.SUCCESS

        def shutdown(self) -> None:
            pass

        def force_flush(self, timeout_millis: int = 0) -> bool:
            return timeout_millis >= 0

    spans, logs = BatchSpanProcessor(Spans()), BatchLogRecordProcessor(Logs())
    tracer, logger = TracerProvider(), LoggerProvider()
    tracer.add_span_processor(spans)
    logger.add_log_record_processor(logs)
    trace.set_tracer_provider(tracer)
    _logs.set_logger_provider(logger)
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    return spans, logs


def _put(name: str, sdk: str, spans: Any) -> None:
    module, _, kind = name.partition(":")
    if name == "ours":
        import otel_sealed

        otel_sealed.instrument(sdk)
    elif module == "logfire":
        logfire: Any = importlib.import_module(module)
        logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[spans])
        made = getattr(logfire, kind)()
        if hasattr(made, "__enter__"):
            made.__enter__()  # some are switched on by entering, and off when nobody keeps them
            _KEPT.append(made)
    else:
        getattr(importlib.import_module(module), kind)().instrument(skip_dep_check=True)


def serve(sdk: str, arm: Arm) -> None:
    """Do what the parent asks for, a case a line; answer CPU microseconds and spans a call."""
    processors = _telemetry()
    for name in arm.puts:
        _put(name, sdk, processors[0])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever others print goes elsewhere
    work = Work(SDKS[sdk])
    for line in sys.stdin:
        case = getattr(work, line.strip())
        gc.collect()
        _SEEN.clear()
        start = time.process_time()
        calls = case()
        for processor in processors:
            processor.force_flush()
        spent = (time.process_time() - start) / calls * 1e6
        print(spent, sum(_SEEN) / calls, file=answers, flush=True)


# --------------------------------------------------------------------------- in the parent


class Child:
    """The process of an arm."""

    def __init__(self, sdk: str, name: str, arm: Arm) -> None:
        """Started, and waiting for work."""
        self.spans = 0.0
        self._name = f"--sdk {sdk} --arm '{name}'"
        self._process = subprocess.Popen(  # noqa: S603 - this file again
            [sys.executable, __file__, "--sdk", sdk, "--arm", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, NATIVE: "false", "TRACELOOP_TELEMETRY": "false", **arm.env},
        )

    def __call__(self, case: str) -> float:
        """CPU microseconds a call; an arm that died says so. `spans` are those of the last one."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("no pipes")
        stdin.write(f"{case}\n")
        stdin.flush()
        told = stdout.readline()
        if not told:
            raise SystemExit(f"an arm died; to see why: echo {case} | {__file__} {self._name}")
        spent, spans = told.split()
        self.spans = float(spans)
        return float(spent)

    def stop(self) -> None:
        """No more work."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


@contextmanager
def children(sdk: str, arms: dict[str, Arm]) -> Iterator[dict[str, Child]]:
    """A process for each arm."""
    made = {name: Child(sdk, name, arm) for name, arm in arms.items()}
    try:
        yield made
    finally:
        for child in made.values():
            child.stop()


def compare(sdk: str, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for each case and arm."""
    arms = {"bare": Arm(), **ARMS[sdk], "null": Arm()}
    for name in [name for name, arm in arms.items() if not arm.installed]:
        del arms[name]
        print(f"{sdk}: {name} is not installed", file=sys.stderr)
    with children(sdk, arms) as at:
        for case in CASES:
            for child in at.values():
                child(case)
            spent = []
            for number in range(rounds):
                print(f"{sdk} {case} {number + 1}/{rounds}", file=sys.stderr)
                spent.append({name: child(case) for name, child in at.items()})
            bare = statistics.median(one["bare"] for one in spent)
            for name in [name for name in arms if name != "bare"]:
                ratios = sorted(one[name] / one["bare"] for one in spent)
                yield {
                    "sdk": sdk,
                    "case": case,
                    "arm": name,
                    "bare_us": bare,
                    "spans": at[name].spans,
                    "added_us": statistics.median(one[name] - one["bare"] for one in spent),
                    "ratio": statistics.median(ratios),
                    "least": ratios[0],
                    "most": ratios[-1],
                }


def main() -> None:
    """Compare and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sdk", choices=SDKS, action="append")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", action="store_true")
    options.add_argument("--arm", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.arm is not None:
        (sdk,) = chosen.sdk
        serve(sdk, ARMS[sdk].get(chosen.arm, Arm()))
        return
    head = (
        f"{'sdk':<10}{'case':<9}{'arm':<22}{'spans':>6}{'bare us':>9}{'added us':>10}{'ratio':>7}"
        "  range"
    )
    if not chosen.json:
        print(head)
    for sdk in chosen.sdk or SDKS:
        for row in compare(sdk, chosen.rounds):
            if chosen.json:
                print(json.dumps(row), flush=True)
                continue
            ratio = "=" if abs(row["ratio"] - 1) < NOISE else f"{row['ratio']:.2f}"
            print(
                f"{row['sdk']:<10}{row['case']:<9}{row['arm']:<22}{row['spans']:>6.1f}"
                f"{row['bare_us']:>9.0f}{row['added_us']:>+10.0f}{ratio:>7}"
                f"  {row['least']:.2f} to {row['most']:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
