"""What a shared ledger needs of the place where its turns are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """A turn as a store keeps it, and what it is found by."""

    number: int
    data: bytes
    keys: tuple[bytes, ...]
    conversation: bytes


class Store(Protocol):
    """Where the turns of several processes are. Any call may raise one of `faults`.

    Reads come from any thread, one at a time; writes from one thread. What is read is handed on as
    it is there, of whatever type: `trust` checks it.
    """

    faults: tuple[type[Exception], ...]
    far: bool
    """Whether it is a round trip away, and is better asked for much at once."""

    def open(self) -> object:
        """Reach it, or make it; the key that its processes share, None where it keeps none."""

    def numbers(self, keys: Sequence[bytes], latest: int) -> list[list[object]]:
        """For each key the numbers of turns that may hold it, at most the newest 16 to `latest`."""

    def newest(self, conversation: bytes, latest: int) -> list[object]:
        """Numbers of turns that may be of a conversation, at most the newest 16 to `latest`."""

    def records(self, numbers: Sequence[int]) -> list[object]:
        """What is kept under each of these numbers, or None."""

    def count(self) -> object:
        """Turns held."""

    def now_ns(self) -> object:
        """The time where the store is, in nanoseconds since 1970: no process's own clock."""

    def write(self, rows: Sequence[Row], oldest: int, latest: int) -> int:
        """Keep turns and prune; how many were pruned, a batch at most for each reason.

        What is older than the number `oldest` goes. Of what is too much those later than `latest`
        go first, which nobody believes, and then the oldest.
        """

    def forked(self) -> None:
        """This process was forked off: leave connections alone, they are the parent's."""

    def close(self) -> None:
        """Let go of it."""
