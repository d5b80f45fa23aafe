"""Scenes that come in by other doors than a request a turn: batches, stored state, sockets."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any, Final

import openai
from openai.resources import responses

from otel_sealed.testing import StrictProvider
from tests.instrument.doors_openai import ASK, HELLO, closing, follow, opened, sent_on
from tests.instrument.inprocess import Clients, Reply, whole
from tests.instrument.scene_tools import SEALED, SIGNATURE, Outcome, attempt, body, drain

CONNECTS: Final = hasattr(responses.Responses, "connect")
_THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}
_MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-6",
    "content": [_THOUGHT, {"type": "text", "text": "The second."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 9},
}
_BATCH: dict[str, Any] = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "ended",
    "request_counts": dict.fromkeys(
        ("processing", "succeeded", "errored", "canceled", "expired"), 0
    ),
    "created_at": "2026-11-29T00:00:00Z",
    "expires_at": "2026-11-29T00:00:00Z",
    "results_url": "http://a.test/v1/messages/batches/msgbatch_1/results",
}
_REFUSAL = {"type": "invalid_request_error", "message": "Invalid `signature` in `thinking` block"}
_RESULTS: Final = Reply(
    (
        body({"custom_id": "one", "result": {"type": "succeeded", "message": _MESSAGE}}) + b"\n",
        body(
            {
                "custom_id": "two",
                "result": {"type": "errored", "error": {"type": "error", "error": _REFUSAL}},
            }
        ),
    ),
    kind="application/x-jsonl",
)


def anthropic_batches(at: Clients) -> Outcome:
    told: Outcome = []
    batches = at.anthropic.messages.batches
    user = {"role": "user", "content": "Which ledger is right?"}
    lost = {"role": "assistant", "content": [{**_THOUGHT, "signature": SIGNATURE[:50]}]}
    params = {"model": "claude-opus-4-6", "max_tokens": 2048, "thinking": {"type": "adaptive"}}
    entries: Any = [
        {"custom_id": "one", "params": {**params, "messages": [user]}},
        {"custom_id": "two", "params": {**params, "messages": [user, lost, user]}},
    ]
    batch = whole(body(_BATCH))
    at.script.says(batch, batch, _RESULTS, batch, batch, _RESULTS)
    for _ in range(2):
        attempt(told, lambda: batches.create(requests=entries))
        drain(told, lambda: batches.results("msgbatch_1"))
    return told


_REASONING: dict[str, Any] = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [],
    "encrypted_content": SEALED,
}
_SAID: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "The second.", "annotations": []}],
}
_RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "output": [_REASONING, _SAID],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "status": "completed",
}
_LIST: dict[str, Any] = {
    "object": "list",
    "data": [_SAID, _REASONING],
    "first_id": "rs_1",
    "last_id": "msg_1",
    "has_more": False,
}


def openai_held(at: Clients) -> Outcome:
    """What the server keeps: a stored response, a conversation; and the files of a batch."""
    told: Outcome = []
    client: Any = at.openai
    lost = [HELLO, {**_REASONING, "encrypted_content": SEALED[:50]}, _SAID]
    line = {"custom_id": "one", "method": "POST", "url": "/v1/responses"}
    asked = body({**line, "body": {"model": "gpt-5", "input": lost}}) + b"\n"
    done = body({"custom_id": "one", "response": {"status_code": 200, "body": _RESPONSE}})
    file = {"id": "file-1", "object": "file", "bytes": 1, "created_at": 1, "purpose": "batch"}
    conversation = {"id": "conv_1", "object": "conversation", "created_at": 1, "metadata": {}}
    at.script.says(
        whole(body(_RESPONSE)),
        whole(body({**file, "filename": "f", "status": "processed"})),
        Reply((done + b"\n",), kind="application/octet-stream"),
        *([whole(body(conversation)), *([whole(body(_LIST))] * 2)] if _CONVERSES else ()),
    )
    attempt(told, lambda: client.responses.retrieve("resp_1"))
    attempt(told, lambda: client.files.create(file=("f.jsonl", asked), purpose="batch"))
    attempt(told, lambda: client.files.content("file-2").text)
    if _CONVERSES:
        attempt(told, lambda: client.conversations.create(items=lost))
        attempt(told, lambda: client.conversations.items.create("conv_1", items=lost[1:]))
        attempt(told, lambda: list(client.conversations.items.list("conv_1")))
    return told


_CONVERSES: Final = hasattr(openai.OpenAI, "conversations")


def openai_socket(_: Clients) -> Outcome:
    """Two turns on one connection, the second damaged; then it is closed under a third."""
    told: Outcome = []
    with StrictProvider(seed=1) as provider, opened(provider.base_url) as client, _quiet():
        line: Any = client.responses.connect().enter()
        output = attempt(told, lambda: _events(line, [HELLO])[-1].response.output)
        attempt(told, lambda: _events(line, follow(output or [{"call_id": "x"}])[1:]))
        provider.fail_next(500)  # one event: of many unread ones `close` waits for the end
        attempt(told, lambda: line.response.create(**ASK, input="And then?"))
        attempt(told, line.close)
        told.append(_refused(lambda: _events(line, [HELLO])))
    return told


def _refused(call: Callable[[], Any]) -> str:
    """Whether a closed connection refuses; by what is a race of who closed it first."""
    try:
        call()
    except Exception:  # noqa: BLE001 - whatever the SDK raises is an outcome
        return "refused"
    return "not at all"


def _events(line: Any, items: list[Any]) -> list[Any]:
    line.response.create(**ASK, input=sent_on(items))
    events: list[Any] = []
    while not events or not closing(events[-1]):
        events.append(line.recv())
    return events


def openai_socket_async(_: Clients) -> Outcome:
    told: Outcome = []

    async def turn(line: Any, items: list[Any]) -> list[Any]:
        await line.response.create(**ASK, input=sent_on(items))
        events: list[Any] = []
        while not events or not closing(events[-1]):
            events.append(await line.recv())
        return events

    with StrictProvider(seed=1) as provider, asyncio.Runner() as runner:
        client = opened(provider.base_url, openai.AsyncOpenAI)
        line: Any = runner.run(client.responses.connect().enter())
        attempt(told, lambda: runner.run(turn(line, [HELLO])))
        attempt(told, lambda: runner.run(turn(line, [HELLO, {"role": "user", "content": "?"}])))
        attempt(told, lambda: runner.run(line.close()))
        told.append(_refused(lambda: runner.run(turn(line, [HELLO]))))
        runner.run(client.close())
    return told


def _quiet() -> Any:
    """What openai calls `connect` of websockets like is deprecated there since 17."""
    return warnings.catch_warnings(action="ignore", category=DeprecationWarning)
