"""Putting wrappers on other people's methods, and taking them off without taking anybody else's.

Another instrumentation may wrap the same method after us. Then ours is no longer outermost, and to
restore the method would take theirs away with ours. So a wrapper that is not outermost is switched
off and stays. Another may also have kept our wrapper as the method it will restore, on a subclass
even, and bring it back once we are gone. So there is one wrapper of ours for a method, switched on
and off for as long as the process lives: `put` puts the same one back.

Others take ours off with theirs: they restore the method they once saved, or peel off whatever is
outermost. `mend` finds that out and wraps anew, but only where what stands there now is certainly
below ours: a wrapper that does not tell what it wraps may hold ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import wrapt

from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.state import passing

Wrapper = Callable[..., Any]
"""wrapt's (wrapped, instance, args, kwargs)."""

_LONGEST_CHAIN = 100


@dataclass(frozen=True, slots=True)
class Seam:
    """One method to wrap: class and name in the adapter's module.

    `door`: `Class.method` of what an application calls to get there, where not every release has
    it. Without the door nothing is missing; with the door and without the seam, something is.
    """

    owner: str
    name: str
    wrapper: Wrapper
    door: str = ""

    def expected(self, module: Any) -> bool:
        """Whether the release that `module` is of should have it."""
        owner, _, name = self.door.partition(".")
        return not self.door or hasattr(getattr(module, owner, None), name)


class Patch:
    """One wrapped method. `on`, and whether calls pass straight through, is asked at each call."""

    def __init__(self, owner: type, name: str, wrapper: Wrapper) -> None:
        """Raises AttributeError where `owner` has no such method."""
        self._owner = owner
        self._name = name
        self._wrapper = wrapper
        self.on = True
        self._found: Any
        self._mine: Any
        self._wrap()

    def _wrap(self) -> None:
        """Wrap what stands there now."""
        self._found = vars(self._owner).get(self._name, _INHERITED)
        self._mine = wrapt.FunctionWrapper(
            getattr(self._owner, self._name) if self._found is _INHERITED else self._found,
            self._call,
        )
        setattr(self._owner, self._name, self._mine)

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

    def mend(self) -> bool:
        """Wrap the method again if ours was taken off by somebody else; whether it was."""
        now = list(_chain(vars(self._owner).get(self._name, _INHERITED)))
        below = list(_chain(self._found))
        if not self.on or any(at is self._mine for at in now) or now[-1] is not below[-1]:
            return False
        self._wrap()
        return True

    def _call(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        """What stands for the method: it itself where calls pass straight through."""
        try:
            observed = self.on and not passing()
        except Exception:
            with shield("seam.enabled"):
                raise
            observed = False
        if not observed:
            return wrapped(*args, **kwargs)
        return self._wrapper(wrapped, instance, args, kwargs)

    def _in_place(self) -> bool:
        return any(at is self._mine for at in _chain(vars(self._owner).get(self._name)))


def _chain(method: Any) -> Iterator[Any]:
    """A method and what it wraps, as far as it tells."""
    for _ in range(_LONGEST_CHAIN):
        if method is None:
            return
        yield method
        # wrapt makes another object at each look-up on a class, which wraps the method itself
        parent = getattr(method, "_self_parent", None)
        if parent is not None:
            yield parent
        method = getattr(method, "__wrapped__", None)


_INHERITED: Any = object()
