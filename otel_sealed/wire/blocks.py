"""One block of a body and a dialect's table of carriers become records that hold no content.

Model. A block is read by the carrier of its type; a type that no table has is sealed where its keys
say so (A19). Each value is one of absent, null, empty, invalid and present, and a present one is
hashed: exactly, and a seal once more in the one spelling that all its spellings share. A text that
is signed, payload and readable stand-in in one is hashed once. Nested blocks follow the one they
are in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from otel_sealed import digest as d
from otel_sealed.contract import Carrier, Constant, Dialect, Field
from otel_sealed.model import Block, Kind, Role, Shadow, State, Value
from otel_sealed.steps import spend
from otel_sealed.vocab import word
from otel_sealed.wire.parse import Unread, as_json, as_text, lookup

READABLE = frozenset({Kind.TEXT, Kind.REASONING, Kind.COMPACTION})
"""Kinds of blocks whose payload is text that can be read."""
NO_CONSTANTS: Mapping[Constant, bytes] = {}
_LONG_ID = 64
"""Characters. Ids of vendors have 24 to 60; a relay hides a seal in a longer one."""
_MAX_DEPTH = 8
"""Blocks inside blocks: a result in a result is the most that any dialect has."""
_MISSING: Any = object()
_CACHE_KEYS = frozenset({"cache_control", "cachePoint"})
_SEAL, _ID, _PRESENT = Role.SEAL, Role.ID, State.PRESENT


class Prepared:
    """A carrier with what is asked of it for each block worked out once."""

    __slots__ = ("absent", "carrier", "children", "fields", "gained", "known", "name", "readable")

    def __init__(self, name: str, carrier: Carrier, *, known: bool) -> None:
        """`name`: the block's type as a word; `known`: whether a table has it."""
        self.name = word(name)
        self.carrier = carrier
        self.known = known
        self.fields = tuple(
            [(f, "" if f.aliases or f.hidden or "." in f.key else f.key) for f in carrier.fields]
        )
        self.absent = {f.artifact: Value(f.artifact, f.role, State.ABSENT) for f in carrier.fields}
        self.children = carrier.children
        self.gained = frozenset(f.key for f in carrier.fields) | carrier.keys
        self.readable = carrier.kind in READABLE


