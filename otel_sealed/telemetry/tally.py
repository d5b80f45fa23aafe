"""Counts of what is well, summed up between two collections.

A counter's `add` costs more than most of what is counted, and of calls that are well nothing but
their number is ever asked for. So they are summed here, and the sums given to the counters while
metrics are collected: an observable instrument's callback runs before the synchronous ones of the
same collection are read, so that each reader sees them at once. What violates is counted at the
call, with its span as exemplar.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opentelemetry.metrics import Counter

    Count: TypeAlias = tuple[tuple[str, ...], Mapping[str, str], int]


class Tally:
    """Sums of one process. One lock; as many entries as the labels have values."""

    def __init__(self, counters: Mapping[str, Counter]) -> None:
        """`counters`: the instruments by name."""
        self._counters = counters
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

    def flush(self) -> None:
        """Give the sums to the counters."""
        with self._lock:
            sums, labels = self._sums, self._labels
            self._sums, self._labels = {}, {}
        for key, count in sums.items():
            self._counters[key[0]].add(count, labels[key])
