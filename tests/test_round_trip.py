"""Three turns and a follow-up on the real SDKs: what came back is what came in, byte for byte.

Held against what the server received, not against our own digests alone.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

import otel_sealed
from otel_sealed.contract import Exchange
from otel_sealed.digest import decode_blob
from otel_sealed.model import Fate, Report, Verdict
from otel_sealed.testing.strict import StrictProvider
from otel_sealed.tracker import Tracker

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"query": {"type": "string"}}}
Ask = Callable[[], Awaitable[Any]]


class Watched(Tracker):
    """The real core, its reports kept."""

    def __init__(self) -> None:
        super().__init__(b"k" * 32)
        self.reports: list[Report] = []

    def observe(self, exchange: Exchange) -> Report:
        report = super().observe(exchange)
        self.reports.append(report)
        return report


@pytest.fixture
def core() -> Iterator[Watched]:
    tracker = Watched()
    with otel_sealed.instrument(tracker=tracker):
        yield tracker


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider() as server:
        yield server


async def drain(value: Any) -> Any:
    """A value, or what an awaitable brings."""
    return await value if hasattr(value, "__await__") else value


# ------------------------------------------------------------------------- one faithful host an SDK


async def on_anthropic(url: StrictProvider, *, is_async: bool, stream: bool) -> None:
    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    client: Any = kind(api_key="k", base_url=url.anthropic_url)
    tool = {"name": "look_up", "description": "Look it up.", "input_schema": SCHEMA}
    ask: dict[str, Any] = {"model": "claude-opus-5", "max_tokens": 4096, "tools": [tool]}
    ask["thinking"] = {"type": "adaptive"}
    messages: list[Any] = [{"role": "user", "content": "Which ledger is right?"}]
    for turn in range(4):
        if not stream:
            message = await drain(client.messages.create(**ask, messages=messages))
        elif is_async:
            async with client.messages.stream(**ask, messages=messages) as events:
                message = await events.get_final_message()
        else:
            with client.messages.stream(**ask, messages=messages) as events:
                message = events.get_final_message()
        messages.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": "42"} for c in calls]
        messages.append({"role": "user", "content": results or f"And {turn}?"})
    await drain(client.close())


async def on_openai(url: StrictProvider, *, is_async: bool, stream: bool) -> None:
    kind = openai.AsyncOpenAI if is_async else openai.OpenAI
    client: Any = kind(api_key="k", base_url=url.openai_url)
    tool = {"type": "function", "name": "look_up", "parameters": SCHEMA, "strict": False}
    ask: dict[str, Any] = {"model": "gpt-5.6-sol", "store": False, "tools": [tool]}
    ask["include"] = ["reasoning.encrypted_content"]
    items: list[Any] = [{"role": "user", "content": "Which ledger is right?"}]
    for turn in range(4):
        if not stream:
            response = await drain(client.responses.create(**ask, input=items))
        elif is_async:
            async with client.responses.stream(**ask, input=items) as events:
                async for _ in events:
                    pass
                response = await events.get_final_response()
        else:
            with client.responses.stream(**ask, input=items) as events:
                for _ in events:
                    pass
                response = events.get_final_response()
        items += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        output = "function_call_output"
        items += [{"type": output, "call_id": c.call_id, "output": "42"} for c in calls]
        if not calls:
            items.append({"role": "user", "content": f"And {turn}?"})
    await drain(client.close())


async def on_gemini(url: StrictProvider, *, is_async: bool, stream: bool) -> None:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url.gemini_url))
    models: Any = client.aio.models if is_async else client.models
    declared = {"name": "look_up", "description": "Look.", "parameters_json_schema": SCHEMA}
    config = types.GenerateContentConfig(
        tools=[{"function_declarations": [declared]}],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="Which ledger?")])]
    ask: dict[str, Any] = {"model": "gemini-3-pro-preview", "config": config}
    for turn in range(4):
        parts: list[Any] = []
        if not stream:
            answer = await drain(models.generate_content(**ask, contents=contents))
            parts = answer.candidates[0].content.parts
        elif is_async:
            async for chunk in await models.generate_content_stream(**ask, contents=contents):
                parts += chunk.candidates[0].content.parts or []
        else:
            for chunk in models.generate_content_stream(**ask, contents=contents):
                parts += chunk.candidates[0].content.parts or []
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        told = [types.Part.from_function_response(name=c.name, response={"sum": 42}) for c in calls]
        contents.append(types.Content(role="user", parts=told or [types.Part(text=f"And {turn}?")]))


HOSTS: dict[str, Callable[..., Awaitable[None]]] = {
    "anthropic": on_anthropic,
    "openai": on_openai,
    "gemini": on_gemini,
}


def came_back(dialect: str, minted: str, body: bytes) -> bool:
    """Whether a seal stands in a request body: as text, or for Gemini as bytes in any spelling."""
    if dialect != "gemini":
        return json.dumps(minted)[1:-1].encode() in body or minted.encode() in body
    blobs = re.findall(rb'"thoughtSignature": ?"([^"]+)"', body)
    return decode_blob(minted) in [decode_blob(blob.decode()) for blob in blobs]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("dialect", list(HOSTS))
def test_every_seal_comes_back_as_the_server_minted_it(
    core: Watched, provider: StrictProvider, dialect: str, *, is_async: bool, stream: bool
) -> None:
    asyncio.run(_run(HOSTS[dialect], provider, is_async=is_async, stream=stream))
    exchanges = provider.exchanges
    assert [200] * 4 == [exchange.status for exchange in exchanges]
    before_last = [m for m in provider.minted if came_back(dialect, m.value, _last(provider))]
    expected = [m for m in provider.minted if m.value.encode() not in exchanges[-1].response_body]
    assert [m.value for m in expected] == [m.value for m in before_last if m in expected]
    assert len(expected) >= 3
    findings = [f for report in core.reports for f in report.findings]
    assert {Fate.INTACT} == {f.fate for f in findings}
    assert {Verdict.OK} == {f.verdict for f in findings}
    assert len(expected) == core.reports[-1].returned == core.reports[-1].expected
    assert ["accepted"] * 4 == [report.provider_verdict for report in core.reports]


def _last(provider: StrictProvider) -> bytes:
    return provider.exchanges[-1].request_body


async def _run(host: Any, provider: StrictProvider, *, is_async: bool, stream: bool) -> None:
    await host(provider, is_async=is_async, stream=stream)
