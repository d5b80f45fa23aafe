"""What a host is: a small program as people write it, and what is known to come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from otel_sealed.model import Fate, Rejection, Verdict
from otel_sealed.testing.strict import StrictProvider

REQUESTS: Final = 4
"""Requests of a whole conversation: two that call tools, the answer, one follow-up."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a host finds the provider, and what is said. Tests plant words of their own."""

    provider: StrictProvider
    question: str = "Which of the two ledgers is right?"
    tool: str = "look"
    result: str = "The second one."
    follow_up: str = "And what is wrong with the first?"

    @property
    def schema(self) -> Json:
        """What the tool takes."""
        item = {"item": {"type": "string"}}
        return {"type": "object", "properties": item, "required": ["item"]}


@dataclass(frozen=True, slots=True)
class Expected:
    """One row, other than an intact one, that a host is known to cause.

    `turn` is the number of the request, from 1.
    """

    turn: int
    artifact: str
    fate: Fate
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Host:
    """One host and what is known of it.

    Attributes:
        dialect: The wire on which the trouble shows.
        losses: All rows that are not intact, in order; none for a faithful host.
        rejection: How the provider refuses; None where it takes whatever comes.
    """

    name: str
    dialect: str
    run: Callable[[Scene], None]
    says: str
    losses: tuple[Expected, ...] = ()
    rejection: Rejection | None = None

    @property
    def faithful(self) -> bool:
        """Whether it sends everything back as it came."""
        return not self.losses


def says(function: Callable[..., Any]) -> str:
    """The first sentence of a function's docstring: what a host does is told in one place."""
    return (function.__doc__ or "").strip().partition("\n")[0]


def each_turn(
    artifact: str, fate: Fate, *verdicts: tuple[int, int, Verdict]
) -> tuple[Expected, ...]:
    """The same loss again and again: so many rows a turn, as (turn, rows, verdict)."""
    return tuple(
        Expected(turn, artifact, fate, verdict)
        for turn, rows, verdict in verdicts
        for _ in range(rows)
    )
