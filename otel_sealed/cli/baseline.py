"""`otel-sealed baseline`: the losses that were observed, as a file of losses that are known."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from otel_sealed import vocab
from otel_sealed.cli import OK, complain, note
from otel_sealed.cli.records import files_in, losses, records
from otel_sealed.cli.show import write
from otel_sealed.errors import SealedError
from otel_sealed.model import Fate
from otel_sealed.telemetry import names
from otel_sealed.telemetry.entries import MAX_BYTES, TOO_LONG
from otel_sealed.telemetry.known import KnownLosses, Loss, parse, utc_today
from otel_sealed.wire import intake
from otel_sealed.wire.parse import Unread

DAYS: Final = 90
REASON: Final = "baseline"
_FATES: Final = frozenset(fate.value for fate in Fate)
_HEADER: Final = """\
# Losses that are accepted for now: no event, no alert. OTEL_SEALED_KNOWN names this file.
# `expires` is the last day, in UTC. Say in `reason` who mends it, and when.
"""


def run(paths: Sequence[str], output: str, *, today: Callable[[], date] = utc_today) -> int:
    """Write an entry for everything observed that no entry of the file covers yet."""
    files = files_in(paths)
    if not files:
        return complain("nothing to read", "give a folder of OTLP JSON lines, such as .otel-sealed")
    before = "" if output == "-" else _text(Path(output))
    entries, complaints = parse(before)
    if complaints:
        return complain(f"{output}: {complaints[0]}")
    known = KnownLosses(entries, today=today)
    new = [loss for loss in observed(files, today()) if not _covered(known, loss)]
    if new:
        _write(output, before, new)
    where = "standard output" if output == "-" else output
    note(f"{len(new)} new in {where}, {len(entries)} there before")
    return OK


def observed(files: Iterable[Path], today: date) -> list[Loss]:
    """Every kind of loss in the files once, by name, with the model by its base."""
    found = {
        Loss(
            artifact=loss.artifact,
            fate=Fate(loss.fate),
            provider=loss.provider,
            reason=REASON,
            expires=today + timedelta(days=DAYS),
            model=names.base_model(loss.model) if loss.model != vocab.FOLDED else vocab.FOLDED,
            service="" if loss.service.startswith("unknown_service") else loss.service,
        )
        for loss in losses(records(files))
        if loss.fate in _FATES
        and vocab.word(loss.artifact) == loss.artifact
        and vocab.word(loss.provider) == loss.provider
    }
    return sorted(found, key=lambda x: (x.service, x.provider, x.artifact, x.fate, x.model))


def _covered(known: KnownLosses, loss: Loss) -> bool:
    return known.covers(loss.artifact, loss.fate, loss.provider, loss.model, loss.service)


def _text(path: Path) -> str:
    """What the file holds; empty where there is none."""
    try:
        with os.fdopen(_opened(path, os.O_RDONLY), "rb") as file:
            data = intake.whole(file, MAX_BYTES)
        return data.decode()
    except FileNotFoundError:
        return ""
    except Unread:
        raise SealedError(TOO_LONG, where=str(path)) from None
    except UnicodeDecodeError:
        raise SealedError("no UTF-8 text", where=str(path)) from None
    except OSError as error:
        raise _unusable(path, error) from None


def _opened(path: Path, how: int) -> int:
    """A regular file; one that leads elsewhere, or that could wait for somebody, is refused."""
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.open(path, how | careful | getattr(os, "O_CLOEXEC", 0), 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "no regular file")
    return file


def _unusable(path: Path, error: OSError) -> SealedError:
    if path.is_symlink():
        return SealedError("is a link", where=str(path), remedy="name what it leads to")
    return SealedError(error.strerror or "cannot be read or written", where=str(path))


def _write(output: str, before: str, new: Iterable[Loss]) -> None:
    text = "".join([*([] if before else [_HEADER]), *map(_entry, new)])
    if output == "-":
        write(text)
        return
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with os.fdopen(_opened(Path(output), flags), "a", encoding="utf-8") as file:
            file.write(text if not before or before.endswith("\n") else f"\n{text}")
    except OSError as error:
        raise _unusable(Path(output), error) from None


def _entry(loss: Loss) -> str:
    rows = {
        "artifact": loss.artifact,
        "fate": loss.fate.value,
        "provider": loss.provider,
        "model": loss.model,
        "service": loss.service,
        "reason": loss.reason,
    }
    # a JSON string is a TOML one, but for a DEL, which none of these holds
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items() if value)
    return f"\n[[known]]\n{text}expires = {loss.expires.isoformat()}\n"
