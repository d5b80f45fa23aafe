"""Turns as packed bytes: what a ledger stores, in memory, in a file or in another process's memory.

Theory of operation. A turn is digests, sizes, enumerations and a few names that repeat. So each
distinct digest stands once in a table of 16-byte entries, and the rest is runs of small numbers
that refer to it. Names that repeat are numbered by the ledger, or stand in the record. The keys a
turn is found by are at its front, and to be had without unpacking anything else. No field is longer
than what its record holds, and no record holds text or ciphertext (`model.records`).

The format, version 1, every number unsigned and little-endian:

    1 byte   version
    1 byte   flags: 1 the counts take 4 bytes, not 2; 2 small numbers take 4 bytes, not 1;
             4 sizes take 4 bytes, not 2; 8 they take 8; 16 an entry is not 16 bytes long;
             32 names take 2 bytes, not 1
    8 counts keys; entries of the table; the conversation's entry; names of the record's own; small
             numbers; names; sizes; bytes of the raw run
    8 bytes  the number of the parent, + 1
    keys     small numbers: the entries of the table that the turn is found by
    table    the entries; under flag 16 their lengths stand before them, 4 bytes each
    small    enumerations, flags, counts and entries of the table, in the order of `_Packer`
    names    numbers of names, in the order of `_Packer`
    sizes    the lengths of the record's own names; then sizes of texts and values, the number of
             the exchange (+ 1), account and head where the ledger numbers them, in the order
             of `_Packer`
    raw      the record's own names (UTF-8), then window digests and the origin, in order
    4 bytes  CRC-32 of all before

Entry 0 and name 0 are nothing; names from 4097 on are the record's own. A flipped bit must not look
like a changed seal: what fails the checksum, or anything else, is `Corrupt`, and a ledger answers
such a turn as one it never held.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from otel_sealed.model import Block, Head, Kind, Role, Shadow, State, Turn, Value

VERSION: Final = 1
SIZE: Final = 16
MAX_NAMES: Final = 4_096
MAX_NAME: Final = 256
_WIDE_COUNTS: Final = 1
_WIDE_SMALL: Final = 2
_WIDTH_OF: Final = {0: 2, 4: 4, 8: 8}
_ODD: Final = 16
_WIDE_NAMES: Final = 32
_FLAGS: Final = 63
_CRC: Final = 4
_UTF8: Final = ("utf-8", "surrogatepass")
_MOST: Final = 2**63 - 1
_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}

# A place in these tables is a number in stored bytes: append, and never reorder.
_ROLES: Final = (Role.SEAL, Role.SIGNED, Role.ID, Role.ECHO, Role.ANEW)
_STATES: Final = (
    State.PRESENT,
    State.EMPTY,
    State.NULL,
    State.ABSENT,
    State.INVALID,
    State.CUT,
)
_KINDS: Final = (
    Kind.REASONING,
    Kind.TEXT,
    Kind.CALL,
    Kind.RESULT,
    Kind.COMPACTION,
    Kind.MARKER,
    Kind.MEDIA,
    Kind.OTHER,
)
_TRUTHS: Final = (None, False, True)
# By identity: hashing a member of an enumeration is a call of its own.
_ROLE_AT: Final = {id(role): at * 8 for at, role in enumerate(_ROLES)}
_STATE_AT: Final = {id(state): at for at, state in enumerate(_STATES)}
_KIND_AT: Final = {id(kind): at for at, kind in enumerate(_KINDS)}
_TRUTH_AT: Final = {truth: at for at, truth in enumerate(_TRUTHS)}
_SEAL: Final = Role.SEAL
_ANEW: Final = Role.ANEW
_PRESENT: Final = State.PRESENT
_CUT: Final = State.CUT


class Corrupt(ValueError):  # noqa: N818 - what it says of the bytes
    """Bytes that are no packed turn of a version known here."""


class Names:
    """Names, and digests of accounts and heads, that repeat: each numbered from 1.

    At most `limit` of both; others stand in each record.

    Not thread-safe.
    """

    def __init__(self, limit: int = MAX_NAMES) -> None:
        """`limit` 0: for records that leave the process, which have to stand alone."""
        self._limit = min(limit, MAX_NAMES)
        self.numbers: dict[str, int] = {"": 0}
        self.texts: list[str] = [""]
        self.digest_numbers: dict[bytes, int] = {}
        self.digests: list[bytes] = [b""]

    def number(self, text: str) -> int:
        """The number of a new name, or 0 where it is too long or one too many."""
        if len(self.texts) > self._limit or len(text) > MAX_NAME:
            return 0
        self.texts.append(text)
        self.numbers[text] = len(self.texts) - 1
        return len(self.texts) - 1

    def digest(self, digest: bytes) -> int:
        """The number of a digest, known or new, or 0 where it is one too many or nothing."""
        known = self.digest_numbers.get(digest, 0)
        if known or not digest or len(self.digests) > self._limit:
            return known
        self.digests.append(digest)
        known = self.digest_numbers[digest] = len(self.digests) - 1
        return known


ALONE: Final = Names(0)


def keys_of(turn: Turn) -> Iterator[bytes]:
    """Every digest a later request may show of `turn`, each once."""
    return iter(packed(turn)[1])


# ------------------------------------------------------------------------------------- packing


def pack(turn: Turn, names: Names = ALONE) -> bytes:
    """`turn` without its number. Its sizes and its parent are below 2**63."""
    return packed(turn, names)[0]


def packed(turn: Turn, names: Names = ALONE) -> tuple[bytes, list[bytes]]:
    """`turn` as `pack` has it, and the keys it is found by, each once."""
    return _Packer(names).turn(turn)


class _Packer:
    """The tables and numbers of one turn in the making."""

    __slots__ = (
        "_digests",
        "_keys",
        "_known",
        "_names",
        "_own",
        "_raw",
        "_sizes",
        "_small",
        "_words",
    )

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known = names.numbers
        self._own: dict[str, int] = {}
        self._digests: dict[bytes, int] = {b"": 0}
        self._keys: list[int] = []
        self._raw: list[bytes] = []
        self._small: list[int] = []
        self._sizes: list[int] = []
        self._words: list[int] = []

    def turn(self, turn: Turn) -> tuple[bytes, list[bytes]]:
        digests = self._digests
        self._sizes.append(len(turn.blocks))
        for block in turn.blocks:
            self._block(block)
        joined, response_key, thread, chain = keys = [
            digests.setdefault(digest, len(digests))
            for digest in (turn.joined, turn.response_key, turn.thread, turn.chain)
        ]
        self._keys += keys
        self._small += (
            _TRUTH_AT[turn.thinking] + 3 * _TRUTH_AT[turn.store] + 9 * turn.complete,
            joined,
            response_key,
            thread,
            chain,
            digests.setdefault(turn.told, len(digests)),
            len(turn.origin),
            len(turn.prefix),
            *[digests.setdefault(digest, len(digests)) for digest in turn.prefix],
            len(turn.head.parts),
        )
        self._sizes += (
            min(max(turn.exchange, -1) + 1, _MOST),
            turn.joined_chars,
            turn.prefix_shared,
        )
        self._names_of(
            turn.path,
            turn.dialect,
            turn.vendor,
            turn.platform,
            turn.host,
            turn.model,
            turn.stop,
            turn.context,
            *[part for part, _ in turn.head.parts],
        )
        for _, value in turn.head.parts:
            self._shared(value)
        self._shared(turn.account)
        self._raw.append(turn.origin)
        conversation = digests.setdefault(turn.conversation, len(digests))
        return self._assembled(conversation, turn.parent)

    def _block(self, block: Block) -> None:
        digests, small, sizes, keys = self._digests, self._small, self._sizes, self._keys
        shadows, extras, hidden = block.shadows, block.extras, block.hidden
        more = bool(shadows or extras or hidden)
        values, anchors = block.values, block.anchors
        payload = digests.setdefault(block.payload, len(digests))
        small += (
            _KIND_AT[id(block.kind)]
            + (8 if block.known else 0)
            + (16 if block.has_server_id else 0)
            + (32 if block.transient else 0)
            + (64 if more else 0),
            payload,
            len(anchors),
            len(values),
        )
        self._names_of(block.type, block.sub, *[value.artifact for value in values])
        sizes.append(block.payload_chars)
        for value in values:
            role, state, prints = value.role, value.state, value.prints
            canon = digests.setdefault(value.canon, len(digests))
            small += (
                _ROLE_AT[id(role)] + _STATE_AT[id(state)] + (64 if value.lost else 0),
                digests.setdefault(value.digest, len(digests)),
                canon,
                len(prints),
            )
            sizes.append(value.size)
            self._raw.append(prints)
            if (role is _SEAL and (state is _PRESENT or state is _CUT)) or role is _ANEW:
                keys.append(canon)
        for anchor in anchors:
            at = digests.setdefault(anchor, len(digests))
            small.append(at)
            keys.append(at)
        keys.append(payload)
        if more:
            sizes += [shadow.chars for shadow in shadows]
            for several in ([shadow.digest for shadow in shadows], extras, hidden):
                small.append(len(several))
                small += [digests.setdefault(digest, len(digests)) for digest in several]

    def _shared(self, digest: bytes) -> None:
        """A digest that other turns have, too: by a number of the ledger's, or 0 and its entry."""
        number = self._names.digest(digest)
        self._sizes.append(number)
        if not number:
            self._small.append(self._digests.setdefault(digest, len(self._digests)))

    def _names_of(self, *names: str) -> None:
        """Numbers of the ledger's, or of the record's own."""
        known, words = self._known, self._words
        for name in names:
            number = known.get(name)
            words.append(self._new(name) if number is None else number)

    def _new(self, name: str) -> int:
        if name in self._own:
            return self._own[name]
        number = self._names.number(name)
        if not number:
            number = self._own[name] = MAX_NAMES + 1 + len(self._own)
        return number

    def _assembled(self, conversation: int, parent: int) -> tuple[bytes, list[bytes]]:
        _, *entries = self._digests
        keys = [key for key in dict.fromkeys(self._keys) if key]
        own = [name.encode(*_UTF8) for name in self._own]
        sizes = [*map(len, own), *self._sizes]
        raw = b"".join((*own, *self._raw))
        told = (len(keys), len(entries), conversation, len(own))
        counts = (*told, len(self._small), len(self._words), len(sizes), len(raw))
        flags = 0
        if max(counts) >> 16:
            flags |= _WIDE_COUNTS
        if max(self._small) >> 8 or len(entries) >> 8:
            flags |= _WIDE_SMALL
        if max(self._words) >> 8:
            flags |= _WIDE_NAMES
        most = max(sizes)
        if most >> 16:
            flags |= 8 if most >> 32 else 4
        lengths = b""
        if set(map(len, entries)) - {SIZE}:
            flags |= _ODD
            lengths = _fixed([*map(len, entries)], 4)
        wide = 4 if flags & _WIDE_SMALL else 1
        body = b"".join(
            (
                bytes((VERSION, flags)),
                struct.pack("<8IQ" if flags & _WIDE_COUNTS else "<8HQ", *counts, parent + 1),
                _fixed(keys, wide),
                lengths,
                *entries,
                _fixed(self._small, wide),
                _fixed(self._words, 2 if flags & _WIDE_NAMES else 1),
                _fixed(sizes, _WIDTH_OF[flags & 12]),
                raw,
            )
        )
        data = body + zlib.crc32(body).to_bytes(_CRC, "little")
        return data, [entries[key - 1] for key in keys]


