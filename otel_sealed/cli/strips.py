"""Strips on a terminal: what came in above what went back, a column a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from otel_sealed.cli.show import STYLES
from otel_sealed.model import Fate, Verdict
from otel_sealed.triage.strip import Column, Strip
from otel_sealed.triage.words import answer

_NOTHING: Final = "nothing"
_CELL: Final = 12
_LABEL: Final = 11


def drawn(strip: Strip, width: int) -> RenderableType:
    """One request, folded into as many bands as a terminal of this width needs."""
    each = max(1, (width - _LABEL) // (_CELL + 2))
    bands = [strip.columns[at : at + each] for at in range(0, len(strip.columns), each)]
    return Group(Text(title(strip), style="bold"), *(_band(band) for band in bands))


def title(strip: Strip) -> str:
    """`turn 3: refused (thinking_modified)`."""
    why = f" ({strip.rejection})" if strip.rejection else ""
    return f"turn {strip.turn}: {answer(strip.said, strip.rejection)}{why}"


def _band(columns: tuple[Column, ...]) -> Table:
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(width=_LABEL - 2)
    for _ in columns:
        made.add_column(overflow="fold", min_width=6)
    made.add_row("from turn", *_turns(columns), style="dim")
    made.add_row("came in", *(_came(column) for column in columns))
    made.add_row("went back", *(_back(column) for column in columns))
    made.add_row("fate", *(_fate(column) for column in columns))
    return made


def _turns(columns: tuple[Column, ...]) -> Iterator[str]:
    before = -1
    for column in columns:
        yield str(column.turn) if column.turn and column.turn != before else ""
        before = column.turn


def _came(column: Column) -> Text:
    tool = f" {column.tool}" if column.tool else ""
    seal = " *" if column.sealed else ""
    return Text(f"{column.came}{tool}{seal}" if column.came else _NOTHING)


def _back(column: Column) -> Text:
    bare = ", no seal" if column.bare else ""
    return Text(f"{column.back or _NOTHING}{bare}", style=_style(column))


def _fate(column: Column) -> Text:
    shown = column.fate if column.fate != Fate.INTACT else "intact"
    rule = f" {column.rule}" if column.rule else ""
    return Text(f"{shown}{rule}", style=_style(column))


def _style(column: Column) -> str:
    return STYLES[Verdict(column.verdict)] if column.verdict in set(Verdict) else ""
