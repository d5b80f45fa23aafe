"""Counts of what is well are summed up, and every reader gets them with the next collection."""

from __future__ import annotations

import threading
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_sealed import vocab
from otel_sealed.telemetry.emit import Emitter, Providers
from otel_sealed.telemetry.settings import Settings
from otel_sealed.telemetry.tally import MOST, Tally
from tests.telemetry.builders import KEY, report


class Counted:
    """A counter that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[int, dict[str, str]]] = []

    def add(self, count: int, labels: dict[str, str]) -> None:
        self.given.append((count, labels))


def total(reader: InMemoryMetricReader, name: str) -> float:
    data: Any = reader.get_metrics_data()
    found: list[float] = [
        point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]
    return sum(found)


def test_every_reader_sees_the_calls_at_its_next_collection() -> None:
    readers = [InMemoryMetricReader(), InMemoryMetricReader()]
    emitter = Emitter(Settings(), key=KEY, providers=Providers(meter=MeterProvider(readers)))
    for calls in (3, 5):
        for _ in range(calls):
            emitter.emit(report(), None, owned=False)
        assert len({total(reader, vocab.CALLS.name) for reader in readers}) == 1
    assert [8, 8] == [total(reader, vocab.CALLS.name) for reader in readers]


def test_a_sum_is_given_once_with_its_labels() -> None:
    counter: Any = Counted()
    tally = Tally({"m": counter})
    tally.add("m", {"a": "x"}, 2)
    tally.add("m", {"a": "x"}, 3)
    tally.add("m", {"a": "y"}, 1)
    tally.flush()
    tally.flush()
    assert [(5, {"a": "x"}), (1, {"a": "y"})] == counter.given


def test_no_count_is_lost_between_threads_and_collections() -> None:
    counter: Any = Counted()
    tally = Tally({"m": counter})

    def count() -> None:
        for _ in range(2_000):
            tally.add("m", {"a": "x"}, 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tally.flush()
    tally.flush()
    assert 8_000 == sum(given for given, _ in counter.given)


class Measured:
    """A histogram that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[float, dict[str, str], Any]] = []

    def record(self, value: float, labels: dict[str, str], context: Any) -> None:
        self.given.append((value, labels, context))


def test_a_measurement_is_given_once_with_its_labels_and_without_a_span() -> None:
    histogram: Any = Measured()
    tally = Tally({})
    tally.measure(histogram, 0.5, {"a": "x"})
    tally.flush()
    tally.flush()
    assert [(0.5, {"a": "x"}, {})] == histogram.given


def test_measurements_that_nobody_collects_are_given_away_when_they_are_many() -> None:
    histogram: Any = Measured()
    tally = Tally({})
    for _ in range(MOST + 1):
        tally.measure(histogram, 1, {})
    assert len(histogram.given) == MOST


def test_measurements_of_several_threads_are_all_given() -> None:
    histogram: Any = Measured()
    tally = Tally({})

    def measure() -> None:
        for _ in range(3 * MOST):
            tally.measure(histogram, 1, {})

    threads = [threading.Thread(target=measure) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.flush()
    assert len(histogram.given) == 4 * 3 * MOST
