"""What ended a command and is no `SealedError`: a fault of this machine, or one of ours.

A fault of the machine is named as such, with what to check. Neither line holds a word of the
exception, which may quote what was read: only our words, its class, and the place in a source file.
"""

from __future__ import annotations

import errno
import sqlite3
import ssl
from pathlib import Path
from typing import Final

_ISSUES: Final = "please report it with this line"
_CERTIFICATES: Final = (
    "this machine has no usable CA certificates",
    "install the package ca-certificates, or name a bundle in SSL_CERT_FILE",
)
_BY_NUMBER: Final = {
    errno.ENOSPC: ("no space is left on the disk", "free some, df -h shows which disk is full"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, or have the quota raised"),
    errno.EROFS: ("the file system is read-only", "run it where you may write"),
    errno.EACCES: ("permission denied", "check the owner and the mode of the file and its folder"),
    errno.EPERM: ("the system does not permit it", "check the owner, or the container's profile"),
    errno.EMFILE: ("too many files are open", "raise the limit: ulimit -n"),
    errno.ENFILE: ("too many files are open on this machine", "close some programs"),
    errno.ENOMEM: ("no memory is left", "give the container more, or read fewer files at once"),
    errno.EAGAIN: ("no process or thread can be started", "raise the limit: ulimit -u"),
    errno.EIO: ("the disk cannot be read or written", "check it: dmesg shows its errors"),
    errno.ELOOP: ("a link is in the way, and links are not followed", "name what it leads to"),
    errno.ENOENT: ("a file or folder is missing", "is a temporary or home folder gone?"),
    errno.EADDRINUSE: ("the port is taken", "choose another one"),
    errno.EADDRNOTAVAIL: ("this machine has no such address", "is the loopback up?"),
    errno.ECONNREFUSED: ("the connection was refused", "is the server running there?"),
    errno.ETIMEDOUT: ("the connection timed out", "check the network and the firewall"),
    errno.ENETUNREACH: ("the network is unreachable", "check the network"),
    errno.EHOSTUNREACH: ("the host is unreachable", "check the network"),
}
_BY_CLASS: Final[tuple[tuple[type[Exception], tuple[str, str]], ...]] = (
    (ssl.SSLError, ("TLS cannot be set up", _CERTIFICATES[1])),
    (PermissionError, _BY_NUMBER[errno.EACCES]),
    (MemoryError, _BY_NUMBER[errno.ENOMEM]),
    (
        ModuleNotFoundError,
        ("a package is missing", "python -m pip install --upgrade 'otel-sealed[demo]'"),
    ),
    (
        ImportError,
        ("a package cannot be loaded", "python -m pip check shows what does not fit"),
    ),
    (
        UnicodeEncodeError,
        ("this terminal takes no Unicode", "set PYTHONIOENCODING=utf-8 or a UTF-8 locale"),
    ),
    (sqlite3.OperationalError, ("SQLite cannot use its file", "is the disk full or read-only?")),
)


def line(error: Exception) -> str:
    """What it is, where it was raised, and whose fault it is."""
    known = _known(error)
    kind = f"{type(error).__name__} at {_place(error)}"
    return f"{known[0]}: {kind}" if known else f"our own fault: {kind}"


def remedy(error: Exception) -> str:
    """What to check."""
    known = _known(error)
    return known[1] if known else _ISSUES


def _known(error: Exception) -> tuple[str, str] | None:
    if isinstance(error, OSError) and _module(error) == "ssl":
        return _CERTIFICATES
    if isinstance(error, ImportError) and (error.name or "").startswith("otel_sealed"):
        return None
    number = getattr(error, "errno", None) if isinstance(error, OSError) else None
    if number in _BY_NUMBER and not isinstance(error, ssl.SSLError):
        return _BY_NUMBER[number]
    return next((says for kind, says in _BY_CLASS if isinstance(error, kind)), None)


def _module(error: Exception) -> str:
    return Path(_place(error).partition(":")[0]).stem


def _place(error: Exception) -> str:
    """File and line where it was raised, without a word of the message."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
