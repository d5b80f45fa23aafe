"""Claude Code: `projects/<folder>/<session>.jsonl`, and `agent-….jsonl` of subagents.

Each line is a record with `type` (`user`, `assistant`, `system`, `summary`,
`file-history-snapshot`, …), `sessionId`, `isSidechain`, `version`. A message of the model is spread
over several `assistant` records, one block each, that share `message.id` and repeat its usage. A
compaction is a `system` record with `subtype: compact_boundary`; the summary after it is a `user`
record. A refusal is an `assistant` record with `isApiErrorMessage` whose text quotes the body.
Sources: session files as published in issues and converters of that format, v2.0 to 2.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from otel_sealed.evidence.sessions.records import Kept, size
from otel_sealed.providers.refusals import classify
from otel_sealed.vocab import word
from otel_sealed.wire.parse import as_count, as_text

NAME: Final = "claude_code"

Json = dict[str, Any]


def owns(line: Json) -> bool:
    """Whether a line is a record of this agent."""
    kind = line.get("type")
    if not isinstance(kind, str) or isinstance(line.get("payload"), dict):
        return False
    return isinstance(line.get("sessionId"), str) or kind in ("summary", "file-history-snapshot")


def conversation(line: Json) -> Any:
    """What tells conversations of one file apart; None for records of none."""
    session = line.get("sessionId")
    if not isinstance(session, str):
        return None
    return session, line.get("isSidechain") is True, as_text(line.get("agentId"))


def add(kept: Kept, line: Json) -> None:
    """Count what a record adds to its conversation."""
    kept.sidechain = line.get("isSidechain") is True
    if isinstance(version := line.get("version"), str):
        kept.version = word(version)
    message = line.get("message")
    if line.get("subtype") == "compact_boundary":
        kept.compactions += 1
    elif line.get("type") == "assistant" and isinstance(message, dict):
        blocks = list(_objects(message.get("content")))
        if line.get("isApiErrorMessage") is True:
            _refused(kept, blocks)
        else:
            _message(kept, message, blocks)


def _message(kept: Kept, message: Json, blocks: list[Json]) -> None:
    if message.get("id") is None or message["id"] != kept.last:
        kept.last = message.get("id")
        kept.turns += 1
        _usage(kept, message.get("usage"))
    for block in blocks:
        if block.get("type") == "thinking":
            kept.block(block.get("signature"), size(block.get("thinking")))
        elif block.get("type") == "redacted_thinking":
            kept.block(block.get("data"), 0)


def _usage(kept: Kept, usage: Any) -> None:
    if not isinstance(usage, dict):
        return
    details = usage.get("output_tokens_details")
    thought = as_count(details.get("thinking_tokens")) if isinstance(details, dict) else None
    cached = as_count(usage.get("cache_read_input_tokens"))
    if thought is not None:
        kept.reasoning_tokens = max(kept.reasoning_tokens, 0) + thought
    if cached is not None:
        kept.cached_tokens = max(kept.cached_tokens, 0) + cached


def _refused(kept: Kept, blocks: list[Json]) -> None:
    """The error body stands in a text, behind a few words of the agent's."""
    for block in blocks:
        text = as_text(block.get("text"))
        try:
            body = json.loads(text[text.index("{") :])
        except (ValueError, RecursionError):
            continue
        if (refusal := classify(body)) is not None:
            kept.refused[refusal] += 1


def _objects(value: Any) -> Iterator[Json]:
    return (x for x in value if isinstance(x, dict)) if isinstance(value, list) else iter(())
