"""What the tests of ledgers share: turns, and what every ledger has to do."""

from __future__ import annotations

import hashlib

from otel_sealed.model import Block, Kind, Role, State, Turn, Value

KEY = b"k" * 32
"""The hash key of those who share a ledger."""


def digest(name: str) -> bytes:
    """A digest that a name stands for."""
    return hashlib.sha256(name.encode()).digest()[:16]


def turn(*names: str, conversation: str = "c", parent: int = -1) -> Turn:
    """A turn that is found under what its names stand for."""
    blocks = tuple(
        Block(
            "thinking",
            Kind.REASONING,
            f"content.{at}",
            values=(
                Value("a.b.c", Role.SEAL, State.PRESENT, digest(name), digest(name), 4, b"wxyz"),
                Value("a.b.d", Role.SEAL, State.EMPTY, b"", digest("never")),
                Value("a.b.e", Role.SIGNED, State.PRESENT, digest("text"), b"", 4),
            ),
            anchors=(digest(f"id {name}"),),
            payload=digest(f"said {name}"),
        )
        for at, name in enumerate(names)
    )
    return Turn(
        0,
        blocks,
        "",
        "anthropic",
        "anthropic",
        conversation=digest(conversation) if conversation else b"",
        parent=parent,
        joined=digest("joined"),
        response_key=digest("response"),
        thread=digest("thread"),
        chain=digest("chain"),
    )
