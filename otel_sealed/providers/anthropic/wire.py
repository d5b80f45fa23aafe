"""Anthropic Messages: where sealed state lives, how streams bring it, who may omit what.

Sources: docs/contract/anthropic.md, docs/sdk-surface.md#streams-of-anthropic. Checked 2026-11-29.
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
from otel_sealed.model import Facts, Kind, Removal, Speaker, State, Trait, Turn, Usage
from otel_sealed.providers.anthropic.rules import IMPOSSIBLE, RULES
from otel_sealed.providers.anthropic.sealed import BY_TYPE, PATHS
from otel_sealed.providers.anthropic.stream import fold
from otel_sealed.steps import spend
from otel_sealed.vocab import names_model
from otel_sealed.wire.parse import as_count, as_text

# A12: the models that check what stands before a thinking block; opus-5, sonnet-5, fable-5 do not
_BINDING = re.compile(r"claude-(fable-5-[12]|mythos-5-2|(opus|sonnet|haiku)-5-5)(-\d{8})?$")
_BINDING_ALWAYS = re.compile(r"claude-(fable|mythos)-5-2(-\d{8})?$")
_KNOWN_MODEL = re.compile(r"claude-(\d|instant|opus|sonnet|haiku|fable|mythos)")
# A16: blocks of these are tied to the account that minted them
_ACCOUNT_BOUND = re.compile(r"claude-(sonnet|haiku)-5-5")
# A9: what a model does where a request says nothing of thinking, by its generation; a name without
# one is neither
_THINKS_BY_DEFAULT = re.compile(r"claude-([a-z]+-)?[5-9](?!\d)")
_OFF_BY_DEFAULT = re.compile(r"claude-([a-z]+-)?[1-4](?!\d)")
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
    history = body.get("messages")
    if not isinstance(history, list):
        return
    end = _end(history)
    continues = any(map(_results, history[end:]))
    for index, message in enumerate(history):
        if not isinstance(message, dict):
            yield RawMessage(index, Speaker.USER, (), message)
            continue
        content = message.get("content")
        if isinstance(content, list):
            parts = tuple([(f"content.{j}", part) for j, part in enumerate(content)])
        else:
            parts = (("content", content),) if isinstance(content, str) else ()
        speaker = _speaker(message, len(parts), continues=continues and index >= end)
        yield RawMessage(index, speaker, parts, message)


def _end(history: list[Any]) -> int:
    """Index after the last message of the model: the API reads what follows as one message."""
    for index in range(len(history) - 1, -1, -1):
        if isinstance(history[index], dict) and history[index].get("role") == "assistant":
            return index + 1
    return 0


def _results(message: Any) -> int:
    """How many tool results a message holds."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return 0
    return sum(isinstance(part, dict) and part.get("type") == "tool_result" for part in content)


def _speaker(message: Mapping[str, Any], parts: int, *, continues: bool) -> Speaker:
    """A message of tool results only continues the loop, as do all at the end with one of them."""
    role = message.get("role")
    if role == "assistant":
        return Speaker.MODEL
    if role == "system":
        return Speaker.SYSTEM
    results = _results(message)
    return Speaker.TOOL if continues or (results and results == parts) else Speaker.USER


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


def _traits(place: Place) -> frozenset[Trait]:
    facts, turn, block = place.facts, place.turn, place.block
    found = _thinks(facts, turn)
    if names_model(_BINDING, facts.model):
        found.add(Trait.BINDING)
    if turn is not None and block is not None:
        found |= _turn_traits(turn, place)
        if block.kind is Kind.COMPACTION:
            found |= _compaction_traits(place)
    if turn is not None and names_model(_ACCOUNT_BOUND, turn.model):
        found.add(Trait.ACCOUNT_BOUND)
    if names_model(_BINDING_ALWAYS, facts.model):
        found.add(Trait.BINDING_ALWAYS)
    return frozenset(found)


def _thinks(facts: Facts, turn: Turn | None) -> set[Trait]:
    """How the model of a request thinks: as it says, else as the model does by default (A9)."""
    if facts.thinking is False:
        return {Trait.THINKING_OFF, Trait.THINKING_DISABLED}
    if facts.thinking:
        return set() if "manual_thinking" in facts.flags else {Trait.ADAPTIVE}
    if names_model(_THINKS_BY_DEFAULT, facts.model):
        return {Trait.ADAPTIVE}
    if turn is not None and turn.told and turn.thinking is None:
        return set()  # it thought without being asked: whoever answers here turns thinking on
    off = {Trait.THINKING_OFF}
    return off | {Trait.THINKING_DISABLED} if names_model(_OFF_BY_DEFAULT, facts.model) else off


def _last_marker(place: Place) -> int:
    blocks = place.turn.blocks if place.turn is not None else ()
    spend(len(blocks))
    return max((i for i, b in enumerate(blocks) if b.kind is Kind.MARKER), default=-1)


def _thinks_from(place: Place) -> int:
    """Index from which on a turn is thinking alone."""
    blocks = place.turn.blocks if place.turn is not None else ()
    spend(len(blocks))
    others = (i for i, b in enumerate(blocks) if b.kind is not Kind.REASONING)
    return max(others, default=-1) + 1


def _turn_traits(turn: Turn, place: Place) -> set[Trait]:
    found = set()
    marker = place.once_a_turn(_last_marker)
    if marker >= 0:
        found.add(Trait.AT_FALLBACK)
    if place.index < marker:
        found.add(Trait.BEFORE_FALLBACK)
    if place.index >= place.once_a_turn(_thinks_from):
        found.add(Trait.TRAILING)
    if turn.stop == "refusal":
        found.add(Trait.REFUSED)
    if turn.stop in ("max_tokens", "model_context_window_exceeded"):
        found.add(Trait.TRUNCATED)
    if turn.stop == "pause_turn":
        found.add(Trait.PAUSED)
    return found


def _compaction_traits(place: Place) -> set[Trait]:
    values = {v.artifact: v.state for v in (place.block.values if place.block else ())}
    found = set()
    if values.get("anthropic.compaction.text") in (State.NULL, State.ABSENT):
        found.add(Trait.FAILED_COMPACTION)
    if values.get("anthropic.compaction.signature") is State.PRESENT:
        found.add(Trait.SIGNED_COMPACTION)
    return found


def _may_seal(_body: Mapping[str, Any], facts: Facts) -> bool:
    """A9: a model that thinks only where it is asked to, and was not, seals nothing.

    What else a request asks for (compaction, context management) is in its flags.
    """
    if facts.flags or facts.thinking:
        return True
    return facts.thinking is None and not names_model(_OFF_BY_DEFAULT, facts.model)


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
    traits=_traits,
    rules=RULES,
    impossible=IMPOSSIBLE,
    models=lambda model: _KNOWN_MODEL.search(model) is not None,
    may_seal=_may_seal,
)
