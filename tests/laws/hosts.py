"""What hosts do to a history, as changes of its elements: one verb each, on any wire.

A change is data, so that a failure shows it; it says by fractions where it applies, so that it fits
a history of any length. The catalogue of mutations (`otel_sealed.testing.mutations`) has the habits
of hosts that are known, and is one of the verbs; the others are what all of them are made of, at
any single place.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from otel_sealed.testing.mutations import FREEDOMS, MUTATIONS, Freedom, Side
from tests.core.conversations import Body, history
from tests.laws import wires
from tests.laws.generate import MOCK, Element, Talk

Elements = list[Element]
ID = re.compile(r"[a-z]+_[0-9a-f]{20}\b")
"""An id as `Mint` makes them."""
PLACES = 12
"""Places are drawn from so many; what is drawn is taken modulo what there is."""


@dataclass(frozen=True, slots=True)
class Change:
    """A verb, and where: `at` and `to` count places from the first, or from the last where < 0."""

    verb: str
    at: int = 0
    to: int = 0

    def __call__(self, talk: Talk, elements: Elements) -> Elements:
        """The history as this host sends it; as it was where there is no such place."""
        return VERBS[self.verb](talk, copy.deepcopy(elements), self.at, self.to)


def changed(talk: Talk, elements: Elements, changes: tuple[Change, ...]) -> Elements:
    """The history after these changes."""
    for change in changes:
        elements = change(talk, elements)
    return elements


def sealed(elements: Elements) -> list[tuple[Body, str]]:
    """(holder, key) of every sealed value."""
    return [held for e in elements if e.turn >= 0 for held in wires.sealed(e.body)]


# ----------------------------------------------------------------------------------- the verbs


def _faithful(_talk: Talk, elements: Elements, _at: int, _to: int) -> Elements:
    return elements


def _lose(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """A sealed value is gone, what carried it is not."""
    held = sealed(elements)
    if held:
        holder, key = held[at % len(held)]
        del holder[key]
    return elements


def _lose_all(_talk: Talk, elements: Elements, _at: int, _to: int) -> Elements:
    """All sealed values are gone."""
    for holder, key in sealed(elements):
        del holder[key]
    return elements


def _modify(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """A sealed value is changed in its middle."""
    held = sealed(elements)
    if held:
        holder, key = held[at % len(held)]
        value, half = holder[key], len(holder[key]) // 2
        holder[key] = value[:half] + ("B" if value[half] == "A" else "A") + value[half + 1 :]
    return elements


def _cut(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """A sealed value is cut at its end."""
    held = sealed(elements)
    if held:
        holder, key = held[at % len(held)]
        holder[key] = holder[key][: len(holder[key]) * 2 // 3]
    return elements


def _swap(_talk: Talk, elements: Elements, at: int, to: int) -> Elements:
    """Two sealed values stand in each other's place."""
    held = sealed(elements)
    if held:
        (one, key), (two, other) = held[at % len(held)], held[to % len(held)]
        one[key], two[other] = two[other], one[key]
    return elements


def _move(_talk: Talk, elements: Elements, at: int, to: int) -> Elements:
    """A sealed value goes to the place of another, which is lost."""
    held = sealed(elements)
    if len(held) > 1 and at % len(held) != to % len(held):
        (one, key), (two, other) = held[at % len(held)], held[to % len(held)]
        two[other] = one.pop(key)
    return elements


