"""OpenAI: what the server keeps, as far as anybody said so (O2, O8, X12)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from otel_sealed import Tracker
from tests.core.builders import call, reasoning, response, said
from tests.core.conversations import KEY, Body, base, exchange

SEAL = "openai.reasoning.encrypted_content"
Row = tuple[str, str, str]
Sent = Callable[[Body], list[Body]]


def stored(store: str | None) -> Body:
    """What a body says of `store`: on, off or nothing."""
    return {} if store is None else {"store": store == "on"}


def body(store: str | None, items: list[Body], **more: str) -> Body:
    """A request that names `store`, or does not."""
    rest = {k: v for k, v in base("openai").items() if k != "store"}
    question: Body = {"role": "user", "content": "What is it?"}
    return rest | stored(store) | more | {"input": [*items, question]}


def judged(first: Body | None, answer: Body, second: Body) -> list[Row]:
    """Fate, verdict and rule of the seal in a second request."""
    tracker = Tracker(KEY)
    tracker.observe(exchange("openai", first, answer))
    report = tracker.observe(exchange("openai", second, None))
    return [(f.fate.value, f.verdict.value, f.rule) for f in report.findings if f.artifact == SEAL]


def by_reference(answer: Body) -> list[Body]:
    return [{"type": "item_reference", "id": item["id"]} for item in answer["output"]]


def without_blob(answer: Body) -> list[Body]:
    thought, *rest = answer["output"]
    return [{k: v for k, v in thought.items() if k != "encrypted_content"}, *rest]


def test_a_response_that_names_its_conversation_is_held_there() -> None:
    answer = response(reasoning(), said()) | {"conversation": {"id": "conv_1"}}
    second = body(None, [], conversation="conv_1")
    assert judged(None, answer, second) == [("server_held", "allowed", "O2")]


def test_whether_an_unseen_request_was_of_the_conversation_is_not_known() -> None:
    answer = response(reasoning(), call())
    result = {"type": "function_call_output", "output": "found"}
    items = [result | {"call_id": answer["output"][1]["call_id"]}]
    second = body(None, items, conversation="conv_1")
    assert judged(None, answer, second) == [("dropped", "unverifiable", "X12")]


@pytest.mark.parametrize("sent", [by_reference, without_blob])
@pytest.mark.parametrize(
    ("first", "said_so", "verdict"),
    [
        ("unseen", None, "unverifiable"),
        ("unseen", "on", "allowed"),
        ("unseen", "off", "breaks"),
        (None, None, "allowed"),
        ("on", None, "allowed"),
        ("off", None, "breaks"),
        (None, "off", "breaks"),
    ],
)
@pytest.mark.parametrize("now", [None, "on", "off"])
def test_what_is_stored_is_what_was_said_to_be(
    sent: Sent, first: str | None, said_so: str | None, verdict: str, now: str | None
) -> None:
    """By the response, by its request, by the default of a request that was seen."""
    if (first, said_so) == ("unseen", None):
        now = None  # one that names it is taken for one like the first: below
    answer = response(reasoning(), said()) | stored(said_so)
    began = None if first == "unseen" else body(first, [])
    found = judged(began, answer, body(now, sent(answer)))
    assert [verdict] == [row[1] for row in found]


@pytest.mark.parametrize(("now", "verdict"), [("on", "allowed"), ("off", "breaks")])
def test_an_unseen_request_is_taken_to_be_like_the_one_that_follows(now: str, verdict: str) -> None:
    answer = response(reasoning(), said())
    found = judged(None, answer, body(now, without_blob(answer)))
    assert [verdict] == [row[1] for row in found]


def test_a_reference_that_the_server_may_not_have_is_not_judged() -> None:
    answer = response(reasoning(), said())
    found = judged(None, answer, body("off", by_reference(answer)))
    assert found == [("server_held", "unverifiable", "O8")]
