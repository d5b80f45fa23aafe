"""What looking on costs: ratios to the bare SDK, paired in one run.

    python benchmarks/cost.py [--rounds 7] [--json]

Bare and watched blocks alternate in one process against a transport in memory; the clock is the CPU
time of the whole process, exporting threads included. Quote the medians of the ratios; a null run
(bare against bare) is printed beside them, and differences under 5 % mean nothing.
"""

from __future__ import annotations

import argparse
import base64
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import otel_sealed

RANDOM = random.Random(7)
Body = dict[str, Any]


class Nowhere(SpanExporter):
    """Takes spans and drops them."""

    def export(self, spans: Any) -> SpanExportResult:
        """Take them."""
        del spans
        return SpanExportResult.SUCCESS


def seal(size: int = 3000) -> str:
    """A signature of about 4 KB."""
    return base64.b64encode(RANDOM.randbytes(size)).decode()


def turn(number: int) -> list[Body]:
    """What the model said in one turn: thinking with a signature, and a tool call of its own id."""
    name = f"toolu_{RANDOM.getrandbits(64):016x}"
    thought = f"Thought {number}: " + "weigh the river against a plan. " * 30
    return [
        {"type": "thinking", "thinking": thought, "signature": seal()},
        {"type": "tool_use", "id": name, "name": "look_up", "input": {"q": number}},
    ]


def history(turns: int) -> tuple[list[Body], list[list[Body]]]:
    """Messages of a conversation, and what came in for each of its turns."""
    messages: list[Body] = [{"role": "user", "content": "Which ledger is right?"}]
    came = []
    for number in range(turns):
        content = turn(number)
        came.append(content)
        messages.append({"role": "assistant", "content": content})
        messages.append({"role": "user", "content": [result(number, content[-1]["id"])]})
    return messages, came


def result(number: int, name: str) -> Body:
    """A tool result that brings a turn to about 10 KB."""
    text = f"Result {number}: " + "an entry of the ledger with its sum. " * 130
    return {"type": "tool_result", "tool_use_id": name, "content": text}


