"""Chat Completions on the real SDK: its span, its vendor, and nothing where nothing is sealed."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.trace import SpanKind

from otel_sealed.instrument import instrument
from otel_sealed.telemetry.settings import Settings
from otel_sealed.wire import Api

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from tests.instrument.conftest import Recorder, Spans, Wire

SEAL = base64.b64encode(bytes(range(96))).decode()
GEMINI = "gemini-3-pro-preview"
HELLO: list[Any] = [{"role": "user", "content": "Which ledger is right?"}]
CALL: dict[str, Any] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": "{}"},
}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5.6-sol",
    "output": [],
    "status": "completed",
    "tools": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
}


def completion(model: str, **message: Any) -> bytes:
    said = {"role": "assistant", "content": None} | message
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": model, "usage": usage}
    return json.dumps(head | {"choices": [choice]}).encode()


def signed() -> dict[str, Any]:
    return CALL | {"extra_content": {"google": {"thought_signature": SEAL}}}


@pytest.fixture(name="client")
def client_(wire: Wire) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key="k", base_url=wire.url, max_retries=0) as client:
        yield client


@pytest.fixture(name="watched")
def watched_(spans: Spans, reader: InMemoryMetricReader) -> Spans:
    """The real core and the real emission."""
    instrument(
        "openai",
        tracer_provider=spans.provider,
        meter_provider=MeterProvider([reader]),
        settings=Settings(),
    )
    return spans


def told(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {k: v for k, v in (attributes or {}).items() if k.startswith("otel_sealed.")}


def test_a_call_has_one_client_span_of_its_own(
    watched: Spans, wire: Wire, client: openai.OpenAI
) -> None:
    wire.answers(completion(GEMINI, tool_calls=[signed()]))
    wire.answers(completion(GEMINI, content="The second."))
    message: Any = client.chat.completions.create(model=GEMINI, messages=HELLO).choices[0].message
    again: list[Any] = [*HELLO, {"role": "assistant", "tool_calls": [CALL]}, RESULT]
    sent: list[Any] = [*HELLO, message, RESULT]
    client.chat.completions.create(model=GEMINI, messages=sent)
    client.chat.completions.create(model=GEMINI, messages=again)
    assert watched.names == [f"chat {GEMINI}"] * 3
    last = watched.ended[-1]
    assert last.kind is SpanKind.CLIENT
    found = dict(last.attributes or {})
    assert found["gen_ai.operation.name"] == "chat"
    assert found["gen_ai.provider.name"] in ("gcp.gemini", "gcp.gen_ai")
    assert found["gen_ai.usage.input_tokens"] == 3
    assert found["gen_ai.response.finish_reasons"] == ("tool_call",)
    verdicts = [(x.attributes or {}).get("otel_sealed.verdict") for x in watched.ended]
    assert verdicts == [None, "ok", "breaks"]
    assert found["otel_sealed.findings"] == (
        "dropped gemini.tool_call.thought_signature G19 breaks",
    )


def test_the_span_of_another_tracer_is_written_on(
    watched: Spans, wire: Wire, client: openai.OpenAI
) -> None:
    wire.answers(completion(GEMINI, tool_calls=[signed()]))
    other = watched.provider.get_tracer("another")
    with other.start_as_current_span(
        f"chat {GEMINI}", kind=SpanKind.CLIENT, attributes={"gen_ai.operation.name": "chat"}
    ):
        client.chat.completions.create(model=GEMINI, messages=HELLO)
    (span,) = watched.ended
    assert (span.attributes or {})["otel_sealed.received.count"] == 1


@pytest.mark.parametrize("model", ["gpt-5.6-sol", "in-house-1"])
def test_where_nothing_is_sealed_nothing_is_said(
    watched: Spans, wire: Wire, client: openai.OpenAI, model: str
) -> None:
    wire.answers(completion(model, tool_calls=[CALL], reasoning_content="Because."))
    for _ in range(2):
        client.chat.completions.create(model=model, messages=HELLO)
    again: list[Any] = [*HELLO, {"role": "assistant", "tool_calls": [CALL]}, RESULT]
    client.chat.completions.create(model=model, messages=again)
    for span in watched.ended:
        found = told(span.attributes)
        assert found.keys().isdisjoint(
            {"otel_sealed.verdict", "otel_sealed.findings", "otel_sealed.drift"}
        )


@pytest.mark.usefixtures("handle")
def test_chat_and_responses_of_one_client_are_told_apart(
    wire: Wire, client: openai.OpenAI, tracker: Recorder
) -> None:
    wire.answers(completion("gpt-5.6-sol"))
    wire.answers(json.dumps(RESPONSE).encode())
    client.chat.completions.create(model="gpt-5.6-sol", messages=HELLO)
    client.responses.create(model="gpt-5.6-sol", input="Which ledger?")
    assert [x.api for x in tracker.exchanges] == [Api.CHAT_COMPLETIONS, Api.RESPONSES]


@pytest.mark.usefixtures("handle")
def test_what_lies_beside_chat_goes_by_unlooked_at(
    wire: Wire, client: openai.OpenAI, tracker: Recorder
) -> None:
    """Stored completions that are fetched, and the completions of old."""
    wire.answers(completion("gpt-5.6-sol"))
    client.get("/chat/completions/c", cast_to=object)
    client.post("/completions", body={"model": "m", "prompt": "a"}, cast_to=object)
    assert tracker.exchanges == []


@pytest.mark.usefixtures("handle")
def test_any_prefix_of_the_path_is_the_same_wire(wire: Wire, tracker: Recorder) -> None:
    """Google's and OpenRouter's base URLs have one of their own."""
    wire.answers(completion(GEMINI))
    for prefix in ("/v1beta/openai/", "/api/v1", ""):
        with openai.OpenAI(api_key="k", base_url=f"{wire.url}{prefix}", max_retries=0) as client:
            client.chat.completions.create(model=GEMINI, messages=HELLO)
    assert [x.api for x in tracker.exchanges] == [Api.CHAT_COMPLETIONS] * 3
