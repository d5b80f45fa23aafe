"""Bodies that nobody should send: nothing raises, and what could not be read is named."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import time
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.providers import dialects
from otel_sealed.tracker import Tracker
from otel_sealed.wire.parse import Unread
from tests.core.chat_wire import CHATS
from tests.core.conversations import (
    APIS,
    KEY,
    MATRIX,
    Body,
    conversation,
    exchange,
    history,
    observe,
    request,
    rows,
    server_sent,
)

BLOCKS = {"anthropic": "content", "openai": "output", "gemini": "candidates"}


def deep(depth: int = 1000) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize(
    ("body", "unread"),
    [
        (b"", "json"),
        (b"{", "json"),
        (b"\xff\xfe", "encoding"),
        ("9" * 10_000, "json"),
        ("[" * 100_000, "depth"),
        (Unread("size"), "size"),
    ],
    ids=["empty", "cut", "encoding", "giant", "deep", "not kept"],
)
def test_an_unreadable_body_is_named(dialect: str, body: Any, unread: str) -> None:
    """`Report.unread` says which body could not be read, in a word of ours."""
    report = Tracker(KEY).observe(exchange(dialect, body, None, response=body))
    assert report.unread == (f"response.{unread}", f"request.{unread}")
    assert (report.findings, report.received, report.verdict) == ((), (), None)


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("body", [[], "text", 7, True, b"[]", b"null", b'"x"'], ids=repr)
def test_a_request_that_is_no_object_is_named(dialect: str, body: Any) -> None:
    """A request has to be a JSON object."""
    report = Tracker(KEY).observe(exchange(dialect, body, None))
    assert report.unread in (("request.shape",), ("request.json",))


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_broken_event_is_named_and_the_others_count(dialect: str) -> None:
    """One unreadable event loses that event only."""
    plan = conversation(dialect)
    stream = server_sent(conversation(dialect)[0].events or [], named=False)
    broken = stream + b"data: {broken\n\n"
    report = Tracker(KEY).observe(dataclasses.replace(plan[0], response=None, events=broken))
    assert report.unread == ("event.json",)


WRONG: list[Any] = [
    None,
    True,
    0,
    -1.5,
    "",
    "text",
    [],
    {},
    [None],
    [[]],
    [{}],
    ["text"],
    [1, {"type": 7}],
    [{"type": ["list"]}],
    [{"type": "thinking"}],
    [{"type": "reasoning", "summary": 5, "id": [], "encrypted_content": {}}],
    [{"type": "compaction", "encrypted_content": False}],
    [{"role": 9, "content": {"type": "text"}, "parts": {"text": 1}}],
    [{"role": "model", "parts": [None, 5, {"functionCall": 7}, {"text": None}]}],
    [{"role": "assistant", "content": [{"type": "tool_use", "id": 5, "input": []}]}],
    {"parts": [{"functionCall": {"args": []}, "thoughtSignature": 12}]},
    deep(400),
]


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_wrong_types_anywhere_raise_nothing(dialect: str, value: Any) -> None:
    """Every key of a request, a response and an event holds something it should not."""
    plan = conversation(dialect)
    asked, answer = copy.deepcopy(plan[1].request), copy.deepcopy(plan[1].response)
    for body in (asked, answer):
        for key in list(body):
            spoilt = copy.deepcopy(body) | {key: value}
            tracker = Tracker(KEY)
            tracker.observe(plan[0])
            tracker.observe(exchange(dialect, spoilt, spoilt))
            tracker.observe(exchange(dialect, asked, None, events=[spoilt, value]))
    tracker = Tracker(KEY)
    for key in ("thinking", "tools", "system", "instructions", "input", "text", "conversation"):
        tracker.observe(exchange(dialect, asked | {key: value}, None, response=value))
    tracker.observe(exchange(dialect, None, None, events=value))


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_wrong_types_in_a_block_raise_nothing(dialect: str, value: Any) -> None:
    """Every key of every block of a history holds something it should not."""
    plan = conversation(dialect, turns=3)
    tracker = Tracker(KEY)
    observe(plan, tracker)
    for number, one in enumerate(history(plan[2].request)):
        for key in [*one, "type"]:
            body = copy.deepcopy(plan[2].request)
            history(body)[number][key] = value
            tracker.observe(exchange(dialect, body, None))
        history_now = copy.deepcopy(plan[2].request)
        history(history_now)[number] = value
        tracker.observe(exchange(dialect, history_now, None))


@pytest.mark.parametrize("dialect", MATRIX)
def test_unknown_block_types_are_read_by_their_keys(dialect: str) -> None:
    """A block nobody describes is sealed where its keys say so, and is judged by no rule."""
    block = {"type": "novel", "encrypted_content": "Q2FuYXJ5" * 8, "signature": "U2ln" * 16}
    answers: dict[str, Body] = {
        "anthropic": {"id": "m", "content": [block], "model": "claude-opus-5"},
        "openai": {"id": "r", "output": [block], "model": "gpt-5.6-sol"},
        "gemini": {
            "candidates": [{"content": {"parts": [{"novel": {}, "thoughtSignature": "U2ln" * 16}]}}]
        },
    }
    for name in CHATS:
        message = {"role": "assistant", "reasoning_details": [block]}
        answers[name] = {"choices": [{"message": message, "finish_reason": "stop"}]}
    tracker = Tracker(KEY)
    body = request(dialect, [])
    report = tracker.observe(exchange(dialect, copy.deepcopy(body), answers[dialect]))
    assert report.unread == ()
    name = "chat" if dialect in CHATS else dialect
    if dialect != "gemini":
        assert {r.artifact for r in report.received} == {
            f"{name}.other.encrypted_content",
            f"{name}.other.signature",
        }
    assert report.received_types == (("novel",) if dialect != "gemini" else ("signature",))


@pytest.mark.parametrize("dialect", MATRIX)
def test_lone_surrogates_raise_nothing(dialect: str) -> None:
    """Half a character anywhere is half a character."""
    plan = conversation(dialect, source=lambda b: json.loads(_broken(b)))
    reports = observe(plan)
    assert {f.fate.value for f in rows(reports)} == {"intact"}


def _broken(body: Body) -> str:
    return json.dumps(body).replace("Answer", "\\ud83d").replace("Thought", "\\ude00 \\ud83d")


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize(
    "number",
    ["NaN", "Infinity", "-Infinity", "1e999", "9" * 4000, "1E400", "-0.0"],
    ids=lambda v: v[:9],
)
def test_odd_numbers_raise_nothing(dialect: str, number: str) -> None:
    """JSON of other languages holds numbers that Python writes differently."""
    plan = conversation(dialect, turns=2)
    text = json.dumps(plan[1].request)[:-1] + f', "odd": {number}, "temperature": {number}}}'
    first = json.dumps(plan[0].response)[:-1] + f', "usage": {{"input_tokens": {number}}}}}'
    tracker = Tracker(KEY)
    tracker.observe(dataclasses.replace(plan[0], response=first))
    report = tracker.observe(dataclasses.replace(plan[1], request=text.encode()))
    assert report.unread == ()
    assert {f.fate.value for f in report.findings} == {"intact"}


@pytest.mark.parametrize("dialect", MATRIX)
def test_giant_integers_of_parsed_bodies_raise_nothing(dialect: str) -> None:
    """A parsed body may hold integers that Python refuses to write as decimals."""
    plan = conversation(dialect, turns=2)
    for body in (plan[0].request, plan[1].request):
        body["tools"] = [{"name": "look_up", "limit": 10**6000}]
    reports = observe(plan)
    assert {f.fate.value for f in rows(reports)} == {"intact"}


@pytest.mark.parametrize("dialect", MATRIX)
def test_bytes_in_parsed_bodies_raise_nothing(dialect: str) -> None:
    """Old SDKs hand over parsed bodies that hold bytes."""
    plan = conversation(dialect, turns=2)
    for one in plan:
        history(one.request)[0]["extra"] = b"\x00\xff"
    assert {f.fate.value for f in rows(observe(plan))} == {"intact"}


def test_a_gemini_signature_may_be_bytes() -> None:
    """google-genai before 1.30 hands over bytes, and their spelling is the same value."""
    plan = conversation("gemini", turns=2)
    text = plan[0].response["candidates"][0]["content"]["parts"][1]
    text["thoughtSignature"] = base64.b64decode(text["thoughtSignature"])
    assert {f.fate.value for f in rows(observe(plan))} == {"intact"}
    text["thoughtSignature"] = b""
    assert {f.fate.value for f in rows(observe(plan))} == {"fabricated"}


@pytest.mark.parametrize("dialect", MATRIX)
def test_duplicate_keys_count_as_the_last(dialect: str) -> None:
    """What JSON readers do with a key that stands twice."""
    plan = conversation(dialect, turns=2)
    text = json.dumps(plan[1].request)
    doubled = '{"store": true, "system": "first", ' + text[1:]
    tracker = Tracker(KEY)
    tracker.observe(plan[0])
    report = tracker.observe(dataclasses.replace(plan[1], request=doubled))
    assert {f.fate.value for f in report.findings} == {"intact"}


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_huge_body_is_read_in_bounded_time(dialect: str) -> None:
    """Megabytes of hostile text end the search for a lost seal early."""
    plan = conversation(dialect, turns=2)
    noise = ("<a> `x` " * 20_000) + "QUJD" * 50_000
    body = copy.deepcopy(plan[1].request)
    told = history(body)
    told[:] = [one for one in told if one.get("type") != "reasoning"]
    for one in told:
        if one.pop("reasoning_details", one.pop("tool_calls", None)):
            one["content"] = [{"type": "text", "text": noise}]
        elif one.get("role") in ("assistant", "model"):
            for key in ("content", "parts"):
                if key in one:
                    one[key] = [p for p in one[key] if "thoughtSignature" not in p]
                    one[key] = [p for p in one[key] if p.get("type") != "thinking"]
                    one[key].append(
                        {"text": noise} | ({"type": "text"} if key == "content" else {})
                    )
    told.append({"role": "user", "content": noise, "parts": [{"text": noise}]})
    tracker = Tracker(KEY)
    tracker.observe(plan[0])
    before = time.process_time()
    report = tracker.observe(exchange(dialect, body, None))
    assert time.process_time() - before < 5
    assert "dropped" in {f.fate.value for f in report.findings}


@pytest.mark.parametrize("dialect", MATRIX)
def test_deep_nesting_inside_a_block_is_read(dialect: str) -> None:
    """A tool's arguments may be nested a thousand deep."""
    plan = conversation(dialect, turns=2)
    for one in history(plan[1].request):
        for block in (one, *(one.get("content") or ()), *(one.get("parts") or ())):
            if isinstance(block, dict) and ("input" in block or "functionCall" in block):
                block["deep"] = deep()
    report = observe(plan)[1]
    assert report.unread == ()
    assert "dropped" not in {f.fate.value for f in report.findings}


