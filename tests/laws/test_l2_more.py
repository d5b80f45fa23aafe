"""L2. More certain evidence never loses a turn.

Given a request, and the same with a lost seal put back into its own place: every turn that has a
row in the report of the first has one in that of the second, every seal that is intact in the first
is intact in the second, and the seal that was put back is intact.
"""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from tests.laws import wires
from tests.laws.generate import Talk, talks
from tests.laws.hosts import Change, Elements, changed, changes, sealed
from tests.laws.judging import Row, after, profile, rows

KEPT = ("edit question", "trim", "drop turn", "fork")
"""Changes that leave out or change other things than seals."""


def without(elements: Elements, lost: set[int]) -> Elements:
    """The history without the seals of these numbers."""
    elements = copy.deepcopy(elements)
    for number, (holder, key) in enumerate(sealed(elements)):
        if number in lost:
            del holder[key]
    return elements


def judged(talk: Talk, elements: Elements) -> list[Row]:
    """The rows of a request after the whole conversation."""
    tracker = after(talk.exchange(number) for number in range(len(talk.answers)))
    asked = wires.exchange(talk.dialect, talk.body(elements), None, status=None)
    return rows(tracker.observe(asked))


@profile()
@given(talks(mocks=False), changes(*KEPT, most=1), st.sets(st.integers(0, 9)), st.integers(0, 9))
def test_a_seal_put_back_loses_no_turn_and_is_intact(
    talk: Talk, host: tuple[Change, ...], lost: set[int], back: int
) -> None:
    sent = changed(talk, talk.told(len(talk.answers)), host)
    fewer = judged(talk, without(sent, lost | {back}))
    more = judged(talk, without(sent, lost - {back}))
    assert {row.turn for row in fewer} <= {row.turn for row in more}
    was, now = ({(r.turn, r.came) for r in found if r.fate == "intact"} for found in (fewer, more))
    held = len(sealed(sent))
    assert was <= now
    assert held - len({n for n in lost - {back} if n < held}) == len(now)
