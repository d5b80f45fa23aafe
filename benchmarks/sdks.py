"""What the three SDKs are measured on: an agent's calls over a transport in memory.

Every case is the same work for each SDK: a small call, a stream, and a conversation that grows by
a turn a call, each turn with a seal of about 4 KB and a tool result of about 5 KB, all of it sent
back as it came.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

Body = dict[str, Any]
RANDOM = random.Random(7)
MODELS: Final = {"anthropic": "claude-opus-5", "openai": "gpt-5", "google": "gemini-3-pro"}
TURNS: Final = {"anthropic": 100, "openai": 40, "google": 40}
"""Turns of the conversation; the typed histories of the other two cost them 10 times as much."""
EVENTS: Final = 255
SMALL: Final = 60
STREAMS: Final = 12


@dataclass
class Wire:
    """A transport in memory that answers with whatever is set."""

    reply: bytes = b""
    kind: str = "application/json"

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Answer."""
        del request
        return httpx2.Response(200, headers={"content-type": self.kind}, content=self.reply)

    def says(self, reply: Body) -> None:
        """A whole reply to the next calls."""
        self.kind, self.reply = "application/json", json.dumps(reply).encode()

    def streams(self, events: list[Body], *, named: bool) -> None:
        """An event stream to the next calls."""
        self.kind = "text/event-stream"
        self.reply = b"".join(
            (f"event: {e['type']}\n" if named else "").encode()
            + b"data: "
            + json.dumps(e).encode()
            + b"\n\n"
            for e in events
        )


def seal() -> str:
    """An opaque value of about 4 KB."""
    return base64.b64encode(RANDOM.randbytes(3000)).decode()


def name(prefix: str) -> str:
    """An id nobody had before."""
    return f"{prefix}_{RANDOM.getrandbits(64):016x}"


def thought(number: int) -> str:
    """About 1 KB of thinking."""
    return f"Thought {number}: " + "weigh the river against a plan. " * 30


def result(number: int) -> str:
    """About 5 KB of a tool's result."""
    return f"Result {number}: " + "an entry of the ledger with its sum. " * 130


@dataclass(frozen=True)
class Sdk:
    """One SDK: how a turn looks on its wire, both ways, and how it is called."""

    client: Callable[[Wire], Any]
    asks: Callable[[str], list[Body]]
    """A question, as the beginning of a history."""
    comes: Callable[[int], tuple[Body, list[Body]]]
    """Of a turn: the reply that brings it, and what the next request adds to the history."""
    events: Callable[[int], tuple[list[Body], bool]]
    """A stream of about that many events, and whether they are named."""
    call: Callable[..., None]


@dataclass
class Work:
    """The cases, over one client. Each returns how many calls it made."""

    sdk: Sdk
    turns: int
    wire: Wire = field(default_factory=Wire)
    client: Any = None

    def __post_init__(self) -> None:
        """The client is made once, after whatever watches it was put on."""
        self.client = self.sdk.client(self.wire)

    def small(self) -> int:
        """First calls of conversations."""
        for number in range(SMALL):
            self.wire.says(self.sdk.comes(number)[0])
            self.sdk.call(self.client, self.sdk.asks(f"Question {RANDOM.random()}"), stream=False)
        return SMALL

    def stream(self) -> int:
        """The same, streamed."""
        for _ in range(STREAMS):
            events, named = self.sdk.events(EVENTS)
            self.wire.streams(events, named=named)
            self.sdk.call(self.client, self.sdk.asks(f"Question {RANDOM.random()}"), stream=True)
        return STREAMS

    def growing(self) -> int:
        """A conversation that grows by a turn a call, faithful."""
        messages = self.sdk.asks(f"Question {RANDOM.random()}")
        for number in range(self.turns):
            reply, more = self.sdk.comes(number)
            self.wire.says(reply)
            self.sdk.call(self.client, messages, stream=False)
            messages = [*messages, *more]
        return self.turns


# --------------------------------------------------------------------------------- anthropic


def _anthropic_client(wire: Wire) -> Any:
    import anthropic

    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    return anthropic.Anthropic(api_key="k", http_client=http, max_retries=0)


def _anthropic_reply(content: list[Body]) -> Body:
    return {
        "id": name("msg"),
        "type": "message",
        "role": "assistant",
        "model": MODELS["anthropic"],
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 20},
    }


def _anthropic_comes(number: int) -> tuple[Body, list[Body]]:
    use = name("toolu")
    content: list[Body] = [
        {"type": "thinking", "thinking": thought(number), "signature": seal()},
        {"type": "tool_use", "id": use, "name": "look_up", "input": {"q": number}},
    ]
    back = [{"type": "tool_result", "tool_use_id": use, "content": result(number)}]
    return _anthropic_reply(content), [
        {"role": "assistant", "content": content},
        {"role": "user", "content": back},
    ]


