"""A message that was read before is not read again, and nobody can tell."""

from __future__ import annotations

import copy

import pytest

from otel_sealed.model import Message, Speaker
from otel_sealed.tracker import Tracker
from otel_sealed.tracker.memo import Memo
from otel_sealed.wire.checkpoint import Segment
from otel_sealed.wire.read import MessageKey
from tests.core.builders import asked
from tests.core.conversations import KEY, MATRIX, step
from tests.core.conversations import history as turns_of
from tests.core.test_settled import ANSWERS, observed, told


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("dialect", MATRIX)
def test_a_window_that_slides_is_read_at_its_edges_only(
    dialect: str, messages_read: list[int], *, raw: bool
) -> None:
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked(dialect)
    counts: list[int] = []
    for number in range(12):
        sent = copy.deepcopy(body)
        del turns_of(sent)[1:-7]
        answer = ANSWERS[dialect][0]()
        messages_read.clear()
        report = observed(quick, dialect, sent, answer, raw=raw)
        counts.append(len(messages_read))
        assert told(report) == told(observed(slow, dialect, sent, answer, raw=raw))
        turns_of(body).extend(step(dialect, answer, f"Go on {number}."))
    new = len(step(dialect, ANSWERS[dialect][0](), ""))
    assert [new] * 4 == counts[8:]


def test_the_message_used_longest_ago_goes_first() -> None:
    memo = Memo(2)
    keys = [MessageKey(Segment(1, number), Speaker.USER) for number in range(3)]
    messages = [Message(number, Speaker.USER, (), b"") for number in range(3)]
    memo.keep(keys[0], messages[0])
    memo.keep(keys[1], messages[1])
    memo.get(keys[0])
    memo.keep(keys[2], messages[2])
    assert [messages[0], None, messages[2]] == [memo.get(key) for key in keys]


def test_who_speaks_in_a_message_is_part_of_what_it_is() -> None:
    """Results with words behind them close a loop at the end of a request, else they begin one."""
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked("anthropic")
    for number in range(4):
        answer = ANSWERS["anthropic"][0]()
        reports = [observed(t, "anthropic", body, answer, raw=True) for t in (quick, slow)]
        assert told(reports[1]) == told(reports[0])
        turns_of(body).extend(step("anthropic", answer, ""))
        turns_of(body)[-1]["content"].append({"type": "text", "text": f"And tell me why {number}."})
