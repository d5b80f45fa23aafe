"""Search: where did a lost value go? Run only when something is missing or other than it came.

The request body is walked once. Every question is answered in digests, paths and lengths, never in
text. Work is linear in the body and charged to the budget of the exchange (`steps`): a text is
hashed once for each length that is looked for, of at most `_MAX_SIZES` lengths.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, product
from typing import Any

from otel_sealed import digest as d
from otel_sealed.contract import Dialect
from otel_sealed.model import Kind, Shadow
from otel_sealed.steps import TEXT, of_text, spend
from otel_sealed.wire.parse import first_text, lookup

_MAX_DEPTH = 40
_MAX_KEY = 64  # of a path: it is copied into the path of every value below it
_MAX_SLOT_STARTS = 64  # of values that are set into one slot with something between them
_MIN_STARTS = 64  # places in a text that are tried for a text of any length
_MIN_SHADOW = 12
_MAX_GAP = 65_536
_MAX_SIZES = 16
_MIN_SUMMARY = 80
_MAX_SUMMARIES = 4
_MAX_EDGES = 4
_WORD = re.compile(r"(?<![\w-])[\w-]{8,128}(?![\w-])", re.ASCII)
_MOST_WORDS = 256
_STARTS = re.compile(r"[\n>`:\"'(\[ ]+")
_ENDS = re.compile(r"\S(?!\w)")
_SEPARATOR = re.compile(r"[^A-Za-z0-9+/_=-]+")
# an opening and its closing mark are looked for one after the other: one pattern over both, with
# anything between, takes quadratic time on a text of openings only
_WRAPS = (
    (re.compile(r"<[^<>]{1,80}>"), re.compile(r"</[^<>]{1,80}>")),
    (re.compile(r"```[^\n`]{0,40}\n?"), re.compile(r"```")),
)
_TAGS = ("think", "thinking", "thought", "reasoning")
_IDS = frozenset({"id", "tool_use_id", "call_id", "tool_call_id", "name"})


class Spot(StrEnum):
    """What kind of place a string stands in."""

    TEXT = "text"
    ID = "id"
    SLOT = "slot"
    SIGNED = "signed"
    FIELD = "field"


@dataclass(frozen=True, slots=True)
class Stray:
    """A sealed value found outside its slot.

    `depth`: times it was encoded over; `part`: it is only a part of what stands there.
    """

    path: str
    spot: Spot
    depth: int
    part: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sealed value looked for: its `canon` digest and its size in bytes of the compared form."""

    canon: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What the value now standing in a slot shows: windows, size, canon digests of its layers.

    `spaced`/`foreign_alphabet`: it holds white space / a character no base64 has; `stripped` is
    the digest of the value without white space.
    """

    prints: bytes
    size: int
    layers: tuple[bytes, ...]
    stripped: bytes
    normal_forms: tuple[bytes, ...]
    foreign_alphabet: bool


class Search:
    """Answers questions about one request body. Built lazily, used once, dropped."""

    def __init__(self, body: Any, dialect: Dialect, digest: d.Digest) -> None:
        """`body` is parsed JSON, only read."""
        self._body = body
        self._dialect = dialect
        self._digest = digest
        self._strings: list[tuple[str, Spot, str]] | None = None
        self._plain: list[tuple[str, str]] | None = None
        self._forms: dict[int, list[tuple[int, str]]] = {}
        self._hashed: dict[int, dict[bytes, deque[int]]] = {}
        self._sealed_keys = _sealed_keys(dialect)

    def find(self, wanted: tuple[Wanted, ...]) -> Mapping[bytes, Stray]:
        """The first place of each wanted seal anywhere in the body, slots included."""
        missing = {w.canon: w.size for w in wanted}
        sizes = Counter(size for n in missing.values() for size in _spellings(n))
        found: dict[bytes, Stray] = {}
        for path, spot, text in self._all():
            if not missing:
                break
            for canon, depth, part in self._candidates(text, sizes):
                if canon in missing:
                    found[canon] = Stray(path, spot, depth, part)
                    for size in _spellings(missing.pop(canon)):
                        sizes[size] -= 1
                        if not sizes[size]:
                            del sizes[size]
        return found

    def readable(self, shadows: Iterable[Shadow], said: Container[str] = ()) -> str | None:
        """Path of the first ordinary text that is one of `shadows`, None if there is none.

        Text inside one pair of tags or fences counts as text of its own. A few characters are in
        many a request: short ones are not looked for. `said`: paths of texts that are accounted
        for, the same each time.
        """
        texts = self.texts()
        first = len(texts)
        for shadow in shadows:
            places = self._forms_of(shadow.chars).get(shadow.digest)
            while places and texts[places[0]][0] in said:
                spend()
                places.popleft()
            if places and shadow.chars >= _MIN_SHADOW:
                first = min(first, places[0])
        return texts[first][0] if first < len(texts) else None

    def _forms_of(self, chars: int) -> Mapping[bytes, deque[int]]:
        """By digest, the texts that may be read as one of this length."""
        found = self._hashed.get(chars)
        if found is None:
            found = self._hashed[chars] = {}
            for at, form in self._forms.get(chars, ()):
                found.setdefault(self._digest.text(form), deque()).append(at)
        return found

    def texts(self) -> Sequence[tuple[str, str]]:
        """Path and text of the ordinary texts; `_forms` has by length how each may be read."""
        if self._plain is None:
            self._plain = [(path, text) for path, spot, text in self._all() if spot is Spot.TEXT]
            for at, (_, text) in enumerate(self._plain):
                for form in _unwrapped(text):
                    self._forms.setdefault(len(form), []).append((at, form))
        return self._plain

    def told(self) -> Iterator[bytes]:
        """Digests of what the first long texts of the request may be made of.

        A client that summarises puts an earlier answer there, mostly with words around it: in tags,
        behind a heading, before a request to go on.
        """
        for text in self._long():
            for form in dict.fromkeys(_summaries(text.strip())):
                yield self._digest.text(form)

    def _at(self, path: str) -> Any:
        return lookup(self._body, path) if path else self._body

    def slot(self, path: str, artifact: str) -> str | None:
        """The raw string of an artifact's slot below `path`. Never leaves the core."""
        block = self._at(path)
        if isinstance(block, dict):
            carrier = self._dialect.carriers.get(self._dialect.type_of(block))
            for f in carrier.fields if carrier else ():
                told = first_text(block, f.places) if f.artifact == artifact else None
                if told is not None:
                    return told
        return None

    def prose(self, path: str, artifact: str) -> bool:
        """Whether a slot holds words with spaces between them, which nobody issues as a seal."""
        return " " in (self.slot(path, artifact) or "").strip()

    def encoded(self, path: str, artifact: str) -> tuple[bytes, ...]:
        """`canon` digests of what the value in a slot is an encoding of; none for most."""
        text = self.slot(path, artifact)
        if text is None or not d.may_wrap(text):
            return ()
        return tuple(self._digest.blob(layer) for layer in d.layers(text)[1:])

    def sample(self, path: str, artifact: str, length: int, *, binary: bool) -> Sample | None:
        """What the value in a slot shows, cut the way a value of `length` bytes was."""
        text = self.slot(path, artifact)
        if text is None:
            return None
        # a cut may leave one character that begins no byte
        data = (d.decode_blob(text) or d.decode_blob(text[:-1]) if binary else None) or d.utf8(text)
        return Sample(
            prints=self._digest.windows(data, length),
            size=len(data),
            layers=tuple(self._digest.blob(layer) for layer in d.layers(text)),
            stripped=self._digest.text("".join(text.split())),
            normal_forms=tuple(self._digest.text(form) for form in d.normal_forms(text)),
            foreign_alphabet=not d.base64_alphabet(text),
        )

    def joined_seals(self, path: str, artifact: str, wanted: Iterable[Wanted]) -> int:
        """How many of `wanted` are end to end, or with something between, in one slot's value."""
        text = self.slot(path, artifact) or ""
        by_size: dict[int, set[bytes]] = {}
        for w in wanted:
            for size in _spellings(w.size):
                if size <= len(text):
                    by_size.setdefault(size, set()).add(w.canon)
        sizes = sorted(by_size, reverse=True)
        count = end = 0
        for start in islice(_slot_starts(text), _MAX_SLOT_STARTS if sizes else 0):
            at = max(start, end)
            while found := next(
                (n for n in sizes if self._canon(text[at : at + n]) in by_size[n]), 0
            ):
                count += 1
                end = at = at + found
        last = len(text)
        while found := next(
            (
                n
                for n in sizes
                if end <= last - n and self._canon(text[last - n : last]) in by_size[n]
            ),
            0,
        ):
            count += 1
            last -= found
        return count

    def joined_slots(self, places: tuple[tuple[str, str], ...]) -> bytes:
        """`canon` digest of the values of several slots set end to end."""
        texts = [self.slot(path, artifact) or "" for path, artifact in places]
        return self._canon("".join(texts))

    def text(self, path: str) -> str:
        """The readable text of the block at `path`, empty if none. Never leaves the core."""
        block = self._at(path)
        if isinstance(block, str):
            return block
        if isinstance(block, dict):
            for key in ("thinking", "text", "content"):
                if isinstance(block.get(key), str):
                    return str(block[key])
        return ""

    def text_size(self, path: str) -> int:
        """Bytes of the readable text of a block."""
        return len(d.utf8(self.text(path)))

    def joined_texts(self, paths: Iterable[str]) -> bytes:
        """Digest of the readable texts of several blocks set end to end."""
        return self._digest.text("".join(map(self.text, paths)))

    def named(self, path: str) -> frozenset[bytes]:
        """Digests of the words of a block's readable text that may be ids, of the first few."""
        words = islice(_WORD.finditer(self.text(path)), _MOST_WORDS)
        return frozenset(self._digest.name(word[0]) for word in words if not word[0].isalpha())

    def slot_holds(self, path: str, artifact: str, shadows: Iterable[Shadow]) -> bool:
        """Whether a seal's slot holds one of `shadows`: readable text in the place of the seal."""
        text = self.slot(path, artifact)
        return text is not None and bool(self.holds(text, Shadows(shadows), joined=True))

    def holds_at(self, path: str, shadows: Shadows) -> tuple[Shadow, ...]:
        """Those of `shadows` that the readable text of the block at `path` holds."""
        return self.holds(self.text(path), shadows, joined=True)

    def composed(self, path: str, pieces: tuple[Shadow, ...]) -> tuple[int, ...]:
        """Indices of the consecutive `pieces` that the text of a block is made of, end to end.

        White space between them does not count. Empty when it is made of anything else.
        """
        text = self.text(path).strip()
        for first in range(len(pieces)):
            used: list[int] = []
            at = 0
            for index in range(first, len(pieces)):
                end = at + pieces[index].chars
                if end > len(text) or self._digest.text(text[at:end]) != pieces[index].digest:
                    break
                used.append(index)
                at = end
                while at < len(text) and text[at].isspace():
                    at += 1
            if used and at >= len(text):
                return tuple(used)
        return ()

    def carved(self, paths: tuple[str, str], came: Shadow) -> bool:
        """Whether a text that came was cut at its tags into the readable texts of two blocks."""
        thought, rest = map(self.text, paths)
        for tag, inside, between in product(_TAGS, ("", "\n"), ("", "\n", "\n\n")):
            form = f"<{tag}>{inside}{thought}{inside}</{tag}>{between}{rest}".strip()
            if len(form) == came.chars and self._digest.text(form) == came.digest:
                return True
        return False

    def holds(self, text: str, shadows: Shadows, *, joined: bool = False) -> tuple[Shadow, ...]:
        """Those of `shadows` that are in `text`, between boundaries (tags, fences, lines, words).

        A few characters are in any text: short ones have to be a text of their own. `joined`: also
        those that it begins or ends with, whatever comes next.
        """
        bare = text.strip()
        sizes = shadows.fitting(len(bare))
        if not sizes:
            return ()
        long = sizes[bisect_left(sizes, _MIN_SHADOW) :]
        pieces = list(_unwrapped(bare)) if len(long) < len(sizes) else []
        pieces = [form for form in pieces if len(form) in shadows.by_size]
        if long:
            edges = _Edges(bare)
            pieces += [bare[at : at + n] for n in long for at in edges.apart(n)]
        if joined:
            pieces += [piece for n in long for piece in (bare[:n], bare[-n:])]
        found: dict[bytes, Shadow] = {}
        for piece in pieces:
            digest = self._digest.text(piece)
            shadow = shadows.by_size[len(piece)].get(digest)
            if shadow is not None:
                found[digest] = shadow
        return tuple(found.values())

    def _candidates(self, text: str, sizes: Mapping[int, int]) -> Iterator[tuple[bytes, int, bool]]:
        """(digest, depth, part) of every piece of `text` that may be a wanted seal.

        `sizes`: the lengths in characters that the wanted ones may have.
        """
        spend()
        if len(text) < d.SIZE:
            return
        if " " not in text and "\n" not in text:
            for depth, layer in enumerate(d.layers(text)):
                yield self._digest.blob(layer), depth, False
        for run in d.runs(text):
            if run != text:
                yield self._canon(run), 0, True
            for piece in d.endings(run):
                yield self._canon(piece), 0, True
            if len(sizes) <= _MAX_SIZES:
                yield from ((canon, 0, True) for canon in self._chain(run, tuple(sizes)))

    def _chain(self, run: str, sizes: Sequence[int]) -> Iterator[bytes]:
        """Digests of the pieces of a run that several values may have been set into."""
        for size in sizes:
            if size < len(run):
                yield self._canon(run[:size])
                yield self._canon(run[-size:])
        edges = {0}
        while edges and len(edges) <= _MAX_SIZES:
            edges = {edge + size for edge in edges for size in sizes if edge + size < len(run)}
            for edge, size in ((e, n) for e in edges for n in sizes):
                if edge + size <= len(run):
                    yield self._canon(run[edge : edge + size])

    def _all(self) -> list[tuple[str, Spot, str]]:
        if self._strings is None:
            self._strings = list(self._walk(self._body, "", "", in_sealed=False, depth=0))
        return self._strings

    def _walk(
        self, value: Any, path: str, key: str, *, in_sealed: bool, depth: int
    ) -> Iterator[tuple[str, Spot, str]]:
        """Every string of a value: its path, what kind of place that is, and itself."""
        spend()
        if isinstance(value, str):
            if value and depth <= _MAX_DEPTH:
                yield path, self._spot(key, in_sealed=in_sealed), value
        elif depth > _MAX_DEPTH:
            return
        elif isinstance(value, dict):
            inside, depth = in_sealed or self._carries(value), depth + 1
            for name, child in value.items():
                yield from self._walk(
                    child, _join(path, name), str(name), in_sealed=inside, depth=depth
                )
        elif isinstance(value, list):
            for index, child in enumerate(value):
                if child is not None:
                    yield from self._walk(
                        child, _join(path, index), key, in_sealed=in_sealed, depth=depth + 1
                    )

    def _long(self) -> list[str]:
        """The first ordinary texts that are long enough for a summary, as `_walk` comes by them."""
        found: list[str] = []
        waiting: list[tuple[Any, str, bool, int]] = [(self._body, "", False, 0)]
        while waiting and len(found) < _MAX_SUMMARIES:
            value, key, inside, depth = waiting.pop()
            if isinstance(value, str):
                if len(value) >= _MIN_SUMMARY and self._spot(key, in_sealed=inside) is Spot.TEXT:
                    found.append(value)
            elif isinstance(value, (dict, list)) and depth <= _MAX_DEPTH:
                spend(1 + len(value))
                if isinstance(value, dict):
                    inside = inside or self._carries(value)
                    children = [
                        (child, str(name), inside, depth + 1) for name, child in value.items()
                    ]
                else:
                    children = [(child, key, inside, depth + 1) for child in value]
                children.reverse()
                waiting += children
        return found

    def _carries(self, value: dict[str, Any]) -> bool:
        if "type" not in value and "thought" not in value:
            return False
        carrier = self._dialect.carriers.get(self._dialect.type_of(value))
        return carrier is not None and carrier.kind in (Kind.REASONING, Kind.COMPACTION)

    def _spot(self, key: str, *, in_sealed: bool) -> Spot:
        if key in self._sealed_keys:
            return Spot.SLOT
        if key in _IDS:
            return Spot.ID
        if in_sealed:
            return Spot.SIGNED
        if key in ("text", "content", "output", "instructions", "system", "input_text"):
            return Spot.TEXT
        return Spot.FIELD

    def _canon(self, text: str) -> bytes:
        return self._digest.canon(text)


