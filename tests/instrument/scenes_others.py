"""Scenes over the Responses API and over generateContent."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from tests.instrument.inprocess import Clients, Reply, stream, whole
from tests.instrument.scene_tools import (
    SEALED,
    THOUGHT,
    Outcome,
    attempt,
    body,
    drain,
    named,
)

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


def openai_async(at: Clients) -> Outcome:
    told: Outcome = []
    create = at.openai_async.responses.create

    async def read() -> list[Any]:
        return [event async for event in await create(**_OPENAI, input=_LOST, stream=True)]

    at.script.says(whole(body(_RESPONSE)), stream(*_OPENAI_EVENTS), _BAD)
    with asyncio.Runner() as runner:
        attempt(told, lambda: runner.run(create(**_OPENAI, input=_SAID)))
        attempt(told, lambda: runner.run(read()))
        attempt(told, lambda: runner.run(create(**_OPENAI, input=_LOST)))
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


def gemini_async(at: Clients) -> Outcome:
    told: Outcome = []
    models = at.gemini.aio.models
    ask: dict[str, Any] = {"model": "gemini-3-pro"}

    async def read() -> list[Any]:
        return [c async for c in await models.generate_content_stream(**ask, contents=_FORGOT)]

    good = body(_candidate(_PARTS, finishReason="STOP"))
    at.script.says(whole(good), stream(b"data: " + good + b"\r\n\r\n"), _NO)
    with asyncio.Runner() as runner:
        attempt(told, lambda: runner.run(models.generate_content(**ask, contents=[_SAYS])))
        attempt(told, lambda: runner.run(read()))
        attempt(told, lambda: runner.run(models.generate_content(**ask, contents=_FORGOT)))
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