def _fixed(numbers: list[int], width: int) -> bytes:
    """Numbers of `width` bytes each."""
    return (
        bytes(numbers) if width == 1 else struct.pack(f"<{len(numbers)}{_CODES[width]}", *numbers)
    )


# ----------------------------------------------------------------------------------- unpacking


def found_by(data: bytes) -> tuple[list[bytes], bytes]:
    """The keys of a packed turn, each once, and that of its conversation. Raises Corrupt."""
    try:
        front = _Front(data)
        if front.flags & _ODD:
            table, _ = _table(front, data)
            return [table[key] for key in front.keys], table[front.conversation]
        start, end = front.at - SIZE, front.at + SIZE * front.entries
        keys = [data[start + SIZE * key : front.at + SIZE * key] for key in front.keys]
        at = start + SIZE * front.conversation
        if end > len(data) or max(front.keys, default=0) > front.entries:
            raise Corrupt("table")
        return keys, data[at : at + SIZE] if front.conversation else b""
    except (ValueError, IndexError, struct.error) as error:
        raise Corrupt("front") from error


def holds(data: bytes, key: bytes) -> bool:
    """Whether a packed turn whose index has a key like `key` is found by it.

    A full digest that stands in the record, and begins like one of its keys, is that key.
    """
    return key in data and (len(key) == SIZE or key in found_by(data)[0])


