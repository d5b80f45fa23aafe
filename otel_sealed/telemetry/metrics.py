"""The instruments (docs/attributes.md#metrics). No digest and no id is ever an attribute here.

`otel_sealed.violations` is what alerts stand on. A counter is born with its first value, and
`increase()` does not see a birth: so every series of it is created at 0, when a provider is
instrumented, and again at its first call, for the case that the meter provider came later.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from opentelemetry import metrics, trace
from opentelemetry.metrics import Observation

from otel_sealed import vocab
from otel_sealed.model import Fate, ProviderVerdict, Rejection, Verdict
from otel_sealed.telemetry import names
from otel_sealed.telemetry.events import objected
from otel_sealed.telemetry.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider
    from opentelemetry.trace import Span

    from otel_sealed.model import Finding, Report
    from otel_sealed.telemetry.tally import Count

Labels: TypeAlias = "Mapping[str, str]"
VIOLATING: Final = tuple(verdict for verdict in Verdict if verdict.violates)
LEAK_PLACES: Final = ("span", "log")
SLOW_S: Final = 0.001
"""A check of so many seconds leads to its span; most take a tenth of it, and it costs as much."""
_CLOSED: Final = 140
"""More than the series of all metrics whose labels are closed lists (violations, lookups, …)."""
_HOSTS: Final = 16
"""Hosts told apart by a process: gateways and endpoints are few, and a host for each customer
must not use up the series."""
_NAMED_BY_OTHERS: Final = frozenset({vocab.REQUEST_MODEL, vocab.SERVER_ADDRESS})
_DETAILS: Final = frozenset({vocab.ARTIFACT, vocab.FATE, vocab.RULE, vocab.CAUSE, vocab.LOCUS})
_RESERVE: Final = 100
"""Series kept for folded names, so that the bound holds with every real name used up."""


class Series:
    """Keeps the number of attribute sets of a process below a bound.

    Up to `limit` less a reserve, a set is used as it is. After that a new one is folded: first its
    model and host, then what was found of which artifact as well; the verdicts, which alerts stand
    on, stay. Only where even that is too much is everything folded.
    """

    def __init__(self, limit: int = vocab.MAX_SERIES - _CLOSED) -> None:
        self._open = max(limit - _RESERVE, 0)
        self._limit = limit
        self._seen: set[tuple[object, ...]] = set()
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._seen)

    def admit(self, metric: str, labels: Labels, *alike: str) -> Labels:
        """`labels` or a folded form of them, one form for `metric` and all `alike` it.

        Metrics that are divided by each other have to be folded together.
        """
        metrics = (metric, *alike)
        with self._lock:
            if self._take(metrics, labels, self._open):
                return labels
            for names, kept in ((_NAMED_BY_OTHERS, _RESERVE // 2), (_DETAILS, _RESERVE // 4)):
                if folding := labels.keys() & names:
                    labels = {**labels, **dict.fromkeys(folding, vocab.FOLDED)}
                    if self._take(metrics, labels, self._limit - kept):
                        return labels
            folded = dict.fromkeys(labels, vocab.FOLDED)
            self._take(metrics, folded, self._limit)
            return folded

    def _take(self, metrics: tuple[str, ...], labels: Labels, bound: int) -> bool:
        new = {(metric, *labels.items()) for metric in metrics} - self._seen
        if new and len(self._seen) + len(new) > bound:
            return False
        self._seen |= new
        return True


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is read at each collection instead of being counted.

    Attributes:
        entries: How many turns the ledger holds; None where nobody knows.
        evicted: How many it has forgotten to stay within its bound.
        state: Whether calls are observed, as `vocab.STATES` has it.
        seams: How many methods of SDKs are wrapped, and how many were not found.
    """

    entries: Callable[[], int] | None = None
    evicted: Callable[[], int] = lambda: 0
    state: Callable[[], str] = lambda: vocab.ACTIVE
    seams: Callable[[], tuple[int, int]] = lambda: (0, 0)


class Counted(NamedTuple):
    """What a call of a known shape adds to the metrics; its labels are admitted already."""

    counts: tuple[Count, ...]
    sizes: tuple[Labels, ...]
    duration: Labels


