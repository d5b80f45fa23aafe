"""The work of a call is linear in the size of its bodies, whatever their shape.

Two measures, none of them a clock. *Steps* are what the core charges to the budget of an exchange;
*lines* are the lines of the package that Python runs, which shows that no loop goes uncharged. Both
at 4n are held against those at n, with nothing near the budget.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

import otel_sealed
from otel_sealed.contract import Exchange
from otel_sealed.steps import MOST, bounded
from otel_sealed.tracker import Tracker
from tests.core.conversations import KEY
from tests.growth.pumped import CELLS, Cell, pumped
from tests.growth.shapes import LISTS, TEXTS, Shape

GROWTH = 4.5
"""At most so many times the steps for four times the size; sorting may take a little more."""
PACKAGE = otel_sealed.__path__[0]

SHAPES = [
    *(pytest.param(shape, 8_000, id=name) for name, shape in TEXTS.items()),
    *(pytest.param(shape, 60, id=name) for name, shape in LISTS.items()),
]


def steps(exchanges: Iterable[Exchange]) -> int:
    """The steps of the last exchange, after the others."""
    tracker = Tracker(KEY)
    spent = 0
    for exchange in exchanges:
        with bounded(MOST) as budget:
            report = tracker.observe(exchange)
        assert "size" not in report.unread
        spent = max(spent, budget.spent)
    return spent


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the lines of the package that are run."""
    count = [0]

    def line(_frame: FrameType, event: str, _arg: Any) -> Any:
        count[0] += event == "line"
        return line

    def call(frame: FrameType, _event: str, _arg: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield count
    finally:
        sys.settrace(before)


def lines(exchanges: Iterable[Exchange]) -> int:
    """The most lines that one of the exchanges takes."""
    tracker = Tracker(KEY)
    most = 0
    for exchange in exchanges:
        with counted() as count:
            tracker.observe(exchange)
        most = max(most, count[0])
    return most


@pytest.mark.parametrize(("shape", "n"), SHAPES)
def test_steps_grow_no_faster_than_a_body(shape: Shape, n: int) -> None:
    few, many = steps(shape(n)), steps(shape(4 * n))
    assert many <= GROWTH * few


@pytest.mark.parametrize(("shape", "n"), SHAPES)
def test_lines_grow_no_faster_than_a_body(shape: Shape, n: int) -> None:
    few, many = lines(shape(n)), lines(shape(4 * n))
    assert many <= GROWTH * few


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_steps_grow_no_faster_than_any_list_or_text_of_a_dialect(cell: Cell) -> None:
    few, many = steps(pumped(cell, 40)), steps(pumped(cell, 160))
    assert many <= GROWTH * few


def test_a_quadratic_loop_would_be_seen() -> None:
    def quadratic(n: int) -> int:
        with counted() as count:
            otel_sealed.steps.spend(0)
            for _ in range(n * n):
                otel_sealed.steps.spend(0)
        return count[0]

    assert quadratic(40) > GROWTH * quadratic(10)