def _drop_block(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """A block with a sealed value is gone as a whole."""
    held = sealed(elements)
    if not held:
        return elements
    holder, key = held[at % len(held)]
    for element in elements:
        if element.body is holder:
            return [e for e in elements if e is not element]
        for blocks in wires.carriers(element.body):
            if any(block is holder for block in blocks) and len(blocks) > 1:
                blocks[:] = [block for block in blocks if block is not holder]
                return elements
    holder.pop(key, None)
    return elements


def _substitute(talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """A readable thought goes back as ordinary text."""
    thoughts = [
        (blocks, block)
        for e in elements
        if e.turn >= 0
        for blocks in wires.carriers(e.body)
        for block in blocks
        if block.get("type") == "thinking"
    ]
    if thoughts and talk.dialect == "anthropic":
        blocks, block = thoughts[at % len(thoughts)]
        text = {"type": "text", "text": f"<thinking>{block['thinking']}</thinking>"}
        blocks[:] = [text if other is block else other for other in blocks]
    return elements


def _reorder(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """The blocks of an answer stand in the opposite order."""
    lists = [blocks for e in elements if e.turn >= 0 for blocks in wires.carriers(e.body)]
    if lists:
        lists[at % len(lists)].reverse()
    return elements


def _again(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """An element of an answer is sent twice."""
    mine = [number for number, e in enumerate(elements) if e.turn >= 0]
    if mine:
        number = mine[at % len(mine)]
        elements.insert(number, copy.deepcopy(elements[number]))
    return elements


def _drop_turn(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """An answer is gone, and what the results of its calls were."""
    turns = sorted({e.turn for e in elements if e.turn >= 0})
    gone = turns[at % len(turns)] if turns else None
    return [e for e in elements if gone is None or gone not in (e.turn, e.said)]


def _trim(_talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """The window slides: the first answers are gone, with what came before and between."""
    turns = sorted({e.turn for e in elements if e.turn >= 0})
    if len(turns) < 2:
        return elements
    first = turns[1 + at % (len(turns) - 1)]
    heads = [e for e in elements if e.body.get("role") == "system"]
    return heads + [e for e in elements if e.said >= first - 1 and e.turn != first - 1]


def _compact(_talk: Talk, elements: Elements, _at: int, _to: int) -> Elements:
    """What came before the newest compaction is gone."""
    last = max((number for number, e in enumerate(elements) if _compacts(e)), default=0)
    return [e for number, e in enumerate(elements) if number >= last or "system" in e.body.values()]


def _compacts(element: Element) -> bool:
    inner = [block for blocks in wires.carriers(element.body) for block in blocks]
    return any(block.get("type") == "compaction" for block in (element.body, *inner))


def _fork(talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """The user goes back and asks something else."""
    turns = sorted({e.turn for e in elements if e.turn >= 0})
    if not turns:
        return elements
    kept = cut_before(elements, turns[at % len(turns)])
    last = max((number for number, e in enumerate(kept) if e.turn >= 0), default=-1)
    asked = wires.ask(talk.dialect, f"Another question of {talk.name}.")
    return kept[: last + 2] + [Element(body) for body in asked]


def _edit_question(talk: Talk, elements: Elements, at: int, _to: int) -> Elements:
    """What the user said is worded otherwise."""
    own = [number for number, e in enumerate(elements) if _is_question(talk, e)]
    if own:
        number = own[at % len(own)]
        (body,) = wires.ask(talk.dialect, f"Edited question of {talk.name}.")
        elements[number] = Element(body, said=elements[number].said)
    return elements


def _is_question(talk: Talk, element: Element) -> bool:
    return element.turn < 0 and element.body in (
        body for number in range(-1, len(talk.answers)) for body in talk.question(number)
    )


def _known(talk: Talk, elements: Elements, at: int, to: int) -> Elements:
    """A host of the catalogue, or a freedom that the contract permits.

    They were written for bodies that hold each carrier: where one is missed, all is as it was.
    """
    ways: list[Callable[[Body], Body]] = [
        m.change for m in MUTATIONS if talk.dialect in m.dialects and m.side is Side.REQUEST
    ]
    ways += [partial(_freely, f) for f in FREEDOMS if f.dialect == talk.dialect]
    if not ways:
        return elements
    try:
        sent = history(ways[(at * PLACES + to) % len(ways)](talk.body(elements)))
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError):
        return elements
    whose = {json.dumps(e.body): e for e in elements}
    same = len(sent) == len(elements)
    return [
        whose.get(json.dumps(body)) or (replace(elements[n], body=body) if same else Element(body))
        for n, body in enumerate(sent)
    ]


def _freely(freedom: Freedom, body: Body) -> Body:
    return freedom.change(body, random.Random(freedom.name))


VERBS: dict[str, Callable[[Talk, Elements, int, int], Elements]] = {
    "faithful": _faithful,
    "lose": _lose,
    "lose all": _lose_all,
    "modify": _modify,
    "cut": _cut,
    "swap": _swap,
    "move": _move,
    "drop block": _drop_block,
    "substitute": _substitute,
    "reorder": _reorder,
    "again": _again,
    "drop turn": _drop_turn,
    "trim": _trim,
    "compact": _compact,
    "fork": _fork,
    "edit question": _edit_question,
    "known": _known,
}
ACROSS = frozenset({"swap", "move", "fork", "known", "trim"})
LOCAL = tuple(verb for verb in VERBS if verb not in ACROSS)
"""Verbs that take nothing from one turn to another, and end or begin no conversation elsewhere."""


def cut_before(elements: Elements, turn: int) -> Elements:
    """The history in front of answer `turn`."""
    end = next((at for at, e in enumerate(elements) if max(e.turn, e.said) >= turn), len(elements))
    return elements[:end]


def newest_certain(talk: Talk, elements: Elements) -> int:
    """The newest answer of which the history holds a seal or an id, as it came; -1 if none."""
    found = [-1]
    for number, response in enumerate(talk.responses):
        mine = json.dumps([e.body for e in elements if e.turn == number])
        keys = set(ID.findall(json.dumps(response)))
        keys |= {b[key] for e in wires.reply(talk.dialect, response) for b, key in wires.sealed(e)}
        found += [number] if any(key in mine for key in keys - {MOCK}) else []
    return max(found)


# --------------------------------------------------------------------------------- strategies


def changes(*verbs: str, most: int = 2) -> st.SearchStrategy[tuple[Change, ...]]:
    """A few changes of these verbs, or of any."""
    places = st.integers(0, PLACES - 1)
    one = st.builds(Change, st.sampled_from(verbs or tuple(VERBS)), places, places)
    return st.lists(one, max_size=most).map(tuple)


def other_keys(value: Any, seed: int) -> Any:
    """The same JSON with the keys of each object in another order."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (hash_of(key, seed), key))
        return {key: other_keys(value[key], seed) for key in keys}
    return [other_keys(inner, seed) for inner in value] if isinstance(value, list) else value


def hash_of(key: str, seed: int) -> int:
    """A number that repeats."""
    found = seed + 1
    for letter in key.encode():
        found = (found * 1_000_003 ^ letter) & 0xFFFFFFFF
    return found