class Metrics:
    """All instruments of one process."""

    def __init__(
        self,
        meter_provider: MeterProvider | None = None,
        *,
        version: str = "",
        gauges: Gauges | None = None,
    ) -> None:
        """`gauges`: what is asked for at each collection."""
        read = gauges or Gauges()
        meter = metrics.get_meter(vocab.SCOPE, version, meter_provider)
        self._counters = {
            metric.name: meter.create_counter(metric.name, metric.unit, metric.brief)
            for metric in vocab.METRICS
            if metric.instrument == "counter" and metric is not vocab.EVICTIONS
        }
        self._tally = Tally(self._counters)
        self._size = _histogram(meter, vocab.SIZE)
        self._duration = _histogram(meter, vocab.DURATION)
        if (entries := read.entries) is not None:
            _observe(meter, vocab.ENTRIES, lambda: [Observation(entries())])
        _observe(meter, vocab.EVICTIONS, lambda: [Observation(read.evicted())])
        _observe(meter, vocab.PROCESS_STATE, lambda: _states(read.state()))
        _observe(meter, vocab.SEAMS, lambda: _seams(*read.seams()))
        self._series = Series()
        self._hosts: set[str] = set()
        self._primed: set[str] = set()
        self._lock = Lock()

    def prime(self, provider: str) -> None:
        """Create every series of the violations of `provider` at 0."""
        name = names.metric_provider(provider)
        for verdict in VIOLATING:
            labels = {vocab.PROVIDER: name, vocab.VERDICT: verdict.value}
            self._counters[vocab.VIOLATIONS.name].add(0, labels)
            self._counters[vocab.KNOWN_VIOLATIONS.name].add(0, labels)
        self._unread("size", name, 0)
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
        """Count one call and all its findings. `context` links what violates to its span.

        `known` says of each finding whether it is a known loss; empty if none is.
        """
        provider = self._known(provider)
        who = {
            vocab.PROVIDER: provider,
            vocab.REQUEST_MODEL: names.base_model(report.facts.model),
        }
        verdict = report.verdict.value if report.verdict else vocab.NOTHING_SEALED
        known = known or [False] * len(report.findings)
        linked = context if report.verdict and report.verdict.violates else None
        self._count(vocab.CALLS, {vocab.VERDICT: verdict, **who}, 1, linked)
        open_ = report.provider_verdict is ProviderVerdict.UNREPORTED
        if report.rejection is not None and not (open_ and report.rejection is Rejection.OTHER):
            labels = {vocab.REJECTION_CLASS: report.rejection.value, **who}
            self._add(vocab.REJECTIONS, labels, 1, context)
        answer = {
            vocab.VERDICT: verdict,
            vocab.PROVIDER_VERDICT: report.provider_verdict.value,
            vocab.PROVIDER: provider,
            vocab.SERVER_ADDRESS: self._host(report.facts.host),
        }
        self._count(vocab.OUTCOMES, {**answer, vocab.CARRY: report.carry.value}, 1, linked)
        if objected(report, known):
            self._add(vocab.OBJECTIONS, answer, 1, context)
        self._findings(report, who, context)
        if any(f.verdict.violates for f in report.findings):
            self._violations(report, provider, context, known)
        for reason in report.unread:
            self._unread(reason, provider, 1)
        self._lookups(report, provider)
        self._duration.record(check_s, {vocab.PROVIDER: provider}, context)

    def _known(self, provider: str) -> str:
        """The name of a provider on metrics, its series there by now."""
        name = names.metric_provider(provider)
        with self._lock:
            first = name not in self._primed
            self._primed.add(name)
        if first:
            self.prime(name)
        return name

    def planned(self, report: Report, provider: str) -> Counted:
        """What a call like this one adds, which has no row and was not refused."""
        provider = self._known(provider)
        model = names.base_model(report.facts.model)
        who = {vocab.PROVIDER: provider, vocab.REQUEST_MODEL: model}
        outcome = {
            vocab.VERDICT: vocab.NOTHING_SEALED,
            vocab.PROVIDER_VERDICT: report.provider_verdict.value,
            vocab.PROVIDER: provider,
            vocab.SERVER_ADDRESS: self._host(report.facts.host),
            vocab.CARRY: report.carry.value,
        }
        counts = [
            self._counted(vocab.CALLS, {vocab.VERDICT: vocab.NOTHING_SEALED, **who}, 1),
            self._counted(vocab.OUTCOMES, outcome, 1),
        ]
        if (due := report.expected - report.excused) > 0:
            returned = min(report.returned, due)
            counts.append(self._counted(vocab.EXPECTED, who, due, vocab.RETURNED.name))
            counts.append(self._counted(vocab.RETURNED, who, returned, vocab.EXPECTED.name))
        labels = [{vocab.ARTIFACT: vocab.word(row.artifact), **who} for row in report.received]
        sizes = tuple(self._series.admit(vocab.SIZE.name, one) for one in labels)
        return Counted(tuple(counts), sizes, {vocab.PROVIDER: provider})

    def _counted(self, metric: vocab.Metric, labels: Labels, count: int, *alike: str) -> Count:
        admitted = self._series.admit(metric.name, labels, *alike)
        return (metric.name, *admitted.values()), admitted, count

    def count(self, plan: Counted, report: Report, check_s: float, span: Span | None) -> None:
        """Count one call of a shape that is planned, written on `span`."""
        self._tally.add_each(plan.counts)
        for receipt, labels in zip(report.received, plan.sizes, strict=True):
            self._tally.measure(self._size, receipt.size, labels)
        if report.lookups_hit or report.lookups_missed:
            self._lookups(report, plan.duration[vocab.PROVIDER])
        if check_s < SLOW_S or span is None:
            self._tally.measure(self._duration, check_s, plan.duration)
        else:
            self._duration.record(check_s, plan.duration, trace.set_span_in_context(span))

    def _unread(self, reason: str, provider: str, count: int) -> None:
        known = reason if reason in vocab.UNREAD_REASONS else vocab.FOLDED
        labels = {vocab.UNREAD_REASON: known, vocab.PROVIDER: provider}
        self._tally.add(vocab.UNREAD.name, labels, count)

    def _host(self, host: str) -> str:
        """The host as a label: the first few of a process by name, the others together."""
        name = vocab.host_name(host)
        with self._lock:
            if name and (name in self._hosts or len(self._hosts) < _HOSTS):
                self._hosts.add(name)
                return name
        return vocab.FOLDED

    def _findings(self, report: Report, who: Labels, context: Context | None) -> None:
        checks: dict[tuple[str, Fate, Verdict], int] = {}
        for f in report.findings:
            kind = (f.artifact, f.fate, f.verdict)
            checks[kind] = checks.get(kind, 0) + 1
        for check in report.settled:
            kind = (check.artifact, check.fate, check.verdict)
            checks[kind] = checks.get(kind, 0) + check.count
        for (artifact, fate, verdict), count in checks.items():
            labels = {
                vocab.ARTIFACT: vocab.word(artifact),
                vocab.FATE: fate.value,
                vocab.VERDICT: verdict.value,
                **who,
            }
            self._count(vocab.CHECKS, labels, count, context if verdict.violates else None)
        if (due := report.expected - report.excused) > 0:
            admitted = self._series.admit(vocab.EXPECTED.name, who, vocab.RETURNED.name)
            self._tally.add(vocab.EXPECTED.name, admitted, due)
            self._tally.add(vocab.RETURNED.name, admitted, min(report.returned, due))
        for receipt in report.received:
            labels = {vocab.ARTIFACT: vocab.word(receipt.artifact), **who}
            admitted = self._series.admit(vocab.SIZE.name, labels)
            self._tally.measure(self._size, receipt.size, admitted)

    def _violations(
        self, report: Report, provider: str, context: Context | None, known: Sequence[bool]
    ) -> None:
        pairs = list(zip(report.findings, known, strict=True))
        counts = Counter((f.verdict, accepted) for f, accepted in pairs if f.verdict.violates)
        for (verdict, accepted), count in counts.items():
            metric = vocab.KNOWN_VIOLATIONS if accepted else vocab.VIOLATIONS
            labels = {vocab.PROVIDER: provider, vocab.VERDICT: verdict.value}
            self._counters[metric.name].add(count, labels, context)
        news = [f for f, accepted in pairs if f.verdict.violates and not accepted]
        self._causes(news, provider, context)

    def _causes(self, findings: Iterable[Finding], provider: str, context: Context | None) -> None:
        for why, count in Counter(map(_why, findings)).items():
            labels = {**dict(zip(_WHY, why, strict=True)), vocab.PROVIDER: provider}
            self._add(vocab.CAUSES, labels, count, context)

    def _lookups(self, report: Report, provider: str) -> None:
        for result, count in (("hit", report.lookups_hit), ("miss", report.lookups_missed)):
            if count:
                labels = {vocab.LOOKUP_RESULT: result, vocab.PROVIDER: provider}
                self._tally.add(vocab.LOOKUPS.name, labels, count)

    def _count(
        self, metric: vocab.Metric, labels: Labels, count: int, context: Context | None
    ) -> None:
        """Count at once where there is a span to link to, else by the next collection."""
        if context is not None:
            self._add(metric, labels, count, context)
        else:
            self._tally.add(metric.name, self._series.admit(metric.name, labels), count)

    def flush(self) -> None:
        """Give the instruments what was kept: metrics are about to be collected."""
        self._tally.flush()

    def _add(
        self, metric: vocab.Metric, labels: Labels, count: int, context: Context | None
    ) -> None:
        self._counters[metric.name].add(count, self._series.admit(metric.name, labels), context)

    def internal_error(self, place: str, kind: str) -> None:
        """Count one swallowed fault of ours: where, and the class of the exception."""
        shown = kind if kind.isascii() and kind.isidentifier() else vocab.FOLDED
        labels = {vocab.PLACE: vocab.word(place), vocab.ERROR_TYPE: shown[:60]}
        self._add(vocab.INTERNAL_ERRORS, labels, 1, None)

    def noticing(self, client: str) -> None:
        """Create the series of unobserved requests of an HTTP client at 0."""
        labels = {vocab.HTTP_CLIENT: client, vocab.SERVER_ADDRESS: vocab.FOLDED}
        self._add(vocab.UNOBSERVED, labels, 0, None)

    def unobserved(self, client: str, host: str) -> str:
        """Count one request that nobody observed; the host as it is shown."""
        shown = self._host(host)
        labels = {vocab.HTTP_CLIENT: client, vocab.SERVER_ADDRESS: shown}
        self._add(vocab.UNOBSERVED, labels, 1, None)
        return shown

    def leak(self, place: str, count: int = 1) -> None:
        """Count sealed values that were found in telemetry and taken out."""
        self._add(vocab.LEAKS, {vocab.PLACE: vocab.word(place)}, count, None)


