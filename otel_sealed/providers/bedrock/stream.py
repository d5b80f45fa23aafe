"""Bedrock Converse, streamed: the response that events amount to.

Source: docs/contract/bedrock.md. Checked 2026-12-01.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from otel_sealed.digest import decode_blob
from otel_sealed.steps import spend
from otel_sealed.wire.growing import Growing
from otel_sealed.wire.parse import as_text

EVENTS = frozenset(
    {
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    }
)
_OPEN, _SEALING, _OVER = 0, 1, 2


class _Block:
    """A block in the making: `state` says whether its seal has begun to come, or all of it came."""

    def __init__(self) -> None:
        self.text = Growing({})
        self.tool: dict[str, Any] | None = None
        self.redacted: list[bytes] = []
        self.state = _OPEN

    def take(self, name: str, event: Mapping[str, Any]) -> None:
        """One event of this block."""
        start, delta = event.get("start"), event.get("delta")
        if name == "contentBlockStop":
            self.state = _OVER
        elif isinstance(start, dict) and isinstance(start.get("toolUse"), dict):
            self.tool = dict(start["toolUse"])
        elif isinstance(delta, dict):
            self._add(delta)

    def _add(self, delta: Mapping[str, Any]) -> None:
        reasoning, tool = delta.get("reasoningContent"), delta.get("toolUse")
        if isinstance(reasoning, dict):
            self._reason(reasoning)
        elif isinstance(tool, dict):
            self.tool = self.tool or {}
            self.text.add("input", as_text(tool.get("input")))
        elif isinstance(delta.get("text"), str):
            self.text.add("text", delta["text"])

    def _reason(self, delta: Mapping[str, Any]) -> None:
        if isinstance(delta.get("text"), str):
            self.text.add("reasoning", delta["text"])
        if isinstance(delta.get("signature"), str):
            self.text.add("signature", delta["signature"])
            self.state = _SEALING
        data = delta.get("redactedContent")
        data = decode_blob(data) if isinstance(data, str) else data
        if isinstance(data, bytes):
            self.redacted.append(data)
            self.state = _SEALING

    def whole(self) -> dict[str, Any]:
        """The block as a whole response has it."""
        held = self.text.whole()
        if self.redacted:
            data = base64.b64encode(b"".join(self.redacted)).decode()
            return {"reasoningContent": {"redactedContent": data}}
        if "reasoning" in held or "signature" in held:
            text: dict[str, Any] = {"text": held.get("reasoning", "")}
            if "signature" in held:
                text["signature"] = held["signature"]
            return {"reasoningContent": {"reasoningText": text}}
        if self.tool is not None:
            return {"toolUse": {**self.tool, "input": held.get("input") or {}}}
        return {"text": held.get("text", "")}


def fold(events: Iterable[Any]) -> dict[str, Any]:
    """The response a stream amounts to."""
    blocks: dict[int, _Block] = {}
    body: dict[str, Any] = {}
    complete = False
    for event in events:
        spend()
        for name, value in event.items() if isinstance(event, dict) else ():
            if not isinstance(value, dict):
                continue
            if name.startswith("contentBlock"):
                at = value.get("contentBlockIndex")
                blocks.setdefault(at if isinstance(at, int) else 0, _Block()).take(name, value)
            elif name == "messageStop":
                body["stopReason"] = value.get("stopReason")
                complete = True
            elif name == "metadata":
                body["usage"] = value.get("usage")
            elif name.endswith("Exception"):
                body["error"] = value
    order = sorted(blocks)
    body["output"] = {
        "message": {"role": "assistant", "content": [blocks[at].whole() for at in order]}
    }
    body["cut"] = [f"content.{n}" for n, at in enumerate(order) if blocks[at].state == _SEALING]
    body["complete"] = complete
    return body
