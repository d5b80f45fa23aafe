"""Malformed replies of generateContent: the application, its span and the next one survive."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.instrument.inprocess import Clients, Reply, stream, whole
from tests.instrument.malformed import (
    DEEP,
    GONE,
    HUGE,
    LONE,
    NAN,
    Case,
    Shapes,
    accepted,
    check,
    drained,
    each,
    put,
    wrong,
)

ASK: Final[dict[str, Any]] = {"model": "gemini-3-pro", "contents": "hi"}
SEAL: Final = "QUJD" * 22
PARTS: Final[list[dict[str, Any]]] = [
    {"text": "t", "thought": True},
    {"functionCall": {"name": "look", "args": {"q": 1}}, "thoughtSignature": SEAL},
    {"text": "", "thoughtSignature": SEAL},
]
ANSWER: Final[dict[str, Any]] = {
    "candidates": [
        {"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP", "index": 0}
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3},
    "modelVersion": "gemini-3-pro",
    "responseId": "r1",
}
UNKNOWN: Final = {"fromTheFuture": {"thoughtSignature": SEAL}, "thoughtSignature": SEAL}
AT: Final = "candidates.0.content"

BODIES: Final[dict[str, list[Any]]] = {
    "candidates": [
        *(GONE, None, [], {}, "x", 7, [None], [{}], [7], [{"content": None}], DEEP),
        *([{"index": 3}], [{"fromTheFuture": UNKNOWN}], [ANSWER["candidates"][0]] * 3),
    ],
    AT: [GONE, None, {}, [], "x", 7, {"role": None}, {"parts": [{}]}, {"extra": DEEP}],
    f"{AT}.role": [GONE, None, "user", "from_the_future", 7, LONE],
    f"{AT}.parts": [
        *(GONE, None, [], {}, "x", [None], [{}], [7], [[]], [{}] * 5_000),
        *([UNKNOWN], [{"text": None}], [{"thought": True}], [{"thoughtSignature": SEAL}]),
    ],
    f"{AT}.parts.0.text": [GONE, None, "", LONE, 7, [], {}],
    f"{AT}.parts.0.thought": [GONE, None, "true", 1, 7, "x", []],
    f"{AT}.parts.1.functionCall": [
        *(GONE, None, {}, "x", {"name": None}, {"name": LONE, "args": None}, {"args": {}}),
        *({"name": "look", "args": {"a": NAN}}, {"name": "look", "args": {"a": HUGE}}),
        *({"name": "look", "args": {"a": DEEP}}, {"name": "look", "args": {LONE: LONE}}),
        *({"name": "look", "args": []}, {"name": "look", "args": "{"}, {"id": 7, "name": "look"}),
    ],
    f"{AT}.parts.1.thoughtSignature": [
        *(GONE, None, "", "QUI=", "QUI", "Ab-_cQ==", "Ab+/cQ==", "?", 7, [], LONE, DEEP),
    ],
    f"{AT}.parts.2": [None, {}, {"text": "x", "thoughtSignature": None}, {"inlineData": {}}],
    "candidates.0.finishReason": [GONE, None, "FROM_THE_FUTURE", "", 7, {}, []],
    "candidates.0.index": [GONE, None, "1", -1, HUGE, NAN, 1.5, {}],
    "candidates.0.finishMessage": [None, LONE, 7],
    "candidates.0.tokenCount": ["7", NAN, -1],
    "usageMetadata": [
        *(GONE, None, {}, [], "x", 7, {"promptTokenCount": "1"}, {"promptTokenCount": None}),
        *({"promptTokenCount": NAN}, {"promptTokenCount": HUGE}, {"promptTokenCount": 1.0}),
        *({"thoughtsTokenCount": -1}, {"fromTheFuture": 7}, {"totalTokenCount": []}),
    ],
    "modelVersion": [GONE, None, 7, {}, LONE],
    "responseId": [GONE, None, 7, LONE],
    "promptFeedback": [None, {}, {"blockReason": "FROM_THE_FUTURE"}, {"blockReason": None}, 7],
    "createTime": [None, "x", 7],
    "extra": [UNKNOWN, None, DEEP, NAN],
}
RAW: Final = {
    "null": b"null",
    "list": b"[]",
    "list of answers": b"[{}]",
    "text": b'"x"',
    "number": b"7",
    "empty object": b"{}",
    "twice the same key": b'{"candidates":7,"candidates":null}',
    "nothing": b"",
    "no JSON": b"<html>",
    "half": json.dumps(ANSWER).encode()[:90],
    "no UTF-8": json.dumps(ANSWER).encode().replace(b'"t"', b'"\xff\xfe"'),
    "very deep": b"[" * 20_000 + b"]" * 20_000,
    "a number nobody writes": b'{"extra":' + b"9" * 5_000 + b"}",
    "blank": b"   \n",
    "an error with status 200": b'{"error":{"code":500,"message":null,"status":7}}',
}
WHOLE: Final[Shapes] = {
    **{name: whole(json.dumps(made).encode()) for name, made in wrong(ANSWER, BODIES)},
    **{name: whole(raw) for name, raw in RAW.items()},
}

# ----------------------------------------------------------------------------------- streams


def frame(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\r\n\r\n"


def chunk(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}


CHUNKS: Final = [chunk(PARTS[0]), chunk(PARTS[1]), chunk(PARTS[2], finishReason="STOP")]
GOOD: Final = [frame(each_) for each_ in CHUNKS]


def amid(*frames: bytes) -> Reply:
    return stream(*GOOD[:1], *frames, *GOOD[1:])


STREAMS: Final[Shapes] = {
    **{name: amid(frame(made)) for name, made in wrong(ANSWER, BODIES)},
    **{
        f"last {name}": stream(GOOD[0], frame(made))
        for name, made in wrong(
            CHUNKS[2],
            {
                "candidates": [None, [], {}, [None]],
                "candidates.0.finishReason": [None, 7, "FROM_THE_FUTURE"],
                AT: [None, {}, "x"],
                f"{AT}.parts": [None, [], [None], [{}]],
            },
        )
    },
    "the end first": stream(GOOD[2], GOOD[0], GOOD[1]),
    "two ends": stream(*GOOD, GOOD[2]),
    "no end": stream(*GOOD[:2]),
    "only usage": stream(frame({"usageMetadata": {"totalTokenCount": 1}})),
    "nothing": stream(b""),
    "data null": amid(b"data: null\r\n\r\n"),
    "data a list": amid(b"data: []\r\n\r\n"),
    "data a number": amid(b"data: 7\r\n\r\n"),
    "data no JSON": amid(b"data: {oops\r\n\r\n"),
    "data empty": amid(b"data:\r\n\r\n"),
    "done": amid(b"data: [DONE]\r\n\r\n"),
    "comments": amid(b": hello\r\n\r\n"),
    "an event name": amid(b"event: from_the_future\r\n" + GOOD[1]),
    "LF only": stream(*(part.replace(b"\r\n", b"\n") for part in GOOD)),
    "no blank line at the end": stream(*GOOD[:2], GOOD[2].rstrip()),
    "cut inside an escape": stream(GOOD[0], b'data: {"t":"\\ud8'),
    "one byte at a time": stream(*(bytes([byte]) for part in GOOD for byte in part)),
    "a body of JSON": stream(json.dumps(ANSWER).encode()),
    "a body of JSON in lines": stream(json.dumps(ANSWER, indent=1).encode()),
    "an error among the chunks": amid(frame({"error": {"code": 429, "message": None}})),
    "an error of null": amid(frame({"error": None})),
    "several lines of data": stream(b"data: {\r\ndata: }\r\n\r\n"),
}


def create(at: Clients) -> Any:
    return at.gemini.models.generate_content(**ASK)


def read(at: Clients) -> Any:
    return drained(at.gemini.models.generate_content_stream(**ASK))


CASE: Final = Case(
    "google",
    {"whole": create, "stream": read},
    {
        "whole": whole(json.dumps(put(ANSWER, "responseId", "r2")).encode()),
        "stream": stream(*GOOD),
    },
)


@each(WHOLE)
def test_whole(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    check(CASE, "whole", WHOLE[shape], monkeypatch)


@each(STREAMS)
def test_stream(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    check(CASE, "stream", STREAMS[shape], monkeypatch)


def test_the_plain_sdk_takes_at_least_forty_shapes_of_each() -> None:
    whole_ones, streams = accepted(CASE, "whole", WHOLE), accepted(CASE, "stream", STREAMS)
    assert len(whole_ones) >= 40, sorted(set(WHOLE) - whole_ones)
    assert len(streams) >= 40, sorted(set(STREAMS) - streams)
