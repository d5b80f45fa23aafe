"""The one way out of every command: text, tables, errors, progress and JSON lines.

Model. A *line* is what a reader takes for one statement of ours. Names in it (files, hosts, keys)
were chosen by others, who must not be able to end the line, move the cursor, hide text or turn its
direction. So every character that is not printable is written as its escape (`printable`), at three
places that together see all output: a line (`Screen.line`, `note`), a cell (`table`), and every
segment that Rich is about to write, whatever it was made of (`_Cleaned`). JSON lines are ASCII, and
JSON escapes the rest. What is written whole (a page, a TOML file) goes through `write`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    JustifyMethod,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.control import Control
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from otel_sealed.cli import note, printable
from otel_sealed.model import Verdict

__all__ = ["note", "printable"]

_ANY_WIDTH: Final = 10_000
"""Columns that no table needs: names and places are bounded."""
_PIPE_WIDTH: Final = 200
_WHOLE: Final = ("host", "turn", "line", "exchange")
STYLES: Final = {
    Verdict.OK: "green",
    Verdict.ALLOWED: "cyan",
    Verdict.UNVERIFIABLE: "magenta",
    Verdict.DEGRADES: "yellow",
    Verdict.BREAKS: "bold red",
}


class Screen:
    """Where a command prints. Plain and wide in a pipe: no colour, no markup, no folding at 80."""

    def __init__(self, *, stderr: bool = False) -> None:
        """On standard output, or on standard error."""
        stream = sys.stderr if stderr else sys.stdout
        self.wide = not stream.isatty()
        self.console = Console(
            file=stream,
            width=_PIPE_WIDTH if self.wide else None,
            markup=False,
            emoji=False,
            highlight=False,
        )
        self.console.push_render_hook(_Cleaning())

    @property
    def width(self) -> int:
        """Columns of it."""
        return self.console.width

    def fits(self, drawn: RenderableType) -> bool:
        """Whether it has the width to be drawn without a fold."""
        unbounded = self.console.options.update_width(_ANY_WIDTH)
        return self.console.measure(drawn, options=unbounded).maximum <= self.width

    def line(self, text: str | Text = "") -> None:
        """One line, however wide it is. A `Text` may have several, which are ours to end."""
        self.console.print(printable(text) if isinstance(text, str) else text, soft_wrap=True)

    def draw(self, drawn: RenderableType) -> None:
        """A table, or several things one below the other."""
        self.console.print(drawn)


@dataclass(frozen=True, slots=True)
class _Cleaned:
    """A renderable whose text is printable, but for the ends of its lines."""

    drawn: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.drawn, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                text = "\n".join(map(printable, segment.text.split("\n")))
                yield Segment(text, segment.style)


class _Cleaning(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [x if isinstance(x, Control) else _Cleaned(x) for x in renderables]


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], numbers: str = "") -> Table:
    """A table without lines between its columns; those named in `numbers` stand to the right."""
    made = Table(
        box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )
    for name in columns:
        justify: JustifyMethod = "right" if name in numbers.split(",") else "left"
        # a narrow terminal folds cells: nothing is cut off
        made.add_column(name, justify=justify, overflow="fold", no_wrap=name in _WHOLE)
    for row in rows:
        made.add_row(*map(_cell, row))
    return made


def _cell(value: str | Text) -> Text:
    if isinstance(value, str):
        return Text(printable(value))
    return value if value.plain.isprintable() else Text(printable(value.plain), style=value.style)


def verdict(found: Verdict, rule: str = "") -> Text:
    """A verdict in its colour, with the id of the rule it stands on."""
    return Text(f"{found.value} {rule}".rstrip(), style=STYLES[found])


def size(count: int | None) -> str:
    """Bytes for people."""
    return "" if count is None else f"{count:,} B"


def plural(count: int, what: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def json_line(value: dict[str, Any]) -> None:
    """One object on one line, ASCII only, at once: a reader may act on it while we go on."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def write(text: str) -> None:
    """A whole file on standard output: every character but the ends of lines is printable."""
    sys.stdout.write("\n".join(map(printable, text.split("\n"))))
    sys.stdout.flush()


class Ticker:
    """Says on a terminal what is being done; silent anywhere else."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task = progress.add_task("") if progress else None

    def say(self, text: str) -> None:
        """Replace what is said."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=printable(text))


@contextmanager
def ticker(*, printing: bool = False) -> Iterator[Ticker]:
    """A line on stderr that vanishes when the work is done.

    `printing`: results are printed meanwhile, so that on the same terminal there is no room for it.
    """
    if not sys.stderr.isatty() or (printing and sys.stdout.isatty()):
        yield Ticker(None)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Screen(stderr=True).console, transient=True) as progress:
        yield Ticker(progress)


class Bar:
    """A bar on a terminal for work whose size is known; silent anywhere else."""

    def __init__(self, shown: Progress | None) -> None:
        self._shown = shown
        self._task = shown.add_task("", total=None) if shown else None

    def begin(self, text: str, total: int) -> None:
        """The next piece of work; a `total` of 0 stands for one that is not known."""
        if self._shown is not None and self._task is not None:
            known = total or None
            self._shown.update(self._task, description=printable(text), total=known, completed=0)

    def at(self, done: int) -> None:
        """How much of it is done."""
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, completed=done)


@contextmanager
def progress(*, printing: bool = False) -> Iterator[Bar]:
    """A bar on stderr that vanishes when the work is done; `printing` as for `ticker`."""
    if not sys.stderr.isatty() or (printing and sys.stdout.isatty()):
        yield Bar(None)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    with Progress(*columns, console=Screen(stderr=True).console, transient=True) as shown:
        yield Bar(shown)
