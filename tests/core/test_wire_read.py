"""Bodies and streams become records: what is received, in which place, with which numbers."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from otel_sealed.contract import Api
from otel_sealed.digest import Digest
from otel_sealed.model import Report, State, Usage
from otel_sealed.providers import dialects
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
    asked,
    call,
    candidate,
    compacted,
    message,
    part,
    reasoning,
    redacted,
    response,
    said,
    text,
    thinking,
    use,
)
from tests.core.chat_wire import CHATS
from tests.core.conversations import (
    APIS,
    KEY,
    MATRIX,
    STREAM,
    Body,
    events,
    exchange,
    request,
    responses,
    server_sent,
)

FOLDS = {name: dialects()[api].fold for name, api in APIS.items()}


def came(dialect: str, answer: Body | None, **around: Any) -> Report:
    """The report of one first call."""
    return Tracker(KEY).observe(exchange(dialect, request(dialect, []), answer, **around))


@pytest.mark.parametrize(
    ("dialect", "answer", "expected"),
    [
        (
            "anthropic",
            message(redacted(), thinking(), text(), use()),
            [
                ("anthropic.redacted_thinking.data", "content.0"),
                ("anthropic.thinking.signature", "content.1"),
            ],
        ),
        (
            "anthropic",
            message(
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s",
                    "content": [{"type": "web_search_result", "encrypted_content": MINT.seal()}],
                },
                text()
                | {
                    "citations": [
                        {"type": "web_search_result_location", "encrypted_index": MINT.seal()}
                    ]
                },
            ),
            [
                ("anthropic.web_search_result.encrypted_content", "content.0.content.0"),
                ("anthropic.citation.encrypted_index", "content.1.citations.0"),
            ],
        ),
        (
            "anthropic",
            message(
                {
                    "type": "code_execution_tool_result",
                    "tool_use_id": "s",
                    "content": {
                        "type": "encrypted_code_execution_result",
                        "encrypted_stdout": MINT.seal(),
                    },
                }
            ),
            [
                (
                    "anthropic.encrypted_code_execution_result.encrypted_stdout",
                    "content.0.content",
                )
            ],
        ),
        (
            "openai",
            response(reasoning(), compacted(), said(), call()),
            [
                ("openai.reasoning.encrypted_content", "output.0"),
                ("openai.compaction.encrypted_content", "output.1"),
            ],
        ),
        (
            "openai",
            response({"type": "program", "call_id": "c", "fingerprint": MINT.seal(), "code": "1"}),
            [("openai.program.fingerprint", "output.0")],
        ),
        (
            "gemini",
            candidate(part("image"), part("only"), part("empty"), part(signed=False)),
            [
                ("gemini.part.thought_signature", f"candidates.0.content.parts.{n}")
                for n in range(3)
            ],
        ),
    ],
)
def test_every_sealed_value_has_a_receipt(
    dialect: str, answer: Body, expected: list[tuple[str, str]]
) -> None:
    """By artifact name and place, with digest and size."""
    report = came(dialect, answer)
    assert [(r.artifact, r.path) for r in report.received] == expected
    assert {len(r.digest) for r in report.received} == {16}
    assert all(r.size > 0 for r in report.received)
    assert report.unread == ()


def test_an_empty_seal_has_a_receipt_that_says_so() -> None:
    """Empty, null and absent are three states."""
    report = came("anthropic", message(thinking() | {"signature": ""}))
    assert [(r.state, r.size) for r in report.received] == [(State.EMPTY, 0)]
    assert came("anthropic", message(thinking() | {"signature": None})).received == ()


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_stream_folds_to_the_whole_body(dialect: str) -> None:
    """All that matters of the events is what the whole body holds."""
    for answer in responses(dialect):
        folded = FOLDS[dialect](events(dialect, answer))
        keys = {"anthropic": "content", "openai": "output", "gemini": "candidates"}
        key = keys.get(dialect, "choices")
        whole = copy.deepcopy(answer)
        if dialect == "gemini":
            whole["candidates"][0].pop("index")
        if key == "choices":
            for number, call in enumerate(whole[key][0]["message"].get("tool_calls") or ()):
                call["index"] = number
        assert folded.pop("complete") is True
        assert whole[key] == folded[key]


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_cut_stream_brings_what_was_whole_and_nothing_else(dialect: str) -> None:
    """Whatever the place of the cut, each receipt is one of the whole response."""
    answer = responses(dialect)[1]
    whole = came(dialect, answer, status=200).received
    sent = events(dialect, answer)
    # behind why it stopped stands the usage alone, or nothing
    closing = len(sent) - (dialect in CHATS or dialect == "anthropic")
    for cut in range(closing):
        report = came(dialect, None, events=sent[:cut])
        got = [r for r in report.received if r.state is State.PRESENT]
        assert [r for r in got if r not in whole] == []
        assert report.complete is False
    assert came(dialect, None, events=sent).received == whole
    assert came(dialect, None, events=sent, complete=False).complete is False


@pytest.mark.parametrize("dialect", MATRIX)
def test_raw_and_parsed_bodies_read_alike(dialect: str) -> None:
    """Bytes, text, objects and server-sent events are one response."""
    answer = responses(dialect)[0]
    text_ = json.dumps(answer)
    found = {
        came(dialect, answer).received,
        came(dialect, None, response=text_).received,
        came(dialect, None, response=text_.encode()).received,
        came(dialect, None, events=events(dialect, answer)).received,
        came(dialect, None, events=server_sent(events(dialect, answer))).received,
    }
    assert len(found) == 1


def test_signature_deltas_are_appended() -> None:
    """A gateway may cut a signature into several deltas."""
    seal = MINT.seal()
    pieces = [seal[at : at + 50] for at in range(0, len(seal), 50)]
    start = {"type": "thinking", "thinking": "", "signature": ""}
    sent: list[Any] = [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "signature_delta", "signature": piece},
            }
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    assert [r.digest for r in came("anthropic", None, events=sent).received] == [
        Digest(KEY).text(seal)
    ]


def test_odd_stream_events_of_anthropic_are_folded_as_far_as_they_go() -> None:
    """Deltas without a start, citations, compaction deltas, usage and broken arguments."""
    citation = {"type": "web_search_result_location", "encrypted_index": MINT.seal()}
    transformations = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "x"}]
    folded = FOLDS["anthropic"](
        [
            "noise",
            {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 3}}},
            {"type": "content_block_delta", "index": 7, "delta": {"type": "novel_delta"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text"}},
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "text_delta", "text": None},
            },
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "citations_delta", "citation": citation},
            },
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "citations_delta", "citation": citation},
            },
            {"type": "content_block_start", "index": "x", "content_block": {"type": "tool_use"}},
            {
                "type": "content_block_delta",
                "delta": {"type": "input_json_delta", "partial_json": "{broken"},
            },
            {"type": "content_block_start", "index": 2, "content_block": {"type": "compaction"}},
            {
                "type": "content_block_delta",
                "index": 2,
                "delta": {"type": "compaction_delta", "content": "C", "encrypted_content": None},
            },
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {
                "type": "message_delta",
                "usage": {"output_tokens": 4},
                "input_transformations": transformations,
            },
            {"type": "ping"},
        ]
    )
    assert folded == {
        "content": [
            {"type": "tool_use", "input": "{broken"},
            {"type": "text", "text": "", "citations": [citation, citation]},
            {"type": "compaction", "content": "C"},
            {"type": "other"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
        "stop_reason": "end_turn",
        "input_transformations": transformations,
        "complete": True,
        "cut": [],
    }


def test_odd_stream_events_of_openai_are_folded_as_far_as_they_go() -> None:
    """Items without an index, an empty closing output, an incomplete response."""
    item = reasoning()
    closing = {"id": "r", "output": [], "status": "incomplete"}
    folded = FOLDS["openai"](
        [
            5,
            {"type": "response.output_item.done", "item": item},
            {"type": "response.output_item.done", "output_index": 1, "item": call()},
            {"type": "response.incomplete", "response": closing},
        ]
    )
    assert (folded["complete"], len(folded["output"]), folded["output"][0]) == (True, 2, item)


def test_gemini_answers_without_sse_as_an_array() -> None:
    """streamGenerateContent without alt=sse is one JSON array of chunks."""
    answer = responses("gemini")[0]
    chunks = events("gemini", answer)
    assert came("gemini", None, response=chunks).received == came("gemini", answer).received
    assert FOLDS["gemini"](["noise", {"candidates": 7}]) == {"complete": False}


@pytest.mark.parametrize(
    ("dialect", "usage", "expected"),
    [
        (
            "anthropic",
            {
                "input_tokens": 10,
                "output_tokens": 20,
                "cache_read_input_tokens": 3,
                "cache_creation_input_tokens": 4,
                "output_tokens_details": {"thinking_tokens": 15},
            },
            Usage(17, 20, 15, 3, 4),
        ),
        ("anthropic", {"output_tokens": 20}, Usage(None, 20, None, None, None)),
        ("anthropic", {"input_tokens": True}, Usage()),
        (
            "openai",
            {
                "input_tokens": 10,
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 15},
                "input_tokens_details": {"cached_tokens": 3},
            },
            Usage(10, 20, 15, 3, None),
        ),
        ("openai", {"input_tokens": "10"}, Usage()),
        (
            "gemini",
            {
                "promptTokenCount": 10,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 15,
                "cachedContentTokenCount": 3,
            },
            Usage(10, 20, 15, 3, None),
        ),
        ("gemini", {"thoughtsTokenCount": 15}, Usage(None, 15, 15, None, None)),
        ("gemini", 5, Usage()),
        ("openai", [], Usage()),
        ("anthropic", None, Usage()),
    ],
)
def test_usage_is_read(dialect: str, usage: Any, expected: Usage) -> None:
    """Numbers where there are numbers, None where the provider did not say."""
    answer = copy.deepcopy(responses(dialect)[0])
    answer["usageMetadata" if dialect == "gemini" else "usage"] = usage
    assert expected == came(dialect, answer).usage


@pytest.mark.parametrize(
    ("dialect", "answer", "model", "stop"),
    [
        ("anthropic", message(text()), "claude-opus-5", "end_turn"),
        ("openai", response(said()), "gpt-5.6-sol", "completed"),
        (
            "openai",
            response(said()) | {"incomplete_details": {"reason": "max_output_tokens"}},
            "gpt-5.6-sol",
            "max_output_tokens",
        ),
        ("gemini", candidate(part("text")), "gemini-3-pro-preview", "stop"),
        ("anthropic", message(text()) | {"model": 7, "stop_reason": 8}, "", ""),
    ],
)
def test_model_and_stop_are_read(dialect: str, answer: Body, model: str, stop: str) -> None:
    """What answered, and why it ended."""
    report = came(dialect, answer)
    assert (report.response_model, report.stop) == (model, stop)


@pytest.mark.parametrize(
    ("dialect", "more", "expected"),
    [
        ("anthropic", {"thinking": {"type": "adaptive"}}, {"thinking": True}),
        ("anthropic", {"thinking": {"type": "disabled"}}, {"thinking": False}),
        ("anthropic", {"thinking": None}, {"thinking": None}),
        (
            "anthropic",
            {"context_management": {"edits": []}, "compaction": {"type": "summarize"}},
            {"flags": ("context_management", "compaction")},
        ),
        (
            "anthropic",
            {"model": "claude-opus-5"},
            {"model": "claude-opus-5", "vendor": "anthropic"},
        ),
        ("openai", {"store": False}, {"store": False}),
        ("openai", {"store": "no"}, {"store": None}),
        ("openai", {"reasoning": {"context": "current_turn"}}, {"context": "current_turn"}),
        ("openai", {"reasoning": {}}, {"context": "all_turns"}),
        ("openai", {"model": "gpt-5"}, {"context": "current_turn"}),
        ("openai", {"background": True, "store": True}, {"background": True}),
        ("openai", {"truncation": "auto"}, {"flags": ("include", "truncation")}),
        ("openai", {"previous_response_id": "r"}, {"reference": "previous_response_id"}),
        ("openai", {"conversation": "c"}, {"reference": "conversation"}),
        ("openai", {"conversation": {"id": "c"}}, {"reference": "conversation"}),
        ("openai", {"conversation": {}}, {"reference": ""}),
        ("anthropic", {"thread": {"type": "continue"}}, {"reference": "thread"}),
        ("anthropic", {"thread": {"type": "create"}}, {"reference": ""}),
        (
            "gemini",
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1}}},
            {"thinking": True},
        ),
        ("gemini", {}, {"thinking": None, "dialect": "gemini", "vendor": "google"}),
    ],
)
def test_facts_of_a_request(dialect: str, more: Body, expected: dict[str, Any]) -> None:
    """What a request says about itself, as far as rules ask for it."""
    facts = Tracker(KEY).observe(exchange(dialect, asked(dialect, **more), None)).facts
    assert {key: getattr(facts, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ({"provider": "anthropic"}, ("anthropic", "anthropic")),
        ({"provider": "aws.bedrock"}, ("anthropic", "bedrock")),
        ({"provider": "vertex"}, ("anthropic", "vertex")),
        ({"provider": "", "host": "api.anthropic.com"}, ("anthropic", "anthropic")),
        ({"provider": "", "host": "x.aiplatform.googleapis.com"}, ("anthropic", "vertex")),
        ({"provider": "", "host": "api.z.ai"}, ("zhipu", "zhipu")),
        ({"provider": "", "host": "localhost"}, ("anthropic", "anthropic")),
        ({"provider": "", "host": None}, ("anthropic", "anthropic")),
        ({"provider": "somebody"}, ("somebody", "somebody")),
    ],
)
def test_vendor_and_platform_are_told_from_provider_host_and_model(
    around: Body, expected: tuple[str, str]
) -> None:
    """Who mints the seal, and where."""
    report = Tracker(KEY).observe(exchange("anthropic", asked("anthropic"), None, **around))
    assert (report.facts.vendor, report.facts.platform) == expected


@pytest.mark.parametrize(
    ("model", "vendor"),
    [
        ("gpt-5.6-sol", "openai"),
        ("o4-mini", "openai"),
        ("openai/gpt-5", "openai"),
        ("grok-5", "xai"),
        ("glm-5", "zhipu"),
        ("MiniMax-M3", "minimax"),
        ("novel-1", "openai"),
    ],
)
def test_a_vendor_without_provider_and_host_is_told_by_the_model(model: str, vendor: str) -> None:
    """The model's name decides, then the wire."""
    one = exchange("openai", asked("openai", model=model), None, provider="", host=None)
    assert Tracker(KEY).observe(one).facts.vendor == vendor


def test_only_a_response_is_recorded_too() -> None:
    """A door that saw no request records what came."""
    answer = message(thinking(), use())
    tracker = Tracker(KEY)
    report = tracker.observe(exchange("anthropic", None, answer))
    assert (len(report.received), report.findings) == (1, ())
    assert len(tracker.ledger) == 1


def test_a_delivery_as_stream_says_whether_it_was_whole() -> None:
    """Complete is what the stream says and the door says."""
    assert came("openai", None, events=[]).complete is False
    assert STREAM.cut is None
    assert came("openai", responses("openai")[0]).complete is True


def test_a_wire_without_a_dialect_is_named() -> None:
    """Unread, not misread."""
    one = exchange("openai", asked("openai"), None, api=Api.REALTIME)
    assert Tracker(KEY).observe(one).unread == ("api",)
