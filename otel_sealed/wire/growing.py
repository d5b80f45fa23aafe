"""An object of a stream that comes in pieces.

Pieces are kept and joined once at the end: a text that is put together piece by piece costs the
square of its length. What the events hold is not changed: they may be the caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_sealed.wire.parse import as_text


class Growing:
    """A block, step or call. `block` has what came whole, and not what is in pieces."""

    __slots__ = ("_lists", "_pieces", "block")

    def __init__(self, block: Mapping[str, Any]) -> None:
        """`block`: what came first; it is copied."""
        self.block = dict(block)
        self._pieces: dict[str, list[str]] = {}
        self._lists: set[str] = set()

    def __contains__(self, name: str) -> bool:
        """Whether anything came under a key."""
        return name in self.block or name in self._pieces

    def add(self, name: str, piece: str) -> None:
        """Put a piece after the text of a key; what else was there is replaced."""
        pieces = self._pieces.get(name)
        if pieces is None:
            pieces = self._pieces[name] = [as_text(self.block.get(name))]
        pieces.append(piece)

    def put(self, name: str, value: Any) -> None:
        """Replace what is under a key."""
        self.block[name] = value
        self._pieces.pop(name, None)
        self._lists.discard(name)

    def append(self, name: str, item: Any) -> None:
        """Put an item at the end of the list of a key; what else was there is replaced."""
        if name not in self._lists:
            held = self.block.get(name)
            self.block[name] = list(held) if isinstance(held, list) else []
            self._lists.add(name)
        self.block[name].append(item)

    def has_text(self, name: str) -> bool:
        """Whether a text that is not empty is under a key."""
        return any(self._pieces.get(name, ())) or bool(as_text(self.block.get(name)))

    def whole(self) -> dict[str, Any]:
        """The object with its pieces joined. Nothing may come after it."""
        self.block.update({name: "".join(pieces) for name, pieces in self._pieces.items()})
        return self.block
