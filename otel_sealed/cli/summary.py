"""One screen on what a run showed, from the files it left: what was seen, and what was not.

It never says that all is well of what could not be judged: values that came from elsewhere, calls
that failed, bodies that were not read and requests that nobody observed are counted and named
(`triage.sums`), and where there are any, the line above them says of how many calls it speaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from otel_sealed import vocab
from otel_sealed.cli import records
from otel_sealed.cli.records import Loss, Record
from otel_sealed.triage import sums, unobserved
from otel_sealed.triage.sums import Sums

MOST_ROWS: Final = 14
MOST_VALUES: Final = 100_000
"""Values told from each other on one screen: some 10 MB of digests."""
NOTHING_SEEN: Final = "otel-sealed doctor says what would be observed here, and what would not"
_WORST_FIRST: Final = ("breaks", "degrades")


@dataclass(slots=True)
class Summary:
    """What is counted."""

    calls: int = 0
    received: int = 0
    returned: int = 0
    sums: Sums = field(default_factory=Sums)
    values: set[tuple[bytes, str]] = field(default_factory=set, repr=False)
    losses: Counter[tuple[str, ...]] = field(default_factory=Counter)
    first: dict[tuple[str, ...], int] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, call: Record) -> None:
        """Count one call."""
        a = call.attributes
        self.calls += 1
        self.received += _count(a.get(vocab.RECEIVED_COUNT))
        # a value that was never seen coming in goes back all the same
        self.returned += _count(a.get(vocab.RETURNED_COUNT)) + sums.strangers(a)
        self.sums.short += not sums.in_full(a)
        if failed := sums.failed(a):
            self.sums.failed[failed] += 1
        if unread := sums.unread(a):
            self.sums.unread[unread] += 1
        for value in sums.unjudged(a, call.span):
            if value not in self.values and len(self.values) < MOST_VALUES:
                self.values.add(value)
                self.sums.unjudged[value[1]] += 1
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
    """Count what the files say of calls, and of requests that nobody observed."""
    files, summary = list(files), Summary()
    summary.sums.unobserved = unobserved.count(files)
    for call in records.calls(records.records(files)):
        summary.add(call)
    return summary


def lines(summary: Summary) -> list[str]:
    """The screen, without what is around it."""
    if not summary.calls:
        return [f"no call was observed; {NOTHING_SEEN}", *sums.screen(summary.sums)]
    received = f"{_plural(summary.received, 'seal')} received, {summary.returned:,} returned"
    shown = [f"{_plural(summary.calls, 'call')}, {received}", *_losses(summary)]
    if not summary.losses:
        shown.append(_verdict(summary))
    if summary.refusals:
        classes = ", ".join(f"{name} {n}" for name, n in summary.refusals.most_common(8))
        shown.append(f"the provider refused {summary.refusals.total()}: {classes}")
    return [*shown, *sums.screen(summary.sums)]


def _verdict(summary: Summary) -> str:
    """What can be said of calls in which no loss was seen."""
    found = summary.sums
    if found.failed.total() + found.unread.total() >= summary.calls:
        return "no call could be judged"
    if not found:
        return "nothing degrades or breaks"
    judged, total = found.judged(summary.calls)
    if not judged:
        return "no call could be judged in full"
    was = "was" if judged == 1 else "were"
    which = f"{judged:,} of {total:,} calls that {was} judged in full"
    return f"nothing degrades or breaks in the {which}"


def _losses(summary: Summary) -> Iterator[str]:
    rows = sorted(summary.losses, key=lambda key: (_WORST_FIRST.index(key[0]), summary.first[key]))
    widths = [max((len(key[at]) for key in rows), default=0) for at in range(4)]
    for key in rows[:MOST_ROWS]:
        cells = "  ".join(f"{key[at]:{widths[at]}}" for at in range(4))
        times = _plural(summary.losses[key], "time")
        known = ", known" if key[4] else ""
        yield f"  {cells}  {times}, first at {_clock(summary.first[key])}{known}"
    if len(rows) > MOST_ROWS:
        yield f"  and {len(rows) - MOST_ROWS} more kinds"


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _clock(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%H:%M:%SZ")
