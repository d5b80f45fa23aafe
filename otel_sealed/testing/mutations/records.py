"""What a mutation is, and the small tools that all of them are made of."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from otel_sealed.model import Fate, Verdict

Body = dict[str, Any]
Change = Callable[[Body], Body]
Row = tuple[str, Fate]


class Side(StrEnum):
    """Which body a mutation changes: what a host sends, or what it was given."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One way in which real hosts lose or spoil sealed state.

    `mechanism` is the name of the kind of bug in the public reports; `says` describes the host as
    its bug is known; `change` is a pure function of a body (every host applies it to every call).
    `around` is what is different around the call instead (vendor, host, account). `expected` are
    all rows that are neither intact nor allowed, on a conversation that holds each carrier of the
    dialect; `conversation` says which. `first` of `expected` is the one the bug is known by.
    `worst`: the worst verdict of these rows, where the same change has another one elsewhere.
    """

    name: str
    mechanism: str
    dialects: tuple[str, ...]
    says: str
    change: Change
    expected: tuple[Row, ...]
    side: Side = Side.REQUEST
    conversation: str = "standard"
    around: Mapping[str, str] = field(default_factory=dict)
    worst: Verdict | None = None

    def __call__(self, body: Body) -> Body:
        """The mutated copy of `body`."""
        return self.change(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """A change that the contract permits: it never leads to a violation.

    `change` is a pure function of a request and of a source of chance.
    """

    name: str
    dialect: str
    says: str
    change: Callable[[Body, random.Random], Body]


def pure(edit: Callable[[Body], None]) -> Change:
    """A function of a body that edits a deep copy."""

    def changed(body: Body) -> Body:
        body = copy.deepcopy(body)
        edit(body)
        return body

    changed.__name__ = edit.__name__
    changed.__doc__ = edit.__doc__
    return changed


def free(
    edit: Callable[[Body, random.Random], None],
) -> Callable[[Body, random.Random], Body]:
    """A function of a body and of chance that edits a deep copy."""

    def changed(body: Body, chance: random.Random) -> Body:
        body = copy.deepcopy(body)
        edit(body, chance)
        return body

    changed.__name__ = edit.__name__
    changed.__doc__ = edit.__doc__
    return changed


def masked(seal: str) -> str:
    """A seal as a secret redactor leaves it: head and tail with dots between."""
    third = len(seal) // 3
    return f"{seal[:third]}…{seal[-third:]}"


def objects(value: Any) -> list[Body]:
    """The JSON objects of a list; nothing for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def reversed_keys(value: Any) -> Any:
    """The same JSON with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [reversed_keys(item) for item in value]
    return value


def pairwise(items: list[Body]) -> Iterator[tuple[Body, Body]]:
    """Neighbours, each item in one pair at most."""
    for at in range(0, len(items) - 1, 2):
        yield items[at], items[at + 1]
