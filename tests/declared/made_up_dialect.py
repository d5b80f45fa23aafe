"""A made-up dialect in one file: `test_made_up.py` makes a folder of it in a copy of the tree.

It speaks a wire that no dialect reads, with a seal in a block of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from otel_sealed.contract import (
    Api,
    Carrier,
    Dialect,
    Exchange,
    Field,
    Path,
    Proof,
    RawAnswer,
    RawMessage,
)
from otel_sealed.model import Facts, Kind, Speaker

CARRIERS = {
    "hidden": Carrier(
        "hidden", Kind.REASONING, fields=(Field("hidden_state", "realtime.hidden.state"),)
    ),
    "words": Carrier("words", Kind.TEXT, payload=("words",)),
}


def _messages(body: Mapping[str, Any]) -> Iterator[RawMessage]:
    for index, message in enumerate(body["turns"]):
        speaker = Speaker.MODEL if message["role"] == "assistant" else Speaker.USER
        parts = tuple((f"content.{j}", part) for j, part in enumerate(message["content"]))
        yield RawMessage(index, speaker, parts, message)


def _answer(body: Any) -> RawAnswer:
    if not isinstance(body, dict):
        return RawAnswer(())
    content = body["said"]["content"]
    parts = tuple((f"content.{j}", part) for j, part in enumerate(content))
    return RawAnswer(parts=parts, path="said", model="nova")


def _fold(events: Iterable[Any]) -> dict[str, Any]:
    return {"said": {"content": list(events)}, "complete": True}


def _facts(_body: Mapping[str, Any], exchange: Exchange) -> Facts:
    return Facts(dialect="realtime", vendor="", model=exchange.model or "")


DIALECT = Dialect(
    name="realtime",
    api=Api.REALTIME,
    vendor="amazon",
    root="turns",
    carriers=CARRIERS,
    paths=(Path(("/talk", "/talk-stream"), under="/voice/", proof=Proof.PATH),),
    asks=lambda body: "turns" in body,
    answers=lambda body: isinstance(body.get("said"), dict),
    type_of=lambda block: str(block.get("type")),
    messages=_messages,
    answer=_answer,
    fold=_fold,
    facts=_facts,
    reference=lambda _: ("", ""),
    head=lambda _: {},
    traits=lambda _: frozenset(),
    rules=(),
)
