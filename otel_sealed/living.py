"""Objects that are looked at as long as they live, without a callback when one dies.

A `WeakSet` and its kin, `weakref.finalize`, and a weak reference with a function call Python when
an object dies, which is often in a garbage collection. A signal handler that runs in such a call
loses its exception (`instrument.finalizing`). Here nothing is called: a reference that is dead is
passed over, and thrown away when there are twice as many references as there were living objects.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_FEW: Final = 8
"""So many dead references cost nothing; processes have one or two ledgers and processors."""


class Living(Generic[T]):
    """A set of objects that it does not keep alive. Takes no lock: each step on it is atomic."""

    __slots__ = ("_full", "_references")

    def __init__(self) -> None:
        """Empty."""
        self._references: dict[int, weakref.ref[T]] = {}
        self._full = _FEW

    def add(self, thing: T) -> None:
        """Look at a thing from now on. Raises TypeError where none can refer to it weakly."""
        reference = weakref.ref(thing)  # without a callback the same one for the same thing
        self._references[id(reference)] = reference
        if len(self._references) > self._full:
            for key, one in list(self._references.items()):
                if one() is None:
                    self._references.pop(key, None)
            self._full = 2 * len(self._references) + _FEW

    def __iter__(self) -> Iterator[T]:
        for reference in list(self._references.values()):
            thing = reference()
            if thing is not None:
                yield thing
