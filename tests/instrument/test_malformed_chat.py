"""Malformed replies of Chat Completions: the application, its span and the next one survive."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest

from tests.instrument.doors_chat import newer
from tests.instrument.inprocess import Clients, stream, whole
from tests.instrument.malformed import (
    BLOB,
    DEEP,
    GONE,
    HUGE,
    LONE,
    NAN,
    Case,
    Shapes,
    accepted,
    amid,
    check,
    drained,
    each,
    frames_gone_wrong,
    put,
    wrong,
)

ASK: Final[dict[str, Any]] = {
    "model": "gemini-3-pro-preview",
    "messages": [{"role": "user", "content": "hi"}],
}
MESSAGE: Final[dict[str, Any]] = {
    "role": "assistant",
    "content": "x",
    "reasoning_details": [
        {
            "type": "reasoning.text",
            "text": "t",
            "signature": BLOB,
            "format": "anthropic-claude-v1",
            "index": 0,
        },
        {"type": "reasoning.encrypted", "data": BLOB, "id": "rs_1", "index": 1},
    ],
    "thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": BLOB}],
    "extra_content": {"google": {"thought_signature": BLOB}},
    "provider_specific_fields": {"thought_signatures": [BLOB]},
    "tool_calls": [
        {
            "id": f"call_1__thought__{BLOB}",
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": BLOB}},
            "provider_specific_fields": {"thought_signature": BLOB},
        }
    ],
}
COMPLETION: Final[dict[str, Any]] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gemini-3-pro-preview",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}
UNKNOWN: Final = {"type": "from_the_future", "signature": BLOB, "inner": [{"id": BLOB}]}
M: Final = "choices.0.message"

BODIES: Final[dict[str, list[Any]]] = {
    "choices": [
        *(GONE, None, "x", 7, {}, [], [None], [7], ["x"], [[]], [{}], DEEP, [None] * 5_000),
        *([{"message": None}], [{"message": 7}], [{"message": []}], [{"error": BLOB}]),
        COMPLETION["choices"] * 2,
    ],
    "choices.0.index": [GONE, None, "0", -1, HUGE],
    "choices.0.finish_reason": [GONE, None, 7, {}, [], LONE, "from_the_future"],
    M: [GONE, None, "x", 7, [], {}, UNKNOWN],
    f"{M}.role": [GONE, None, 7, {}, "from_the_future"],
    f"{M}.content": [GONE, None, 7, {}, [], [None], [7], ["x"], [{}], [UNKNOWN], LONE, DEEP],
    f"{M}.reasoning_details": [
        *(None, "x", 7, {}, [None], [7], ["x"], [[]], [{}], [UNKNOWN], DEEP, [None] * 5_000),
        *([{"type": None}], [{"type": 7}], [{"type": {}}], [{"type": "reasoning.text"}]),
    ],
    f"{M}.reasoning_details.0.signature": [GONE, None, "", 7, [], {}, True, NAN, LONE, DEEP],
    f"{M}.reasoning_details.0.text": [GONE, None, 7, [], {}, LONE],
    f"{M}.reasoning_details.0.format": [GONE, None, 7, {}, LONE],
    f"{M}.reasoning_details.1.data": [GONE, None, "", 7, [], {}, LONE],
    f"{M}.reasoning_details.1.id": [GONE, None, 7, {}, LONE],
    f"{M}.thinking_blocks": [None, "x", 7, {}, [None], [7], [{}], [UNKNOWN], DEEP],
    f"{M}.thinking_blocks.0.signature": [GONE, None, "", 7, {}, LONE],
    f"{M}.extra_content": [None, "x", 7, [], {}, {"google": 7}, {"google": []}, DEEP],
    f"{M}.extra_content.google.thought_signature": [GONE, None, "", 7, {}, LONE],
    f"{M}.tool_calls": [None, "x", 7, {}, [], [None], [7], ["x"], [{}], [UNKNOWN], DEEP],
    f"{M}.tool_calls.0.id": [GONE, None, 7, {}, "", "__thought__", LONE],
    f"{M}.tool_calls.0.type": [GONE, None, 7, {}, "from_the_future"],
    f"{M}.tool_calls.0.function": [GONE, None, 7, [], {}, "x"],
    f"{M}.tool_calls.0.function.arguments": [GONE, None, 7, "{", "[" * 500, {}, {"a": LONE}, LONE],
    f"{M}.tool_calls.0.extra_content": [None, "x", 7, [], {"google": None}, {"google": "x"}],
    f"{M}.tool_calls.0.provider_specific_fields": [None, "x", 7, [], {}, [None], LONE],
    f"{M}.tool_calls.0.provider_specific_fields.thought_signature": [None, "", 7, {}, LONE],
    f"{M}.provider_specific_fields": [None, "x", 7, [], {}, [None], DEEP],
    f"{M}.provider_specific_fields.thought_signatures": [None, "x", 7, {}, [], [7], [""], [LONE]],
    f"{M}.function_call": [None, 7, {}, {"name": 7, "arguments": 7}],
    "id": [GONE, None, 7, {}, LONE],
    "model": [GONE, None, 7, {}, LONE],
    "error": [7, "x", [], {}, {"code": 7, "message": None}],
    "usage": [
        *(GONE, None, [], "x", 7, {}, {"prompt_tokens": NAN, "completion_tokens": HUGE}),
        {"prompt_tokens": "1", "completion_tokens_details": "x", "prompt_tokens_details": 7},
        {"prompt_tokens": -1, "completion_tokens_details": {"reasoning_tokens": []}},
    ],
}
RAW: Final = {
    "null": b"null",
    "list": b"[]",
    "text": b'"x"',
    "number": b"7",
    "empty object": b"{}",
    "twice the same key": b'{"id":"r","choices":[],"choices":null,"choices":[null]}',
    "nothing": b"",
    "no JSON": b"<html>",
    "half": json.dumps(COMPLETION).encode()[:90],
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(COMPLETION).encode(),
    "no UTF-8": json.dumps(COMPLETION).encode().replace(b'"x"', b'"\xff\xfe"'),
    "very deep": b"[" * 20_000 + b"]" * 20_000,
    "blank": b"   \n",
}
WHOLE: Final[Shapes] = {
    **{name: whole(json.dumps(made).encode()) for name, made in wrong(COMPLETION, BODIES)},
    **{name: whole(raw) for name, raw in RAW.items()},
}

# ----------------------------------------------------------------------------------- streams


def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**COMPLETION, "object": "chat.completion.chunk", "usage": None, "choices": [choice]}


DETAIL: Final = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
CALL: Final = {**MESSAGE["tool_calls"][0], "index": 0}
CHUNKS: Final[list[dict[str, Any]]] = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_details": [{**DETAIL, "text": "t"}]}),
    chunk({"reasoning_details": [{**DETAIL, "text": "", "signature": BLOB}]}),
    chunk({"content": "x"}),
    chunk({"tool_calls": [{**CALL, "function": {"name": "look", "arguments": "{"}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
    chunk(
        {"content": "", **{k: MESSAGE[k] for k in ("extra_content", "provider_specific_fields")}}
    ),
    chunk({}, "tool_calls"),
    {**chunk({}), "choices": [], "usage": COMPLETION["usage"]},
]
D: Final = "choices.0.delta"
STEPS: Final[dict[str, list[Any]]] = {
    "0.choices": [GONE, None, 7, {}, [], [None], [{}], [{"delta": None}]],
    "0.choices.0.index": [GONE, None, "0", 7, -1, {}],
    f"1.{D}": [GONE, None, 7, [], {}, UNKNOWN],
    f"1.{D}.reasoning_details": [None, "x", 7, {}, [], [None], [7], [{}], [UNKNOWN], DEEP],
    f"1.{D}.reasoning_details.0.index": [GONE, None, "0", -1, 10**9, {}, []],
    f"1.{D}.reasoning_details.0.type": [GONE, None, 7, {}, "from_the_future"],
    f"1.{D}.reasoning_details.0.text": [GONE, None, 7, {}, LONE],
    f"2.{D}.reasoning_details.0.signature": [GONE, None, "", 7, {}, [], LONE, DEEP],
    f"2.{D}.reasoning_details.0.text": [GONE, None, 7, "more"],
    f"3.{D}.content": [GONE, None, 7, {}, [], [UNKNOWN], LONE],
    f"4.{D}.tool_calls": [None, "x", 7, {}, [], [None], [7], [{}], [UNKNOWN]],
    f"4.{D}.tool_calls.0.index": [GONE, None, "0", 7, -1, {}],
    f"4.{D}.tool_calls.0.id": [GONE, None, "", 7, {}, LONE],
    f"4.{D}.tool_calls.0.function": [GONE, None, 7, []],
    f"5.{D}.tool_calls.0.function.arguments": [GONE, None, 7, "{", LONE],
    f"5.{D}.tool_calls.0.id": [None, "", "call_2", 7],
    f"6.{D}.extra_content": [None, "x", 7, [], {}, {"google": 7}, {"google": None}],
    f"6.{D}.extra_content.google.thought_signature": [None, "", 7, {}, LONE],
    f"6.{D}.provider_specific_fields": [None, "x", 7, [], {}, {"thought_signatures": 7}],
    "7.choices.0.finish_reason": [GONE, None, 7, {}, "error", "from_the_future"],
    "7.choices.0.error": [7, "x", {"code": 400, "message": BLOB}],
    "8.usage": [GONE, None, [], "x", {"prompt_tokens": NAN}],
    "3": [{"choices": None}, {}, UNKNOWN],
}


def order(*steps: int) -> list[dict[str, Any]]:
    return [copy.deepcopy(CHUNKS[step]) for step in steps]


ORDERS: Final = {
    "no beginning": order(1, 2, 3, 7),
    "a signature before its text": order(0, 2, 1, 7),
    "arguments before their call": order(0, 5, 4, 7),
    "no end": order(0, 1, 2, 3),
    "two ends": order(0, 3, 7, 7),
    "text behind the end": order(0, 7, 3),
    "usage first": order(8, 0, 3, 7),
    "only the end": order(7),
    "only the usage": order(8),
    "everything twice": order(0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 7),
}


def frame(event: Any) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


DONE: Final = b"data: [DONE]\n\n"
GOOD: Final = [*map(frame, CHUNKS), DONE]
FRAMES: Final = {
    **{
        name: frames
        for name, frames in frames_gone_wrong(GOOD, b"x", COMPLETION).items()
        if name != "no event name"
    },
    "no done": GOOD[:-1],
    "done and more": [*GOOD, frame(CHUNKS[3])],
    "done at once": [DONE],
    "an error among the chunks": amid(GOOD, b'data: {"error": {"message": 7}}\n\n'),
    "no UTF-8": amid(GOOD, b'data: {"type": "\xff\xfe"}\n\n'),
}
STREAMS: Final[Shapes] = {
    **{name: stream(*map(frame, made), DONE) for name, made in wrong(CHUNKS, STEPS)},
    **{name: stream(*map(frame, events), DONE) for name, events in ORDERS.items()},
    **{name: stream(*frames) for name, frames in FRAMES.items()},
}


def create(at: Clients) -> Any:
    return at.openai.chat.completions.create(**ASK)


def read(at: Clients) -> Any:
    return drained(at.openai.chat.completions.create(**ASK, stream=True))


def helped(at: Clients) -> Any:
    home: Any = at.openai.chat.completions if newer() else at.openai.beta.chat.completions
    with home.stream(**ASK) as helper:
        return [type(event).__name__ for event in helper]


CASE: Final = Case(
    "openai",
    {"whole": create, "stream": read, "helper": helped},
    {
        "whole": whole(json.dumps(put(COMPLETION, "id", "chatcmpl-2")).encode()),
        "stream": stream(*GOOD),
        "helper": stream(*GOOD),
    },
)


@each(WHOLE)
def test_whole(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    check(CASE, "whole", WHOLE[shape], monkeypatch)


@each(STREAMS)
@pytest.mark.parametrize("delivery", ["stream", "helper"])
def test_stream(monkeypatch: pytest.MonkeyPatch, delivery: str, shape: str) -> None:
    check(CASE, delivery, STREAMS[shape], monkeypatch)


def test_the_plain_sdk_takes_at_least_forty_shapes_of_each() -> None:
    whole_ones, streams = accepted(CASE, "whole", WHOLE), accepted(CASE, "stream", STREAMS)
    assert len(whole_ones) >= 40, sorted(set(WHOLE) - whole_ones)
    assert len(streams) >= 40, sorted(set(STREAMS) - streams)
