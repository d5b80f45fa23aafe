"""The other instrumentations, each put on and taken off by its own means, and what drives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import anthropic
import openai
import pytest
from google import genai
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otel_sealed.testing.strict import StrictProvider
from tests.coexist.conftest import Spans

Off = Callable[[], object]
TOOL: Final[dict[str, Any]] = {
    "name": "look",
    "description": "Look something up.",
    "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
}
# Some read these once, when they are imported: content capture on, wherever there is a switch.
CAPTURE: Final = {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "TRACELOOP_TRACE_CONTENT": "true",
    "TRACELOOP_TELEMETRY": "false",
}
QUESTION: Final = "What does the customer ask?"


@dataclass(frozen=True, slots=True)
class Peer:
    """One package: the SDK it watches, the scope of its spans, and how it is put on."""

    sdk: str
    scope: str
    module: str
    kind: str
    stays: bool = False
    """Measured: its spans of this SDK go on after it was taken off, with or without us."""

    def put(self, spans: Spans) -> Off:
        """Instrument; the result takes it off again. Skips the test if it is not installed."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in CAPTURE.items():
                patch.setenv(name, value)
            module = pytest.importorskip(self.module)
            return self._put(module, spans)

    def _put(self, module: Any, spans: Spans) -> Off:
        if self.module == "logfire":
            mine = module.configure(
                local=True,
                send_to_logfire=False,
                console=False,
                additional_span_processors=[SimpleSpanProcessor(spans.exporter)],
            )
            undo = getattr(mine, self.kind)()
            undo.__enter__()
            return lambda: undo.__exit__(None, None, None)
        instrumentor = getattr(module, self.kind)()
        instrumentor.instrument(tracer_provider=spans.provider, skip_dep_check=True)
        off: Off = instrumentor.uninstrument
        return off


PEERS: Final = {
    "openinference-anthropic": Peer(
        "anthropic",
        "openinference.instrumentation.anthropic",
        "openinference.instrumentation.anthropic",
        "AnthropicInstrumentor",
    ),
    "openinference-openai": Peer(
        "openai",
        "openinference.instrumentation.openai",
        "openinference.instrumentation.openai",
        "OpenAIInstrumentor",
    ),
    "openinference-google": Peer(
        "google",
        "openinference.instrumentation.google_genai",
        "openinference.instrumentation.google_genai",
        "GoogleGenAIInstrumentor",
    ),
    "openllmetry-anthropic": Peer(
        "anthropic",
        "opentelemetry.instrumentation.anthropic",
        "opentelemetry.instrumentation.anthropic",
        "AnthropicInstrumentor",
    ),
    "openllmetry-openai": Peer(
        "openai",
        "opentelemetry.instrumentation.openai.v1",
        "opentelemetry.instrumentation.openai",
        "OpenAIInstrumentor",
        stays=True,
    ),
    "logfire-anthropic": Peer("anthropic", "logfire.anthropic", "logfire", "instrument_anthropic"),
    "logfire-openai": Peer("openai", "logfire.openai", "logfire", "instrument_openai"),
    "opentelemetry-openai": Peer(
        "openai",
        "opentelemetry.instrumentation.genai.openai",
        "opentelemetry.instrumentation.genai.openai",
        "OpenAIInstrumentor",
    ),
    "opentelemetry-google": Peer(
        "google",
        "opentelemetry.instrumentation.google_genai",
        "opentelemetry.instrumentation.google_genai",
        "GoogleGenAiSdkInstrumentor",
    ),
    "opentelemetry-anthropic": Peer(
        "anthropic",
        "opentelemetry.instrumentation.genai.anthropic",
        "opentelemetry.instrumentation.genai.anthropic",
        "AnthropicInstrumentor",
    ),
}


def drive(sdk: str, provider: StrictProvider, turns: int = 3) -> int:
    """A conversation with sealed state carried back whole; how many calls it took.

    The second call is streamed, the others are not.
    """
    calls = {"anthropic": _anthropic, "openai": _openai, "google": _google}[sdk]
    calls(provider, turns)
    return turns


def _anthropic(provider: StrictProvider, turns: int) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    ask: dict[str, Any] = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": [TOOL],
    }
    with anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url, max_retries=0) as client:
        for turn in range(turns):
            if turn == 1:
                with client.messages.stream(**ask, messages=messages) as stream:
                    message: Any = stream.get_final_message()
            else:
                message = client.messages.create(**ask, messages=messages)
            messages.append({"role": "assistant", "content": message.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "found"}
                for block in message.content
                if block.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results or "and?"})


def _openai(provider: StrictProvider, turns: int) -> None:
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    ask: dict[str, Any] = {
        "model": "gpt-5",
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    with openai.OpenAI(api_key="k", base_url=provider.openai_url, max_retries=0) as client:
        for turn in range(turns):
            if turn == 1:
                events = list(client.responses.create(**ask, input=items, stream=True))
                response: Any = events[-1].response
            else:
                response = client.responses.create(**ask, input=items)
            items += [*response.output, {"role": "user", "content": "and?"}]


def _google(provider: StrictProvider, turns: int) -> None:
    client = genai.Client(api_key="k", http_options={"base_url": provider.gemini_url})
    chat = client.chats.create(model="gemini-3-pro-preview")
    for turn in range(turns):
        if turn == 1:
            list(chat.send_message_stream("and?"))
        else:
            chat.send_message(QUESTION)
    client.close()
