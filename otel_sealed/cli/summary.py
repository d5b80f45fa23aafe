"""One screen on what a run showed, from the files it left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from otel_sealed import vocab
from otel_sealed.cli import records
from otel_sealed.cli.records import Loss, Record

MOST_ROWS: Final = 14
_WORST_FIRST: Final = ("breaks", "degrades")


@dataclass(slots=True)
class Summary:
    """What is counted."""

    calls: int = 0
    received: int = 0
    returned: int = 0
    losses: Counter[tuple[str, ...]] = field(default_factory=Counter)
    first: dict[tuple[str, ...], int] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, call: Record) -> None:
        """Count one call."""
        a = call.attributes
        self.calls += 1
        self.received += _count(a.get(vocab.RECEIVED_COUNT))
        self.returned += _count(a.get(vocab.RETURNED_COUNT))
        if a.get(vocab.PROVIDER_VERDICT) == "rejected":
            self.refusals[vocab.word(a.get(vocab.REJECTION_CLASS))] += 1
        for loss in records.losses([call]):
            key = _key(loss)
            self.losses[key] += 1
            self.first[key] = min(loss.at, self.first.get(key, loss.at))


def _key(loss: Loss) -> tuple[str, ...]:
    words = (loss.verdict, loss.fate, loss.artifact)
    known = "known" if loss.known else ""
    return (*(vocab.word(word) for word in words), vocab.rule_id(loss.rule), known)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def summarise(files: Iterable[Path]) -> Summary:
    """Count what the files say of calls."""
    summary = Summary()
    for call in records.calls(records.records(files)):
        summary.add(call)
    return summary


def lines(summary: Summary) -> list[str]:
    """The screen, without what stands around it."""
    if not summary.calls:
        return ["no call was observed"]
    received = f"{_plural(summary.received, 'seal')} received, {summary.returned:,} returned"
    shown = [f"{_plural(summary.calls, 'call')}, {received}"]
    rows = sorted(summary.losses, key=lambda key: (_WORST_FIRST.index(key[0]), summary.first[key]))
    if not rows:
        shown.append("nothing degrades or breaks")
    widths = [max((len(key[at]) for key in rows), default=0) for at in range(4)]
    for key in rows[:MOST_ROWS]:
        cells = "  ".join(f"{key[at]:{widths[at]}}" for at in range(4))
        times = _plural(summary.losses[key], "time")
        known = ", known" if key[4] else ""
        shown.append(f"  {cells}  {times}, first at {_clock(summary.first[key])}{known}")
    if len(rows) > MOST_ROWS:
        shown.append(f"  and {len(rows) - MOST_ROWS} more kinds")
    if summary.refusals:
        classes = ", ".join(f"{name} {n}" for name, n in summary.refusals.most_common(8))
        shown.append(f"the provider refused {summary.refusals.total()}: {classes}")
    return shown


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _clock(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%H:%M:%SZ")
