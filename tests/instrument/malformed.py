"""Malformed replies: how they are made from a good one, and what has to hold for each.

A shape is a reply that no provider should send. The plain SDK is run first; whatever comes of it,
an object or an exception, has to come of it with us as well, and the call has its span.
"""

from __future__ import annotations

import copy
import gc
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_sealed.instrument import finalizing, guard, instrument, uninstrument
from tests.instrument.inprocess import Clients, Reply, clients, dump

GONE: Final = object()
"""In place of a value: the key is left out."""
LONE: Final = "\ud83d"
DEEP: Final[Any] = json.loads("[" * 300 + "]" * 300)
NAN: Final = float("nan")
HUGE: Final = 10**400
BLOB: Final = "S" * 88

ERRORS: Final = "otel_sealed.internal.errors"

Drive = Callable[[Clients], Any]
Shapes = dict[str, Reply]


@dataclass(frozen=True, slots=True)
class Case:
    """One dialect: how an application asks, by delivery, and a good reply for each."""

    sdk: str
    drives: Mapping[str, Drive]
    good: Mapping[str, Reply]


def put(base: Any, path: str, value: Any) -> Any:
    """A copy of `base` with the value at a dotted path replaced, or left out."""
    made = copy.deepcopy(base)
    at = made
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in way:
        at = at[step]
    if value is GONE:
        del at[last]
    else:
        at[last] = value
    return made


def wrong(base: Any, table: Mapping[str, Iterable[Any]]) -> Iterator[tuple[str, Any]]:
    """(name, changed copy) for every value of every path in `table`."""
    for path, values in table.items():
        for value in values:
            yield f"{path}={label(value)}", put(base, path, value)


def amid(good: list[bytes], *frames: bytes) -> list[bytes]:
    """A good stream with frames put into its middle."""
    return [*good[:4], *frames, *good[4:]]


def frames_gone_wrong(good: list[bytes], name: bytes, whole_body: Any) -> dict[str, list[bytes]]:
    """Streams that are wrong as server-sent events, whatever the dialect; `name` is an event's."""
    event = b"event: " + name + b"\n"
    return {
        "data null": amid(good, event + b"data: null\n\n"),
        "data a list": amid(good, event + b"data: []\n\n"),
        "data a number": amid(good, event + b"data: 7\n\n"),
        "data no JSON": amid(good, event + b"data: {oops\n\n"),
        "data empty": amid(good, event + b"data:\n\n"),
        "no data": amid(good, event + b"\n"),
        "no event name": [part.split(b"\n", 1)[1] for part in good],
        "an error of null": amid(good, b"event: error\ndata: null\n\n"),
        "comments": amid(good, b": hello\n\n", b":\n", b"retry: x\n", b"id: \0\n\n"),
        "CRLF": [part.replace(b"\n", b"\r\n") for part in good],
        "nothing": [b""],
        "no blank line at the end": [*good[:-1], good[-1].rstrip()],
        "cut inside an escape": [*good[:2], event + b'data: {"t":"\\ud8'],
        "one byte at a time": [bytes([byte]) for part in good for byte in part],
        "a body of JSON": [json.dumps(whole_body).encode()],
    }


def label(value: Any) -> str:
    """A short name of a value."""
    if value is GONE:
        return "gone"
    if value is DEEP:
        return "deep"
    if value == HUGE:
        return "huge"
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:36]}~{len(text)}"


def attempt(drive: Drive, at: Clients, reply: Reply) -> tuple[bool, Any]:
    """(whether the SDK took it, what came of it)."""
    at.script.says(reply)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic's and the SDKs', about what we send on purpose
        try:
            return True, dump(drive(at))
        except Exception as error:  # noqa: BLE001 - any exception of an SDK is an outcome
            return False, dump(error)


def drained(call: Iterable[Any]) -> list[Any]:
    """All items of a stream; an error ends it and is told by the caller."""
    return list(call)


def check(case: Case, delivery: str, reply: Reply, monkeypatch: pytest.MonkeyPatch) -> None:
    """With us, strict and not, all is as without us; each call has its span, no fault is ours."""
    at = clients()
    drive, good = case.drives[delivery], case.good[delivery]
    attempt(drive, at, reply)  # openai tells what it met before by what it was then
    bare = [attempt(drive, at, reply), attempt(drive, at, good)]
    for strict in (True, False):
        monkeypatch.setattr(guard, "STRICT", strict)
        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        reader = InMemoryMetricReader()
        instrument(case.sdk, tracer_provider=provider, meter_provider=MeterProvider([reader]))
        try:
            seen = [attempt(drive, at, reply), attempt(drive, at, good)]
            if len(exporter.get_finished_spans()) < 2:
                gc.collect()  # older SDKs leave a stream that failed to the collector
                finalizing.catch_up()
        finally:
            uninstrument()
        assert bare == seen
        assert len(exporter.get_finished_spans()) == 2
        if not strict:  # else a fault of ours would have been another outcome
            counted = metrics_of(reader)
            assert ("otel_sealed.calls" in counted, ERRORS in counted) == (True, False)
        assert trace.get_current_span() is trace.INVALID_SPAN


def metrics_of(reader: InMemoryMetricReader) -> set[str]:
    """The names of the metrics that have been written to."""
    data = reader.get_metrics_data()
    found = data.resource_metrics if data is not None else ()
    return {m.name for r in found for scope in r.scope_metrics for m in scope.metrics}


def accepted(case: Case, delivery: str, shapes: Shapes) -> set[str]:
    """The shapes that the plain SDK takes without an exception."""
    at = clients()
    return {name for name, reply in shapes.items() if attempt(case.drives[delivery], at, reply)[0]}


def each(shapes: Mapping[str, Reply]) -> pytest.MarkDecorator:
    """One test for each shape, by its name."""
    return pytest.mark.parametrize("shape", list(shapes))
