"""Whether a body has a key of sealed state at all, without reading it.

Model. A sealed value is the value of a key that a dialect declares, or is hidden in an id behind a
mark that one declares. Hosts put the state of one vendor on the wire of another, so the keys are
those of all dialects. `inside` is never false where `wire.read` would find a value:

* A key of JSON text is found as it is spelled; a text that could spell one of its letters with an
  escape counts as having one.
* Of a parsed body every key is looked at, and every text for a mark.
* A body that is neither counts as having one.

So it may say yes where nothing is sealed (a `data` of an image), and then costs what it would have
cost anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from otel_sealed.contract import Carrier, Dialect
from otel_sealed.model import STATE, Role
from otel_sealed.steps import spend
from otel_sealed.wire.parse import Unread

_ESCAPED: Final = re.compile(rb"\\u00[2-7]")  # what may stand for a character of a key
_ESCAPE: Final = b"\\u00"


class SealedKeys:
    """The keys and marks of sealed state of some dialects. Stateless."""

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        """`dialects`: those whose state may be in a body."""
        known = tuple(dialects)
        self.keys: frozenset[str] = frozenset(key for d in known for key in _keys(d))
        self.marks: frozenset[str] = frozenset(
            f.hidden[1] for d in known for c in d.carriers.values() for f in c.fields if f.hidden
        )
        names = "|".join(sorted(map(re.escape, self.keys)))
        self._pattern = re.compile(rf'"(?:{names})"\s*+:'.encode())
        self._marks = tuple(mark.encode() for mark in sorted(self.marks))

    def inside(self, body: Any) -> bool:
        """Whether a body, or a list of payloads, may hold sealed state."""
        if isinstance(body, (bytes, bytearray)):
            return self._spelled(body)
        if isinstance(body, str):
            return self._spelled(body.encode("utf-8", "surrogatepass"))
        if isinstance(body, (dict, list)):
            return any(map(self._holds, _walked(body)))
        return body is not None

    def _spelled(self, text: bytes | bytearray) -> bool:
        if self._pattern.search(text) is not None:
            return True
        for mark in self._marks:
            if mark in text:
                return True
        return _ESCAPE in text and _ESCAPED.search(text) is not None

    def _holds(self, value: Any) -> bool:
        if isinstance(value, dict):
            return not self.keys.isdisjoint(value)
        if isinstance(value, str):
            return any(mark in value for mark in self.marks) or self._text(value)
        return isinstance(value, (bytes, bytearray, memoryview, Unread))

    def _text(self, value: str) -> bool:
        """A payload of a stream, or arguments of a call, may be JSON in themselves."""
        return value[:1] in ("{", "[") and self._spelled(value.encode("utf-8", "surrogatepass"))


def _walked(body: Any) -> Iterator[Any]:
    """Every list, object and text of a parsed body."""
    waiting = [body]
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, dict):
            spend(1 + len(value))
            waiting.extend(value.values())
        elif isinstance(value, list):
            spend(1 + len(value))
            waiting.extend(value)


def _keys(dialect: Dialect) -> Iterator[str]:
    yield from dialect.sealed_keys
    for carrier in dialect.carriers.values():
        yield from _of(carrier)


def _of(carrier: Carrier) -> Iterator[str]:
    """The keys whose values have a row of their own: seals, and what is to go back as it came."""
    for field in carrier.fields:
        echoed = field.role is Role.ECHO and carrier.kind not in STATE  # else its block is seen
        if field.role is Role.SEAL or echoed:
            yield from field.names()
