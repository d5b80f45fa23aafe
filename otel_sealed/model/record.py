"""Records: plain slotted dataclasses that nobody changes.

To mypy a record is a frozen dataclass, so that an assignment to a field of it is an error wherever
it is written. At run time it is not frozen: a frozen dataclass sets each field by a call of
`object.__setattr__`, five microseconds for twenty fields, and a call of a model makes some sixty.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen: bool, slots: bool) -> Callable[[type], type]:
        """A decorator: `dataclass(frozen=True, slots=True)` to mypy, hashable at run time."""
        return dataclass(slots=slots, unsafe_hash=frozen)


T = TypeVar("T")

__all__ = ["record", "replace"]


@lru_cache(maxsize=256)
def _values(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    first, *more = kind.__slots__  # type: ignore[attr-defined]
    if not more:
        return lambda record: (getattr(record, first),)
    return attrgetter(first, *more)


def replace(record: T, **changes: Any) -> T:
    """The record with other values; `dataclasses.replace` in a fraction of the time.

    Raises AttributeError for what is no field of it.
    """
    kind: Any = type(record)
    made: T = kind(*_values(kind)(record))
    for name, value in changes.items():
        setattr(made, name, value)
    return made
