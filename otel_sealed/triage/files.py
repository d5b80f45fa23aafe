"""Files cut into pieces of whole lines, and pieces read into calls, in whichever process.

A file is plain or gzipped, whole lines of JSON or one JSON document, and may be cut anywhere. Which
of the two it is shows in its first two lines and is decided once, so that every byte is handed to
the parser three times at most: as one of these two lines, as a document, and, where that is none
after all, as a line. What cannot be used is a flaw with its line and never more than that; a line
without an end is left for the next time, since somebody may be writing it. A line, a document or a
file beyond the bounds of `wire.intake` is *refused*: passed over without being held.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, cast

from otel_sealed.errors import SealedError
from otel_sealed.triage.model import Flaw
from otel_sealed.triage.reading import Entry, entry_of
from otel_sealed.triage.sources import signals
from otel_sealed.triage.unobserved import Point, points
from otel_sealed.wire import intake
from otel_sealed.wire.inflate import DamagedError
from otel_sealed.wire.intake import GZIP, WHY, ZSTD, Inflated
from otel_sealed.wire.parse import Unread

PIECE: Final = 4 << 20
"""Bytes of a piece: a few hundred spans, so that memory stays flat."""
CUT: Final = "cut short: its end is missing"
MAX_FLAWS: Final = 100
"""Flaws of a file, and of a piece, that are named; all are counted."""
MAX_BROKEN: Final = 100_000
"""Lines of no use after which a piece without any record is not read further: no record of ours
begins so, and a packed file of 80 KB may hold millions of them."""
_NAME: Final = re.compile(r"\.(?:json|jsonl|ndjson)(?=$|[.-])")
_BROKEN: Final = (OSError, EOFError, DamagedError, Unread)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some whole lines of a file: a range of its bytes, or `data` where it has to be unpacked.

    `line` is the number of the first one, from 1. `document`: may be one JSON value of many lines.
    `last`: ends with the file and not with a line end.
    """

    path: str
    start: int
    end: int
    line: int
    document: bool = False
    last: bool = False
    data: bytes | None = field(default=None, repr=False)


@dataclass(slots=True)
class Found:
    """What a piece holds. `read` bytes and `lines` need not be read again.

    `document`: it was one JSON value, to be read as a whole where it changes. `unfinished`: the
    last flaw is a line without an end, which is read again next time. `flaws` are the first of the
    `broken` ones; `refused` of them are beyond a bound, or are the rest of a file.
    `over`: what follows is not to be read.
    """

    calls: list[Entry] = field(default_factory=list)
    unobserved: list[Point] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    broken: int = 0
    refused: int = 0
    read: int = 0
    lines: int = 0
    document: bool = False
    unfinished: bool = False
    over: bool = False

    def flaw(self, file: str, line: int, what: str, *, refused: bool = False) -> None:
        """Count a flaw, and name it while there are few."""
        self.broken += 1
        self.refused += refused
        if len(self.flaws) < MAX_FLAWS:
            self.flaws.append(Flaw(file, line, what, refused))


def refusal(file: str, line: int, what: str, read: int = 0) -> Found:
    """Nothing but what was refused: a line of so many bytes, or the rest of a file."""
    found = Found(read=read, lines=int(read > 0))
    found.flaw(file, line, what, refused=True)
    return found


