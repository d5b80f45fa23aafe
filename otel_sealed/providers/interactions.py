"""Gemini Interactions: steps with a signature, and state that the server keeps.

Sources: docs/contract/interactions.md, docs/sdk-surface.md#streams-of-google,
google/genai/_gaos/types/interactions of google-genai 3.6.1. Signatures travel as plain text here
and are compared as such (docs/sdk-surface.md#how-values-are-hashed). Checked 2026-11-29.

The first revision of this wire (google-genai 1.55 to 1.75) has turns of a role and its contents in
`input`, `outputs` for `steps`, `text` for `model_output`, and streams `content.…` events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from otel_sealed.contract import (
    Api,
    Carrier,
    Dialect,
    Exchange,
    Field,
    Place,
    RawAnswer,
    RawMessage,
    Rule,
    rule,
)
from otel_sealed.model import Facts, Fate, Kind, Speaker, Trait, Usage, Verdict
from otel_sealed.steps import spend
from otel_sealed.wire.growing import Growing
from otel_sealed.wire.parse import as_count, as_text

_SIGNED_STEPS = (
    "code_execution",
    "file_search",
    "google_search",
    "google_maps",
    "url_context",
    "retrieval",
    "tool_search",
    "processing",
    "mcp_server_tool",
)
_STEP = Field("signature", "interactions.step.signature")

_CARRIERS = (
    Carrier(
        "thought",
        Kind.REASONING,
        fields=(Field("signature", "interactions.thought.signature"),),
        shadows=("summary",),
        keys=frozenset({"type", "summary"}),
    ),
    Carrier("model_output", Kind.TEXT, payload=("content",)),
    Carrier("text", Kind.TEXT, payload=("text",)),
    Carrier("user_input", Kind.OTHER),
    Carrier(
        "function_call",
        Kind.CALL,
        fields=(_STEP,),
        ids=("id",),
        payload=("name", "arguments"),
        label="name",
        arguments="arguments",
    ),
    Carrier(
        "function_result",
        Kind.RESULT,
        ids=("call_id",),
        label="name",
        result="result",
        failed="is_error",
    ),
    *(
        carrier
        for name in _SIGNED_STEPS
        for carrier in (
            Carrier(f"{name}_call", Kind.CALL, fields=(_STEP,), ids=("id",)),
            Carrier(f"{name}_result", Kind.OTHER, fields=(_STEP,), ids=("call_id",)),
        )
    ),
)

RULES: tuple[Rule, ...] = (
    rule(
        "G17",
        "with previous_interaction_id the server holds the steps and their signatures",
        {Fate.SERVER_HELD},
        Verdict.ALLOWED,
        source="D interactions thinking page",
    ),
    rule(
        "G17",
        "steps the server holds are not sent as well; the effect is not confirmed",
        {Fate.DUPLICATED},
        Verdict.ALLOWED,
        source="D interactions thinking page",
        disputed=True,
    ),
    rule(
        "X7",
        "whole turns left out of the history take their seals with them",
        {Fate.DROPPED},
        Verdict.ALLOWED,
        when={Trait.WHOLE_TURN, Trait.FRONT},
        source="ours: docs/glossary.md#fates: absent with the turn that held it",
    ),
    rule(
        "G17",
        "with store off every step is sent again as it came",
        {*Fate} - {Fate.INTACT, Fate.UNKNOWN, Fate.SERVER_HELD, Fate.SUPERSEDED, Fate.FOREIGN},
        Verdict.DEGRADES,
        artifacts=("interactions.",),
        unless={Trait.FOREIGN_TURN},
        source="D interactions thinking page; what the provider does is not confirmed",
        disputed=True,
    ),
    rule(
        "G17",
        "a signature of another vendor is of no use here, and one is rightly left behind",
        {Fate.FOREIGN},
        Verdict.BREAKS,
        source="C litellm rejected_thought_signature_retry.py",
    ),
    rule(
        "G17",
        "signatures of another vendor are rightly left behind",
        {Fate.DROPPED, Fate.SUBSTITUTED},
        Verdict.ALLOWED,
        when={Trait.FOREIGN_TURN},
        source="ours: docs/glossary.md#fates: there they would be foreign",
    ),
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
    known = name in _BY_TYPE and name not in ("user_input", "text")
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


_LISTS = ("steps", "outputs")
_FIRST_REVISION = {
    "content.start": "step.start",
    "content.delta": "step.delta",
    "content.stop": "step.stop",
    "interaction.complete": "interaction.completed",
}


def fold(events: Iterable[Any]) -> dict[str, Any]:
    """The interaction a stream amounts to: its steps as they started, with their deltas."""
    body: dict[str, Any] = {}
    steps: dict[int, Growing] = {}
    signing: set[int] = set()
    complete = False
    for event in events:
        spend()
        if not isinstance(event, dict):
            continue
        kind = _FIRST_REVISION.get(str(event.get("event_type")), event.get("event_type"))
        step = event.get("step", event.get("content"))
        place = event.get("index")
        index = place if isinstance(place, int) else 0
        if isinstance(event.get("interaction"), dict):
            body.update({k: v for k, v in event["interaction"].items() if v or k not in _LISTS})
            complete = complete or kind == "interaction.completed"
        elif kind == "step.start" and isinstance(step, dict):
            steps[index] = Growing(step)
        elif kind == "step.delta" and isinstance(event.get("delta"), dict):
            _apply(steps.setdefault(index, Growing({"type": "other"})), event["delta"])
            if isinstance(event["delta"].get("signature"), str):
                signing.add(index)
        elif kind == "step.stop":
            signing.discard(index)
        elif kind == "error":
            body["error"] = event.get("error")
    body["cut"] = []
    if not any(body.get(name) for name in _LISTS):
        order = sorted(steps)
        body["steps"] = [steps[index].whole() for index in order]
        body["cut"] = [str(at) for at, index in enumerate(order) if index in signing]
    body["complete"] = complete
    return body


def _apply(growing: Growing, delta: Mapping[str, Any]) -> None:
    step = growing.block
    if isinstance(delta.get("signature"), str):
        growing.add("signature", delta["signature"])
    if step.get("type") == "text":
        growing.add("text", as_text(delta.get("text")))
    elif delta.get("type") == "text" and isinstance(delta.get("text"), str):
        if isinstance(step.get("content", []), list):
            growing.append("content", {"type": "text", "text": delta["text"]})
    elif delta.get("type") == step.get("type"):
        for name, value in delta.items():  # a call that came in its delta (first revision)
            step.setdefault(name, value)


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


_BY_TYPE = {carrier.type: carrier for carrier in _CARRIERS}

DIALECT = Dialect(
    name="interactions",
    api=Api.INTERACTIONS,
    vendor="google",
    root="input",
    carriers=_BY_TYPE,
    type_of=_type_of,
    messages=_messages,
    answer=_answer,
    fold=fold,
    facts=_facts,
    reference=_reference,
    head=_head,
    traits=_traits,
    rules=RULES,
    models=lambda model: model.startswith(("gemini-", "models/gemini-", "deep-research")),
    tools_separate=False,
    sealed_keys={"signature": "signature"},
)
