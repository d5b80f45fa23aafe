"""Files cut into pieces of whole lines, and pieces read into calls, in whichever process.

A file is plain or gzipped, whole lines of JSON or one JSON document, and may be cut anywhere. What
cannot be used is a flaw with its line and never more than that; a line without an end is left for
the next time, since somebody may be writing it.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, cast

from otel_sealed.errors import SealedError
from otel_sealed.triage.model import Flaw
from otel_sealed.triage.reading import Entry, entry_of
from otel_sealed.triage.sources import signals

PIECE: Final = 4 << 20
"""Bytes of a piece: a few hundred spans, so that memory stays flat."""
MAX_LINE: Final = 1 << 28
"""Most bytes of a line or a document (256 MiB): what has no line ends must not fill the memory."""
_NAME: Final = re.compile(r"\.(?:json|jsonl|ndjson)(?=$|[.-])")
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BROKEN: Final = (OSError, EOFError, zlib.error)


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
    last flaw is a line without an end, which is read again next time.
    """

    calls: list[Entry] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    read: int = 0
    lines: int = 0
    document: bool = False
    unfinished: bool = False


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
        return file.read(2) == _GZIP


def pieces(path: Path, start: int = 0, line: int = 1) -> Iterator[Piece | Flaw]:
    """The pieces of a file from a byte on, which is at the beginning of line `line`."""
    name = str(path)
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if head == _ZSTD:
                yield Flaw(name, 0, "compressed with zstd, which this does not read")
            elif head[:2] == _GZIP:
                file.seek(0)
                with gzip.GzipFile(fileobj=file) as inner:
                    yield from _cut(name, inner, 0, 1, keep=True)
            else:
                file.seek(start)
                yield from _cut(name, file, start, line, keep=False)
    except _BROKEN as error:
        yield Flaw(name, 0, getattr(error, "strerror", None) or "cut short: its end is missing")


def of_stream(name: str, stream: IO[bytes]) -> Iterator[Piece | Flaw]:
    """The pieces of a stream that is read once, packed or not."""
    whole = _Rejoined(stream)
    try:
        if whole.begins(_GZIP):
            with gzip.GzipFile(fileobj=cast("IO[bytes]", whole)) as inner:
                yield from _cut(name, inner, 0, 1, keep=True)
        else:
            yield from _cut(name, whole, 0, 1, keep=True)
    except _BROKEN as error:
        yield Flaw(name, 0, getattr(error, "strerror", None) or "cut short: its end is missing")


class _Rejoined:
    """A stream whose first bytes were looked at."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = b""

    def begins(self, mark: bytes) -> bool:
        while len(self._head) < len(mark) and (more := self._stream.read(len(mark))):
            self._head += more
        return self._head.startswith(mark)

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._stream.read(size)
        if size < 0:
            data, self._head = self._head, b""
            return data + self._stream.read()
        data, self._head = self._head[:size], self._head[size:]
        return data


def _cut(name: str, file: Any, at: int, line: int, *, keep: bool) -> Iterator[Piece | Flaw]:
    """Pieces that end with a line, as large as `PIECE` or as one line needs."""
    rest = b""
    begun = at == 0
    while block := file.read(PIECE):
        data = rest + block
        end = data.rfind(b"\n") + 1
        document = begun and _one_document(data)
        if not end or document:
            rest = data
            if len(rest) > MAX_LINE:
                yield Flaw(name, line, "longer than 256 MiB: not read")
                return
            continue
        kept = data[:end] if keep else None
        yield Piece(name, at, at + end, line, begun, data=kept)
        line += data.count(b"\n", 0, end)
        at, rest, begun = at + end, data[end:], False
    if rest:
        kept = rest if keep else None
        yield Piece(name, at, at + len(rest), line, begun, last=True, data=kept)


def _one_document(data: bytes) -> bool:
    """Whether this begins a JSON value that its first line does not end.

    A first line that is broken does not make one, where the second is whole by itself.
    """
    first, _, rest = data.lstrip().partition(b"\n")
    if first[:1] not in (b"[", b"{") or _parsed(first) is not None:
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
        found.flaws.append(Flaw(piece.path, piece.line, error.strerror or "cannot be read"))
        return found
    if piece.document and _as_document(data, piece, found):
        return found
    lines = data.split(b"\n")
    found.lines = len(lines) - 1
    for at, line in enumerate(lines):
        if line.strip(b" \t\r\0"):
            whole = _line(line, piece.path, piece.line + at, found)
            if not whole and piece.last and at == len(lines) - 1:
                found.read -= len(line)
                found.unfinished = True
    return found


def _bytes_of(piece: Piece) -> bytes:
    with Path(piece.path).open("rb") as file:
        file.seek(piece.start)
        return file.read(piece.end - piece.start)


def _as_document(data: bytes, piece: Piece, found: Found) -> bool:
    if b"\n" not in data.strip() or not _one_document(data):
        return False
    value = _parsed(data)
    if value is None:
        return False
    found.document = True
    _value(value, piece.path, piece.line, found)
    return True


def _line(line: bytes, path: str, number: int, found: Found) -> bool:
    value = _parsed(line)
    if value is None:
        found.flaws.append(Flaw(path, number, "not JSON, or cut short"))
        return False
    _value(value, path, number, found)
    return True


def _value(value: Any, path: str, number: int, found: Found) -> None:
    signs = signals(value)
    if signs is None:
        found.flaws.append(Flaw(path, number, "JSON of no shape that this version reads"))
    else:
        found.calls += [entry for s in signs if (entry := entry_of(s, number)) is not None]


def _parsed(data: bytes) -> Any:
    """A JSON value; None for anything else, and for `null`, which tells as much."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
