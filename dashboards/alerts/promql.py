"""PromQL made of the vocabulary: the names Prometheus gives to metrics and attributes, and shapes.

The names are those that both ways into Prometheus agree on: scraping the Python exporter, and OTLP
under the default translation. What differs between them (scope labels, resource attributes, `job`)
is never matched on; everything is summed over what is ours and over who reports it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from otel_sealed import vocab

SERVICE: Final = ("service_name", "exported_job", "job")
"""Labels that may name the service, whichever are there: a resource attribute that was promoted,
the job behind a Collector, the job. One that a series lacks falls out of the grouping."""
TARGET_INFO: Final = "target_info"
"""What both ways in have of every process that exports metrics, with ours or without."""
_SUFFIXES: Final = {"By": "_bytes", "s": "_seconds"}
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def label(attribute: str) -> str:
    """The label of an attribute."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", attribute)


def name(metric: vocab.Metric) -> str:
    """The name of a metric; of a histogram the stem of its three."""
    stem = label(metric.name) + _SUFFIXES.get(metric.unit, "")
    return f"{stem}_total" if metric.instrument == "counter" else stem


def duration(seconds: float) -> str:
    """A duration as PromQL and rule files write it, in the largest unit that fits."""
    milliseconds = round(seconds * 1000)
    for unit, size in _UNITS:
        if milliseconds % (size * 1000) == 0:
            return f"{milliseconds // (size * 1000)}{unit}"
    return f"{milliseconds}ms"


def selector(metric: vocab.Metric, *matchers: tuple[str, str, str]) -> str:
    """A metric and what is asked of its attributes, each as (attribute, operator, value)."""
    shown = ", ".join(f'{label(key)}{operator}"{value}"' for key, operator, value in matchers)
    return f"{name(metric)}{{{shown}}}" if shown else name(metric)


@dataclass(frozen=True, slots=True)
class Clock:
    """How long things take. `scale` shortens all of it alike, so that a test need not wait."""

    scale: float = 1.0

    def of(self, seconds: float) -> str:
        """A duration."""
        return duration(seconds * self.scale)


MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
BORN: Final = HOUR
"""A series that was not there for so long before the window is a new one: shorter, and a scrape
that failed for a while would make an old counter count as news."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How much counters grew within a window, counting those that were born in it.

    `increase()` compares samples, so it does not see the value a series is born with; and the first
    violation of a process is born at 1. A process starts at nothing, so what a new series stands at
    is what happened. A counter that starts again under the same labels is `increase()`'s business.
    """

    clock: Clock
    selector: str
    window_s: int

    def by(self, *labels: str) -> str:
        """Summed by the service and these labels."""
        return f"sum by ({', '.join((*SERVICE, *labels))}) (\n{_indent(self._each())}\n)"

    def _each(self) -> str:
        window, born = self.clock.of(self.window_s), self.clock.of(BORN)
        return (
            f"(\n"
            f"    max_over_time({self.selector}[{window}])\n"
            f"  unless\n"
            f"    max_over_time({self.selector}[{born}] offset {window})\n"
            f")\n"
            f"or increase({self.selector}[{window}])"
        )


def _indent(text: str, by: int = 2) -> str:
    return "\n".join(f"{' ' * by}{line}" for line in text.split("\n"))


def group(text: str) -> str:
    """An expression in parentheses, on lines of its own."""
    return f"(\n{_indent(text)}\n)"


def on(*labels: str) -> str:
    """Matching on the service and these labels."""
    return f"on ({', '.join((*SERVICE, *labels))})"
