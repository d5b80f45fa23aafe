"""What the SDKs' own objects lack of what the wire brought, seen with the SDKs themselves."""

from __future__ import annotations

import base64
import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from google import genai

from otel_sealed.instrument import genai as adapter
from otel_sealed.instrument import instrument, uninstrument
from otel_sealed.model import Report
from otel_sealed.telemetry.settings import Settings
from otel_sealed.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.instrument.conftest import Wire

KEY = b"k" * 32
SEAL = base64.b64encode(bytes(range(96))).decode()
HALVES = SEAL[:60], SEAL[60:]
SIGNATURE = "anthropic.thinking.signature"
BLOB = "openai.reasoning.encrypted_content"
THOUGHT = "gemini.part.thought_signature"
CLAUDE = "anthropic/claude-opus-5"
HELLO: list[Any] = [{"role": "user", "content": "Which ledger is right?"}]
ASK: dict[str, Any] = {"model": "claude-opus-5", "max_tokens": 99, "messages": HELLO}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": SEAL}


class Reports:
    """The real core, and what it said."""

    def __init__(self) -> None:
        self._tracker = Tracker(KEY)
        self.all: list[Report] = []

    def observe(self, exchange: Any) -> Report:
        self.all.append(self._tracker.observe(exchange))
        return self.all[-1]

    def rows(self, artifact: str) -> list[tuple[str, str | None]]:
        """(fate, locus) of the rows of the last request."""
        found = [f for f in self.all[-1].findings if f.artifact == artifact]
        return [(f.fate.value, f.locus.value if f.locus else None) for f in found]


@pytest.fixture(name="reports")
def reports_() -> Iterator[Reports]:
    found = Reports()
    instrument("anthropic", "openai", "google", tracker=found, settings=Settings())
    yield found
    uninstrument()


def sse(*events: dict[str, Any]) -> list[bytes]:
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


def signed_in(*pieces: str) -> list[bytes]:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    return sse(
        {"type": "message_start", "message": MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "signature_delta", "signature": piece},
            }
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    )


def replayed(client: anthropic.Anthropic, wire: Wire, content: list[Any]) -> None:
    """The host sends back the objects it was handed."""
    wire.answers(json.dumps(MESSAGE | {"stop_reason": "end_turn"}).encode())
    sent = [b.model_dump(exclude_none=True) for b in content]
    again = [*HELLO, {"role": "assistant", "content": sent}, {"role": "user", "content": "And?"}]
    client.messages.create(**ASK | {"messages": again})


def claude(wire: Wire) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=0)


@pytest.mark.parametrize("api", ["messages", "beta"])
def test_a_signature_in_two_pieces_of_which_the_helper_keeps_one(
    reports: Reports, wire: Wire, api: str
) -> None:
    wire.streams(*signed_in(*HALVES))
    with claude(wire) as client:
        messages: Any = client.messages if api == "messages" else client.beta.messages
        with messages.stream(**ASK) as stream:
            message = stream.get_final_message()
        assert message.content[0].signature == HALVES[1]
        replayed(client, wire, message.content)
    assert reports.rows(SIGNATURE) == [("sdk_lossy", "sdk")]


async def test_the_helper_of_the_async_client_is_looked_at_too(
    reports: Reports, wire: Wire
) -> None:
    wire.streams(*signed_in(*HALVES))
    async with (
        anthropic.AsyncAnthropic(api_key="k", base_url=wire.url, max_retries=0) as remote,
        remote.messages.stream(**ASK) as stream,
    ):
        message = await stream.get_final_message()
    with claude(wire) as client:
        replayed(client, wire, message.content)
    assert reports.rows(SIGNATURE) == [("sdk_lossy", "sdk")]


def test_a_signature_in_one_piece_comes_through_whole(reports: Reports, wire: Wire) -> None:
    wire.streams(*signed_in(SEAL))
    with claude(wire) as client:
        with client.messages.stream(**ASK) as stream:
            message = stream.get_final_message()
        replayed(client, wire, message.content)
    assert reports.rows(SIGNATURE) == [("intact", None)]


def test_a_host_that_adds_up_the_events_itself_lost_it_itself(reports: Reports, wire: Wire) -> None:
    """Without a helper there is no object of the SDK's to lack anything."""
    wire.streams(*signed_in(SEAL))
    with claude(wire) as client:
        for _ in client.messages.create(**ASK, stream=True):
            pass
        block = SimpleNamespace(
            model_dump=lambda **_: {"type": "thinking", "thinking": "", "signature": HALVES[1]}
        )
        replayed(client, wire, [block])
    assert reports.rows(SIGNATURE) == [("modified", "process")]


def test_a_helper_that_was_left_early_is_not_held_against_the_sdk(
    reports: Reports, wire: Wire
) -> None:
    wire.streams(b"".join(signed_in(*HALVES)))
    with claude(wire) as client:
        with client.messages.stream(**ASK) as stream:
            next(iter(stream))
        block = SimpleNamespace(
            model_dump=lambda **_: {"type": "thinking", "thinking": "", "signature": HALVES[1]}
        )
        replayed(client, wire, [block])
    assert ("sdk_lossy", "sdk") not in reports.rows(SIGNATURE)


