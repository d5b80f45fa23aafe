"""Conversations for the laws: all wires, sealed turns and others, tool loops, words that repeat.

What is drawn is small (`Answer`, `Talk`), so that a failure shrinks to few letters; bodies follow
from it, and repeat. Words are 0 (nobody else's) or one of `COMMON`, which any turn of any
conversation may say. `mock` is the constant seal of a mock server.
"""

from __future__ import annotations

import base64
import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from otel_sealed.contract import Exchange
from tests.core.conversations import WHOLE, Body, Delivery, Mint, history
from tests.laws import wires
from tests.laws.wires import COMPACTING, DIALECTS, STEPWISE, Piece

COMMON = ("", "OK.", "Hello! How can I help you today?")
"""The first is none; the second is short, the third long enough to be taken for somebody's."""
QUESTIONS = ("", "Go on.", "And what is there to know about the other one?")
MOCK = base64.b64encode(b"the constant seal of a mock server, " * 4).decode()
SHAPES = ("TC", "TS", "S", "C", "TSC", "HTCC", "TCC", "H", "TTC", "HS", "SC", "CC")
STEPS = ("TCTC", "TSTC", "TCTS")
"""Thinking between calls."""
COMPACTIONS = ("KTS", "KTC", "KS")
"""What came before may be left out from here on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: `words[i]` are those of its piece `i`, and `then` those of who speaks next.

    `named`: whether calls and items have ids, where a wire leaves them out at all.
    """

    shape: str
    words: tuple[int, ...] = ()
    sealed: bool = True
    mock: bool = False
    named: bool = True
    then: int = 0


@dataclass(frozen=True)
class Element:
    """One element of a history; `turn` brought it, or -1 where nobody of the model did.

    `said`: the number of the answer it follows, so that what the user says there can be found.
    """

    body: Body
    turn: int = -1
    said: int = -1


@dataclass(frozen=True)
class Talk:
    """One conversation. `name` makes its seals, ids and own words; `opening` its first question."""

    dialect: str
    name: str
    answers: tuple[Answer, ...]
    opening: int = 0

    @cached_property
    def responses(self) -> list[Body]:
        """The bodies of its answers."""
        mint = Mint(f"{self.name} {self.dialect}")
        return [wires.answer(self.dialect, mint, self._pieces(mint, one)) for one in self.answers]

    def shape(self, one: Answer) -> str:
        """The pieces of an answer, as its wire has them."""
        shape = one.shape if self.dialect in STEPWISE else _in_one_go(one.shape)
        if not one.sealed and self.dialect not in ("gemini", "chat"):
            shape = "".join(kind for kind in shape if kind in "SC") or "S"
        return shape

    def without_keys(self, at: int) -> Talk:
        """The same, but what it says from answer `at` on that others say as well is short text.

        Calls, longer texts and constant seals there are its own.
        """
        own = [
            replace(
                one,
                mock=False,
                words=tuple(
                    word if word == 1 and kind in "TS" else 0
                    for kind, word in zip(self.shape(one), one.words, strict=False)
                ),
            )
            for one in self.answers[at:]
        ]
        return replace(self, answers=(*self.answers[:at], *own))

    def _pieces(self, mint: Mint, one: Answer) -> list[Piece]:
        shape = self.shape(one)
        signed = _signed(self.dialect, shape) if one.sealed else set()
        ids = one.named or self.dialect in ("anthropic", "chat", "openrouter")
        return [
            Piece(
                kind,
                COMMON[one.words[at] if at < len(one.words) else 0] or mint.text(kind),
                (MOCK if one.mock else mint.seal(20, 60)) if at in signed else None,
                mint.name(_PREFIX[self.dialect].get(kind, "x")) if ids else None,
            )
            for at, kind in enumerate(shape)
        ]

    def question(self, number: int) -> list[Body]:
        """What the user says after answer `number`, or first of all after -1."""
        which = self.opening if number < 0 else self.answers[number].then
        own = f"Question {number + 1} of {self.name}."
        return wires.ask(self.dialect, QUESTIONS[which] or own)

    def told(self, count: int) -> list[Element]:
        """The faithful history in front of answer `count`."""
        found = [Element(body) for body in history(wires.base(self.dialect))]
        found += [Element(body) for body in self.question(-1)]
        for number, response in enumerate(self.responses[:count]):
            found += [Element(b, number, number) for b in wires.reply(self.dialect, response)]
            after = wires.results(self.dialect, response) or self.question(number)
            found += [Element(body, said=number) for body in after]
        return copy.deepcopy(found)

    def body(self, elements: list[Element], **more: Any) -> Body:
        """The request with this history."""
        body = wires.base(self.dialect) | copy.deepcopy(more)
        history(body)[:] = [element.body for element in elements]
        return body

    def exchange(
        self,
        number: int,
        elements: list[Element] | None = None,
        *,
        delivery: Delivery = WHOLE,
        answered: bool = True,
        **more: Any,
    ) -> Exchange:
        """The exchange of answer `number`; `elements` instead of the faithful history."""
        asked = self.body(self.told(number) if elements is None else elements)
        answer = self.responses[number] if answered else None
        told = {"number": number} if answered else {"number": number, "status": None}
        return wires.exchange(self.dialect, asked, copy.deepcopy(answer), delivery, **told | more)

    def renamed(self, name: str) -> Talk:
        """The same with seals, ids and words of its own."""
        return replace(self, name=name)


