"""Reading: wire JSON plus a dialect's tables become records that hold no content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from otel_sealed import digest as d
from otel_sealed.contract import (
    Carrier,
    Constant,
    Dialect,
    Exchange,
    Field,
    RawAnswer,
    RawMessage,
)
from otel_sealed.model import (
    Block,
    Facts,
    Head,
    Kind,
    Message,
    Role,
    Shadow,
    Speaker,
    State,
    Value,
)
from otel_sealed.model.record import record, replace
from otel_sealed.steps import spend
from otel_sealed.vocab import word
from otel_sealed.wire.checkpoint import Segment
from otel_sealed.wire.handed import NOTHING_SEEN, Handed
from otel_sealed.wire.parse import Unread, as_json, as_text, lookup

_LONG_ID = 64
_NO_CONSTANTS: Mapping[Constant, bytes] = {}
_MAX_DEPTH = 8
_UNKNOWN = Carrier(type="other", kind=Kind.OTHER)


@record(frozen=True, slots=True)
class Sent:
    """A request, read. `body` and `raw` never leave the core.

    `body` is kept for the search of lost values, `raw` for the receipts of tools.
    """

    facts: Facts
    messages: tuple[Message, ...]
    head: Head
    body: Any = field(repr=False)
    live_from: int = 0
    raw: tuple[RawMessage, ...] = field(default=(), repr=False)


class MessageKey(NamedTuple):
    """A message's bytes, and who speaks in it: the last message of a request may be another's."""

    segment: Segment
    speaker: Speaker


class Remembered(Protocol):
    """Messages that were read before."""

    def get(self, key: MessageKey) -> Message | None:
        """The message as it was read, under the index it had then."""

    def keep(self, key: MessageKey, message: Message) -> None:
        """Remember a message."""


class Reader:
    """Reads bodies of one dialect under one key. Stateless."""

    def __init__(
        self,
        dialect: Dialect,
        digest: d.Digest,
        constants: Mapping[Constant, bytes] = _NO_CONSTANTS,
    ) -> None:
        """`dialect` says where things are, `digest` how they are hashed.

        `constants`: public values of known size and SHA-256, and the `canon` each of them has here.
        """
        self._dialect = dialect
        self._sizes = {one.size for one in constants}
        self._constants = {one.sha256: canon for one, canon in constants.items()}
        self._digest = digest
        self._nothing = digest.value(None)
        self._keys = {
            name: frozenset(f.key for f in carrier.fields) | carrier.keys
            for name, carrier in dialect.carriers.items()
        }

    def request(self, exchange: Exchange) -> Sent:
        """The messages, facts and head of a request. Raises Unread."""
        return self.parsed(exchange, as_json(exchange.request))

    def parsed(
        self,
        exchange: Exchange,
        body: Any,
        *,
        offset: int = 0,
        head: Head | None = None,
        segments: Sequence[Segment] = (),
        memo: Remembered | None = None,
    ) -> Sent:
        """The same of a parsed body whose history begins with message number `offset`.

        `head`: that of an earlier request whose head had the same bytes. `segments`: what each item
        of the history was parsed from, by which `memo` knows it. Raises Unread.
        """
        if not isinstance(body, dict):
            raise Unread("shape")
        raw = tuple(self._dialect.messages(body))
        if memo is not None and [one.index for one in raw] == list(range(len(segments))):
            known = zip(raw, segments, strict=True)
            messages = tuple([self._again(memo, one, one.index + offset, s) for one, s in known])
        else:
            messages = tuple([self._message(one, one.index + offset) for one in raw])
        facts = self._dialect.facts(body, exchange)
        return Sent(facts, messages, head or self._head(body), body, live_from(messages), raw)

    def _head(self, body: dict[str, Any]) -> Head:
        parts = self._dialect.head(body).items()
        return Head(
            tuple(
                (name, self._nothing if value is None else self._digest.value(value))
                for name, value in parts
            )
        )

    def answer(
        self, raw: RawAnswer, handed: Handed = NOTHING_SEEN
    ) -> tuple[tuple[Block, ...], bytes, int]:
        """(blocks, joined-text digest, its length) of a response, window digests included."""
        blocks = tuple(self._blocks(raw.parts, windows=True))
        if raw.cut:
            cut = frozenset(raw.cut)
            blocks = tuple(_cut(b) if b.sub in cut else b for b in blocks)
        if raw.anew:
            blocks = _renewed(blocks, self._blocks(raw.anew, windows=True))
        if handed.seen:
            parts = dict(raw.parts)
            blocks = tuple(
                handed.mark(b, raw.path, parts.get(b.sub), self._dialect, self._digest)
                for b in blocks
            )
        return blocks, *self._joined(raw.parts)

    def types(self, raw: RawAnswer) -> list[str]:
        """The types of the blocks of a response, in order, as `answer` has them."""
        found: list[str] = []
        for _, part in raw.parts:
            self._types(part, 0, found)
        return found

    def _types(self, part: Any, depth: int, found: list[str]) -> None:
        if not isinstance(part, dict):
            found.append("text" if isinstance(part, str) else "other")
            return
        carriers, name = self._dialect.carriers, self._dialect.type_of(part)
        found.append(word(name))
        carrier = carriers.get(name)
        for key in carrier.children if carrier is not None and depth < _MAX_DEPTH else ():
            for _, child in _children(lookup(part, key), key):
                if isinstance(child, dict) and self._dialect.type_of(child) in carriers:
                    self._types(child, depth + 1, found)

    def name(self, text: str) -> bytes:
        """Digest of an id, empty for an empty one."""
        return self._digest.name(text) if text else b""

    def _again(self, memo: Remembered, raw: RawMessage, index: int, segment: Segment) -> Message:
        """A message that may have been read before, from the same bytes."""
        key = MessageKey(segment, raw.speaker)
        message = memo.get(key)
        if message is None:
            message = self._message(raw, index)
            memo.keep(key, message)
        return message if message.index == index else replace(message, index=index)

    def _message(self, raw: RawMessage, index: int) -> Message:
        spend()
        blocks = tuple(self._blocks(raw.parts, windows=False))
        joined, chars = self._joined(raw.parts) if raw.speaker is Speaker.MODEL else (b"", 0)
        return Message(index, raw.speaker, blocks, self._link(raw, blocks), joined, chars)

    def _link(self, raw: RawMessage, blocks: tuple[Block, ...]) -> bytes:
        """One message's share of the prefix: what the model said, or what it was told."""
        if raw.speaker is not Speaker.MODEL:
            if raw.told is not None:
                return self._digest.value(raw.told)
            # not its speaker: a message of results and text closes one request and opens the next
            told = [{"type": "text", "text": p} if isinstance(p, str) else p for _, p in raw.parts]
            return self._digest.value(told)
        said = [
            (b.payload or (b.anchors[0] if b.anchors else b"")).hex() or b.type
            for b in blocks
            if b.kind is not Kind.REASONING and (b.payload or b.anchors)
        ]
        return self._digest.value([raw.speaker, said])

    def _joined(self, parts: tuple[tuple[str, Any], ...]) -> tuple[bytes, int]:
        pieces = []
        for _, part in parts:
            if isinstance(part, str):
                pieces.append(part)
            elif isinstance(part, dict):
                carrier = self._dialect.carriers.get(self._dialect.type_of(part))
                if carrier is not None and carrier.kind is Kind.TEXT:
                    pieces.extend(_texts(part, carrier.payload))
        text = _respelled("".join(pieces).strip())
        return (self._digest.text(text), len(text)) if text else (b"", 0)

    def _blocks(self, parts: tuple[tuple[str, Any], ...], *, windows: bool) -> list[Block]:
        found: list[Block] = []
        for sub, part in parts:
            self._block(found, sub, part, windows=windows, depth=0)
        return found

    def _block(self, found: list[Block], sub: str, part: Any, *, windows: bool, depth: int) -> None:
        """Adds a block, and what is nested in it."""
        spend()
        if isinstance(part, str):
            text = part.strip()
            payload = self._digest.text(text) if text else b""
            found.append(Block("text", Kind.TEXT, sub, payload=payload, payload_chars=len(text)))
            return
        if not isinstance(part, dict):
            found.append(Block("other", Kind.OTHER, sub, known=False))
            return
        name = self._dialect.type_of(part)
        carriers = self._dialect.carriers
        carrier = carriers.get(name)
        found.append(self._carrier(sub, part, word(name), carrier, windows=windows))
        if carrier is None or depth >= _MAX_DEPTH:
            return
        for key in carrier.children:
            for step, child in _children(lookup(part, key), key):
                if isinstance(child, dict) and self._dialect.type_of(child) in carriers:
                    inner = f"{sub}.{step}" if sub else step
                    self._block(found, inner, child, windows=windows, depth=depth + 1)

    def _carrier(
        self, sub: str, part: dict[str, Any], name: str, carrier: Carrier | None, *, windows: bool
    ) -> Block:
        known = carrier is not None
        fields = carrier.fields if carrier else self._sealed_looking(part)
        carrier = carrier or _UNKNOWN
        texts: dict[str, bytes] = {}  # one text is often signed, payload and shadow in one
        values = tuple([self._value(part, f, texts, windows=windows) for f in fields])
        payload, chars = self._payload(part, carrier, texts) if carrier.payload else (b"", 0)
        ids = [text for key in carrier.ids if isinstance(text := lookup(part, key), str) and text]
        ids += [
            text.partition(carrier.mark)[0] for text in ids if carrier.mark and carrier.mark in text
        ]
        server_id = as_text(lookup(part, carrier.server_id)) if carrier.server_id else ""
        return Block(
            name,
            carrier.kind,
            sub,
            values,
            tuple([self._digest.name(text) for text in ids]),
            payload,
            chars,
            self._shadows(part, carrier, texts) if carrier.shadows else (),
            self._extras(part, carrier) if carrier.envelope else (),
            tuple([h for text in ids if len(text) >= _LONG_ID for h in self._hidden(text)]),
            known,
            bool(server_id),
            bool(carrier.transient) and server_id.startswith(carrier.transient),
        )

    def _text(self, text: str, texts: dict[str, bytes]) -> bytes:
        """Digest of a text, which `texts` may hold already."""
        digest = texts.get(text)
        if digest is None:
            digest = texts[text] = self._digest.text(text)
        return digest

    def _sealed_looking(self, part: dict[str, Any]) -> tuple[Field, ...]:
        """A block type no table knows is sealed all the same where its keys say so (A19)."""
        return tuple(
            Field(key, f"{self._dialect.name}.other.{artifact}")
            for key, artifact in self._dialect.sealed_keys.items()
            if isinstance(part.get(key), str)
        )

    def _value(
        self, part: dict[str, Any], field_: Field, texts: dict[str, bytes], *, windows: bool
    ) -> Value:
        found: Any = _MISSING
        for key in (field_.key, *field_.aliases) if field_.aliases else (field_.key,):
            found = lookup(part, key, _MISSING)
            if found is not _MISSING:
                break
        if field_.hidden is not None and (found is _MISSING or not found):
            found = _behind(lookup(part, field_.hidden[0]), field_.hidden[1]) or found
        if found is _MISSING:
            return Value(field_.artifact, field_.role, State.ABSENT)
        if found is None:
            return Value(field_.artifact, field_.role, State.NULL)
        if isinstance(found, bytes):  # google-genai before 1.30 hands parsed bodies with bytes
            return self._from_bytes(field_, found, windows=windows)
        if not isinstance(found, str):
            empty = field_.role is Role.ECHO and not found  # a list that holds nothing
            state = State.EMPTY if empty else State.INVALID
            return Value(field_.artifact, field_.role, state, self._digest.value(found))
        if not found:
            return Value(field_.artifact, field_.role, State.EMPTY, self._digest.text(""))
        return self._from_text(field_, found, texts, windows=windows)

    def _from_bytes(self, field_: Field, found: bytes, *, windows: bool) -> Value:
        digest = self._digest.blob(found)
        prints = self._digest.windows(found) if windows else b""
        state = State.PRESENT if found else State.EMPTY
        canon = self._canon(found, digest)
        return Value(field_.artifact, field_.role, state, digest, canon, len(found), prints)

    def _canon(self, data: bytes, canon: bytes) -> bytes:
        """`canon` of the bytes of a seal, or that of the public constant they are."""
        if len(data) not in self._sizes:
            return canon
        return self._constants.get(d.published(data), canon)

    def _canon_of(self, text: str) -> bytes:
        """The same of a text; in base64 it has a third more characters than bytes."""
        canon = self._digest.canon(text)
        if any(size <= len(text) <= size * 4 // 3 + 4 for size in self._sizes):
            return self._canon(d.canonical(text), canon)
        return canon

    def _from_text(
        self, field_: Field, found: str, texts: dict[str, bytes], *, windows: bool
    ) -> Value:
        role, digest = field_.role, self._digest
        data = d.decode_blob(found) if field_.binary else None
        if data is not None:
            return self._from_bytes(field_, data, windows=windows)
        data = d.utf8(found)
        if role is Role.ID:
            return Value(
                field_.artifact, role, State.PRESENT, digest.name(found), b"", len(data), b""
            )
        return Value(
            field_.artifact,
            role,
            State.PRESENT,
            self._text(found, texts),
            self._canon_of(found) if role is Role.SEAL else b"",
            len(data),
            digest.windows(data) if windows else b"",
        )

    def _payload(
        self, part: dict[str, Any], carrier: Carrier, texts: dict[str, bytes]
    ) -> tuple[bytes, int]:
        if carrier.kind in READABLE:
            text = "".join(_texts(part, carrier.payload)).strip()
            return (self._text(text, texts), len(text)) if text else (b"", 0)
        values = [_parsed(lookup(part, key)) for key in carrier.payload]
        if all(value is None for value in values):
            return b"", 0
        return self._digest.value(values), sum(len(str(v)) for v in values if isinstance(v, str))

    def _shadows(
        self, part: dict[str, Any], carrier: Carrier, texts: dict[str, bytes]
    ) -> tuple[Shadow, ...]:
        found = [text.strip() for text in _texts(part, carrier.shadows)]
        return tuple([Shadow(self._text(text, texts), len(text)) for text in found if text])

    def _extras(self, part: dict[str, Any], carrier: Carrier) -> tuple[bytes, ...]:
        known = self._keys[carrier.type]
        spend(len(part))
        if part.keys() <= known:
            return ()
        return tuple(
            self._digest.raw(b"x", d.counted([key, value]))
            if key not in _CACHE_KEYS and key not in carrier.passed | carrier.filled
            else self._digest.raw(b"x", d.utf8(key))
            for key, value in part.items()
            if key not in known and value is not None and (value or key not in carrier.hollow)
        )

    def _hidden(self, text: str) -> Iterator[bytes]:
        for run in d.runs(text):
            yield self._digest.canon(run)
            for piece in d.endings(run):
                yield self._digest.canon(piece)


_MISSING: Any = object()
READABLE = frozenset({Kind.TEXT, Kind.REASONING, Kind.COMPACTION})
"""Kinds of blocks whose payload is text that can be read."""
_RENEWED = frozenset({Role.SEAL, Role.ID})
_CACHE_KEYS = frozenset({"cache_control", "cachePoint"})


def live_from(messages: tuple[Message, ...]) -> int:
    """Index in `messages` of the first one after the last that starts a turn of the user.

    Closing messages that mix tool results and text still continue the loop they answer.
    """
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].speaker is Speaker.USER:
            return at + 1
    return 0


