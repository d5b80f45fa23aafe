"""The Interactions API of google-genai: what we read equals what the server received and sent.

Its client changed twice: there is none before 1.55, one of the Stainless generator up to 2.0, and
another generator's from 2.34 on. What holds for one holds for all.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from google import genai
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_sealed.instrument import dry, finalizing, instrument, interactions, uninstrument
from otel_sealed.wire import Api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.instrument.conftest import Recorder, Spans, Wire

if not hasattr(genai.Client, "interactions"):
    pytest.skip("this release has no Interactions API", allow_module_level=True)

pytestmark = [
    pytest.mark.usefixtures("handle"),
    # the SDK itself says so, once, in the releases that had it first
    pytest.mark.filterwarnings("ignore:Interactions usage is experimental:UserWarning"),
]

MODEL = "gemini-3-pro-preview"
# Releases up to 1.75 speak the first revision of the wire: turns in, outputs back.
try:
    LEGACY = bool(importlib.util.find_spec("google.genai._interactions.types.content_delta"))
except ModuleNotFoundError:
    LEGACY = False
THOUGHT = {"type": "thought", "signature": "Ab+/cQ==", "summary": []}
DONE: dict[str, Any] = {
    "id": "i_1",
    "status": "completed",
    "model": MODEL,
    "created": "2026-11-29T00:00:00Z",
    "updated": "2026-11-29T00:00:00Z",
    "steps": [THOUGHT],
    "outputs": [THOUGHT],
}
EVENTS = [
    {"event_type": "interaction.created", "interaction": {**DONE, "steps": []}},
    {"event_type": "step.start", "index": 0, "step": {"type": "thought"}},
    {
        "event_type": "step.delta",
        "index": 0,
        "delta": {"type": "thought_signature", "signature": "Ab+/cQ=="},
    },
    {"event_type": "step.stop", "index": 0},
    {"event_type": "interaction.completed", "interaction": DONE},
]
REFUSAL = {"error": {"code": 400, "message": "signature", "status": "INVALID_ARGUMENT"}}
BODY = json.dumps(DONE).encode()


def sse(*events: Any) -> list[bytes]:
    return [
        f"event: {event['event_type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    ]


STREAM = [*sse(*EVENTS), b"data: [DONE]\n\n"]


@pytest.fixture
def client(wire: Wire) -> Iterator[Any]:
    options: Any = {"base_url": wire.url, "retry_options": {"attempts": 1}}
    client = genai.Client(api_key="k", http_options=options)
    yield client
    client._api_client._httpx_client.close()


@pytest_asyncio.fixture
async def client_async(wire: Wire) -> AsyncIterator[Any]:
    options: Any = {"base_url": wire.url, "retry_options": {"attempts": 1}}
    client = genai.Client(api_key="k", http_options=options)
    yield client
    http: Any = client._api_client._async_httpx_client
    await http.aclose()
    client._api_client._httpx_client.close()


def test_whole(tracker: Recorder, wire: Wire, client: Any, spans: Spans) -> None:
    """`interactions.create` is one exchange, byte for byte."""
    wire.answers(BODY)
    got = client.interactions.create(model=MODEL, input="é")
    assert got.id == "i_1"
    seen = tracker.one
    assert (seen.api, seen.provider, seen.host) == (Api.INTERACTIONS, "google", "127.0.0.1")
    assert (seen.request, seen.response) == (wire.seen[0].body, BODY)
    assert (seen.operation, seen.status, seen.complete) == (None, 200, True)
    (span,) = spans.ended
    assert (span.attributes or {})["gen_ai.operation.name"] == "chat"


async def test_whole_async(tracker: Recorder, wire: Wire, client_async: Any) -> None:
    """The same for the async client."""
    wire.answers(BODY)
    await client_async.aio.interactions.create(model=MODEL, input="é")
    assert (tracker.one.request, tracker.one.response) == (wire.seen[0].body, BODY)


def test_stream(tracker: Recorder, wire: Wire, client: Any) -> None:
    """A stream is one exchange with its bytes, told at its end."""
    wire.streams(*STREAM)
    stream = client.interactions.create(model=MODEL, input="é", stream=True)
    assert tracker.exchanges == []
    assert len(list(stream)) == len(EVENTS)
    seen = tracker.one
    assert (seen.request, seen.events) == (wire.seen[0].body, b"".join(STREAM))
    assert (seen.response, seen.complete) == (None, True)


async def test_stream_async(tracker: Recorder, wire: Wire, client_async: Any) -> None:
    """The same for an async stream."""
    wire.streams(*STREAM)
    stream = await client_async.aio.interactions.create(model=MODEL, input="é", stream=True)
    assert len([event async for event in stream]) == len(EVENTS)
    assert (tracker.one.events, tracker.one.complete) == (b"".join(STREAM), True)


def test_early_close(tracker: Recorder, wire: Wire, client: Any) -> None:
    """A stream closed early is observed once, as cut."""
    wire.streams(*STREAM)
    stream = client.interactions.create(model=MODEL, input="é", stream=True)
    next(iter(stream))
    stream.close()
    assert len(tracker.exchanges) == 1


def test_a_stream_that_breaks_off_is_cut(tracker: Recorder, wire: Wire, client: Any) -> None:
    """What the SDK raises is the application's; what came is observed, and not complete."""
    wire.streams(*STREAM[:3], cut=True)
    with pytest.raises(Exception, match=r"(?i)peer closed|incomplete|connection"):
        list(client.interactions.create(model=MODEL, input="é", stream=True))
    assert (tracker.one.events, tracker.one.complete) == (b"".join(STREAM[:3]), False)


