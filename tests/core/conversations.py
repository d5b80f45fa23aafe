"""Generated conversations: what three providers would have minted, and a host that gives it back.

Everything repeats by seed. A conversation is a list of exchanges without a session id: each request
holds the history as a faithful host (or, through `host`, an unfaithful one) would send it.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Finding, Report
from otel_sealed.tracker import Tracker
from tests.core.chat_wire import (
    CHAT_MODELS,
    CHAT_SCRIPTS,
    CHATS,
    chat_base,
    chat_events,
    chat_reply,
    chat_results,
)

Body = dict[str, Any]
Change = Callable[[Body], Body]

KEY = b"k" * 32
DIALECTS = ("anthropic", "openai", "gemini")
MATRIX = (*DIALECTS, *CHATS)
APIS = {
    "anthropic": Api.MESSAGES,
    "openai": Api.RESPONSES,
    "gemini": Api.GENERATE_CONTENT,
    **dict.fromkeys(CHATS, Api.CHAT_COMPLETIONS),
}
VENDORS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "gemini": "google",
    "chat": "google",
    "openrouter": "openrouter",
}
HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
    "chat": "generativelanguage.googleapis.com",
    "openrouter": "openrouter.ai",
}
MODELS = {
    "anthropic": "claude-opus-5",
    "openai": "gpt-5.6-sol",
    "gemini": "gemini-3-pro-preview",
    **CHAT_MODELS,
}
KINDS = ("standard", "compaction")
SEALS = {
    "anthropic": "anthropic.thinking.signature",
    "openai": "openai.reasoning.encrypted_content",
    "gemini": "gemini.part.thought_signature",
    "chat": "gemini.tool_call.thought_signature",
    "openrouter": "openrouter.reasoning_details.signature",
}


def same(body: Body) -> Body:
    """What a faithful host does to a body."""
    return body


class Mint:
    """Seals, ids and texts that repeat by seed and meet those of no other seed."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random()
        self.begin(seed)

    def begin(self, seed: object) -> None:
        """Begin again with a seed."""
        self._random.seed(f"mint {seed}")

    def seal(self, low: int = 80, high: int = 400) -> str:
        """A base64 blob; not a multiple of three, so that it is padded."""
        size = self._random.randrange(low, high) * 3 + 1
        return base64.b64encode(self._random.randbytes(size)).decode()

    def name(self, prefix: str) -> str:
        return f"{prefix}_{self._random.getrandbits(80):020x}"

    def text(self, topic: str) -> str:
        words = [self._random.choice(_WORDS) for _ in range(14)]
        return f"{topic} {self._random.getrandbits(32):08x}: {' '.join(words)}."


_WORDS = (
    "weigh",
    "the",
    "river",
    "against",
    "a",
    "plan",
    "then",
    "look",
    "up",
    "its",
    "source",
    "before",
    "any",
    "answer",
)


# ------------------------------------------------------------------------------- the three scripts


def responses(dialect: str, seed: object = 0, kind: str = "standard") -> list[Body]:
    """The responses of one conversation, as whole bodies."""
    mint = Mint(f"{dialect} {seed} {kind}")
    if kind == "compaction":
        return _COMPACTION[dialect](mint)
    return _STANDARD[dialect](mint)


def _message(mint: Mint, content: list[Body], stop: str) -> Body:
    return {
        "id": mint.name("msg"),
        "type": "message",
        "role": "assistant",
        "model": MODELS["anthropic"],
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "output_tokens": 30},
    }


def _thinking(mint: Mint, text: str | None = None) -> Body:
    thought = mint.text("Thought") if text is None else text
    return {"type": "thinking", "thinking": thought, "signature": mint.seal()}


def _tool_use(mint: Mint, name: str = "look_up") -> Body:
    arguments = {"query": mint.text("query")}
    return {"type": "tool_use", "id": mint.name("toolu"), "name": name, "input": arguments}


