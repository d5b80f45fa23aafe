"""Several `instrument()` in one process, and one whose surroundings are broken."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anthropic
import openai  # noqa: F401 - an SDK is attached once it is imported
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_sealed import vocab
from otel_sealed.instrument import Handle, guard, instrument, uninstrument
from otel_sealed.instrument.clients import CLIENTS
from otel_sealed.telemetry.settings import Settings

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder, Spans, Wire

ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}
MESSAGE = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[]}'


def call(wire: Wire) -> Any:
    wire.replies.clear()
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        return client.messages.create(**ASK).id


def sdks(handle: Handle) -> set[str]:
    names = {name.split(".")[0] for name in handle.attached}
    return names - {"http", *(client.name for client in CLIENTS)}  # hooks at HTTP clients


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_a_with_inside_an_instrumented_program_leaves_it_as_it_was(
    handle: Handle, tracker: Recorder, wire: Wire
) -> None:
    before = handle.attached
    with instrument("anthropic") as inner, instrument():
        assert (inner, inner.attached) == (handle, before)
    assert handle.attached == before
    call(wire)
    assert len(tracker.exchanges) == 1


def test_a_with_takes_off_what_it_added_and_no_more(tracker: Recorder, wire: Wire) -> None:
    handle = instrument("openai", tracker=tracker)
    with instrument("openai", "anthropic"):
        assert sdks(handle) == {"openai", "anthropic"}
        call(wire)
    assert sdks(handle) == {"openai"}
    call(wire)
    with instrument("anthropic"):
        call(wire)
    assert (sdks(handle), len(tracker.exchanges)) == ({"openai"}, 2)


def test_the_last_with_takes_off_everything(tracker: Recorder) -> None:
    with instrument("openai", tracker=tracker) as handle:
        with instrument("anthropic"):
            pass
        assert sdks(handle) == {"openai"}
    assert handle.attached == ()


@pytest.mark.parametrize("by_handle", [True, False])
def test_uninstrument_takes_off_everything_whoever_put_it_on(
    tracker: Recorder, *, by_handle: bool
) -> None:
    handle = instrument("openai", tracker=tracker)
    with instrument("anthropic"):
        (handle.uninstrument if by_handle else uninstrument)()
        assert handle.attached == ()
    assert instrument("anthropic", tracker=tracker) is not handle


def test_what_a_second_call_is_given_in_vain_is_said_in_one_line(
    handle: Handle, spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    other: Any = object()
    instrument("anthropic", tracer_provider=other, settings=Settings(enabled=True))
    head = "instrument() was called before and is in force"
    ignored, kept = "ignored: tracer_provider, settings", "google, openai stay observed, too"
    assert warned(caplog) == [f"{head}; {ignored}; {kept}"]
    caplog.clear()
    instrument(tracer_provider=spans.provider)
    assert (warned(caplog), handle.idle) == ([], False)


class Broken:
    """A provider of any kind whose every use raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("SECRET")


@pytest.mark.parametrize("which", ["tracer_provider", "meter_provider", "logger_provider"])
def test_a_provider_that_raises_leaves_calls_unobserved_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wire: Wire, which: str
) -> None:
    monkeypatch.setattr(guard, "STRICT", False)
    reader = InMemoryMetricReader()
    broken: Any = Broken()
    handle = instrument(**{"meter_provider": MeterProvider([reader]), which: broken})
    assert (handle.idle, handle.attached, call(wire)) == (True, (), "msg_1")
    assert warned(caplog) == [
        "otel_sealed could not start, calls go through unobserved: RuntimeError"
    ]
    if which != "meter_provider":
        assert counted(reader) == [("instrument", 1)]
    instrument("anthropic").uninstrument()
    assert instrument().idle is False


def counted(reader: InMemoryMetricReader) -> list[tuple[Any, Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    return [
        ((point.attributes or {})[vocab.PLACE], getattr(point, "value", None))
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "otel_sealed.internal.errors"
        for point in metric.data.data_points
    ]


@pytest.mark.parametrize("name", ["settings", "runtime", "mute"])
def test_an_installation_that_is_half_there_leaves_calls_unobserved(
    monkeypatch: pytest.MonkeyPatch, wire: Wire, name: str
) -> None:
    """Nothing of what `instrument` builds with can be imported, not even what counts."""
    from otel_sealed.instrument import build

    def missing(*_: Any) -> Any:
        raise ModuleNotFoundError("opentelemetry.sdk")

    monkeypatch.setattr(guard, "STRICT", False)
    for one in (name, "_made"):
        monkeypatch.setattr(build, one, missing)
    handle = instrument(settings=Settings(enabled=False) if name == "mute" else None)
    assert (handle.idle, call(wire)) == (True, "msg_1")
    handle.uninstrument()
