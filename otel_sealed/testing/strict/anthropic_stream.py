"""A message as the events of a stream: the order and the places in which seals really come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .sse import deltas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .records import Obj


def events(message: Obj) -> Iterator[Obj]:
    """Tell a message as a stream does, from `message_start` to `message_stop`."""
    usage = message["usage"]
    opening = {
        **message,
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 1, "output_tokens_details": {"thinking_tokens": 0}},
    }
    yield {"type": "message_start", "message": opening}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield from _block(index, block)
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {
            name: usage[name]
            for name in (
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
                "output_tokens",
                "output_tokens_details",
            )
        },
    }
    yield {"type": "message_stop"}


def _block(index: int, block: Obj) -> Iterator[Obj]:
    yield {"type": "content_block_start", "index": index, "content_block": _opening(block)}
    for delta in _deltas(block):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _opening(block: Obj) -> Obj:
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
        case "tool_use":
            return {**block, "input": {}}
        case _:
            return block  # redacted thinking comes complete, without deltas


def _deltas(block: Obj) -> Iterator[Obj]:
    match block["type"]:
        case "thinking":
            for text in deltas(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": text}
            # A4: exactly one, just before the block stops.
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for text in deltas(block["text"]):
                yield {"type": "text_delta", "text": text}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for text in deltas(json.dumps(block["input"], ensure_ascii=False)):
                yield {"type": "input_json_delta", "partial_json": text}
        case _:
            return