class Shadows:
    """Readable texts that are looked for, by their length."""

    def __init__(self, shadows: Iterable[Shadow]) -> None:
        """In any order; of equal ones the first."""
        self.by_size: dict[int, dict[bytes, Shadow]] = {}
        for shadow in shadows:
            spend()
            self.by_size.setdefault(shadow.chars, {}).setdefault(shadow.digest, shadow)
        self._sizes = sorted(self.by_size)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.by_size)

    def fitting(self, length: int) -> list[int]:
        """Their lengths that fit into a text, shortest first; of many the longest.

        What a text holds is judged by its largest part, and each length costs a hash a place.
        """
        end = bisect_right(self._sizes, length)
        return self._sizes[max(end - _MAX_SIZES, 0) : end]


_known: dict[str, tuple[Dialect, frozenset[str]]] = {}


def _sealed_keys(dialect: Dialect) -> frozenset[str]:
    """The last part of every key that holds a seal."""
    found = _known.get(dialect.name)
    if found is None or found[0] is not dialect:
        found = _known[dialect.name] = (dialect, frozenset(_last_parts(dialect)))
    return found[1]


def _last_parts(dialect: Dialect) -> set[str]:
    return {
        name
        for carrier in dialect.carriers.values()
        for f in carrier.fields
        if f.role == "seal"
        for name in f.names()
    }