_PREFIX: dict[str, dict[str, str]] = {
    "anthropic": {"C": "toolu"},
    "openai": {"K": "cmp", "T": "rs", "H": "rs", "S": "msg", "C": "fc"},
    "gemini": {"C": "call"},
    "interactions": {"C": "call"},
    "chat": {"C": "call"},
    "openrouter": {"C": "call"},
}


def _in_one_go(shape: str) -> str:
    """Thoughts, then what is said, then calls."""
    return "".join(sorted(shape, key="KTHSC".index))


def _signed(dialect: str, shape: str) -> set[int]:
    """The pieces of an answer that are sealed."""
    if dialect not in ("gemini", "chat"):
        return {at for at, kind in enumerate(shape) if kind in "KTH"}
    first = next((shape.index(kind) for kind in "CHS" if kind in shape), None)
    return set() if first is None else {first}


# ---------------------------------------------------------------------------------- strategies


def answers(dialect: str, *, compacts: bool = False) -> st.SearchStrategy[Answer]:
    """Any answer of a wire; `compacts`: compactions, too, where it has them."""
    shapes = SHAPES + (STEPS if dialect in STEPWISE else ())
    shapes += COMPACTIONS if compacts and dialect in COMPACTING else ()
    common = st.integers(0, len(COMMON) - 1)
    return st.builds(
        Answer,
        shape=st.sampled_from(shapes),
        words=st.lists(common, max_size=4).map(tuple),
        sealed=st.booleans().map(lambda chance: not chance),
        mock=st.integers(0, 9).map(lambda n: n == 9),
        named=st.integers(0, 4).map(lambda n: n < 4),
        then=st.integers(0, len(QUESTIONS) - 1),
    )


@st.composite
def talks(
    draw: st.DrawFn,
    name: str = "one",
    *,
    dialects: tuple[str, ...] = DIALECTS,
    least: int = 1,
    most: int = 5,
    mocks: bool = True,
    compacts: bool = False,
    opening: int | None = None,
) -> Talk:
    """A conversation of a few answers.

    `mocks`: whether seals may be those of a mock server; `compacts`: whether it may be compacted.
    """
    dialect = draw(st.sampled_from(dialects))
    found = draw(st.lists(answers(dialect, compacts=compacts), min_size=least, max_size=most))
    if not mocks:
        found = [replace(one, mock=False) for one in found]
    first = draw(st.integers(0, len(QUESTIONS) - 1)) if opening is None else opening
    return Talk(dialect, name, tuple(found), first)
