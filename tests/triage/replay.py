"""Exchanges replayed through the core into a record: real spans, by the real emitter, in files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from opentelemetry.trace import SpanKind

from otel_sealed.cli import key as keys
from otel_sealed.cli.folder import Recording, recording
from otel_sealed.contract import Exchange
from otel_sealed.instrument.span import place
from otel_sealed.telemetry.emit import About, Emitter, Providers
from otel_sealed.telemetry.settings import Settings
from otel_sealed.tracker import Tracker
from otel_sealed.transcript import read
from otel_sealed.triage.files import found_in
from otel_sealed.triage.index import Index
from otel_sealed.triage.model import Incident

SDKS = {"anthropic": "2.14.0"}


class Replay:
    """One process: a core, an emitter, a record."""

    def __init__(self, made: Recording, *, sampled: bool = True) -> None:
        key = keys.shared(made.folder)
        self.tracker = Tracker(key)
        self.emitter = Emitter(
            Settings(events_per_hour=100_000),
            key=key,
            providers=Providers(made.tracer, made.meter, made.logger),
            about=About(version="0", rules_version="r", sdk_versions=SDKS),
            clock=time.monotonic,
            strict=True,
        )
        self.sampled = sampled

    def observe(self, exchange: Exchange) -> None:
        """One call: a span, the core, and everything that goes out."""
        start = self.emitter.start_attributes(
            operation="chat", provider=exchange.provider, model=exchange.model or "", host=""
        )
        span = self.emitter.tracer.start_span("chat", kind=SpanKind.CLIENT, attributes=start)
        report = self.tracker.observe(replace(exchange, origin=place(span)))
        self.emitter.emit(report, span, owned=True)
        if self.sampled:
            span.end()


@contextmanager
def replaying(parent: Path, *, sampled: bool = True) -> Iterator[Replay]:
    """A record in `.otel-sealed` under `parent`, written to until the block ends."""
    with recording("replay", parent) as made:
        yield Replay(made, sampled=sampled)


def replayed(parent: Path, exchanges: Iterable[Exchange], *, sampled: bool = True) -> Path:
    """The folder of a record of these exchanges."""
    with replaying(parent, sampled=sampled) as replay:
        for exchange in exchanges:
            replay.observe(exchange)
    return parent / ".otel-sealed"


def case(path: Path, parent: Path, *, sampled: bool = True) -> Path:
    """The folder of a record of one field case."""
    return replayed(parent, read(path), sampled=sampled)


def incidents_in(*paths: Path) -> list[Incident]:
    """The incidents of a record, oldest first."""
    with Index() as index:
        index.update(found_in(paths))
        return index.incidents()[::-1]
