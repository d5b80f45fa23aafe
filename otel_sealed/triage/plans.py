"""What is to be read of a file: where reading went on to, and whether it is still the same file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from otel_sealed.errors import SealedError
from otel_sealed.triage import files

_HEAD: Final = 256


@dataclass(frozen=True, slots=True)
class Plan:
    """A file and where reading goes on. `anew`: what was read of it is forgotten first."""

    path: Path
    begin: int
    line: int
    size: int
    ident: int = 0
    identity: tuple[int, int] = (0, 0)
    head: bytes = b""
    changed: int = 0
    whole: bool = False
    broken: int = 0
    refused: int = 0
    anew: bool = False


class Known:
    """The files that were read before, by device and inode; what is taken out is not gone."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows of the index: id, device, inode, mark of the first bytes, and so on."""
        self._rows: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
        for row in rows:
            self._rows.setdefault(row[1:3], []).append(row)

    def take(self, where: tuple[int, int], head: bytes) -> tuple[Any, ...] | None:
        """The row of a file that begins so, which is known no longer."""
        rows = self._rows.get(where, [])
        found = next((row for row in rows if _begins(head, row[3])), None)
        if found is not None:
            rows.remove(found)
        return found

    def rest(self) -> Iterator[tuple[Any, ...]]:
        """What was not taken."""
        return chain.from_iterable(self._rows.values())


def plan_of(path: Path, known: Known) -> Plan:
    """What is to be read of a file; what is known of it is taken out of `known`."""
    try:
        stat = path.stat()
        with path.open("rb") as file:
            head = file.read(_HEAD)
        whole = files.packed(path)
    except OSError as error:
        raise SealedError(error.strerror or "cannot be read", where=str(path)) from None
    where = (stat.st_dev, stat.st_ino)
    row = known.take(where, head)
    mark = _mark(head)
    fresh = Plan(path, 0, 1, stat.st_size, 0, where, mark, stat.st_mtime_ns, whole, anew=True)
    if row is None:
        return fresh
    ident, *_, size, changed, begin, line, was_whole, broken, refused = row
    if (stat.st_size, stat.st_mtime_ns) == (size, changed):
        return replace(fresh, begin=stat.st_size, ident=ident, anew=False)
    if was_whole or stat.st_size < size:
        return replace(fresh, ident=ident)
    return replace(
        fresh, begin=begin, line=line, ident=ident, broken=broken, refused=refused, anew=False
    )


def _mark(head: bytes) -> bytes:
    """What the first bytes of a file are known by: how many, and their hash, never they."""
    return len(head).to_bytes(2) + hashlib.sha256(head).digest()


def _begins(head: bytes, mark: bytes | None) -> bool:
    """Whether a file still begins as it did: one that grows may have had fewer first bytes."""
    if not mark:
        return False
    length = int.from_bytes(mark[:2])
    return 0 < length <= len(head) and _mark(head[:length]) == mark
