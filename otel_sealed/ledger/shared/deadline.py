"""A socket whose answer comes within a time and a size, or not at all.

A timeout of a socket bounds each reading from it. A server that sends a byte now and then keeps to
that for ever, and one that sends gigabytes, too; a call would wait for either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

_TIMES: Final = 5
"""A whole answer may take as many times what a server may take to begin it."""
ANSWER_BYTES: Final = 64 * 2**20
"""Twice the most that is asked for at once (`shared`: 128 records of 256 KiB)."""


class Deadline:
    """A socket that is asked and answers, as the client of a server uses one."""

    def __init__(
        self, socket: Any, wait_s: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`wait_s`: the timeout of the socket; `now` in seconds."""
        self._socket = socket
        self._answer_s = _TIMES * wait_s
        self._now = now
        self._until = now() + self._answer_s
        self._left = ANSWER_BYTES

    def sendall(self, data: Any) -> Any:
        """Ask: the time of the answer begins."""
        sent = self._socket.sendall(data)
        self._until = self._now() + self._answer_s
        self._left = ANSWER_BYTES
        return sent

    def recv(self, *what: Any) -> Any:
        """Some of the answer. Raises TimeoutError where it takes too long, or is too much."""
        self._check()
        data = self._socket.recv(*what)
        self._left -= len(data)
        return data

    def recv_into(self, *what: Any) -> Any:
        """Some of the answer, likewise."""
        self._check()
        size = self._socket.recv_into(*what)
        self._left -= size
        return size

    def _check(self) -> None:
        if self._left <= 0 or self._now() > self._until:
            raise TimeoutError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)
