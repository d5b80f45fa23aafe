"""Search: where did a lost value go? Run only when something is missing or other than it came.

The request body is walked once. Every question is answered in digests, paths and lengths, never in
text. Work is bounded: a hostile or huge body ends the search early, and what was not found is then
reported as dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, product
from typing import Any

from otel_sealed import digest as d
from otel_sealed.contract import Dialect
from otel_sealed.model import Kind, Shadow
from otel_sealed.wire.parse import first_text, lookup

_MAX_HASHES = 60_000
_HASH_UNIT = 4_096  # a long text costs as many of them as it has such pieces
_MAX_STRINGS = 20_000
_MAX_DEPTH = 40
_MIN_SHADOW = 12
_MAX_GAP = 65_536
_MAX_SIZES = 16
_MIN_SUMMARY = 80
_MAX_SUMMARIES = 4
_MAX_EDGES = 4
_WORD = re.compile(r"(?<![\w-])[\w-]{8,128}(?![\w-])", re.ASCII)
_MOST_WORDS = 256
_STARTS = re.compile(r"[\n>`:\"'(\[ ]+")
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
        self._hashes = _MAX_HASHES
        self._strings: list[tuple[str, Spot, str]] | None = None
        self._plain: list[tuple[str, str]] | None = None
        self._forms: dict[int, list[tuple[int, str]]] = {}
        self._sealed_keys = _sealed_keys(dialect)

    def find(self, wanted: tuple[Wanted, ...]) -> Mapping[bytes, Stray]:
        """The first place of each wanted seal anywhere in the body, slots included."""
        missing = {w.canon: w.size for w in wanted}
        found: dict[bytes, Stray] = {}
        for path, spot, text in self._all():
            if not missing or self._hashes <= 0:
                break
            for canon, depth, part in self._candidates(text, missing):
                if canon in missing:
                    found[canon] = Stray(path, spot, depth, part)
                    del missing[canon]
        return found

    def readable(self, shadows: tuple[Shadow, ...], near: frozenset[int]) -> str | None:
        """Path of the first ordinary text that is, or in the messages `near` holds, a shadow.

        None if there is none. Text inside one pair of tags or fences counts as text of its own.
        """
        texts = self._texts()
        first = len(texts)
        for shadow in shadows:
            for at, form in self._forms.get(shadow.chars, ()):
                if at < first and self._text(form) == shadow.digest:
                    first = at
        heads = tuple(f"{self._dialect.root}.{index}." for index in near)
        for path, text in texts[:first] if heads else ():
            if f"{path}.".startswith(heads) and self.holds(text, shadows):
                return path
        return texts[first][0] if first < len(texts) else None

    def _texts(self) -> list[tuple[str, str]]:
        """Path and text of the ordinary texts; `_forms` has by length what each may stand for."""
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
        long = islice(self._long(self._body, "", in_sealed=False, depth=0), _MAX_SUMMARIES)
        for text in long:
            for form in dict.fromkeys(_summaries(text.strip())):
                yield self._text(form)

    def _is(self, text: str, shadows: tuple[Shadow, ...]) -> bool:
        for form in _unwrapped(text):
            for shadow in shadows:
                if len(form) == shadow.chars and self._text(form) == shadow.digest:
                    return True
        return False

    def _at(self, path: str) -> Any:
        return lookup(self._body, path) if path else self._body

    def slot(self, path: str, artifact: str) -> str | None:
        """The raw string of an artifact's slot below `path`. Never leaves the core."""
        block = self._at(path)
        if isinstance(block, dict):
            carrier = self._dialect.carriers.get(self._dialect.type_of(block))
            for f in carrier.fields if carrier else ():
                told = first_text(block, f.places()) if f.artifact == artifact else None
                if told is not None:
                    return told
        return None

    def encoded(self, path: str, artifact: str) -> tuple[bytes, ...]:
        """`canon` digests of what the value in a slot is an encoding of; none for most."""
        text = self.slot(path, artifact)
        return () if text is None else tuple(self._digest.blob(x) for x in d.layers(text)[1:])

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

    def joined_seals(self, path: str, artifact: str, wanted: tuple[Wanted, ...]) -> int:
        """How many of `wanted` stand end to end or apart inside the value of one slot."""
        text = self.slot(path, artifact)
        if text is None:
            return 0
        count = 0
        at = 0
        while at < len(text) and self._hashes > 0:
            step = 1
            sizes = ((w, size) for w in wanted for size in _spellings(w.size))
            for w, size in sizes:
                piece = text[at : at + size]
                if len(piece) == size and self._canon(piece) == w.canon:
                    count += 1
                    step = size
                    break
            at += step
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

    def joined_texts(self, paths: Iterable[str]) -> bytes:
        """Digest of the readable texts of several blocks set end to end."""
        return self._text("".join(map(self.text, paths)))

    def named(self, path: str) -> frozenset[bytes]:
        """Digests of the words of a block's readable text that may be ids, of the first few."""
        words = islice(_WORD.finditer(self.text(path)), _MOST_WORDS)
        return frozenset(self._digest.name(word[0]) for word in words if not word[0].isalpha())

    def slot_holds(self, path: str, artifact: str, shadows: tuple[Shadow, ...]) -> bool:
        """Whether a seal's slot holds one of `shadows`: readable text in the place of the seal."""
        text = self.slot(path, artifact)
        return text is not None and bool(self.holds(text, shadows))

    def holds_at(self, path: str, shadows: tuple[Shadow, ...]) -> tuple[Shadow, ...]:
        """Those of `shadows` that the readable text of the block at `path` holds."""
        return self.holds(self.text(path), shadows)

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
                if end > len(text) or self._text(text[at:end]) != pieces[index].digest:
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
            if len(form) == came.chars and self._text(form) == came.digest:
                return True
        return False

    def holds(self, text: str, shadows: tuple[Shadow, ...]) -> tuple[Shadow, ...]:
        """Those of `shadows` that start behind a boundary of `text` (tag, fence, line, space)."""
        bare = text.strip()
        return tuple(
            shadow
            for shadow in shadows
            if shadow.chars <= len(bare)
            and (shadow.chars >= _MIN_SHADOW or self._is(bare, (shadow,)))
            and self._at_boundary(bare, shadow)
        )

    def _at_boundary(self, text: str, shadow: Shadow) -> bool:
        size = shadow.chars
        starts = [0, len(text) - size]
        starts.extend(found.end() for found in _STARTS.finditer(text, 0, _MAX_GAP))
        return any(
            self._text(text[at : at + size]) == shadow.digest
            for at in starts
            if at + size <= len(text) and self._hashes > 0
        )

    def _candidates(
        self, text: str, missing: Mapping[bytes, int]
    ) -> Iterator[tuple[bytes, int, bool]]:
        """(digest, depth, part) of every piece of `text` that may be a wanted seal."""
        if len(text) < d.SIZE:
            return
        if " " not in text and "\n" not in text:
            for depth, layer in enumerate(d.layers(text)):
                self._hashes -= 1
                yield self._digest.blob(layer), depth, False
        runs = d.runs(text)
        sizes = {size for n in missing.values() for size in _spellings(n)} if runs else set()
        for run in runs:
            if run != text:
                yield self._canon(run), 0, True
            for piece in _pieces(run):
                yield self._canon(piece), 0, True
            if len(sizes) <= _MAX_SIZES:
                yield from ((canon, 0, True) for canon in self._chain(run, sizes))

    def _chain(self, run: str, sizes: set[int]) -> Iterator[bytes]:
        """Digests of the pieces of a run that several values may have been set into."""
        for size in sizes:
            if size < len(run) and self._hashes > 0:
                yield self._canon(run[:size])
                yield self._canon(run[-size:])
        edges = {0}
        while edges and len(edges) <= _MAX_SIZES and self._hashes > 0:
            edges = {edge + size for edge in edges for size in sizes if edge + size < len(run)}
            for edge, size in ((e, n) for e in edges for n in sizes):
                if edge + size <= len(run):
                    yield self._canon(run[edge : edge + size])

    def _all(self) -> list[tuple[str, Spot, str]]:
        if self._strings is None:
            self._strings = list(islice(self._found(), _MAX_STRINGS))
        return self._strings

    def _found(self) -> Iterator[tuple[str, Spot, str]]:
        """Every string of the body: its path, what kind of place that is, and itself."""
        return self._walk(self._body, "", "", in_sealed=False, depth=0)

    def _walk(
        self, value: Any, path: str, key: str, *, in_sealed: bool, depth: int
    ) -> Iterator[tuple[str, Spot, str]]:
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

    def _long(self, value: Any, key: str, *, in_sealed: bool, depth: int) -> Iterator[str]:
        """The ordinary texts that are long enough for a summary, as `_walk` comes by them."""
        if isinstance(value, str):
            if len(value) >= _MIN_SUMMARY and self._spot(key, in_sealed=in_sealed) is Spot.TEXT:
                yield value
        elif isinstance(value, (dict, list)) and depth <= _MAX_DEPTH:
            inside, children = in_sealed, ((key, child) for child in value)
            if isinstance(value, dict):
                inside = in_sealed or self._carries(value)
                children = ((str(name), child) for name, child in value.items())
            for name, child in children:
                if type(child) is not str or len(child) >= _MIN_SUMMARY:
                    yield from self._long(child, name, in_sealed=inside, depth=depth + 1)

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
        self._hashes -= 1 + len(text) // _HASH_UNIT
        return self._digest.canon(text)

    def _text(self, text: str) -> bytes:
        self._hashes -= 1 + len(text) // _HASH_UNIT
        return self._digest.text(text)


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


def _unwrapped(text: str) -> Iterator[str]:
    """`text` itself, and what stands in its tags and fences."""
    yield text.strip()
    for opening, closing in _WRAPS:
        start = opening.search(text, 0, _MAX_GAP)
        while start is not None:
            end = closing.search(text, start.end(), _MAX_GAP)
            if end is None:
                break
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


def _pieces(run: str) -> Iterator[str]:
    at = run.find("__")
    while at != -1:
        if len(run) - at - 2 >= d.SIZE:
            yield run[at + 2 :]
        at = run.find("__", at + 1)


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)
