"""Gemini generateContent: thought signatures on parts, compared as decoded bytes.

Sources: docs/contract/gemini.md, docs/sdk-surface.md#streams-of-google and #spelling there.
Checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from otel_sealed.contract import (
    Api,
    Constant,
    Dialect,
    Exchange,
    Place,
    RawAnswer,
    RawMessage,
)
from otel_sealed.model import Facts, Kind, Speaker, Trait, Usage
from otel_sealed.providers.gemini.rules import IMPOSSIBLE, RULES
from otel_sealed.providers.gemini.sealed import BY_TYPE, PATHS
from otel_sealed.providers.gemini.stream import candidate_of, fold, parts_of
from otel_sealed.steps import spend
from otel_sealed.wire.parse import as_count, as_text

_KNOWN_MODEL = re.compile(r"gemini-[123]")
_GEMINI_2 = re.compile(r"gemini-2")
_GEMINI_3 = re.compile(r"gemini-3")
# models from before there was thinking, but for an experimental one named after it
_NEVER_THINKS = re.compile(r"gemini-(1|2\.0)")

_KEYS = (
    ("functionCall", "function_call"),
    ("function_call", "function_call"),
    ("functionResponse", "function_response"),
    ("function_response", "function_response"),
    ("toolCall", "tool_call"),
    ("toolResponse", "tool_response"),
    ("inlineData", "inline_data"),
    ("inline_data", "inline_data"),
    ("fileData", "file_data"),
    ("executableCode", "executable_code"),
    ("codeExecutionResult", "code_execution_result"),
)


def _asks(body: Mapping[str, Any]) -> bool:
    return "contents" in body


def _answers(body: Mapping[str, Any]) -> bool:
    return "candidates" in body or "promptFeedback" in body


def _type_of(part: Mapping[str, Any]) -> str:
    for key, name in _KEYS:
        if part.get(key) is not None:
            return name
    if part.get("thought") is True and not _signed(part):
        return "thought"
    if part.get("thought") is True and isinstance(part.get("text"), str):
        return "signed_thought"
    if isinstance(part.get("text"), str):
        return "text"
    return "signature" if _signed(part) else "other"


def _signed(part: Mapping[str, Any]) -> bool:
    return bool(part.get("thoughtSignature") or part.get("thought_signature"))


def _messages(body: Mapping[str, Any]) -> Iterator[RawMessage]:
    contents = body.get("contents")
    if isinstance(contents, dict):
        contents = [contents]
    for index, content in enumerate(contents if isinstance(contents, list) else ()):
        parts = tuple((f"parts.{j}", part) for j, part in enumerate(parts_of(content)))
        yield RawMessage(index, _speaker(content, parts), parts, content)


def _speaker(content: Any, parts: tuple[tuple[str, Any], ...]) -> Speaker:
    """A content that holds a function response does not start a turn, text beside it or not."""
    role = content.get("role") if isinstance(content, dict) else None
    if role == "model":
        return Speaker.MODEL
    answers = any(
        isinstance(part, dict) and _type_of(part) == "function_response" for _, part in parts
    )
    return Speaker.TOOL if answers else Speaker.USER


def _answer(body: Any) -> RawAnswer:
    if isinstance(body, list):  # streamGenerateContent without alt=sse answers with a JSON array
        body = fold(body)
    if not isinstance(body, dict):
        return RawAnswer(())
    candidate = candidate_of(body)
    if body.get("error") is not None and not candidate:
        return RawAnswer((), error=body)
    stop = as_text(candidate.get("finishReason")) or as_text(candidate.get("finish_reason"))
    return RawAnswer(
        parts=tuple((f"parts.{j}", p) for j, p in enumerate(parts_of(candidate.get("content")))),
        path="candidates.0.content",
        id=as_text(body.get("responseId")),
        model=as_text(body.get("modelVersion")),
        stop=stop,
        usage=_usage(body.get("usageMetadata")),
        error={"message": stop} if stop == "MISSING_THOUGHT_SIGNATURE" else None,
    )


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    said = as_count(usage.get("candidatesTokenCount"))
    thought = as_count(usage.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=as_count(usage.get("promptTokenCount")),
        output_tokens=None if said is None and thought is None else (said or 0) + (thought or 0),
        reasoning_tokens=thought,
        cache_read_tokens=as_count(usage.get("cachedContentTokenCount")),
    )


def _facts(body: Mapping[str, Any], exchange: Exchange) -> Facts:
    config = body.get("generationConfig") or body.get("generation_config")
    thinking = config.get("thinkingConfig") if isinstance(config, dict) else None
    return Facts(
        dialect="gemini",
        vendor="",
        model=exchange.model or as_text(body.get("model")),
        thinking=isinstance(thinking, dict) or None,
    )


def _reference(_body: Mapping[str, Any]) -> tuple[str, str]:
    return "", ""


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "system": body.get("systemInstruction") or body.get("system_instruction"),
        "tools": body.get("tools"),
    }


def _traits(place: Place) -> frozenset[Trait]:
    facts, turn, block = place.facts, place.turn, place.block
    model = facts.model or (turn.model if turn else "")
    found = set()
    if _GEMINI_2.search(model):
        found.add(Trait.GEMINI_2)
    elif _GEMINI_3.search(model):
        found.add(Trait.GEMINI_3)
    if facts.platform == "vertex":
        found.add(Trait.VERTEX)
    about = block or place.sent
    if about is None:
        return frozenset(found)
    if about.kind is Kind.CALL:
        found.add(Trait.ON_CALL)
    if about.kind is Kind.MEDIA:
        found.add(Trait.ON_MEDIA)
    if "signature" in (about.type, place.sent.type if place.sent is not None else ""):
        found.add(Trait.SIGNATURE_ONLY)
    if turn is not None and place.index == place.once_a_turn(_first_call):
        found.add(Trait.FIRST_CALL)
    return frozenset(found)


def _first_call(place: Place) -> int:
    """Index of the first call of a turn, -1 where there is none."""
    blocks = place.turn.blocks if place.turn is not None else ()
    spend(len(blocks))
    return next((i for i, b in enumerate(blocks) if b.type == "function_call"), -1)


def _may_seal(_body: Mapping[str, Any], facts: Facts) -> bool:
    """Models before 2.5 do not think; later ones do, whether they are asked or not."""
    never = "thinking" not in facts.model and _NEVER_THINKS.search(facts.model) is not None
    return bool(facts.thinking) or not never


# G9: the second documented dummy is one of the Developer API alone
_DEVELOPERS = "context_engineering_is_the_way_to_go"

DIALECT = Dialect(
    name="gemini",
    api=Api.GENERATE_CONTENT,
    vendor="google",
    root="contents",
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
    # documented dummies, as text; their base64 forms decode to the same bytes (G9)
    placeholders=("skip_thought_signature_validator", _DEVELOPERS),
    placeholders_refused={_DEVELOPERS: frozenset({"vertex"})},
    # what LangChain JS puts into every unsigned call (its base64 text hashes to 95961e890e240855…)
    constants=(Constant(313, "6e7a63a6f9cccdec755b924cd369ae500c9348c558e074d3a02caf5939b00cf4"),),
    messages_are_steps=True,
    models=lambda model: not model or _KNOWN_MODEL.search(model) is not None,
    may_seal=_may_seal,
)
