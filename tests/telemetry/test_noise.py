from __future__ import annotations

import logging

import pytest

from otel_sealed.model import Fate, Verdict
from tests.telemetry.builders import Bench, finding, report

STRANGE = finding(Fate.UNKNOWN, Verdict.UNVERIFIABLE)
KNOWN = finding()


def run(calls: int, strange: int, of: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines after so many calls, each with `strange` of `of` findings unknown."""
    caplog.set_level(logging.WARNING, "otel_sealed")
    bench = Bench()
    for _ in range(calls):
        bench.call(report(*[STRANGE] * strange, *[KNOWN] * (of - strange)))
    return [record.getMessage() for record in caplog.records]


def test_above_30_percent_after_200_calls_one_line_says_why_and_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (line,) = run(450, 1, 3, caplog)
    assert line == (
        "33 % of the sealed values in the first 200 calls were never seen coming in, so they cannot"
        " be checked: this process was restarted, several workers share the conversations, or a"
        " load balancer spreads them. Have the processes of a machine share a ledger"
        " (OTEL_SEALED_LEDGER), or keep each conversation on one process (sticky sessions)."
    )


@pytest.mark.parametrize(("calls", "strange", "of"), [(199, 3, 3), (400, 3, 10), (400, 0, 0)])
def test_earlier_at_30_percent_or_with_nothing_sealed_nothing_is_said(
    calls: int, strange: int, of: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(calls, strange, of, caplog) == []
