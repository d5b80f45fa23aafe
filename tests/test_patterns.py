"""Every pattern of the package works in linear time on whatever text it meets.

The patterns are found, not listed: in the globals of every module, in the attributes of its
classes, and in what these hold. A pattern made elsewhere, inside a function, could not be found; so
that there is none is read from the source. `tests/linear.py` has the counter of steps and the
texts.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

import otel_sealed
from otel_sealed.contract import Pair
from otel_sealed.vocab import bare_model, plain_model
from tests import linear
from tests.linear import Matcher, hurt

PACKAGE: Final = Path(otel_sealed.__file__).parent
FILES: Final = sorted(PACKAGE.rglob("*.py"))
NOT_IMPORTED: Final = frozenset({"otel_sealed.cli.bootstrap.sitecustomize"})
"""Starts the instrumentation of the process that imports it. It holds no pattern."""
COMPILED_INSIDE: Final = {
    "telemetry/entries.py": "of the name of a table, which is ours",
    "wire/keys.py": "of the keys that dialects declare, behind a quotation mark each",
    "instrument/routes.py": "of the rows of a table, where the walk finds them",
    "providers/families.py": "of the rows of `PAIRS`, found as such, or of an operator's file",
}
"""Files that make a pattern inside a function, and what of."""


@pytest.fixture(autouse=True)
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(before)


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def patterns_of(module: str) -> list[re.Pattern[Any]]:
    """The patterns in the globals of a module, and in what these hold."""
    try:
        values = vars(importlib.import_module(module))
    except ModuleNotFoundError as error:
        # an extra that is not installed; a module of ours has to be there
        if (error.name or module).partition(".")[0] == "otel_sealed":
            raise
        return []
    seen: set[int] = set()
    named = [value for name, value in values.items() if not name.startswith("__")]
    return list(dict.fromkeys(found for value in named for found in patterns_in(value, seen)))


def patterns_in(value: Any, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    """The patterns a value is or holds, at any depth, through containers, classes and objects."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Pair):
        yield from (re.compile(value.producer), re.compile(value.reader))
    elif id(value) not in seen and not isinstance(value, (str, bytes, int, ModuleType)):
        seen.add(id(value))
        for part in parts_of(value):
            yield from patterns_in(part, seen)


def parts_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return list(value)
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return [*held, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    owner = value if isinstance(value, type) else type(value)
    if not str(owner.__module__).startswith("otel_sealed"):
        return []
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
    return [
        *getattr(value, "__dict__", {}).values(),
        *(getattr(value, name, None) for name in slots),
    ]


def made_inside(source: str) -> list[int]:
    """The lines on which a function hands a pattern to `re`: no walk over modules finds it.

    A call at the top of a module or class is none, nor is one of a method of a pattern.
    """
    tree = ast.parse(source)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "re"
        for alias in node.names
    }
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found = set()
    for function in ast.walk(tree):
        for node in ast.walk(function) if isinstance(function, functions) else ():
            if isinstance(node, ast.Call) and _is_of_re(node.func, names):
                found.add(node.lineno)
    return sorted(found)


def _is_of_re(called: ast.expr, names: set[str]) -> bool:
    if isinstance(called, ast.Attribute):
        module = isinstance(called.value, ast.Name) and called.value.id == "re"
        return module and called.attr not in ("escape", "purge")
    return isinstance(called, ast.Name) and called.id in names


# ------------------------------------------------------------------------------------ the package


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_pattern_takes_linear_time(path: Path) -> None:
    name = name_of(path)
    found = [] if name in NOT_IMPORTED else patterns_of(name)
    assert {pattern.pattern: hurt(pattern) for pattern in found if hurt(pattern)} == {}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_pattern_is_where_it_is_found(path: Path) -> None:
    inside = made_inside(path.read_text("utf-8"))
    assert bool(inside) is (path.relative_to(PACKAGE).as_posix() in COMPILED_INSIDE), inside


def test_the_walk_finds_what_a_module_makes() -> None:
    """Every `re.compile` of the source is found, were it in a table, a class or a closure."""
    written, found = 0, set()
    for path in FILES:
        if name_of(path) not in NOT_IMPORTED:
            tree = ast.parse(path.read_text("utf-8"))
            calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
            written += sum(ast.unparse(n.func) == "re.compile" for n in calls)
            found.update(patterns_of(name_of(path)))
    assert len(found) >= written - len(COMPILED_INSIDE)
    assert written > 100


# ------------------------------------------------------------------------------- the tester itself

