"""One budget of steps for everything the core does with one exchange.

The model. A *step* is one visit of an item: a node of a body, a block, a candidate, or 4,096
characters of text that are hashed or searched. Every loop of the core calls `spend`, and so does
every digest. An exchange that needs more steps than `MOST` is given up at once (`OutOfSteps`) and
reported as `unread: size`. So the time of a call is bounded, whatever its body looks like.

Invariants:
1. Steps are linear in the size of the body, whatever its shape. A test pumps every list and text of
   every dialect and holds the steps at 4n against those at n.
2. What is given up leaves no verdict: not judged is not intact, and never lost.
3. Outside of `bounded` (tests, tools that call one function) there is no limit.
"""

from __future__ import annotations

from collections.abc import Sized
from contextvars import ContextVar
from typing import Final

TEXT: Final = 4_096
"""Characters that cost one step to hash or search: about 3 us, as long as a visit of a block."""
MOST: Final = 1_500_000
"""Steps an exchange may cost.

An ordinary request of 10,000 blocks, and one of 32 MB, need less than half of it
(tests/growth/test_budget.py). A step takes 1 to 4 us, so that the worst body costs seconds.
"""


class OutOfSteps(Exception):  # noqa: N818 - a state of the exchange, not a fault of ours
    """The exchange needs more steps than it may."""


class Budget:
    """The steps an exchange has left. Local to one thread."""

    __slots__ = ("left", "most")

    def __init__(self, most: int = MOST) -> None:
        """`most`: how many steps may be spent."""
        self.most = most
        self.left = most

    @property
    def spent(self) -> int:
        """Steps spent so far."""
        return self.most - self.left


_budget: ContextVar[Budget | None] = ContextVar("otel_sealed_steps", default=None)
current: Final = _budget.get
"""The budget of the exchange, None outside of one; for what is called too often to call `spend`."""


def spend(steps: int = 1) -> None:
    """Charge the budget of the exchange. Raises OutOfSteps where nothing is left of it."""
    budget = _budget.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            raise OutOfSteps


def of_text(text: Sized) -> int:
    """Steps that it costs to hash or search a text or bytes once."""
    return 1 + len(text) // TEXT


class bounded(Budget):  # noqa: N801 - reads as a statement
    """Bound what happens inside to `most` steps; gives the budget, to ask what was spent.

    Steps of a budget inside another one are spent from both.
    """

    __slots__ = ("_outer", "_token")

    def __enter__(self) -> Budget:
        self._outer = _budget.get()
        self._token = _budget.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _budget.reset(self._token)
        if self._outer is not None:
            self._outer.left -= self.spent
