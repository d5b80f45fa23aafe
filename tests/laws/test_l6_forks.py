"""L6. Leaving out the end of a request is a fork.

Given a request, and what is left of it where everything from some answer on is left out (another
question may follow): no turn whose messages were left out has a row; each row has the fate, cause
and place it had before; and of the turns that are left, none is missing up to the newest of which a
seal or an id is left. Not where the left-out part
held a value of a turn that is left, a compaction or a reference to stored state, nor where the
caller says that the request continues the last one.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.laws import wires
from tests.laws.generate import Answer, Element, Talk, talks
from tests.laws.hosts import LOCAL, Change, changed, changes, cut_before, newest_certain
from tests.laws.judging import after, profile, rows
from tests.laws.test_l5_suffix import fates


@profile()
@given(talks(least=2, mocks=False), st.integers(0, 4), changes(*LOCAL), st.booleans())
def test_what_was_left_out_at_the_end_is_not_expected(
    talk: Talk,
    at: int,
    host: tuple[Change, ...],
    asks: bool,  # noqa: FBT001 - drawn
) -> None:
    at %= len(talk.answers)
    tracker = after(talk.exchange(number) for number in range(len(talk.answers)))
    sent = changed(talk, talk.told(len(talk.answers)), host)
    left = cut_before(sent, at)
    if asks:
        left += [Element(body) for body in wires.ask(talk.dialect, "Rather something else.")]
    found = [
        rows(tracker.observe(wires.exchange(talk.dialect, talk.body(e), None, status=None)))
        for e in (sent, left)
    ]
    assert [] == [row for row in found[1] if row.turn >= at]
    here = {e.turn for e in left if 0 <= e.turn <= newest_certain(talk, left)}
    before, now = ([row for row in one if row.turn in here] for one in found)
    assert fates(before, at) == fates(now, at)
    before, now = ([row for row in one if row.turn >= 0] for one in found)
    assert set(fates(now, at)) <= set(fates(before, at))


def test_a_seal_that_two_turns_have_is_that_of_the_turn_whose_text_is_there() -> None:
    """A mock server seals each answer with the same value; the first one alone is sent."""
    talk = Talk("anthropic", "one", (Answer("TS", mock=True), Answer("TC", mock=True)))
    tracker = after(talk.exchange(number) for number in range(2))
    asked = wires.exchange("anthropic", talk.body(talk.told(1)), None, status=None)
    assert [("intact", 0)] * 2 == [(row.fate, row.turn) for row in rows(tracker.observe(asked))]


def test_a_seal_of_a_later_turn_is_not_at_home_in_the_message_of_an_earlier_one() -> None:
    """The seals of two answers are swapped, and the second answer is left out.

    The call of the first stands beside the seal: this is the place of the first, and the value
    another. Thought that is short, as "OK." is, changes nothing of that.
    """
    talk = Talk("anthropic", "one", (Answer("TC", (1,)), Answer("TC")))
    tracker = after(talk.exchange(number) for number in range(2))
    sent = cut_before(changed(talk, talk.told(2), (Change("swap", 0, 1),)), 1)
    asked = wires.exchange("anthropic", talk.body(sent), None, status=None)
    seals = [r for r in rows(tracker.observe(asked)) if r.artifact == wires.SEALS["anthropic"]]
    assert [("modified", 0)] == [(row.fate, row.turn) for row in seals if row.turn == 0]
    assert [] == [row for row in seals if row.fate == "intact"]


def test_the_answer_to_a_result_is_not_that_of_the_turn_whose_call_it_was() -> None:
    """The window begins with the result of a call whose turn is gone; "OK." answers it."""
    talk = Talk("anthropic", "one", (Answer("TC"), Answer("TC"), Answer("S", (1,))))
    tracker = after(talk.exchange(number) for number in range(3))
    window = [e for e in talk.told(3) if e.said >= 1 and e.turn != 1]
    found = [
        rows(tracker.observe(wires.exchange("anthropic", talk.body(left), None, status=None)))
        for left in (window, window[:1])
    ]
    assert [("dropped", "whole_turn", 0), ("dropped", "whole_turn", 1)] == sorted(
        (row.fate, row.cause, row.turn) for row in found[1]
    )
    assert fates(found[0], 2) == fates(found[1], 2)
