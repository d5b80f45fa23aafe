"""Anthropic Messages, streamed: the message that events amount to.

Source: docs/sdk-surface.md#streams-of-anthropic. Checked 2026-11-29.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from otel_sealed.steps import spend
from otel_sealed.wire.growing import Growing
from otel_sealed.wire.parse import as_text


def fold(events: Iterable[Any]) -> dict[str, Any]:
    """The message a stream amounts to. Seals are appended, not assigned, unlike the SDK (A1).

    Only a signature comes in deltas; what else is sealed stands in one event as a whole (A4).
    """
    message: dict[str, Any] = {"content": []}
    usage: dict[str, Any] = {}
    blocks: dict[int, Growing] = {}
    signing: set[int] = set()
    complete = False
    for event in events:
        spend()
        if not isinstance(event, dict):
            continue
        kind = event.get("type")
        if kind == "content_block_delta" and isinstance(delta := event.get("delta"), dict):
            index = _index(event)
            if index not in blocks:
                blocks[index] = Growing({"type": "other"})
            _take(blocks[index], delta)
            if delta.get("type") == "signature_delta":
                signing.add(index)
        elif kind == "message_start" and isinstance(event.get("message"), dict):
            message.update(event["message"])
            usage = dict(message["usage"]) if isinstance(message.get("usage"), dict) else {}
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[_index(event)] = Growing(event["content_block"])
        elif kind == "content_block_stop":
            signing.discard(_index(event))
        elif kind == "message_delta":
            _message_delta(message, usage, event)
            complete = complete or bool(message.get("stop_reason"))
        elif kind == "message_stop":
            complete = True
        elif kind == "error":
            message["error"] = event.get("error")
    order = sorted(blocks)
    message["content"] = [_closed(blocks[index].whole()) for index in order]
    message["complete"] = complete
    message["cut"] = [f"content.{at}" for at, index in enumerate(order) if index in signing]
    return message


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


_APPENDED = {
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "text_delta": ("text", "text"),
    "input_json_delta": ("partial_json", "_json"),
}


def _take(block: Growing, delta: Mapping[str, Any]) -> None:
    kind = delta.get("type")
    names = _APPENDED.get(kind) if isinstance(kind, str) else None
    if names is not None:
        source, target = names
        block.add(target, as_text(delta.get(source)))
    elif kind == "compaction_delta":
        for key in ("content", "encrypted_content", "signature", "tool_changes"):
            if delta.get(key) is not None:
                block.put(key, delta[key])
    elif kind == "citations_delta":
        block.append("citations", delta.get("citation"))


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    if "_json" in block:
        text = block.pop("_json")
        try:
            block["input"] = json.loads(text) if text else block.get("input", {})
        except (ValueError, RecursionError):
            block["input"] = text
    return block


def _message_delta(
    message: dict[str, Any], usage: dict[str, Any], event: Mapping[str, Any]
) -> None:
    delta = event.get("delta")
    if isinstance(delta, dict):
        message.update({k: v for k, v in delta.items() if v is not None})
    if isinstance(event.get("usage"), dict):
        usage.update(event["usage"])
        message["usage"] = usage
    if isinstance(event.get("input_transformations"), list):
        message["input_transformations"] = event["input_transformations"]
