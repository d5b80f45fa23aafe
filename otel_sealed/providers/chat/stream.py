"""Chat Completions, streamed: the reply that chunks amount to.

Texts and signatures come in pieces, encrypted data and Google's signatures whole. What belongs to
what is told by `index`, where a host gives one that can be told apart. Sources: OpenRouter's
components, pi#9534 (a chunk with nothing but a signature), ai-sdk-provider#339 (details of parallel
calls); docs/sdk-surface.md#streams-of-chat-completions. Checked 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from otel_sealed.digest import spelled
from otel_sealed.steps import spend
from otel_sealed.wire.growing import Growing
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
        self.lists: dict[str, _Details] = {}
        self.calls = _Calls()
        self.function: Growing | None = None
        self.others: dict[str, _Merged] = {}
        self.finish = ""
        self.signing = ""

    def add(self, delta: Mapping[str, Any]) -> None:
        spend()
        content = delta.get("content")
        if isinstance(content, str):
            self.content.append(content)
        elif isinstance(content, list):
            self.parts += content
        for key in ("reasoning_details", "thinking_blocks"):
            for piece in _objects(delta.get(key)):
                at = self.lists.setdefault(key, _Details()).add(piece)
                signed = any(as_text(piece.get(name)) for name in _SEALS)
                self.signing = f"{key}.{at}" if signed else ""
        for piece in _objects(delta.get("tool_calls")):
            self.calls.add(piece)
        if isinstance(delta.get("function_call"), dict):
            self.function = self.function or Growing({})
            _join(self.function, delta["function_call"], _CALLED)
        for key in _BESIDE:
            if isinstance(delta.get(key), dict):
                self.others.setdefault(key, _Merged()).add(delta[key])

    def message(self) -> dict[str, Any]:
        text = "".join(self.content)
        message: dict[str, Any] = {"role": "assistant", "content": self.parts or text or None}
        message |= {key: details.whole() for key, details in self.lists.items()}
        if self.function is not None:
            message["function_call"] = self.function.whole()
        message |= {key: merged.whole for key, merged in self.others.items()}
        if self.calls.calls:
            message["tool_calls"] = self.calls.whole()
        return message


class _Details:
    """The items of one list of reasoning; a piece goes on with the newest item it may be of.

    Not every host counts its items: a text after a signature begins a new one, and what comes
    encrypted comes whole.
    """

    def __init__(self) -> None:
        self._items: list[Growing] = []
        self._newest: dict[tuple[str, object], int] = {}

    def add(self, piece: Mapping[str, Any]) -> int:
        """The number of the item that a piece is of."""
        spend()
        kind, index = piece.get("type"), piece.get("index")
        key = (repr(kind), index if isinstance(index, int) else repr(index))
        at = self._newest.get(key, -1)
        counted = index is not None or at == len(self._items) - 1
        if at < 0 or kind in _WHOLE or not counted or not _continues(self._items[at], piece):
            at = self._newest[key] = len(self._items)
            self._items.append(Growing({}))
        _join(self._items[at], piece, _PIECES)
        return at

    def whole(self) -> list[dict[str, Any]]:
        return [item.whole() for item in self._items]


class _Calls:
    """The tool calls of a choice: a piece goes on with the newest call it may be of.

    That is one with the same index and no other id: Google counts parallel calls all as number 0.
    """

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self._newest: dict[object, _Call] = {}
        self._unnamed: dict[object, list[_Call]] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        spend()
        call = self._of(piece)
        if call is None:
            call = _Call(len(self.calls))
            self.calls.append(call)
            self._unnamed.setdefault(_any, []).append(call)
            self._unnamed.setdefault(_key(piece.get("index")), []).append(call)
        call.add(piece)
        index, name = _key(piece.get("index")), call.name
        for key in ((_any, None), (index, None), (_any, name), (index, name)):
            newest = self._newest.get(key)
            if newest is None or newest.number < call.number:
                self._newest[key] = call

    def _of(self, piece: Mapping[str, Any]) -> _Call | None:
        index = _any if piece.get("index") is None else _key(piece["index"])
        name = as_text(piece.get("id"))
        if not name:
            return self._newest.get((index, None))
        unnamed = self._unnamed.get(index, [])
        while unnamed and unnamed[-1].name:
            spend()
            unnamed.pop()
        found = [self._newest.get((index, name)), *unnamed[-1:]]
        return max((c for c in found if c is not None), key=lambda c: c.number, default=None)

    def whole(self) -> list[dict[str, Any]]:
        return [call.whole() for call in self.calls]


class _Call:
    """One tool call while its pieces come in."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._call: dict[str, Any] = {}
        self._inner: dict[str, Growing] = {}
        self._beside: dict[str, _Merged] = {}

    @property
    def name(self) -> str:
        """Its id, empty as long as none came."""
        return as_text(self._call.get("id"))

    def add(self, piece: Mapping[str, Any]) -> None:
        for name, value in piece.items():
            if name in ("function", "custom") and isinstance(value, dict):
                _join(self._inner.setdefault(name, Growing({})), value, _CALLED)
            elif name in _BESIDE and isinstance(value, dict):
                self._beside.setdefault(name, _Merged()).add(value)
            elif value is not None and not (name == "id" and self._call.get("id")):
                self._call[name] = value

    def whole(self) -> dict[str, Any]:
        inner = {name: growing.whole() for name, growing in self._inner.items()}
        return self._call | inner | {name: merged.whole for name, merged in self._beside.items()}


class _Merged:
    """An object that comes in parts: new keys and new items of its lists are added to it."""

    def __init__(self) -> None:
        self.whole: dict[str, Any] = {}
        self._held: dict[str, set[bytes]] = {}

    def add(self, new: Mapping[str, Any]) -> None:
        for name, value in new.items():
            spend()
            held = self.whole.get(name)
            if isinstance(value, dict):
                if not isinstance(held, dict):
                    held = self.whole[name] = {}
                held.update(value)
            elif isinstance(value, list):
                if not isinstance(held, list):
                    held = self.whole[name] = []
                    self._held[name] = set()
                spelt = [(spelled(one), one) for one in value]
                held += [one for spelling, one in spelt if spelling not in self._held[name]]
                self._held[name].update(spelling for spelling, _ in spelt)
            elif value is not None:
                self.whole[name] = value


_CALLED: Final = ("arguments", "input")
_any: Final = object()


def _key(index: object) -> object:
    return index if isinstance(index, (int, str)) else repr(index)


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


def _continues(item: Growing, piece: Mapping[str, Any]) -> bool:
    """Whether a piece is no text after a signature."""
    readable = any(as_text(piece.get(name)) for name in _PIECES if name not in _SEALS)
    return not (readable and any(item.has_text(name) for name in _SEALS))


def _join(into: Growing, piece: Mapping[str, Any], pieces: tuple[str, ...]) -> None:
    """Pieces of text after what came; anything else as it is, null where nothing else came."""
    for name, value in piece.items():
        spend()
        if name in pieces and isinstance(value, str):
            into.add(name, value)
        elif value is not None or name not in into:
            into.put(name, value)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
