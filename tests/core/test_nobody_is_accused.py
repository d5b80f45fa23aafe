"""Faithful hosts under everything that may happen around them: nobody is ever accused.

Conversations begin with the same question, fork, are asked again, lose their beginning; the process
that looks on is restarted, or is one of several that see a part each, under one name or none. No
host loses or changes anything sealed.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from otel_sealed.contract import Exchange
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
    asked,
    call,
    candidate,
    message,
    part,
    reasoning,
    redacted,
    response,
    said,
    text,
    thinking,
    use,
)
from tests.core.chat_cases import called, in_id, reasoned, texted
from tests.core.conversations import APIS, KEY, MATRIX, Body, Delivery, exchange, step
from tests.core.conversations import history as turns_of

Make = Callable[[], Body]
_OK: Body = {"type": "text", "text": "OK"}
_HELLO = "Hello! How can I help you today?"


def hello(**more: Any) -> Body:
    """What many a conversation begins with."""
    return {"type": "text", "text": _HELLO, **more}


def greeted(*, signed: bool) -> Body:
    """The same of Gemini, its seal on the text."""
    return {"text": _HELLO} | ({"thoughtSignature": MINT.seal()} if signed else {})


def spoken(text: str) -> Body:
    """The same item of OpenAI, with an id of its own."""
    return said(content=[{"type": "output_text", "text": text}])


ANSWERS: dict[str, list[Make]] = {
    "anthropic": [
        lambda: message(thinking(), use(), stop="tool_use"),
        lambda: message(thinking(""), text(), use(), stop="tool_use"),
        lambda: message(thinking(), text(), use(), use(), stop="tool_use"),
        lambda: message(redacted(), thinking(""), use(), stop="tool_use"),
        lambda: message(thinking(), text()),
        lambda: message(thinking(""), dict(_OK)),
        lambda: message(thinking(""), hello()),
        lambda: message(thinking(), hello()),
        lambda: message(hello()),
        lambda: message(dict(_OK)),
        lambda: message(text(), use(), stop="tool_use"),
    ],
    "openai": [
        lambda: response(reasoning(), call()),
        lambda: response(reasoning("Summed up here."), call(), call()),
        lambda: response(reasoning(), said(), call()),
        lambda: response(reasoning(), said()),
        lambda: response(said()),
        lambda: response(reasoning(), spoken(_HELLO)),
        lambda: response(reasoning(), spoken("OK")),
        lambda: response(spoken("OK")),
        lambda: response(call()),
    ],
    "gemini": [
        lambda: candidate(part("call"), part("call", signed=False)),
        lambda: candidate(part("text", signed=False), part("empty")),
        lambda: candidate(part("text", signed=False)),
        lambda: candidate(greeted(signed=True)),
    ],
    "chat": [lambda: called(count=2), texted, in_id],
    "openrouter": [reasoned],
}


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON with its keys in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(inner, chance)) for key, inner in value.items()]
        return dict(chance.sample(items, len(items)))
    return [shuffled(inner, chance) for inner in value] if isinstance(value, list) else value


def trimmed(body: Body) -> None:
    """Without its first few turns, as far as the next question."""
    told = turns_of(body)
    questions = [at for at in range(2, len(told) - 3) if "Go on" in json.dumps(told[at])]
    if questions:
        del told[: questions[0]]


@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", range(16))
def test_a_faithful_host_is_accused_of_nothing(dialect: str, seed: int, *, settles: bool) -> None:
    chance = random.Random(f"faithful {seed} {dialect}")
    MINT.begin(f"faithful {seed} {dialect}")
    tracker = Tracker(KEY, settles=settles)
    bodies = [asked(dialect) for _ in range(chance.choice([1, 2, 3]))]
    mixes, trims, dates = (chance.random() < 0.25 for _ in range(3))
    for number in range(16):
        if chance.random() < 0.1:
            tracker = Tracker(KEY, settles=settles)
        body = chance.choice(bodies)
        sent = copy.deepcopy(body)
        if trims:
            trimmed(sent)
        if dates:
            sent["tools"] = [{"name": f"tool_{number}"}]
        sent = shuffled(sent, chance) if mixes else sent
        answer = body
        for _ in range(chance.choice([1, 1, 1, 1, 1, 2])):
            answer = chance.choice(ANSWERS[dialect])()
            raw = json.dumps(sent).encode()
            told = Exchange(APIS[dialect], request=raw, response=answer, status=200)
            report = tracker.observe(told)
            assert [] == [(f.artifact, f.fate) for f in report.findings if f.verdict.violates]
        if chance.random() < 0.1:
            bodies.append(copy.deepcopy(body))
        turns_of(body).extend(step(dialect, answer, f"Go on {chance.random()}."))


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", range(16))
def test_processes_that_see_a_part_each_accuse_nobody(
    dialect: str, seed: int, *, share: bool
) -> None:
    chance = random.Random(f"parts {seed} {dialect} {share}")
    MINT.begin(f"parts {seed} {dialect} {share}")
    ledger = MemoryLedger()
    processes = [Tracker(KEY, ledger=ledger) if share else Tracker(KEY) for _ in range(3)]
    named = chance.choice([0, 0.5, 1])
    talks = [(asked(dialect), "one" if chance.random() < named else None) for _ in range(3)]
    trims, streams = chance.random() < 0.4, chance.random() < 0.4
    for _ in range(18):
        body, name = chance.choice(talks)
        sent = copy.deepcopy(body)
        if trims:
            trimmed(sent)
        answer = body
        for _ in range(chance.choice([1, 1, 1, 1, 2])):
            answer = chance.choice(ANSWERS[dialect])()
            if chance.random() < 0.1:
                continue  # somebody else answered
            cut = chance.randrange(4) if chance.random() < 0.05 else None
            told = exchange(dialect, sent, answer, Delivery(streams, cut), conversation=name)
            report = chance.choice(processes).observe(told)
            assert [] == [(f.artifact, f.fate) for f in report.findings if f.verdict.violates]
        if chance.random() < 0.1:
            talks.append((copy.deepcopy(body), name))
        turns_of(body).extend(step(dialect, answer, f"Go on {chance.random()}."))


def headed(size: int) -> Body:
    """Thinking whose seal begins as all of its vendor and length do."""
    seal = base64.b64encode(bytes.fromhex("12aa010a4808011001180222400001020304"))
    rest = MINT.seal(size, size + 1)
    return thinking("", signature=seal.decode() + rest[len(seal) :])


@pytest.mark.parametrize("others", [300, 299, 180])
def test_seals_that_only_begin_alike_are_those_of_two_answers(others: int) -> None:
    """Equal texts in equal places, of which one was seen and the other is sent."""
    tracker = Tracker(KEY)
    seen, sent = message(headed(300), hello()), message(headed(others), hello())
    tracker.observe(exchange("anthropic", asked("anthropic"), seen))
    body = asked("anthropic")
    turns_of(body).extend(step("anthropic", sent, "Go on."))
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    assert ["unknown"] == [f.fate.value for f in report.findings]
