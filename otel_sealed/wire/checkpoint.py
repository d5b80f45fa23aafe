"""Checkpoints: how much of a request is byte for byte what an earlier one began with.

A conversation's next request repeats the whole history and adds a little. A history is cut into
segments, one a message, each known by its length and a hash; a later request that repeats them
needs only what follows parsed. Many segments in a row are known as one group, too, so that a long
history is compared in few pieces. Bytes are compared by Python's own keyed 64-bit hash: it never
leaves the process, and a stranger cannot aim at it.
"""

from __future__ import annotations

import json
import marshal
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final, NamedTuple

from otel_sealed.wire.parse import MAX_BODY, Unread, charge, loads

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_OPENING = re.compile(rb'"[ \t\r\n]*:[ \t\r\n]*\[[ \t\r\n]*')
_TRIES = 4
_MARKS: Final = tuple(accumulate(range(88), lambda at, _: at + at // 8, initial=64))
"""Where the marks of a history are: at its first 64 bytes, then each an eighth further, to 2 MB."""
_SHORT = 256
GROUP: Final = 32
"""Segments in a group."""


class Segment(NamedTuple):
    """A stretch of a history: how long it is (bytes, or items), and its hash."""

    length: int
    hash: int


_length: Final[Callable[[Segment], int]] = itemgetter(0)


class Known(NamedTuple):
    """The beginning of a history as it is remembered: all segments, and their full groups."""

    segments: tuple[Segment, ...] = ()
    groups: tuple[Segment, ...] = ()

    def first(self, count: int) -> Known:
        """What is known of the first `count` segments."""
        if count == len(self.segments):
            return self
        return Known(self.segments[:count], self.groups[: count // GROUP])

    @property
    def length(self) -> int:
        """How long it is in all (bytes, or items)."""
        grouped = len(self.groups) * GROUP
        return sum(map(_length, self.groups)) + sum(map(_length, self.segments[grouped:]))


class Rest(NamedTuple):
    """What follows the known segments.

    `items`: the parsed messages; `segments`: the stretch each of them is; `around`: a hash of all
    that stands before and behind the history; `body`: the request with `items` as its history.
    """

    items: list[Any]
    segments: list[Segment]
    around: int
    body: dict[str, Any]


class ByteHistory:
    """The history of a request body in JSON bytes."""

    def __init__(self, body: bytes, root: str, start: int) -> None:
        """`start`: offset of the first message, right behind the bracket."""
        self._body = body
        self._root = root
        self._start = start
        self._known: dict[tuple[int, int], int] = {}
        self._marks = [self._at(start, _MARKS[0])]

    def mark(self, depth: int) -> int:
        """A hash of how the history begins, to find its likes by: the deeper, the more of it."""
        while len(self._marks) <= depth:
            begin, end = _MARKS[len(self._marks) - 1 : len(self._marks) + 1]
            block = self._at(self._start + begin, end - begin)
            self._marks.append(hash((self._marks[-1], block)))
        return self._marks[depth]

    @staticmethod
    def reach(depth: int) -> float:
        """How much of the history the mark is about."""
        return _MARKS[depth] if depth < len(_MARKS) else math.inf

    def _at(self, start: int, length: int) -> int:
        """Hash of a stretch; several lines ask for the same ones.

        Of a copy: to hash a part of a `memoryview`, Python hashes all that it is a view of.
        """
        key = (start, length)
        if key not in self._known:
            self._known[key] = hash(self._body[start : start + length])
        return self._known[key]

    def agreed(self, known: Known) -> int:
        """How many of the known segments the history begins with."""
        groups, at = self._count(known.groups, self._start)
        count = groups * GROUP
        return count + self._count(known.segments[count:], at)[0]

    def _count(self, segments: Sequence[Segment], at: int) -> tuple[int, int]:
        """How many of `segments` stand from `at` on, and where they end."""
        for count, (length, known) in enumerate(segments):
            end = at + length
            if end > len(self._body) or self._at(at, length) != known:
                return count, at
            at = end
        return len(segments), at

    def known(self, before: Known, segments: Sequence[Segment]) -> Known:
        """`before` and the `segments` behind it, in which the history must begin."""
        segments = (*before.segments, *segments)
        groups = before.groups
        at = self._start + sum(map(_length, groups))
        for first in range(len(groups) * GROUP, len(segments) - GROUP + 1, GROUP):
            length = sum(map(_length, segments[first : first + GROUP]))
            groups = (*groups, Segment(length, self._at(at, length)))
            at += length
        return Known(segments, groups)

    def rest(self, length: int) -> Rest:
        """What follows the first `length` bytes of the history. Raises Unread."""
        at = self._start + length
        try:
            tail = self._body[at:]
            charge(tail)
            text = tail.decode("utf-8", "surrogatepass")
            items, ends = _items(text, after=at > self._start)
            end = ends[-1] if ends else 0
            around = loads(self._body[: self._start].decode("utf-8", "surrogatepass") + text[end:])
        except RecursionError:
            raise Unread("depth") from None
        except UnicodeDecodeError:
            raise Unread("encoding") from None
        except ValueError:
            raise Unread("json") from None
        around[self._root] = items
        segments = []
        for size in _lengths(text, ends):
            segments.append(Segment(size, hash(self._body[at : at + size])))
            at += size
        sides = (hash(self._body[: self._start]), hash(self._body[at:]))
        return Rest(items, segments, hash(sides), around)


class ItemHistory:
    """The history of a request body that is parsed already."""

    def __init__(self, body: dict[str, Any], root: str) -> None:
        """Raises ValueError where the body is not plain data."""
        self._root = root
        self._items: list[Any] = body[root]
        self._hashes = [hash(marshal.dumps(item, 2)) for item in self._items]
        self._others = {key: value for key, value in body.items() if key != root}
        self._around = hash(marshal.dumps(self._others, 2))
        self._marks = self._hashes[:1] or [0]

    def mark(self, depth: int) -> int:
        """A hash of how the history begins, to find its likes by: the deeper, the more of it."""
        while len(self._marks) <= depth:
            at = len(self._marks)
            item = self._hashes[at] if at < len(self._hashes) else 0
            self._marks.append(hash((self._marks[-1], item)))
        return self._marks[depth]

    @staticmethod
    def reach(depth: int) -> float:
        """How much of the history the mark is about."""
        return depth + 1

    def agreed(self, known: Known) -> int:
        """How many of the known segments the history begins with."""
        pairs = zip(known.segments, self._hashes, strict=False)
        for count, (segment, here) in enumerate(pairs):
            if segment.hash != here:
                return count
        return min(len(known.segments), len(self._hashes))

    def known(self, before: Known, segments: Sequence[Segment]) -> Known:
        """`before` and the `segments` behind it; each item is hashed by itself anyway."""
        return Known((*before.segments, *segments))

    def rest(self, length: int) -> Rest:
        """What follows the first `length` items of the history."""
        at = length
        items = self._items[at:]
        own = [Segment(1, known) for known in self._hashes[at:]]
        return Rest(items, own, self._around, {**self._others, self._root: items})


History = ByteHistory | ItemHistory


def history(request: Any, root: str) -> History | None:
    """The history of a request in a form that can be compared; None where there is none to find."""
    if isinstance(request, bytes) and len(request) <= MAX_BODY:
        start = _array_start(request, root)
        return None if start is None else ByteHistory(request, root, start)
    if isinstance(request, dict) and isinstance(request.get(root), list):
        try:
            return ItemHistory(request, root)
        except ValueError:
            return None
    return None


def _array_start(body: bytes, root: str) -> int | None:
    """Offset of the first element of the top-level array `root`.

    A key of that name deeper down does not count: what stands before it must be the beginning of
    the outermost object.
    """
    at = 0
    for _ in range(_TRIES):
        at = body.find(b'"' + root.encode() + b'"', at)
        if at < 0:
            return None
        opening = _OPENING.match(body, at + len(root) + 1)
        if opening is not None and _opens(body[:at]):
            return opening.end()
        at += 1
    return None


def _opens(before: bytes) -> bool:
    """Whether a top-level key may stand behind `before`."""
    return _begins(before) if len(before) <= _SHORT else _is_beginning(before)


@lru_cache(maxsize=64)
def _begins(before: bytes) -> bool:
    return _is_beginning(before)  # the few parameters that every request of a process begins with


def _is_beginning(before: bytes) -> bool:
    try:
        return isinstance(json.loads(before + b'"":0}'), dict)
    except (ValueError, RecursionError):
        return False


def _items(text: str, *, after: bool) -> tuple[list[Any], list[int]]:
    """(elements, offset behind each) of an array, from its inside on. Raises ValueError.

    `after`: elements stand before `text` already, so that a comma leads.
    """
    items: list[Any] = []
    ends: list[int] = []
    end = 0
    while True:
        at = _blank(text, end)
        if text[at : at + 1] == "]":
            return items, ends
        if items or after:
            if text[at : at + 1] != ",":
                raise ValueError
            at = _blank(text, at + 1)
        item, end = _DECODER.raw_decode(text, at)
        items.append(item)
        ends.append(end)


def _lengths(text: str, ends: list[int]) -> Iterator[int]:
    """Length in bytes of each piece of `text` that ends at one of `ends`."""
    plain = text.isascii()
    at = 0
    for end in ends:
        yield end - at if plain else len(text[at:end].encode("utf-8", "surrogatepass"))
        at = end


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
