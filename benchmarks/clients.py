"""What the hooks at HTTP clients cost a request, against the bare client, paired in one run.

    python benchmarks/clients.py [--rounds 30]

Each round sends each sort of request with the hooks and without, in turn, through httpx over a
transport in memory. The clock is the CPU time of the process. Printed are the medians of the
differences, in microseconds a request: `get` and `other` are what every program sends, `turn` is a
call of a model that goes past the SDKs, which is counted.
"""

from __future__ import annotations

import argparse
import statistics
import time

import httpx
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import otel_sealed

SENDS = 500
URLS = {
    "get": ("GET", "https://example.org/v1/items"),
    "other": ("POST", "https://example.org/v1/items"),
    "turn": ("POST", "https://api.anthropic.com/v1/messages"),
}


def spent(client: httpx.Client, request: httpx.Request) -> float:
    """Microseconds of CPU time a request."""
    began = time.process_time()
    for _ in range(SENDS):
        client.send(request)
    return (time.process_time() - began) / SENDS * 1e6


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=30)
    rounds = options.parse_args().rounds
    meter = MeterProvider([InMemoryMetricReader()])
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as client:
        for name, (method, url) in URLS.items():
            request = client.build_request(method, url, content=b"x")
            added, bare = [], []
            for _ in range(rounds):
                without = spent(client, request)
                with otel_sealed.instrument(meter_provider=meter):
                    added.append(spent(client, request) - without)
                bare.append(without)
            print(f"{name:6} bare {statistics.median(bare):6.1f} us", end="  ")
            print(f"added {statistics.median(added):6.1f} us")


if __name__ == "__main__":
    main()
