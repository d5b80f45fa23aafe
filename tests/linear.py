"""How much work a pattern makes: a backtracking matcher that counts its steps, and texts that hurt.

`re` has no step counter, and a test reads no clock. So the parsed pattern is matched here the way
`re` does it (greedy, in the same order, with the same rules), and each visit of an item is a step.
That it is the same machine is shown by agreement with `re` on thousands of texts
(`test_patterns.py`). `re` skips some visits by its own shortcuts and makes none that is not counted
here, so that what is linear here is linear there.

Texts come from the pattern itself. What hurts a backtracking matcher is a run that it can read in
many ways, or reads again from every start, followed by something that makes it fail. So for every
repeat the way to it is written once, what it repeats many times, and a character after it that
nothing expects; and so are all pairs of characters that the pattern tells from each other.

A repeat bounded by a number stays bounded however long a text is, but only for texts longer than
that number. To see this in short texts, bounds up to `BOUNDED` are lowered to `LOW` first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

BOUNDED: Final = 512
"""Repeats with a higher bound count as unbounded: so many steps for each character are too many."""
LOW: Final = 3
ENOUGH: Final = 400_000
"""More steps than any linear pattern makes on these texts; an exponential one stops here."""

Node = Any
Tree = list[tuple[Any, Any]]
Next = Callable[[int], bool]
Match = Callable[[int, Next], bool]
Fits = Callable[[str], bool]


class TooManySteps(Exception):  # noqa: N818 - a result
    """The counter reached `ENOUGH`."""


# ---------------------------------------------------------------------------------- the matcher


@dataclass(slots=True)
class Matcher:
    """One pattern as a machine. `lowered`: with its bounds lowered, for the growth of steps."""

    pattern: re.Pattern[Any]
    lowered: bool = False
    steps: int = 0
    fits: list[Fits] = field(default_factory=list)
    tree: Tree = field(default_factory=list)
    _text: str = ""
    _groups: dict[int, tuple[int, int]] = field(default_factory=dict)
    _run: Match | None = None

    def __post_init__(self) -> None:
        parsed = parser.parse(self.pattern.pattern, self.pattern.flags & ~re.UNICODE & ~re.DEBUG)
        self.tree = self._low(parsed)
        self._run = self._sequence(self.tree, self.pattern.flags)

    def search(self, text: str) -> tuple[int, int] | None:
        """The span that `pattern.search` finds. Bytes are given as latin-1 text."""
        return next((span for at in range(len(text) + 1) if (span := self.match(text, at))), None)

    def match(self, text: str, at: int = 0) -> tuple[int, int] | None:
        """The span that `pattern.match` finds."""
        self._text, self._groups = text, {}
        assert self._run is not None
        end = self._first(self._run, at)
        return None if end is None else (at, end)

    def count(self, text: str) -> int:
        """The steps of a search that goes on after each match, as `finditer` does."""
        self.steps, at = 0, 0
        while at <= len(text):
            span = self.match(text, at)
            at = max(span[1], at + 1) if span else at + 1
        return self.steps

    # -- building

    def _low(self, parsed: Any) -> Tree:
        return [(op, self._low_of(op, value)) for op, value in parsed]

    def _low_of(self, op: Any, value: Any) -> Any:
        if op in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
            low, high, body = value
            if self.lowered:
                high = c.MAXREPEAT if high > BOUNDED else min(high, LOW)
                low = min(low, LOW)
            return low, high, self._low(body)
        if op is c.BRANCH:
            return [self._low(one) for one in value[1]]
        if op is c.SUBPATTERN:
            return *value[:3], self._low(value[3])
        if op in (c.ASSERT, c.ASSERT_NOT):
            return value[0], self._low(value[1])
        return self._low(value) if op is c.ATOMIC_GROUP else value

    def _sequence(self, tree: Tree, flags: int) -> Match:
        parts = [self._node(op, value, flags) for op, value in tree]
        if len(parts) == 1:
            return parts[0]

        def run(at: int, then: Next, index: int = 0) -> bool:
            if index == len(parts):
                return then(at)
            return parts[index](at, lambda end: run(end, then, index + 1))

        return run

    def _node(self, op: Any, value: Any, flags: int) -> Match:
        if op in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
            return self._one(fitting(op, value, flags))
        if op is c.AT:
            return self._at(value, flags)
        if op is c.BRANCH:
            ways = [self._sequence(way, flags) for way in value]
            return lambda at, then: self._step() and any(way(at, then) for way in ways)
        if op is c.SUBPATTERN:
            group, more, less, body = value
            return self._group(group, self._sequence(body, (flags | more) & ~less))
        if op in (c.ASSERT, c.ASSERT_NOT):
            return self._look(*value, wanted=op is c.ASSERT, flags=flags)
        if op is c.ATOMIC_GROUP:
            return self._atomic(self._sequence(value, flags))
        if op is c.GROUPREF:
            return self._again(value)
        if op in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
            low, high, body = value
            return self._repeat(op, low, high, body, flags)
        raise NotImplementedError(op)

    def _step(self) -> bool:
        self.steps += 1
        if self.steps > ENOUGH:
            raise TooManySteps
        return True

    def _one(self, fits: Fits) -> Match:
        self.fits.append(fits)

        def run(at: int, then: Next) -> bool:
            self._step()
            return at < len(self._text) and fits(self._text[at]) and then(at + 1)

        return run

    def _group(self, group: int | None, body: Match) -> Match:
        if group is None:
            return body

        def run(at: int, then: Next) -> bool:
            before = self._groups.get(group)

            def closed(end: int) -> bool:
                inner = self._groups.get(group)
                self._groups[group] = (at, end)
                if then(end):
                    return True
                self._restore(group, inner)
                return False

            if body(at, closed):
                return True
            self._restore(group, before)
            return False

        return run

    def _restore(self, group: int, span: tuple[int, int] | None) -> None:
        if span is None:
            self._groups.pop(group, None)
        else:
            self._groups[group] = span

    def _again(self, group: int) -> Match:
        def run(at: int, then: Next) -> bool:
            self._step()
            if group not in self._groups:
                return False
            start, end = self._groups[group]
            said = self._text[start:end]
            self.steps += len(said)
            return self._text.startswith(said, at) and then(at + len(said))

        return run

    def _first(self, body: Match, at: int) -> int | None:
        ends: list[int] = []

        def reached(end: int) -> bool:
            ends.append(end)
            return True

        return ends[0] if body(at, reached) else None

    def _atomic(self, body: Match) -> Match:
        def run(at: int, then: Next) -> bool:
            end = self._first(body, at)
            return end is not None and then(end)

        return run

    def _look(self, direction: int, tree: Tree, *, wanted: bool, flags: int) -> Match:
        body = self._sequence(tree, flags)
        back = width(tree) if direction < 0 else 0

        def run(at: int, then: Next) -> bool:
            self._step()
            found = at >= back and self._first(body, at - back) is not None
            return found is wanted and then(at)

        return run

    def _at(self, where: Any, flags: int) -> Match:
        def holds(at: int) -> bool:
            text, lines = self._text, bool(flags & re.MULTILINE)
            if where in (c.AT_BEGINNING, c.AT_BEGINNING_STRING):
                fresh = lines and where is c.AT_BEGINNING and text[at - 1 : at] == "\n"
                return at == 0 or fresh
            if where is c.AT_END_STRING:
                return at == len(text)
            if where is c.AT_END:
                rest = text[at : at + 2]
                return not rest or rest == "\n" or (lines and rest[0] == "\n")
            word = [
                bool(one) and is_word(one, flags)
                for one in (text[at - 1 : at] if at else "", text[at : at + 1])
            ]
            return (word[0] != word[1]) is (where is c.AT_BOUNDARY)

        return lambda at, then: self._step() and holds(at) and then(at)

    def _repeat(self, op: Any, low: int, high: int, tree: Tree, flags: int) -> Match:
        if len(tree) == 1 and tree[0][0] in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
            return self._run_of_one(op, low, high, fitting(*tree[0], flags))
        body = self._sequence(tree, flags)
        if op is c.POSSESSIVE_REPEAT:
            return self._possessive(low, high, body)
        lazy = op is c.MIN_REPEAT

        def run(at: int, then: Next, done: int = 0) -> bool:
            self._step()

            def more() -> bool:
                return done < high and body(
                    at, lambda end: (end > at or done < low) and run(end, then, done + 1)
                )

            if done < low:
                return more()
            return (then(at) or more()) if lazy else (more() or then(at))

        return run

    def _possessive(self, low: int, high: int, body: Match) -> Match:
        def run(at: int, then: Next) -> bool:
            done = 0
            while done < high:
                self._step()
                end = self._first(body, at)
                if end is None or (end == at and done >= low):
                    break
                at, done = end, done + 1
            return done >= low and then(at)

        return run

    def _run_of_one(self, op: Any, low: int, high: int, fits: Fits) -> Match:
        self.fits.append(fits)

        def run(at: int, then: Next) -> bool:
            text, most = self._text, 0
            if op is not c.MIN_REPEAT:
                while most < high and at + most < len(text) and fits(text[at + most]):
                    most += 1
                self.steps += most
                self._step()
                if op is c.POSSESSIVE_REPEAT:
                    return most >= low and then(at + most)
                return any(self._step() and then(at + n) for n in range(most, low - 1, -1))
            while True:
                self._step()
                if most >= low and then(at + most):
                    return True
                if most >= high or at + most >= len(text) or not fits(text[at + most]):
                    return False
                most += 1

        return run


def width(tree: Tree) -> int:
    """How many characters an item of a look-behind takes: they are of one width."""
    total = 0
    for op, value in tree:
        if op in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
            total += 1
        elif op is c.BRANCH:
            total += width(value[0])
        elif op is c.SUBPATTERN:
            total += width(value[3])
        elif op in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
            total += value[0] * width(value[2])
    return total


# ------------------------------------------------------------------------------- one character


def is_word(one: str, flags: int) -> bool:
    """`\\w`."""
    known = one.isalnum() or one == "_"
    return known and ((not flags & re.ASCII and bool(flags & re.UNICODE)) or one.isascii())


def fitting(op: Any, value: Any, flags: int) -> Fits:
    """Whether one character fits an item, looked up once for each character."""
    known: dict[str, bool] = {}

    def fits(one: str) -> bool:
        found = known.get(one)
        if found is None:
            cases = {one, one.lower(), one.upper()} if flags & re.IGNORECASE else {one}
            found = known[one] = any(
                _fits(op, value, case, flags) for case in cases if len(case) == 1
            )
        return found

    return fits


def _fits(op: Any, value: Any, one: str, flags: int) -> bool:
    if op is c.LITERAL:
        return bool(ord(one) == value)
    if op is c.NOT_LITERAL:
        return bool(ord(one) != value)
    if op is c.ANY:
        return one != "\n" or bool(flags & re.DOTALL)
    if op is c.RANGE:
        return bool(value[0] <= ord(one) <= value[1])
    if op is c.CATEGORY:
        return _category(value, one, flags)
    negated = bool(value) and value[0][0] is c.NEGATE
    return negated != any(_fits(kind, of, one, flags) for kind, of in value[negated:])


def _category(value: Any, one: str, flags: int) -> bool:
    wide = bool(flags & re.UNICODE) and not flags & re.ASCII
    if value in (c.CATEGORY_DIGIT, c.CATEGORY_NOT_DIGIT):
        found = one.isdecimal() if wide else one in "0123456789"
    elif value in (c.CATEGORY_SPACE, c.CATEGORY_NOT_SPACE):
        found = one.isspace() if wide else one in " \t\n\r\f\v"
    else:
        found = is_word(one, flags)
    return found is (value in (c.CATEGORY_DIGIT, c.CATEGORY_SPACE, c.CATEGORY_WORD))


# ------------------------------------------------------------------------------ texts that hurt

CANDIDATES: Final = [*map(chr, range(32, 127)), *"\n\r\t\0é–٣"]


def alphabet(matcher: Matcher) -> list[str]:
    """One character of each kind that the pattern tells apart; the first is of the fewest kinds."""
    kinds: dict[tuple[bool, ...], str] = {}
    wide = CANDIDATES if isinstance(matcher.pattern.pattern, str) else CANDIDATES[:-3]
    for one in wide:
        kinds.setdefault(tuple(fits(one) for fits in matcher.fits), one)
    return [kinds[kind] for kind in sorted(kinds, key=sum)]


def examples(tree: Tree, letters: list[str], flags: int) -> list[str]:
    """A few short texts that a piece of a pattern fits."""
    found = [""]
    for op, value in tree:
        found = [a + b for a, b in product(found, _examples(op, value, letters, flags))][:6]
    return found


def _examples(op: Any, value: Any, letters: list[str], flags: int) -> list[str]:
    if op in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
        if op is c.LITERAL:
            return [chr(value)]
        fits = fitting(op, value, flags)
        return [one for one in letters if fits(one)][:3] or ["?"]
    if op is c.BRANCH:
        return [one for way in value for one in examples(way, letters, flags)[:2]][:8]
    if op is c.SUBPATTERN:
        return examples(value[3], letters, flags)
    if op is c.ATOMIC_GROUP:
        return examples(value, letters, flags)
    if op in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
        low, high, body = value
        return [one * max(low, min(high, 1)) for one in examples(body, letters, flags)][:4]
    return [""]


def _repeats(
    tree: Tree, ways: list[str], letters: list[str], flags: int
) -> Iterator[tuple[list[str], Tree]]:
    """Each unbounded repeat: texts that lead to it, and what it repeats."""
    for op, value in tree:
        inner: list[Tree] = []
        if op in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
            inner = [value[2]]
            if value[1] is c.MAXREPEAT:
                yield ways, value[2]
        elif op is c.BRANCH:
            inner = value
        elif op is c.SUBPATTERN:
            inner = [value[3]]
        elif op is c.ATOMIC_GROUP:
            inner = [value]
        elif op in (c.ASSERT, c.ASSERT_NOT):
            inner = [value[1]]
        for one in inner:
            yield from _repeats(one, ways, letters, flags)
        ways = [a + b for a, b in product(ways, _examples(op, value, letters, flags))][:3]


@dataclass(frozen=True, slots=True)
class Attack:
    """A text for any size."""

    head: str
    pump: str
    tail: str

    def text(self, size: int) -> str:
        return self.head + self.pump * size + self.tail


def attacks(matcher: Matcher) -> list[Attack]:
    """The texts that may hurt a pattern."""
    letters, flags = alphabet(matcher), matcher.pattern.flags
    found: dict[Attack, None] = {}
    tails = ("", letters[0])
    for ways, body in _repeats(matcher.tree, [""], letters, flags):
        words = examples(body, letters, flags)
        pumps = dict.fromkeys([*words, *map("".join, product(words, words)), *letters])
        for head, pump, tail in product(ways, filter(None, pumps), tails):
            found[Attack(head, pump, tail)] = None
    for end in range(1, len(matcher.tree) + 1):
        for pump in filter(None, examples(matcher.tree[:end], letters, flags)[:3]):
            for cut in {pump, pump[:-1], pump[1:]} - {""}:
                found[Attack("", cut, letters[0])] = None
    if any(True for _ in _repeats(matcher.tree, [""], letters, flags)):
        for one, two in product(letters, letters):
            found[Attack("", one + two, letters[0])] = None
    return list(found)


# -------------------------------------------------------------------------------------- growth

SIZE: Final = 20
TIMES: Final = 4


MOST: Final = 1.5 * TIMES
"""The growth allowed. Linear is `TIMES`, and a little more where the steps of a text's ends weigh;
quadratic is `TIMES` times `TIMES`."""


@cache
def hurt(pattern: re.Pattern[Any]) -> Attack | None:
    """A text that, growing `TIMES` times, makes the steps grow more than linearly; None if none."""
    matcher = Matcher(pattern, lowered=True)
    for attack in attacks(matcher):
        try:
            small = matcher.count(attack.text(SIZE))
            if matcher.count(attack.text(SIZE * TIMES)) > MOST * small:
                return attack
        except TooManySteps:
            return attack
    return None
