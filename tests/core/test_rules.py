"""Every rule fires where it should, and not where it should not.

Each id of the tables has a case of exchanges in which it gives a verdict, and one beside it in
which it does not. An id without both fails the suite.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from docs import generate
from otel_sealed import rulebook
from otel_sealed.contract import Api, Dialect, Exchange, Rule
from otel_sealed.judge import OWN_RULES
from otel_sealed.model import Fate, Finding, Report, Trait
from otel_sealed.providers import dialects
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
    Case,
    alone,
    asked,
    blocks,
    call,
    candidate,
    compacted,
    edit,
    listed,
    message,
    once,
    part,
    parts_of,
    reasoning,
    redacted,
    response,
    said,
    searched,
    sets,
    text,
    thinking,
    turns,
    unsigned,
    use,
    without,
)
from tests.core.chat_cases import CHAT_CASES
from tests.core.conversations import KEY, Body, Change, exchange, history
from tests.core.converse import on_converse

BY_NAME = {dialect.name: dialect for dialect in dialects().values()}


FABLE = "claude-fable-5-2"
HAIKU = "claude-haiku-5-5"


def thread(body: Body) -> Body:
    """A continued thread that sends its last message only."""
    return body | {
        "messages": body["messages"][-1:],
        "thread": {"type": "continue", "previous_message_id": THREADED["id"]},
    }


def thread_and_all(body: Body) -> Body:
    return body | {"thread": {"type": "continue", "previous_message_id": THREADED["id"]}}


def held(body: Body) -> Body:
    return body | {"input": body["input"][-1:], "previous_response_id": STORED["id"]}


def held_and_all(body: Body) -> Body:
    return body | {"previous_response_id": STORED["id"]}


THREADED = message(thinking(), use(), stop="tool_use")
STORED = response(reasoning(), call())
OFF = {"thinking": {"type": "disabled"}}
DUMMY = "skip_thought_signature_validator"


def swap_first_two(body: Body) -> None:
    found = blocks(body) if "messages" in body else body["input"][1:3]
    found[0], found[1] = found[1], found[0]
    if "input" in body:
        body["input"][1:3] = found


def compaction(**more: Any) -> Body:
    """A threshold compaction of Anthropic."""
    block = {"type": "compaction", "content": MINT.text("Summary")}
    return block | {"encrypted_content": MINT.seal()} | more


def signed_compaction() -> Body:
    return {
        "type": "compaction",
        "content": MINT.text("Summary"),
        "signature": MINT.seal(),
    }


def strip_result(key: str) -> Change:
    """A host that keeps a result and loses its sealed field."""

    def change(body: Body) -> None:
        content = blocks(body)[1]["content"]
        (content[0] if isinstance(content, list) else content).pop(key)

    return edit(change)


def shipped(dialect: str, answer: Body, **around: Any) -> Case:
    """A case in which what one vendor sealed goes to another."""
    return once(dialect, answer, **around)


def unsealed(answer: Body, key: str = "signature", value: Any = "") -> Body:
    """A response whose seals never came."""
    answer = copy.deepcopy(answer)
    for block in (*answer.get("content", ()), *answer.get("output", ())):
        if key in block:
            block[key] = value
    return answer


def drop_front(body: Body) -> Body:
    """A host that lets the first turn and its results go."""
    body = copy.deepcopy(body)
    told = history(body)
    first = next(i for i, m in enumerate(told) if _model(m))
    last = next(i for i in range(first, len(told)) if i > first and _asks(told[i]))
    del told[first:last]
    return body


def _model(one: Body) -> bool:
    return one.get("role") in ("assistant", "model") or one.get("type") in (
        "reasoning",
        "function_call",
    )


def _asks(one: Body) -> bool:
    if one.get("role") != "user":
        return False
    told = one.get("content", one.get("parts"))
    kinds = {b.get("type") for b in listed(told)}
    return "tool_result" not in kinds and not any("functionResponse" in b for b in listed(told))


def only_the_older(body: Body) -> Body:
    """A host that kept the first of two compactions and nothing of the second."""
    body = copy.deepcopy(body)
    first = next(i for i in body["input"] if i.get("type") == "compaction")
    body["input"] = [first, body["input"][-1]]
    return body


def from_the_compaction_on(body: Body) -> Body:
    """A host that keeps the newest compaction and what follows it."""
    body = copy.deepcopy(body)
    told = history(body)
    kinds = [
        one.get("type") == "compaction"
        or any(b.get("type") == "compaction" for b in listed(one.get("content")))
        for one in told
    ]
    at = max(i for i, found in enumerate(kinds) if found)
    del told[:at]
    return body


def system(words: str) -> Change:
    key = {"anthropic": "system", "openai": "instructions"}

    def change(body: Body) -> Body:
        return body | {key["anthropic" if "messages" in body else "openai"]: words}

    return change


def in_steps(body: Body) -> None:
    """A host that sends parallel calls as steps of their own."""
    at = next(i for i, c in enumerate(body["contents"]) if c["role"] == "model")
    calls, results = body["contents"][at]["parts"], body["contents"][at + 1]["parts"]
    body["contents"][at : at + 2] = [
        step_
        for one, two in zip(calls, results, strict=True)
        for step_ in ({"role": "model", "parts": [one]}, {"role": "user", "parts": [two]})
    ]


def join_texts(body: Body) -> None:
    """A host that joins the parts of a content of the model."""
    found = parts_of(body)
    merged = {"text": "".join(p.get("text", "") for p in found)} | {
        "thoughtSignature": found[-1]["thoughtSignature"]
    }
    found[:] = [merged]


def moved_signature(body: Body) -> None:
    found = parts_of(body)
    found[1]["thoughtSignature"] = found[0].pop("thoughtSignature")


def doubled_signature(body: Body) -> None:
    found = parts_of(body)
    found[1]["thoughtSignature"] = found[0]["thoughtSignature"]


def repeat(kind: str) -> Change:
    """A host that sends items of a type twice."""

    def change(body: Body) -> None:
        body["input"] = [
            one
            for item in body["input"]
            for one in ([item, dict(item)] if item.get("type") == kind else [item])
        ]

    return edit(change)


def summary_in_the_slot(body: Body) -> None:
    for item in body["input"]:
        if item.get("type") == "reasoning":
            item["encrypted_content"] = item["summary"][0]["text"]


def reworded(body: Body) -> None:
    """A host that writes a summary in other words."""
    for item in body["input"]:
        if item.get("type") == "reasoning":
            item["summary"] = [{"type": "summary_text", "text": "Said otherwise."}]


def summary_as_message(body: Body) -> None:
    for item in body["input"]:
        item.pop("id", None)
        if item.get("type") == "reasoning":
            words = item["summary"][0]["text"]
            content = [{"type": "output_text", "text": words}]
            item.clear()
            item.update(type="message", role="assistant", content=content)


def thinking_as_text(body: Body) -> None:
    for block in blocks(body):
        if block["type"] == "thinking":
            words = block["thinking"]
            block.clear()
            block.update(type="text", text=words)


def no_ids(body: Body) -> None:
    for item in body["input"]:
        item.pop("id", None)


def no_ids_and(change: Change) -> Change:
    return lambda body: change(edit(no_ids)(body))


def in_text(body: Body) -> None:
    """A host that writes the blob into a message."""
    items = [i for i in body["input"] if i.get("type") == "reasoning"]
    blob = items[0]["encrypted_content"]
    body["input"] = [i for i in body["input"] if i.get("type") != "reasoning"]
    for item in body["input"]:
        item.pop("id", None)
    body["input"].append({"role": "user", "content": f"<reasoning>{blob}</reasoning>"})


def summarised(body: Body) -> Body:
    """A host that prompted for a summary, and goes on with it alone."""
    words = next(
        b["text"]
        for m in body["messages"]
        for b in listed(m["content"])
        if "text" in b and m["role"] == "assistant"
    )
    prompt = f"This session continues an earlier one.\n\n{words}\n\nGo on."
    return body | {"messages": [{"role": "user", "content": prompt}]}


LONG = {"type": "text", "text": " ".join(MINT.text("Summary of it all") for _ in range(3))}

# ------------------------------------------------------------------------------------- the cases


# id -> (a case in which it fires, a case beside it in which it does not)
def interactions(previous: str | None) -> list[Report]:
    """A thought, then its result by reference or with all steps sent again."""
    tracker = Tracker(KEY)
    thought = {"type": "thought", "signature": MINT.seal(), "summary": []}
    tool = {"type": "function_call", "id": "c_1", "name": "look_up", "arguments": {}}
    question = {"type": "user_input", "content": [{"type": "text", "text": "Which ledger?"}]}
    ask: Body = {"model": "gemini-3-pro-preview", "input": [question]}
    answer = {"id": "i_1", "model": ask["model"], "steps": [thought, tool]}
    tracker.observe(Exchange(Api.INTERACTIONS, request=ask, response=answer, status=200))
    result = {"type": "function_result", "call_id": "c_1", "result": "42"}
    held = {"input": [result], "previous_interaction_id": previous}
    again = {"input": [question, thought, tool, result], "store": False}
    body = ask | (held if previous else again)
    return [tracker.observe(Exchange(Api.INTERACTIONS, request=body))]


def trimmed_steps(first: int) -> list[Report]:
    """Two questions, their thoughts and answers, and a third, sent from step `first` on."""
    tracker = Tracker(KEY)
    ask: Body = {"model": "gemini-3-pro-preview", "store": False}
    told: list[Body] = []
    for number in range(2):
        told.append({"type": "user_input", "content": [{"type": "text", "text": f"Q{number}?"}]})
        thought = {"type": "thought", "signature": MINT.seal(), "summary": []}
        output = {"type": "model_output", "content": [{"type": "text", "text": MINT.text("A")}]}
        answer = {"id": f"i_{number}", "model": ask["model"], "steps": [thought, output]}
        body = ask | {"input": list(told)}
        tracker.observe(Exchange(Api.INTERACTIONS, request=body, response=answer, status=200))
        told += [thought, output]
    told.append({"type": "user_input", "content": [{"type": "text", "text": "And?"}]})
    return [tracker.observe(Exchange(Api.INTERACTIONS, request=ask | {"input": told[first:]}))]


def half(*, closed: bool) -> Case:
    """A stream that was cut right behind a signature, or behind the end of its block."""
    block = thinking()
    delta = {"type": "signature_delta", "signature": block["signature"]}
    events: list[Body] = [
        {"type": "content_block_start", "index": 0, "content_block": block | {"signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
    ]
    events += [{"type": "content_block_stop", "index": 0}] if closed else []

    def case() -> list[Report]:
        tracker = Tracker(KEY)
        body = asked("anthropic")
        tracker.observe(exchange("anthropic", body, None, events=events, complete=False))
        messages = [*body["messages"], {"role": "assistant", "content": [block]}]
        return [tracker.observe(exchange("anthropic", body | {"messages": messages}, None))]

    return case


CASES: dict[str, dict[str, tuple[Case, Case]]] = {
    "otel_sealed": {
        "X1": (
            once(
                "anthropic",
                message(thinking(), use()),
                without("thinking"),
                provider="zhipu2",
                minted={"provider": "zhipu2"},
            ),
            once("anthropic", message(thinking(), use()), without("thinking")),
        ),
        "X2": (
            alone(
                "anthropic",
                asked("anthropic")
                | {
                    "messages": [
                        {"role": "user", "content": "Hi."},
                        {"role": "assistant", "content": [thinking(), text()]},
                        {"role": "user", "content": "And?"},
                    ]
                },
                None,
            ),
            once("anthropic", message(thinking(), use())),
        ),
        "X5": (
            once("anthropic", message(thinking(), LONG), summarised),
            once("anthropic", message(thinking(), LONG)),
        ),
        "X6": (
            alone(
                "anthropic",
                asked("anthropic", thinking={"type": "enabled", "budget_tokens": 512}),
                message(text()),
            ),
            alone(
                "anthropic",
                asked("anthropic", thinking={"type": "enabled", "budget_tokens": 1024}),
                message(text()),
            ),
        ),
        "X11": (half(closed=False), half(closed=True)),
        "X12": (
            once(
                "openai",
                response(reasoning(), call()),
                lambda b: without("reasoning")(b) | {"previous_response_id": "resp_elsewhere"},
            ),
            once("openai", response(reasoning(), call()), without("reasoning")),
        ),
        "X8": (
            once(
                "anthropic",
                message(thinking(), text(), stop="max_tokens"),
                lambda b: without("thinking")(b) | {"model": "claude-sonnet-5"},
            ),
            once(
                "anthropic",
                message(thinking(), text()),
                lambda b: without("thinking")(b) | {"model": "claude-sonnet-5"},
            ),
        ),
    },
    "anthropic": {
        "A1": (
            once("anthropic", message(thinking(), use()), without("thinking")),
            once("anthropic", message(thinking(), text()), without("thinking")),
        ),
        "A2": (
            once("anthropic", message(thinking(), redacted(), use()), without("redacted_thinking")),
            once("anthropic", message(redacted(), text()), without("redacted_thinking")),
        ),
        "A3": (
            once("anthropic", unsealed(message(thinking(), use()))),
            once("anthropic", unsealed(message(thinking(), use())), without("thinking")),
        ),
        "A5": (
            once("anthropic", message(thinking(), use()), edit(swap_first_two)),
            once("anthropic", message(thinking(), thinking("two"), use())),
        ),
        "A6": (
            once("anthropic", message(thinking(), use()), sets("thinking", "other", "thinking")),
            once("anthropic", message(thinking(""), use())),
        ),
        "A7": (
            once("anthropic", message(thinking(), use()), sets("thinking", ..., "thinking")),
            once("anthropic", message(thinking(""), use())),
        ),
        "A8": (
            once("anthropic", message(thinking(), text()), without("thinking")),
            once("anthropic", message(thinking(), use()), without("thinking")),
        ),
        "A9": (
            once("anthropic", message(thinking(), use()), lambda b: without("thinking")(b) | OFF),
            once("anthropic", message(thinking(), use()), without("thinking")),
        ),
        "A11": (
            once("anthropic", message(text(), thinking()), without("thinking")),
            once("anthropic", message(thinking(), text()), without("thinking")),
        ),
        "A12": (
            once(
                "anthropic",
                message(thinking(), use(), model=FABLE),
                system("Other."),
                asked=asked("anthropic", model=FABLE),
            ),
            once("anthropic", message(thinking(), use()), system("Other.")),
        ),
        "A13": (
            once(
                "anthropic",
                message(thinking(), text(), model=FABLE),
                without("thinking"),
                asked=asked("anthropic", model=FABLE),
            ),
            once("anthropic", message(thinking(), text()), without("thinking")),
        ),
        "A15": (
            once("anthropic", message(thinking(), use()), lambda b: b | {"model": HAIKU}),
            once(
                "anthropic", message(thinking(), use()), lambda b: b | {"model": "claude-sonnet-5"}
            ),
        ),
        "A16": (
            once(
                "anthropic",
                message(thinking(), use(), model=HAIKU),
                account="two",
                asked=asked("anthropic", model=HAIKU),
            ),
            once("anthropic", message(thinking(), use()), account="two"),
        ),
        "A17": (
            once("anthropic", message(thinking(), use()), account="two"),
            once("anthropic", message(thinking(), use())),
        ),
        "A18": (
            shipped("anthropic", message(thinking(), use()), provider="zhipu", host="api.z.ai"),
            once("anthropic", message(thinking(), use())),
        ),
        "A20": (
            once(
                "anthropic",
                message(thinking(), {"type": "fallback"}, thinking("two"), text()),
                edit(lambda b: blocks(b).pop(0)),
            ),
            once(
                "anthropic",
                message(thinking(), {"type": "fallback"}, thinking("two"), text()),
                edit(lambda b: blocks(b).pop(2)),
            ),
        ),
        "A21": (
            once("anthropic", message(thinking(), text(), stop="refusal"), without("thinking")),
            once("anthropic", message(thinking(), text()), without("thinking")),
        ),
        "A24": (
            once("anthropic", message(compaction(), thinking(), use()), without("compaction")),
            once("anthropic", message(compaction(), thinking(), use())),
        ),
        "A25": (
            once(
                "anthropic",
                message(signed_compaction(), stop="compaction"),
                sets("content", "other", "compaction"),
            ),
            once(
                "anthropic",
                message(compaction(), stop="compaction"),
                sets("content", "other", "compaction"),
            ),
        ),
        "A26": (
            once("anthropic", message(*searched()), strip_result("encrypted_content")),
            once("anthropic", message(*searched())),
        ),
        "A27": (
            once("anthropic", message(*searched("code")), strip_result("encrypted_stdout")),
            once("anthropic", message(*searched("code"))),
        ),
        "A28": (
            once("anthropic", message(*searched("advisor")), strip_result("encrypted_content")),
            once("anthropic", message(*searched("advisor"))),
        ),
        "X7": (
            turns(
                "anthropic",
                message(*searched("advisor")),
                message(thinking(), text()),
                change=drop_front,
            ),
            turns("anthropic", message(*searched("advisor")), message(thinking(), text())),
        ),
        "A30": (
            once("anthropic", message(thinking(), use()), sets("cache_control", {}, "thinking")),
            once("anthropic", message(thinking(), text()), sets("cache_control", {}, "text")),
        ),
        "A31": (
            once("anthropic", THREADED, thread),
            once("anthropic", THREADED),
        ),
    },
    "openai": {
        "O2": (
            once("openai", STORED, held, asked=asked("openai", store=True)),
            once("openai", STORED),
        ),
        "O3": (
            once("openai", response(reasoning(), call()), without("function_call")),
            once("openai", response(reasoning(), call())),
        ),
        "O4": (
            once("openai", response(reasoning(), call()), without("reasoning")),
            once("openai", response(reasoning(), call()), no_ids_and(without("reasoning"))),
        ),
        "X10": (
            once("openai", response(reasoning() | {"id": "rs_tmp_1"}, call())),
            once("openai", response(reasoning(), call())),
        ),
        "X9": (
            once(
                "openai",
                response(reasoning(), call()),
                without("reasoning"),
                minted={"provider": "xai"},
                provider="xai",
            ),
            once("openai", response(reasoning(), call()), without("reasoning")),
        ),
        "O5": (
            once("openai", response(reasoning(), call()), no_ids_and(without("reasoning"))),
            once("openai", response(reasoning(), call()), without("reasoning")),
        ),
        "O6": (
            once("openai", response(reasoning(), call()), sets("id", "rs_other", "reasoning")),
            once("openai", response(reasoning(), call()), sets("id", ..., "reasoning")),
        ),
        "O7": (
            once("openai", response(reasoning(), call()), sets("id", ..., "reasoning")),
            once("openai", response(reasoning(), call()), sets("id", "rs_other", "reasoning")),
        ),
        "O8": (
            once(
                "openai",
                response(reasoning(), call()),
                sets("encrypted_content", None, "reasoning"),
            ),
            once(
                "openai",
                response(reasoning(), call()),
                sets("encrypted_content", None, "reasoning"),
                asked=asked("openai", store=True),
            ),
        ),
        "O10": (
            once(
                "openai",
                response(reasoning("What was weighed, at length."), said()),
                edit(summary_as_message),
            ),
            once("openai", response(reasoning("What was weighed, at length."), said())),
        ),
        "O11": (
            once(
                "openai",
                response(reasoning(), call()),
                sets("encrypted_content", MINT.seal(), "reasoning"),
            ),
            once("openai", response(reasoning(), call())),
        ),
        "O9": (
            once("openai", response(reasoning(), call()), edit(reworded)),
            once(
                "openai", response(reasoning("Before."), call()), sets("summary", [], "reasoning")
            ),
        ),
        "O12": (
            once("openai", response(reasoning(), call()), account="two"),
            once("openai", response(reasoning(), call())),
        ),
        "O13": (
            once(
                "openai",
                response(reasoning(), call(), model="gpt-6.2"),
                lambda b: b | {"tools": []},
                asked=asked("openai", model="gpt-6.2"),
            ),
            once(
                "openai",
                response(reasoning(), call(), model="gpt-6.2"),
                system("Other."),
                asked=asked("openai", model="gpt-6.2"),
            ),
        ),
        "O14": (
            turns(
                "openai",
                response(reasoning(), said()),
                response(compacted(), reasoning(), said()),
                change=lambda b: system("Other.")(from_the_compaction_on(b)),
                ends="More.",
            ),
            once("openai", response(reasoning(), call()), system("Other.")),
        ),
        "O15": (
            turns(
                "openai",
                response(reasoning(), said()),
                response(reasoning(), said()),
                change=no_ids_and(without("reasoning")),
            ),
            once("openai", response(reasoning(), call()), no_ids_and(without("reasoning"))),
        ),
        "O16": (
            turns(
                "openai",
                response(reasoning(), said()),
                response(compacted(), said()),
                change=from_the_compaction_on,
            ),
            turns("openai", response(reasoning(), said()), response(compacted(), said())),
        ),
        "O17": (
            alone(
                "openai",
                asked("openai"),
                response() | {"object": "response.compaction"},
                operation="compact",
            ),
            alone(
                "openai",
                asked("openai"),
                response(compacted()) | {"object": "response.compaction"},
                operation="compact",
            ),
        ),
        "O18": (
            turns(
                "openai",
                response(compacted(), said()),
                response(compacted(), said()),
                change=only_the_older,
            ),
            turns("openai", response(compacted(), said()), response(compacted(), said())),
        ),
        "O20": (
            once(
                "openai",
                response(compacted(), said()),
                sets("encrypted_content", MINT.seal(), "compaction"),
            ),
            once("openai", response(compacted(), said())),
        ),
        "O21": (
            once(
                "openai",
                response(reasoning(), said(phase="commentary"), call()),
                sets("phase", ..., "message"),
            ),
            once("openai", response(reasoning(), said(), call())),
        ),
        "O22": (
            once("openai", response(reasoning(), call()), edit(swap_first_two)),
            once("openai", response(reasoning(), call())),
        ),
        "O23": (
            once("openai", response(reasoning(), call()), sets("step", 1, "reasoning")),
            once("openai", response(reasoning(), call()), sets("status", None, "reasoning")),
        ),
        "O27": (
            once("openai", STORED, held, transport="websocket"),
            once("openai", STORED, held),
        ),
        "O29": (
            once(
                "openai",
                response(
                    {
                        "type": "agent_message",
                        "id": MINT.name("am"),
                        "content": [
                            {"type": "encrypted_content", "encrypted_content": MINT.seal()}
                        ],
                    },
                    said(),
                ),
                edit(lambda b: b["input"][1]["content"][0].update(encrypted_content=MINT.seal())),
            ),
            once(
                "openai",
                response(
                    {
                        "type": "agent_message",
                        "id": MINT.name("am"),
                        "content": [
                            {"type": "encrypted_content", "encrypted_content": MINT.seal()}
                        ],
                    },
                    said(),
                ),
            ),
        ),
        "X4": (
            once("openai", response(reasoning(), call()), repeat("reasoning")),
            once("openai", response(reasoning(), call())),
        ),
        "X7": (
            turns(
                "openai",
                response(reasoning(), said()),
                response(reasoning(), said()),
                change=drop_front,
            ),
            turns("openai", response(reasoning(), said()), response(reasoning(), said())),
        ),
    },
    "gemini": {
        "G1": (
            once("gemini", candidate(part()), unsigned),
            once("gemini", candidate(part("text")), unsigned),
        ),
        "G2": (
            once("gemini", candidate(part(), part(signed=False)), edit(doubled_signature)),
            once("gemini", candidate(part(), part(signed=False))),
        ),
        "G3": (
            turns("gemini", candidate(part("text")), candidate(part("text")), change=unsigned),
            once("gemini", candidate(part("text"))),
        ),
        "G4": (
            once("gemini", candidate(part("text")), unsigned),
            once("gemini", candidate(part("text"))),
        ),
        "G5": (
            once(
                "gemini",
                candidate(part("text", signed=False), part("empty")),
                edit(lambda b: parts_of(b).pop()),
            ),
            once("gemini", candidate(part("text", signed=False), part("empty"))),
        ),
        "G6": (
            once("gemini", candidate(part(), part(signed=False)), edit(moved_signature)),
            once("gemini", candidate(part(), part(signed=False))),
        ),
        "G7": (
            once("gemini", candidate(part("image")), unsigned),
            once("gemini", candidate(part("image"))),
        ),
        "G8": (
            once(
                "gemini",
                candidate(part(), model="gemini-2.5-pro"),
                unsigned,
                model="gemini-2.5-pro",
                minted={"model": "gemini-2.5-pro"},
            ),
            once("gemini", candidate(part()), unsigned),
        ),
        "G9": (
            once(
                "gemini",
                candidate(part()),
                edit(lambda b: parts_of(b)[0].update(thoughtSignature=DUMMY)),
            ),
            once("gemini", candidate(part())),
        ),
        "G10": (
            once("gemini", candidate(part()), provider="vertex", host="aiplatform.googleapis.com"),
            once("gemini", candidate(part())),
        ),
        "G11": (
            once(
                "gemini",
                candidate(part()),
                edit(lambda b: parts_of(b)[0].update(thoughtSignature=MINT.seal())),
            ),
            once("gemini", candidate(part())),
        ),
        "G12": (
            once(
                "gemini",
                candidate(part("text", signed=False), part("only")),
                edit(lambda b: parts_of(b).pop()),
                provider="vertex",
                minted={"provider": "vertex"},
            ),
            once(
                "gemini",
                candidate(part("text", signed=False), part("only")),
                edit(lambda b: parts_of(b).pop()),
            ),
        ),
        "G14": (
            once("gemini", candidate(part(), part(signed=False)), edit(in_steps)),
            once("gemini", candidate(part(), part(signed=False))),
        ),
        "X7": (
            turns("gemini", candidate(part("text")), candidate(part("text")), change=drop_front),
            turns("gemini", candidate(part("text")), candidate(part("text"))),
        ),
    },
}


def tables() -> Iterator[tuple[str, Rule]]:
    """(table name, row) of every rule."""
    for rule in OWN_RULES:
        yield "otel_sealed", rule
    for name, dialect in BY_NAME.items():
        for rule in dialect.rules:
            yield name, rule


CASES["interactions"] = {
    "G17": (lambda: interactions(previous="i_1"), lambda: interactions(previous=None)),
    "X7": (lambda: trimmed_steps(4), lambda: trimmed_steps(0)),
}

CASES["chat"] = CHAT_CASES
# the rows of Claude on another wire: the same cases, said on it
_CLAUDE = {rule.id for rule in BY_NAME["bedrock"].rules}
CASES["bedrock"] = {
    id_: (on_converse(fires), on_converse(silent))
    for id_, (fires, silent) in CASES["anthropic"].items()
    if id_ in _CLAUDE
}

DECIDABLE = sorted({(name, rule.id) for name, rule in tables() if not rule.undecidable})
LISTED = sorted((name, id_) for name, cases in CASES.items() for id_ in cases)


def fired(case: Case) -> set[str]:
    """The ids of all rules that gave a verdict in a case."""
    return {finding.rule for report in case() for finding in report.findings}


def test_every_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    """An id of the tables without cases is an untested rule."""
    assert sorted(LISTED) == DECIDABLE


@pytest.mark.parametrize(("table", "id_"), LISTED, ids=lambda v: v)
def test_a_rule_fires_where_it_should(table: str, id_: str) -> None:
    """The case of a rule is judged by it."""
    assert id_ in fired(CASES[table][id_][0])


@pytest.mark.parametrize(("table", "id_"), LISTED, ids=lambda v: v)
def test_a_rule_is_silent_where_it_should_be(table: str, id_: str) -> None:
    """The case beside it is not."""
    assert id_ not in fired(CASES[table][id_][1])


# --------------------------------------------------------------------------------- the tables


def test_every_row_has_a_source_and_a_date() -> None:
    """Each row says where it comes from and when that was last checked."""
    bad = [
        (name, rule.id)
        for name, rule in tables()
        if not rule.source or not rule.says or date.fromisoformat(rule.checked) > date(2030, 1, 1)
    ]
    assert bad == []


def test_ids_are_well_formed() -> None:
    """Ids are a letter of the table, or X, and a number."""
    letters = {"otel_sealed": "X", "anthropic": "AX", "openai": "OX", "gemini": "GX"}
    letters |= {"interactions": "GX", "chat": "GRX", "bedrock": "AX"}
    bad = [
        rule.id for name, rule in tables() if not re.fullmatch(rf"[{letters[name]}]\d+", rule.id)
    ]
    assert bad == []


def test_an_id_means_one_thing() -> None:
    """An id is decided or undecidable; an own id means the same in every table."""
    decided = {rule.id for _, rule in tables() if not rule.undecidable}
    undecided = [rule.id for _, rule in tables() if rule.undecidable]
    assert decided & set(undecided) == set()
    assert len(undecided) == len(set(undecided))
    says: dict[str, set[str]] = {}
    for _, rule in tables():
        if rule.id == "X7":
            says.setdefault(rule.id, set()).add(rule.says)
    assert {id_: len(texts) for id_, texts in says.items()} == {"X7": 1}


def test_the_contract_is_whole() -> None:
    """A1–A33, O1–O32 and G1–G20 stand in the tables, decided or with a reason."""
    ids = {rule.id for _, rule in tables()}
    wanted = {f"A{n}" for n in range(1, 34)}
    wanted |= {f"O{n}" for n in range(1, 33)} | {f"G{n}" for n in range(1, 21)}
    assert wanted - ids == set()


def test_an_undecidable_rule_never_fires() -> None:
    """It has no fates, and says why."""
    rows = [rule for _, rule in tables() if rule.undecidable]
    assert [rule.id for rule in rows if rule.fates or not rule.undecidable] == []


def test_no_row_stands_behind_one_that_always_fits_first() -> None:
    """Each row is the first that fits for some artifact, fate and set of traits."""
    hidden = [
        (dialect.name, rule.id, rule.says)
        for dialect in BY_NAME.values()
        for rule in dialect.rules
        if not rule.undecidable and not _reachable(rule, dialect)
    ]
    assert hidden == []


def _reachable(rule: Rule, dialect: Dialect) -> bool:
    artifacts = rule.artifacts or tuple(
        f.artifact for c in dialect.carriers.values() for f in c.fields
    )
    excused = frozenset(trait for other in dialect.rules for trait in other.unless) - rule.unless
    for artifact in artifacts:
        for fate in rule.fates:
            for traits in (rule.when, rule.when | excused):
                finding = Finding(artifact, fate, traits=traits)
                if next((r for r in dialect.rules if _fits(r, finding)), None) is rule:
                    return True
    return False


def _fits(rule: Rule, finding: Finding) -> bool:
    return (
        finding.fate in rule.fates
        and (not rule.artifacts or finding.artifact.startswith(rule.artifacts))
        and rule.when <= finding.traits
        and not rule.unless & finding.traits
    )


def test_a_disputed_or_unconfirmed_row_never_says_breaks() -> None:
    """What sources disagree on is allowed, or degrades and is marked."""
    bad = [(n, r.id) for n, r in tables() if r.disputed and r.verdict.value == "breaks"]
    assert bad == []


def test_every_trait_of_the_tables_is_one_that_something_computes() -> None:
    """A row that asks for a trait nobody sets can never fire."""
    asked_for = {t for _, rule in tables() for t in rule.when | rule.unless}
    assert asked_for <= set(Trait)
    assert Fate.INTACT in {f for _, rule in tables() for f in rule.fates}


# ------------------------------------------------------------------------------------- the book


def test_the_book_holds_every_row() -> None:
    """The page shows each rule with its source, the undecidable ones with the reason."""
    page = generate.rules_page()
    assert rulebook.version() in page
    sources = [(rule.id, generate.linked(rule.source, 1)) for _, rule in tables()]
    assert [i for i, source in sources if source.replace("|", "\\|") not in page] == []
    assert page.count("not decided from history: ") == sum(
        1 for _, rule in tables() if rule.undecidable
    )


def test_the_version_names_the_newest_check() -> None:
    """A date and a short digest of all rows."""
    newest = max(rule.checked for _, rule in tables())
    assert re.fullmatch(rf"{newest}-[0-9a-f]{{8}}", rulebook.version())


def test_rules_that_nobody_checked_for_long_are_named() -> None:
    """More than 120 days."""
    oldest = min(date.fromisoformat(rule.checked) for _, rule in tables())
    assert rulebook.stale(oldest + timedelta(days=120)) == ()
    assert rulebook.stale(oldest + timedelta(days=121)) != ()