def _anthropic_events(count: int) -> tuple[list[Body], bool]:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [{"type": "thinking_delta", "thinking": f"piece {n} "} for n in range(count)]
    done = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**_anthropic_reply([]), "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": delta}
            for delta in [*deltas, {"type": "signature_delta", "signature": seal()}]
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": done, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ], True


def _anthropic_call(client: Any, messages: list[Body], *, stream: bool) -> None:
    ask: Body = {
        "model": MODELS["anthropic"],
        "max_tokens": 4096,
        "thinking": {"type": "adaptive"},
        "messages": messages,
    }
    if not stream:
        client.messages.create(**ask)
        return
    for _ in client.messages.create(**ask, stream=True):
        pass


# ------------------------------------------------------------------------------------ openai


def _openai_client(wire: Wire) -> Any:
    import openai

    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    return openai.OpenAI(api_key="k", http_client=http, max_retries=0)


def _openai_reply(output: list[Body]) -> Body:
    return {
        "id": name("resp"),
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": MODELS["openai"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 20,
            "total_tokens": 30,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 10},
        },
    }


def _openai_reasoning(number: int) -> Body:
    return {
        "type": "reasoning",
        "id": name("rs"),
        "summary": [{"type": "summary_text", "text": thought(number)}],
        "encrypted_content": seal(),
    }


def _openai_comes(number: int) -> tuple[Body, list[Body]]:
    made = {
        "type": "function_call",
        "id": name("fc"),
        "call_id": name("call"),
        "name": "look_up",
        "arguments": json.dumps({"q": number}),
        "status": "completed",
    }
    output = [_openai_reasoning(number), made]
    back = {
        "type": "function_call_output",
        "call_id": made["call_id"],
        "output": result(number),
    }
    return _openai_reply(output), [*output, back]


def _openai_events(count: int) -> tuple[list[Body], bool]:
    item = _openai_reasoning(0)
    empty = {**item, "summary": [], "encrypted_content": None}
    at = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
    kind = "response.reasoning_summary_text.delta"
    events: list[Body] = [
        {"type": "response.created", "response": {**_openai_reply([]), "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        *({"type": kind, "delta": f"piece {n} ", **at} for n in range(count)),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": _openai_reply([item])},
    ]
    return [{**event, "sequence_number": n} for n, event in enumerate(events)], True


def _openai_call(client: Any, messages: list[Body], *, stream: bool) -> None:
    ask: Body = {
        "model": MODELS["openai"],
        "input": messages,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if not stream:
        client.responses.create(**ask)
        return
    for _ in client.responses.create(**ask, stream=True):
        pass


# ------------------------------------------------------------------------------------ google


def _google_client(wire: Wire) -> Any:
    from google import genai

    http: Any = httpx2.Client(transport=httpx2.MockTransport(wire))
    options: Any = {"base_url": "http://gemini.test", "httpx_client": http}
    return genai.Client(api_key="k", http_options=options)


def _google_reply(parts: list[Body], **more: Any) -> Body:
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **more}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 20},
        "modelVersion": MODELS["google"],
        "responseId": name("r"),
    }


def _google_comes(number: int) -> tuple[Body, list[Body]]:
    parts: list[Body] = [
        {"text": thought(number), "thought": True},
        {
            "functionCall": {"name": "look_up", "args": {"q": number}},
            "thoughtSignature": seal(),
        },
    ]
    back = {"functionResponse": {"name": "look_up", "response": {"output": result(number)}}}
    return _google_reply(parts, finishReason="STOP"), [
        {"role": "model", "parts": parts},
        {"role": "user", "parts": [back]},
    ]


def _google_events(count: int) -> tuple[list[Body], bool]:
    pieces = [{"text": f"piece {n} ", "thought": True} for n in range(count)]
    last = {"text": "", "thoughtSignature": seal()}
    return [
        *(_google_reply([piece]) for piece in pieces),
        _google_reply([last], finishReason="STOP"),
    ], False


def _google_call(client: Any, messages: list[Body], *, stream: bool) -> None:
    ask: Body = {"model": MODELS["google"], "contents": messages}
    if not stream:
        client.models.generate_content(**ask)
        return
    for _ in client.models.generate_content_stream(**ask):
        pass


SDKS: Final = {
    "anthropic": Sdk(
        _anthropic_client,
        lambda text: [{"role": "user", "content": text}],
        _anthropic_comes,
        _anthropic_events,
        _anthropic_call,
    ),
    "openai": Sdk(
        _openai_client,
        lambda text: [{"role": "user", "content": text}],
        _openai_comes,
        _openai_events,
        _openai_call,
    ),
    "google": Sdk(
        _google_client,
        lambda text: [{"role": "user", "parts": [{"text": text}]}],
        _google_comes,
        _google_events,
        _google_call,
    ),
}
