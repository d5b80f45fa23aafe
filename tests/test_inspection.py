"""`otel_sealed.inspect`: what a response holds, from every form it comes in."""

from __future__ import annotations

import base64
import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

import otel_sealed
from otel_sealed.errors import SealedError
from otel_sealed.inspection import Inspection, Seal
from otel_sealed.model import Rejection, State

SEAL = base64.b64encode(bytes(range(256))).decode()
CANARY = "cAnArY-51d0ff77aa"

ANTHROPIC: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [
        {"type": "thinking", "thinking": CANARY, "signature": SEAL},
        {"type": "redacted_thinking", "data": SEAL},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "url": CANARY, "encrypted_content": SEAL}],
        },
        {"type": CANARY, "payload": CANARY},
        {"type": "text", "text": CANARY},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 3},
}
OPENAI: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5.6-sol",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    ],
    "usage": {
        "input_tokens": 1,
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 7},
    },
}
GEMINI: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": CANARY, "thought": True},
                    {"functionCall": {"name": CANARY, "args": {}}, "thoughtSignature": SEAL},
                    {"functionCall": {"name": CANARY, "args": {}}},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "modelVersion": "gemini-3.8-flash",
}
STREAM: list[dict[str, Any]] = [
    {"type": "ping"},
    {"type": "message_start", "message": {**ANTHROPIC, "content": [], "stop_reason": None}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta", "signature": SEAL},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


def sizes(found: Inspection) -> list[tuple[str, int]]:
    return [(seal.artifact, seal.size) for seal in found.seals]


def test_an_anthropic_message_is_described_with_what_is_nested_in_it() -> None:
    found = otel_sealed.inspect(ANTHROPIC)
    assert ("anthropic", True, "claude-opus-5") == (found.dialect, found.complete, found.model)
    assert [(part.path, part.type) for part in found.parts] == [
        ("content.0", "thinking"),
        ("content.1", "redacted_thinking"),
        ("content.2", "web_search_tool_result"),
        ("content.2.content.0", "web_search_result"),
        ("content.3", "other"),
        ("content.4", "text"),
    ]
    assert sizes(found) == [
        ("anthropic.thinking.signature", len(SEAL)),
        ("anthropic.redacted_thinking.data", len(SEAL)),
        ("anthropic.web_search_result.encrypted_content", len(SEAL)),
    ]
    assert (found.usage.input_tokens, found.usage.output_tokens) == (3, 3)


def test_an_openai_response_is_described() -> None:
    found = otel_sealed.inspect(OPENAI)
    assert ("openai", True, "completed") == (found.dialect, found.complete, found.stop)
    assert [("output.0", "reasoning"), ("output.1", "message")] == [
        (part.path, part.type) for part in found.parts
    ]
    assert sizes(found) == [("openai.reasoning.encrypted_content", len(SEAL))]
    assert found.usage.reasoning_tokens == 7


def test_a_gemini_response_is_described_with_decoded_sizes() -> None:
    found = otel_sealed.inspect(GEMINI)
    assert ("gemini", "stop") == (found.dialect, found.stop)
    assert [part.path for part in found.parts] == [
        f"candidates.0.content.parts.{at}" for at in range(3)
    ]
    assert sizes(found) == [("gemini.part.thought_signature", 256)]


CHAT: dict[str, Any] = {
    "id": "c",
    "object": "chat.completion",
    "model": "anthropic/claude-opus-5",
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": CANARY,
                "reasoning_details": [
                    {"type": "reasoning.text", "text": CANARY, "signature": SEAL},
                    {"type": "reasoning.encrypted", "data": SEAL},
                ],
            },
            "finish_reason": "stop",
        }
    ],
}


def test_a_chat_completion_is_described() -> None:
    found = otel_sealed.inspect(CHAT)
    assert ("chat", "stop") == (found.dialect, found.stop)
    assert sizes(found) == [
        ("openrouter.reasoning_details.signature", len(SEAL)),
        ("openrouter.reasoning_details.data", len(SEAL)),
    ]
    chunk = {
        "object": "chat.completion.chunk",
        "choices": [{"delta": CHAT["choices"][0]["message"], "finish_reason": "stop"}],
    }
    assert sizes(otel_sealed.inspect([chunk])) == sizes(found)


@pytest.mark.parametrize("body", [ANTHROPIC, OPENAI, GEMINI, CHAT])
def test_every_form_of_a_body_shows_the_same(body: dict[str, Any]) -> None:
    text = json.dumps(body)
    expected = otel_sealed.inspect(body)
    for form in (text, text.encode(), bytearray(text.encode()), b"\xef\xbb\xbf" + text.encode()):
        assert expected == otel_sealed.inspect(form)


def test_every_form_of_a_stream_shows_the_same() -> None:
    expected = otel_sealed.inspect(STREAM)
    assert expected.complete
    assert sizes(expected) == [("anthropic.thinking.signature", len(SEAL))]
    server_sent = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in STREAM)
    lines = "\n".join(json.dumps(event) for event in STREAM)
    for form in (tuple(STREAM), server_sent, server_sent.encode(), lines, json.dumps(STREAM)):
        assert expected == otel_sealed.inspect(form)


