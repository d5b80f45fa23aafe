"""Gemini Interactions: steps with a signature, and state that the server keeps.

Sources: docs/contract/interactions.md, docs/sdk-surface.md#streams-of-google,
google/genai/_gaos/types/interactions of google-genai 3.6.1. Signatures travel as plain text here
and are compared as such (docs/sdk-surface.md#how-values-are-hashed). Checked 2026-11-29.

The first revision of this wire (google-genai 1.55 to 1.75) has turns of a role and its contents in
`input`, `outputs` for `steps`, `text` for `model_output`, and streams `content.…` events.
"""

from __future__ import annotations

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
from otel_sealed.model import Facts, Speaker, Trait, Usage
from otel_sealed.providers.interactions.rules import IMPOSSIBLE, RULES
from otel_sealed.providers.interactions.sealed import BY_TYPE, PATHS
from otel_sealed.providers.interactions.stream import LISTS, fold
from otel_sealed.wire.parse import as_count, as_text


def _asks(body: Mapping[str, Any]) -> bool:
    return not body.keys().isdisjoint(("model", "input", "previous_interaction_id"))


def _answers(body: Mapping[str, Any]) -> bool:
    if as_text(body.get("event_type")).startswith(("interaction.", "step.", "content.")):
        return True
    return body.get("object") == "interaction" or any(
        isinstance(body.get(name), list) for name in LISTS
    )


def _type_of(step: Mapping[str, Any]) -> str:
    name = step.get("type")
    return name if isinstance(name, str) else "other"


def _messages(body: Mapping[str, Any]) -> Iterator[RawMessage]:
    steps = body.get("input")
    if isinstance(steps, dict):
        steps = [steps]
    if isinstance(steps, str):
        yield RawMessage(0, Speaker.USER, (("", steps),), steps)
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict) and "role" in step and "type" not in step:
            yield _turn(index, step)
        else:
            yield RawMessage(index, _speaker(step), (("", step),), step)


def _turn(index: int, turn: dict[str, Any]) -> RawMessage:
    """A turn of the first revision."""
    content = turn.get("content")
    parts = tuple(
        (f"content.{number}", part)
        for number, part in enumerate(content if isinstance(content, list) else [content])
    )
    speaker = Speaker.MODEL if turn["role"] == "model" else Speaker.USER
    if any(_speaker(part) is Speaker.TOOL for _, part in parts):
        speaker = Speaker.TOOL
    return RawMessage(index, speaker, parts, turn)


def _speaker(step: Any) -> Speaker:
    if not isinstance(step, dict):
        return Speaker.USER
    name = _type_of(step)
    if name == "function_result":
        return Speaker.TOOL
    known = name in BY_TYPE and name not in ("user_input", "text")
    return Speaker.MODEL if known else Speaker.USER


def _answer(body: Any) -> RawAnswer:
    if not isinstance(body, dict):
        return RawAnswer(())
    path = "steps" if body.get("outputs") is None else "outputs"
    steps = body.get(path)
    if body.get("error") is not None and not steps:
        return RawAnswer((), error=body)
    parts = enumerate(steps) if isinstance(steps, list) else ()
    usage = body.get("usage")
    return RawAnswer(
        parts=tuple((str(index), step) for index, step in parts),
        path=path,
        id=as_text(body.get("id")),
        model=as_text(body.get("model")),
        stop=as_text(body.get("status")),
        usage=_usage(usage if isinstance(usage, dict) else {}),
    )


def _usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=as_count(usage.get("total_input_tokens")),
        output_tokens=as_count(usage.get("total_output_tokens")),
        reasoning_tokens=as_count(
            usage.get("total_thought_tokens", usage.get("total_reasoning_tokens"))
        ),
        cache_read_tokens=as_count(usage.get("total_cached_tokens")),
    )


def _facts(body: Mapping[str, Any], exchange: Exchange) -> Facts:
    store = body.get("store")
    return Facts(
        dialect="interactions",
        vendor="",
        model=as_text(body.get("model")) or exchange.model or "",
        store=store if isinstance(store, bool) else None,
        background=body.get("background") is True,
    )


def _reference(body: Mapping[str, Any]) -> tuple[str, str]:
    previous = body.get("previous_interaction_id")
    if isinstance(previous, str) and previous:
        return "previous_interaction_id", previous
    return "", ""


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"system": body.get("system_instruction"), "tools": body.get("tools")}


def _traits(place: Place) -> frozenset[Trait]:
    return frozenset({Trait.STORED} if place.facts.store is not False else ())


DIALECT = Dialect(
    name="interactions",
    api=Api.INTERACTIONS,
    vendor="google",
    root="input",
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
    models=lambda model: model.startswith(("gemini-", "models/gemini-", "deep-research")),
    tools_separate=False,
)