def test_dropped(tracker: Recorder, wire: Wire, client: Any) -> None:
    """A stream that nobody reads is observed once, and nothing of it came."""
    wire.streams(*STREAM)
    stream = client.interactions.create(model=MODEL, input="é", stream=True)
    del stream
    gc.collect()
    finalizing.catch_up()
    assert tracker.one.complete is False


@pytest.mark.parametrize("stream", [False, True])
def test_refusal(tracker: Recorder, wire: Wire, client: Any, spans: Spans, *, stream: bool) -> None:
    """A refusal is observed with its body and raised as the SDK raises it."""
    wire.answers(json.dumps(REFUSAL).encode(), status=400)
    with pytest.raises(Exception, match=r"signature|400") as raised:
        client.interactions.create(model=MODEL, input="é", stream=stream)
    assert type(raised.value).__name__ == "BadRequestError"
    seen = tracker.one
    assert (seen.response, seen.events, seen.status) == (json.dumps(REFUSAL).encode(), None, 400)
    (span,) = spans.ended
    assert "error.type" in (span.attributes or {})


@pytest.mark.parametrize("stream", [False, True])
async def test_refusal_async(
    tracker: Recorder, wire: Wire, client_async: Any, *, stream: bool
) -> None:
    """The same for async calls."""
    wire.answers(json.dumps(REFUSAL).encode(), status=400)
    with pytest.raises(Exception, match=r"signature|400"):
        await client_async.aio.interactions.create(model=MODEL, input="é", stream=stream)
    assert (tracker.one.response, tracker.one.status) == (json.dumps(REFUSAL).encode(), 400)


