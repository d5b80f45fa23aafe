"""Malformed replies of the Messages API: the application, its span and the next one survive."""

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
    "model": "claude-opus-4-6",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hi"}],
}
CONTENT: Final[list[dict[str, Any]]] = [
    {"type": "thinking", "thinking": "t", "signature": BLOB},
    {"type": "redacted_thinking", "data": BLOB},
    {"type": "text", "text": "x"},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
]
MESSAGE: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-6",
    "content": CONTENT,
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
UNKNOWN: Final = {"type": "from_the_future", "signature": BLOB, "inner": [{"data": BLOB}]}

BODIES: Final[dict[str, list[Any]]] = {
    "content": [
        *(GONE, None, "hi", 7, {}, {"type": "text"}, [None], [7], ["x"], [[]], [{}], DEEP),
        *([{"type": None}], [{"type": 7}], [{"type": {}}], [UNKNOWN], [None] * 5_000),
    ],
    "content.0": [None, 7, {"type": "thinking"}, {**CONTENT[0], "extra": NAN}],
    "content.0.signature": [GONE, None, 7, [], {}, "", LONE, True, NAN, DEEP],
    "content.0.thinking": [GONE, None, 7, [LONE], LONE, {"text": "t"}],
    "content.1.data": [GONE, None, 7, "", ["x"], {"a": LONE}],
    "content.2.text": [GONE, None, 7, [{"text": "x"}]],
    "content.2.citations": ["x", [None], [7], [{"encrypted_index": 7}], {"a": 1}],
    "content.3.input": [GONE, None, "{", 7, [], DEEP, {"a": NAN}, {"a": HUGE}, {LONE: LONE}],
    "content.3.id": [GONE, None, 7, {}, [], LONE],
    "content.3.name": [None, 7, [], LONE],
    "id": [GONE, None, 7, {}, [], LONE],
    "model": [GONE, None, 7, {}, LONE],
    "role": [GONE, None, 7, "user"],
    "type": [GONE, None, 7, "error"],
    "stop_reason": [GONE, None, {}, [], 7, "from_the_future", LONE, {"a": "tool_use"}],
    "stop_sequence": [{}, 7],
    "usage": [
        *(GONE, None, [], "x", 7, {}, {"input_tokens": "1", "output_tokens": "2"}),
        {"input_tokens": NAN, "output_tokens": HUGE},
        {"input_tokens": -1, "output_tokens": 1e300},
        {"input_tokens": [1], "output_tokens": {}},
        {"output_tokens_details": "x", "cache_creation": 7},
        {"output_tokens_details": {"thinking_tokens": []}},
    ],
    "input_transformations": [None, 7, [None], [7], [{"path": 7}], {"a": []}],
    "container": [7, [], {"id": {}}],
}
RAW: Final = {
    "null": b"null",
    "list": b"[]",
    "list of null": b"[null]",
    "text": b'"x"',
    "number": b"7",
    "true": b"true",
    "empty object": b"{}",
    "twice the same key": b'{"content":null,"content":[],"usage":7,"usage":null}',
    "nothing": b"",
    "no JSON": b"<html>",
    "half": json.dumps(MESSAGE).encode()[:90],
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(MESSAGE).encode(),
    "no UTF-8": json.dumps(MESSAGE).encode().replace(b'"x"', b'"\xff\xfe"'),
    "very deep": b"[" * 20_000 + b"]" * 20_000,
    "blank": b"   \n",
}
WHOLE: Final[Shapes] = {
    **{name: whole(json.dumps(made).encode()) for name, made in wrong(MESSAGE, BODIES)},
    **{name: whole(raw) for name, raw in RAW.items()},
}

# ----------------------------------------------------------------------------------- streams


