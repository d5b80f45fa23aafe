"""Gemini Interactions, streamed: the interaction that events amount to.

Source: docs/sdk-surface.md#streams-of-google. Checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otel_sealed.steps import spend
from otel_sealed.wire.growing import Growing
from otel_sealed.wire.parse import as_text

LISTS = ("steps", "outputs")
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
            body.update({k: v for k, v in event["interaction"].items() if v or k not in LISTS})
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
    if not any(body.get(name) for name in LISTS):
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