def test_a_closing_event_without_the_items_that_were_done(reports: Reports, wire: Wire) -> None:
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.6-sol"}
    body |= {"output": [], "status": "completed", "tools": [], "store": False}
    body |= {"parallel_tool_calls": True, "tool_choice": "auto"}
    said: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
    }
    said |= {
        "content": [
            {
                "type": "output_text",
                "text": "The second ledger is right, the first one lacks a page.",
                "annotations": [],
            }
        ]
    }
    events: list[dict[str, Any]] = [{"type": "response.created", "response": body}]
    for index, item in enumerate((REASONING, said)):
        for end in ("added", "done"):
            kind = f"response.output_item.{end}"
            events.append({"type": kind, "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": body})
    wire.streams(*sse(*(e | {"sequence_number": n} for n, e in enumerate(events))))
    ask: dict[str, Any] = {"model": "gpt-5.6-sol", "store": False}
    with openai.OpenAI(api_key="k", base_url=wire.url, max_retries=0) as client:
        with client.responses.stream(**ask, input="Which ledger?") as stream:
            response = stream.get_final_response()
        assert response.output == []
        wire.answers(json.dumps(body).encode())
        again: Any = [
            {"role": "user", "content": "Which ledger?"},
            {
                "role": "assistant",
                "content": "The second ledger is right, the first one lacks a page.",
            },
            {"role": "user", "content": "And?"},
        ]
        client.responses.create(**ask, input=again)
    assert [r.artifact for r in reports.all[0].received] == [BLOB]
    assert reports.rows(BLOB) == [("sdk_lossy", "sdk")]


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": CLAUDE}
    return f"data: {json.dumps(body | {'choices': [choice]})}\n\n".encode()


@pytest.mark.parametrize("numbers", [(0, 1), (0, 0)], ids=["counted", "all number 0"])
def test_details_of_one_number_that_the_helper_runs_together(
    reports: Reports, wire: Wire, numbers: tuple[int, int]
) -> None:
    seals = [SEAL, base64.b64encode(bytes(range(1, 97))).decode()]
    details = [
        {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": at} | piece
        for at, seal in zip(numbers, seals, strict=True)
        for piece in ({"text": f"Thought behind {seal[:3]}."}, {"signature": seal})
    ]
    chunks = [chunk({"reasoning_details": [one]}) for one in details]
    wire.streams(*chunks, chunk({"content": "The second."}, "stop"), b"data: [DONE]\n\n")
    with openai.OpenAI(api_key="k", base_url=wire.url, max_retries=0) as client:
        newer = hasattr(client.chat.completions, "stream")
        home: Any = client.chat.completions if newer else client.beta.chat.completions
        with home.stream(model=CLAUDE, messages=HELLO) as stream:
            message = stream.get_final_completion().choices[0].message
        wire.answers(b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[]}')
        wire.replies.pop(0)
        again = [*HELLO, message.to_dict(), *HELLO]
        client.chat.completions.create(model=CLAUDE, messages=again)
    assert len(message.reasoning_details) == len(set(numbers))
    found = reports.rows("openrouter.reasoning_details.signature")
    whole = [("intact", None)] * 2
    assert found == (whole if len(set(numbers)) > 1 else [("merged", "sdk")] * 2)


def gemini(wire: Wire, reports: Reports) -> list[tuple[str, str | None]]:
    """The rows of a replay in which a host left the signature out."""
    part = {"functionCall": {"name": "look_up", "args": {}}, "thoughtSignature": SEAL}
    answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
    client = genai.Client(api_key="k", http_options={"base_url": wire.url})
    wire.answers(json.dumps(answer).encode())
    client.models.generate_content(model="gemini-3-pro", contents="Which ledger?")
    wire.answers(json.dumps(answer).encode())
    said: Any = [
        {"role": "user", "parts": [{"text": "Which ledger?"}]},
        {"role": "model", "parts": [{"function_call": {"name": "look_up", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"function_response": {"name": "look_up", "response": {"a": 1}}}],
        },
    ]
    client.models.generate_content(model="gemini-3-pro", contents=said)
    return reports.rows(THOUGHT)


def test_a_release_without_a_field_for_signatures_loses_every_one(
    reports: Reports, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = SimpleNamespace(Part=SimpleNamespace(model_fields={"text": None}))
    monkeypatch.setitem(sys.modules, "google.genai.types", bare)
    adapter._kind.cache_clear()
    try:
        adapter._kind()
        monkeypatch.undo()
        assert gemini(wire, reports) == [("sdk_lossy", "sdk")]
    finally:
        adapter._kind.cache_clear()


def test_a_release_with_a_field_for_signatures_lost_none(reports: Reports, wire: Wire) -> None:
    adapter._kind.cache_clear()
    old = "thought_signature" not in genai.types.Part.model_fields
    assert gemini(wire, reports) == [("sdk_lossy", "sdk") if old else ("dropped", "process")]