class Blocks:
    """Reads blocks of one dialect under one key. Stateless."""

    def __init__(
        self, dialect: Dialect, digest: d.Digest, constants: Mapping[Constant, bytes] = NO_CONSTANTS
    ) -> None:
        """`constants`: public values of known size and SHA-256, and the `canon` of each here."""
        self._dialect = dialect
        self._digest = digest
        self._constants = {one.sha256: canon for one, canon in constants.items()}
        self._sizes = {one.size for one in constants}
        self._carriers = {
            name: Prepared(name, carrier, known=True) for name, carrier in dialect.carriers.items()
        }

    def read(self, parts: tuple[tuple[str, Any], ...], *, windows: bool) -> list[Block]:
        """The blocks of parts and their places, each before those nested in it.

        `windows`: whether their values have window digests.
        """
        found: list[Block] = []
        for sub, part in parts:
            self._block(found, sub, part, windows, 0)
        return found

    def types(self, parts: tuple[tuple[str, Any], ...]) -> list[str]:
        """The types of the blocks that `read` gives for the same parts."""
        found: list[str] = []
        for _, part in parts:
            self._types(part, 0, found)
        return found

    def _types(self, part: Any, depth: int, found: list[str]) -> None:
        if not isinstance(part, dict):
            found.append("text" if isinstance(part, str) else "other")
            return
        name = self._dialect.type_of(part)
        prepared = self._carriers.get(name)
        found.append(word(name) if prepared is None else prepared.name)
        if prepared is not None and prepared.children:
            for _, child in self._nested(part, prepared, depth):
                self._types(child, depth + 1, found)

    def _nested(
        self, part: dict[str, Any], prepared: Prepared, depth: int
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The blocks inside a block, each with the steps from one to the other."""
        if depth >= _MAX_DEPTH:
            return
        for key in prepared.children:
            for step, child in _children(lookup(part, key), key):
                if isinstance(child, dict) and self._dialect.type_of(child) in self._carriers:
                    yield step, child

    def _block(
        self,
        found: list[Block],
        sub: str,
        part: Any,
        windows: bool,  # noqa: FBT001 - called for each block
        depth: int,
    ) -> None:
        """Adds a block, and what is nested in it."""
        spend()
        if isinstance(part, str):
            text = part.strip()
            payload = self._digest.text(text) if text else b""
            found.append(Block("text", Kind.TEXT, sub, (), (), payload, len(text)))
            return
        if not isinstance(part, dict):
            found.append(Block("other", Kind.OTHER, sub, known=False))
            return
        name = self._dialect.type_of(part)
        prepared = self._carriers.get(name)
        if prepared is None:
            found.append(self._carrier(sub, part, self._unknown(name, part), windows))
        else:
            found.append(self._carrier(sub, part, prepared, windows))
            if prepared.children:
                for step, child in self._nested(part, prepared, depth):
                    inner = f"{sub}.{step}" if sub else step
                    self._block(found, inner, child, windows, depth + 1)

    def _unknown(self, name: str, part: dict[str, Any]) -> Prepared:
        """A block type no table knows is sealed all the same where its keys say so (A19)."""
        fields = tuple(
            Field(key, f"{self._dialect.name}.other.{artifact}")
            for key, artifact in self._dialect.sealed_keys.items()
            if isinstance(part.get(key), str)
        )
        return Prepared(name, Carrier(type="other", kind=Kind.OTHER, fields=fields), known=False)

    def _carrier(
        self,
        sub: str,
        part: dict[str, Any],
        prepared: Prepared,
        windows: bool,  # noqa: FBT001 - called for each block
    ) -> Block:
        carrier, digest = prepared.carrier, self._digest
        texts: dict[str, bytes] = {}  # one text is often signed, payload and shadow in one
        values = []
        for field, flat in prepared.fields:
            value = part.get(flat, _MISSING) if flat else _found(part, field)
            if type(value) is str and value and not field.binary:
                values.append(self._from_text(field, value, texts, windows))
            elif value is _MISSING:
                values.append(prepared.absent[field.artifact])
            else:
                values.append(self._other(field, value, texts, windows))
        ids = []
        for key in carrier.ids:
            text = lookup(part, key) if "." in key else part.get(key)
            if text and isinstance(text, str):
                ids.append(text)
        if carrier.mark:
            ids += [text.partition(carrier.mark)[0] for text in ids if carrier.mark in text]
        anchors = tuple([digest.name(text) for text in ids]) if ids else ()
        payload, chars = self._payload(part, prepared, texts) if carrier.payload else (b"", 0)
        server_id = as_text(lookup(part, carrier.server_id)) if carrier.server_id else ""
        return Block(
            prepared.name,
            carrier.kind,
            sub,
            tuple(values),
            anchors,
            payload,
            chars,
            self._shadows(part, carrier, texts) if carrier.shadows else (),
            self._extras(part, prepared) if carrier.envelope else (),
            self._hidden(ids) if ids else (),
            prepared.known,
            bool(server_id),
            bool(carrier.transient) and server_id.startswith(carrier.transient),
        )

    def _text(self, text: str, texts: dict[str, bytes]) -> bytes:
        """Digest of a text, which `texts` may hold already."""
        digest = texts.get(text)
        if digest is None:
            digest = texts[text] = self._digest.text(text)
        return digest

    def _from_text(
        self,
        field: Field,
        text: str,
        texts: dict[str, bytes],
        windows: bool,  # noqa: FBT001 - called for each value
    ) -> Value:
        """A text that is compared as it is."""
        digest, role = self._digest, field.role
        data = d.utf8(text)
        if role is _ID:
            return Value(field.artifact, role, _PRESENT, digest.name(text), b"", len(data))
        exact = texts.get(text)
        if exact is None:
            exact = texts[text] = digest.raw(b"t", data)
        return Value(
            field.artifact,
            role,
            _PRESENT,
            exact,
            self._canon(d.canonical_of(data)) if role is _SEAL else b"",
            len(data),
            digest.windows(data) if windows else b"",
        )

    def _other(
        self,
        field: Field,
        value: Any,
        texts: dict[str, bytes],
        windows: bool,  # noqa: FBT001 - called for each value
    ) -> Value:
        """A value that is there and is not simply text."""
        artifact, role, digest = field.artifact, field.role, self._digest
        if value is None:
            return Value(artifact, role, State.NULL)
        if isinstance(value, str):
            if not value:
                return Value(artifact, role, State.EMPTY, digest.text(""))
            data = d.decode_blob(value) if field.binary else None
            if data is None:
                return self._from_text(field, value, texts, windows)
            value = data
        if isinstance(value, bytes):  # google-genai before 1.30 hands parsed bodies with bytes
            state = _PRESENT if value else State.EMPTY
            prints = digest.windows(value) if windows else b""
            exact = digest.blob(value)
            canon = self._canon(value, exact)
            return Value(artifact, role, state, exact, canon, len(value), prints)
        empty = role is Role.ECHO and not value  # a list that holds nothing
        state = State.EMPTY if empty else State.INVALID
        return Value(artifact, role, state, digest.value(value))

    def _canon(self, data: bytes, blob: bytes = b"") -> bytes:
        """`canon` of the bytes of a seal: their digest `blob`, or that of the constant they are."""
        if len(data) in self._sizes:
            constant = self._constants.get(d.published(data))
            if constant is not None:
                return constant
        return blob or self._digest.blob(data)

    def _payload(
        self, part: dict[str, Any], prepared: Prepared, texts: dict[str, bytes]
    ) -> tuple[bytes, int]:
        keys = prepared.carrier.payload
        if prepared.readable:
            text = "".join(readable(part, keys)).strip()
            return (self._text(text, texts), len(text)) if text else (b"", 0)
        values = [parsed(lookup(part, key)) for key in keys]
        if values.count(None) == len(values):
            return b"", 0
        return self._digest.value(values), sum([len(v) for v in values if isinstance(v, str)])

    def _shadows(
        self, part: dict[str, Any], carrier: Carrier, texts: dict[str, bytes]
    ) -> tuple[Shadow, ...]:
        found = [text.strip() for text in readable(part, carrier.shadows)]
        return tuple([Shadow(self._text(text, texts), len(text)) for text in found if text])

    def _extras(self, part: dict[str, Any], prepared: Prepared) -> tuple[bytes, ...]:
        """Digests of the keys that a block has gained, and of their values where those count."""
        known, carrier, digest = prepared.gained, prepared.carrier, self._digest
        spend(len(part))
        if part.keys() <= known:
            return ()
        return tuple(
            digest.raw(b"x", d.counted([key, value]))
            if key not in _CACHE_KEYS and key not in carrier.passed | carrier.filled
            else digest.raw(b"x", d.utf8(key))
            for key, value in part.items()
            if key not in known and value is not None and (value or key not in carrier.hollow)
        )

    def _hidden(self, ids: list[str]) -> tuple[bytes, ...]:
        """`canon` digests of what may be a value inside long ids."""
        return tuple(
            [
                self._digest.canon(piece)
                for text in ids
                if len(text) >= _LONG_ID
                for run in d.runs(text)
                for piece in (run, *d.endings(run))
            ]
        )


def _found(part: dict[str, Any], field: Field) -> Any:
    """The value of a field that has several keys, or hides behind a mark."""
    found: Any = _MISSING
    for key in (field.key, *field.aliases):
        found = lookup(part, key, _MISSING)
        if found is not _MISSING:
            break
    if field.hidden is not None and (found is _MISSING or not found):
        key, mark = field.hidden
        text = lookup(part, key)
        found = (text.partition(mark)[2] if isinstance(text, str) else "") or found
    return found


def _children(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for index, child in enumerate(value):
            spend()
            yield f"{key}.{index}", child
    elif isinstance(value, dict):
        yield key, value


def readable(part: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    """The readable texts under `keys`: a text itself, or the `text` of each listed part."""
    found = []
    for key in keys:
        value = lookup(part, key) if "." in key else part.get(key)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            spend(len(value))
            found += [
                item["text"]
                for item in value
                if isinstance(item, dict) and isinstance(item.get("text"), str)
            ]
    return found


def parsed(value: Any) -> Any:
    """Tool arguments travel as JSON text in one dialect and as an object in another."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return as_json(value)
        except Unread:
            return value
    return value
