"""What all tests of the core share."""

from __future__ import annotations

import pytest

from otel_sealed.contract import RawMessage
from otel_sealed.model import Message
from otel_sealed.wire.read import Reader
from tests.core import builders


@pytest.fixture(autouse=True)
def minted_anew(request: pytest.FixtureRequest) -> None:
    """Each test mints the same values whatever ran before it, and those of no other test."""
    builders.MINT.begin(f"builders {request.node.nodeid}")


@pytest.fixture
def messages_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indices of the messages that were read so far."""
    indices: list[int] = []
    original = Reader._message

    def counting(reader: Reader, raw: RawMessage, index: int) -> Message:
        indices.append(index)
        return original(reader, raw, index)

    monkeypatch.setattr(Reader, "_message", counting)
    return indices
