"""Bedrock Converse: where sealed state lives, how streams bring it, who may omit what.

What Claude does with its reasoning it does here, too: whether it thinks, which of its models bind
what stands before a block, is asked of the tables of Messages. Of other models on this wire nothing
is known: what is sent to them is at most `unverifiable`.

Sources: docs/contract/bedrock.md. Checked 2026-12-01.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from otel_sealed.contract import Api, Dialect, Exchange, RawAnswer, RawMessage
from otel_sealed.model import Facts, Usage
from otel_sealed.providers.bedrock.rules import IMPOSSIBLE, RULES
from otel_sealed.providers.bedrock.sealed import BY_KEY, BY_TYPE, PATHS, REASONING, REDACTED
from otel_sealed.providers.bedrock.stream import EVENTS, fold
from otel_sealed.providers.claude import model as claude
from otel_sealed.vocab import names_model
from otel_sealed.wire.parse import as_count, as_text, lookup


def _asks(body: Mapping[str, Any]) -> bool:
    return isinstance(body.get("messages"), list) and "max_tokens" not in body


def _answers(body: Mapping[str, Any]) -> bool:
    if not body.keys().isdisjoint(EVENTS):
        return True
    return isinstance(lookup(body, "output.message.content"), list)


def _type_of(block: Mapping[str, Any]) -> str:
    reasoning = block.get("reasoningContent")
    if isinstance(reasoning, dict):
        return REDACTED if "redactedContent" in reasoning else REASONING
    return next((BY_KEY[key] for key in block if key in BY_KEY), "other")


def _messages(body: Mapping[str, Any]) -> Iterator[RawMessage]:
    return claude.messages(body, _is_result)


def _is_result(part: Any) -> bool:
    return isinstance(part, dict) and "toolResult" in part


def _answer(body: Any) -> RawAnswer:
    if not isinstance(body, dict):
        return RawAnswer(())
    content = lookup(body, "output.message.content")
    if not isinstance(content, list):
        return RawAnswer((), error=body)
    return RawAnswer(
        parts=tuple([(f"content.{j}", part) for j, part in enumerate(content)]),
        path="output.message",
        stop=as_text(body.get("stopReason")),
        usage=_usage(body.get("usage")),
        error=body.get("error") or None,
    )


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    read = as_count(usage.get("cacheReadInputTokens"))
    write = as_count(usage.get("cacheWriteInputTokens"))
    plain = as_count(usage.get("inputTokens"))
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (write or 0),
        output_tokens=as_count(usage.get("outputTokens")),
        cache_read_tokens=read,
        cache_write_tokens=write,
    )


def _facts(body: Mapping[str, Any], exchange: Exchange) -> Facts:
    more = body.get("additionalModelRequestFields")
    more = more if isinstance(more, dict) else {}
    thinking = more.get("thinking", more.get("reasoning_config"))
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    return Facts(
        dialect="bedrock",
        vendor="",
        model=exchange.model or "",
        thinking=None if kind is None else kind != "disabled",
        flags=("manual_thinking",) if kind == "enabled" else (),
    )


def _reference(_body: Mapping[str, Any]) -> tuple[str, str]:
    return "", ""


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"system": body.get("system") or None, "tools": lookup(body, "toolConfig.tools")}


DIALECT = Dialect(
    name="bedrock",
    api=Api.CONVERSE,
    vendor="amazon",
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
    models=lambda model: names_model(claude.KNOWN_MODEL, model),
    may_seal=claude.may_seal,
)
