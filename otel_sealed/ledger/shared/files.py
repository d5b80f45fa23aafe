"""The file of a ledger: its owner's alone, and no symbolic link."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o600


class SymbolicLinkError(OSError):
    """The ledger is a symbolic link: what it leads to is not ours to change."""

    def __init__(self) -> None:
        """It has the number that the system has for it."""
        super().__init__(errno.ELOOP, "it is a symbolic link")


def private(path: Path) -> tuple[int, int]:
    """Make the file for its owner alone, or make it so: it holds a key. Raises OSError.

    Which file that is.
    """
    no_link(path)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, _PRIVATE)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if stat.S_IMODE(found.st_mode) & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(descriptor, _PRIVATE)
    finally:
        os.close(descriptor)
    return found.st_dev, found.st_ino


def no_link(path: Path) -> None:
    """Raise SymbolicLinkError where the name itself is one; a folder above it may be one."""
    if path.is_symlink():
        raise SymbolicLinkError


def identity(path: Path) -> tuple[int, int]:
    """Which file has the name now."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return (0, 0)
    return found.st_dev, found.st_ino


def same(path: Path, made: tuple[int, int]) -> None:
    """Raise FileNotFoundError where another file has the name now."""
    if identity(path) != made:
        raise FileNotFoundError(errno.ENOENT, "it was replaced while it was opened")
