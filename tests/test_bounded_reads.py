"""Nothing in the package reads a whole file or stream without a bound on what it may hold.

Every read says how much it takes at most: a file may be a device without an end, and whoever wrote
it may be nobody we know. What belongs to the package itself is exempt, and what only tests serve.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "otel_sealed"
OWN = {
    "triage/page.py": "style, script and template of the page, which are in the package",
}
"""Files that read what the package brings along, and why that is bounded."""
WHOLE = frozenset({"read_text", "read_bytes", "readlines"})
SIZED = frozenset({"read", "readline"})


def unbounded(source: str) -> list[int]:
    """The lines of calls that read to the end, whatever there is."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whole = node.func.attr in WHOLE
            if whole or (node.func.attr in SIZED and not (node.args or node.keywords)):
                found.append(node.lineno)
    return sorted(found)


FILES = sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    "path", [path for path in FILES if path not in OWN and not path.startswith("testing/")]
)
def test_every_read_has_a_bound(path: str) -> None:
    assert unbounded((PACKAGE / path).read_text("utf-8")) == []


def test_the_search_finds_what_it_is_for() -> None:
    source = (
        "a.read()\nb.read(9)\nc.read_text('utf-8')\nd.readline()\ne.readlines()\nf.read_bytes()"
    )
    assert unbounded(source) == [1, 3, 4, 5, 6]
