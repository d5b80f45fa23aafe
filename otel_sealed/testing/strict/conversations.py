"""`/v1/conversations`: items the server keeps (docs/contract/openai.md#o2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .records import Obj, Reply, Request, decode, objects, whole

if TYPE_CHECKING:
    from .mint import Mint

_PATH = re.compile(r"/v1/conversations(?:/(?P<id>[^/]+)(?:/items(?:/(?P<item>[^/]+))?)?)?")
_INCLUDE = "reasoning.encrypted_content"
_BORN = 1_790_000_000


class Conversations:
    """All conversations of one provider."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._items: dict[str, list[Obj]] = {}

    def matches(self, path: str) -> bool:
        """Say whether a path is one of conversations."""
        return _PATH.fullmatch(path) is not None

    def forget(self) -> None:
        """Lose them all."""
        self._items.clear()

    def held(self, ident: str) -> list[Obj] | None:
        """Give the items of a conversation, None where there is none of that id."""
        return self._items.get(ident)

    def add(self, ident: str, items: list[Obj]) -> None:
        """Put items behind those that are there; those without an id get one."""
        self._items[ident] += [{"id": self._mint.ident("item_"), **_spelled(x)} for x in items]

    def answer(self, request: Request) -> Reply | None:
        """Answer a request about conversations; None where there is no such thing."""
        found = _PATH.fullmatch(request.path)
        if found is None:
            return None
        sent = objects((decode(request.body) or {}).get("items"))
        ident = found["id"]
        if request.method == "POST" and ident is None:
            ident = self._mint.ident("conv_")
            self._items[ident] = []
            self.add(ident, sent)
            return whole(_conversation(ident))
        if ident not in self._items:
            return None
        if request.method == "POST":
            self.add(ident, sent)
            return _listed(self._items[ident][-len(sent) :])
        items = [_shown(item, request.query) for item in self._items[ident]]
        if found["item"]:
            return next((whole(x) for x in items if x["id"] == found["item"]), None)
        if "/items" not in request.path:
            return whole(_conversation(ident))
        return _listed(items if request.query.get("order") == "asc" else items[::-1])


def _spelled(item: Obj) -> Obj:
    """What may be said shortly is handed out in full."""
    if item.get("type", "message") != "message":
        return item
    content = item.get("content")
    if isinstance(content, str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    return {**item, "type": "message", "status": "completed", "content": content}


def _conversation(ident: str) -> Obj:
    return {"id": ident, "object": "conversation", "created_at": _BORN, "metadata": {}}


def _shown(item: Obj, query: Mapping[str, Any]) -> Obj:
    """Sealed only for who asks for it."""
    if _INCLUDE in (query.get("include"), query.get("include[]")) or item["type"] != "reasoning":
        return item
    return {name: x for name, x in item.items() if name != "encrypted_content"}


def _listed(items: list[Obj]) -> Reply:
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
    return whole({"object": "list", "data": items, "has_more": False, **ends})
