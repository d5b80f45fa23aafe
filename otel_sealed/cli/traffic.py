"""`otel-sealed demo --traffic`: the hosts of the demo without end, for dashboards and alerts."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from otel_sealed.cli import OK
from otel_sealed.cli.demo import as_object, parts, quiet
from otel_sealed.cli.exporters import configured
from otel_sealed.cli.show import Screen, Ticker, json_line, plural, ticker
from otel_sealed.errors import SealedError

if TYPE_CHECKING:
    from otel_sealed.cli.outlets import Outlets
    from otel_sealed.testing.hosts import Host, Played

_NAP_S: Final = 0.1
_NOWHERE: Final = "traffic needs somewhere to go"
_REMEDY: Final = "--scrape 9464, --otlp http://localhost:4318, or OTEL_EXPORTER_OTLP_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What traffic is asked for.

    Attributes:
        duration: Seconds; None plays until it is interrupted.
        rate: Most conversations a second.
        scrape: Port of the loopback to serve Prometheus at, 0 for a free one; None for none.
        otlp: Base URL of an OTLP receiver over HTTP; empty for what the environment says.
        faithful: Only hosts that lose nothing.
        seed: The same seed plays the same hosts in the same order.
    """

    duration: float | None = None
    rate: float = 2.0
    scrape: int | None = None
    otlp: str = ""
    faithful: bool = False
    seed: int = 0


def run(wanted: Wanted, *, as_json: bool) -> int:
    """Play until the time is over or somebody ends it. What hosts lose is no failure here.

    Raises:
        SealedError: There is nowhere to send telemetry to, or a part is not installed.
    """
    if wanted.scrape is None and not wanted.otlp and not configured(os.environ):
        raise SealedError(_NOWHERE, remedy=_REMEDY)
    count = calls = 0
    with ticker(printing=as_json) as ticks, quiet(), _ending() as end:
        ticks.say("loading the SDKs")
        with _outlets(wanted) as out:
            if not as_json:
                _say(out.where)
            with suppress(KeyboardInterrupt):
                for played in _played(wanted, out, end):
                    count, calls = count + 1, calls + len(played.reports)
                    _tell(played, ticks, count, calls, as_json=as_json)
    if not as_json:
        _say(f"{plural(count, 'conversation')}, {plural(calls, 'call')}.")
    return OK


def _played(wanted: Wanted, out: Outlets, end: _End) -> Iterator[Played]:
    _, play, _ = parts()
    playing: Iterator[Played] = play(
        _paced(wanted, end),
        tracer_provider=out.tracer,
        meter_provider=out.meter,
        logger_provider=out.logger,
    )
    return playing


def _paced(wanted: Wanted, end: _End) -> Iterator[Host]:
    """The hosts, each at its time, until the time is over or somebody ends it."""
    from otel_sealed.testing.hosts.traffic import traffic

    begun = time.monotonic()
    last = math.inf if wanted.duration is None else begun + wanted.duration
    chance = random.Random(wanted.seed)  # noqa: S311 - an order, no secret
    for number, host in enumerate(traffic(chance, faithful=wanted.faithful)):
        due = begun + number / wanted.rate
        while not end.asked and (now := time.monotonic()) < min(due, last):
            time.sleep(min(_NAP_S, min(due, last) - now))
        if end.asked or time.monotonic() >= last:
            return
        yield host


def _outlets(wanted: Wanted) -> Any:
    """Where it goes: what only the extras bring, imported as late as can be."""
    parts()
    try:
        from otel_sealed.cli.outlets import outlets

        return outlets(scrape=wanted.scrape, otlp=wanted.otlp)
    except ModuleNotFoundError as error:
        raise SealedError(
            f"--scrape needs the package that has {error.name}",
            remedy="python -m pip install 'otel-sealed[demo,prometheus]'",
        ) from None


def _tell(played: Played, ticks: Ticker, count: int, calls: int, *, as_json: bool) -> None:
    ticks.say(f"{played.host.name}, conversation {count:,}, {calls:,} calls; Ctrl-C ends it")
    if as_json:
        json_line(as_object(played))


def _say(line: str) -> None:
    out = Screen()
    out.line(line)
    out.console.file.flush()


class _End:
    """Whether somebody asked for the end. The conversation under way is finished."""

    asked = False

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Ask once; who asks again does not want to wait."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def _ending() -> Iterator[_End]:
    """A polite end, as from `kill` or a container, is one from the keyboard."""
    end = _End()
    before = {}
    # elsewhere than in the main thread: whoever started it ends it
    with suppress(ValueError):
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, end.ask)
    try:
        yield end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