def _anthropic(mint: Mint) -> list[Body]:
    return [
        _message(
            mint,
            [_thinking(mint), {"type": "text", "text": mint.text("First")}, _tool_use(mint)],
            "tool_use",
        ),
        _message(
            mint,
            [
                {"type": "redacted_thinking", "data": mint.seal()},
                _thinking(mint),
                _tool_use(mint),
                _tool_use(mint, "count"),
            ],
            "tool_use",
        ),
        _message(
            mint,
            [_thinking(mint, ""), {"type": "text", "text": mint.text("Answer")}],
            "end_turn",
        ),
        _message(mint, [_thinking(mint), _thinking(mint), _tool_use(mint)], "tool_use"),
        _message(mint, [_thinking(mint), {"type": "text", "text": mint.text("Done")}], "end_turn"),
        _message(mint, [_thinking(mint), _tool_use(mint)], "tool_use"),
    ]


def _anthropic_compaction(mint: Mint) -> list[Body]:
    block = {
        "type": "compaction",
        "content": mint.text("Summary"),
        "encrypted_content": mint.seal(),
    }
    first, second, *_ = _anthropic(mint)
    answer = {"type": "text", "text": mint.text("After")}
    return [
        first,
        second,
        _message(mint, [block, _thinking(mint), answer], "end_turn"),
        _message(mint, [_thinking(mint), _tool_use(mint)], "tool_use"),
        _message(mint, [_thinking(mint), {"type": "text", "text": mint.text("Done")}], "end_turn"),
    ]


def _response(mint: Mint, output: list[Body]) -> Body:
    return {
        "id": mint.name("resp"),
        "object": "response",
        "status": "completed",
        "model": MODELS["openai"],
        "error": None,
        "incomplete_details": None,
        "output": output,
        "store": False,
        "usage": {
            "input_tokens": 40,
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 20},
        },
    }


def _reasoning(mint: Mint, *, summary: bool = True) -> Body:
    parts = [{"type": "summary_text", "text": mint.text("Summary")}] if summary else []
    return {
        "id": mint.name("rs"),
        "type": "reasoning",
        "summary": parts,
        "encrypted_content": mint.seal(),
    }


def _call(mint: Mint, name: str = "look_up") -> Body:
    return {
        "id": mint.name("fc"),
        "type": "function_call",
        "status": "completed",
        "call_id": mint.name("call"),
        "name": name,
        "arguments": json.dumps({"query": mint.text("query")}),
    }


def _said(mint: Mint, phase: str = "final_answer") -> Body:
    return {
        "id": mint.name("msg"),
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "phase": phase,
        "content": [{"type": "output_text", "text": mint.text("Answer"), "annotations": []}],
    }


def _openai(mint: Mint) -> list[Body]:
    return [
        _response(mint, [_reasoning(mint), _call(mint)]),
        _response(mint, [_reasoning(mint, summary=False), _call(mint), _call(mint, "count")]),
        _response(mint, [_reasoning(mint), _said(mint)]),
        _response(
            mint,
            [_reasoning(mint), _said(mint, "commentary"), _reasoning(mint), _call(mint)],
        ),
        _response(mint, [_reasoning(mint), _said(mint)]),
        _response(mint, [_reasoning(mint), _call(mint)]),
    ]


def _openai_compaction(mint: Mint) -> list[Body]:
    blob = {"id": mint.name("cmp"), "type": "compaction", "encrypted_content": mint.seal()}
    first, second, *_ = _openai(mint)
    return [
        first,
        second,
        _response(mint, [blob, _reasoning(mint), _said(mint)]),
        _response(mint, [_reasoning(mint), _call(mint)]),
        _response(mint, [_reasoning(mint), _said(mint)]),
    ]


def _candidate(mint: Mint, parts: list[Body]) -> Body:
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": 40,
            "candidatesTokenCount": 10,
            "thoughtsTokenCount": 20,
        },
        "modelVersion": MODELS["gemini"],
        "responseId": mint.name("r"),
    }


def _function_call(mint: Mint, *, signed: bool = True, name: str = "look_up") -> Body:
    call = {"id": mint.name("call"), "name": name, "args": {"query": mint.text("query")}}
    return {"functionCall": call} | ({"thoughtSignature": mint.seal()} if signed else {})


