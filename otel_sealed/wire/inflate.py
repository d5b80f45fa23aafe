"""Compressed bytes, unpacked a block at a time, within a bound.

Model. A compressed body is a sequence of layers ("gzip, br"), each a decoder that reads from the
one before. A decoder yields blocks of about `BLOCK` bytes and reads on only when it is asked for
more, so that memory holds one block of each layer and what the reader keeps, never what the body
inflates to. Each layer counts what it yields and stops at `most`: a body whose inner layer yields
nothing is bounded, too.

Invariants. Work is linear in the bytes read and the bytes yielded: a member of a gzip file, however
small, is charged like the `MEMBER` bytes that it costs to start. What came before damage, a cut or
the bound has been yielded when the error is raised.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import BytesIO, RawIOBase
from typing import IO, Any, Final

from otel_sealed.wire.parse import MAX_BODY, Unread

BLOCK: Final = 1 << 18
"""Bytes of a block: a decoder called for less costs more in calls than in work."""
MEMBER: Final = 1 << 12
"""Charged for each member of a gzip file and each frame of zstd: to start a decoder takes about as
long as to inflate so many bytes (5 µs)."""
_SLICE: Final = 1 << 16
"""Compressed bytes given to a decoder at once: what it does not use, it copies."""
_FIRST: Final = 1 << 9
"""The same at the start of a member, which may be the last one of many in a slice."""
_BROTLI_SLICE: Final = 8
"""The same for a brotli that cannot be limited (before 1.2): a meta-block takes 12 bytes at least
and yields 16 MiB at most, so that a slice yields no more than 32 MiB."""
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS

_Read = Callable[[int], bytes]
_Spend = Callable[[int], None]
_Decoder = Callable[[_Read, _Spend, int | None], Iterator[bytes]]


class DamagedError(ValueError):
    """Compressed bytes that are none. The error of the library is not chained: it may quote."""


class UnknownEncodingError(LookupError):
    """A content-encoding that nothing here reads."""


def unpacked(data: bytes, encoding: str, most: int = MAX_BODY) -> bytes:
    """A body without its content-encoding; one that is cut, as far as it goes.

    Raises:
        Unread: It is longer than `most` bytes (`size`).
        DamagedError: It is not of that encoding.
        UnknownEncodingError: It is of an encoding that is not known, or whose library is missing.
    """
    if not names(encoding):
        return data
    file = Unpacked(BytesIO(data), encoding, most)
    found = BytesIO()
    with suppress(EOFError):
        for block in file.blocks:
            found.write(block)
    return found.getvalue()


def names(encoding: str) -> list[str]:
    """The encodings of a header, in the order they were applied; `identity` is left out."""
    parts = (part.strip().lower() for part in encoding.split(","))
    return [part for part in parts if part not in ("", "identity")]


class Unpacked(RawIOBase):
    """What is in a compressed file, as a raw stream; `io.BufferedReader` reads lines of it.

    Reading raises what `unpacked` raises, and EOFError where the file is cut, each after what came
    before it was read.
    """

    def __init__(self, file: IO[bytes] | RawIOBase, encoding: str, most: int | None = None) -> None:
        """`file` is read from where it is and left open; `most` bytes may come, None: any."""
        first, *later = names(encoding)  # what was applied last comes off first
        if later:
            file = Unpacked(file, ",".join(later), most)
        try:
            decode = _DECODERS[first]
        except KeyError:
            raise UnknownEncodingError from None
        self.blocks = _bounded(decode, file.read, most)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fills `buffer` with what is at hand, a block at most; 0 at the end."""
        room = memoryview(buffer).cast("B")
        while not self._rest:
            block = next(self.blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        count = min(len(room), len(self._rest))
        room[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _bounded(decode: _Decoder, read: Any, most: int | None) -> Iterator[bytes]:
    """The blocks of one layer, as long as they and what else it spends are `most` at most."""
    spent = 0

    def spend(count: int) -> None:
        nonlocal spent
        spent += count
        if most is not None and spent > most:
            raise Unread("size")

    for block in decode(read, spend, most):
        spend(len(block))
        yield block


class _Slices:
    """Compressed bytes handed out in slices, the unused end of which can be given back."""

    def __init__(self, read: _Read) -> None:
        self._read = read
        self._data = memoryview(b"")
        self._at = 0

    def take(self, size: int) -> memoryview:
        """Some bytes, at most `size`; none at the end."""
        if self._at >= len(self._data):
            self._data, self._at = memoryview(self._read(_SLICE)), 0
        part = self._data[self._at : self._at + size]
        self._at += len(part)
        return part

    def more(self) -> bool:
        """Whether there are bytes left."""
        count = len(self.take(1))
        self.back(count)
        return count > 0

    def back(self, count: int) -> None:
        """So many bytes of the last slice were not used."""
        self._at -= count


def _gzip(read: _Read, spend: _Spend, _most: int | None) -> Iterator[bytes]:
    slices = _Slices(read)
    while head := slices.take(_FIRST):
        begun = len(bytes(head).lstrip(b"\0"))  # zeros may fill up the room between members
        slices.back(begun)
        if begun:
            spend(MEMBER)
            yield from _member(zlib.decompressobj(_GZIP_OR_ZLIB), slices)


def _deflate(read: _Read, _spend: _Spend, _most: int | None) -> Iterator[bytes]:
    """With the two bytes of zlib's header, as it should be, or without, as many send it."""
    slices = _Slices(read)
    head = bytes(slices.take(2))
    slices.back(len(head))
    zlibs = len(head) > 1 and head[0] & 15 == zlib.DEFLATED and int.from_bytes(head) % 31 == 0
    yield from _member(zlib.decompressobj(zlib.MAX_WBITS if zlibs else -zlib.MAX_WBITS), slices)


def _member(decoder: Any, slices: _Slices) -> Iterator[bytes]:
    """One stream of zlib's: the blocks of it; what follows it is given back."""
    size = _FIRST
    try:
        while part := slices.take(size):
            yield decoder.decompress(part, BLOCK)
            slices.back(len(decoder.unused_data) or len(decoder.unconsumed_tail))
            if decoder.eof:
                return
            size = min(2 * size, _SLICE)
        while block := decoder.decompress(b"", BLOCK):
            yield block
    except zlib.error:
        raise DamagedError from None
    if not decoder.eof:
        raise EOFError


def _brotli(read: _Read, _spend: _Spend, _most: int | None) -> Iterator[bytes]:
    brotli = _library("brotli", "brotlicffi")
    decoder = brotli.Decompressor()
    feed = getattr(decoder, "process", None) or decoder.decompress
    more = getattr(decoder, "can_accept_more_data", None)
    try:
        while part := read(_SLICE if more else _BROTLI_SLICE):
            if more is None:
                yield feed(part)
                continue
            block = feed(part, output_buffer_limit=BLOCK)
            while block or not more():  # brotli's `more` knows of input alone, not of output
                yield block
                block = feed(b"", output_buffer_limit=BLOCK)
    except brotli.error:
        raise DamagedError from None
    if not decoder.is_finished():
        raise EOFError


def _zstd(read: _Read, spend: _Spend, most: int | None) -> Iterator[bytes]:
    # the standard library's since 3.14, the same for older Pythons, and the one httpx 0.x uses
    zstd = _library("compression.zstd", "backports.zstd", "zstandard")
    limited = hasattr(zstd, "DecompressionParameter")
    start = partial(_limited_zstd if limited else _whole_zstd, zstd, most)
    slices = _Slices(read)
    try:
        while slices.more():
            spend(MEMBER)
            yield from _frame(start(), slices, _SLICE if limited else _FIRST)
    except zstd.ZstdError:
        raise DamagedError from None


def _limited_zstd(zstd: Any, most: int | None) -> Any:
    window = {zstd.DecompressionParameter.window_log_max: most.bit_length() - 1} if most else None
    return zstd.ZstdDecompressor(options=window)


def _whole_zstd(zstd: Any, most: int | None) -> Any:
    """The one that yields all that a slice holds; the one that can be limited loses a cut end.

    A block takes 4 bytes at least and yields 128 KiB at most, a slice of `_FIRST` 16 MiB.
    """
    return zstd.ZstdDecompressor(max_window_size=most or 0).decompressobj()


def _frame(decoder: Any, slices: _Slices, largest: int) -> Iterator[bytes]:
    bound = (BLOCK,) if hasattr(decoder, "needs_input") else ()
    size = _FIRST
    while part := slices.take(size):
        yield decoder.decompress(part, *bound)
        while bound and not (decoder.eof or decoder.needs_input):
            yield decoder.decompress(b"", *bound)
        if decoder.eof:
            slices.back(len(decoder.unused_data))
            return
        size = min(2 * size, largest)
    raise EOFError


def _library(*names: str) -> Any:
    for name in names:
        with suppress(ImportError):
            return import_module(name)
    raise UnknownEncodingError


_DECODERS: Final[dict[str, _Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
