"""Pieces of a page: tables, strips, bars. Everything that is put into one is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from otel_sealed.model import Fate, Verdict
from otel_sealed.triage.strip import Column, Strip
from otel_sealed.triage.words import answer

_VERDICTS: Final = frozenset(verdict.value for verdict in Verdict)
_NOTHING: Final = '<td class="{}"><span class="nothing">nothing</span></td>'
_BAR, _HEIGHT = 6, 24
_MOST_BARS: Final = 40


def tag(verdict: str) -> str:
    """The class of a verdict; empty for one this version does not know."""
    return verdict if verdict in _VERDICTS else ""


def mark(verdict: str, rule: str = "") -> str:
    """A verdict in its colour and in words."""
    text = escape(f"{verdict} {rule}".strip())
    return f'<span class="mark {tag(verdict)}">{text}</span>'


def to_rule(rule: str) -> str:
    """The id of a rule, which leads to its row on the page."""
    return f'<a href="#rule-{escape(rule.lower())}">{escape(rule)}</a>'


def rule_row(rule: str, verdict: str) -> str:
    """The first cell of that row."""
    return f'<span id="rule-{escape(rule.lower())}">{mark(verdict, rule)}</span>'


def place(text: str, *, linked: bool) -> str:
    """Where more is said: a link where the owner says that it leads somewhere."""
    return f'<a href="{escape(text)}">{escape(text)}</a>' if linked else code(text)


def code(text: str) -> str:
    """A name in the type of names."""
    return f"<code>{escape(text)}</code>"


def table(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: str = ""
) -> str:
    """A table that scrolls by itself, its cells already HTML; `numbers` stand to the right."""
    right = numbers.split(",")
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    classes = [' class="number"' if column in right else "" for column in columns]
    body = "".join(
        "<tr>" + "".join(f"<td{c}>{x}</td>" for c, x in zip(classes, row, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="group" tabindex="0" aria-label="{escape(name)}"><table>'
        f"<caption>{escape(name)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


# --------------------------------------------------------------------------------------- strips


def strip(found: Strip) -> str:
    """One request as a table: a column a block, what came in above what went back."""
    why = f" ({found.rejection})" if found.rejection else ""
    name = f"Turn {found.turn}: {answer(found.said, found.rejection)}{why}"
    firsts = [
        bool(column.turn) and column.turn != before
        for column, before in zip(
            found.columns, [0, *(c.turn for c in found.columns)], strict=False
        )
    ]
    rows = (
        ("from turn", [_turn(c, first=f) for c, f in zip(found.columns, firsts, strict=True)]),
        ("came in", [_came(c, first=f) for c, f in zip(found.columns, firsts, strict=True)]),
        ("went back", [_back(c) for c in found.columns]),
        ("fate", [_fate(c) for c in found.columns]),
    )
    body = "".join(
        f'<tr><th scope="row">{label}</th>{"".join(cells)}</tr>' for label, cells in rows
    )
    return (
        f'<div class="scroll" role="group" tabindex="0" aria-label="{escape(name)}">'
        f'<table class="strip"><caption>{escape(name)}</caption><tbody>{body}</tbody></table></div>'
    )


def _turn(column: Column, *, first: bool) -> str:
    text = column.turn if first else ""
    return f'<td class="soft{" first" if first else ""}">{text}</td>'


def _came(column: Column, *, first: bool) -> str:
    kind = "first" if first else ""
    if not column.came:
        return _NOTHING.format(kind)
    seal = ' <span class="soft">sealed</span>' if column.sealed else ""
    tool = f' <span class="soft">{escape(column.tool)}</span>' if column.tool else ""
    return f'<td class="{kind}">{code(column.came)}{tool}{seal}</td>'


def _back(column: Column) -> str:
    kind = tag(column.verdict)
    if not column.back:
        return _NOTHING.format(kind)
    bare = ' <span class="soft">without its seal</span>' if column.bare else ""
    return f'<td class="{kind}">{code(column.back)}{bare}</td>'


def _fate(column: Column) -> str:
    rule = f" {column.rule}" if column.rule and column.fate != Fate.INTACT else ""
    return f'<td class="{tag(column.verdict)}">{escape(column.fate + rule)}</td>'


# ----------------------------------------------------------------------------------------- bars


def bars(name: str, values: Sequence[int]) -> str:
    """One bar a call, the newest last; the numbers stand in its label. Unknown ones have none."""
    values = values[-_MOST_BARS:]
    most = max((value for value in values if value > 0), default=0)
    if not most:
        return '<span class="soft">not on record</span>'
    label = f"{name}: {', '.join('?' if value < 0 else f'{value:,}' for value in values)}"
    shapes = "".join(
        f'<rect class="bar" x="{at * _BAR}" y="{_HEIGHT - height}" width="{_BAR - 1}"'
        f' height="{height}"/>'
        for at, value in enumerate(values)
        if (height := max(value, 0) * _HEIGHT // most)
    )
    width = len(values) * _BAR
    return (
        f'<span class="whole">at most {most:,}</span>'
        f'<svg role="img" aria-label="{escape(label)}" width="{width}" height="{_HEIGHT}"'
        f' viewBox="0 0 {width} {_HEIGHT}">{shapes}</svg>'
    )


_WIDE, _TALL, _BUCKETS = 960, 90, 48


def timeline(name: str, moments: Sequence[tuple[int, str]], ends: tuple[str, str]) -> str:
    """How many calls fell into each stretch of time, by verdict; `ends` are its first and last."""
    start = min(at for at, _ in moments)
    length = max(max(at for at, _ in moments) - start, 1)
    counts: list[dict[str, int]] = [{} for _ in range(_BUCKETS)]
    for at, verdict in moments:
        bucket = counts[min((at - start) * _BUCKETS // length, _BUCKETS - 1)]
        bucket[verdict] = bucket.get(verdict, 0) + 1
    most = max(sum(bucket.values()) for bucket in counts)
    each = _WIDE // _BUCKETS
    shapes = []
    for at, bucket in enumerate(counts):
        y = _TALL
        for verdict in (Verdict.BREAKS.value, Verdict.DEGRADES.value):
            if height := bucket.get(verdict, 0) * _TALL // most:
                y -= height
                shapes.append(
                    f'<rect class="{verdict}" x="{at * each}" y="{y}" width="{each - 2}"'
                    f' height="{height}"/>'
                )
    label = f"{name}: at most {most:,} in one of {_BUCKETS} stretches from {ends[0]} to {ends[1]}"
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {_WIDE} {_TALL + 20}">'
        f'<line x1="0" y1="{_TALL}" x2="{_WIDE}" y2="{_TALL}"/>{"".join(shapes)}'
        f'<text x="0" y="{_TALL + 15}">{escape(ends[0])}</text>'
        f'<text x="{_WIDE}" y="{_TALL + 15}" text-anchor="end">{escape(ends[1])}</text></svg>'
    )
