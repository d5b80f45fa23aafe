"""Chat Completions: what gateways and Google's OpenAI-compatible endpoint put sealed values into.

OpenAI itself seals nothing on this wire. Others carry their state beside the fields it has:
OpenRouter in `reasoning_details`, Google in `extra_content` of a message or of a tool call, LiteLLM
in `thinking_blocks`, in the ids of tool calls and in `provider_specific_fields`, Portkey in
`function.thought_signature` of a call and in `content_blocks`. Sources:
docs/contract/chat.md, docs/sdk-surface.md#other-carriers, mastra#23433, inspect_ai#3986,
openrouter-examples#67, pi PR 1406, pi#9534, ai-sdk-provider#339, litellm 1.110 (its
vertex_ai/gemini/transformation.py). Checked 2026-11-30.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from otel_sealed.contract import (
    Api,
    Dialect,
    Exchange,
    Place,
    RawAnswer,
    RawMessage,
)
from otel_sealed.model import Facts, Kind, Speaker, Trait, Usage
from otel_sealed.providers.chat.rules import IMPOSSIBLE, RULES
from otel_sealed.providers.chat.sealed import BESIDE, BY_TYPE, CALL_SEALS, GOOGLE, PATHS
from otel_sealed.providers.chat.stream import fold
from otel_sealed.steps import spend
from otel_sealed.wire.parse import as_count, as_text, first_text, lookup

_KNOWN_MODEL = re.compile(r"(^|[./])(claude|gemini-[123]|gpt-[3456]|o[1-9](-|$)|codex|grok)")
_GEMINI_2 = re.compile(r"(^|[./])gemini-2")
_GEMINI_3 = re.compile(r"(^|[./])gemini-3")
_OPENAI_HOST = re.compile(r"(^|\.)api\.openai\.com(:\d+)?$")
# the format of a detail whose upstream seals each text it gives (OpenRouter's components)
_SIGNING = "anthropic-"
_THE_MODELS = frozenset({"tool_calls", "reasoning_details", "thinking_blocks"})


def _asks(body: Mapping[str, Any]) -> bool:
    return isinstance(body.get("messages"), list)


def _answers(body: Mapping[str, Any]) -> bool:
    return "choices" in body or as_text(body.get("object")).startswith("chat.completion")


def _type_of(part: Mapping[str, Any]) -> str:
    """The type it names, or what it must be; a text without a seal is signed by some only."""
    name = part.get("type")
    if name == "reasoning.text":
        signs = as_text(part.get("format")).startswith(_SIGNING)
        return "reasoning.text" if signs or part.get("signature") is not None else "reasoning"
    if isinstance(name, str):
        return name
    if part.get("role") in ("tool", "function"):
        return "tool"
    if "function" in part or "custom" in part:
        return "function" if "function" in part else "custom"
    for name in ("thought_signature", "thought_signatures"):
        if name in part:
            return name
    return "function_call" if "arguments" in part else "other"


def _messages(body: Mapping[str, Any]) -> Iterator[RawMessage]:
    found = body.get("messages")
    messages = found if isinstance(found, list) else []
    end = _end(messages)
    results = any(_speaker(message) is Speaker.TOOL for message in messages[end:])
    joined = results and "claude" in as_text(body.get("model"))
    for index, message in enumerate(messages):
        speaker = _speaker(message)
        if not isinstance(message, dict) or speaker is Speaker.TOOL:
            yield RawMessage(index, speaker, (("", message),), message)
        elif speaker is Speaker.MODEL:
            yield RawMessage(index, speaker, _said(message), message)
        else:
            if joined and index >= end and speaker is Speaker.USER:
                speaker = Speaker.TOOL  # Claude's API reads it and the results as one message (A2)
            yield RawMessage(index, speaker, tuple(_content(message)), message)


def _end(messages: list[Any]) -> int:
    """Index after the last message of the model."""
    for index in range(len(messages) - 1, -1, -1):
        spend()
        if _speaker(messages[index]) is Speaker.MODEL:
            return index + 1
    return 0


def _speaker(message: Any) -> Speaker:
    if not isinstance(message, dict):
        return Speaker.USER
    role = message.get("role")
    if role == "assistant" or (role is None and not _THE_MODELS.isdisjoint(message)):
        return Speaker.MODEL  # the SDK's helper leaves the role null where no chunk told it
    if role in ("tool", "function"):
        return Speaker.TOOL
    return Speaker.SYSTEM if role in ("system", "developer") else Speaker.USER


def _said(message: Mapping[str, Any], *, came: bool = False) -> tuple[tuple[str, Any], ...]:
    """The blocks of a message of the model: reasoning, then text, then calls, then its seal.

    `came`: it is an answer, in which LiteLLM puts what it has no field for beside the others; it
    looks for that nowhere but where its home has it.
    """
    beside = message.get(BESIDE)
    beside = beside if isinstance(beside, dict) else {}
    hidden = beside if came else {}
    parts = [
        *(_listed(message, "reasoning_details") or _listed(hidden, "reasoning_details", BESIDE)),
        *_listed(message, "thinking_blocks"),
        *_thoughts(message),
        *_content(message),
        *_listed(message, "tool_calls"),
    ]
    if isinstance(message.get("function_call"), dict):
        parts.append(("function_call", message["function_call"]))
    for holder, path in ((message, ""), (hidden, f"{BESIDE}.")):
        google = lookup(holder, GOOGLE)
        if isinstance(google, dict) and google.get("thought_signature") is not None:
            parts.append((path + GOOGLE, google))
            break
    if _signs_the_text(beside, message):
        parts.append((BESIDE, beside))
    return tuple(parts)


def _thoughts(message: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Those among the blocks that Portkey hands on beside the text."""
    return [
        (path, block)
        for path, block in _listed(message, "content_blocks")
        if isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking")
    ]


