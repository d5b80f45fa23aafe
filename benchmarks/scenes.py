"""The three SDKs on a transport in memory, and the conversation of an agent with each of them.

A turn is thinking with a seal of about 4 KB and one tool call, its result about 5 KB, so that a
hundred turns are a request of about 1 MB. Nothing here knows who looks on.
"""

from __future__ import annotations

import base64
import importlib
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from anthropic import Anthropic, DefaultHttpxClient
from google import genai
from google.genai import types
from openai import DefaultHttpxClient as OpenAIHttp
from openai import OpenAI

RANDOM = random.Random(7)
Body = dict[str, Any]


def seal() -> str:
    """An opaque value of about 4 KB."""
    return base64.b64encode(RANDOM.randbytes(3000)).decode()


def thought(number: int) -> str:
    """What the model thought, about 1 KB."""
    return f"Thought {number} {RANDOM.random()}: " + "weigh the river against a plan. " * 30


def result(number: int) -> str:
    """What a tool answered, about 5 KB."""
    return f"Result {number}: " + "an entry of the ledger with its sum. " * 130


def name() -> str:
    """An id of a tool call."""
    return f"toolu_{RANDOM.getrandbits(64):016x}"


class Wire:
    """A transport in memory that answers with whatever is set, and notes when it was asked."""

    def __init__(self) -> None:
        """Nothing is set."""
        self.chunks: list[bytes] = []
        self.kind = "application/json"
        self.asked = 0.0
        self.on_sent: Callable[[], object] = lambda: None

    def whole(self, body: Body) -> None:
        """Answer the next calls with a whole body."""
        self.chunks, self.kind = [json.dumps(body).encode()], "application/json"

    def events(self, events: list[Body], *, named: bool = True) -> None:
        """Answer the next calls with a stream, a chunk for each event."""
        self.kind = "text/event-stream"
        self.chunks = [
            (f"event: {e['type']}\n" if named else "").encode()
            + f"data: {json.dumps(e)}\n\n".encode()
            for e in events
        ]

    def client(self, made: type) -> Any:
        """A client of the same HTTP library as `made` over this transport."""
        base = next(kind for kind in made.__mro__ if kind.__name__ == "Client")
        http: Any = importlib.import_module(base.__module__.partition(".")[0])

        def answer(request: Any) -> Any:
            self.asked = time.perf_counter()
            self.on_sent()
            del request
            whole = self.kind == "application/json"
            content = self.chunks[0] if whole else iter(self.chunks)
            return http.Response(200, headers={"content-type": self.kind}, content=content)

        return http.Client(transport=http.MockTransport(answer))


class Sdk(Protocol):
    """One SDK with its wire format."""

    name: str

    def client(self, wire: Wire) -> Any:
        """A client over `wire`, the SDK's own tracing off."""

    def opening(self, text: str) -> list[Any]:
        """The history of a conversation that has only a question."""

    def turn(self, number: int) -> Any:
        """What the model says in a turn."""

    def plain(self, number: int) -> Any:
        """The same of a model that seals nothing: a text and a tool call."""

    def step(self, number: int, turn: Any, *, lossy: bool = False) -> list[Any]:
        """What a host adds to its history for a turn: all of it, and the tool's result.

        A `lossy` one leaves the block with the seal out, or on Gemini the seal alone.
        """

    def whole(self, wire: Wire, number: int, turn: Any) -> None:
        """Have `wire` answer with a turn."""

    def stream(self, wire: Wire, number: int) -> None:
        """Have `wire` answer with a stream of about 260 events."""

    def call(
        self, client: Any, history: list[Any], *, stream: bool = False, plain: bool = False
    ) -> Iterator[Any]:
        """One call of an agent; what it brings, event by event if streamed.

        `plain`: of a model that does not think, and nothing asks it to.
        """