def test_a_cut_stream_is_not_complete_and_its_open_seal_is_empty() -> None:
    found = otel_sealed.inspect(STREAM[:3])
    assert not found.complete
    assert found.parts[0].seals == (Seal("anthropic.thinking.signature", State.EMPTY, 0),)
    assert "NOT complete" in str(found)
    assert "(empty seal)" in str(found)


def test_an_incomplete_response_of_openai_says_so_itself() -> None:
    body = {**OPENAI, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    found = otel_sealed.inspect(body)
    assert not found.complete
    assert found.stop == "max_output_tokens"


def test_reasoning_without_a_seal_is_said() -> None:
    body = {**OPENAI, "output": [{"type": "reasoning", "id": "rs_1", "summary": []}]}
    assert "openai.reasoning.encrypted_content (no seal)" in str(otel_sealed.inspect(body))


def test_events_that_cannot_be_read_are_counted() -> None:
    found = otel_sealed.inspect(f"data: {json.dumps(GEMINI)}\n\ndata: {{broken\n\n")
    assert (found.lost, found.complete) == (1, False)
    assert "1 stream events could not be read" in str(found)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            {"type": "error", "error": {"message": "messages.1.content.0: Invalid `signature` in"}},
            None,
        ),
        (
            {"error": {"message": f"Invalid `signature` in `thinking` block {CANARY}"}},
            None,
        ),
        ({"error": {"code": 400, "message": "Corrupted thought signature."}}, "signature_invalid"),
        ({"error": {"message": "x", "code": "invalid_encrypted_content"}}, "undecryptable"),
        ({"error": {"message": CANARY}}, None),
    ],
)
def test_an_error_body_is_told_by_its_class(error: dict[str, Any], expected: str | None) -> None:
    found = otel_sealed.inspect(error)
    assert found.failed
    assert found.parts == ()
    assert CANARY not in str(found)
    if expected:
        assert Rejection(expected) is found.rejection
        assert expected in str(found)


def test_no_content_is_shown() -> None:
    for body in (ANTHROPIC, OPENAI, GEMINI):
        found = otel_sealed.inspect(body)
        for text in (str(found), repr(found)):
            assert CANARY not in text
            assert SEAL[:12] not in text


def test_it_is_frozen() -> None:
    found = otel_sealed.inspect(GEMINI)
    with pytest.raises(FrozenInstanceError):
        found.dialect = "x"


# -------------------------------------------------------------------------------- SDK objects


class Quiet:
    """An SDK object that may be dumped and may not be turned into a string."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    def __repr__(self) -> str:
        raise AssertionError("stringified")

    __str__ = __repr__


class Stainless(Quiet):
    """As anthropic and openai have them; their `model_dump` adds nulls."""

    def to_dict(self) -> dict[str, Any]:
        return self._body

    def model_dump(self, **_options: Any) -> dict[str, Any]:
        raise AssertionError("not this one")


class Pydantic(Quiet):
    """As google-genai has them."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        assert (mode, by_alias, exclude_none) == ("json", True, True)
        return self._body


@pytest.mark.parametrize(
    ("thing", "body"), [(Stainless(ANTHROPIC), ANTHROPIC), (Pydantic(GEMINI), GEMINI)]
)
def test_an_sdk_object_is_dumped_and_never_stringified(thing: Quiet, body: dict[str, Any]) -> None:
    assert otel_sealed.inspect(body) == otel_sealed.inspect(thing)


def test_a_list_of_event_objects_is_a_stream() -> None:
    events = [Stainless(event) for event in STREAM]
    assert otel_sealed.inspect(STREAM) == otel_sealed.inspect(events)


def test_the_sdks_own_objects_are_read() -> None:
    anthropic = pytest.importorskip("anthropic.types")
    openai = pytest.importorskip("openai.types.responses")
    types = pytest.importorskip("google.genai.types")
    known = {**ANTHROPIC, "content": ANTHROPIC["content"][:2]}
    message = anthropic.Message.model_construct(**known)
    message.content = [
        anthropic.ThinkingBlock(**known["content"][0]),
        anthropic.RedactedThinkingBlock(**known["content"][1]),
    ]
    assert sizes(otel_sealed.inspect(known)) == sizes(otel_sealed.inspect(message))
    response = openai.Response.model_construct(**OPENAI)
    assert sizes(otel_sealed.inspect(OPENAI)) == sizes(otel_sealed.inspect(response))
    reply = types.GenerateContentResponse.model_validate(GEMINI)
    assert sizes(otel_sealed.inspect(GEMINI)) == sizes(otel_sealed.inspect(reply))


def test_an_iterator_is_refused_and_not_consumed() -> None:
    events = iter(STREAM)
    with pytest.raises(SealedError, match="cannot read an object of type"):
        otel_sealed.inspect(events)
    assert next(events) == STREAM[0]


class Failing(Quiet):
    """An SDK object whose serialiser fails with content in the error."""

    def to_dict(self) -> dict[str, Any]:
        raise ValueError(CANARY)


@pytest.mark.parametrize("thing", [Failing({}), None, 7, {}, [], [7], {"x": CANARY}, CANARY])
def test_what_is_no_response_is_an_error_that_quotes_nothing(thing: Any) -> None:
    with pytest.raises(SealedError) as caught:
        otel_sealed.inspect(thing)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
