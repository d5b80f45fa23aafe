"""The session files agents leave behind, read for what they keep of the model's reasoning.

Theory of operation. A file is read line by line; the first line that belongs to an agent says whose
file it is, and that agent's reader tells what each further line adds to which conversation: model
turns, reasoning blocks with or without seal and readable text, compactions, refusals. Nothing but
counts and sizes is kept. From them follows which of three patterns a conversation has on file
(`Pattern`). What is on file is not what was sent: an agent may keep more in memory, and a front end
may keep less; neither is decidable from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

from otel_sealed.errors import SealedError
from otel_sealed.evidence.sessions import claude_code, codex
from otel_sealed.evidence.sessions.records import Found, Kept, Pattern, Session
from otel_sealed.transcript import opened
from otel_sealed.wire import intake
from otel_sealed.wire.parse import Unread

__all__ = ["Found", "Kept", "Pattern", "Session", "files_in", "read"]

_AGENTS: Final = (claude_code, codex)
_ENDINGS: Final = ("*.jsonl", "*.jsonl.gz", "*.jsonl.zst")

Told = Callable[[int], None]


def files_in(path: str | Path) -> list[Path]:
    """A file itself, or the session files of a folder and the folders in it.

    Raises:
        SealedError: It is neither.
    """
    root = Path(path)
    if root.is_dir():
        return sorted({found for ending in _ENDINGS for found in root.rglob(ending)})
    if root.exists():
        return [root]
    raise SealedError("no such file or folder", where=str(path))


def read(path: Path, told: Told = lambda _bytes: None) -> Found:
    """The conversations of a file; `told` hears how many bytes have been read.

    Raises:
        SealedError: The file cannot be read, or damaged further on.
    """
    found = Found(str(path))
    agent: Any = None
    sessions: dict[Any, Kept] = {}
    with opened(str(path)) as file:
        for line in _lines(file, found, told):
            agent = agent or next((a for a in _AGENTS if a.owns(line)), None)
            if agent is None or not agent.owns(line):
                found.others += 1
                continue
            key = agent.conversation(line)
            if key is not None:
                agent.add(sessions.setdefault(key, Kept(agent.NAME)), line)
    found.sessions = [
        Session(str(path), number, kept) for number, kept in enumerate(sessions.values(), 1)
    ]
    return found


def _lines(file: BufferedReader, found: Found, told: Told) -> Iterator[dict[str, Any]]:
    """Every line that is a JSON object; those that are not are counted."""
    passed = _Passed(file)
    for line in intake.lines(passed, intake.MAX_LINE):
        told(passed.position)
        found.lines += 1
        parsed = None
        if line is not None:
            if not line.strip():
                continue
            parsed = _object(line)
        if parsed is None:
            found.broken += 1
        else:
            yield parsed


class _Passed:
    """A file, and how much of it was read."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.position = 0

    def readline(self, most: int) -> bytes:
        line = self._file.readline(most)
        self.position += len(line)
        return line


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        parsed = intake.value_of(line)
    except Unread:
        return None
    return parsed if isinstance(parsed, dict) else None