class OnAnthropic:
    """Messages."""

    name = "anthropic"

    def client(self, wire: Wire) -> Any:
        """See `Sdk`."""
        return Anthropic(api_key="k", http_client=wire.client(DefaultHttpxClient), max_retries=0)

    def opening(self, text: str) -> list[Any]:
        """See `Sdk`."""
        return [{"role": "user", "content": text}]

    def turn(self, number: int) -> Any:
        """See `Sdk`."""
        return [
            {"type": "thinking", "thinking": thought(number), "signature": seal()},
            {"type": "tool_use", "id": name(), "name": "look_up", "input": {"q": number}},
        ]

    def plain(self, number: int) -> Any:
        """See `Sdk`."""
        return [{"type": "text", "text": thought(number)}, self.turn(number)[1]]

    def step(self, number: int, turn: Any, *, lossy: bool = False) -> list[Any]:
        """See `Sdk`."""
        told = {"type": "tool_result", "tool_use_id": turn[1]["id"], "content": result(number)}
        said = {"role": "assistant", "content": turn[1:] if lossy else turn}
        return [said, {"role": "user", "content": [told]}]

    def whole(self, wire: Wire, number: int, turn: Any) -> None:
        """See `Sdk`."""
        wire.whole(self._message(number, turn, "tool_use"))

    def stream(self, wire: Wire, number: int) -> None:
        """See `Sdk`."""
        start: Body = {"type": "message_start", "message": self._message(number, [], None)}
        block = {"type": "thinking", "thinking": "", "signature": ""}
        said: list[Body] = [start]
        said.append({"type": "content_block_start", "index": 0, "content_block": block})
        deltas: list[Body] = [
            {"type": "thinking_delta", "thinking": f"piece {step} "} for step in range(255)
        ]
        deltas.append({"type": "signature_delta", "signature": seal()})
        said += [{"type": "content_block_delta", "index": 0, "delta": d} for d in deltas]
        said.append({"type": "content_block_stop", "index": 0})
        done = {"stop_reason": "end_turn", "stop_sequence": None}
        said.append({"type": "message_delta", "delta": done, "usage": {"output_tokens": 20}})
        wire.events([*said, {"type": "message_stop"}])

    def call(
        self, client: Any, history: list[Any], *, stream: bool = False, plain: bool = False
    ) -> Iterator[Any]:
        """See `Sdk`."""
        asked: Body = {} if plain else {"thinking": {"type": "adaptive"}}
        found = client.messages.create(
            model="claude-sonnet-4-5" if plain else "claude-opus-5",
            max_tokens=4096,
            messages=history,
            stream=stream,
            **asked,
        )
        return iter(found) if stream else iter((found,))

    def _message(self, number: int, content: Any, stop: str | None) -> Body:
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5",
            "content": content,
            "stop_reason": stop,
            "usage": {"input_tokens": 10, "output_tokens": 20},
        }


class OnOpenAI:
    """Responses, nothing stored."""

    name = "openai"

    def client(self, wire: Wire) -> Any:
        """See `Sdk`."""
        return OpenAI(api_key="k", http_client=wire.client(OpenAIHttp), max_retries=0)

    def opening(self, text: str) -> list[Any]:
        """See `Sdk`."""
        return [{"role": "user", "content": text}]

    def turn(self, number: int) -> Any:
        """See `Sdk`."""
        summary = [{"type": "summary_text", "text": thought(number)}]
        call = {"type": "function_call", "id": name(), "call_id": name(), "name": "look_up"}
        return [
            {"id": name(), "type": "reasoning", "summary": summary, "encrypted_content": seal()},
            {**call, "arguments": json.dumps({"q": number}), "status": "completed"},
        ]

    def plain(self, number: int) -> Any:
        """See `Sdk`."""
        text = {"type": "output_text", "text": thought(number), "annotations": []}
        said = {"id": name(), "type": "message", "role": "assistant", "status": "completed"}
        return [{**said, "content": [text]}, self.turn(number)[1]]

    def step(self, number: int, turn: Any, *, lossy: bool = False) -> list[Any]:
        """See `Sdk`."""
        told = {"type": "function_call_output", "call_id": turn[1]["call_id"]}
        return [*(turn[1:] if lossy else turn), {**told, "output": result(number)}]

    def whole(self, wire: Wire, number: int, turn: Any) -> None:
        """See `Sdk`."""
        wire.whole(self._response(number, turn, "completed"))

    def stream(self, wire: Wire, number: int) -> None:
        """See `Sdk`."""
        item = {"id": name(), "type": "reasoning", "summary": [], "encrypted_content": seal()}
        created = self._response(number, [], "in_progress")
        said: list[Body] = [{"type": "response.created", "response": created}]
        where = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
        for step in range(255):
            delta = {"type": "response.reasoning_summary_text.delta", "delta": f"piece {step} "}
            said.append({**delta, **where})
        said.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        done = self._response(number, [item], "completed")
        said.append({"type": "response.completed", "response": done})
        wire.events([{**event, "sequence_number": at} for at, event in enumerate(said)])

    def call(
        self, client: Any, history: list[Any], *, stream: bool = False, plain: bool = False
    ) -> Iterator[Any]:
        """See `Sdk`."""
        asked: Body = {} if plain else {"include": ["reasoning.encrypted_content"]}
        found = client.responses.create(
            model="gpt-4.1" if plain else "gpt-5",
            store=False,
            input=history,
            stream=stream,
            **asked,
        )
        return iter(found) if stream else iter((found,))

    def _response(self, number: int, output: Any, status: str) -> Body:
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "status": status,
            "usage": {
                "input_tokens": 10,
                "output_tokens": 20,
                "total_tokens": 30,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 5},
            },
        }


