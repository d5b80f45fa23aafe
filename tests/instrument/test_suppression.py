"""Whose suppression it is: that of a tracer around the SDK, or that of the application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanKind

from otel_sealed.instrument import instrument, uninstrument

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder, Spans, Wire

MESSAGE = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[]}'
RESPONSE = b'{"id":"resp_1","object":"response","model":"m","output":[]}'
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
DONE = (
    b'event: response.completed\ndata: {"type":"response.completed","sequence_number":0,'
    b'"response":{"id":"resp_1","object":"response","model":"m","output":[]}}\n\n'
)
SUPPRESSED = "suppress_instrumentation"
ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}


@contextmanager
def suppressing() -> Iterator[None]:
    token = otel_context.attach(otel_context.set_value(SUPPRESSED, True))
    try:
        yield
    finally:
        otel_context.detach(token)


@dataclass
class Silencer:
    """A tracer as logfire is: a span around the SDK's `request`, all others kept quiet below it.

    What the application suppresses it leaves alone.
    """

    tracer: trace.Tracer
    kept: list[tuple[Any, Any]] = field(default_factory=list)

    @contextmanager
    def span(self) -> Iterator[None]:
        if otel_context.get_value(SUPPRESSED):
            yield
            return
        said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        with (
            self.tracer.start_as_current_span("theirs", kind=SpanKind.CLIENT, attributes=said),
            suppressing(),
        ):
            yield

    def put(self, client: Any) -> None:
        kept = client.request
        self.kept.append((client, kept))

        @wraps(kept)
        def request(*args: Any, **kwargs: Any) -> Any:
            with self.span():
                return kept(*args, **kwargs)

        @wraps(kept)
        async def async_request(*args: Any, **kwargs: Any) -> Any:
            with self.span():
                return await kept(*args, **kwargs)

        client.request = async_request if "Async" in client.__name__ else request

    def take(self) -> None:
        for client, _ in self.kept:
            del client.request


def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """The anthropic SDK's own span under a provider that honours the suppression."""

    class Quiet(TracerProvider):
        def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
            tracer = super().get_tracer(*args, **kwargs)
            started = tracer.start_span

            def start_span(*args: Any, **kwargs: Any) -> Any:
                if otel_context.get_value(SUPPRESSED):
                    return NonRecordingSpan(trace.get_current_span().get_span_context())
                return started(*args, **kwargs)

            tracer.start_span = start_span  # type: ignore[method-assign]
            return tracer

    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY", "true")
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", Quiet())


CLASSES = (anthropic.Anthropic, anthropic.AsyncAnthropic, openai.OpenAI, openai.AsyncOpenAI)
Put = Callable[..., None]


@pytest.fixture(params=["theirs first", "ours first"])
def put(
    request: pytest.FixtureRequest,
    spans: Spans,
    tracker: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Put]:
    """Puts both on, in both orders; `tracer` is theirs."""
    native(monkeypatch)
    made: list[Silencer] = []

    def both(tracer: trace.Tracer | None = None) -> None:
        made.append(Silencer(tracer or spans.provider.get_tracer("another")))
        if request.param == "ours first":
            instrument(tracer_provider=spans.provider, tracker=tracker)
        for client in CLASSES:
            made[0].put(client)
        instrument(tracer_provider=spans.provider, tracker=tracker)

    yield both
    uninstrument()
    for silencer in made:
        silencer.take()


def written_on_theirs(spans: Spans, tracker: Recorder) -> None:
    assert (spans.names, len(tracker.exchanges)) == (["theirs"], 1)
    assert "otel_sealed.carry" in (spans.ended[0].attributes or {})


def test_a_call_under_a_tracer_that_silences_others_is_written_on_its_span(
    put: Put, wire: Wire, spans: Spans, tracker: Recorder
) -> None:
    put()
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK)
    written_on_theirs(spans, tracker)


def test_so_is_one_of_openai(put: Put, wire: Wire, spans: Spans, tracker: Recorder) -> None:
    put()
    wire.answers(RESPONSE)
    with openai.OpenAI(api_key="k", base_url=wire.url) as client:
        client.responses.create(model="m", input="x")
    written_on_theirs(spans, tracker)


async def test_so_is_an_async_one(put: Put, wire: Wire, spans: Spans, tracker: Recorder) -> None:
    put()
    wire.answers(MESSAGE)
    async with anthropic.AsyncAnthropic(api_key="k", base_url=wire.url) as client:
        await client.messages.create(**ASK)
    written_on_theirs(spans, tracker)


async def test_so_is_an_async_one_of_openai(
    put: Put, wire: Wire, spans: Spans, tracker: Recorder
) -> None:
    put()
    wire.answers(RESPONSE)
    async with openai.AsyncOpenAI(api_key="k", base_url=wire.url) as client:
        await client.responses.create(model="m", input="x")
    written_on_theirs(spans, tracker)


@pytest.mark.parametrize("helper", [False, True])
def test_a_stream_that_outlives_their_span_gets_one_of_ours_below_it(
    put: Put, wire: Wire, spans: Spans, tracker: Recorder, *, helper: bool
) -> None:
    put()
    wire.streams(STOP)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        if helper:
            with client.messages.stream(**ASK) as events:
                assert [event.type for event in events] == ["message_stop"]
        else:
            created = client.messages.create(**ASK, stream=True)
            assert [event.type for event in created] == ["message_stop"]
    assert (tracker.one.events, tracker.one.complete) == (STOP, True)
    theirs, ours = spans.ended
    assert [theirs.name, ours.name] == ["theirs", "chat m"]
    assert ours.parent is not None
    assert theirs.context is not None
    assert ours.parent.span_id == theirs.context.span_id


def test_so_does_a_stream_of_openai(put: Put, wire: Wire, spans: Spans, tracker: Recorder) -> None:
    put()
    wire.streams(DONE)
    with openai.OpenAI(api_key="k", base_url=wire.url) as client:
        for _ in client.responses.create(model="m", input="x", stream=True):
            pass
    assert (tracker.one.complete, spans.names) == (True, ["theirs", "chat m"])


def test_a_call_whose_trace_is_not_sampled_is_observed_as_well(
    put: Put, wire: Wire, tracker: Recorder
) -> None:
    """Their span does not record, so that it cannot say that it is one of a call."""
    put(TracerProvider(sampler=ALWAYS_OFF).get_tracer("another"))
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK)
    assert len(tracker.exchanges) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_application_suppresses_is_not_looked_at(
    put: Put, wire: Wire, spans: Spans, tracker: Recorder, *, stream: bool
) -> None:
    """Inside of a span of its own, under which the SDK's does not record either."""
    put()
    wire.streams(STOP) if stream else wire.answers(MESSAGE)
    work = spans.provider.get_tracer("application").start_as_current_span("work")
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client, work, suppressing():
        got: Any = client.messages.create(**ASK, stream=stream)
        assert not stream or [event.type for event in got] == ["message_stop"]
    assert (tracker.exchanges, spans.names) == ([], ["work"])
