"""Reading: wire JSON plus a dialect's tables become records that hold no content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from otel_sealed import digest as d
from otel_sealed.contract import (
    Constant,
    Dialect,
    Exchange,
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
    Speaker,
    State,
)
from otel_sealed.model.record import record, replace
from otel_sealed.steps import spend
from otel_sealed.wire.blocks import NO_CONSTANTS, Blocks, parsed, readable
from otel_sealed.wire.checkpoint import Segment
from otel_sealed.wire.handed import NOTHING_SEEN, Handed
from otel_sealed.wire.parse import Unread, as_json


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
        constants: Mapping[Constant, bytes] = NO_CONSTANTS,
    ) -> None:
        """`dialect` says where things are, `digest` how they are hashed.

        `constants`: public values of known size and SHA-256, and the `canon` each of them has here.
        """
        self._dialect = dialect
        self._digest = digest
        self._nothing = digest.value(None)
        self._blocks = Blocks(dialect, digest, constants)
        self._texts = {
            name: carrier.payload
            for name, carrier in dialect.carriers.items()
            if carrier.kind is Kind.TEXT
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
        blocks = tuple(self._blocks.read(raw.parts, windows=True))
        if raw.cut:
            cut = frozenset(raw.cut)
            blocks = tuple(_cut(b) if b.sub in cut else b for b in blocks)
        if raw.anew:
            blocks = _renewed(blocks, self._blocks.read(raw.anew, windows=True))
        if handed.seen:
            parts = dict(raw.parts)
            blocks = tuple(
                handed.mark(b, raw.path, parts.get(b.sub), self._dialect, self._digest)
                for b in blocks
            )
        return blocks, *self._joined(raw.parts)

    def types(self, raw: RawAnswer) -> list[str]:
        """The types of the blocks of a response, in order, as `answer` has them."""
        return self._blocks.types(raw.parts)

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
        blocks = tuple(self._blocks.read(raw.parts, windows=False))
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
                pieces += readable(part, self._texts.get(self._dialect.type_of(part), ()))
        text = _respelled("".join(pieces).strip())
        return (self._digest.text(text), len(text)) if text else (b"", 0)


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


def _respelled(text: str) -> str:
    """An answer that is JSON in one spelling: hosts keep what it says as an object."""
    value = parsed(text) if text[:1] + text[-1:] in ("{}", "[]") else text
    return text if value is text else d.spelled(value).decode("utf-8", "surrogatepass")
