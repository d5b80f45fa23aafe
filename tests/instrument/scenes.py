"""Small applications over the SDKs that reach as much of us as they can, and what came of them.

Each makes a few calls with sealed state, sends some of it back damaged, meets a refusal, and
returns what an application sees: dumped results and errors, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from tests.instrument.inprocess import Clients, Reply, dump, stream, whole

SIGNATURE: Final = "EqQBCkYIBxgCKkD" + "aB3" * 40 + "=="
SEALED: Final = "gAAAAABo" + "xY9" * 40 + "=="
THOUGHT: Final = "CiQBcsjafLQz" + "Qz7A" * 30
Outcome = list[Any]
Scene = Callable[[Clients], Outcome]


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def named(*events: dict[str, Any]) -> list[bytes]:
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


def attempt(told: Outcome, call: Callable[[], Any]) -> Any:
    """What a call brings, as the application sees it; None where it raises."""
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises is an outcome
        told.append(["raised", dump(error)])
        return None
    told.append(dump(result))
    return result


def drain(told: Outcome, call: Callable[[], Any]) -> None:
    """The same for a stream, read to its end."""

    def read() -> list[Any]:
        got = []
        try:
            for item in call():
                got.append(item)  # noqa: PERF402 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - the same
            got.append(error)
        return got

    attempt(told, read)


@contextlib.contextmanager
def inside_another_tracers_span() -> Iterator[None]:
    """As under an instrumentation that has a GenAI span open around the call."""
    span = trace.get_tracer("another").start_span(
        "chat", kind=SpanKind.CLIENT, attributes={"gen_ai.operation.name": "chat"}
    )
    with trace.use_span(span, end_on_exit=True):
        yield


# -------------------------------------------------------------------------------- anthropic

_TOOL_USE: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": 1}}
_CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "I look it up first.", "signature": SIGNATURE},
    {"type": "redacted_thinking", "data": SEALED},
    {"type": "text", "text": "One moment."},
    _TOOL_USE,
]
_MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-6",
    "content": _CONTENT,
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 9},
}
_ASK: dict[str, Any] = {
    "model": "claude-opus-4-6",
    "max_tokens": 2048,
    "thinking": {"type": "adaptive"},
    "system": "Be brief.",
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
}
_HELLO: list[Any] = [{"role": "user", "content": "Which ledger is right?"}]
_RESULT: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "The second."}],
}
_DAMAGED: list[Any] = [
    *_HELLO,
    {
        "role": "assistant",
        "content": [{**_CONTENT[0], "signature": SIGNATURE[:40] + SIGNATURE[60:]}, _TOOL_USE],
    },
    _RESULT,
]
_FAITHFUL: list[Any] = [*_HELLO, {"role": "assistant", "content": _CONTENT}, _RESULT]
_REFUSAL = whole(
    body(
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "messages.1.content.0: Invalid `signature` in `thinking` block",
            },
        }
    ),
    400,
)
_EVENTS = named(
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "I look it up first."},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta", "signature": SIGNATURE},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {**_TOOL_USE, "input": {}}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"q": 1}'},
    },
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 9},
    },
    {"type": "message_stop"},
)


def anthropic_whole(at: Clients) -> Outcome:
    told: Outcome = []
    create = at.anthropic.messages.create
    at.script.says(whole(body(_MESSAGE)), whole(body(_MESSAGE)), whole(body(_MESSAGE)), _REFUSAL)
    attempt(told, lambda: create(**_ASK, messages=_HELLO))
    with inside_another_tracers_span():
        attempt(told, lambda: create(**_ASK, messages=_FAITHFUL))
    attempt(told, lambda: create(**_ASK, messages=_DAMAGED))
    attempt(told, lambda: create(**_ASK, messages=_DAMAGED))
    return told


def anthropic_stream(at: Clients) -> Outcome:
    told: Outcome = []
    create = at.anthropic.messages.create
    at.script.says(stream(*_EVENTS))
    drain(told, lambda: create(**_ASK, messages=_HELLO, stream=True))
    with (
        inside_another_tracers_span(),
        at.anthropic.messages.stream(**_ASK, messages=_DAMAGED) as helper,
    ):
        attempt(told, helper.get_final_message)
    early = create(**_ASK, messages=_HELLO, stream=True)
    attempt(told, lambda: next(iter(early)))
    attempt(told, early.close)
    at.script.says(stream(*_EVENTS[:4], cut=True))
    drain(told, lambda: create(**_ASK, messages=_HELLO, stream=True))
    return told


def anthropic_async(at: Clients) -> Outcome:
    told: Outcome = []
    create = at.anthropic_async.messages.create

    async def read() -> list[Any]:
        return [event async for event in await create(**_ASK, messages=_DAMAGED, stream=True)]

    at.script.says(whole(body(_MESSAGE)), stream(*_EVENTS), _REFUSAL)
    with asyncio.Runner() as runner:
        attempt(told, lambda: runner.run(create(**_ASK, messages=_HELLO)))
        attempt(told, lambda: runner.run(read()))
        attempt(told, lambda: runner.run(create(**_ASK, messages=_DAMAGED)))
    return told


# ----------------------------------------------------------------------------------- openai

_ITEMS: list[Any] = [
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Looking."}],
        "encrypted_content": SEALED,
    },
    {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"q":1}',
        "status": "completed",
    },
]
_RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "output": _ITEMS,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "status": "completed",
    "usage": {
        "input_tokens": 1,
        "output_tokens": 2,
        "total_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}
_OPENAI: dict[str, Any] = {
    "model": "gpt-5",
    "store": False,
    "include": ["reasoning.encrypted_content"],
}
_SAID: list[Any] = [{"role": "user", "content": "Which ledger is right?"}]
_OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "The second."}
_LOST: list[Any] = [*_SAID, {**_ITEMS[0], "encrypted_content": SEALED[:50]}, _ITEMS[1], _OUTPUT]
_BAD = whole(
    body({"error": {"message": "The encrypted content could not be verified.", "code": "x"}}), 400
)
_OPENAI_EVENTS = named(
    {"type": "response.created", "sequence_number": 0, "response": {**_RESPONSE, "output": []}},
    {
        "type": "response.output_item.done",
        "sequence_number": 1,
        "output_index": 0,
        "item": _ITEMS[0],
    },
    {
        "type": "response.output_item.done",
        "sequence_number": 2,
        "output_index": 1,
        "item": _ITEMS[1],
    },
    {"type": "response.completed", "sequence_number": 3, "response": _RESPONSE},
)


def openai_whole(at: Clients) -> Outcome:
    told: Outcome = []
    create = at.openai.responses.create
    at.script.says(whole(body(_RESPONSE)), whole(body(_RESPONSE)), _BAD)
    attempt(told, lambda: create(**_OPENAI, input=_SAID))
    attempt(told, lambda: create(**_OPENAI, input=_LOST))
    attempt(told, lambda: create(**_OPENAI, input=_LOST))
    return told


def openai_stream(at: Clients) -> Outcome:
    told: Outcome = []
    at.script.says(stream(*_OPENAI_EVENTS))
    for sent in (_SAID, _LOST):
        drain(told, partial(at.openai.responses.create, **_OPENAI, input=sent, stream=True))
    return told


# ----------------------------------------------------------------------------------- gemini

_PARTS: list[Any] = [
    {"text": "Looking it up.", "thought": True},
    {"functionCall": {"name": "look", "args": {"q": 1}}, "thoughtSignature": THOUGHT},
]


def _candidate(parts: list[Any], **more: Any) -> dict[str, Any]:
    found = {"content": {"role": "model", "parts": parts}, **more}
    return {"candidates": [found], "modelVersion": "gemini-3-pro"}


_SAYS: dict[str, Any] = {"role": "user", "parts": [{"text": "Which ledger is right?"}]}
_ANSWERS: dict[str, Any] = {
    "role": "user",
    "parts": [{"functionResponse": {"name": "look", "response": {"r": "The second."}}}],
}
_FORGOT: list[Any] = [
    _SAYS,
    {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"q": 1}}}]},
    _ANSWERS,
]
_NO = whole(
    body(
        {
            "error": {
                "code": 400,
                "message": "Function call is missing a thought_signature in functionCall parts.",
                "status": "INVALID_ARGUMENT",
            }
        }
    ),
    400,
)


def gemini_whole(at: Clients) -> Outcome:
    told: Outcome = []
    good = whole(body(_candidate(_PARTS, finishReason="STOP")))
    at.script.says(good, good, _NO)
    for sent in ([_SAYS], _FORGOT, _FORGOT):
        attempt(
            told,
            partial(at.gemini.models.generate_content, model="gemini-3-pro", contents=sent),
        )
    return told


def gemini_stream(at: Clients) -> Outcome:
    told: Outcome = []
    frames = [
        b"data: " + body(_candidate(_PARTS[:1])) + b"\r\n\r\n",
        b"data: " + body(_candidate(_PARTS[1:], finishReason="STOP")) + b"\r\n\r\n",
    ]
    replies: tuple[Reply, ...] = (stream(*frames), stream(*frames), _NO)
    at.script.says(*replies)
    for sent in ([_SAYS], _FORGOT, _FORGOT):
        drain(
            told,
            partial(at.gemini.models.generate_content_stream, model="gemini-3-pro", contents=sent),
        )
    return told


SCENES: Final[dict[str, Scene]] = {
    "anthropic-whole": anthropic_whole,
    "anthropic-stream": anthropic_stream,
    "anthropic-async": anthropic_async,
    "openai-whole": openai_whole,
    "openai-stream": openai_stream,
    "gemini-whole": gemini_whole,
    "gemini-stream": gemini_stream,
}