class Wire:
    """A transport in memory that answers with whatever is set."""

    def __init__(self) -> None:
        """Nothing is set."""
        self.reply = b""
        self.kind = "application/json"

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Answer."""
        del request
        return httpx2.Response(200, headers={"content-type": self.kind}, content=self.reply)

    def answers(self, number: int, content: list[Body]) -> None:
        """The reply to the next calls."""
        self.kind = "application/json"
        self.reply = json.dumps(
            {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5",
                "content": content,
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 10, "output_tokens": 20},
            }
        ).encode()

    def streams(self, number: int, events: int) -> None:
        """A stream of about that many events as the reply to the next calls."""
        self.kind = "text/event-stream"
        start = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5",
            "content": [],
            "usage": {"input_tokens": 10, "output_tokens": 1},
        }
        said: list[Body] = [{"type": "message_start", "message": start}]
        block = {"type": "thinking", "thinking": "", "signature": ""}
        said.append({"type": "content_block_start", "index": 0, "content_block": block})
        for step in range(events):
            delta = {"type": "thinking_delta", "thinking": f"piece {step} "}
            said.append({"type": "content_block_delta", "index": 0, "delta": delta})
        delta = {"type": "signature_delta", "signature": seal()}
        said.append({"type": "content_block_delta", "index": 0, "delta": delta})
        said.append({"type": "content_block_stop", "index": 0})
        usage = {"output_tokens": 20}
        done = {"stop_reason": "end_turn", "stop_sequence": None}
        said += [{"type": "message_delta", "delta": done, "usage": usage}, {"type": "message_stop"}]
        self.reply = b"".join(
            f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in said
        )


@contextmanager
def watched(tracer: TracerProvider, meter: MeterProvider) -> Iterator[None]:
    """Instrumented, and taken off again."""
    with otel_sealed.instrument("anthropic", tracer_provider=tracer, meter_provider=meter):
        yield


@contextmanager
def bare() -> Iterator[None]:
    """Nothing."""
    yield


def client(wire: Wire) -> Any:
    """The SDK on the transport, its own tracing off."""
    import anthropic

    transport = httpx2.Client(transport=httpx2.MockTransport(wire))
    return anthropic.Anthropic(api_key="k", http_client=transport, max_retries=0)


def call(sdk: Any, messages: list[Body], *, stream: bool = False) -> None:
    """One call of an agent."""
    ask: Body = {
        "model": "claude-opus-5",
        "max_tokens": 4096,
        "thinking": {"type": "adaptive"},
        "messages": messages,
    }
    if stream:
        for _ in sdk.messages.create(**ask, stream=True):
            pass
    else:
        sdk.messages.create(**ask)


def small(sdk: Any, wire: Wire) -> int:
    """A hundred first calls."""
    for number in range(100):
        wire.answers(number, turn(number))
        call(sdk, [{"role": "user", "content": f"Question {RANDOM.random()}"}])
    return 100


def streamed(sdk: Any, wire: Wire) -> int:
    """Twenty streams of 260 events."""
    for number in range(20):
        wire.streams(number, 255)
        call(sdk, [{"role": "user", "content": f"Question {RANDOM.random()}"}], stream=True)
    return 20


def conversation(sdk: Any, wire: Wire, turns: int) -> Iterator[tuple[int, float]]:
    """A whole conversation, faithful: (turn, CPU seconds of its call)."""
    messages, came = history(turns)
    for number in range(turns):
        wire.answers(number, came[number])
        start = time.process_time()
        call(sdk, messages[: 1 + 2 * number])
        yield number, time.process_time() - start


CASES: dict[str, Callable[[Any, Wire], int]] = {"small": small, "stream": streamed}


def block(how: Callable[[], Any], case: Callable[[Any, Wire], int]) -> float:
    """CPU microseconds a call."""
    wire = Wire()
    with how():
        sdk = client(wire)
        gc.collect()
        start = time.process_time()
        calls = case(sdk, wire)
        return (time.process_time() - start) / calls * 1e6


def tail(how: Callable[[], Any], turns: int, last: int) -> float:
    """CPU microseconds a call, median of the last calls of a conversation."""
    wire = Wire()
    with how():
        sdk = client(wire)
        gc.collect()
        spent = [cost for _, cost in conversation(sdk, wire, turns)]
        return statistics.median(spent[-last:]) * 1e6


def main() -> None:
    """Run all cases and print their ratios."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    tracer = TracerProvider()
    tracer.add_span_processor(BatchSpanProcessor(Nowhere()))
    meter = MeterProvider(metric_readers=[InMemoryMetricReader()])

    def ours() -> Any:
        return watched(tracer, meter)

    measures: dict[str, Callable[[Callable[[], Any]], float]] = {
        name: (lambda how, case=case: block(how, case)) for name, case in CASES.items()
    }
    measures["100 turns, 1 MB"] = lambda how: tail(how, 100, 12)
    rows = []
    for name, measure in measures.items():
        measure(bare), measure(ours)
        pairs = [(measure(bare), measure(ours), measure(bare)) for _ in range(chosen.rounds)]
        ratio = statistics.median(b / a for a, b, _ in pairs)
        null = statistics.median(c / a for a, _, c in pairs)
        added = statistics.median(b - a for a, b, _ in pairs)
        base = statistics.median(a for a, _, _ in pairs)
        rows.append(
            {"case": name, "bare_us": base, "added_us": added, "ratio": ratio, "null": null}
        )
    if chosen.json:
        print("\n".join(json.dumps(row) for row in rows))
        return
    print(f"{'case':<18}{'bare us':>10}{'added us':>10}{'ratio':>8}{'null':>8}")
    for row in rows:
        print(
            f"{row['case']:<18}{row['bare_us']:>10.0f}{row['added_us']:>10.0f}"
            f"{row['ratio']:>8.2f}{row['null']:>8.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
