"""What commands print with: a console that is plain in a pipe, tables, progress, JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from otel_sealed.model import Verdict

_PIPE_WIDTH: Final = 200
_WHOLE: Final = ("host", "turn", "line", "exchange")
STYLES: Final = {
    Verdict.OK: "green",
    Verdict.ALLOWED: "cyan",
    Verdict.UNVERIFIABLE: "magenta",
    Verdict.DEGRADES: "yellow",
    Verdict.BREAKS: "bold red",
}


def console(*, stderr: bool = False) -> Console:
    """Plain and wide where nobody looks: into a pipe no colour, no markup, no folding at 80."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


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
        made.add_row(*row)
    return made


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


class Ticker:
    """Says on a terminal what is being done; silent anywhere else."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task = progress.add_task("") if progress else None

    def say(self, text: str) -> None:
        """Replace what is said."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text)


@contextmanager
def ticker(*, printing: bool = False) -> Iterator[Ticker]:
    """A line on stderr that vanishes when the work is done.

    `printing`: results are printed meanwhile, so that on the same terminal there is no room for it.
    """
    if not sys.stderr.isatty() or (printing and sys.stdout.isatty()):
        yield Ticker(None)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield Ticker(progress)


class Bar:
    """A bar on a terminal for work whose size is known; silent anywhere else."""

    def __init__(self, shown: Progress | None) -> None:
        self._shown = shown
        self._task = shown.add_task("", total=None) if shown else None

    def begin(self, text: str, total: int) -> None:
        """The next piece of work; a `total` of 0 stands for one that is not known."""
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, description=text, total=total or None, completed=0)

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
    with Progress(*columns, console=console(stderr=True), transient=True) as shown:
        yield Bar(shown)
