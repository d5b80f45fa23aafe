"""Scenes over the Messages API."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.instrument.inprocess import Clients, stream, whole
from tests.instrument.scene_tools import (
    SEALED,
    SIGNATURE,
    Outcome,
    attempt,
    body,
    drain,
    inside_another_tracers_span,
    named,
)

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
    with inside_another_tracers_span(told):
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
        inside_another_tracers_span(told),
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
