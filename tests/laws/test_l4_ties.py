"""L4. A tie is `unknown`.

Where all that a request shows of a turn fits two recorded turns equally well, neither is accused
and neither is called intact; a seal that stands there and is of neither is `unknown`.
"""

from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.core.conversations import Mint
from tests.laws import wires
from tests.laws.generate import Answer, Talk
from tests.laws.hosts import Change, changed, changes, sealed
from tests.laws.judging import after, profile, rows

SHAPES = {
    "anthropic": ("TS", "HS", "TTS"),
    "openai": ("TS", "HS", "TTS"),
    "gemini": ("S", "HS", "C", "CC"),
    "interactions": ("TS", "TC", "HS"),
    "openrouter": ("TS", "HS"),
    "chat": ("S",),
}


@st.composite
def ties(draw: st.DrawFn) -> Talk:
    """A conversation of one answer that holds nothing of its own but its seals."""
    dialect = draw(st.sampled_from(sorted(SHAPES)))
    shape = draw(st.sampled_from(SHAPES[dialect]))
    words = tuple(draw(st.integers(1, 2)) for _ in shape)
    one = Answer(shape, words, named=False, then=draw(st.integers(1, 2)))
    return Talk(dialect, "one", (one,), draw(st.integers(1, 2)))


@profile()
@given(ties(), changes("lose", "drop block", most=1), st.booleans())
def test_a_loss_that_may_be_of_two_turns_accuses_neither(
    talk: Talk,
    host: tuple[Change, ...],
    replaced: bool,  # noqa: FBT001 - drawn
) -> None:
    twin = replace(talk, name="two")
    tracker = after([talk.exchange(0), twin.exchange(0)])
    sent = changed(talk, talk.told(1), (*host, Change("lose all")))
    if replaced:
        mint, sent = Mint("nobody"), copy.deepcopy(changed(talk, talk.told(1), host))
        for holder, key in sealed(sent):
            holder[key] = mint.seal()
    asked = wires.exchange(talk.dialect, talk.body(sent), None, status=None)
    found = rows(tracker.observe(asked))
    assert [] == [row for row in found if row.violates or row.fate == "intact"]
    assert {"unknown"} >= {row.fate for row in found}
