"""OpenAI Responses: reasoning and compaction items, their ids, and the pairs they stand in.

Sources: docs/contract/openai.md, docs/sdk-surface.md#streams-of-openai. Checked 2026-11-29.
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
from otel_sealed.model import Facts, Kind, Removal, Speaker, Trait, Usage
from otel_sealed.providers.openai.rules import RULES
from otel_sealed.providers.openai.sealed import BY_TYPE, PATHS, TOOL_OUTPUTS
from otel_sealed.providers.openai.stream import fold
from otel_sealed.steps import spend
from otel_sealed.vocab import names_model
from otel_sealed.wire.parse import as_count, as_text

_KNOWN_MODEL = re.compile(r"(^|[./])(gpt-[345]|gpt-6|o[1-9](-|$)|codex|chatgpt|grok)")
# models from before there was reasoning; nothing of theirs is sealed
_NEVER_REASONS = re.compile(r"(^|[./])(gpt-(3|4)|chatgpt-4)")
# O13: which models drop reasoning after a prefix change is not published; 6.2 is the one named
_BINDING = re.compile(r"(^|[./])gpt-6")
# O13: instructions count on models before this one
_FREE_INSTRUCTIONS = re.compile(r"(^|[./])gpt-6\.[2-9]")
# O15: the gpt-5.6 family defaults to all_turns, earlier models to current_turn
_ALL_TURNS = re.compile(r"(^|[./])gpt-(5\.[6-9]|[6-9])")
# O23: hosts of OpenAI's own, in any region; what Codex adds to every item is theirs alone
_OWN_HOST = re.compile(r"(^|\.)(api\.openai\.com|chatgpt\.com)(:\d+)?$", re.IGNORECASE)


def _asks(body: Mapping[str, Any]) -> bool:
    return not body.keys().isdisjoint(("model", "input", "previous_response_id"))


def _answers(body: Mapping[str, Any]) -> bool:
    if as_text(body.get("type")).startswith("response."):
        return True
    return as_text(body.get("object")).startswith("response") or isinstance(
        body.get("output"), list
    )


def _type_of(item: Mapping[str, Any]) -> str:
    name = item.get("type")
    if isinstance(name, str):
        return name
    if "role" in item:
        return "message"
    return "item_reference" if item.keys() - {"type"} == {"id"} else "other"


def _messages(body: Mapping[str, Any]) -> Iterator[RawMessage]:
    items = body.get("input")
    if isinstance(items, str):
        yield RawMessage(0, Speaker.USER, (("", items),), items, _spelled({"content": items}))
    for index, item in enumerate(items if isinstance(items, list) else ()):
        speaker = _speaker(item)
        told = None if speaker is Speaker.MODEL else _spelled(item)
        yield RawMessage(index, speaker, (("", item),), item, told)


def _spelled(item: Any) -> Any:
    """What the model was told, in one of its spellings: a list of one, without defaults."""
    if not isinstance(item, dict):
        return item
    told = {key: value for key, value in item.items() if value is not None and key != "status"}
    if "content" in told:
        told = {"type": "message", "role": "user", **told}
    for key in ("content", "output"):
        if isinstance(told.get(key), str):
            told[key] = [{"type": "input_text", "text": told[key]}]
    return told


def _speaker(item: Any) -> Speaker:
    if not isinstance(item, dict):
        return Speaker.USER
    name = _type_of(item)
    if name == "message":
        role = item.get("role")
        if role == "assistant":
            return Speaker.MODEL
        return Speaker.SYSTEM if role in ("system", "developer") else Speaker.USER
    if name in TOOL_OUTPUTS:
        return Speaker.TOOL
    if name in ("input_text", "additional_tools", "configuration_update", "compaction_trigger"):
        return Speaker.SYSTEM
    return Speaker.MODEL


def _answer(body: Any) -> RawAnswer:
    if not isinstance(body, dict):
        return RawAnswer(())
    error = body.get("error")
    output = body.get("output")
    if error and not isinstance(output, list):
        return RawAnswer((), error=error)
    items = output if isinstance(output, list) else []
    reasoning = body.get("reasoning")
    return RawAnswer(
        parts=tuple((str(index), item) for index, item in enumerate(items)),
        path="output",
        id=as_text(body.get("id")),
        thread=_conversation(body),
        model=as_text(body.get("model")),
        stop=_stop(body),
        store=body["store"] if isinstance(body.get("store"), bool) else None,
        usage=_usage(body.get("usage")),
        removals=tuple(_removals(body.get("input_transformations"))),
        error=error or None,
        missing=_missing(body, items),
        context=as_text(reasoning.get("context")) if isinstance(reasoning, dict) else "",
    )


def _missing(body: Mapping[str, Any], items: list[Any]) -> tuple[str, ...]:
    """A compact call that answers 200 without its artifact."""
    if body.get("object") != "response.compaction":
        return ()
    compactions = (i for i in items if isinstance(i, dict) and _type_of(i) == "compaction")
    if any(item.get("encrypted_content") for item in compactions):
        return ()
    return ("openai.compaction.encrypted_content",)


def _stop(body: Mapping[str, Any]) -> str:
    details = body.get("incomplete_details")
    if isinstance(details, dict) and isinstance(details.get("reason"), str):
        return str(details["reason"])
    return as_text(body.get("status"))


def _removals(entries: Any) -> Iterator[Removal]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield Removal(
                reason=as_text(entry.get("reason")),
                allowed=entry.get("reason") == "turn_boundary",
                path=as_text(entry.get("id")),
            )


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    out = usage.get("output_tokens_details")
    into = usage.get("input_tokens_details")
    return Usage(
        input_tokens=as_count(usage.get("input_tokens")),
        output_tokens=as_count(usage.get("output_tokens")),
        reasoning_tokens=as_count(out.get("reasoning_tokens")) if isinstance(out, dict) else None,
        cache_read_tokens=as_count(into.get("cached_tokens")) if isinstance(into, dict) else None,
    )


def _facts(body: Mapping[str, Any], exchange: Exchange) -> Facts:
    reasoning = body.get("reasoning")
    context = reasoning.get("context") if isinstance(reasoning, dict) else None
    store = body.get("store")
    model = as_text(body.get("model")) or exchange.model or ""
    default = "all_turns" if _ALL_TURNS.search(model) else "current_turn"
    include = body.get("include")
    asked = isinstance(include, list) and "reasoning.encrypted_content" in include
    return Facts(
        dialect="openai",
        vendor="",
        model=model,
        store=store if isinstance(store, bool) else None,
        context=context if context in ("all_turns", "current_turn") else default,
        background=body.get("background") is True,
        flags=tuple(
            flag
            for flag, holds in (
                ("include", asked),
                ("context_management", bool(body.get("context_management"))),
                ("truncation", body.get("truncation") == "auto"),
                ("background_without_store", body.get("background") is True and store is False),
            )
            if holds
        ),
    )


def _reference(body: Mapping[str, Any]) -> tuple[str, str]:
    previous = body.get("previous_response_id")
    if isinstance(previous, str) and previous:
        return "previous_response_id", previous
    conversation = _conversation(body)
    return ("conversation", conversation) if conversation else ("", "")


def _conversation(body: Mapping[str, Any]) -> str:
    """The id of the conversation that a request names, or a response says it is part of."""
    named = body.get("conversation")
    return as_text(named.get("id") if isinstance(named, dict) else named)


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    text = body.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    free = _FREE_INSTRUCTIONS.search(as_text(body.get("model")))
    return {
        "instructions": None if free else body.get("instructions") or None,
        "tools": body.get("tools") or None,
        "text.format": None if form == {"type": "text"} else form,
    }


def _traits(place: Place) -> frozenset[Trait]:
    facts, sent = place.facts, place.sent
    found = set()
    found |= _stored(place)
    if facts.operation == "add_items" and facts.reference:
        found.add(Trait.ADDS_ITEMS)
    if facts.context == "all_turns":
        found.add(Trait.KEEPS_ALL)
    if _BINDING.search(facts.model):
        found.add(Trait.BINDING)
    if sent is None and place.block is not None:
        named = place.once_a_request(_references)
        found |= set() if named.isdisjoint(place.block.anchors) else {Trait.REFERRED}
    if sent is not None and sent.transient:
        found.add(Trait.TRANSIENT)
    if facts.vendor == "xai":
        found.add(Trait.XAI)
    if _OWN_HOST.search(facts.host) or (not facts.host and facts.platform == "openai"):
        found.add(Trait.OWN_HOST)
    if sent is not None and not sent.has_server_id:
        found.add(Trait.ID_ABSENT)
    if place.index < len(after := place.once_a_turn(_follower_ids)) and after[place.index]:
        found.add(Trait.FOLLOWER_ID)
    return frozenset(found)


def _stored(place: Place) -> set[Trait]:
    """Whether the server keeps the response: it says so, its request did, or the default holds.

    Of a request that was not seen, that of now is taken to be like it where it names `store`.
    """
    turn, named = place.turn, place.facts.store
    if turn is not None:
        named = turn.store if turn.store is not None or turn.told else named
        if named is None and not turn.told:
            return {Trait.STORE_UNKNOWN}
    return set() if named is False else {Trait.STORED}


def _follower_ids(place: Place) -> tuple[bool, ...]:
    """For each block of a turn: is an item that came after it sent with its server id (O4)?

    Of a turn that is gone as a whole only references count: an item with the id is another's.
    """
    sent = place.once_a_request(_references if place.at is None else _server_ids)
    found: list[bool] = []
    follows = False
    for block in reversed(place.turn.blocks if place.turn is not None else ()):
        spend()
        found.append(follows)
        carrier = BY_TYPE.get(block.type)
        ends = carrier is None or carrier.paired or block.kind is Kind.COMPACTION
        follows = not ends and (follows or not sent.isdisjoint(block.anchors))
    return tuple(reversed(found))


def _server_ids(place: Place) -> frozenset[bytes]:
    """The ids that the provider made, of all items of a request but results."""
    found: set[bytes] = set()
    for message in place.messages:
        for block in message.blocks:
            spend()
            if block.has_server_id and block.kind is not Kind.RESULT:
                found.update(block.anchors)
    return frozenset(found)


def _may_seal(body: Mapping[str, Any], facts: Facts) -> bool:
    """Models that do not reason seal nothing; the others do unless they happen not to reason."""
    asked = bool(facts.flags or body.get("reasoning"))
    return asked or not names_model(_NEVER_REASONS, facts.model)


def _references(place: Place) -> frozenset[bytes]:
    """The ids of all references to items."""
    spend(sum(len(message.blocks) for message in place.messages))
    blocks = (block for message in place.messages for block in message.blocks)
    return frozenset(a for block in blocks if block.kind is Kind.MARKER for a in block.anchors)


DIALECT = Dialect(
    name="openai",
    api=Api.RESPONSES,
    vendor="openai",
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
    models=lambda model: _KNOWN_MODEL.search(model) is not None,
    tools_separate=False,
    seals_anew=True,
    also_sealed=("signature",),
    may_seal=_may_seal,
)
