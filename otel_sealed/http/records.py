"""One HTTP exchange as it was recorded or seen, and what is passed by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Capture:
    """One HTTP exchange as a recorder wrote it down. Content stays out of its repr.

    Attributes:
        url: As requested.
        request: Body as recorded, bytes, text or parsed JSON; None where it was not kept.
        status: None where no response came.
        headers: Of the request, names in lower case.
        answered: Headers of the response, names in lower case.
        complete: False where the recorder says that the connection broke off.
        at: When it was made, in ns since the epoch; 0 where the recorder does not say.
        events: Messages of a WebSocket that answered, in the place of a response.
        transport: What carried it, if not an HTTP request of its own.
    """

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    request: Any = field(repr=False)
    status: int | None = None
    answered: Mapping[str, str] = field(default_factory=dict, repr=False)
    response: Any = field(default=None, repr=False)
    complete: bool = True
    at: int = 0
    events: list[Any] | None = field(default=None, repr=False)
    transport: str | None = None


@dataclass(slots=True)
class Passed:
    """What a file holds beside calls of models: numbers, and hosts if they are plain words.

    Attributes:
        hosts: Exchanges that are no call of a model.
        bodies: Calls whose request or response could not be read.
        broken: Entries without the shape of an exchange.
    """

    hosts: Counter[str] = field(default_factory=Counter)
    bodies: int = 0
    broken: int = 0

    def line(self) -> str:
        """`; passed by: 3 exchanges with api.github.com`; empty if nothing was."""
        said = [f"{_exchanges(n)} with {host}" for host, n in self.hosts.most_common(_SHOWN)]
        rest = sum(self.hosts.values()) - sum(n for _, n in self.hosts.most_common(_SHOWN))
        said += [f"{_exchanges(rest)} with further hosts"] if rest else []
        said += [f"{self.bodies:,} with a body that cannot be read"] if self.bodies else []
        said += [f"{self.broken:,} broken"] if self.broken else []
        return f"; passed by: {', '.join(said)}" if said else ""


def _exchanges(count: int) -> str:
    return f"{count:,} exchange{'' if count == 1 else 's'}"