def test_a_retried_call_is_one_exchange(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """The last attempt counts."""
    wire.answers(json.dumps(REFUSAL).encode(), status=503, headers={"retry-after-ms": "1"})
    wire.answers(BODY)
    client = genai.Client(api_key="k", http_options={"base_url": wire.url})
    client.interactions.create(model=MODEL, input="é")
    client._api_client._httpx_client.close()
    assert len(wire.seen) == 2
    assert (tracker.one.status, tracker.one.response) == (200, BODY)
    assert len(spans.names) == 1


def test_no_server_is_an_exchange_without_a_reply(
    tracker: Recorder, client: Any, spans: Spans
) -> None:
    """A call that never got through is observed with what it would have sent."""
    options: Any = client._api_client._http_options
    options.base_url = "http://127.0.0.1:9"
    with pytest.raises(Exception, match=r"(?i)connect"):
        client.interactions.create(model=MODEL, input="é")
    assert (tracker.one.status, tracker.one.response) == (None, None)
    (span,) = spans.ended
    assert "Error" in str((span.attributes or {})["error.type"])


async def test_cancelled(
    tracker: Recorder,
    wire: Wire,
    client_async: Any,
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    """A cancelled call is observed, and the cancellation passes."""
    gate = threading.Event()
    wire.answers(BODY[:9], BODY[9:], pause=gate)
    task = asyncio.create_task(client_async.aio.interactions.create(model=MODEL, input="é"))
    await asyncio.to_thread(eventually, lambda: bool(wire.seen))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    eventually(lambda: len(tracker.exchanges) == 1)
    assert tracker.one.response is None


def test_fetched(tracker: Recorder, wire: Wire, client: Any, spans: Spans) -> None:
    """What is fetched comes in, and replays nothing; deleting brings nothing."""
    wire.answers(BODY)
    client.interactions.get("i_1")
    client.interactions.delete("i_1")
    seen = tracker.one
    assert (seen.operation, seen.request, seen.response) == ("retrieve", None, BODY)
    assert [(span.attributes or {})["gen_ai.operation.name"] for span in spans.ended] == [
        "retrieve"
    ]


def test_fetched_as_a_stream(tracker: Recorder, wire: Wire, client: Any) -> None:
    """An interaction that is followed comes in by its events."""
    wire.streams(*STREAM)
    assert len(list(client.interactions.get("i_1", stream=True))) == len(EVENTS)
    assert (tracker.one.operation, tracker.one.events) == ("retrieve", b"".join(STREAM))


def test_cancelling_brings_what_there_was(tracker: Recorder, wire: Wire, client: Any) -> None:
    """`interactions.cancel` answers with the interaction as far as it came."""
    wire.answers(BODY)
    client.interactions.cancel("i_1")
    assert (tracker.one.operation, tracker.one.response) == ("cancel", BODY)


@pytest.mark.parametrize("form", ["with_raw_response", "with_streaming_response"])
def test_raw_forms(tracker: Recorder, wire: Wire, client: Any, form: str) -> None:
    """Raw and streaming responses hand on the same bytes, and are one exchange each."""
    wire.answers(BODY)
    made = getattr(client.interactions, form).create(model=MODEL, input="é")
    if hasattr(made, "__enter__"):
        with made as response:
            assert b"".join(response.iter_bytes()) == BODY
    else:
        assert json.loads(made.text if isinstance(made.text, str) else made.text()) == DONE
    assert (tracker.one.request, tracker.one.response) == (wire.seen[0].body, BODY)


def test_vertex(handle: Any, tracker: Recorder, wire: Wire) -> None:
    """On Vertex the project of the URL is the account."""
    from google.auth.credentials import AnonymousCredentials

    wire.answers(BODY)
    client = genai.Client(
        vertexai=True,
        project="p",
        location="l",
        credentials=_named(AnonymousCredentials()),  # type: ignore[no-untyped-call]
        http_options={"base_url": wire.url},
    )
    client.interactions.create(model=MODEL, input="é")
    client._api_client._httpx_client.close()
    assert "/projects/p/locations/l/interactions" in wire.seen[0].path
    assert tracker.one.account == handle.runtime.account("projects/p")


def _named(credentials: Any) -> Any:
    """Credentials with a token, as a server would have given them."""
    credentials.token = "t"
    return credentials


def test_a_client_that_moved_is_a_lost_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that offers Interactions and has neither client is told, by name."""
    assert interactions.vanished() == ()
    monkeypatch.setattr(interactions, "_there", lambda *_: False)
    assert interactions.vanished() == (
        "google.genai._gaos.basesdk.BaseSDK.do_request",
        "google.genai._gaos.basesdk.AsyncBaseSDK.do_request_async",
    )


@pytest.mark.parametrize("carried", [True, False])
def test_what_became_of_a_thought_is_on_the_span(
    wire: Wire, client: Any, spans: Spans, *, carried: bool
) -> None:
    """The whole way, in the words of whichever revision of the wire this release speaks."""
    uninstrument()
    thought = {**THOUGHT, "signature": "Ab+/" * 20}
    said = {"type": "text", "text": "The second."}
    if LEGACY:
        came = [thought, said]
        ask: list[Any] = [{"role": "user", "content": "Which?"}]
    else:
        came = [thought, {"type": "model_output", "content": [said]}]
        ask = [{"type": "user_input", "content": [{"type": "text", "text": "Which?"}]}]
    names = ("steps", "outputs")
    wire.answers(json.dumps({**DONE, **dict.fromkeys(names), names[LEGACY]: came}).encode())
    kept = came if carried else came[1:]
    back = [{"role": "model", "content": kept}] if LEGACY else kept
    instrument("google", tracer_provider=spans.provider)
    client.interactions.create(model=MODEL, input=ask, store=False)
    client.interactions.create(model=MODEL, input=[*ask, *back, *ask], store=False)
    verdicts = [(span.attributes or {}).get("otel_sealed.verdict") for span in spans.ended]
    assert verdicts == [None, "ok" if carried else "degrades"]


def test_a_lost_client_is_in_the_handle_the_metric_the_log_and_the_dry_run(
    monkeypatch: pytest.MonkeyPatch, tracker: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told like any other seam that an imported SDK turned out not to have."""
    uninstrument()
    monkeypatch.setattr(interactions, "_there", lambda *_: False)
    name = "google.genai._gaos.basesdk.BaseSDK.do_request"
    reader = InMemoryMetricReader()
    handle = instrument("google", meter_provider=MeterProvider([reader]), tracker=tracker)
    assert name in handle.missing
    assert any(name in record.getMessage() for record in caplog.records)
    assert "MissingSeam" in str(reader.get_metrics_data())
    uninstrument()
    assert name in dry.attach("google").missing
