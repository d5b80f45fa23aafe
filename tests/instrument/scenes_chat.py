"""Scenes over Chat Completions, with each way in which sealed values ride along there."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from tests.instrument.inprocess import Clients, Reply, stream, whole
from tests.instrument.scene_tools import SEALED, THOUGHT, Outcome, attempt, body, drain

_GOOGLE = {"google": {"thought_signature": SEALED}}
_DETAILS: list[Any] = [
    {
        "type": "reasoning.text",
        "text": THOUGHT,
        "signature": SEALED,
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": SEALED[::-1], "index": 1},
]
_CALL: dict[str, Any] = {
    "id": f"call_1__thought__{SEALED[4:]}",
    "type": "function",
    "function": {"name": "look", "arguments": '{"q":1}'},
    "extra_content": _GOOGLE,
    "provider_specific_fields": {"thought_signature": SEALED[16:]},
}
_MESSAGE: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "reasoning_details": _DETAILS,
    "thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "signature": SEALED[8:]}],
    "tool_calls": [_CALL],
    "extra_content": {"google": {"thought_signature": SEALED[12:]}},
    "provider_specific_fields": {"thought_signatures": [SEALED[20:], SEALED[16:]]},
}
_HEAD: dict[str, Any] = {"id": "c", "created": 1, "model": "gemini-3-pro-preview"}
_ASK: dict[str, Any] = {"model": "gemini-3-pro-preview"}
_SAID: list[Any] = [{"role": "user", "content": "Which ledger is right?"}]
_RESULT = {"role": "tool", "tool_call_id": _CALL["id"], "content": "The second."}
_CUT = {**_DETAILS[0], "signature": SEALED[:50]}
_LOST: list[Any] = [
    *_SAID,
    {"role": "assistant", "reasoning_details": [_CUT], "tool_calls": [_CALL]},
    _RESULT,
]
_BAD = whole(body({"error": {"message": "Thought signature is not valid", "code": 400}}), 400)


def _whole() -> Reply:
    choice = {"index": 0, "message": _MESSAGE, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return whole(body({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage}))


def _stream() -> Reply:
    pieces: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"reasoning_details": [{**_DETAILS[0], "signature": None}]},
        {"reasoning_details": [{**_DETAILS[0], "text": ""}]},
        {"reasoning_details": [_DETAILS[1]]},
        {"thinking_blocks": _MESSAGE["thinking_blocks"]},
        {"tool_calls": [{**_CALL, "index": 0}]},
        {key: _MESSAGE[key] for key in ("extra_content", "provider_specific_fields")},
        {},
    ]
    frames = []
    for at, delta in enumerate(pieces):
        finish = "tool_calls" if at == len(pieces) - 1 else None
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
        frames.append(b"data: " + body(chunk) + b"\n\n")
    return stream(*frames, b"data: [DONE]\n\n")


def chat_whole(at: Clients) -> Outcome:
    told: Outcome = []
    create: Any = at.openai.chat.completions.create
    at.script.says(_whole(), _whole(), _BAD)
    attempt(told, lambda: create(**_ASK, messages=_SAID))
    attempt(told, lambda: create(**_ASK, messages=_LOST))
    attempt(told, lambda: create(**_ASK, messages=_LOST))
    return told


def chat_stream(at: Clients) -> Outcome:
    told: Outcome = []
    create: Any = at.openai.chat.completions.create
    at.script.says(_stream())
    for sent in (_SAID, _LOST):
        drain(told, partial(create, **_ASK, messages=sent, stream=True))
    home: Any = at.openai.chat.completions
    home = home if hasattr(home, "stream") else at.openai.beta.chat.completions

    def helped() -> Any:
        with home.stream(**_ASK, messages=_SAID) as helper:
            return helper.get_final_completion()

    attempt(told, helped)
    return told


def chat_async(at: Clients) -> Outcome:
    told: Outcome = []
    create: Any = at.openai_async.chat.completions.create

    async def read() -> list[Any]:
        return [chunk async for chunk in await create(**_ASK, messages=_LOST, stream=True)]

    at.script.says(_whole(), _stream(), _BAD)
    with asyncio.Runner() as runner:
        attempt(told, lambda: runner.run(create(**_ASK, messages=_SAID)))
        attempt(told, lambda: runner.run(read()))
        attempt(told, lambda: runner.run(create(**_ASK, messages=_LOST)))
    return told
