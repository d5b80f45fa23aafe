"""The exchanges of one WebSocket of the Responses API: a request in a message, a reply in several.

Requests of one lane (`stream_id`) are answered in their order, and a new one ends the one before.
What is looked for stands at the start of a message; nothing is parsed while messages pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from otel_sealed.http.observer import Seen

_ASKS: Final = re.compile(r'"type"\s*:\s*"response\.create"')
_CLOSES: Final = re.compile(
    r'\A\s*\{\s*"type"\s*:\s*"(?:response\.(?:completed|failed|incomplete)|error)"'
)
_LANE: Final = re.compile(r'"stream_id"\s*:\s*"([^"\\]{1,256})"')
_LOOKED_AT: Final = 4_096
"""Characters of a message in which its type and its lane are looked for."""


class Lanes:
    """The exchanges that are under way on one connection."""

    def __init__(self, begin: Callable[[], Seen], over: Callable[[Seen, bool], None]) -> None:
        """`begin` makes an exchange of the connection; `over` takes one, and if it is whole."""
        self._begin = begin
        self._over = over
        self._open: dict[str, Seen] = {}

    def sent(self, message: str) -> None:
        """A message of the client."""
        if not _ASKS.search(message[:_LOOKED_AT]):
            return
        lane = _lane(message)
        if lane in self._open:
            self._over(self._open.pop(lane), False)
        seen = self._open[lane] = self._begin()
        seen.method, seen.messages, seen.status = "POST", True, 200
        seen.request.add(message.encode("utf-8", "surrogatepass"))

    def answered(self, message: str) -> None:
        """A message of the server."""
        lane = _lane(message)
        seen = self._open.get(lane)
        if seen is None:
            return
        seen.response.add(message.encode("utf-8", "surrogatepass"))
        if _CLOSES.match(message):
            self._over(self._open.pop(lane), True)

    def close(self) -> None:
        """The connection is closed."""
        while self._open:
            self._over(self._open.popitem()[1], False)


def _lane(message: str) -> str:
    found = _LANE.search(message[:_LOOKED_AT])
    return found[1] if found else ""
