"""Faults on purpose: every function of ours, one by one, raises or returns rubbish.

Theory of operation. The functions are found in the code objects of our modules, so a new one is
included by itself. A fault is put into the function object by exchanging its code, which reaches
every reference to it: names imported elsewhere, bound methods kept in tables, wrappers on SDKs. A
function made inside another one is reached through the constants of its maker, and where one was
made already, through the collector's list of objects.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType
from typing import Any, Final

import otel_sealed

OFF_THE_PATH: Final = frozenset(
    {
        "cli",
        "inspection",
        "rulebook",
        "testing",
        "transcript",
        "triage",
        "zerocode",
    }
)
"""Rooms no call of an application runs through: the doors, and what only `instrument()` asks."""

HUGE: Final = "rubbish " * 1_000
_EXPRESSIONS: Final = frozenset({"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"})


class InjectedError(RuntimeError):
    """What a function of ours is made to raise."""


Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Target:
    """One function of ours. `maker` is the function that makes it, for those made at run time."""

    module: str
    qualname: str
    key: Key
    code: CodeType = field(compare=False)
    maker: Target | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.module.removeprefix('otel_sealed.')}:{self.qualname}"


@dataclass(slots=True)
class Strike:
    """What a broken function does now, and how often it was reached."""

    rubbish: object = None
    raises: bool = True
    hits: int = 0

    def __call__(self) -> Any:
        self.hits += 1
        if self.raises:
            raise InjectedError
        return self.rubbish


_now = Strike()


def strike() -> Any:
    """What every broken function calls."""
    return _now()


def key_of(code: CodeType) -> Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno


@cache
def targets() -> tuple[Target, ...]:
    """Every function of ours that may run while an application calls a model."""
    found: list[Target] = []
    for info in pkgutil.walk_packages(otel_sealed.__path__, "otel_sealed."):
        if info.name.split(".")[1] in OFF_THE_PATH:
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # an optional store whose client is not installed
            continue
        assert module.__spec__ is not None
        loader: Any = module.__spec__.loader
        found.extend(_functions(loader.get_code(info.name), info.name, None))
    return tuple(found)


def _functions(code: CodeType, module: str, maker: Target | None) -> Iterator[Target]:
    for const in code.co_consts:
        if not isinstance(const, CodeType):
            continue
        inner = maker
        if const.co_flags & inspect.CO_OPTIMIZED and const.co_name not in _EXPRESSIONS:
            inner = Target(module, const.co_qualname, key_of(const), const, maker)
            yield inner
        yield from _functions(const, module, inner)


@cache
def _living() -> dict[Key, list[FunctionType]]:
    """The function objects of ours there are once everything is imported."""
    targets()
    return _scan()


def _scan() -> dict[Key, list[FunctionType]]:
    folder = otel_sealed.__path__[0]
    found: dict[Key, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename.startswith(folder):
            found.setdefault(key_of(thing.__code__), []).append(thing)
    return found


@contextlib.contextmanager
def broken(target: Target, *, raises: bool = True, rubbish: object = None) -> Iterator[Strike]:
    """`target` raises, or returns `rubbish`, while the block runs."""
    global _now  # noqa: PLW0603 - broken code has no other way to find it
    bad = _bad(target.code, raises=raises)
    living = _living() if target.maker is None else _scan()
    changed = [(f, f.__code__) for f in living.get(target.key, [])]
    for function, _ in changed:
        function.__code__ = _fitting(bad, function.__code__)
    maker = target.maker
    for function in _living().get(maker.key, []) if maker is not None else []:
        changed.append((function, function.__code__))
        function.__code__ = _with_inner(function.__code__, target.key, bad)
    _forget_cached()
    before, _now = _now, Strike(rubbish, raises)
    try:
        yield _now
    finally:
        _now = before
        for function, code in changed:
            function.__code__ = code
        _forget_cached()


def _fitting(bad: CodeType, code: CodeType) -> CodeType:
    assert len(bad.co_freevars) == len(code.co_freevars)
    return bad


def _with_inner(code: CodeType, key: Key, bad: CodeType) -> CodeType:
    return code.replace(
        co_consts=tuple(
            bad if isinstance(const, CodeType) and key_of(const) == key else const
            for const in code.co_consts
        )
    )


def _bad(code: CodeType, *, raises: bool) -> CodeType:
    """Code of the same kind and with the same free variables that only strikes."""
    flags = code.co_flags
    is_async = flags & (inspect.CO_COROUTINE | (inspect.CO_ASYNC_GENERATOR if raises else 0))
    yields = raises and flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)
    free = code.co_freevars
    lines = [
        "def maker():",
        *(f"    {name} = None" for name in free),
        f"    {'async ' if is_async else ''}def bad(*args, **kwargs):",
        *(f"        if 0: {name}" for name in free),
        f"        found = __import__('sys').modules[{__name__!r}].strike()",
        f"        {'yield found' if yields else 'return found'}",
        "    return bad",
    ]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)  # noqa: S102 - the code is written right above
    made: CodeType = scope["maker"]().__code__
    return made


@cache
def _cached() -> tuple[Callable[[], None], ...]:
    return tuple(
        thing.cache_clear
        for name, module in list(sys.modules.items())
        if name.startswith("otel_sealed.")
        for thing in vars(module).values()
        if hasattr(thing, "cache_clear")
    )


def _forget_cached() -> None:
    """What `functools.cache` would answer in place of a broken function."""
    for clear in _cached():
        clear()