BAD: Final = [
    r"(a+)+$",
    r"(a|aa)+$",
    r"(?:a?)*?b",
    r"([a-z]+)*!",
    r"(-\d{8}|-latest|-v\d+(:\d+)*|@[\w-]+)+$",  # `bare_model`, as it hung a process
    r"([^/:?]+):(?:g|streamG)enerateContent",
    r"\\+(?:/|u00)",
    r"\A\s*\s*x",
    r"\Aa*b?a*c",
    r"\A(?:a|b)*(?:b|c)*d",
    r"x*y",
    r"\s+$",
    r"\A.*?,.*?,.*?;",
    r"/model/(.+)/invoke$",
    r"(?i)[A-Z]+\d",
    r"(?=(a+)b)",
    r"\A(?:(?>a+)|a)*b",
]
GOOD: Final = [
    r"",
    r"abc",
    r"\A(?:a++)++$",
    r"\A(?>a+)b",
    r"<[^<>]+>",
    r"(?:^|/)([^/:?]+):x",
    r"(?<!\\)\\++(?:/|u00)",
    r"[a-z]{24,400}",
    r"\A[a-z]+[0-9]*\Z",
    r"\A(?:[a-z]+,)*[a-z]+\Z",
    r"\b\d{1,6}\. block",
]


@pytest.mark.parametrize("pattern", BAD)
def test_a_pattern_that_reads_again_is_found(pattern: str) -> None:
    assert hurt(re.compile(pattern)) is not None


@pytest.mark.parametrize("pattern", GOOD)
def test_a_pattern_that_reads_once_is_left_alone(pattern: str) -> None:
    assert hurt(re.compile(pattern)) is None


def test_a_bad_pattern_is_found_wherever_a_module_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table, a class, an object with slots, a default or a closure."""
    held = [re.compile(f"{letter}+$") for letter in "abcdef"]
    module = ModuleType("otel_sealed.made_up")
    source = """
class Row:
    __slots__ = ("pattern",)
    known = C
row = Row()
row.pattern = D
table = [{"a": (A,)}, B]
def named(text, pattern=E):
    return pattern
def closed(pattern):
    return lambda: pattern
inner = closed(F)
"""
    vars(module).update(zip("ABCDEF", held, strict=True))
    exec(source, vars(module))  # noqa: S102 - a module like ours
    for name in "ABCDEF":
        delattr(module, name)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert set(patterns_of(module.__name__)) == set(held)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import re\nX = re.compile('a')", []),
        ("import re\ndef f(t):\n    return re.sub('a', '', t)", [3]),
        ("import re\nf = lambda t: re.match('a', t)", [2]),
        ("from re import compile as c\nasync def f():\n    c('a')", [3]),
        ("import re\ndef f(p, t):\n    return p.search(re.escape(t))", []),
    ],
)
def test_a_pattern_made_inside_a_function_is_found(source: str, lines: list[int]) -> None:
    assert made_inside(source) == lines


ODD: Final = [
    *BAD,
    *GOOD,
    r"(a)?(?:\1|b)c",
    r"(?<=ab)c|(?<!a)d",
    r"a{2,4}?b",
    r"(?s:.)x",
    r"^b$",
    r"\Bb",
]


def test_the_counting_matcher_agrees_with_re() -> None:
    """On texts of the characters each pattern tells from each other, for all patterns there are."""
    source = random.Random(7)
    patterns: set[re.Pattern[Any]] = {
        re.compile(odd, flags) for odd in ODD for flags in (0, re.MULTILINE | re.DOTALL)
    }
    patterns.update(
        found
        for path in FILES
        if name_of(path) not in NOT_IMPORTED
        for found in patterns_of(name_of(path))
    )
    for pattern in patterns:
        matcher = Matcher(pattern)
        letters = linear.alphabet(matcher)
        words = [*letters, *filter(None, linear.examples(matcher.tree, letters, pattern.flags))]
        for _ in range(30):
            text = "".join(source.choices(words, k=source.randrange(12)))
            written: Any = pattern.pattern
            given: Any = text if isinstance(written, str) else text.encode("latin-1")
            said = pattern.search(given)
            assert (pattern, text, matcher.search(text)) == (pattern, text, said and said.span())


@pytest.mark.parametrize(
    ("model", "bare"),
    [
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("publishers/anthropic/models/claude-opus-4@20250514", "claude-opus-4"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("claude-5@a-v1@-v1:1:1", "claude-5"),
        ("claude-5" + "@a-v1" * 23 + ".", "claude-5" + "@a-v1" * 23 + "."),
        ("claude-5" + "@a-v1" * 23, "claude-5"),
        ("a" * 161, "a" * 161),
    ],
)
def test_a_model_is_named_without_what_was_added_to_it(model: str, bare: str) -> None:
    assert bare_model(model) == bare


@pytest.mark.parametrize(
    "model", ["anthropic/claude-opus-4.5:beta", "us.anthropic.claude-opus-4-5-20251101-v1:0"]
)
def test_a_model_is_compared_in_one_spelling(model: str) -> None:
    assert plain_model(model) == "claude-opus-4-5"
