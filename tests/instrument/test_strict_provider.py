"""Real SDKs, a strict provider on loopback: every exchange equals what the provider logged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from google import genai

from otel_sealed.instrument import instrument, uninstrument
from otel_sealed.testing.strict import StrictProvider

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder, Spans

pytestmark = pytest.mark.usefixtures("handle")

TOOL: dict[str, Any] = {
    "name": "look_up",
    "description": "Look something up.",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
}


def test_anthropic_loop(tracker: Recorder, spans: Spans) -> None:
    """A tool loop, each turn streamed and carried back whole, equals the provider's log."""
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    ask: dict[str, Any] = {
        "model": "claude-opus-4-6",
        "max_tokens": 4096,
        "thinking": {"type": "adaptive"},
        "tools": [TOOL],
    }
    with (
        StrictProvider() as provider,
        anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url) as client,
    ):
        for _ in range(4):
            with client.messages.stream(**ask, messages=messages) as stream:
                message = stream.get_final_message()
            messages.append({"role": "assistant", "content": message.content})
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                break
            results = [
                {"type": "tool_result", "tool_use_id": c.id, "content": "found"} for c in calls
            ]
            messages.append({"role": "user", "content": results})
        logged = provider.exchanges
    assert len(logged) == 3
    assert [e.status for e in logged] == [200] * 3
    assert [e.request for e in tracker.exchanges] == [e.request_body for e in logged]
    assert [e.events for e in tracker.exchanges] == [e.response_body for e in logged]
    assert len(spans.names) == 3


def test_openai_loop(tracker: Recorder) -> None:
    """Two stateless turns of the Responses API equal the provider's log."""
    items: list[Any] = [{"role": "user", "content": "hi"}]
    with (
        StrictProvider() as provider,
        openai.OpenAI(api_key="k", base_url=provider.openai_url) as client,
    ):
        for _ in range(2):
            response = client.responses.create(
                model="gpt-5",
                input=items,
                store=False,
                include=["reasoning.encrypted_content"],
            )
            items += response.output
            items.append({"role": "user", "content": "and?"})
        logged = provider.exchanges
    assert [e.status for e in logged] == [200] * 2
    assert [e.request for e in tracker.exchanges] == [e.request_body for e in logged]
    assert [e.response for e in tracker.exchanges] == [e.response_body for e in logged]


def test_gemini_loop(tracker: Recorder) -> None:
    """Two turns of a Gemini chat equal the provider's log as JSON."""
    with StrictProvider() as provider:
        client = genai.Client(api_key="k", http_options={"base_url": provider.gemini_url})
        chat = client.chats.create(model="gemini-3-pro-preview")
        chat.send_message("hi")
        chat.send_message("and?")
        client._api_client._httpx_client.close()
        logged = provider.exchanges
    assert [e.status for e in logged] == [200] * 2
    assert [e.request for e in tracker.exchanges] == [json.loads(e.request_body) for e in logged]
    read = [r if isinstance(r, dict) else json.loads(r) for r in map(response, tracker.exchanges)]
    assert read == [json.loads(e.response_body) for e in logged]


def response(exchange: Any) -> Any:
    return exchange.response


@pytest.mark.parametrize("faithful", [True, False])
def test_with_the_real_core(spans: Spans, *, faithful: bool) -> None:
    """With a tracker of its own, a dropped seal is told on the span, and nothing else is."""
    uninstrument()
    instrument("anthropic", tracer_provider=spans.provider)
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    ask: dict[str, Any] = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": [TOOL],
    }
    with (
        StrictProvider() as provider,
        anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url) as client,
    ):
        message = client.messages.create(**ask, messages=messages)
        kept = [b for b in message.content if faithful or "thinking" not in b.type]
        calls = [block.id for block in message.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": c, "content": "found"} for c in calls]
        messages += [{"role": "assistant", "content": kept}, {"role": "user", "content": results}]
        if faithful:
            client.messages.create(**ask, messages=messages)
        else:
            with pytest.raises(anthropic.BadRequestError):
                client.messages.create(**ask, messages=messages)
    last = spans.ended[-1].attributes or {}
    assert last["otel_sealed.verdict"] == ("ok" if faithful else "breaks")
    assert last["otel_sealed.provider_verdict"] == ("accepted" if faithful else "rejected")