def _signs_the_text(beside: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Whether the first signature that LiteLLM lists is the text's: those of calls are there, too.

    It sends that one back with a text in one piece, unless a call has it.
    """
    listed = beside.get("thought_signatures")
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, str) or not first or not isinstance(message.get("content"), str):
        return False
    places = CALL_SEALS[-1].places
    return all(first_text(call, places) != first for _, call in _listed(message, "tool_calls"))


def _listed(message: Mapping[str, Any], key: str, under: str = "") -> list[tuple[str, Any]]:
    """The items under a key with their paths; `under`: where the message stands itself."""
    items = message.get(key)
    path = f"{under}.{key}" if under else key
    return [
        (f"{path}.{index}", item)
        for index, item in enumerate(items if isinstance(items, list) else ())
    ]


def _content(message: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        if content:
            yield "content", content
    else:
        yield from _listed(message, "content")


def _answer(body: Any) -> RawAnswer:
    """The only choice there is: of several, which one the caller goes on with is not known yet."""
    if not isinstance(body, dict):
        return RawAnswer(())
    found = body.get("choices")
    choices = [
        (index, choice)
        for index, choice in enumerate(found if isinstance(found, list) else ())
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict)
    ]
    error = body.get("error") or next((c["error"] for _, c in choices if c.get("error")), None)
    if error and not any(_said(choice["message"], came=True) for _, choice in choices):
        return RawAnswer((), error=error)
    alone = len(choices) == 1
    index, choice = choices[0] if choices else (0, {})
    return RawAnswer(
        parts=_said(choice["message"], came=True) if alone else (),
        path=f"choices.{index}.message",
        id=as_text(body.get("id")),
        model=as_text(body.get("model")),
        stop=as_text(choice.get("finish_reason")),
        usage=_usage(body.get("usage")),
        error=error or None,
    )


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    out = usage.get("completion_tokens_details")
    into = usage.get("prompt_tokens_details")
    return Usage(
        input_tokens=as_count(usage.get("prompt_tokens")),
        output_tokens=as_count(usage.get("completion_tokens")),
        reasoning_tokens=as_count(out.get("reasoning_tokens")) if isinstance(out, dict) else None,
        cache_read_tokens=as_count(into.get("cached_tokens")) if isinstance(into, dict) else None,
    )


def _facts(body: Mapping[str, Any], exchange: Exchange) -> Facts:
    return Facts(
        dialect="chat", vendor="", model=as_text(body.get("model")) or exchange.model or ""
    )


def _reference(_body: Mapping[str, Any]) -> tuple[str, str]:
    return "", ""


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"tools": body.get("tools"), "response_format": body.get("response_format")}


def _traits(place: Place) -> frozenset[Trait]:
    turn = place.turn
    model = place.facts.model or (turn.model if turn else "")
    found = set()
    if _GEMINI_2.search(model):
        found.add(Trait.GEMINI_2)
    elif _GEMINI_3.search(model):
        found.add(Trait.GEMINI_3)
    about = place.block or place.sent
    if about is not None and about.kind is Kind.CALL:
        found.add(Trait.ON_CALL)
    if place.index in place.once_a_turn(_first):
        found.add(Trait.FIRST_CALL)
    return frozenset(found)


def _first(place: Place) -> tuple[int, ...]:
    """Indices of the seals that Gemini asks for: of the first call, and of all calls together."""
    blocks = place.turn.blocks if place.turn is not None else ()
    spend(len(blocks))
    call = next((i for i, block in enumerate(blocks) if block.kind is Kind.CALL), -1)
    sealed = next((i for i, b in enumerate(blocks) if b.type == "reasoning.encrypted"), -1)
    return () if call < 0 else (call, sealed)


def _may_seal(_body: Mapping[str, Any], facts: Facts) -> bool:
    """OpenAI itself seals nothing on this wire; anybody else may."""
    return _OPENAI_HOST.search(facts.host) is None


DIALECT = Dialect(
    name="chat",
    api=Api.CHAT_COMPLETIONS,
    vendor="",  # anybody's wire: who answers is told by host and model, or is not known
    root="messages",
    carriers=BY_TYPE,
    paths=PATHS,
    asks=_asks,
    answers=_answers,
    type_of=_type_of,
    messages=_messages,
    answer=_answer,
    fold=fold,
    facts=_facts,
    reference=_reference,
    head=_head,
    traits=_traits,
    rules=RULES,
    impossible=IMPOSSIBLE,
    messages_are_steps=True,
    models=lambda model: _KNOWN_MODEL.search(model) is not None,
    also_sealed=("encrypted_content",),
    may_seal=_may_seal,
)
