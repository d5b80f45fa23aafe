"""What Claude's models do, on whatever wire: which of them think, bind and refuse.

Sources: docs/contract/anthropic.md. Checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from otel_sealed.contract import Place, RawMessage
from otel_sealed.model import Facts, Kind, Speaker, State, Trait, Turn
from otel_sealed.steps import spend
from otel_sealed.vocab import names_model

# A12: the models that check what stands before a thinking block; opus-5, sonnet-5, fable-5 do not
_BINDING = re.compile(r"claude-(fable-5-[12]|mythos-5-2|(opus|sonnet|haiku)-5-5)(-\d{8})?$")
_BINDING_ALWAYS = re.compile(r"claude-(fable|mythos)-5-2(-\d{8})?$")
KNOWN_MODEL = re.compile(r"claude-(\d|instant|opus|sonnet|haiku|fable|mythos)")
# A16: blocks of these are tied to the account that minted them
_ACCOUNT_BOUND = re.compile(r"claude-(sonnet|haiku)-5-5")
# A9: what a model does where a request says nothing of thinking, by its generation; a name without
# one is neither
_THINKS_BY_DEFAULT = re.compile(r"claude-([a-z]+-)?[5-9](?!\d)")
_OFF_BY_DEFAULT = re.compile(r"claude-([a-z]+-)?[1-4](?!\d)")


def messages(body: Mapping[str, Any], is_result: Callable[[Any], bool]) -> Iterator[RawMessage]:
    """The history of a request whose messages have a role and a list of blocks.

    `is_result`: whether a block is the result of a tool.
    """
    history = body.get("messages")
    if not isinstance(history, list):
        return
    results = [_results(message, is_result) for message in history]
    end = _end(history)
    continues = any(results[end:])
    for index, message in enumerate(history):
        if not isinstance(message, dict):
            yield RawMessage(index, Speaker.USER, (), message)
            continue
        content = message.get("content")
        if isinstance(content, list):
            parts = tuple([(f"content.{j}", part) for j, part in enumerate(content)])
        else:
            parts = (("content", content),) if isinstance(content, str) else ()
        only = results[index] > 0 and results[index] == len(parts)
        speaker = _speaker(message, results=only or (continues and index >= end))
        yield RawMessage(index, speaker, parts, message)


def _end(history: list[Any]) -> int:
    """Index after the last message of the model: the API reads what follows as one message."""
    for index in range(len(history) - 1, -1, -1):
        if isinstance(history[index], dict) and history[index].get("role") == "assistant":
            return index + 1
    return 0


def _results(message: Any, is_result: Callable[[Any], bool]) -> int:
    """How many tool results a message holds."""
    content = message.get("content") if isinstance(message, dict) else None
    return sum(map(is_result, content)) if isinstance(content, list) else 0


def _speaker(message: Mapping[str, Any], *, results: bool) -> Speaker:
    """A message of tool results only continues the loop, as do all at the end with one of them."""
    role = message.get("role")
    if role == "assistant":
        return Speaker.MODEL
    if role == "system":
        return Speaker.SYSTEM
    return Speaker.TOOL if results else Speaker.USER


def traits(place: Place) -> frozenset[Trait]:
    """What rules ask of a place that depends on the model, the turn, and how it ended."""
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


def may_seal(_body: Mapping[str, Any], facts: Facts) -> bool:
    """A9: a model that thinks only where it is asked to, and was not, seals nothing.

    What else a request asks for (compaction, context management) is in its flags.
    """
    if facts.flags or facts.thinking:
        return True
    return facts.thinking is None and not names_model(_OFF_BY_DEFAULT, facts.model)
