"""Gemini generateContent, streamed: the response that chunks amount to.

Source: docs/sdk-surface.md#streams-of-google. Checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otel_sealed.steps import spend
from otel_sealed.wire.parse import as_text


def parts_of(content: Any) -> tuple[Any, ...]:
    """The parts of a content; none where it has no list of them."""
    parts = content.get("parts") if isinstance(content, dict) else None
    return tuple(parts) if isinstance(parts, list) else ()


def candidate_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first candidate of a response or chunk, the only one that is carried on."""
    candidates = body.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        return candidates[0]
    return {}


def fold(events: Iterable[Any]) -> dict[str, Any]:
    """The response a stream amounts to: the parts of all chunks, unsigned text deltas joined."""
    response: dict[str, Any] = {}
    parts: list[Any] = []
    pieces: list[str] = []  # of the last part
    stop = ""
    for event in events:
        spend(1 + len(event) if isinstance(event, dict) else 1)
        if not isinstance(event, dict):
            continue
        response.update(event)
        candidate = candidate_of(event)
        stop = as_text(candidate.get("finishReason")) or stop
        for part in parts_of(candidate.get("content")):
            spend()
            if parts and _delta(parts[-1], part):
                pieces.append(part["text"])
                continue
            _join(parts, pieces)
            parts.append(part)
            pieces = [part["text"]] if isinstance(part, dict) and "text" in part else []
    _join(parts, pieces)
    response.pop("candidates", None)
    if parts or stop:
        content = {"role": "model", "parts": parts}
        response["candidates"] = [{"content": content, "finishReason": stop or None}]
    response["complete"] = bool(stop)
    return response


def _join(parts: list[Any], pieces: list[str]) -> None:
    if len(pieces) > 1:
        parts[-1] = {**parts[-1], "text": "".join(pieces)}


def _delta(before: Any, part: Any) -> bool:
    """Whether two parts of a stream are pieces of one unsigned text."""
    return (
        isinstance(before, dict)
        and isinstance(part, dict)
        and isinstance(before.get("text"), str)
        and isinstance(part.get("text"), str)
        and before.keys() == part.keys() <= {"text", "thought"}
        and before.get("thought") == part.get("thought")
    )