def _gemini(mint: Mint) -> list[Body]:
    return [
        _candidate(mint, [{"text": mint.text("Thought"), "thought": True}, _function_call(mint)]),
        _candidate(mint, [_function_call(mint), _function_call(mint, signed=False, name="count")]),
        _candidate(
            mint,
            [{"text": mint.text("Answer")}, {"text": "", "thoughtSignature": mint.seal()}],
        ),
        _candidate(mint, [{"text": mint.text("Thought"), "thought": True}, _function_call(mint)]),
        _candidate(mint, [{"text": mint.text("Done"), "thoughtSignature": mint.seal()}]),
        _candidate(mint, [_function_call(mint)]),
    ]


_STANDARD: dict[str, Callable[[Mint], list[Body]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "gemini": _gemini,
    **CHAT_SCRIPTS,
}
_COMPACTION = {"anthropic": _anthropic_compaction, "openai": _openai_compaction}


# ------------------------------------------------------------------------------------- the hosts


def base(dialect: str) -> Body:
    """A request without a history."""
    if dialect in CHATS:
        return chat_base(dialect)
    if dialect == "anthropic":
        return {
            "model": MODELS[dialect],
            "max_tokens": 4096,
            "system": "You are a clerk.",
            "thinking": {"type": "adaptive"},
            "tools": [{"name": "look_up", "input_schema": {"type": "object"}}],
            "messages": [],
        }
    if dialect == "openai":
        return {
            "model": MODELS[dialect],
            "instructions": "You are a clerk.",
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "tools": [{"type": "function", "name": "look_up", "parameters": {}}],
            "input": [],
        }
    return {
        "systemInstruction": {"parts": [{"text": "You are a clerk."}]},
        "tools": [{"functionDeclarations": [{"name": "look_up"}]}],
        "contents": [],
    }


def history(body: Body) -> list[Any]:
    """The list of a request that grows."""
    for key in ("messages", "input", "contents"):
        if key in body:
            found: list[Any] = body[key]
            return found
    raise KeyError("no history")


def ask(dialect: str, text: str) -> list[Body]:
    """What a user's own words add to the history."""
    if dialect == "gemini":
        return [{"role": "user", "parts": [{"text": text}]}]
    if dialect == "openai":
        return [{"role": "user", "content": [{"type": "input_text", "text": text}]}]
    if dialect in CHATS:
        return [{"role": "user", "content": text}]
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def reply(dialect: str, response: Body) -> list[Body]:
    """What a response adds to the history."""
    response = copy.deepcopy(response)
    if dialect == "gemini":
        return [response["candidates"][0]["content"]]
    if dialect in CHATS:
        return chat_reply(response)
    if dialect == "openai":
        return list(response["output"])
    return [{"role": "assistant", "content": response["content"]}]


def results(dialect: str, response: Body) -> list[Body]:
    """What the results of its calls add to the history; nothing where it called nothing."""
    if dialect in CHATS:
        return chat_results(response)
    if dialect == "gemini":
        calls = [p["functionCall"] for p in _parts(response) if "functionCall" in p]
        parts = [
            {
                "functionResponse": {
                    "id": c["id"],
                    "name": c["name"],
                    "response": {"output": f"result of {c['id']}"},
                }
            }
            for c in calls
        ]
        return [{"role": "user", "parts": parts}] if parts else []
    if dialect == "openai":
        return [
            {
                "type": "function_call_output",
                "call_id": item["call_id"],
                "output": f"result of {item['call_id']}",
            }
            for item in response["output"]
            if item["type"] == "function_call"
        ]
    uses = [b for b in response["content"] if b["type"] == "tool_use"]
    content = [
        {"type": "tool_result", "tool_use_id": b["id"], "content": f"result of {b['id']}"}
        for b in uses
    ]
    return [{"role": "user", "content": content}] if content else []


def _parts(response: Body) -> list[Body]:
    parts: list[Body] = response["candidates"][0]["content"]["parts"]
    return parts


def step(dialect: str, response: Body, question: str) -> list[Body]:
    """A response, and what a host sends after it: tool results, or the user's next question."""
    return reply(dialect, response) + (results(dialect, response) or ask(dialect, question))


def request(dialect: str, answers: Iterable[Body], seed: object = 0) -> Body:
    """The faithful request that follows `answers`."""
    body = base(dialect)
    told = history(body)
    told.extend(ask(dialect, f"Question 0 of {seed}."))
    for number, answer in enumerate(answers, 1):
        told.extend(step(dialect, answer, f"Question {number} of {seed}."))
    return body


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a response reaches the client: whole, or as stream events cut behind `cut` of them."""

    stream: bool = False
    cut: int | None = None


WHOLE = Delivery()
STREAM = Delivery(stream=True)


def exchange(
    dialect: str,
    asked: Body | None,
    answer: Body | None,
    delivery: Delivery = WHOLE,
    **around: Any,
) -> Exchange:
    """One exchange of a dialect; `around` overrides what surrounds the bodies."""
    known: dict[str, Any] = {
        "api": APIS[dialect],
        "provider": VENDORS[dialect],
        "host": HOSTS[dialect],
        "account": "account-one",
        "model": MODELS[dialect],
        "request": asked,
        "status": 200,
    }
    if delivery.stream and answer is not None:
        sent = events(dialect, answer)
        known["events"] = sent[: delivery.cut]
        known["complete"] = delivery.cut is None or delivery.cut >= len(sent)
    else:
        known["response"] = answer
    return Exchange(**(known | around))


def conversation(
    dialect: str,
    seed: object = 0,
    *,
    kind: str = "standard",
    host: Change = same,
    source: Change = same,
    delivery: Delivery = WHOLE,
    around: Mapping[str, Any] | None = None,
    turns: int = 6,
) -> list[Exchange]:
    """The exchanges of one conversation.

    `host`: what the host does to every request; `source`: what befell every response before the
    host saw it; `around`: what differs around the calls from the second on.
    """
    answers = [source(copy.deepcopy(r)) for r in responses(dialect, seed, kind)[:turns]]
    found = []
    for number, answer in enumerate(answers):
        asked = host(request(dialect, answers[:number], seed))
        changed = dict(around or {}) if number else {}
        found.append(exchange(dialect, asked, answer, delivery, **changed))
    return found


def replay(
    dialect: str,
    answer: Body,
    change: Change = same,
    *,
    asked: Body | None = None,
    tracker: Tracker | None = None,
    minted: Mapping[str, Any] | None = None,
    **around: Any,
) -> Report:
    """The report of the second of two calls: `answer` comes in, `change`d history goes out.

    `asked`: the first request; `minted`: what surrounded the first call; `around`: the second.
    """
    tracker = tracker or Tracker(KEY)
    first = request(dialect, []) if asked is None else asked
    tracker.observe(exchange(dialect, first, answer, **dict(minted or {})))
    again = copy.deepcopy(first)
    history(again).extend(step(dialect, answer, "And then?"))
    return tracker.observe(exchange(dialect, change(again), None, status=None, **around))


def row_of(report: Report, artifact: str) -> tuple[str, str, str]:
    """(fate, verdict, rule) of the only row of an artifact."""
    found = [f for f in report.findings if f.artifact == artifact]
    assert len(found) == 1, [(f.artifact, f.fate.value) for f in report.findings]
    return found[0].fate.value, found[0].verdict.value, found[0].rule


def observe(exchanges: Iterable[Exchange], tracker: Tracker | None = None) -> list[Report]:
    """The reports of exchanges observed in order."""
    tracker = tracker or Tracker(KEY)
    return [tracker.observe(one) for one in exchanges]


def rows(reports: Iterable[Report]) -> list[Finding]:
    """All findings of some reports."""
    return [finding for report in reports for finding in report.findings]


def seen(reports: Iterable[Report]) -> set[tuple[str, str]]:
    """(fate, verdict) of all rows, those included that an earlier call settled."""
    found = set()
    for report in reports:
        found |= {(f.fate.value, f.verdict.value) for f in report.findings}
        found |= {(check.fate.value, check.verdict.value) for check in report.settled}
    return found


def pairs(reports: Iterable[Report]) -> set[tuple[str, str]]:
    """(artifact, fate) of all findings."""
    return {(f.artifact, f.fate.value) for f in rows(reports)}


def violations(reports: Iterable[Report]) -> list[tuple[str, str, str]]:
    """(artifact, fate, rule) of what degrades or breaks."""
    return [(f.artifact, f.fate.value, f.rule) for f in rows(reports) if f.verdict.violates]


# -------------------------------------------------------------------------------------- streams


def events(dialect: str, response: Body) -> list[Body]:
    """The stream events that bring a response."""
    return _EVENTS[dialect](copy.deepcopy(response))


def _pieces(text: str, count: int = 3) -> list[str]:
    size = -(-len(text) // count) or 1
    return [text[at : at + size] for at in range(0, len(text), size)]


def anthropic_events(message: Body) -> list[Body]:
    """SSE payloads of the Messages API."""
    content = message["content"]
    opening = message | {"content": [], "stop_reason": None}
    sent: list[Body] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(content):
        sent.append(
            {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        )
        sent.extend(
            {"type": "content_block_delta", "index": index, "delta": delta}
            for delta in _deltas(block)
        )
        sent.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 30}})
    sent.append({"type": "message_stop"})
    return sent


def _opened(block: Body) -> Body:
    opened: dict[str, Body] = {
        "thinking": {"thinking": "", "signature": ""},
        "text": {"text": ""},
        "tool_use": {"input": {}},
        "compaction": {"content": None},
    }
    empty = opened.get(block["type"], {})
    lost = {"encrypted_content"} if block["type"] == "compaction" else set()
    return {k: v for k, v in (block | empty).items() if k not in lost}


def _deltas(block: Body) -> list[Body]:
    kind = block["type"]
    if kind == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": p} for p in _pieces(block["thinking"])]
        return [*thoughts, {"type": "signature_delta", "signature": block["signature"]}]
    if kind == "text":
        return [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    if kind == "tool_use":
        text = json.dumps(block["input"])
        return [{"type": "input_json_delta", "partial_json": p} for p in ["", *_pieces(text)]]
    if kind == "compaction":
        keys = ("content", "encrypted_content")
        return [{"type": "compaction_delta", **{k: block[k] for k in keys if k in block}}]
    return []


def openai_events(response: Body) -> list[Body]:
    """SSE payloads of the Responses API; `added` holds an incomplete blob."""
    opening = response | {"output": [], "status": "in_progress"}
    sent: list[Body] = [{"type": "response.created", "response": opening}]
    for index, item in enumerate(response["output"]):
        begun = copy.deepcopy(item)
        if begun.get("encrypted_content"):
            begun["encrypted_content"] = begun["encrypted_content"][:40]
        sent.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        sent.extend(
            {
                "type": "response.reasoning_summary_text.delta",
                "item_id": item.get("id", ""),
                "delta": p,
            }
            for part in item.get("summary", ())
            for p in _pieces(part["text"], 2)
        )
        sent.append({"type": "response.output_item.done", "output_index": index, "item": item})
    sent.append({"type": "response.completed", "response": response})
    return sent


def gemini_events(response: Body) -> list[Body]:
    """Chunks of streamGenerateContent, texts in two pieces."""
    sent: list[Body] = []
    for part in _parts(response):
        text = part.get("text")
        if text and part.keys() <= {"text", "thought"}:
            sent.extend(_chunk(response, [part | {"text": piece}]) for piece in _pieces(text, 2))
        else:
            sent.append(_chunk(response, [part]))
    sent[-1]["candidates"][0]["finishReason"] = response["candidates"][0]["finishReason"]
    return sent


def _chunk(response: Body, parts: list[Body]) -> Body:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    return response | {"candidates": [candidate]}


_EVENTS: dict[str, Callable[[Body], list[Body]]] = {
    "anthropic": anthropic_events,
    "openai": openai_events,
    "gemini": gemini_events,
    **dict.fromkeys(CHATS, chat_events),
}


def server_sent(payloads: Iterable[Body], *, named: bool = True) -> bytes:
    """The bytes of an SSE stream that brings `payloads`."""
    lines = []
    for payload in payloads:
        name = f"event: {payload['type']}\n" if named and "type" in payload else ""
        lines.append(f"{name}data: {json.dumps(payload)}\n\n")
    return "".join(lines).encode()
