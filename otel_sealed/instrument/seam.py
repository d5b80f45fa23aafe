"""Putting wrappers on other people's methods, and taking them off without taking anybody else's.

Another instrumentation may wrap the same method after us. Then ours is no longer outermost, and to
restore the method would take theirs away with ours. So a wrapper that is not outermost is switched
off and stays. Another may also have kept our wrapper as the method it will restore, on a subclass
even, and bring it back once we are gone. So there is one wrapper of ours for a method, switched on
and off for as long as the process lives: `put` puts the same one back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import wrapt

Wrapper = Callable[..., Any]
"""wrapt's (wrapped, instance, args, kwargs)."""

_LONGEST_CHAIN = 100


@dataclass(frozen=True, slots=True)
class Seam:
    """One method to wrap: class and name in the adapter's module."""

    owner: str
    name: str
    wrapper: Wrapper


class Patch:
    """One wrapped method. `on` is asked at each call."""

    def __init__(self, owner: type, name: str, wrapper: Wrapper) -> None:
        """Raises AttributeError where `owner` has no such method."""
        self._owner = owner
        self._name = name
        self._wrapper = wrapper
        self._found: Any = vars(owner).get(name, _INHERITED)
        self.on = True
        self._mine: Any = wrapt.FunctionWrapper(
            getattr(owner, name) if self._found is _INHERITED else self._found,
            self._call,
            enabled=self._enabled,
        )
        setattr(owner, name, self._mine)

    def put(self, owner: type, wrapper: Wrapper) -> bool:
        """Put the same wrapper back, with what it shall do now.

        False if another method has come to stand where ours was, without ours below it.
        """
        if owner is not self._owner:
            return False
        if not self._in_place():
            if vars(owner).get(self._name, _INHERITED) is not self._found:
                return False
            setattr(owner, self._name, self._mine)
        self._wrapper = wrapper
        self.on = True
        return True

    def take(self) -> bool:
        """Restore the method as it was found, or switch the buried wrapper off (False)."""
        self.on = False
        if vars(self._owner).get(self._name) is not self._mine:
            return False
        if self._found is _INHERITED:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._found)
        return True

    def _call(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return self._wrapper(wrapped, instance, args, kwargs)

    def _enabled(self) -> bool:
        return self.on

    def _in_place(self) -> bool:
        at = vars(self._owner).get(self._name)
        for _ in range(_LONGEST_CHAIN):
            if at is None or at is self._mine:
                break
            at = getattr(at, "__wrapped__", None)
        return at is self._mine


_INHERITED: Any = object()