_WHY: Final = (
    vocab.ARTIFACT,
    vocab.FATE,
    vocab.VERDICT,
    vocab.RULE,
    vocab.CAUSE,
    vocab.LOCUS,
)


def _why(finding: Finding) -> tuple[str, ...]:
    """The values of `_WHY` for a finding."""
    return (
        vocab.word(finding.artifact),
        finding.fate.value,
        finding.verdict.value,
        vocab.rule_id(finding.rule) or vocab.UNSAID,
        finding.cause.value if finding.cause else vocab.UNSAID,
        finding.locus.value if finding.locus else vocab.UNSAID,
    )


def _seams(attached: int, missing: int) -> list[Observation]:
    return [
        Observation(attached, {vocab.SEAM_STATE: vocab.ATTACHED}),
        Observation(missing, {vocab.SEAM_STATE: vocab.MISSING}),
    ]


def _states(now: str) -> list[Observation]:
    return [Observation(int(state == now), {vocab.STATE: state}) for state in vocab.STATES]


def _observe(
    meter: Meter, metric: vocab.Metric, values: Callable[[], Iterable[Observation]]
) -> None:
    def read(_: CallbackOptions) -> Iterable[Observation]:
        return values()

    create = (
        meter.create_observable_counter
        if metric.instrument == "counter"
        else meter.create_observable_up_down_counter
    )
    create(metric.name, [read], metric.unit, metric.brief)


def _histogram(meter: Meter, metric: vocab.Metric) -> Histogram:
    return meter.create_histogram(
        metric.name,
        metric.unit,
        metric.brief,
        explicit_bucket_boundaries_advisory=metric.boundaries,
    )
