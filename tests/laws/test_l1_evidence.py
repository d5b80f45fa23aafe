"""L1. No violation without identifying evidence.

A row that degrades or breaks and names a received turn needs, in the request, something that this
turn or one that continued it brought: a seal (as it came, or changed), an id, a call, a long text
(of a thought, whatever seal is next to it); or, in its place, which is behind the very messages the
turn answered, a short text or a carrier of its type with nothing in it. And nothing there
contradicts it: in the place of the turn, or of one between it and what is there of its
conversation, no other answer stands. What others say as well, the same questions in the same order
and a place in that order, accuses nobody.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.laws import wires
from tests.laws.generate import Answer, Talk, talks
from tests.laws.hosts import Change, Elements, changed, changes
from tests.laws.judging import after, profile, rows

PLACES = st.integers(0, 4)


def stranger_behind(
    talk: Talk, at: int, host: tuple[Change, ...] = (), *, common: int = 0
) -> Elements:
    """The history up to answer `at`, then that of a conversation nobody here saw, by that host.

    The next `common` answers say what those of the conversation do, where those said what many do;
    but no long thought, which is nobody else's.
    """
    other = talk.renamed("a stranger")
    own = [
        replace(one, words=(), shape="HS" if one.shape == "H" else one.shape)
        for one in other.answers[at + common :]
    ]
    shared = [
        replace(one, words=tuple(min(w, 1) for w in one.words) if "T" in one.shape else one.words)
        for one in other.answers[at : at + common]
    ]
    other = replace(other, answers=(*other.answers[:at], *shared, *own))
    seen = talk.told(at)
    unseen = other.told(len(other.answers))[len(seen) :]
    return seen + changed(other, unseen, host)


def accused(talk: Talk, elements: Elements) -> list[tuple[str, str, int]]:
    """(artifact, fate, turn) of the violations of a request after the whole conversation."""
    tracker = after(talk.exchange(number) for number in range(len(talk.answers)))
    asked = wires.exchange(talk.dialect, talk.body(elements), None, status=None)
    return [(r.artifact, r.fate, r.turn) for r in rows(tracker.observe(asked)) if r.violates]


@profile()
@given(talks(mocks=False), PLACES)
def test_a_faithful_stranger_in_the_place_of_a_turn_is_accused_of_nothing(
    talk: Talk, at: int
) -> None:
    at %= len(talk.answers)
    assert [] == accused(talk, stranger_behind(talk, at, common=1))


@profile()
@given(talks(mocks=False), PLACES, changes())
def test_an_unfaithful_stranger_with_words_of_its_own_is_accused_of_nothing(
    talk: Talk, at: int, host: tuple[Change, ...]
) -> None:
    at %= len(talk.answers)
    assert [] == accused(talk, stranger_behind(talk, at, host))


def test_a_text_that_many_say_is_not_that_of_a_turn_whose_parent_another_answer_replaced() -> None:
    """The stranger's first answer is sealed, and in the place of the turn that the second's is of.

    That turn continued the one whose place is taken: its text is there by chance.
    """
    answers = (Answer("TC"), Answer("TC"), Answer("S", (2,), sealed=False))
    talk = Talk("interactions", "one", answers)
    assert [] == accused(talk, stranger_behind(talk, 1, common=2))


def test_a_call_next_to_its_own_thought_is_not_that_of_a_turn_another_answer_replaced() -> None:
    """Both turns made the same short call; the first one without an id, which would say whose."""
    one, two = Answer("TC", (0, 1), named=False), Answer("TC", (0, 1))
    talk = Talk("interactions", "one", (one, two))
    assert [] == accused(talk, stranger_behind(talk, 1))
