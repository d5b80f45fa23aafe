"""The key of a record folder: what every process that records there makes its digests with.

It stands in the file `key` of the folder, as hex, for its owner alone. Whoever holds it can find a
pasted id in the record; deleting it unlinks the record for good (docs/architecture.md#digests).
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from otel_sealed.telemetry.settings import KEY_BYTES, decode_key

if TYPE_CHECKING:
    from otel_sealed.telemetry.settings import Settings

NAME: Final = "key"
_BYTES: Final = 32
_LONGEST: Final = 256
"""Characters of the longest key there is, in hex, with room."""


def read(folder: Path) -> bytes:
    """The key of a folder; empty where there is none that could be read.

    A key that others may read is none, nor is a link: a repository could bring one along, and who
    knows the key can tell from a digest what was hashed.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = os.open(folder / NAME, flags | getattr(os, "O_CLOEXEC", 0))
        try:
            if not _private(os.fstat(file)):
                return b""
            key = decode_key(os.read(file, _LONGEST).decode("ascii").strip())
        finally:
            os.close(file)
    except (OSError, ValueError):
        return b""
    return key if len(key) in KEY_BYTES else b""


def _private(found: os.stat_result) -> bool:
    if not stat.S_ISREG(found.st_mode):
        return False
    if os.name == "nt":  # its modes say nothing of who may read
        return True
    mine = found.st_uid in (os.geteuid(), 0) or os.geteuid() == 0
    return mine and not stat.S_IMODE(found.st_mode) & 0o077


def shared(folder: Path) -> bytes:
    """The key of a folder, made where there is none; of several that make one, all get the same.

    Raises:
        OSError: The folder cannot be written to.
    """
    known = read(folder)
    if known:
        return known
    key = secrets.token_bytes(_BYTES)
    fresh = folder / f".{NAME}-{os.getpid()}-{secrets.token_hex(4)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="ascii") as file:
        file.write(key.hex() + "\n")
    try:
        # a link appears whole and only where there is none: whoever comes second takes the first's
        os.link(fresh, folder / NAME)
    except FileExistsError:
        if found := read(folder):
            return found
        fresh.replace(folder / NAME)  # what is there is no key of ours
        return read(folder) or key
    except OSError:  # a file system without links
        fresh.replace(folder / NAME)
        return read(folder) or key
    finally:
        fresh.unlink(missing_ok=True)
    return key


def keyed(settings: Settings, folder: Path) -> Settings:
    """`settings` with the key of the folder, unless they name one themselves.

    Raises:
        OSError: The folder cannot be written to.
    """
    from pydantic import SecretStr

    if settings.hash_key is not None:
        return settings
    return settings.model_copy(update={"hash_key": SecretStr(shared(folder).hex())})
