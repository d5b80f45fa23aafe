"""Files that others made, read within bounds: unpacked, cut into lines, parsed.

Model. A file is bytes, compressed or not; it is one JSON document or lines of them. What is in it
is nobody's word but its maker's, so each step has a bound of its own, and work is linear in the
bytes on disk: a compressed file may inflate to `FREE` bytes and `RATIO` times what was read of it,
a line or a document has a longest length, and JSON is handed to the parser once it is known to make
at most `MAX_NODES` objects. What exceeds a bound is `Unread` with a reason that `WHY` words.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from io import RawIOBase
from typing import IO, Any, Final

from otel_sealed.wire.inflate import Unpacked
from otel_sealed.wire.parse import MARKS, Unread, loads

MAX_LINE: Final = 1 << 26
"""Most bytes of a line (64 MiB): twice the largest request that a provider takes (32 MB)."""
MAX_DOCUMENT: Final = 1 << 28
"""Most bytes of one JSON document (256 MiB): a HAR file of a long session."""
MAX_NODES: Final = 1 << 22
"""Most values of one JSON text (4 Mi): at 64 bytes an empty list they take 256 MiB."""
FREE: Final = 1 << 24
"""What any compressed file may inflate to (16 MiB)."""
RATIO: Final = 200
"""What a larger one may inflate to for each of its bytes: records of real runs come to 15 to 60,
the most that deflate can do is 1032."""

SIZE: Final = "size"
NODES: Final = "nodes"
BOMB: Final = "bomb"
WHY: Final = {
    SIZE: f"longer than {MAX_LINE >> 20} MiB",
    NODES: f"more than {MAX_NODES >> 20} Mi JSON values in one text",
    BOMB: f"unpacks to more than {RATIO} times its size",
    "depth": "nested too deeply",
    "encoding": "not UTF-8 text",
    "json": "not valid JSON",
    "number": "holds a number that is too long",
}
"""The reasons for which a file, or a part of it, is not read."""

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class NotJson(Unread):
    """A text that is no JSON: `line` and `at` (a character, from 1) say where it stops being."""

    def __init__(self, line: int, at: int) -> None:
        """Both are numbers: the error of the parser holds the whole text, and is not chained."""
        super().__init__("json")
        self.line, self.at = line, at


def value_of(data: bytes) -> Any:
    """The value of a JSON text in UTF-8.

    Raises:
        Unread: With a key of `WHY`; `NotJson` where it is none.
    """
    if len(data) > MAX_NODES and values(data) > MAX_NODES:
        raise Unread(NODES)
    try:
        return loads(data.removeprefix(BOM_UTF8))
    except UnicodeDecodeError:
        raise Unread("encoding") from None
    except RecursionError:
        raise Unread("depth") from None
    except json.JSONDecodeError as error:
        raise NotJson(error.lineno, error.pos + 1) from None
    except ValueError:
        raise Unread("number") from None


def values(data: bytes) -> int:
    """At most so many values are in a JSON text; that many, where it is much."""
    count = _marks(data)
    return count if count <= MAX_NODES else _marks(_STRING.sub(b"", data))


def _marks(data: bytes) -> int:
    # each value but the first of a list or an object comes after a comma
    return 1 + len(data) - len(data.translate(None, MARKS))


class Inflated(RawIOBase):
    """What is in a compressed file, as a raw stream, up to a ratio.

    Reading raises what `inflate.Unpacked` raises, and Unread (`bomb`) beyond the ratio, after what
    came before it was read.
    """

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        """`file` is read from where it is and left open."""
        self._packed = _Counted(file)
        self._blocks = Unpacked(self._packed, encoding)
        self._came = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fills `buffer` with what is at hand; 0 at the end."""
        if self._came > FREE + RATIO * self._packed.count:
            raise Unread(BOMB)
        count = self._blocks.readinto(buffer)
        self._came += count
        return count


class _Counted(RawIOBase):
    """A file, and how many bytes of it were read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self.count += len(data)
        return data


def whole(file: Any, most: int) -> bytes:
    """All that is left of a file, up to `most` bytes.

    Raises:
        Unread: It is longer (`size`). No more than one byte beyond `most` was read.
    """
    data: bytes = file.read(most + 1)
    if len(data) > most:
        raise Unread(SIZE)
    return data


def lines(file: Any, most: int) -> Iterator[bytes | None]:
    """The lines of a file with their ends; None for one longer than `most` bytes, passed over."""
    while line := file.readline(most):
        if len(line) == most and not line.endswith(b"\n"):
            while (rest := file.readline(most)) and not rest.endswith(b"\n"):
                pass
            yield None
        else:
            yield line
