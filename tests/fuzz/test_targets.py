"""A few examples of every kind, so that the fuzz job finds its targets as they are."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, Target, quiet


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@settings(
    deadline=None,
    max_examples=6,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_nothing_escapes(target: Target, data: st.DataObject) -> None:
    with quiet():
        target.check(data.draw(target.examples))
