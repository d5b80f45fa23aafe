"""L5. A suffix without keys of the prefix leaves the findings of the prefix as they were.

Given a request, and the same with more messages behind it that hold no seal, id, call or text of
the turns it replays, no compaction and no reference to stored state: each artifact that has a row
in the first has the same fate, cause and place in the second, which has no more of them if a seal
or an id of the newest turn is in the first. (Its verdict may change with what
rules ask of the end of a request: whether the turn is still under way.) This is what makes a cache
of judged prefixes right: what is judged from the cache equals what is judged as a whole, as long as
no turn was recorded since that holds a key of the prefix.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_sealed.tracker import Tracker
from tests.core.conversations import KEY
from tests.core.test_settled import told as all_of
from tests.laws import wires
from tests.laws.generate import Answer, Talk, talks
from tests.laws.hosts import Change, changed, changes, newest_certain
from tests.laws.judging import Row, after, profile, rows


def fates(found: list[Row], before: int) -> list[tuple[Any, ...]]:
    """What no suffix changes, of the rows of turns before one; and of those of no turn."""
    return sorted(
        (r.artifact, r.fate, r.cause, r.turn, r.came, r.returned, r.sizes)
        for r in found
        if r.turn < before
    )


@profile()
@given(talks(least=2), st.integers(1, 4), changes(), st.booleans())
def test_what_follows_changes_no_fate_of_what_was_there(
    talk: Talk,
    at: int,
    host: tuple[Change, ...],
    seen: bool,  # noqa: FBT001 - drawn
) -> None:
    """The answers that follow are those of the conversation, or of one that nobody saw."""
    at = 1 + at % (len(talk.answers) - 1)
    talk = talk.without_keys(at)
    first = changed(talk, talk.told(at), host)
    other = talk if seen else talk.renamed("a stranger")
    more = other.told(len(other.answers))[len(talk.told(at)) :]
    tracker = after(talk.exchange(number) for number in range(at))
    found = []
    for elements in (first, first + more):
        asked = wires.exchange(talk.dialect, talk.body(elements), None, status=None)
        found.append(fates(rows(tracker.observe(asked)), at))
        for number in range(at, len(talk.answers)) if seen else ():
            tracker.observe(talk.exchange(number))
    before, now = ([row for row in one if row[3] >= 0] for one in found)
    assert set(before) <= set(now)
    assert now == before or newest_certain(talk, first) < at - 1


@profile()
@given(
    st.lists(talks(mocks=False, compacts=True), min_size=1, max_size=2),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5), changes()), max_size=8),
    st.booleans(),
)
def test_a_judgement_from_the_cache_is_that_of_the_whole(
    found: list[Talk],
    steps: list[tuple[int, int, tuple[Change, ...]]],
    raw: bool,  # noqa: FBT001 - drawn
) -> None:
    plans = [talk.renamed(f"{number}") for number, talk in enumerate(found)]
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    reached: dict[Talk, int] = {}
    for which, place, host in steps:
        talk = plans[which % len(plans)]
        number = min(place, reached.get(talk, 0), len(talk.answers) - 1)
        new = number == reached.get(talk, 0)
        reached[talk] = max(reached.get(talk, 0), number + 1)
        sent = changed(talk, talk.told(number), host)
        one = talk.exchange(number, sent, answered=new)
        if raw:
            one.request = json.dumps(one.request).encode()
        assert all_of(slow.observe(one)) == all_of(quick.observe(one))


def test_a_short_text_further_down_is_not_what_became_of_a_short_thought() -> None:
    """A seal is lost in the second answer, whose thought was "OK."; a third one says "OK."."""
    talk = Talk("anthropic", "one", (Answer("TC"), Answer("TC", (1,)), Answer("S", (1,))))
    tracker = after(talk.exchange(number) for number in range(2))
    first = changed(talk, talk.told(2), (Change("lose", 1),))
    more = talk.renamed("a stranger").told(3)[len(first) :]
    asked = [talk.body(elements) for elements in (first, first + more)]
    found = [
        rows(tracker.observe(wires.exchange("anthropic", body, None, status=None)))
        for body in asked
    ]
    assert [("dropped", "messages.3.content.0")] * 2 == [
        (row.fate, row.returned) for one in found for row in one if row.turn == 1
    ]


@pytest.mark.parametrize("words", [(1,), (0, 1)], ids=["thought", "text"])
def test_a_few_words_of_another_answer_hide_no_loss(words: tuple[int, ...]) -> None:
    """A seal is lost next to the words "OK."; a later answer, with a seal of its own, has them."""
    talk = Talk("anthropic", "one", (Answer("TC"), Answer("HS", (0, 1)), Answer("TS", words)))
    tracker = after(talk.exchange(number) for number in range(2))
    first = changed(talk, talk.told(2), (Change("lose", 1),))
    more = talk.renamed("a stranger").told(3)[len(first) :]
    asked = wires.exchange("anthropic", talk.body(first + more), None, status=None)
    found = rows(tracker.observe(asked))
    assert [("dropped", 1), ("unknown", -1)] == [
        (row.fate, row.turn) for row in found if row.verdict != "ok"
    ]


@pytest.mark.xfail(strict=True, reason="the cache is not told of turns that hold keys of a prefix")
def test_a_turn_that_is_recorded_later_ends_what_the_cache_has_of_its_seal() -> None:
    """The seal of a mock server is found in another conversation, and then in its own.

    So does an answer of another process that a shared ledger has later than the request after it.
    """
    one, two = (Talk("gemini", name, (Answer("TC", mock=True), Answer("TC"))) for name in "12")
    two = replace(two, answers=(*two.answers, Answer("TC")))
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    for talk, number in ((one, 0), (two, 1), (two, 0)):
        assert all_of(slow.observe(talk.exchange(number))) == all_of(
            quick.observe(talk.exchange(number))
        )
    last = two.exchange(2)
    assert all_of(slow.observe(last)) == all_of(quick.observe(last))