class OnGemini:
    """generateContent."""

    name = "google"

    def client(self, wire: Wire) -> Any:
        """See `Sdk`."""
        client = genai.Client(api_key="k")
        inner: Any = client._api_client  # noqa: SLF001 - it takes no transport in memory
        inner._httpx_client.close()  # noqa: SLF001
        inner._httpx_client = wire.client(type(inner._httpx_client))  # noqa: SLF001
        return client

    def opening(self, text: str) -> list[Any]:
        """See `Sdk`."""
        return [types.Content(role="user", parts=[types.Part(text=text)])]

    def turn(self, number: int) -> Any:
        """See `Sdk`."""
        call = {"functionCall": {"name": "look_up", "args": {"q": number}}}
        return [{"text": thought(number), "thought": True}, {**call, "thoughtSignature": seal()}]

    def plain(self, number: int) -> Any:
        """See `Sdk`."""
        call = {"functionCall": {"name": "look_up", "args": {"q": number}}}
        return [{"text": thought(number)}, call]

    def step(self, number: int, turn: Any, *, lossy: bool = False) -> list[Any]:
        """See `Sdk`."""
        kept = [{k: v for k, v in part.items() if k != "thoughtSignature"} for part in turn]
        said = types.Content.model_validate({"role": "model", "parts": kept if lossy else turn})
        told = types.Part.from_function_response(name="look_up", response={"r": result(number)})
        return [said, types.Content(role="user", parts=[told])]

    def whole(self, wire: Wire, number: int, turn: Any) -> None:
        """See `Sdk`."""
        wire.whole(self._candidate(number, turn, "STOP"))

    def stream(self, wire: Wire, number: int) -> None:
        """See `Sdk`."""
        said = [
            self._candidate(number, [{"text": f"piece {step} ", "thought": True}], None)
            for step in range(258)
        ]
        last = [{"text": "", "thoughtSignature": seal()}]
        wire.events([*said, self._candidate(number, last, "STOP")], named=False)

    def call(
        self, client: Any, history: list[Any], *, stream: bool = False, plain: bool = False
    ) -> Iterator[Any]:
        """See `Sdk`."""
        ask = client.models.generate_content_stream if stream else client.models.generate_content
        model = "gemini-2.0-flash" if plain else "gemini-3-pro-preview"
        found = ask(model=model, contents=history)
        return iter(found) if stream else iter((found,))

    def _candidate(self, number: int, parts: Any, stop: str | None) -> Body:
        candidate: Body = {"content": {"role": "model", "parts": parts}, "index": 0}
        if stop:
            candidate["finishReason"] = stop
        return {
            "responseId": f"r{number}",
            "modelVersion": "gemini-3-pro-preview",
            "candidates": [candidate],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 20},
        }


SDKS: tuple[Sdk, ...] = (OnAnthropic(), OnOpenAI(), OnGemini())