@pytest.mark.parametrize("dialect", MATRIX)
def test_bodies_nested_a_thousand_deep_raise_nothing(dialect: str) -> None:
    """Parsed or raw, as request, response or event."""
    nested, text = deep(1000), '{"a": [' * 1000 + "1" + "]}" * 1000
    for key in ("messages", "input", "contents", "content", "output", "candidates", "tools"):
        raw = f'{{"{key}": {text}, "model": "m"}}'
        for body in (raw, {key: nested}, {key: [nested]}):
            known = Exchange(api=APIS[dialect], request=body, response=body)
            assert Tracker(KEY).observe(known).findings == ()
            known = Exchange(api=APIS[dialect], request=body, events=[body])
            assert Tracker(KEY).observe(known).findings == ()


@pytest.mark.parametrize("dialect", MATRIX)
def test_no_record_shows_content(dialect: str) -> None:
    """The repr of a report holds no text, seal, id or credential of the conversation."""
    plan = conversation(dialect, around={"account": "sk-secret-credential"})
    for one, report in zip(plan, observe(plan), strict=True):
        shown = repr(report) + repr(one)
        for text in _strings([one.request, one.response, one.account, one.conversation]):
            for piece in {text[at : at + 12] for at in range(0, max(1, len(text) - 11), 7)}:
                if len(piece) == 12 and piece not in _HARMLESS:
                    assert piece not in shown, piece