def key_count(data: bytes) -> int:
    """How many keys a packed turn has."""
    return int.from_bytes(data[2 : 6 if data[1] & _WIDE_COUNTS else 4], "little")


def whole(data: bytes) -> bool:
    """Whether the checksum at the end of a packed turn is that of what is before."""
    return zlib.crc32(data[:-_CRC]) == int.from_bytes(data[-_CRC:], "little")


def unpack(data: bytes, names: Names = ALONE, number: int = -1) -> Turn:
    """The turn of `data`, numbered. Raises Corrupt."""
    if not whole(data):
        raise Corrupt("checksum")
    try:
        return _Unpacker(data, names).turn(number)
    except (ValueError, LookupError, StopIteration, struct.error) as error:
        raise Corrupt("fields") from error


class _Front:
    """What stands before the table; `at` is where that begins."""

    __slots__ = (
        *("at", "conversation", "entries", "flags", "keys", "own"),
        *("parent", "raw", "sizes", "small", "wide", "words"),
    )

    def __init__(self, data: bytes) -> None:
        """Raises ValueError, IndexError or struct.error."""
        self.flags = flags = data[1]
        if data[0] != VERSION or flags > _FLAGS:
            raise Corrupt("version")
        wide = flags & _WIDE_COUNTS
        *counts, parent = struct.unpack_from("<8IQ" if wide else "<8HQ", data, 2)
        self.parent = parent - 1
        keys, self.entries, self.conversation, self.own = counts[:4]
        self.small, self.words, self.sizes, self.raw = counts[4:]
        at = 42 if wide else 26
        self.wide = 4 if flags & _WIDE_SMALL else 1
        self.at = at + keys * self.wide
        self.keys = _smalls(data[at : self.at], self.wide)


