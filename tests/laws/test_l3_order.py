"""L3. The order of evaluation changes nothing.

A report is a function of the turns that were recorded and of the request. To judge a request
records nothing: requests without an answer, judged in any order and any number of times, have the
reports they have alone. Of answers to one request, which was recorded first decides nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_sealed.align import align
from otel_sealed.model import Turn
from otel_sealed.tracker import Tracker, judging
from tests.core.conversations import KEY
from tests.laws import wires
from tests.laws.generate import Answer, Talk, talks
from tests.laws.hosts import Change, changed, changes
from tests.laws.judging import after, counted, profile, rows


@profile()
@given(talks(compacts=True), st.lists(changes(), min_size=2, max_size=4), st.booleans(), st.data())
def test_requests_that_are_only_judged_may_come_in_any_order(
    talk: Talk,
    hosts: list[tuple[Change, ...]],
    settles: bool,  # noqa: FBT001 - drawn
    data: st.DataObject,
) -> None:
    whole = talk.told(len(talk.answers))
    asked = [
        wires.exchange(talk.dialect, talk.body(changed(talk, whole, one)), None, status=None)
        for one in hosts
    ]
    order = data.draw(st.permutations(range(len(asked))))
    found = []
    for places in (range(len(asked)), order):
        tracker = Tracker(KEY, settles=settles)
        for number in range(len(talk.answers)):
            tracker.observe(talk.exchange(number))
        reports = {place: tracker.observe(asked[place]) for place in places}
        found.append([counted(reports[place]) for place in range(len(asked))])
    assert found[0] == found[1]


@profile()
@given(talks(), changes(), st.integers(0, 2**32))
def test_the_turns_of_a_request_may_be_gone_through_in_any_order(
    talk: Talk, host: tuple[Change, ...], seed: int
) -> None:
    sent = changed(talk, talk.told(len(talk.answers)), host)
    asked = wires.exchange(talk.dialect, talk.body(sent), None, status=None)
    before = [talk.exchange(number) for number in range(len(talk.answers))]
    found = [after(before).observe(asked).findings]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "align", partial(align, visited=partial(shuffled, seed)))
        found.append(after(before).observe(asked).findings)
    assert found[0] == found[1]


def shuffled(seed: int, turns: Sequence[Turn]) -> Sequence[Turn]:
    """Some order of the turns."""
    return random.Random(seed).sample(turns, len(turns))


@profile()
@given(talks(mocks=False), changes(), st.booleans())
def test_of_answers_to_one_request_the_first_recorded_is_like_the_last(
    talk: Talk,
    host: tuple[Change, ...],
    other: bool,  # noqa: FBT001 - drawn
) -> None:
    number = len(talk.answers) - 1
    rival = talk.renamed("asked again")
    before = [talk.exchange(n) for n in range(number)]
    one = talk.exchange(number)
    two = wires.exchange(
        talk.dialect, talk.body(talk.told(number)), rival.responses[number], number=100
    )
    mine = talk.told(number + 1)
    theirs = talk.told(number) + rival.told(number + 1)[len(talk.told(number)) :]
    sent = changed(talk, theirs if other else mine, host)
    asked = wires.exchange(talk.dialect, talk.body(sent), None, status=None)
    found = [rows(after([*before, *both]).observe(asked)) for both in ((one, two), (two, one))]
    assert found[0] == found[1]


def test_of_two_compactions_that_one_request_brought_either_may_be_sent() -> None:
    """The request that the second compaction answered was asked again, and compacted again.

    It is the very request, with no other question: nothing newer was left behind.
    """
    talk = Talk("anthropic", "one", (Answer("KTS"), Answer("KTS")))
    asked = talk.body(talk.told(1))
    again = wires.exchange("anthropic", asked, talk.renamed("again").responses[1], number=100)
    found = [
        rows(after([talk.exchange(0), *both]).observe(sent))
        for sent in [wires.exchange("anthropic", talk.body(talk.told(2)), None, status=None)]
        for both in ((talk.exchange(1), again), (again, talk.exchange(1)))
    ]
    assert found[0] == found[1]
    assert [] == [row for row in found[0] if row.violates]
