"""Codex: `sessions/YYYY/MM/DD/rollout-….jsonl`, also as `.jsonl.zst`.

Each line is `{timestamp, type, payload}` with `type` one of `session_meta`, `turn_context`,
`response_item`, `event_msg`, `compacted`, and of later releases a few more. The payload of a
`response_item` is an item of the Responses API; `compacted` holds the summary and, since it is done
by the server, a `replacement_history` with a sealed compaction item. `event_msg` of type
`token_count` has running totals. Before autumn 2025 a line was the bare item. Source: the rollout
and protocol crates of the openai/codex repository.
"""

from __future__ import annotations

from typing import Any, Final

from otel_sealed.evidence.sessions.records import Kept, size
from otel_sealed.vocab import word
from otel_sealed.wire.parse import as_count, as_text

NAME: Final = "codex"

Json = dict[str, Any]

_LINES: Final = frozenset(
    ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state")
)
_ITEMS: Final = frozenset(("message", "reasoning", "function_call", "function_call_output"))
_COMPACTIONS: Final = ("compaction", "compaction_summary", "context_compaction")


def owns(line: Json) -> bool:
    """Whether a line is a record of this agent."""
    kind = as_text(line.get("type"))
    if isinstance(line.get("payload"), dict):
        return kind in _LINES
    bare = kind in _ITEMS and not isinstance(line.get("sessionId"), str)
    return bare or "record_type" in line


def conversation(_line: Json) -> Any:
    """One file is one conversation."""
    return NAME


def add(kept: Kept, line: Json) -> None:
    """Count what a record adds to its conversation."""
    payload = line.get("payload")
    if not isinstance(payload, dict):
        _item(kept, line)
        return
    match line.get("type"):
        case "session_meta":
            if isinstance(version := payload.get("cli_version"), str):
                kept.version = word(version)
            source = payload.get("source")
            kept.sidechain = kept.sidechain or (isinstance(source, dict) and "subagent" in source)
        case "turn_context":
            kept.turns += 1
        case "response_item":
            _item(kept, payload)
        case "event_msg":
            _usage(kept, payload)
        case "compacted":
            kept.compactions += 1
            history = payload.get("replacement_history")
            items = history if isinstance(history, list) else []
            kept.compactions_sealed += any(_sealed_summary(item) for item in items)
        case _:
            pass


def _item(kept: Kept, item: Json) -> None:
    if item.get("type") == "reasoning":
        text = _text(item.get("summary")) + _text(item.get("content"))
        kept.block(item.get("encrypted_content"), text)


def _text(parts: Any) -> int:
    pieces = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return sum(size(part.get("text")) for part in pieces)


def _sealed_summary(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("type") in _COMPACTIONS
        and bool(item.get("encrypted_content"))
    )


def _usage(kept: Kept, event: Json) -> None:
    """Totals only grow, so the last one stands; a resumed file repeats earlier ones."""
    info = event.get("info")
    total = info.get("total_token_usage") if isinstance(info, dict) else None
    if event.get("type") != "token_count" or not isinstance(total, dict):
        return
    reasoned = as_count(total.get("reasoning_output_tokens"))
    cached = as_count(total.get("cached_input_tokens"))
    kept.reasoning_tokens = max(kept.reasoning_tokens, -1 if reasoned is None else reasoned)
    kept.cached_tokens = max(kept.cached_tokens, -1 if cached is None else cached)
