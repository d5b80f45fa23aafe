"""Chat Completions, streamed: the reply that chunks amount to.

Texts and signatures come in pieces, encrypted data and Google's signatures whole. What belongs to
what is told by `index`, where a host gives one that can be told apart. Sources: OpenRouter's
components, pi#9534 (a chunk with nothing but a signature), ai-sdk-provider#339 (details of parallel
calls); docs/sdk-surface.md#streams-of-chat-completions. Checked 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from otel_sealed.wire.parse import as_text

_SEALS: Final = frozenset({"signature"})
_WHOLE: Final = frozenset({"reasoning.encrypted", "redacted_thinking"})
_PIECES: Final = ("text", "thinking", "summary", "signature")
_BESIDE: Final = ("extra_content", "provider_specific_fields")


class _Choice:
    """One choice while its chunks come in."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.parts: list[Any] = []
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.calls: list[dict[str, Any]] = []
        self.others: dict[str, Any] = {}
        self.finish = ""
        self.signing = ""

    def add(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        if isinstance(content, str):
            self.content.append(content)
        elif isinstance(content, list):
            self.parts += content
        for key in ("reasoning_details", "thinking_blocks"):
            for piece in _objects(delta.get(key)):
                self._reason(key, piece)
        for piece in _objects(delta.get("tool_calls")):
            self._call(piece)
        if isinstance(delta.get("function_call"), dict):
            _join(self.others.setdefault("function_call", {}), delta["function_call"], _CALLED)
        for key in _BESIDE:
            if isinstance(delta.get(key), dict):
                _merge(self.others.setdefault(key, {}), delta[key])

    def _reason(self, key: str, piece: Mapping[str, Any]) -> None:
        items = self.lists.setdefault(key, [])
        open_ = items if piece.get("index") is not None else items[-1:]
        found = next((item for item in reversed(open_) if _continues(item, piece)), None)
        at = -1 if found is None else next(n for n, item in enumerate(items) if item is found)
        if at < 0:
            at = len(items)
            items.append({})
        _join(items[at], piece, _PIECES)
        signed = any(as_text(piece.get(name)) for name in _SEALS)
        self.signing = f"{key}.{at}" if signed else ""

    def _call(self, piece: Mapping[str, Any]) -> None:
        call = next((c for c in reversed(self.calls) if _same_call(c, piece)), None)
        if call is None:
            call = {}
            self.calls.append(call)
        for name, value in piece.items():
            if name in ("function", "custom") and isinstance(value, dict):
                _join(_inner(call, name), value, _CALLED)
            elif name in _BESIDE and isinstance(value, dict):
                _merge(_inner(call, name), value)
            elif value is not None and not (name == "id" and call.get("id")):
                call[name] = value

    def message(self) -> dict[str, Any]:
        text = "".join(self.content)
        message: dict[str, Any] = {"role": "assistant", "content": self.parts or text or None}
        message |= self.lists | self.others
        if self.calls:
            message["tool_calls"] = self.calls
        return message


_CALLED: Final = ("arguments", "input")


def fold(events: Iterable[Any]) -> dict[str, Any]:
    """The chat completion a stream amounts to. Whole once a choice said why it stopped."""
    body: dict[str, Any] = {}
    choices: dict[int, _Choice] = {}
    for event in events:
        if not isinstance(event, dict):
            continue
        body.update({k: v for k, v in event.items() if k != "choices" and v is not None})
        for told in _objects(event.get("choices")):
            index = told.get("index")
            choice = choices.setdefault(index if isinstance(index, int) else 0, _Choice())
            for key in ("delta", "message"):
                if isinstance(told.get(key), dict):
                    choice.add(told[key])
            choice.finish = as_text(told.get("finish_reason")) or choice.finish
            if told.get("error"):
                body["error"] = told["error"]
    body["choices"] = [
        {"index": index, "message": choice.message(), "finish_reason": choice.finish or None}
        for index, choice in sorted(choices.items())
    ]
    body["complete"] = any(choice.finish for choice in choices.values())
    body["cut"] = [choice.signing for choice in choices.values() if choice.signing]
    return body


def _continues(item: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Whether a piece goes on with an item that came before it.

    Not every host counts its items: a text behind a signature begins a new one, and what comes
    encrypted comes whole.
    """
    kind = piece.get("type")
    if kind in _WHOLE or kind != item.get("type") or piece.get("index") != item.get("index"):
        return False
    readable = any(as_text(piece.get(name)) for name in _PIECES if name not in _SEALS)
    return not (readable and any(as_text(item.get(name)) for name in _SEALS))


def _same_call(call: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """The same index and no other id: Google counts parallel calls all as number 0."""
    if piece.get("index") is not None and piece.get("index") != call.get("index"):
        return False
    named = as_text(piece.get("id"))
    return not named or not call.get("id") or named == call["id"]


def _inner(into: dict[str, Any], name: str) -> dict[str, Any]:
    """The object under a key, a new one where something else stands."""
    if not isinstance(into.get(name), dict):
        into[name] = {}
    found: dict[str, Any] = into[name]
    return found


def _join(into: dict[str, Any], piece: Mapping[str, Any], pieces: tuple[str, ...]) -> None:
    """Pieces of text behind what came; anything else as it is, null where nothing else came."""
    for name, value in piece.items():
        if name in pieces and isinstance(value, str) and isinstance(into.get(name), str):
            into[name] += value
        elif value is not None or name not in into:
            into[name] = value


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    """What is new in an object or a list behind what came, and the newest of anything else."""
    for name, value in new.items():
        held = into.get(name)
        if isinstance(value, dict) and isinstance(held, dict):
            into[name] = {**held, **value}
        elif isinstance(value, list) and isinstance(held, list):
            into[name] = held + [one for one in value if one not in held]
        elif value is not None:
            into[name] = value


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
