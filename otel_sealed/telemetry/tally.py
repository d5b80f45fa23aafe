"""Counts and measurements of what is well, kept between two collections.

A counter's `add` and a histogram's `record` cost more than most of what is counted, and of calls
that are well nothing but the numbers is ever asked for. So counts are summed here, measurements
listed, and both given to the instruments while metrics are collected: an observable instrument's
callback runs before the synchronous ones of the same collection are read, so that each reader sees
them at once. What violates, and what took long, is counted at the call, with its span as exemplar.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from opentelemetry.context import Context

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opentelemetry.metrics import Counter, Histogram

    Count: TypeAlias = tuple[tuple[str, ...], Mapping[str, str], int]
    Measured: TypeAlias = "tuple[Histogram, float, Mapping[str, str]]"

MOST: Final = 1_000
"""Measurements that wait; where nothing collects, they are given away when they are as many."""
_UNLINKED: Final = Context()
"""Of measurements that lead to no span: an exemplar costs as much as the measurement."""


class Tally:
    """Sums and measurements of one process. One lock; as many sums as the labels have values."""

    def __init__(self, counters: Mapping[str, Counter]) -> None:
        """`counters`: the instruments by name."""
        self._counters = counters
        self._measured: list[Measured] = []
        self._sums: dict[tuple[str, ...], int] = {}
        self._labels: dict[tuple[str, ...], Mapping[str, str]] = {}
        self._lock = Lock()

    def add(self, metric: str, labels: Mapping[str, str], count: int) -> None:
        """Count; the labels of one metric always come in the same order."""
        key = (metric, *labels.values())
        with self._lock:
            if key in self._sums:
                self._sums[key] += count
            else:
                self._sums[key] = count
                self._labels[key] = labels

    def add_each(self, counts: Iterable[Count]) -> None:
        """Count what was planned."""
        with self._lock:
            sums = self._sums
            for key, labels, count in counts:
                if key in sums:
                    sums[key] += count
                else:
                    sums[key] = count
                    self._labels[key] = labels

    def measure(self, histogram: Histogram, value: float, labels: Mapping[str, str]) -> None:
        """Keep a measurement. Thread-safe: `append` is one step of the interpreter's."""
        measured = self._measured
        measured.append((histogram, value, labels))
        if len(measured) >= MOST:
            self._record()

    def flush(self) -> None:
        """Give the sums and the measurements to the instruments."""
        with self._lock:
            sums, labels = self._sums, self._labels
            self._sums, self._labels = {}, {}
        for key, count in sums.items():
            self._counters[key[0]].add(count, labels[key])
        self._record()

    def _record(self) -> None:
        with self._lock:
            measured = self._measured.copy()
            del self._measured[: len(measured)]
        for histogram, value, labels in measured:
            histogram.record(value, labels, _UNLINKED)
