"""One violation is one log record where Python logging is bridged into OpenTelemetry."""

from __future__ import annotations

import io
import logging
import logging.handlers
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

from otel_sealed.model import Fate, ProviderVerdict, Verdict
from otel_sealed.telemetry.emit import Emitter, Providers
from otel_sealed.telemetry.leaks import Leak
from otel_sealed.telemetry.settings import Settings
from tests.telemetry.builders import KEY, LOG_EXPORTER, SEAL, finding, report

Bridge = Callable[[LoggerProvider], logging.Handler]


def handler(provider: LoggerProvider, kind: type[LoggingHandler] = LoggingHandler) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it moves to a package of its own
        return kind(logger_provider=provider)


class Derived(LoggingHandler):
    """What applications make of it to filter or to rename."""


def buffered(provider: LoggerProvider) -> logging.Handler:
    return logging.handlers.MemoryHandler(1, target=handler(provider))


BRIDGES: list[Bridge] = [handler, lambda provider: handler(provider, Derived), buffered]


class Pipeline:
    """A logger provider, and what arrives at its exporter."""

    def __init__(self) -> None:
        self.exporter = LOG_EXPORTER()
        self.provider = LoggerProvider()
        self.provider.add_log_record_processor(SimpleLogRecordProcessor(self.exporter))

    @property
    def records(self) -> list[Any]:
        return [item.log_record for item in self.exporter.get_finished_logs()]


@pytest.fixture(name="at", params=["otel_sealed", None], ids=["own logger", "root logger"])
def _at(request: pytest.FixtureRequest) -> Iterator[logging.Logger]:
    """A logger that loses what the test adds to it."""
    logger = logging.getLogger(request.param)
    before = list(logger.handlers)
    yield logger
    logger.handlers[:] = before


def violating(emitter: Emitter) -> None:
    lost = finding(Fate.DROPPED, Verdict.BREAKS, rule="A2")
    emitter.emit(report(lost, provider_verdict=ProviderVerdict.UNREPORTED), None, owned=False)


def leaking(emitter: Emitter) -> None:
    emitter.leaked(Leak("some.scope", "some.key", 400, "11" * 16))


def plain(at: logging.Logger) -> io.StringIO:
    """Another handler of the same logger, as every application on a terminal has one."""
    out = io.StringIO()
    at.addHandler(logging.StreamHandler(out))
    return out


@pytest.mark.parametrize("bridge", BRIDGES, ids=["own", "derived", "buffered"])
@pytest.mark.parametrize(
    ("act", "name"),
    [(violating, "otel_sealed.violation"), (leaking, "otel_sealed.leak")],
    ids=["violation", "leak"],
)
def test_a_bridge_adds_no_second_record_and_the_terminal_has_the_line(
    act: Callable[[Emitter], None], name: str, bridge: Bridge, at: logging.Logger
) -> None:
    pipeline = Pipeline()
    out = plain(at)
    at.addHandler(bridge(pipeline.provider))
    act(Emitter(Settings(), key=KEY, providers=Providers(logger=pipeline.provider), strict=True))
    (record,) = pipeline.records
    assert (record.event_name, out.getvalue()) == (name, f"{record.body}\n")


def test_where_no_provider_takes_the_event_the_bridged_line_is_the_record(
    at: logging.Logger,
) -> None:
    pipeline = Pipeline()
    out = plain(at)
    at.addHandler(handler(pipeline.provider))
    violating(Emitter(Settings(), key=KEY, strict=True))
    (record,) = pipeline.records
    assert record.attributes["event.name"] == "otel_sealed.violation"
    assert record.attributes["otel_sealed.artifact"] == SEAL
    assert out.getvalue() == f"{record.body}\n"


def test_a_bridge_alone_has_the_event_and_the_terminal_nothing(
    at: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of everything else that such an application logs."""
    pipeline = Pipeline()
    at.addHandler(handler(pipeline.provider))
    violating(Emitter(Settings(), key=KEY, providers=Providers(logger=pipeline.provider)))
    assert ["otel_sealed.violation"] == [record.event_name for record in pipeline.records]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("silenced", ["disabled", "filtered", "level", "not propagated"])
def test_the_line_next_to_a_bridge_obeys_the_settings_of_the_logger(
    silenced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, root = logging.getLogger("otel_sealed"), logging.getLogger()
    pipeline = Pipeline()
    monkeypatch.setattr(root, "handlers", [*root.handlers, handler(pipeline.provider)])
    out = plain(root)
    monkeypatch.setattr(ours, "disabled", silenced == "disabled")
    monkeypatch.setattr(ours, "filters", [lambda _: False] if silenced == "filtered" else [])
    monkeypatch.setattr(ours, "propagate", silenced != "not propagated")
    level = ours.level
    ours.setLevel(logging.CRITICAL if silenced == "level" else level)
    try:
        violating(Emitter(Settings(), key=KEY, providers=Providers(logger=pipeline.provider)))
    finally:
        ours.setLevel(level)
    assert ["otel_sealed.violation"] == [record.event_name for record in pipeline.records]
    assert out.getvalue() == ""


def test_a_disagreement_has_a_sentence_and_one_record(at: logging.Logger) -> None:
    pipeline = Pipeline()
    at.addHandler(handler(pipeline.provider))
    emitter = Emitter(Settings(), key=KEY, providers=Providers(logger=pipeline.provider))
    lost = finding(Fate.DROPPED, Verdict.BREAKS)
    emitter.emit(report(lost, provider_verdict=ProviderVerdict.ACCEPTED), None, owned=False)
    assert [
        (
            "otel_sealed.disagreement",
            "anthropic accepted a request that was judged breaks (conversation 11111111)",
        )
    ] == [
        (r.event_name, r.body) for r in pipeline.records if r.event_name != "otel_sealed.violation"
    ]
    assert 2 == len(pipeline.records)
