"""Scenes over the Interactions API, and over automatic function calling."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from google import genai

from tests.instrument.inprocess import Clients, stream, whole
from tests.instrument.scene_tools import THOUGHT, Outcome, attempt, body, drain

MODEL = "gemini-3-pro-preview"
INTERACTIONS = hasattr(genai.Client, "interactions")

_STEPS: list[Any] = [
    {"type": "thought", "signature": THOUGHT, "summary": []},
    {"type": "function_call", "id": "c_1", "name": "look", "arguments": {}, "signature": THOUGHT},
]
_DONE: dict[str, Any] = {
    "id": "i_1",
    "status": "completed",
    "model": MODEL,
    "created": "2026-11-29T00:00:00Z",
    "updated": "2026-11-29T00:00:00Z",
    "steps": _STEPS,
}
_ASK: dict[str, Any] = {"model": MODEL, "store": False}
_SAID: list[Any] = [{"type": "user_input", "content": [{"type": "text", "text": "Which?"}]}]
_LOST: list[Any] = [
    *_SAID,
    {**_STEPS[1], "signature": THOUGHT[:40]},
    {"type": "function_result", "call_id": "c_1", "name": "look", "result": "The second."},
]
_EVENTS = [
    {"event_type": "interaction.created", "interaction": {**_DONE, "steps": []}},
    {"event_type": "step.start", "index": 0, "step": _STEPS[0]},
    {"event_type": "step.stop", "index": 0},
    {"event_type": "interaction.completed", "interaction": _DONE},
]
_FRAMES = [
    *(f"event: {e['event_type']}\ndata: ".encode() + body(e) + b"\n\n" for e in _EVENTS),
    b"data: [DONE]\n\n",
]
_REFUSAL = whole(body({"error": {"code": 400, "message": "Thought signature is not valid"}}), 400)


def interactions(at: Clients) -> Outcome:
    told: Outcome = []
    good = whole(body(_DONE))
    at.script.says(good, good, good, _REFUSAL, stream(*_FRAMES))
    made = at.gemini.interactions
    for sent in (_SAID, _LOST):
        attempt(told, partial(made.create, **_ASK, input=sent))
    attempt(told, partial(made.get, "i_1"))
    attempt(told, partial(made.create, **_ASK, input=_LOST))
    drain(told, partial(made.create, **_ASK, input=_LOST, stream=True))
    return told


def _run(runner: asyncio.Runner, create: Any, sent: Any) -> Any:
    return runner.run(create(**_ASK, input=sent))


def interactions_async(at: Clients) -> Outcome:
    told: Outcome = []
    made = at.gemini.aio.interactions
    at.script.says(whole(body(_DONE)), _REFUSAL, stream(*_FRAMES))

    async def read() -> list[Any]:
        found: Any = await made.create(**_ASK, input=_LOST, stream=True)
        return [event async for event in found]

    with asyncio.Runner() as runner:
        for sent in (_SAID, _LOST):
            attempt(told, partial(_run, runner, made.create, sent))
        attempt(told, lambda: runner.run(read()))
    return told


def look(q: str) -> str:
    """Look it up."""
    return f"The second, {q}."


look.__annotations__ = {"q": str, "return": str}  # old releases read no strings


def _says(part: dict[str, Any]) -> bytes:
    content = {"role": "model", "parts": [part]}
    return body({"candidates": [{"content": content, "finishReason": "STOP"}]})


_CALL = _says({"functionCall": {"name": "look", "args": {"q": "x"}}, "thoughtSignature": THOUGHT})
_TEXT = _says({"text": "The second."})
_FAILS = whole(body({"error": {"code": 400, "message": "x", "status": "INVALID_ARGUMENT"}}), 400)


def _given() -> dict[str, Any]:
    return {"model": MODEL, "config": genai.types.GenerateContentConfig(tools=[look])}


def loop(at: Clients) -> Outcome:
    told: Outcome = []
    ask, models = _given(), at.gemini.models
    at.script.says(whole(_CALL), whole(_TEXT), whole(_CALL), whole(_TEXT), _FAILS)
    attempt(told, partial(models.generate_content, **ask, contents="Which?"))
    attempt(told, partial(at.gemini.chats.create(**ask).send_message, "Which?"))
    attempt(told, partial(models.generate_content, **ask, contents="Which?"))
    return told


def loop_stream(at: Clients) -> Outcome:
    told: Outcome = []
    frames = [stream(b"data: " + said + b"\r\n\r\n") for said in (_CALL, _TEXT)]
    ask, models = _given(), at.gemini.models
    at.script.says(*frames, *frames, _FAILS)
    drain(told, partial(models.generate_content_stream, **ask, contents="Which?"))
    drain(told, partial(at.gemini.chats.create(**ask).send_message_stream, "Which?"))
    drain(told, partial(models.generate_content_stream, **ask, contents="Which?"))
    return told


def loop_async(at: Clients) -> Outcome:
    told: Outcome = []
    ask, models = _given(), at.gemini.aio.models
    frames = [stream(b"data: " + said + b"\r\n\r\n") for said in (_CALL, _TEXT)]

    async def read() -> list[Any]:
        found = await models.generate_content_stream(**ask, contents="Which?")
        return [chunk async for chunk in found]

    with asyncio.Runner() as runner:
        at.script.says(whole(_CALL), whole(_TEXT), *frames, _FAILS)
        attempt(told, lambda: runner.run(models.generate_content(**ask, contents="Which?")))
        for _ in range(2):
            attempt(told, lambda: runner.run(read()))
    return told
