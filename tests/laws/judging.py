"""What a tracker says of an exchange, as values that laws compare. Only the public API is used."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, settings

from otel_sealed.contract import Exchange
from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from tests.core.conversations import KEY

MANY = int(os.environ.get("OTEL_SEALED_LAWS", "0"))
"""Examples of each law in the long profile (`.ci/run laws`); 0: the short one, always the same."""


def profile(examples: int = 40) -> settings:
    """The settings of one law; `examples` in the short profile."""
    return settings(
        max_examples=MANY or examples,
        derandomize=not MANY,
        database=None,
        deadline=None,
        print_blob=False,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


class Row(NamedTuple):
    """One row of a report; `turn` is the exchange its artifact came in, or -1."""

    artifact: str
    fate: str
    verdict: str
    rule: str
    cause: str
    turn: int
    came: str
    returned: str
    sizes: tuple[int | None, int | None]

    @property
    def violates(self) -> bool:
        """Whether it accuses."""
        return self.verdict in ("degrades", "breaks")


def rows(report: Report) -> list[Row]:
    """All rows of a report that has one for each artifact (of a tracker that settles nothing)."""
    return sorted(
        Row(
            f.artifact,
            f.fate.value,
            f.verdict.value,
            f.rule,
            f.cause.value if f.cause else "",
            f.received.exchange if f.received else -1,
            f.received.path if f.received else "",
            f.returned or "",
            (f.size_in, f.size_out),
        )
        for f in report.findings
    )


def fresh() -> Tracker:
    """A tracker that judges each request as a whole."""
    return Tracker(KEY, settles=False)


def after(exchanges: Iterable[Exchange]) -> Tracker:
    """A tracker that has seen these."""
    tracker = fresh()
    for exchange in exchanges:
        tracker.observe(exchange)
    return tracker


def counted(report: Report) -> Counter[tuple[Any, ...]]:
    """Rows by what a checkpoint keeps of them, those included that have no finding."""
    found: Counter[tuple[Any, ...]] = Counter(
        (f.artifact, f.fate, f.verdict, f.rule) for f in report.findings
    )
    for check in report.settled:
        found[(check.artifact, check.fate, check.verdict, check.rule)] += check.count
    return found