def _renewed(blocks: tuple[Block, ...], others: Iterable[Block]) -> tuple[Block, ...]:
    """Blocks with the other bytes that some of their seals came in as well."""
    twins = {block.sub: block for block in others}
    return tuple(
        _twinned(block, twins[block.sub]) if block.sub in twins else block for block in blocks
    )


def _twinned(block: Block, twin: Block) -> Block:
    """A block that is found by the ids of its twin, too, and has its seals and their id as well."""
    came = {v.artifact: v.digest for v in block.values if v.role in _RENEWED}
    anew = [
        replace(value, role=Role.ANEW)
        for value in twin.values
        if value.state is State.PRESENT and came.get(value.artifact, value.digest) != value.digest
    ]
    anchors = dict.fromkeys((*block.anchors, *twin.anchors))
    return replace(block, values=(*block.values, *anew), anchors=tuple(anchors))


def _cut(block: Block) -> Block:
    """A block whose seal had begun to come and did not end."""
    values = tuple(
        replace(v, state=State.CUT) if v.role is Role.SEAL and v.state is State.PRESENT else v
        for v in block.values
    )
    return replace(block, values=values)


def _behind(text: Any, mark: str) -> str:
    return Field.told(text, mark) if isinstance(text, str) else ""


def _children(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for index, child in enumerate(value):
            spend()
            yield f"{key}.{index}", child
    elif isinstance(value, dict):
        yield key, value


def _texts(part: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """The readable strings under `keys`: a string itself, or the `text` of each listed part."""
    for key in keys:
        value = lookup(part, key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            spend(len(value))
            for item in value:
                if isinstance(item, dict) and isinstance(item.get("text"), str):
                    yield item["text"]


def _respelled(text: str) -> str:
    """An answer that is JSON in one spelling: hosts keep what it says as an object."""
    value = _parsed(text) if text[:1] + text[-1:] in ("{}", "[]") else text
    return text if value is text else d.spelled(value).decode("utf-8", "surrogatepass")


def _parsed(value: Any) -> Any:
    """Tool arguments travel as JSON text in one dialect and as an object in another."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return as_json(value)
        except Unread:
            return value
    return value
