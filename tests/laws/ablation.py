"""Ablation: which test fails when one function of the core says nothing any more?

    python -m tests.laws.ablation [--like TEXT] [--tests PATH ...] [--limit N] [--list]

A heuristic that can be switched off without a failing test is one nobody can argue for: it gets a
law or a case, or it goes. Each function of the modules below whose result has a neutral value (a
predicate: false, then true; what may be None: None; a collection: empty) is neutralised in turn,
wherever it is used, and the tests are run until one fails. `INSTEAD` has others. Each row of the
fate table is left out in turn as well. Printed is, for each, the first test that failed; the exit
status is 1 if some of them failed none.

As a pytest plugin (`-p tests.laws.ablation`) it neutralises what `OTEL_SEALED_ABLATE` names.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from otel_sealed.align.table import FATES, Group

PACKAGES = (
    "otel_sealed.matching",
    "otel_sealed.align",
    "otel_sealed.tracker",
    "otel_sealed.diagnose",
)
"""Where the core decides. A ledger decides nothing."""
TESTS = ("tests/laws", "tests/test_cases.py", "tests/core")
"""The laws and cases first: they are quick, and what fails there is said in words."""
SPOILED = "tests/laws/test_laws_can_fail.py"
"""It spoils the core itself, so that its failures say nothing."""
MARKS = "not faults and not soak and not xfail"
FATES_AT = "otel_sealed.align.table"
LEFT_OUT = "left out"
VARIABLE = "OTEL_SEALED_ABLATE"


def _all_of(strong: list[tuple[int, ...]]) -> frozenset[int]:
    return frozenset(n for numbers in strong for n in numbers)


INSTEAD: dict[str, Callable[..., Any]] = {
    "otel_sealed.matching.assign:_Assignment.fill": lambda _assignment: None,
    "otel_sealed.matching.assign:_Assignment._whole": lambda *_: None,
    "otel_sealed.matching.evidence:agreed_on": _all_of,
    "otel_sealed.matching.evidence:Claims.look_like": lambda claims, b: claims.look(b.payload),
    "otel_sealed.matching.locate:_behind": lambda _ledger, tip, _transcript: tip,
    "otel_sealed.align.pair:_by_place": lambda *_: None,
}
"""What a function whose result has no neutral value of its own is replaced with."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """One function (`module:name`) and what it says instead."""

    where: str
    value: str

    def __str__(self) -> str:
        return f"{self.where}={self.value}"


# ----------------------------------------------------------------------------- what there is


def ablations() -> Iterator[Ablation]:
    """Every function that can be neutralised, in the order of the modules."""
    for module in _modules():
        for where, function in _functions(module):
            if where in INSTEAD:
                yield Ablation(where, "instead")
            else:
                yield from (Ablation(where, value) for value in _neutral(function))
    for group, rows in FATES.items():
        for row in rows:
            yield Ablation(f"{FATES_AT}:{group.name}.{row.name}", LEFT_OUT)


def _modules() -> Iterator[str]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        paths = getattr(package, "__path__", None)
        inner = pkgutil.walk_packages(paths, f"{name}.") if paths else ()
        yield from (m for m in (name, *(i.name for i in inner)))


def _functions(name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    module = importlib.import_module(name)
    for key, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == name:
            yield f"{name}:{key}", value
        elif inspect.isclass(value) and value.__module__ == name:
            for inner, method in vars(value).items():
                own = method.func if isinstance(method, cached_property) else method
                if inspect.isfunction(own) and not inner.startswith("__"):
                    yield f"{name}:{key}.{inner}", own


_VALUES: dict[str, Callable[[], Any]] = {
    "False": bool,
    "True": lambda: True,
    "None": lambda: None,
    "tuple": tuple,
    "frozenset": frozenset,
    "list": list,
    "set": set,
    "dict": dict,
    "Iterator": lambda: iter(()),
}


def _neutral(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the neutral values of a function, by what it says that it returns."""
    told = str(function.__annotations__.get("return", ""))
    if told == "bool":
        return "False", "True"
    if told.endswith("| None"):
        return ("None",)
    kind = told.partition("[")[0]
    kind = {"Mapping": "dict", "Sequence": "tuple", "Collection": "tuple"}.get(kind, kind)
    return (kind,) if kind in _VALUES else ()


# ------------------------------------------------------------------------- as a pytest plugin


def pytest_configure() -> None:
    """Neutralise what the environment names, before a test is collected."""
    told = os.environ.get(VARIABLE, "")
    if told:
        neutralise(told)


def neutralise(told: str) -> None:
    """Give the function the code of its neutral one, so that every table and import has that."""
    where, _, value = told.partition("=")
    module, _, name = where.partition(":")
    if value == LEFT_OUT:
        group, _, row = name.partition(".")
        FATES[Group[group]] = tuple(one for one in FATES[Group[group]] if one.name != row)
        return
    holder: Any = importlib.import_module(module)
    for part in name.split("."):
        holder = vars(holder)[part]
    function = holder.func if isinstance(holder, cached_property) else holder
    if value == "instead":
        _NOW.append(INSTEAD[where])
    else:
        _NOW.append(lambda *_args, **_more: _VALUES[value]())
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = _neutral_code.__code__


_NOW: list[Callable[..., Any]] = []
"""What the neutralised function does instead."""


def _neutral_code(*told: Any, **more: Any) -> Any:
    # runs with the names of the module it was put into, and has none of its own
    from tests.laws import ablation

    return ablation._NOW[0](*told, **more)


# ------------------------------------------------------------------------------ as a command


def first_failure(told: str, tests: list[str]) -> str:
    """The first test that fails, or how the run ended otherwise; empty where all passed.

    Each test has the time that the settings of pytest give it.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "tests.laws.ablation"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", f"--ignore={SPOILED}", "-m", MARKS, *tests],
        env=os.environ | {VARIABLE: told},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+(?:\[[^\]]*\])?)", done.stdout, re.MULTILINE)
    return found[1] if found else f"exit status {done.returncode}"


def main() -> int:
    """Run what is asked for, and say what no test fails without."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.ablation", description=__doc__)
    parser.add_argument("--like", default="", help="only functions whose name contains this")
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="what is run")
    parser.add_argument("--limit", type=int, default=None, help="at most so many functions")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    asked = parser.parse_args()
    chosen = [one for one in ablations() if asked.like in str(one)][: asked.limit]
    free = []
    for one in chosen:
        if asked.list:
            print(one)
            continue
        began = time.monotonic()
        failed = first_failure(str(one), asked.tests)
        free += [] if failed else [one]
        print(f"{one}\t{failed or 'NO TEST FAILS'}\t{time.monotonic() - began:.0f} s", flush=True)
    if free:
        print(f"{len(free)} of {len(chosen)} fail no test", file=sys.stderr)
    return bool(free)


if __name__ == "__main__":
    sys.exit(main())
