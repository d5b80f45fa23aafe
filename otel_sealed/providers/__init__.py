"""The dialects this version knows. A new one is one new folder with a `DIALECT` in it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from otel_sealed.contract import Api, Dialect


@cache
def counting() -> frozenset[str]:
    """Operations that send a history and are no turn of it, such as counting its tokens."""
    return frozenset(
        path.operation
        for dialect in dialects().values()
        for path in dialect.paths
        if path.operation is not None and not path.sends
    )


@cache
def dialects() -> dict[Api, Dialect]:
    """Every dialect found in this package, by the wire it speaks."""
    found: dict[Api, Dialect] = {}
    for info in iter_modules(__path__):
        dialect = getattr(import_module(f"{__name__}.{info.name}"), "DIALECT", None)
        if isinstance(dialect, Dialect):
            found[dialect.api] = dialect
    return found
