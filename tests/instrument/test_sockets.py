"""The Responses API over a WebSocket: how calls begin and end there, and what is left alone."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai.resources.responses import responses as module
from opentelemetry import context as otel_context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import SpanKind

from otel_sealed.cli import doctor
from otel_sealed.instrument import Handle, guard, instrument, sockets, uninstrument
from otel_sealed.testing import StrictProvider
from tests.instrument.doors_openai import ASK, HELLO, closing, opened

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder, Spans

pytestmark = [
    pytest.mark.skipif(
        not hasattr(module.Responses, "connect"), reason="this release has no WebSocket"
    ),
    # What openai calls `connect` of websockets like, sync; it is deprecated there since 17.
    pytest.mark.filterwarnings(r"ignore:connect\(\) must be used as a:DeprecationWarning"),
]


@pytest.fixture(name="provider")
def _provider() -> Iterator[StrictProvider]:
    with StrictProvider(seed=3) as provider:
        yield provider


@pytest.fixture(name="line")
def _line(provider: StrictProvider, handle: Handle) -> Iterator[Any]:
    with opened(provider.base_url) as client, client.responses.connect() as line:
        yield line
        assert handle.missing == ()


def ask(line: Any, **more: Any) -> None:
    line.response.create(**ASK, input=[HELLO], **more)


def until_closed(line: Any) -> list[Any]:
    events: list[Any] = []
    while not events or not closing(events[-1]):
        events.append(line.recv())
    return events


def test_a_refusal_is_an_event_with_its_status(
    line: Any, provider: StrictProvider, tracker: Recorder, spans: Spans
) -> None:
    provider.fail_next(503)
    ask(line)
    (event,) = until_closed(line)
    assert event.type == "error"
    assert tracker.one.status == 503
    assert tracker.one.transport == "websocket"
    assert spans.names == ["chat gpt-5.6-sol"]


def test_a_connection_that_breaks_ends_its_call(
    line: Any, provider: StrictProvider, tracker: Recorder, spans: Spans
) -> None:
    """What had come is there, and it was not all."""
    provider.cut_next_stream(3)
    ask(line)
    for _ in range(3):
        line.recv()
    with pytest.raises(Exception, match="close") as raised:
        line.recv()
    seen = tracker.one
    assert (seen.complete, seen.events.count(b"data: "), seen.status) == (False, 3, 200)
    (span,) = spans.ended
    assert type(raised.value).__name__ in str((span.attributes or {})["error.type"])


def test_a_connection_that_is_closed_ends_its_call(
    provider: StrictProvider, tracker: Recorder, handle: Handle
) -> None:
    with opened(provider.base_url) as client, client.responses.connect() as line:
        provider.cut_next_stream(2)
        ask(line)
        line.recv()
    assert (tracker.one.complete, tracker.one.events.count(b"data: ")) == (False, 1)
    assert handle.missing == ()


@pytest.mark.usefixtures("handle")
def test_a_connection_that_is_dropped_ends_its_call(
    provider: StrictProvider, tracker: Recorder
) -> None:
    """And looking on keeps it no longer alive."""

    async def drop() -> weakref.ref[Any]:
        client = opened(provider.base_url, openai.AsyncOpenAI)
        line = await client.responses.connect().enter()
        provider.cut_next_stream(1)
        await line.response.create(**ASK, input=[HELLO])
        await line.recv()
        socket = line._connection
        with pytest.raises(Exception, match="close"):
            await socket.recv()
        await client.close()
        return weakref.ref(socket)

    dead = asyncio.run(drop())
    gc.collect()
    assert dead() is None
    assert tracker.one.complete is False


def test_an_unsent_message_is_no_call(line: Any, tracker: Recorder, spans: Spans) -> None:
    line.close()
    with pytest.raises(Exception, match="1000"):
        ask(line)
    (seen,) = tracker.exchanges
    assert (seen.events, seen.response) == (None, None)
    assert len(spans.ended) == 1


def test_lanes_are_told_apart(line: Any, provider: StrictProvider, tracker: Recorder) -> None:
    """Two requests at once, each with the events that name its lane."""
    if "stream_id" not in json.dumps(list(module.ResponsesResponseResource.create.__annotations__)):
        pytest.skip("this release has no lanes")
    ask(line, stream_id="a")
    ask(line, stream_id="b")
    until_closed(line)
    until_closed(line)
    for seen, lane in zip(tracker.exchanges, "ab", strict=True):
        assert json.loads(seen.request)["stream_id"] == lane
        events = [json.loads(x[6:]) for x in seen.events.splitlines() if x.startswith(b"data: ")]
        assert {event["stream_id"] for event in events} == {lane}
    assert [x.request_body for x in provider.exchanges] == [x.request for x in tracker.exchanges]


def test_a_response_that_nobody_asked_for_is_one_of_its_own(
    tracker: Recorder, handle: Handle
) -> None:
    """The successor of a steered response."""
    from otel_sealed.instrument.sockets import Line

    line = Line(handle.runtime, SimpleNamespace(headers={"Host": "h:1"}, path="/v1/responses"))
    response = {"id": "resp_2", "object": "response", "output": []}
    for kind in ("response.created", "response.output_text.delta", "response.completed"):
        line.recv.after(None, json.dumps({"type": kind, "response": response}))
    line.recv.after(None, json.dumps({"type": "response.steer.accepted"}))
    assert (tracker.one.request, tracker.one.host, tracker.one.complete) == (None, "h", True)
    assert tracker.one.events.count(b"data: ") == 3


def test_other_messages_are_no_calls(line: Any, tracker: Recorder) -> None:
    line.send({"type": "response.steer", "input": "no", "previous_response_id": "resp_1"})
    ask(line)
    until_closed(line)
    assert len(tracker.exchanges) == 1


def test_the_active_span_of_another_is_written_on(
    line: Any, tracker: Recorder, spans: Spans
) -> None:
    tracer = spans.provider.get_tracer("another")
    with tracer.start_as_current_span(
        "theirs", kind=SpanKind.CLIENT, attributes={"gen_ai.operation.name": "chat"}
    ):
        ask(line)
        until_closed(line)
    assert spans.names == ["theirs"]
    assert "otel_sealed.carry" in (spans.ended[0].attributes or {})
    assert len(tracker.exchanges) == 1


def test_what_is_suppressed_is_not_looked_at(line: Any, tracker: Recorder) -> None:
    token = otel_context.attach(otel_context.set_value("suppress_instrumentation", True))
    try:
        ask(line)
    finally:
        otel_context.detach(token)
    until_closed(line)
    assert tracker.exchanges == []


def test_an_open_connection_is_left_alone_once_we_are_off(line: Any, tracker: Recorder) -> None:
    uninstrument()
    ask(line)
    assert until_closed(line)[-1].type == "response.completed"
    assert tracker.exchanges == []


def test_a_new_connection_after_a_loss_is_looked_at(
    provider: StrictProvider, tracker: Recorder, handle: Handle
) -> None:
    """Where the SDK reconnects by itself."""
    if not hasattr(module.ResponsesConnection, "_reconnect"):
        pytest.skip("this release does not reconnect")
    given: dict[str, Any] = {"on_reconnecting": lambda _: None, "initial_delay": 0.01}
    with opened(provider.base_url) as client, client.responses.connect(**given) as line:
        provider.cut_next_stream(2)
        ask(line)
        events = []
        for event in line:
            events.append(event.type)
            if len(events) == 2:
                provider.clear()
                line._send_queue.enqueue(
                    json.dumps({"type": "response.create", **ASK, "input": "Go."})
                )
            if closing(event):
                break
    assert events[-1] == "response.completed"
    assert [seen.complete for seen in tracker.exchanges] == [False, True]
    assert handle.missing == ()


def test_a_seam_that_vanished_is_loud(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tracker: Recorder
) -> None:
    """A metric, a log line and a line of the doctor."""
    monkeypatch.setattr(guard, "STRICT", False)
    monkeypatch.delattr(module, "ResponsesConnection")
    name = f"{module.__name__}.ResponsesConnection.__init__"
    reader = InMemoryMetricReader()
    with caplog.at_level(logging.WARNING):
        handle = instrument("openai", meter_provider=MeterProvider([reader]), tracker=tracker)
    assert name in handle.missing
    assert any(name in record.getMessage() for record in caplog.records)
    data = reader.get_metrics_data()
    assert data is not None
    assert "MissingSeam" in data.to_json()
    lines = [line for line in doctor.examine({}) if line.about == "openai seams"]
    assert [(line.level, name in line.says) for line in lines] == [("mend", True)]


def test_a_module_that_vanished_is_loud(monkeypatch: pytest.MonkeyPatch, tracker: Recorder) -> None:
    """It would never be imported, so nothing else would tell."""
    monkeypatch.setattr(guard, "STRICT", False)
    monkeypatch.setattr(sockets, "_MODULE", "openai.resources.elsewhere.responses")
    handle = instrument("openai", tracker=tracker)
    name = "openai.resources.elsewhere.responses.ResponsesConnection.__init__"
    assert handle.missing == (name,)


def test_a_release_without_the_door_lacks_nothing(
    monkeypatch: pytest.MonkeyPatch, tracker: Recorder
) -> None:
    for owner in ("Responses", "AsyncResponses"):
        monkeypatch.delattr(getattr(module, owner), "connect")
    monkeypatch.delattr(module, "ResponsesConnection")
    monkeypatch.delattr(module, "AsyncResponsesConnection")
    handle = instrument("openai", tracker=tracker)
    assert handle.missing == ()