_HARMLESS = {
    text[at : at + 12]
    for text in (
        "gemini-3-pro-preview",
        "anthropic/claude-opus-5",
        "chat.completion",
        "reasoning.text",
        "reasoning.encrypted",
        "reasoning.encrypted_content",
        "redacted_thinking",
        "function_call_output",
        "encrypted_content",
        "final_answer",
        "current_turn",
    )
    for at in range(len(text))
}


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for one in value for text in _strings(one)] if isinstance(value, list) else []


@pytest.mark.parametrize("api", list(Api))
def test_an_empty_exchange_raises_nothing(api: Api) -> None:
    """Nothing in, nothing out."""
    report = Tracker(KEY).observe(Exchange(api=api))
    assert (report.findings, report.received) == ((), ())
    read = {*dialects()}
    assert report.unread == (() if api in read else ("api",))


def test_odd_words_around_a_call_become_other() -> None:
    """Host, model and operation are content too."""
    odd = {"model": "x y\n<secret>", "input": []}
    report = Tracker(KEY).observe(
        Exchange(
            api=Api.RESPONSES,
            request=odd,
            host="bad host\n",
            operation="UPPER secret",
            transport="tele pathy",
            betas=("ok-beta-1", "BAD beta " * 30),
        )
    )
    facts = report.facts
    assert (facts.model, facts.host) == ("other", "other")
    assert (facts.operation, facts.transport) == ("other", "other")
    assert "other" in facts.betas
