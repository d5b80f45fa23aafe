"""What random damage must never do: accuse a faithful request that comes later, or cost much."""

from __future__ import annotations

import os

import pytest

from tests.core.conversations import MATRIX
from tests.core.damage import watched

SEEDS = (*range(int(os.environ.get("OTEL_SEALED_LAWS", "0")) or 12), 55, 202, 649, 731, 989)
"""Hosts of each dialect; as many as examples of a law in the long profile (`.ci/run laws`).

The last ones were accused, or were judged without end, before what they show was understood."""


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_faithful_request_after_damaged_ones_is_accused_of_nothing(
    dialect: str, seed: int
) -> None:
    found = [
        (number, f.artifact, f.fate.value)
        for number, seen in enumerate(watched(dialect, seed))
        for f in seen.report.findings
        if f.verdict.violates and not seen.damage
    ]
    assert [] == found


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_request_needs_few_steps(dialect: str, seed: int) -> None:
    assert {()} == {seen.report.unread for seen in watched(dialect, seed)}