def _spellings(size: int) -> tuple[int, ...]:
    """Lengths in characters a value of `size` bytes may have: as text, or as base64 of bytes."""
    encoded = 4 * -(-size // 3)
    bare = -(-4 * size // 3)
    return (size, encoded) if encoded == bare else (size, encoded, bare)


class _Edges:
    """Where in a text another one may start and end, one byte a character.

    All places of one length are found by a shift and an AND, not by trying each start.
    """

    def __init__(self, text: str) -> None:
        """Goes through the text once."""
        end = len(text)
        starts, ends = bytearray(end + 1), bytearray(end + 1)
        starts[0] = 1
        for found in _STARTS.finditer(text):
            starts[found.end()] = 1
        for found in _ENDS.finditer(text):
            ends[found.end()] = 1
        ends[end] = 1
        spend(of_text(text) + starts.count(1) + ends.count(1))
        self._size = end + 1
        self._starts = int.from_bytes(starts, "little")
        self._ends = int.from_bytes(ends, "little")
        self._most = starts.count(1)

    def apart(self, size: int) -> Iterator[int]:
        """The starts with an end `size` characters later.

        All of them for what is hashed in a step. Longer texts take more, so that fewer places are
        tried, and the work stays linear.
        """
        spend(1 + self._size // TEXT)
        both = (self._starts & (self._ends >> (8 * size))).to_bytes(self._size, "little")
        at = both.find(1)
        for _ in range(_MIN_STARTS + self._most // (1 + size // TEXT)):
            if at < 0:
                return
            yield at
            at = both.find(1, at + 1)


def _slot_starts(text: str) -> Iterator[int]:
    """Where in a slot a value may start: at its head, or after what is no base64."""
    yield 0
    yield from (found.end() for found in _SEPARATOR.finditer(text))


def _unwrapped(text: str) -> Iterator[str]:
    """`text` itself, and what stands in its tags and fences."""
    spend(of_text(text))
    yield text.strip()
    for opening, closing in _WRAPS:
        start = opening.search(text, 0, _MAX_GAP)
        while start is not None:
            end = closing.search(text, start.end(), _MAX_GAP)
            if end is None:
                break
            spend()
            yield text[start.end() : end.start()].strip()
            start = opening.search(text, end.end(), _MAX_GAP)


def _summaries(text: str) -> Iterator[str]:
    """`text`, what is in its tags, and what is left without its first or last few paragraphs."""
    yield from _unwrapped(text)
    for mark in ("\n\n", "\n", ": "):
        pieces = text.split(mark)
        for drop in range(1, min(_MAX_EDGES, len(pieces))):
            yield mark.join(pieces[drop:]).strip()
            yield mark.join(pieces[:-drop]).strip()
            yield mark.join(pieces[drop:-1]).strip()


def _join(path: str, key: object) -> str:
    name = str(key)[:_MAX_KEY]
    return f"{path}.{name}" if path else name
