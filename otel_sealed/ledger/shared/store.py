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

    Reads come from any thread, one at a time; writes from one thread.
    """

    faults: tuple[type[Exception], ...]

    def open(self) -> bytes:
        """Reach it, or make it; the key that its processes share. Again after a fault."""

    def lookup(self, key: bytes) -> list[int]:
        """Numbers of the turns that hold `key`, ascending, at most the newest 16."""

    def get(self, number: int) -> bytes | None:
        """A packed turn."""

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""

    def count(self) -> int:
        """Turns held."""

    def write(self, rows: Sequence[Row], oldest: int) -> int:
        """Keep turns, and prune: what is older than the number `oldest`, and what is too much.

        Returns how many turns were pruned.
        """

    def forked(self) -> None:
        """This process was forked off: leave connections alone, they are the parent's."""

    def close(self) -> None:
        """Let go of it."""


class Far(Store, Protocol):
    """A store that is a round trip away, and answers many questions in one."""

    def lookups(self, keys: Sequence[bytes]) -> list[list[int]]:
        """What `lookup` says of each of several keys."""

    def gets(self, numbers: Sequence[int]) -> list[bytes | None]:
        """What `get` says of each of several numbers."""
