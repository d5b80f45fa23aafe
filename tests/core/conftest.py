"""What all tests of the core share."""

from __future__ import annotations

import pytest

from tests.core import builders


@pytest.fixture(autouse=True)
def minted_anew(request: pytest.FixtureRequest) -> None:
    """Each test mints the same values whatever ran before it, and those of no other test."""
    builders.MINT.begin(f"builders {request.node.nodeid}")
