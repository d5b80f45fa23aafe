"""What a ledger is to those who look turns up in it, and to those who record them."""

from __future__ import annotations

from typing import Protocol

from otel_sealed.model import Turn


class Found(Protocol):
    """What locating needs of a ledger."""

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Serial numbers of the turns that hold a key, oldest first."""

    def get(self, number: int) -> Turn | None:
        """The turn of a serial number."""

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""


class Ledger(Found, Protocol):
    """What the tracker needs of a ledger."""

    def record(self, turn: Turn) -> Turn:
        """Remember a turn and return it numbered."""

    def __len__(self) -> int:
        """Turns held."""
