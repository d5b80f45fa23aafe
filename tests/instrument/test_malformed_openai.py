"""Malformed replies of the Responses API: the application, its span and the next one survive."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest

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
    "model": "gpt-5",
    "input": [{"role": "user", "content": "hi"}],
    "store": False,
}
OUTPUT: Final[list[dict[str, Any]]] = [
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "s"}],
        "encrypted_content": BLOB,
    },
    {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "look",
        "arguments": "{}",
        "status": "completed",
    },
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "x", "annotations": []}],
    },
]
RESPONSE: Final[dict[str, Any]] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "output": OUTPUT,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "status": "completed",
    "incomplete_details": None,
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
}
UNKNOWN: Final = {"type": "from_the_future", "encrypted_content": BLOB, "inner": [{"id": BLOB}]}

BODIES: Final[dict[str, list[Any]]] = {
    "output": [
        *(GONE, None, "x", 7, {}, {"type": "message"}, [None], [7], ["x"], [[]], [{}], DEEP),
        *([{"type": None}], [{"type": 7}], [{"type": {}}], [UNKNOWN], [None] * 5_000),
        *([{"id": "rs_1"}], [{"type": "compaction"}], [{"type": "compaction", "id": 7}]),
    ],
    "output.0": [None, 7, {"type": "reasoning"}, {**OUTPUT[0], "extra": NAN}],
    "output.0.encrypted_content": [GONE, None, 7, [], {}, "", LONE, True, NAN, DEEP],
    "output.0.summary": [GONE, None, "x", 7, {}, [None], [7], ["x"], [{}], [{"text": 7}]],
    "output.0.id": [GONE, None, 7, {}, [], LONE],
    "output.1.arguments": [GONE, None, 7, "{", "NaN", "[" * 500, {}, {"a": LONE}, LONE],
    "output.1.call_id": [GONE, None, 7, {}, LONE],
    "output.1.name": [GONE, None, 7, []],
    "output.2.content": [
        *(GONE, None, "x", 7, {}, [None], [7], ["x"], [{}], [UNKNOWN]),
        *([{"type": "output_text"}], [{"type": "output_text", "text": 7, "annotations": None}]),
    ],
    "output.2.role": [None, 7],
    "id": [GONE, None, 7, {}, [], LONE],
    "model": [GONE, None, 7, {}, LONE],
    "status": [GONE, None, 7, {}, [], "from_the_future", LONE],
    "incomplete_details": [7, "x", [], {"reason": 7}, {"reason": {}}],
    "error": [7, "x", [], {}, {"code": 7, "message": None}],
    "store": ["x", 7, {}],
    "usage": [
        *(GONE, [], "x", 7, {}, {"input_tokens": "1", "output_tokens": "2"}),
        {"input_tokens": NAN, "output_tokens": HUGE},
        {"input_tokens": -1, "output_tokens": 1e300},
        {"input_tokens": 1, "output_tokens": 2, "output_tokens_details": "x"},
        {"input_tokens": 1, "output_tokens_details": {"reasoning_tokens": []}},
        {"input_tokens_details": {"cached_tokens": {}}},
    ],
    "conversation": [7, {}, {"id": 7}],
    "previous_response_id": [7, {}],
    "reasoning": [7, "x", {"context": 7}],
}
RAW: Final = {
    "null": b"null",
    "list": b"[]",
    "list of null": b"[null]",
    "text": b'"x"',
    "number": b"7",
    "true": b"true",
    "empty object": b"{}",
    "twice the same key": b'{"id":"r","output":[],"output":null,"usage":7,"output":[null]}',
    "nothing": b"",
    "no JSON": b"<html>",
    "half": json.dumps(RESPONSE).encode()[:90],
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(RESPONSE).encode(),
    "no UTF-8": json.dumps(RESPONSE).encode().replace(b'"x"', b'"\xff\xfe"'),
    "very deep": b"[" * 20_000 + b"]" * 20_000,
    "a number nobody writes": b'{"id":"r","output":[],"created_at":' + b"9" * 5_000 + b"}",
    "blank": b"   \n",
}
WHOLE: Final[Shapes] = {
    **{name: whole(json.dumps(made).encode()) for name, made in wrong(RESPONSE, BODIES)},
    **{name: whole(raw) for name, raw in RAW.items()},
}

# ----------------------------------------------------------------------------------- streams

PARTIAL: Final = {**RESPONSE, "output": [], "status": "in_progress"}


def item(kind: str, number: int, index: Any, value: Any) -> dict[str, Any]:
    return {
        "type": f"response.output_item.{kind}",
        "sequence_number": number,
        "output_index": index,
        "item": value,
    }


EVENTS: Final[list[dict[str, Any]]] = [
    {"type": "response.created", "sequence_number": 0, "response": PARTIAL},
    item("added", 1, 0, {**OUTPUT[0], "summary": [], "encrypted_content": None}),
    {
        "type": "response.reasoning_summary_text.delta",
        "sequence_number": 2,
        "item_id": "rs_1",
        "output_index": 0,
        "summary_index": 0,
        "delta": "s",
    },
    item("done", 3, 0, OUTPUT[0]),
    item("added", 4, 1, {**OUTPUT[1], "arguments": ""}),
    {
        "type": "response.function_call_arguments.delta",
        "sequence_number": 5,
        "item_id": "fc_1",
        "output_index": 1,
        "delta": "{}",
    },
    item("done", 6, 1, OUTPUT[1]),
    {"type": "response.completed", "sequence_number": 7, "response": RESPONSE},
]
STEPS: Final[dict[str, list[Any]]] = {
    "0.response": [GONE, None, 7, [], {}],
    "0.response.id": [None, 7, {}],
    "0.response.output": [GONE, None, "x", [None], OUTPUT],
    "1.item": [GONE, None, 7, [], {}, UNKNOWN],
    "1.output_index": [GONE, None, "0", -1, 7, 10**9, NAN, [], {}],
    "2.delta": [GONE, None, 7, [], {}, LONE],
    "3.item": [GONE, None, 7, "x", [], {}, {"type": None}, {"type": 7}, UNKNOWN],
    "3.item.encrypted_content": [GONE, None, 7, [], {}, "", LONE, DEEP],
    "3.item.summary": [GONE, None, "x", [None], {}],
    "3.item.id": [GONE, None, 7, {}],
    "3.output_index": [GONE, None, "0", 5, -1, {}],
    "5.delta": [GONE, None, 7, "{", "[" * 500, LONE],
    "6.item.arguments": [GONE, None, 7, "{", {}, LONE],
    "6.item.call_id": [GONE, None, 7, {}],
    "7.response": [GONE, None, 7, "x", [], {}],
    "7.response.output": [GONE, None, "x", 7, {}, [], [None], [7], [{}], [UNKNOWN]],
    "7.response.output.0": [None, 7, {"type": "reasoning"}],
    "7.response.output.0.encrypted_content": [GONE, None, 7, "", LONE],
    "7.response.usage": [GONE, [], "x", {"input_tokens": "1"}, {"input_tokens": NAN}],
    "7.response.id": [GONE, None, 7],
    "7.response.status": [None, 7, {}],
    "7.type": ["response.incomplete", "response.failed", "response.from_the_future"],
    "4": [{"type": None}, {"type": "from_the_future", "item": UNKNOWN}, {}, {"type": 7}],
}


def order(*steps: int) -> list[dict[str, Any]]:
    return [copy.deepcopy(EVENTS[step]) for step in steps]


ORDERS: Final = {
    "a delta before its item": order(0, 2, 1, 3, 7),
    "items before the response": order(1, 2, 3, 0, 7),
    "no response.created": order(1, 2, 3, 7),
    "no item added": order(0, 2, 3, 7),
    "no item done": order(0, 1, 2, 7),
    "no end": order(0, 1, 2, 3),
    "two beginnings": order(0, 0, 1, 2, 3, 7),
    "one item done twice": order(0, 1, 3, 3, 7),
    "two ends": order(0, 1, 2, 3, 7, 7),
    "items after the end": order(0, 7, 1, 2, 3),
    "a gap in the indices": order(0, 4, 5, 6, 7),
    "only the end": order(7),
    "only the beginning": order(0),
}


def frame(event: Any) -> bytes:
    kind = event.get("type") if isinstance(event, dict) else None
    name = kind if isinstance(kind, str) else "x"
    return f"event: {name}\ndata: {json.dumps(event)}\n\n".encode()


GOOD: Final = [frame(event) for event in EVENTS]


FRAMES: Final = {
    **frames_gone_wrong(GOOD, b"response.x", RESPONSE),
    "an unknown event": amid(GOOD, b'event: from_the_future\ndata: {"encrypted_content": "x"}\n\n'),
    "an error without words": amid(
        GOOD, b'event: error\ndata: {"type": "error", "error": null}\n\n'
    ),
    "an error among the events": amid(GOOD, b'data: {"error": {"message": 7}}\n\n'),
    "done and more": amid(GOOD, b"data: [DONE]\n\n"),
    "no UTF-8": amid(GOOD, b'event: response.x\ndata: {"type": "\xff\xfe"}\n\n'),
}
STREAMS: Final[Shapes] = {
    **{name: stream(*map(frame, made)) for name, made in wrong(EVENTS, STEPS)},
    **{name: stream(*map(frame, events)) for name, events in ORDERS.items()},
    **{name: stream(*frames) for name, frames in FRAMES.items()},
}


def create(at: Clients) -> Any:
    return at.openai.responses.create(**ASK)


def read(at: Clients) -> Any:
    return drained(at.openai.responses.create(**ASK, stream=True))


def helped(at: Clients) -> Any:
    with at.openai.responses.stream(**ASK) as helper:
        return [type(event).__name__ for event in helper]


CASE: Final = Case(
    "openai",
    {"whole": create, "stream": read, "helper": helped},
    {
        "whole": whole(json.dumps(put(RESPONSE, "id", "resp_2")).encode()),
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