def _smalls(data: bytes, width: int) -> bytes | tuple[int, ...]:
    """Small numbers: bytes are a sequence of them as they are."""
    return data if width == 1 else struct.unpack(f"<{len(data) // width}I", data)


def _table(front: _Front, data: bytes) -> tuple[list[bytes], int]:
    """The entries, nothing as the one of number 0, and where they end."""
    at = front.at
    if not front.flags & _ODD:
        end = at + SIZE * front.entries
        if end > len(data):
            raise Corrupt("table")
        return [b"", *[data[place : place + SIZE] for place in range(at, end, SIZE)]], end
    lengths = struct.unpack_from(f"<{front.entries}I", data, at)
    at += 4 * front.entries
    table = [b""]
    for length in lengths:
        table.append(data[at : at + length])
        at += length
    return table, at


class _Unpacker:
    """The tables of one packed turn, and how far in it the reading is."""

    __slots__ = (
        "_at",
        "_conversation",
        "_digests",
        "_own",
        "_parent",
        "_raw",
        "_shared",
        "_size",
        "_take",
        "_texts",
        "_word",
    )

    def __init__(self, data: bytes, names: Names) -> None:
        front = _Front(data)
        self._digests, at = _table(front, data)
        self._conversation, self._parent = self._digests[front.conversation], front.parent
        end = at + front.wide * front.small
        self._take: Callable[[], int] = iter(_smalls(data[at:end], front.wide)).__next__
        at, width = end, 2 if front.flags & _WIDE_NAMES else 1
        words = struct.unpack_from(f"<{front.words}{_CODES[width]}", data, at)
        self._word: Callable[[], int] = iter(words).__next__
        end += width * front.words
        width = _WIDTH_OF[front.flags & 12]
        sizes = struct.unpack_from(f"<{front.sizes}{_CODES[width]}", data, end)
        self._size: Callable[[], int] = iter(sizes).__next__
        self._raw, self._at = data[end + width * front.sizes : -_CRC], 0
        if len(self._raw) != front.raw:
            raise Corrupt("raw")
        self._own = [self._bytes(self._size()).decode(*_UTF8) for _ in range(front.own)]
        self._texts, self._shared = names.texts, names.digests

    def turn(self, number: int) -> Turn:
        take, size, text, digests = self._take, self._size, self._text, self._digests
        blocks = tuple([self._block() for _ in range(size())])
        complete, truths = divmod(take(), 9)
        store, thinking = divmod(truths, 3)
        joined, response_key, thread, chain, told = [digests[take()] for _ in range(5)]
        origin_size = take()
        prefix = self._several()
        exchange, joined_chars, shared = size() - 1, size(), size()
        path, dialect, vendor, platform, host = [text() for _ in range(5)]
        model, stop, context = text(), text(), text()
        parts = tuple([(text(), self._common()) for _ in range(take())])
        account = self._common()
        return Turn(
            exchange=exchange,
            blocks=blocks,
            path=path,
            dialect=dialect,
            vendor=vendor,
            platform=platform,
            host=host,
            account=account,
            model=model,
            thinking=_TRUTHS[thinking],
            stop=stop,
            complete=bool(complete),
            store=_TRUTHS[store],
            response_key=response_key,
            conversation=self._conversation,
            chain=chain,
            prefix=prefix,
            prefix_shared=shared,
            told=told,
            head=Head(parts),
            origin=self._bytes(origin_size),
            joined=joined,
            joined_chars=joined_chars,
            thread=thread,
            context=context,
            number=number,
            parent=self._parent,
        )

    def _block(self) -> Block:
        take, size, text = self._take, self._size, self._text
        flags, payload, anchors, values = take(), self._digests[take()], take(), take()
        kind, sub, chars = text(), text(), size()
        held = tuple([self._value() for _ in range(values)])
        ids = tuple([self._digests[take()] for _ in range(anchors)])
        shadows: tuple[Shadow, ...] = ()
        extras: tuple[bytes, ...] = ()
        hidden: tuple[bytes, ...] = ()
        if flags & 64:
            shadows = tuple([Shadow(digest, size()) for digest in self._several()])
            extras, hidden = self._several(), self._several()
        return Block(
            kind,
            _KINDS[flags & 7],
            sub,
            held,
            ids,
            payload,
            chars,
            shadows,
            extras,
            hidden,
            bool(flags & 8),
            bool(flags & 16),
            bool(flags & 32),
        )

    def _value(self) -> Value:
        take, digests = self._take, self._digests
        what, digest, canon, prints = take(), digests[take()], digests[take()], take()
        return Value(
            self._text(),
            _ROLES[what >> 3 & 7],
            _STATES[what & 7],
            digest,
            canon,
            self._size(),
            self._bytes(prints),
            bool(what & 64),
        )

    def _text(self) -> str:
        number = self._word()
        return self._texts[number] if number <= MAX_NAMES else self._own[number - MAX_NAMES - 1]

    def _common(self) -> bytes:
        number = self._size()
        return self._shared[number] if number else self._digests[self._take()]

    def _several(self) -> tuple[bytes, ...]:
        take, digests = self._take, self._digests
        return tuple([digests[take()] for _ in range(take())])

    def _bytes(self, size: int) -> bytes:
        self._at += size
        return self._raw[self._at - size : self._at]
