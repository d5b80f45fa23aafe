"""Playing hosts: each against a strict provider of its own, all under one `instrument()`."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from otel_sealed.contract import Exchange
from otel_sealed.instrument import instrument, state
from otel_sealed.instrument.runtime import Observes
from otel_sealed.model import Fate, Finding, ProviderVerdict, Report
from otel_sealed.telemetry.settings import Settings, load
from otel_sealed.testing.hosts.base import Expected, Host, Scene
from otel_sealed.testing.strict import StrictProvider

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_LOOPBACK = "127.0.0.1"
_NO_PROXY = ("no_proxy", "NO_PROXY")


@dataclass(frozen=True, slots=True)
class Row:
    """One finding and the number of the request, from 1, that it is about."""

    turn: int
    finding: Finding


@dataclass(frozen=True, slots=True)
class Played:
    """One host's whole conversation, as reported."""

    host: Host
    reports: tuple[Report, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every finding in order."""
        return tuple(
            Row(turn, finding)
            for turn, report in enumerate(self.reports, 1)
            for finding in report.findings
        )

    @property
    def refused(self) -> bool:
        """Whether a refusal of the provider ended it."""
        return bool(self.reports) and _refused(self.reports[-1])

    @property
    def losses(self) -> tuple[Expected, ...]:
        """Every row that is not intact, as `Host.losses` has them."""
        return tuple(
            Expected(row.turn, row.finding.artifact, row.finding.fate, row.finding.verdict)
            for row in self.rows
            if row.finding.fate is not Fate.INTACT
        )

    @property
    def as_known(self) -> bool:
        """Whether it showed what the host is known for, and the provider said what it says."""
        said = self.reports[-1].rejection if self.reports else None
        return (self.host.losses, self.host.rejection) == (self.losses, said)


class Recorder:
    """A tracker that keeps its reports."""

    def __init__(self, tracker: Observes) -> None:
        self._tracker = tracker
        self.reports: list[Report] = []

    def observe(self, exchange: Exchange) -> Report:
        """What the tracker says, kept."""
        report = self._tracker.observe(exchange)
        self.reports.append(report)
        return report


def a_provider_for(host: Host) -> StrictProvider:
    """A provider whose values are the same in every run, and of no other host's."""
    return StrictProvider(seed=zlib.crc32(host.name.encode()))


def play(
    hosts: Iterable[Host],
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    settings: Settings | None = None,
    provider_for: Callable[[Host], StrictProvider] = a_provider_for,
    scene_of: Callable[[StrictProvider], Scene] = Scene,
) -> Iterator[Played]:
    """Run hosts one after the other and yield each as it is done. Nobody's switch turns us off.

    Anything but a refusal of the provider's that a host dies of is raised.
    """
    watching = instrument(
        tracer_provider=tracer_provider,
        meter_provider=meter_provider,
        logger_provider=logger_provider,
        settings=(settings or load()).model_copy(update={"enabled": True}),
    )
    recorder = watching.runtime.tracker = Recorder(watching.runtime.tracker)
    with _without_proxy(), watching:
        for host in hosts:
            recorder.reports = []
            with provider_for(host) as provider:
                _run(host, scene_of(provider), recorder)
            yield Played(host, tuple(recorder.reports))


def _run(host: Host, scene: Scene, recorder: Recorder) -> None:
    try:
        host.run(scene)
    except Exception:
        # each SDK has its own class for it: the provider's verdict tells a refusal from a fault
        # who lets calls through unobserved is told of no refusal
        if not state.passing() and not (recorder.reports and _refused(recorder.reports[-1])):
            raise


def _refused(report: Report) -> bool:
    return report.provider_verdict is ProviderVerdict.REJECTED


@contextmanager
def _without_proxy() -> Iterator[None]:
    """Keep the SDKs from looking for the loopback behind a proxy of the environment."""
    before = {name: os.environ.get(name) for name in _NO_PROXY}
    for name, value in before.items():
        os.environ[name] = ",".join(x for x in (value, _LOOPBACK) if x)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
