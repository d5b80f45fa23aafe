"""A response and a request of every wire, whole and streamed, made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from otel_sealed.contract import Api
from tests.core import converse
from tests.core import test_interactions as interactions
from tests.core.conversations import APIS, MATRIX, Body, base, events, request, responses


@dataclass(frozen=True, slots=True)
class Sample:
    """One exchange: `answer` whole, and `stream` the same as events."""

    api: Api
    asked: Body
    answer: Body
    stream: list[Any]


def _sample(name: str) -> Sample:
    answer = responses(name)[0]
    return Sample(APIS[name], base(name) | request(name, []), answer, events(name, answer))


def _interaction() -> Sample:
    came = interactions.steps()
    answer = {"id": "i_1", "model": interactions.MODEL, "status": "completed", "steps": came}
    asked = {"model": interactions.MODEL, "input": [interactions.question()], "store": False}
    return Sample(Api.INTERACTIONS, asked, answer, interactions.events(came))


def _converse() -> Sample:
    of = _sample("anthropic")
    answer = converse.response(of.answer)
    return Sample(Api.CONVERSE, converse.request(of.asked), answer, converse.events(answer))


SAMPLES = {
    **{name: _sample(name) for name in MATRIX},
    "interactions": _interaction(),
    "bedrock": _converse(),
}
"""By the name of a dialect; that of a relay where the same wire carries other fields."""
