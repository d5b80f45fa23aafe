"""What looking on adds where a call passes: in the process, through the proxy. Paired, on loopback.

    python benchmarks/mounts.py [--rounds 5] [--calls 60] [--streams 500] [--json]

An upstream on loopback answers with a whole body of 60 KB, or with a stream of 59 events. Each
round measures every arm once, in an order that changes: `direct` is a client alone, `transport` the
same with `instrument("http")`, `proxy` the same through `otel-sealed proxy` in a process of its
own. Given are the medians of the time to the first byte and of the whole call, and what each arm
adds to `direct`. Then so many streams run at once through the proxy, and its memory is read before
and after. An arm that judged fewer calls than there were ends the run: one that is asleep adds
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_sealed

HERE = "127.0.0.1"
ARMS = ("direct", "transport", "proxy")
ASK = {
    "model": "claude-opus-4-6",
    "max_tokens": 9,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [{"role": "user", "content": "x" * 2_000}],
}
SEAL = {"type": "thinking", "thinking": "So.", "signature": "c2VhbA" * 600}
WHOLE = json.dumps(
    {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [SEAL, {"type": "text", "text": "y" * 56_000}],
    }
).encode()
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "w"}}
EVENTS = [b"event: x\ndata: " + json.dumps(DELTA).encode() + b"\n\n" for _ in range(58)]
EVENTS.append(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


class Handler(BaseHTTPRequestHandler):
    """Answers a POST with a whole body or a stream, as the path says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class has it
        """Nothing."""

    def do_POST(self) -> None:
        """One call."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        stream = self.headers.get("x-stream")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        if not stream:
            self.send_header("content-length", str(len(WHOLE)))
            self.end_headers()
            self.wfile.write(WHOLE)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in EVENTS:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            if stream != "1":
                time.sleep(float(stream))
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    """Takes as many connections at once as are asked for."""

    daemon_threads = True
    request_queue_size = 4_096


@contextmanager
def upstream() -> Iterator[str]:
    """Its base URL."""
    server = Server((HERE, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HERE}:{server.server_address[1]}"
    finally:
        server.shutdown()


@contextmanager
def proxy(base: str) -> Iterator[tuple[str, subprocess.Popen[bytes], list[str]]]:
    """`otel-sealed proxy` in front of `base`: its URL, its process, and what it said at its end."""
    code = "import sys; from otel_sealed.cli import main; sys.exit(main())"
    said: list[str] = []
    environ = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-c", code, "proxy", "--upstream", f"anthropic={base}"],
            cwd=folder,
            env={**environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None  # noqa: S101 - a pipe was asked for
        line = process.stderr.readline().decode()
        found = re.search(r"(http://\S+)/anthropic", line)
        if found is None:
            raise SystemExit(f"the proxy did not start: {line}")
        try:
            yield found[1] + "/anthropic", process, said
        finally:
            process.send_signal(signal.SIGTERM)
            said.append(process.communicate(timeout=60)[1].decode())


def call(client: httpx.Client, url: str, *, stream: bool) -> tuple[float, float]:
    """Seconds to the first byte of the body, and to its end."""
    headers = {"x-api-key": "k", **({"x-stream": "1"} if stream else {})}
    began = time.perf_counter()
    with client.stream("POST", f"{url}/v1/messages", json=ASK, headers=headers) as reply:
        chunks = reply.iter_raw()
        next(chunks)
        first = time.perf_counter() - began
        for _ in chunks:
            pass
    return first, time.perf_counter() - began


def measure(rounds: int, calls: int) -> list[dict[str, Any]]:
    """The medians of each arm, whole and streamed."""
    found: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    judged = 0
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with (
        upstream() as base,
        proxy(base) as (through, _, said),
        httpx.Client(trust_env=False) as client,
    ):
        arms = [
            (arm, stream) for arm in ("direct", "transport", "proxy") for stream in (False, True)
        ]
        for _ in range(rounds):
            random.shuffle(arms)
            for arm, stream in arms:
                handle = (
                    otel_sealed.instrument("http", tracer_provider=tracers)
                    if arm == "transport"
                    else None
                )
                url = through if arm == "proxy" else base
                times = [call(client, url, stream=stream) for _ in range(calls)]
                found.setdefault((arm, stream), []).extend(times)
                if handle is not None:
                    handle.uninstrument()
                    judged += calls
    if len(exporter.get_finished_spans()) != judged:
        raise SystemExit(f"{len(exporter.get_finished_spans())} spans for {judged} calls")
    if f"through the proxy: {2 * rounds * calls} judged" not in said[0]:
        raise SystemExit(f"the proxy judged less than it passed: {said[0]}")
    rows = []
    for (arm, stream), times in sorted(found.items(), key=lambda one: one[0]):
        first, whole = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
        base_first, base_whole = (
            statistics.median(column) * 1e3 for column in zip(*found["direct", stream], strict=True)
        )
        rows.append(
            {
                "arm": arm,
                "case": "stream" if stream else "whole",
                "first_byte_ms": round(first, 3),
                "added_first_ms": round(first - base_first, 3),
                "call_ms": round(whole, 3),
                "added_ms": round(whole - base_whole, 3),
            }
        )
    return rows


def resident(pid: int) -> int:
    """Mebibytes that a process has in memory."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    found = re.search(r"VmRSS:\s+(\d+)", text)
    return int(found[1]) // 1024 if found else 0


async def at_once(url: str, count: int) -> float:
    """Seconds for so many streams at once, each of 59 events over three seconds."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(trust_env=False, limits=limits, timeout=120) as client:

        async def one() -> int:
            headers = {"x-api-key": "k", "x-stream": "0.05"}
            async with client.stream(
                "POST", f"{url}/v1/messages", json=ASK, headers=headers
            ) as reply:
                return sum([len(chunk) async for chunk in reply.aiter_raw()])

        began = time.perf_counter()
        sizes = await asyncio.gather(*(one() for _ in range(count)))
        if set(sizes) != {sum(map(len, EVENTS))}:
            raise SystemExit("a stream was cut")
        return time.perf_counter() - began


def streams(count: int) -> dict[str, Any]:
    """So many streams through the proxy, three times; its memory after each."""
    with upstream() as base, proxy(base) as (url, process, said):
        before = resident(process.pid)
        took, after = [], []
        for _ in range(3):
            took.append(round(asyncio.run(at_once(url, count)), 2))
            after.append(resident(process.pid))
    if f"through the proxy: {3 * count} judged" not in said[0]:
        raise SystemExit(f"the proxy judged less than it passed: {said[0]}")
    return {"streams": count, "seconds": took, "mib_before": before, "mib_after": after}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = [*measure(asked.rounds, asked.calls), streams(asked.streams)]
    if asked.json:
        print(*map(json.dumps, rows), sep="\n")
        return
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