def found_in(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    """The files among the paths, and the JSON files, rotated and gzipped ones too, of folders.

    Raises:
        SealedError: A path is neither file nor folder, or a folder holds nothing to read.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [p for p in sorted(path.iterdir()) if _NAME.search(p.name) and p.is_file()]
            if not inside:
                raise SealedError(
                    "no JSON lines in this folder",
                    where=str(path),
                    remedy="name the folder or the files that hold the record",
                )
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise SealedError("no such file or folder", where=str(path))
    return tuple(dict.fromkeys(found))


def packed(path: Path) -> bool:
    """Whether a file is gzipped."""
    with path.open("rb") as file:
        return file.read(2) == GZIP


def pieces(path: Path, start: int = 0, line: int = 1) -> Iterator[Piece | Found]:
    """The pieces of a file from a byte on, which is at the beginning of line `line`."""
    name = str(path)
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if head == ZSTD:
                yield refusal(name, 0, "compressed with zstd, which this does not read")
            elif head[:2] == GZIP:
                file.seek(0)
                yield from _cut(name, BufferedReader(Inflated(file, "gzip")), 0, 1, keep=True)
            else:
                file.seek(start)
                yield from _cut(name, file, start, line, keep=False)
    except _BROKEN as error:
        yield refusal(name, 0, _why(error))


def of_stream(name: str, stream: IO[bytes]) -> Iterator[Piece | Found]:
    """The pieces of a stream that is read once, packed or not."""
    whole = _Rejoined(stream)
    try:
        if whole.begins(GZIP):
            packed = Inflated(cast("IO[bytes]", whole), "gzip")
            yield from _cut(name, BufferedReader(packed), 0, 1, keep=True)
        else:
            yield from _cut(name, whole, 0, 1, keep=True)
    except _BROKEN as error:
        yield refusal(name, 0, _why(error))


def _why(error: Exception) -> str:
    if isinstance(error, Unread):
        return f"{WHY[error.reason]}: not read further"
    return getattr(error, "strerror", None) or CUT


class _Rejoined:
    """A stream whose first bytes were looked at."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = b""

    def begins(self, mark: bytes) -> bool:
        while len(self._head) < len(mark) and (more := self._stream.read(len(mark))):
            self._head += more
        return self._head.startswith(mark)

    def read(self, size: int) -> bytes:
        if not self._head:
            return self._stream.read(size)
        data, self._head = self._head[:size], self._head[size:]
        return data


def _cut(name: str, file: Any, at: int, line: int, *, keep: bool) -> Iterator[Piece | Found]:
    """One document, or pieces that end with a line, as large as `PIECE` or as one line needs."""
    blocks = iter(lambda: file.read(PIECE), b"")
    if at == 0:
        head = _head(blocks)
        if _one_document(head):
            yield _document(name, head, blocks, keep=keep)
            return
        blocks = chain([head], blocks)
    yield from _of_lines(name, blocks, at, line, keep=keep)


def _head(blocks: Iterator[bytes]) -> bytes:
    """The first two lines and what was read with them, as far as a line may be long."""
    parts: list[bytes] = []
    size = ends = 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        ends += block.count(b"\n")
        if ends > 1 or size > intake.MAX_LINE:
            break
    return b"".join(parts)


def _document(name: str, head: bytes, blocks: Iterator[bytes], *, keep: bool) -> Piece | Found:
    parts, size = [head], len(head)
    for block in blocks:
        size += len(block)
        if size > intake.MAX_DOCUMENT:
            most = intake.MAX_DOCUMENT >> 20
            found = refusal(name, 1, f"one JSON text longer than {most} MiB: not read", size)
            found.document = True
            return found
        if keep:
            parts.append(block)
    data = b"".join(parts) if keep else None
    return Piece(name, 0, size, 1, document=True, last=True, data=data)


def _of_lines(
    name: str, blocks: Iterable[bytes], at: int, line: int, *, keep: bool
) -> Iterator[Piece | Found]:
    parts: list[bytes] = []  # of the line that has no end yet
    size = passed = 0  # bytes of it: held, or passed over
    for whole in blocks:
        block = whole
        if passed:
            over = block.find(b"\n") + 1
            passed += over or len(block)
            if not over:
                continue
            yield refusal(name, line, f"{WHY[intake.SIZE]}: not read", passed)
            at, line, passed = at + passed, line + 1, 0
            block = block[over:]
        end = block.rfind(b"\n") + 1
        if not end:
            parts.append(block)
            size += len(block)
            if size > intake.MAX_LINE:
                parts, size, passed = [], 0, size
            continue
        data = b"".join((*parts, block[:end]))
        yield Piece(name, at, at + len(data), line, data=data if keep else None)
        at, line = at + len(data), line + data.count(b"\n")
        parts, size = [block[end:]], len(block) - end
    if passed:
        yield refusal(name, line, f"{WHY[intake.SIZE]}: not read", passed)
    elif size:
        kept = b"".join(parts) if keep else None
        yield Piece(name, at, at + size, line, last=True, data=kept)


def _one_document(data: bytes) -> bool:
    """Whether this begins a JSON value that its first line does not end.

    A first line that is broken does not make one, where the second is whole by itself.
    """
    first, end, rest = data.lstrip().partition(b"\n")
    if not end or first[:1] not in (b"[", b"{") or _parsed(first) is not None:
        return False
    second = rest.lstrip().partition(b"\n")[0]
    return not isinstance(_parsed(second), dict)


# ------------------------------------------------------------------------------------- reading


def read(piece: Piece) -> Found:
    """The calls of a piece; never raises for what is in it."""
    found = Found(read=piece.end - piece.start)
    try:
        data = piece.data if piece.data is not None else _bytes_of(piece)
    except OSError as error:
        found.flaw(piece.path, piece.line, error.strerror or "cannot be read", refused=True)
        return found
    if piece.document and _whole(data, piece, found):
        return found
    number = piece.line
    for line in _split(data):
        if line.strip(b" \t\r\n\0"):
            taken = _line(line, piece.path, number, found)
            if not taken and piece.last and not line.endswith(b"\n"):
                found.read -= len(line)
                found.unfinished = True
        number += line.endswith(b"\n")
        if found.broken > MAX_BROKEN and not found.calls:
            what = f"{MAX_BROKEN:,} lines and no record among them: not read further"
            found.flaws.clear()
            found.flaw(piece.path, 0, what, refused=True)
            found.over = True
            break
    found.lines = number - piece.line
    return found


def _split(data: bytes) -> Iterator[bytes]:
    """Its lines with their ends, one after the other: a list of them could be larger than it."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        yield data[at:end]
        at = end


def _bytes_of(piece: Piece) -> bytes:
    with Path(piece.path).open("rb") as file:
        file.seek(piece.start)
        return file.read(piece.end - piece.start)


def _whole(data: bytes, piece: Piece, found: Found) -> bool:
    """Whether a piece is one JSON value, the calls of which are found."""
    try:
        value = intake.value_of(data)
    except Unread as unread:
        if unread.reason not in (intake.NODES, "depth"):
            return False
        found.document = True
        found.flaw(piece.path, piece.line, f"{WHY[unread.reason]}: not read", refused=True)
        return True
    found.document = True
    _value(value, piece.path, piece.line, found)
    return True


def _line(line: bytes, path: str, number: int, found: Found) -> bool:
    try:
        value = intake.value_of(line)
    except Unread as unread:
        if unread.reason in (intake.NODES, "depth"):
            found.flaw(path, number, f"{WHY[unread.reason]}: not read", refused=True)
            return True
        value = None
    if value is None:
        found.flaw(path, number, "not JSON, or cut short")
        return False
    _value(value, path, number, found)
    return True


def _value(value: Any, path: str, number: int, found: Found) -> None:
    signs = signals(value)
    if signs is None:
        found.flaw(path, number, "JSON of no shape that this version reads")
        return
    try:
        found.calls += [entry for s in signs if (entry := entry_of(s, number)) is not None]
        found.unobserved += points(value)
    except RecursionError:
        found.flaw(path, number, f"{WHY['depth']}: not read", refused=True)


def _parsed(data: bytes) -> Any:
    """A JSON value; None for anything else, and for `null`, which says as much."""
    try:
        return intake.value_of(data)
    except Unread:
        return None
