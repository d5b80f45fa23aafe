"""Chat Completions as two hosts speak it: Google's compatible endpoint (`chat`) and OpenRouter."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Protocol

Body = dict[str, Any]

CHATS = ("chat", "openrouter")
CHAT_MODELS = {"chat": "gemini-3-pro-preview", "openrouter": "anthropic/claude-opus-5"}


class Mints(Protocol):
    """What makes seals, ids and texts."""

    def seal(self) -> str: ...
    def name(self, prefix: str) -> str: ...
    def text(self, topic: str) -> str: ...


def completion(mint: Mints, model: str, message: Body) -> Body:
    """A whole reply with one choice."""
    stop = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": mint.name("chatcmpl"),
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": stop}
        ],
        "usage": {
            "prompt_tokens": 40,
            "completion_tokens": 30,
            "completion_tokens_details": {"reasoning_tokens": 20},
            "prompt_tokens_details": {"cached_tokens": 10},
        },
    }


def tool_call(mint: Mints, name: str = "look_up", *, signed: bool = False) -> Body:
    """A tool call, with Google's signature on it or not."""
    arguments = json.dumps({"query": mint.text("query")})
    call: Body = {
        "id": mint.name("call"),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return call | ({"extra_content": signature(mint)} if signed else {})


def signature(mint: Mints) -> Body:
    """What Google adds beside a call or a text."""
    return {"google": {"thought_signature": mint.seal()}}


def detail(mint: Mints, index: int = 0, text: str | None = None) -> Body:
    """A signed text of a Claude behind OpenRouter."""
    return {
        "type": "reasoning.text",
        "text": mint.text("Thought") if text is None else text,
        "signature": mint.seal(),
        "format": "anthropic-claude-v1",
        "index": index,
    }


def encrypted(mint: Mints, index: int = 0, form: str = "anthropic-claude-v1") -> Body:
    """Reasoning that came encrypted."""
    return {"type": "reasoning.encrypted", "data": mint.seal(), "format": form, "index": index}


def google(mint: Mints) -> list[Body]:
    """The replies of a conversation on Google's endpoint."""
    model = CHAT_MODELS["chat"]

    def calls(*made: Body) -> Body:
        return completion(mint, model, {"content": None, "tool_calls": list(made)})

    def says(topic: str) -> Body:
        message = {"content": mint.text(topic), "extra_content": signature(mint)}
        return completion(mint, model, message)

    return [
        calls(tool_call(mint, signed=True)),
        calls(tool_call(mint, signed=True), tool_call(mint, "count")),
        says("Answer"),
        calls(tool_call(mint, signed=True)),
        says("Done"),
        calls(tool_call(mint, signed=True)),
    ]


def openrouter(mint: Mints) -> list[Body]:
    """The replies of a conversation with Claude behind OpenRouter."""
    model = CHAT_MODELS["openrouter"]

    def said(details: list[Body], content: str | None, *calls: Body) -> Body:
        message: Body = {"content": content, "reasoning_details": details}
        return completion(mint, model, message | ({"tool_calls": list(calls)} if calls else {}))

    return [
        said([detail(mint)], mint.text("First"), tool_call(mint)),
        said(
            [encrypted(mint), detail(mint, 1)],
            None,
            tool_call(mint),
            tool_call(mint, "count"),
        ),
        said([detail(mint, text="")], mint.text("Answer")),
        said([detail(mint), detail(mint, 1)], None, tool_call(mint)),
        said([detail(mint)], mint.text("Done")),
        said([detail(mint)], None, tool_call(mint)),
    ]


def chat_base(dialect: str) -> Body:
    """A request without a history but for what the system is told."""
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {}}}
    return {
        "model": CHAT_MODELS[dialect],
        "tools": [tool],
        "messages": [{"role": "system", "content": "You are a clerk."}],
    }


def chat_reply(answer: Body) -> list[Body]:
    """The message of the only choice."""
    return [copy.deepcopy(answer["choices"][0]["message"])]


def chat_results(answer: Body) -> list[Body]:
    """A result for each tool call."""
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": f"result of {call['id']}"}
        for call in answer["choices"][0]["message"].get("tool_calls") or ()
    ]


def chat_events(answer: Body) -> list[Body]:
    """The chunks that bring a reply: texts in pieces, then signatures, then calls."""
    message = answer["choices"][0]["message"]
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    for one in message.get("reasoning_details") or ():
        deltas += [{"reasoning_details": [piece]} for piece in _detail_pieces(one)]
    deltas += [{"content": piece} for piece in _halves(message.get("content") or "")]
    for index, call in enumerate(message.get("tool_calls") or ()):
        deltas += [{"tool_calls": [{"index": index, **piece}]} for piece in _call_pieces(call)]
    if message.get("extra_content"):
        deltas.append({"content": "", "extra_content": message["extra_content"]})
    head = {k: v for k, v in answer.items() if k not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    sent = [_chunk(head, delta, None) for delta in deltas]
    sent.append(_chunk(head, {}, answer["choices"][0]["finish_reason"]))
    return [*sent, head | {"choices": [], "usage": answer["usage"]}]


def _chunk(head: Body, delta: Body, finish: str | None) -> Body:
    return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _detail_pieces(one: Body) -> list[Body]:
    if one["type"] != "reasoning.text":
        return [one]
    common = {k: one[k] for k in ("type", "format", "index")}
    texts = [common | {"text": piece} for piece in _halves(one["text"])]
    return [*texts, common | {"text": "", "signature": one["signature"]}]


def _call_pieces(call: Body) -> list[Body]:
    function = call["function"]
    first, *rest = _halves(function["arguments"])
    return [
        call | {"function": function | {"arguments": first}},
        *({"function": {"arguments": piece}} for piece in rest),
    ]


def _halves(text: str) -> list[str]:
    half = -(-len(text) // 2) or 1
    return [text[at : at + half] for at in range(0, len(text), half)]


CHAT_SCRIPTS: dict[str, Callable[[Mints], list[Body]]] = {"chat": google, "openrouter": openrouter}
