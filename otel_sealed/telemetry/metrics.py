"""Instruments of design §3. No digest and no id is ever an attribute here.

`otel_sealed.violations` is what alerts stand on. A counter is born with its first value, and
`increase()` does not see a birth: so every series of it is created at 0, when a provider is
instrumented, and again at its first call, for the case that the meter provider came later.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from opentelemetry import metrics
from opentelemetry.metrics import Observation

from otel_sealed import vocab
from otel_sealed.model import Verdict
from otel_sealed.telemetry import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider

    from otel_sealed.model import Report

Labels: TypeAlias = "Mapping[str, str]"
VIOLATING: Final = tuple(verdict for verdict in Verdict if verdict.violates)
LEAK_PLACES: Final = ("span", "log")
_CLOSED: Final = 140
"""More than the series of all metrics whose labels are closed lists (violations, lookups, …)."""
_RESERVE: Final = 100
"""Series kept for folded names, so that the bound holds with every real name used up."""


class Series:
    """Keeps the number of attribute sets of a process below a bound.

    Up to `limit` less a reserve, a set is used as it is. After that a new one is folded: first its
    model, then the artifact and fate as well, which leaves a closed list.
    """

    def __init__(self, limit: int = vocab.MAX_SERIES - _CLOSED) -> None:
        self._open = max(limit - _RESERVE, 0)
        self._limit = limit
        self._seen: set[tuple[str, ...]] = set()
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._seen)

    def admit(self, metric: str, labels: Labels) -> Labels:
        """`labels` or a folded form of them."""
        with self._lock:
            if self._take(metric, labels, self._open):
                return labels
            if vocab.REQUEST_MODEL in labels:
                labels = {**labels, vocab.REQUEST_MODEL: vocab.FOLDED}
                if self._take(metric, labels, self._limit - _RESERVE // 2):
                    return labels
            folded = dict.fromkeys(labels, vocab.FOLDED)
            self._take(metric, folded, self._limit)
            return folded

    def _take(self, metric: str, labels: Labels, bound: int) -> bool:
        key = (metric, *(f"{name}={value}" for name, value in labels.items()))
        if key in self._seen:
            return True
        if len(self._seen) >= bound:
            return False
        self._seen.add(key)
        return True


class Metrics:
    """All instruments of one process."""

    def __init__(
        self,
        meter_provider: MeterProvider | None = None,
        *,
        version: str = "",
        entries: Callable[[], int] | None = None,
        state: Callable[[], str] = lambda: vocab.ACTIVE,
    ) -> None:
        """`entries` tells how many turns the ledger holds, `state` whether calls are observed."""
        meter = metrics.get_meter(vocab.SCOPE, version, meter_provider)
        self._counters = {
            metric.name: meter.create_counter(metric.name, metric.unit, metric.brief)
            for metric in vocab.METRICS
            if metric.instrument == "counter"
        }
        self._size = _histogram(meter, vocab.SIZE)
        self._duration = _histogram(meter, vocab.DURATION)
        if entries is not None:
            _observe(meter, vocab.ENTRIES, lambda: [Observation(entries())])
        _observe(meter, vocab.PROCESS_STATE, lambda: _states(state()))
        self._series = Series()
        self._primed: set[str] = set()
        self._lock = Lock()

    def prime(self, provider: str) -> None:
        """Create every series of the violations of `provider` at 0."""
        name = names.metric_provider(provider)
        for verdict in VIOLATING:
            labels = {vocab.PROVIDER: name, vocab.VERDICT: verdict.value}
            self._counters[vocab.VIOLATIONS.name].add(0, labels)
            self._counters[vocab.KNOWN_VIOLATIONS.name].add(0, labels)
        for place in LEAK_PLACES:
            self._counters[vocab.LEAKS.name].add(0, {vocab.PLACE: place})

    def call(
        self,
        report: Report,
        provider: str,
        *,
        check_s: float,
        context: Context | None = None,
        known: Sequence[bool] = (),
    ) -> None:
        """Count one call and all its findings. `context` links exemplars to its span.

        `known` says of each finding whether it is a known loss; empty if none is.
        """
        provider = names.metric_provider(provider)
        with self._lock:
            first = provider not in self._primed
            self._primed.add(provider)
        if first:
            self.prime(provider)
        who = {
            vocab.PROVIDER: provider,
            vocab.REQUEST_MODEL: names.base_model(report.facts.model),
        }
        verdict = report.verdict.value if report.verdict else vocab.NOTHING_SEALED
        self._add(vocab.CALLS, {vocab.VERDICT: verdict, **who}, 1, context)
        if report.rejection is not None:
            labels = {vocab.REJECTION_CLASS: report.rejection.value, **who}
            self._add(vocab.REJECTIONS, labels, 1, context)
        self._findings(report, who, context)
        self._violations(report, provider, context, known or [False] * len(report.findings))
        self._lookups(report, provider)
        self._duration.record(check_s, {vocab.PROVIDER: provider}, context)

    def _findings(self, report: Report, who: Labels, context: Context | None) -> None:
        checks = Counter((f.artifact, f.fate, f.verdict) for f in report.findings)
        for check in report.settled:
            checks[(check.artifact, check.fate, check.verdict)] += check.count
        for (artifact, fate, verdict), count in checks.items():
            labels = {
                vocab.ARTIFACT: vocab.word(artifact),
                vocab.FATE: fate.value,
                vocab.VERDICT: verdict.value,
                **who,
            }
            self._add(vocab.CHECKS, labels, count, context)
        for receipt in report.received:
            labels = {vocab.ARTIFACT: vocab.word(receipt.artifact), **who}
            admitted = self._series.admit(vocab.SIZE.name, labels)
            self._size.record(receipt.size, admitted, context)

    def _violations(
        self, report: Report, provider: str, context: Context | None, known: Sequence[bool]
    ) -> None:
        pairs = zip(report.findings, known, strict=True)
        counts = Counter((f.verdict, accepted) for f, accepted in pairs if f.verdict.violates)
        for (verdict, accepted), count in counts.items():
            metric = vocab.KNOWN_VIOLATIONS if accepted else vocab.VIOLATIONS
            labels = {vocab.PROVIDER: provider, vocab.VERDICT: verdict.value}
            self._counters[metric.name].add(count, labels, context)

    def _lookups(self, report: Report, provider: str) -> None:
        for result, count in (("hit", report.lookups_hit), ("miss", report.lookups_missed)):
            if count:
                labels = {vocab.LOOKUP_RESULT: result, vocab.PROVIDER: provider}
                self._counters[vocab.LOOKUPS.name].add(count, labels)

    def _add(
        self, metric: vocab.Metric, labels: Labels, count: int, context: Context | None
    ) -> None:
        self._counters[metric.name].add(count, self._series.admit(metric.name, labels), context)

    def internal_error(self, place: str, kind: str) -> None:
        """Count one swallowed fault of ours: where, and the class of the exception."""
        shown = kind if kind.isascii() and kind.isidentifier() else vocab.FOLDED
        labels = {vocab.PLACE: vocab.word(place), vocab.ERROR_TYPE: shown[:60]}
        self._add(vocab.INTERNAL_ERRORS, labels, 1, None)

    def leak(self, place: str, count: int = 1) -> None:
        """Count sealed values that were found in telemetry and taken out."""
        self._add(vocab.LEAKS, {vocab.PLACE: vocab.word(place)}, count, None)


def _states(now: str) -> list[Observation]:
    return [Observation(int(state == now), {vocab.STATE: state}) for state in vocab.STATES]


def _observe(
    meter: Meter, metric: vocab.Metric, values: Callable[[], Iterable[Observation]]
) -> None:
    def read(_: CallbackOptions) -> Iterable[Observation]:
        return values()

    meter.create_observable_up_down_counter(metric.name, [read], metric.unit, metric.brief)


def _histogram(meter: Meter, metric: vocab.Metric) -> Histogram:
    return meter.create_histogram(
        metric.name,
        metric.unit,
        metric.brief,
        explicit_bucket_boundaries_advisory=metric.boundaries,
    )
