"""Conversations whose host damages what it sends, at random: some requests, in some ways.

The host keeps what came as it came: a request that it does not damage is faithful, whatever it sent
before. Its conversations fork, and the process that looks on is restarted.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from otel_sealed.contract import Exchange
from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, asked
from tests.core.conversations import APIS, KEY, step
from tests.core.conversations import history as turns_of
from tests.core.test_nobody_is_accused import ANSWERS

SEALS = ("signature", "data", "encrypted_content", "thoughtSignature", "thought_signature")
LISTS = ("content", "parts", "output", "tool_calls", "reasoning_details")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
REQUESTS = 12
STEPS = 50_000
"""More than ten times what any of these requests needs: those that need more do not end."""

Damage = Callable[[list[Any], random.Random], None]


class Seen(NamedTuple):
    """One request, what was done to it, and what was said of it."""

    damage: tuple[str, ...]
    report: Report


def inside(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of a JSON value."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, (dict, list)):
            yield from inside(child)


def seals(told: list[Any]) -> list[tuple[dict[str, Any], str]]:
    """Where the seals are."""
    return [(one, k) for one in inside(told) for k in SEALS if isinstance(one.get(k), str)]


def _strip(told: list[Any], chance: random.Random) -> None:
    share = chance.choice([0.3, 0.6, 1])
    for one, key in seals(told):
        if chance.random() < share:
            del one[key]


def _swap(told: list[Any], chance: random.Random) -> None:
    if len(found := seals(told)) > 1:
        (one, k), (other, j) = chance.sample(found, 2)
        one[k], other[j] = other[j], one[k]


def _move(told: list[Any], chance: random.Random) -> None:
    if len(found := seals(told)) > 1:
        (one, k), (other, j) = chance.sample(found, 2)
        if one is not other:
            other[j] = one.pop(k)


def _cut(told: list[Any], chance: random.Random) -> None:
    if found := seals(told):
        one, key = chance.choice(found)
        one[key] = one[key][: len(one[key]) // 2]


def _no_thoughts(told: list[Any], _chance: random.Random) -> None:
    for one in list(inside(told)):
        for key in LISTS:
            if isinstance(one.get(key), list):
                one[key] = [part for part in one[key] if not _thinks(part)]
    told[:] = [part for part in told if not _thinks(part)]


def _thinks(part: Any) -> bool:
    return isinstance(part, dict) and (part.get("type") in THOUGHTS or bool(part.get("thought")))


def _no_ids(told: list[Any], _chance: random.Random) -> None:
    for one in inside(told):
        one.pop("id", None)


def _edit(told: list[Any], chance: random.Random) -> None:
    for one in inside(told):
        for key in ("text", "thinking"):
            if isinstance(one.get(key), str) and chance.random() < 0.4:
                one[key] += " edited"


def _again(told: list[Any], chance: random.Random) -> None:
    told.insert(chance.randrange(len(told) + 1), copy.deepcopy(chance.choice(told)))


def _reorder(told: list[Any], chance: random.Random) -> None:
    if len(told) > 1:
        at = chance.randrange(len(told) - 1)
        told[at], told[at + 1] = told[at + 1], told[at]


def _less(told: list[Any], chance: random.Random) -> None:
    if len(told) > 1:
        del told[chance.randrange(len(told))]


def _window(told: list[Any], chance: random.Random) -> None:
    del told[: chance.randrange(len(told))]


def _beginning(told: list[Any], chance: random.Random) -> None:
    del told[chance.randrange(1, len(told) + 1) :]


DAMAGES: dict[str, Damage] = {
    "strip": _strip,
    "swap": _swap,
    "move": _move,
    "cut": _cut,
    "no thoughts": _no_thoughts,
    "no ids": _no_ids,
    "edit": _edit,
    "again": _again,
    "reorder": _reorder,
    "less": _less,
    "window": _window,
    "beginning": _beginning,
}


def watched(dialect: str, seed: int) -> Iterator[Seen]:
    """The requests of one host, observed."""
    chance = random.Random(f"damage {seed} {dialect}")
    MINT.begin(f"damage {seed} {dialect}")
    settles = chance.random() < 0.5
    tracker = Tracker(KEY, settles=settles, steps=STEPS)
    bodies = [asked(dialect) for _ in range(chance.choice([1, 1, 2, 3]))]
    name = chance.choice([None, None, None, "name"])
    for _ in range(REQUESTS):
        if chance.random() < 0.06:
            tracker = Tracker(KEY, settles=settles, steps=STEPS)
        body = chance.choice(bodies)
        sent, kinds = copy.deepcopy(body), _chosen(chance)
        for kind in kinds:
            DAMAGES[kind](turns_of(sent), chance)
        answer = chance.choice(ANSWERS[dialect])()
        raw = json.dumps(sent).encode()
        told = Exchange(APIS[dialect], request=raw, response=answer, status=200, conversation=name)
        yield Seen(kinds, tracker.observe(told))
        if chance.random() < 0.1:
            bodies.append(copy.deepcopy(body))
        turns_of(body).extend(step(dialect, answer, _said(chance)))


def _chosen(chance: random.Random) -> tuple[str, ...]:
    count = chance.choices([0, 1, 2], [0.45, 0.4, 0.15])[0]
    return tuple(chance.choices([*DAMAGES], k=count))


def _said(chance: random.Random) -> str:
    return f"Go on {chance.random()}." if chance.random() < 0.7 else "Go on."
