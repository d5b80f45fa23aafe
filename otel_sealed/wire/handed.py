"""What the SDK's own object for an answer was seen to lack of what the wire brought.

Theory of operation. A sealed value has a dotted place on the wire (`content.0.signature`). An SDK
mirrors the wire, so the same steps lead through its object: keys of mappings, items of lists,
attributes of models. A value is lost where the way to its block can be gone and the block of the
same type has no such value, or another one, or the list it should be an item of has no such item.
A way that cannot be gone says nothing: a raw response, an unread stream, a class of the caller's.
Two objects are never compared as wholes, nothing is turned into text or JSON, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from otel_sealed.contract import Dialect, Field
from otel_sealed.digest import Digest
from otel_sealed.model import Block, Role, State, Value
from otel_sealed.model.record import replace
from otel_sealed.wire.parse import first_text

_SEAL, _PRESENT = Role.SEAL, State.PRESENT
_UNSEEN: Final = object()
_NO_KEY: Final = object()
_NO_ITEM: Final = object()


@dataclass(frozen=True, slots=True)
class Handed:
    """The object the SDK handed out for an answer, and what none of its objects can hold."""

    sdk: Any = None
    lacks: frozenset[str] = frozenset()

    @property
    def seen(self) -> bool:
        """Whether there is anything to hold an answer against."""
        return self.sdk is not None or bool(self.lacks)

    def mark(self, block: Block, path: str, part: Any, dialect: Dialect, digest: Digest) -> Block:
        """`block`, its lost seals marked.

        `path` is the place of all blocks of the answer; `part` the block as the wire brought it.
        """
        seals = [v for v in block.values if v.role is _SEAL and v.state is _PRESENT]
        if not seals:
            return block
        place = f"{path}.{block.sub}" if path and block.sub else path or block.sub
        found = self._block(place, block.type, dialect)
        carrier = dialect.carriers.get(block.type)
        fields = {f.artifact: f for f in carrier.fields} if carrier is not None else {}
        lost = [v for v in seals if self._lost(v, fields.get(v.artifact), found, part, digest)]
        if not lost:
            return block
        values = [replace(value, lost=value in lost) for value in block.values]
        return replace(block, values=tuple(values))

    def _block(self, place: str, kind: str, dialect: Dialect) -> Any:
        """The block in the SDK's object, `_NO_ITEM` where it was left out, else `_UNSEEN`."""
        if self.sdk is None:
            return _UNSEEN
        found = self.sdk
        for key in place.split("."):
            found = _step(found, key)
            if found is _NO_ITEM:
                return found
            if found is _UNSEEN or found is _NO_KEY:
                return _UNSEEN
        named = _step(found, "type")
        wanted = kind if kind in dialect.carriers else named
        return found if named is _NO_KEY or named == wanted else _UNSEEN

    def _lost(
        self, value: Value, field: Field | None, found: Any, part: Any, digest: Digest
    ) -> bool:
        if value.artifact in self.lacks or found is _NO_ITEM:
            return True
        if field is None or found is _UNSEEN:
            return False
        for key, mark in field.places:
            now = found
            for step in key.split("."):
                now = _step(now, step)
            if isinstance(now, str):
                now = now.partition(mark)[2] if mark else now
                if now:
                    if now == first_text(part, field.places):
                        return False  # the very text: there is nothing to hash
                    return digest.text(now) != value.digest and digest.canon(now) != value.canon
            elif isinstance(now, bytes) and now:
                return digest.blob(now) != value.canon
        return True


NOTHING_SEEN: Final = Handed()


def _step(found: Any, key: str) -> Any:
    """One step down. An object of somebody else's may raise anything when it is asked."""
    try:
        if isinstance(found, Mapping):
            return found.get(key, _NO_KEY)
        if isinstance(found, list):
            at = int(key)
            return found[at] if at < len(found) else _NO_ITEM
        return getattr(found, key, _NO_KEY)
    except Exception:  # noqa: BLE001
        return _UNSEEN
