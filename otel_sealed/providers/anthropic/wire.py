"""Anthropic Messages: where sealed state lives, how streams bring it, who may omit what.

Sources: docs/contract/anthropic.md, docs/sdk-surface.md#streams-of-anthropic. Checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from otel_sealed.contract import (
    Api,
    Dialect,
    Exchange,
    RawAnswer,
    RawMessage,
)
from otel_sealed.model import Facts, Removal, Usage
from otel_sealed.providers.anthropic.sealed import BY_TYPE, PATHS
from otel_sealed.providers.anthropic.stream import fold
from otel_sealed.providers.claude import model as claude
from otel_sealed.providers.claude.rules import IMPOSSIBLE, RULES
from otel_sealed.wire.parse import as_count, as_text

# the least budget_tokens the API takes for thinking (S thinking_config_enabled_param.py)
_MIN_BUDGET = 1024


def _asks(body: Mapping[str, Any]) -> bool:
    known = ("max_tokens", "anthropic_version", "model")
    return isinstance(body.get("messages"), list) and not body.keys().isdisjoint(known)


def _answers(body: Mapping[str, Any]) -> bool:
    if as_text(body.get("type")).startswith(("message_", "content_block_")):
        return True
    return isinstance(body.get("content"), list) and body.get("role") == "assistant"


def _type_of(block: Mapping[str, Any]) -> str:
    name = block.get("type")
    return name if isinstance(name, str) else "other"


def _messages(body: Mapping[str, Any]) -> Iterator[RawMessage]:
    return claude.messages(body, _is_result)


def _is_result(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_result"


def _answer(body: Any) -> RawAnswer:
    if not isinstance(body, dict):
        return RawAnswer(())
    if "error" in body and "content" not in body:
        return RawAnswer((), error=body)
    content = body.get("content")
    parts = (
        [(f"content.{j}", part) for j, part in enumerate(content)]
        if isinstance(content, list)
        else []
    )
    stop = body.get("stop_reason")
    return RawAnswer(
        parts=tuple(parts),
        id=as_text(body.get("id")),
        model=as_text(body.get("model")),
        stop=as_text(stop),
        usage=_usage(body.get("usage")),
        removals=tuple(_removals(body["input_transformations"]))
        if "input_transformations" in body
        else (),
        error=body.get("error") or None,  # a stream that broke off with an error event
        missing=_missing(body, stop),
    )


def _missing(body: Mapping[str, Any], stop: object) -> tuple[str, ...]:
    """A compaction that was asked for and stopped without its block."""
    if stop != "compaction":
        return ()
    content = body.get("content")
    blocks = content if isinstance(content, list) else []
    types = {_type_of(block) for block in blocks if isinstance(block, dict)}
    return () if "compaction" in types else ("anthropic.compaction.encrypted_content",)


def _removals(entries: Any) -> Iterator[Removal]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield Removal(
                reason=as_text(entry.get("reason")),
                allowed=entry.get("type") == "thinking_mismatch_allowed",
                path=as_text(entry.get("path")),
            )


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    read = as_count(usage.get("cache_read_input_tokens"))
    write = as_count(usage.get("cache_creation_input_tokens"))
    plain = as_count(usage.get("input_tokens"))
    details = usage.get("output_tokens_details")
    thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (write or 0),
        output_tokens=as_count(usage.get("output_tokens")),
        reasoning_tokens=as_count(thinking),
        cache_read_tokens=read,
        cache_write_tokens=write,
    )


def _facts(body: Mapping[str, Any], exchange: Exchange) -> Facts:
    thinking = body.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    drops = isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"
    compaction = body.get("compaction")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    starved = kind == "enabled" and isinstance(budget, int) and budget < _MIN_BUDGET
    return Facts(
        dialect="anthropic",
        vendor="",
        model=as_text(body.get("model")) or exchange.model or "",
        thinking=None if kind is None else kind != "disabled",
        flags=tuple(
            [
                flag
                for flag, holds in (
                    ("drop_block", drops),
                    ("manual_thinking", kind == "enabled"),
                    ("context_management", bool(body.get("context_management"))),
                    ("compaction", isinstance(compaction, dict)),
                    ("budget_below_minimum", starved),
                )
                if holds
            ]
        ),
    )


def _reference(body: Mapping[str, Any]) -> tuple[str, str]:
    """`thread.continue` sends only what is new (A31)."""
    thread = body.get("thread")
    if isinstance(thread, dict) and thread.get("type") == "continue":
        return "thread", as_text(thread.get("previous_message_id"))
    return "", ""


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    system = body.get("system")
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    return {"system": system or None, "tools": body.get("tools") or None}


DIALECT = Dialect(
    name="anthropic",
    api=Api.MESSAGES,
    vendor="anthropic",
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
    traits=claude.traits,
    rules=RULES,
    impossible=IMPOSSIBLE,
    models=lambda model: claude.KNOWN_MODEL.search(model) is not None,
    may_seal=claude.may_seal,
)
