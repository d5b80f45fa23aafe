"""A day of two hundred services, for promtool.

Theory of operation. What a conversation adds to the metrics is not made up: each kind of
conversation below is judged and counted once by the real core, and read from the real Prometheus
exporter, names and labels and all (`added`). The day is arithmetic on top of it: which service has
how many of which kind in a tick, which processes there are, when they start, fork, crash and are
replaced, and what of it is scraped.

A tick is two minutes, so that a day of all of it is evaluated within minutes; it is also the scrape
interval, the longest with which a window of five minutes holds two samples. promtool lets no query
hold more than ten thousand samples, so the services come in groups; all rules but that of an
incident look at one service at a time, and that one has a test of its own over all of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import Final

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from dashboards.alerts import promql
from otel_sealed import vocab
from otel_sealed.contract import Exchange
from otel_sealed.model import Fate
from otel_sealed.telemetry.emit import Emitter, Providers
from otel_sealed.telemetry.known import KnownLosses, Loss
from otel_sealed.telemetry.settings import Settings
from otel_sealed.tracker import Tracker
from tests.core.builders import without
from tests.core.conversations import (
    KEY,
    Delivery,
    ask,
    conversation,
    exchange,
    history,
    request,
    responses,
)
from tests.dashboards.services import REFUSALS, without_manual_thinking

TICK_S: Final = 120
DAY: Final = 24 * 3600 // TICK_S
SERVICES: Final = 200
Key = tuple[str, tuple[tuple[str, str], ...]]
"""A series of one process: its name and labels."""
Added = Mapping[Key, float]
READ: Final = {
    promql.name(metric)
    for metric in (
        vocab.VIOLATIONS,
        vocab.CAUSES,
        vocab.CALLS,
        vocab.OUTCOMES,
        vocab.OBJECTIONS,
        vocab.CHECKS,
        vocab.INTERNAL_ERRORS,
        vocab.LEAKS,
        vocab.PROCESS_STATE,
        vocab.SEAMS,
    )
}
"""What the rules read; the rest would only make the day longer."""


# ------------------------------------------------------------- what a conversation adds, for real


def _faithful(dialect: str) -> list[Exchange]:
    return conversation(dialect)


def _compacted(dialect: str) -> list[Exchange]:
    return conversation("anthropic" if dialect == "gemini" else dialect, kind="compaction")


def _forked(dialect: str) -> list[Exchange]:
    """Goes on from an earlier turn, with another question."""
    answers = responses(dialect)
    body = request(dialect, answers[:2])
    history(body).extend(ask(dialect, "Something else."))
    return [*conversation(dialect), exchange(dialect, body, responses(dialect, "fork")[0])]


def _resumed(dialect: str) -> list[Exchange]:
    """Began in a process that is gone."""
    return conversation(dialect)[3:]


def _cut(dialect: str) -> list[Exchange]:
    """A stream breaks off, and the same request is sent again."""
    whole = conversation(dialect)
    return [conversation(dialect, delivery=Delivery(stream=True, cut=2))[0], *whole]


def _busy(dialect: str) -> list[Exchange]:
    """The provider has no room, and takes the same request later."""
    first, *rest = conversation(dialect)
    error = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
    return [replace(first, response=error, status=529), first, *rest]


def _by_design(_: str) -> list[Exchange]:
    """The provider tells of what it removes at the end of a turn in any case."""
    entry = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "turn_boundary"}
    *most, last = conversation("anthropic")
    return [*most, replace(last, response={**last.response, "input_transformations": [entry]})]


def _known(_: str) -> list[Exchange]:
    """Loses what its owner has listed."""
    return conversation("anthropic", host=without("redacted_thinking"), turns=3)


def _refused_whole(dialect: str) -> list[Exchange]:
    dialect = "openai" if dialect == "openai" else "anthropic"
    first, second = conversation(dialect, turns=2)
    return [first, replace(second, response=REFUSALS[dialect], status=400)]


def _dropping(_: str) -> list[Exchange]:
    first, second = conversation("anthropic", host=without_manual_thinking, turns=2)
    return [first, replace(second, response=REFUSALS["anthropic"], status=400)]


KINDS: Final[Mapping[str, Callable[[str], list[Exchange]]]] = {
    "faithful": _faithful,
    "compacted": _compacted,
    "forked": _forked,
    "resumed": _resumed,
    "cut": _cut,
    "busy": _busy,
    "by design": _by_design,
    "known": _known,
    "refused": _refused_whole,
    "dropping": _dropping,
}
_LISTED: Final = KnownLosses(
    [Loss("anthropic.redacted_thinking.data", Fate.DROPPED, "anthropic", "its issue 1", date.max)]
)


@cache
def added(kind: str, dialect: str) -> Added:
    """What a conversation adds to the series of its process, counted by the real thing."""
    registry = CollectorRegistry()
    meters = MeterProvider([PrometheusMetricReader(registry=registry, disable_target_info=True)])
    emitter = Emitter(Settings(), key=KEY, providers=Providers(meter=meters), strict=True)
    emitter.room.known = _LISTED
    tracker = Tracker(KEY)
    for one in KINDS[kind](dialect):
        emitter.emit(tracker.observe(one), None, owned=False)
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name in READ
    }
    meters.shutdown()
    return found


# ----------------------------------------------------------------------------------- processes

STATES: Final = (promql.name(vocab.PROCESS_STATE), promql.name(vocab.SEAMS))
"""What is a level, not a count."""


@dataclass(slots=True)
class Process:
    """One process of a service: what stands on its metrics page, tick by tick."""

    instance: str
    born: int
    totals: Counter[Key] = field(default_factory=Counter)
    pages: dict[int, dict[Key, float]] = field(default_factory=dict)
    gone: int | None = None

    def add(self, more: Added) -> None:
        """Count a conversation."""
        for key, value in more.items():
            if key[0] in STATES:
                self.totals[key] = value  # type: ignore[assignment]
            else:
                self.totals[key] += value  # type: ignore[assignment]

    def crash(self) -> None:
        """Start again under the same name: every counter from nothing."""
        for key in self.totals:
            if key[0] not in STATES:
                self.totals[key] = 0

    def series(self, job: str, ticks: int) -> Iterator[dict[str, str]]:
        """As promtool takes them."""
        keys = sorted({key for page in self.pages.values() for key in page})
        for name, labels in keys:
            shown = {**dict(labels), "job": job, "instance": self.instance}
            text = ",".join(f'{k}="{v}"' for k, v in shown.items() if v)
            end = ticks if self.gone is None else self.gone + 1
            values = [
                self.pages.get(tick, {}).get((name, labels)) for tick in range(self.born, end)
            ]
            before = f"_x{self.born} " if self.born else ""
            gone = None if self.gone is None else self.gone - self.born
            yield {"series": f"{name}{{{text}}}", "values": before + _notation(values, gone)}


def _notation(values: Sequence[float | None], gone: int | None) -> str:
    """Values as promtool writes them, runs of the same taken together."""
    runs: list[tuple[str, int]] = []
    for tick, value in enumerate(values):
        absent = "stale" if tick == gone else "_"
        word = absent if value is None else f"{value:g}"
        if runs and runs[-1][0] == word and word != "stale":
            runs[-1] = (word, runs[-1][1] + 1)
        else:
            runs.append((word, 1))
    parts = []
    for word, times in runs:
        if word == "_":
            parts.append(f"_x{times}" if times > 1 else "_")
        else:
            parts.append(f"{word}x{times - 1}" if times > 1 else word)
    return " ".join(parts)


# -------------------------------------------------------------------------------------- the day


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of conversation that some services have instead of theirs, from a tick on."""

    kind: str
    services: int
    begins: int
    dialect: str = "anthropic"


