"""State modes: where the server holds the state, absence is right, and both at once is not."""

from __future__ import annotations

import pytest

from otel_sealed.model import Carry
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    asked,
    call,
    chat,
    message,
    reasoning,
    response,
    sets,
    text,
    thinking,
    use,
)
from tests.core.conversations import KEY, Body, exchange, history, row_of, step

BLOB = "openai.reasoning.encrypted_content"
SIGNATURE = "anthropic.thinking.signature"


def by_reference(answer: Body, *, resent: bool, **reference: object) -> Body:
    body = asked("openai") | {"store": True} | reference
    items = step("openai", answer, "Go on.")
    body["input"] = items if resent else [i for i in items if i.get("type", "").endswith("output")]
    return body


def test_stateless_replay_carries_the_blocks() -> None:
    report = chat("openai", response(reasoning(), call()))[0]
    assert (Carry.REPLAYED, "intact") == (report.carry, row_of(report, BLOB)[0])


def test_previous_response_id_holds_the_state() -> None:
    tracker = Tracker(KEY)
    answer = response(reasoning(), call())
    tracker.observe(exchange("openai", asked("openai"), answer))
    body = by_reference(answer, resent=False, previous_response_id=answer["id"])
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert (Carry.BY_REFERENCE, ("server_held", "allowed", "O2")) == (
        report.carry,
        row_of(report, BLOB),
    )


def test_previous_response_id_and_the_items_again_are_once_too_often() -> None:
    tracker = Tracker(KEY)
    answer = response(reasoning(), call())
    tracker.observe(exchange("openai", asked("openai"), answer))
    body = by_reference(answer, resent=True, previous_response_id=answer["id"])
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert ("duplicated", "breaks", "O2") == row_of(report, BLOB)


def test_the_chain_behind_a_previous_response_is_held_too() -> None:
    tracker = Tracker(KEY)
    one, two = response(reasoning(), call()), response(reasoning(), call())
    tracker.observe(exchange("openai", asked("openai"), one))
    body = by_reference(one, resent=False, previous_response_id=one["id"])
    tracker.observe(exchange("openai", body, two))
    body = by_reference(two, resent=False, previous_response_id=two["id"])
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert ["server_held"] * 2 == [f.fate for f in report.findings if f.artifact == BLOB]


def test_a_conversation_object_holds_the_state() -> None:
    tracker = Tracker(KEY)
    answer = response(reasoning(), call())
    opened = asked("openai") | {"conversation": {"id": "conv_1"}}
    tracker.observe(exchange("openai", opened, answer))
    body = by_reference(answer, resent=False, conversation="conv_1")
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert ("server_held", "allowed", "O2") == row_of(report, BLOB)


def test_a_continued_thread_holds_the_state_and_its_replay_carries_it_again() -> None:
    tracker = Tracker(KEY)
    body = asked("anthropic") | {"thread": {"type": "create"}}
    first = message(thinking(), use(), stop="tool_use")
    tracker.observe(exchange("anthropic", body, first))
    whole = body | {"messages": [*history(body), *step("anthropic", first, "q")]}
    onward = {"type": "continue", "previous_message_id": first["id"]}
    short = {k: v for k, v in whole.items() if k != "tools"}
    short |= {"thread": onward, "messages": whole["messages"][-1:]}
    lost = {"type": "error", "error": {"type": "not_found_error", "message": "thread_not_found"}}
    held = tracker.observe(exchange("anthropic", short, lost, status=404))
    again = tracker.observe(exchange("anthropic", whole, message(text())))
    assert ("server_held", "allowed", "A31") == row_of(held, SIGNATURE)
    assert "state_lost" == held.rejection
    assert ("intact", "ok", "") == row_of(again, SIGNATURE)


def test_replay_by_id_with_store_off_is_named() -> None:
    report = chat(
        "openai", response(reasoning(), call()), change=sets("encrypted_content", ..., "reasoning")
    )[0]
    assert ("dropped", "breaks", "O8") == row_of(report, BLOB)


def test_replay_by_id_with_store_on_is_allowed() -> None:
    strip = sets("encrypted_content", ..., "reasoning")
    report = chat(
        "openai",
        response(reasoning(), call()) | {"store": True},
        change=lambda body: strip(body) | {"store": True},
    )[0]
    assert ("dropped", "allowed", "O2") == row_of(report, BLOB)


def test_nothing_sealed_ever_issued_is_named_at_the_request_that_replays_it() -> None:
    bare = reasoning()
    bare.pop("encrypted_content")
    report = chat("openai", response(bare, call()))[0]
    assert ("not_requested", "breaks", "O8") == row_of(report, BLOB)


def test_background_with_store_off_is_named() -> None:
    body = asked("openai") | {"background": True, "store": False}
    report = Tracker(KEY).observe(exchange("openai", body, None, status=None))
    assert "background_without_store" in report.facts.flags


@pytest.mark.parametrize(("budget", "named"), [(1023, True), (1024, False)])
def test_a_thinking_budget_under_the_minimum_is_named(budget: int, *, named: bool) -> None:
    body = asked("anthropic") | {"thinking": {"type": "enabled", "budget_tokens": budget}}
    report = Tracker(KEY).observe(exchange("anthropic", body, message(text())))
    assert named is ("X6" in {f.rule for f in report.findings})


def test_a_starved_budget_that_thinks_all_the_same_is_no_fault() -> None:
    body = asked("anthropic") | {"thinking": {"type": "enabled", "budget_tokens": 10}}
    report = Tracker(KEY).observe(exchange("anthropic", body, message(thinking(), text())))
    assert () == report.findings


@pytest.mark.parametrize("operation", ["count_tokens", "countTokens", "input_tokens"])
def test_counting_tokens_is_not_a_turn(operation: str) -> None:
    tracker = Tracker(KEY)
    answer = message(thinking(), use(), stop="tool_use")
    tracker.observe(exchange("anthropic", asked("anthropic"), answer))
    body = asked("anthropic")
    history(body).extend(step("anthropic", answer, "q"))
    counted = tracker.observe(exchange("anthropic", body, {"input_tokens": 9}, operation=operation))
    assert ((), None, operation) == (counted.findings, counted.verdict, counted.facts.operation)
    assert 1 == len(tracker.ledger)
