"""`otel-sealed sessions`: what the session files of agents keep of the model's reasoning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from otel_sealed.cli import OK, UNUSABLE, VIOLATED, complain
from otel_sealed.cli.show import Screen, json_line, plural, progress, size, table
from otel_sealed.errors import SealedError
from otel_sealed.evidence.sessions import Found, Pattern, Session, files_in, read

_COLUMNS: Final = (
    "conversation",
    "agent",
    "turns",
    "pattern",
    "reasoning",
    "with seal",
    "with text",
    "compacted",
    "also",
)
_NUMBERS: Final = "turns,reasoning,compacted"
_STYLES: Final = {
    Pattern.COMPLETE: "green",
    Pattern.REDACTED_WITH_SEAL: "cyan",
    Pattern.TRUNCATED_TO_TEXT: "bold red",
    Pattern.MIXED: "yellow",
    Pattern.NO_REASONING: "",
}
_SAYS: Final = {
    Pattern.COMPLETE: "every reasoning block on file has its seal and, where one came, its text",
    Pattern.REDACTED_WITH_SEAL: "every reasoning block on file has its seal; none has text",
    Pattern.TRUNCATED_TO_TEXT: "no seal on file; resumed from it, the model goes on without them",
    Pattern.MIXED: "some reasoning blocks on file have their seal, some have none",
    Pattern.NO_REASONING: "nothing on file speaks of reasoning",
}
_LIMIT: Final = (
    "This is what is on file. What an agent keeps in memory, or a front end keeps of it, "
    "cannot be told from files."
)


def run(path: str, *, as_json: bool) -> int:
    """Read the session files in `path`; the exit status says whether seals are missing on file."""
    paths = files_in(path)
    found: list[Found] = []
    worst = OK
    with progress(printing=as_json) as bar:
        for number, file in enumerate(paths, 1):
            bar.begin(f"{number} of {len(paths)} files", _bytes(file))
            try:
                one = read(file, bar.at)
            except SealedError as error:
                worst = complain(error.line())
                continue
            found.append(one)
            if as_json:
                for session in one.sessions:
                    json_line(as_object(session, one))
    sessions = [session for one in found for session in one.sessions]
    if not sessions:
        remedy = "a file or folder of Claude Code or Codex, such as ~/.claude or ~/.codex"
        return worst or complain(f"{path}: holds no session of a known agent", remedy)
    if not as_json:
        _print(path, found, sessions)
    bad = any(session.kept.pattern.loses or session.kept.damaged for session in sessions)
    return UNUSABLE if worst else VIOLATED if bad else OK


def as_object(session: Session, found: Found) -> dict[str, Any]:
    """One conversation as `--json` prints it; sizes are bytes, unknown counts null."""
    kept = session.kept
    return {
        "file": session.file,
        "conversation": session.number,
        "agent": kept.agent,
        "version": kept.version or None,
        "sidechain": kept.sidechain,
        "pattern": kept.pattern,
        "turns": kept.turns,
        "reasoning": {
            "blocks": kept.blocks,
            "sealed": kept.sealed,
            "readable": kept.readable,
            "damaged": kept.damaged,
            "seal_bytes": kept.seal_bytes,
            "text_bytes": kept.text_bytes,
            "tokens": _told(kept.reasoning_tokens),
        },
        "cached_tokens": _told(kept.cached_tokens),
        "compactions": {"all": kept.compactions, "sealed": kept.compactions_sealed},
        "refused": dict(kept.refused),
        "lines": {"all": found.lines, "broken": found.broken, "others": found.others},
    }


def _told(count: int) -> int | None:
    return None if count < 0 else count


def _bytes(file: Path) -> int:
    """The size of a file, 0 for a pipe: then the bar has no end."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


# ---------------------------------------------------------------------------------- for people


def _print(path: str, found: list[Found], sessions: list[Session]) -> None:
    out = Screen()
    out.draw(table(_COLUMNS, (_cells(session, path) for session in sessions), _NUMBERS))
    patterns = Counter(session.kept.pattern for session in sessions)
    for pattern in Pattern:
        if count := patterns[pattern]:
            name = pattern.replace("_", " ")
            text = f"{plural(count, 'conversation')} {name}: {_SAYS[pattern]}"
            out.line(text)
    for line in _remarks(found):
        out.line(line)
    out.line(_LIMIT)


def _cells(session: Session, path: str) -> tuple[str | Text, ...]:
    kept = session.kept
    file = Path(session.file)
    name = file.name if file == Path(path) else str(file.relative_to(path))
    number = f" {session.number}" if session.number > 1 else ""
    return (
        f"{name}{number}",
        " ".join(x for x in (kept.agent, kept.version, "subagent" if kept.sidechain else "") if x),
        f"{kept.turns:,}",
        Text(kept.pattern.replace("_", " "), style=_STYLES[kept.pattern]),
        f"{kept.blocks:,}",
        f"{kept.sealed:,}, {size(kept.seal_bytes)}" if kept.sealed else "0",
        f"{kept.readable:,}, {size(kept.text_bytes)}" if kept.readable else "0",
        f"{kept.compactions:,}",
        ", ".join(_also(session)),
    )


def _also(session: Session) -> Iterator[str]:
    kept = session.kept
    if kept.damaged:
        yield f"{plural(kept.damaged, 'seal')} masked or cut"
    if kept.compactions_sealed:
        yield f"{kept.compactions_sealed:,} of the summaries sealed"
    for rejection, count in kept.refused.most_common():
        yield f"refused {count:,} times: {rejection}" if count > 1 else f"refused: {rejection}"
    if kept.reasoning_tokens >= 0:
        yield f"{kept.reasoning_tokens:,} reasoning tokens"
    if kept.cached_tokens >= 0:
        yield f"{kept.cached_tokens:,} cached"


def _remarks(found: list[Found]) -> Iterator[str]:
    broken = sum(one.broken for one in found)
    others = sum(not one.sessions for one in found)
    if broken:
        yield f"unreadable and left out: {plural(broken, 'line')}"
    if others:
        yield f"of no known agent and passed by: {plural(others, 'file')}"
