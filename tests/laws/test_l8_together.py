"""L8. Conversations fed alternately give what each gives alone.

Given conversations without a common seal or id whose first messages differ: each request, observed
by one tracker in any order that keeps the order inside each conversation, has the rows it has when
its conversation is observed alone, also where answers and later questions have the same words. (In
one conversation, too: of turns that read the same, a text is that of the one that continues the
turn before it.)
Where the first messages are the same as well, what has been lost of two answers alike may be of
either (L4): then no request has a violation that it does not have alone.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_sealed.contract import Exchange
from tests.laws import wires
from tests.laws.generate import Answer, Talk, talks
from tests.laws.hosts import Change, changed, changes
from tests.laws.judging import Row, fresh, profile, rows
from tests.laws.test_l7_names import played

Hosts = list[tuple[Change, ...]]
HABITS = st.lists(changes(), min_size=1, max_size=3)


def alone(plan: list[Exchange]) -> list[list[Row]]:
    """The rows of each request of one conversation."""
    tracker = fresh()
    return [rows(tracker.observe(one)) for one in plan]


def together(plans: list[list[Exchange]], order: list[int]) -> list[list[list[Row]]]:
    """The rows of each request of each, observed in turns."""
    tracker = fresh()
    found: list[list[list[Row]]] = [[] for _ in plans]
    for which in order:
        if len(found[which]) < len(plans[which]):
            found[which].append(rows(tracker.observe(plans[which][len(found[which])])))
    return found


def order_of(data: st.DataObject, plans: list[list[Exchange]]) -> list[int]:
    """Any interleaving."""
    return data.draw(
        st.permutations([which for which, plan in enumerate(plans) for _ in plan]), label="order"
    )


@profile()
@given(talks(mocks=False, compacts=True, opening=0), st.data(), HABITS, HABITS)
def test_conversations_in_turn_are_judged_as_each_alone(
    talk: Talk, data: st.DataObject, one: Hosts, two: Hosts
) -> None:
    other = data.draw(talks("two", dialects=(talk.dialect,), mocks=False, opening=0), label="two")
    other = data.draw(st.sampled_from([other, talk.renamed("two")]))
    plans = [played(talk, one), played(other, two)]
    found = together(plans, order_of(data, plans))
    assert [alone(plan) for plan in plans] == found


@profile()
@given(talks(mocks=False, compacts=True, opening=1), st.data(), HABITS, HABITS)
def test_conversations_that_begin_alike_accuse_each_other_of_nothing(
    talk: Talk, data: st.DataObject, one: Hosts, two: Hosts
) -> None:
    plans = [played(talk, one), played(talk.renamed("two"), two)]
    for own, found in zip(
        [alone(plan) for plan in plans], together(plans, order_of(data, plans)), strict=True
    ):
        for before, now in zip(own, found, strict=True):
            assert {row for row in now if row.violates} <= {row for row in before if row.violates}


@profile(20)
@given(st.sampled_from(["gemini", "chat", "anthropic", "openai"]), st.integers(2, 4))
def test_a_loss_is_reported_though_several_answers_read_the_same(dialect: str, many: int) -> None:
    """The case D1a: the first question is edited, and all seals but the first are lost."""
    shape = "S" if dialect in ("gemini", "chat") else "TS"
    first = Answer("S" if shape == "S" else "TS")
    same = Answer(shape, (0, 2) if shape == "TS" else (2,), then=1)
    talk = Talk(dialect, "one", (first, *[same] * many))
    tracker = fresh()
    for number in range(len(talk.answers)):
        tracker.observe(talk.exchange(number))
    lost = [Change("lose", 1)] * many
    sent = changed(talk, talk.told(many + 1), (Change("edit question"), *lost))
    asked = wires.exchange(dialect, talk.body(sent), None, status=None)
    found = {row.turn for row in rows(tracker.observe(asked)) if row.fate == "dropped"}
    assert set(range(1, many + 1)) == found
