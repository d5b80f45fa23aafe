"""Turns that a ledger knows by their number and not by their keys.

A shared ledger whose store fails or rests in the middle of a request still has what it read of it
before: such a turn is in the line of those that continued it, and nobody finds it by its seals. One
that is known there is known everywhere, or its seals would stand in places of nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence

from otel_sealed.ledger.packed import packed
from otel_sealed.ledger.protocol import Found
from otel_sealed.model import Lineage, Message, Role, State, Turn


def overlooked(ledger: Found, lineage: Lineage, messages: Sequence[Message]) -> tuple[Turn, ...]:
    """The turns of `lineage` with a seal in the request that no key leads to."""
    unproven = [turn for turn in lineage.turns if turn.number in lineage.inferred]
    if not unproven:
        return ()
    sent = {
        value.canon
        for message in messages
        for block in message.blocks
        for value in block.values
        if value.role is Role.SEAL and value.state is State.PRESENT
    }
    return tuple(
        turn
        for turn in unproven
        if any(
            value.canon in sent and turn.number not in ledger.lookup(value.canon)
            for block in turn.blocks
            for value in block.seals()
        )
    )


class Beside:
    """A ledger, and turns of it that are found by their keys here."""

    def __init__(self, ledger: Found, turns: Sequence[Turn]) -> None:
        """`turns`: numbered as the ledger numbers them."""
        self._ledger = ledger
        self._turns = {turn.number: turn for turn in turns}
        self._keys: dict[bytes, list[int]] = {}
        for turn in turns:
            for key in packed(turn)[1]:
                self._keys.setdefault(key, []).append(turn.number)

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Numbers of the turns that hold `key`, oldest first."""
        found, more = self._ledger.lookup(key), self._keys.get(key)
        return tuple(sorted({*found, *more})) if more else found

    def get(self, number: int) -> Turn | None:
        """The turn of that number."""
        return self._turns.get(number) or self._ledger.get(number)

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""
        return self._ledger.last(conversation)
