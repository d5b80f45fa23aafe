"""Append-only files of lines that stay within a bound and never fail whoever writes to them.

Theory of operation. A file is begun with the first line, so that a process with nothing to say
leaves nothing. Each write is one `write` to a descriptor in append mode. A child of `fork` begins
files of its own. After every hundredth of the bound the writer looks around: its segment is ended
at a tenth of the bound, or where somebody deleted it, and what is too old or too much is deleted,
the oldest first, whichever process wrote it. Where the disk is full or read-only, one log line
says so, and lines are lost until it is not.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from otel_sealed.vocab import SCOPE

_LOG: Final = logging.getLogger(SCOPE)
SIGNALS: Final = ("traces", "metrics", "logs")
_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a folder may hold, and for how long."""

    most_bytes: int
    most_days: int


class Store:
    """A folder that several `Lines` write into."""

    def __init__(self, folder: Path, bound: Bound) -> None:
        """Nothing is made yet."""
        self.folder = folder
        self.bound = bound
        self._complained = False

    def complain(self, error: OSError) -> None:
        """Say once that lines are lost."""
        if not self._complained:
            self._complained = True
            _LOG.warning(
                "%s: %s; telemetry is lost, the program goes on",
                self.folder,
                error.strerror or type(error).__name__,
            )

    def tidy(self) -> None:
        """Delete what is too old, and the oldest files until nine tenths of the bound suffice."""
        found: list[tuple[float, int, Path]] = []
        for signal in SIGNALS:
            for path in self.folder.glob(f"{signal}-*.jsonl"):
                try:
                    stat = path.lstat()
                except FileNotFoundError:
                    continue
                found.append((stat.st_mtime, stat.st_size, path))
        found.sort()
        total = sum(size for _, size, _ in found)
        oldest = time.time() - self.bound.most_days * _DAY
        for changed, size, path in found:
            if changed < oldest or total > self.bound.most_bytes * 9 // 10:
                path.unlink(missing_ok=True)
                total -= size


class Lines(io.TextIOBase):
    """A text stream of one signal of one run. Closing it is left to the end of the process."""

    def __init__(self, store: Store, stem: str) -> None:
        """Files are called `<stem>-<process id>.jsonl`, and from the second on `….2.jsonl`."""
        self._store = store
        self._stem = stem
        self._file = -1
        self._pid = 0
        self._segment = 0
        self._size = self._unlooked = 0
        self._torn = False

    def write(self, text: str) -> int:
        """Append whole lines; never raises for what the disk says."""
        try:
            self._write(text.encode())
        except OSError as error:
            self._store.complain(error)
        return len(text)

    def _write(self, data: bytes) -> None:
        if self._pid != os.getpid():
            self._pid, self._segment = os.getpid(), 0
            self._begin()
        elif self._file < 0:
            self._begin()
        rest = (b"\n" if self._torn else b"") + data
        self._torn = True
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._torn = False
        self._size += len(data)
        self._unlooked += len(data)
        if self._unlooked >= self._store.bound.most_bytes // 100:
            self._look_around()

    def _begin(self) -> None:
        """Begin the next segment. An old descriptor is only ours to close in this very process."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        prepare(self._store.folder)
        self._store.tidy()
        self._segment += 1
        number = f".{self._segment}" if self._segment > 1 else ""
        path = self._store.folder / f"{self._stem}-{self._pid}{number}.jsonl"
        self._file = open_private(path)
        self._size = self._unlooked = 0
        self._torn = False

    def _look_around(self) -> None:
        self._unlooked = 0
        gone = os.fstat(self._file).st_nlink == 0
        if gone or self._size >= self._store.bound.most_bytes // 10:
            self._begin()
        else:
            self._store.tidy()


def prepare(folder: Path) -> None:
    """Make a folder that only its owner may enter and that git ignores.

    Raises:
        OSError: It cannot be made, or is a link: a repository could bring one along.
    """
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "is a link; OTEL_SEALED_FOLDER may name what it leads to")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        with os.fdopen(open_private(ignore), "a", encoding="utf-8") as file:
            file.write("*\n")


def open_private(path: Path) -> int:
    """A file to append to that nobody else may read; a link in its place is not followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