def start(index: Any, block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any, **value: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": value}


def stop(index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


EVENTS: Final[list[dict[str, Any]]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    start(0, {"type": "thinking", "thinking": "", "signature": ""}),
    delta(0, type="thinking_delta", thinking="t"),
    delta(0, type="signature_delta", signature=BLOB),
    stop(0),
    start(1, {**CONTENT[3]}),
    delta(1, type="input_json_delta", partial_json="{}"),
    stop(1),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 2},
    },
    {"type": "message_stop"},
]
STEPS: Final[dict[str, list[Any]]] = {
    "0.message": [GONE, None, 7, [], {}],
    "0.message.id": [None, 7, {}],
    "0.message.content": [GONE, None, "x", 7, {}, [None], [{}], CONTENT],
    "0.message.usage": [GONE, None, [], "x", {"input_tokens": "1"}],
    "1.index": [GONE, None, "0", -1, 7, 10**9, NAN, [], {}],
    "1.content_block": [GONE, None, 7, "x", [], {}, {"type": None}, UNKNOWN],
    "1.content_block.thinking": [GONE, None, 7],
    "1.content_block.signature": [GONE, None, 7, []],
    "2.delta": [GONE, None, 7, "x", [], {}, {"type": 7}, {"type": "from_the_future"}],
    "2.delta.thinking": [GONE, None, 7, [], LONE],
    "2.index": [GONE, None, "0", 5, -1, {}],
    "3.delta.signature": [GONE, None, 7, [], {}, "", LONE, DEEP],
    "3.index": [GONE, 1, "x"],
    "4.index": [GONE, None, 9],
    "6.delta.partial_json": [GONE, None, 7, "{", '{"a":', "[" * 500, "NaN", LONE],
    "8.delta": [GONE, None, 7, []],
    "8.delta.stop_reason": [GONE, {}, [], 7, LONE],
    "8.usage": [GONE, None, [], "x", {"output_tokens": "2"}, {"output_tokens": NAN}],
    "5": [{"type": None}, {"type": "from_the_future", "data": BLOB}, {}, {"type": 7}],
}


def order(*steps: int) -> list[dict[str, Any]]:
    return [copy.deepcopy(EVENTS[step]) for step in steps]


ORDERS: Final = {
    "a delta before its start": order(0, 2, 1, 3, 4, 8, 9),
    "a delta before the message": order(2, 0, 1, 3, 4, 8, 9),
    "no message_start": order(1, 2, 3, 4, 8, 9),
    "no block start": order(0, 2, 3, 4, 8, 9),
    "no block stop": order(0, 1, 2, 3, 8, 9),
    "no message_stop": order(0, 1, 2, 3, 4, 8),
    "two message_starts": order(0, 0, 1, 2, 3, 4, 8, 9),
    "two starts of one block": order(0, 1, 1, 2, 3, 4, 8, 9),
    "two message_stops": order(0, 1, 2, 3, 4, 8, 9, 9),
    "blocks after the stop": order(0, 8, 9, 1, 2, 3, 4),
    "a gap in the indices": order(0, 5, 6, 7, 8, 9),
    "only the stop": order(9),
    "two seals of one block": order(0, 1, 3, 3, 4, 8, 9),
}


def frame(event: Any) -> bytes:
    kind = event.get("type") if isinstance(event, dict) else None
    return f"event: {kind if kind in NAMES else 'ping'}\ndata: {json.dumps(event)}\n\n".encode()


NAMES: Final = frozenset(event["type"] for event in EVENTS)
GOOD: Final = [frame(event) for event in EVENTS]


FRAMES: Final = {
    **frames_gone_wrong(GOOD, b"content_block_delta", MESSAGE),
    "an unknown event": amid(GOOD, b'event: from_the_future\ndata: {"data": "x"}\n\n'),
    "an error without type": amid(
        GOOD, b'event: error\ndata: {"type": "error", "error": null}\n\n'
    ),
    "a ping of null": amid(GOOD, b"event: ping\ndata: null\n\n"),
    "no UTF-8": amid(GOOD, b'event: ping\ndata: {"type": "\xff\xfe"}\n\n'),
}
STREAMS: Final[Shapes] = {
    **{name: stream(*map(frame, made)) for name, made in wrong(EVENTS, STEPS)},
    **{name: stream(*map(frame, events)) for name, events in ORDERS.items()},
    **{name: stream(*frames) for name, frames in FRAMES.items()},
}


def create(at: Clients) -> Any:
    return at.anthropic.messages.create(**ASK)


def read(at: Clients) -> Any:
    return drained(at.anthropic.messages.create(**ASK, stream=True))


def helped(at: Clients) -> Any:
    with at.anthropic.messages.stream(**ASK) as helper:
        return helper.get_final_message()


CASE: Final = Case(
    "anthropic",
    {"whole": create, "stream": read, "helper": helped},
    {
        "whole": whole(json.dumps(put(MESSAGE, "id", "msg_2")).encode()),
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