class Service:
    """One service through the day."""

    def __init__(self, number: int, ticks: int, fault: Fault | None) -> None:
        self.name = f"service-{number:03}"
        self._random = random.Random(number)
        self._ticks = ticks
        self._fault = fault if fault and number < fault.services else None
        self.dialect = ("anthropic", "openai", "gemini")[number % 3]
        if self._fault:
            self.dialect = self._fault.dialect
        self._rate = self._random.choice((0.1, 0.3, 1.0, 2.0, 4.0))
        if self._fault:
            self._rate = max(self._rate, 2.0)
        self._count = self._random.choice((1, 1, 2, 3))
        self._deploys = set(self._random.sample(range(5, ticks), min(3, ticks // 60)))
        self._crashes = set(self._random.sample(range(5, ticks), min(2, ticks // 60)))
        self._forks = set(self._random.sample(range(5, ticks), min(1, ticks // 60)))
        start, gap = self._random.randrange(ticks), self._random.choice((0, 0, 10, 45))
        # what is not scraped pages nobody: whoever is struck is looked at
        self._unscraped = range(start, start + (0 if self._fault else gap))
        self._has_known = number % 10 == 0
        self.processes: list[Process] = []
        self._living: list[Process] = []
        self._settled = 0

    def live(self) -> None:
        """Every tick of the day."""
        self._start(0)
        self._settled = -60  # its processes have been up for a while
        for tick in range(self._ticks):
            if tick in self._deploys:
                self._deploy(tick)
            if tick in self._forks:
                self._living.append(self._process(tick))
            if tick in self._crashes:
                self._living[0].crash()
                self._settled = tick
            for process in self._living:
                for _ in range(self._calls()):
                    process.add(added(self._kind(tick), self.dialect))
                if tick not in self._unscraped:
                    process.pages[tick] = dict(process.totals)

    def _calls(self) -> int:
        whole, rest = divmod(self._rate, 1)
        return int(whole) + (self._random.random() < rest)

    def _kind(self, tick: int) -> str:
        fault = self._fault
        if fault and tick >= fault.begins and self._random.random() < _SHARE:
            return fault.kind
        # conversations of a process that is gone come in for half an hour, ever fewer
        if self._random.random() < 0.7 - 0.7 * (tick - self._settled) * TICK_S / 1800:
            return "resumed"
        draw = self._random.random()
        if draw < 0.0002:
            return "refused"
        if self._has_known and draw > 0.95:
            return "known"
        return next(kind for kind, upto in _MIX if draw <= upto)

    def _deploy(self, tick: int) -> None:
        for process in self._living:
            process.gone = tick
        self._living = []
        self._start(tick)

    def _start(self, tick: int) -> None:
        for _ in range(self._count):
            self._living.append(self._process(tick))
        self._settled = tick

    def _process(self, tick: int) -> Process:
        process = Process(f"10.0.0.{len(self.processes)}:9464", tick)
        process.add(dict.fromkeys(added("faithful", self.dialect), 0.0))
        for key, value in _HEALTHY.items():
            process.totals[key] = value  # type: ignore[assignment]
        self.processes.append(process)
        return process


_SHARE: Final = 0.8
"""Of the conversations of a service with a fault, those that show it."""
_MIX: Final = (
    ("compacted", 0.08),
    ("forked", 0.16),
    ("cut", 0.2),
    ("busy", 0.24),
    ("by design", 0.3),
    ("faithful", 1.0),
)


def _level(metric: vocab.Metric, attribute: str, value: str) -> Key:
    return promql.name(metric), ((promql.label(attribute), value),)


_HEALTHY: Final[Added] = {
    _level(vocab.PROCESS_STATE, vocab.STATE, vocab.ACTIVE): 1,
    _level(vocab.PROCESS_STATE, vocab.STATE, vocab.KILLED): 0,
    _level(vocab.PROCESS_STATE, vocab.STATE, vocab.RESTING): 0,
    _level(vocab.SEAMS, vocab.SEAM_STATE, vocab.MISSING): 0,
    (promql.TARGET_INFO, ()): 1,
}


def day(
    numbers: Iterable[int], ticks: int = DAY, fault: Fault | None = None
) -> list[dict[str, str]]:
    """All series of these services."""
    found: list[dict[str, str]] = []
    for number in numbers:
        service = Service(number, ticks, fault)
        service.live()
        for process in service.processes:
            found.extend(process.series(service.name, ticks))
    return found
