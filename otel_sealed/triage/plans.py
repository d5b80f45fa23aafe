"""What is to be read of a file: where reading went on to, and whether it is still the same file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
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
    anew: bool = False


def plan_of(path: Path, known: dict[Any, tuple[Any, ...]]) -> Plan:
    """What is to be read of a file; what is known of it is taken out of `known`."""
    try:
        stat = path.stat()
        with path.open("rb") as file:
            head = file.read(_HEAD)
        whole = files.packed(path)
    except OSError as error:
        raise SealedError(error.strerror or "cannot be read", where=str(path)) from None
    where = (stat.st_dev, stat.st_ino)
    keys = (k for k in known if k[:2] == where and _begins(head, k[2]))
    row = known.pop(next(keys, None), None)
    mark = _mark(head)
    fresh = Plan(path, 0, 1, stat.st_size, 0, where, mark, stat.st_mtime_ns, whole, anew=True)
    if row is None:
        return fresh
    ident, *_, size, changed, begin, line, was_whole, broken = row
    if (stat.st_size, stat.st_mtime_ns) == (size, changed):
        return replace(fresh, begin=stat.st_size, ident=ident, anew=False)
    if was_whole or stat.st_size < size:
        return replace(fresh, ident=ident)
    return replace(fresh, begin=begin, line=line, ident=ident, broken=broken, anew=False)


def _mark(head: bytes) -> bytes:
    """What the first bytes of a file are known by: how many, and their hash, never they."""
    return len(head).to_bytes(2) + hashlib.sha256(head).digest()


def _begins(head: bytes, mark: bytes | None) -> bool:
    """Whether a file still begins as it did: one that grows may have had fewer first bytes."""
    if not mark:
        return False
    length = int.from_bytes(mark[:2])
    return 0 < length <= len(head) and _mark(head[:length]) == mark
