"""A seal whose block a stream began and did not end: whether it was whole, nobody can tell."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Report, State
from otel_sealed.providers import dialects
from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, asked, message, reasoning, text, thinking
from tests.core.conversations import (
    KEY,
    Body,
    ask,
    exchange,
    history,
    row_of,
)

SIGNATURE = "anthropic.thinking.signature"
BLOB = "openai.reasoning.encrypted_content"
DUMMY = dialects()[Api.GENERATE_CONTENT].placeholders[0]


def signed(block: Body, *ends: Body) -> list[Body]:
    """The events of a message that begins with `block`, whose signature comes in two pieces."""
    seal = block["signature"]
    start = {"type": "message_start", "message": message() | {"content": []}}
    return [
        start,
        {"type": "content_block_start", "index": 0, "content_block": block | {"signature": ""}},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "signature_delta", "signature": piece},
            }
            for piece in (seal[:40], seal[40:])
        ),
        *ends,
    ]


def replayed(events: list[Body], *sent: Body, complete: bool = False) -> tuple[Report, Report]:
    """The report of the stream, and that of the request which sends these blocks back."""
    tracker = Tracker(KEY)
    body = asked("anthropic")
    stream = exchange("anthropic", copy.deepcopy(body), None, events=events, complete=complete)
    came = tracker.observe(stream)
    body["messages"] += [
        {"role": "assistant", "content": list(sent)},
        *ask("anthropic", "Go on."),
    ]
    return came, tracker.observe(exchange("anthropic", body, None))


def test_its_receipt_is_there_and_replaying_it_is_unverifiable() -> None:
    block = thinking()
    came, report = replayed(signed(block), block)
    assert [(r.artifact, r.size) for r in came.received] == [(SIGNATURE, len(block["signature"]))]
    assert came.received[0].state is State.CUT
    assert row_of(report, SIGNATURE) == ("unsealed", "unverifiable", "X11")
    found = next(f for f in report.findings if f.artifact == SIGNATURE)
    assert (found.digest_in, found.size_in) == (found.digest_out, found.size_out)


def test_what_the_sdk_made_of_it_is_unverifiable_too() -> None:
    """The SDK keeps the last piece of two only."""
    block = thinking()
    _, report = replayed(signed(block), block | {"signature": block["signature"][40:]})
    assert row_of(report, SIGNATURE) == ("unsealed", "unverifiable", "X11")


@pytest.mark.parametrize("signature", ["", None, ...], ids=["empty", "null", "absent"])
def test_its_block_without_it_is_refused(signature: Any) -> None:
    block = thinking()
    sent = {k: v for k, v in (block | {"signature": signature}).items() if v is not ...}
    _, report = replayed(signed(block), sent)
    assert row_of(report, SIGNATURE) == ("unsealed", "breaks", "A3")


def test_a_dummy_in_its_place_is_fabricated() -> None:
    block = thinking()
    _, report = replayed(signed(block), block | {"signature": DUMMY})
    assert row_of(report, SIGNATURE) == ("fabricated", "breaks", "A18")


def test_leaving_its_block_out_has_no_row() -> None:
    block = thinking()
    _, report = replayed(signed(block), text())
    assert [f for f in report.findings if f.artifact == SIGNATURE] == []


@pytest.mark.parametrize("stop", ["block", "message"])
def test_a_block_that_closed_or_a_message_that_did_is_whole(stop: str) -> None:
    """A gateway that forgets the end of a block and sends that of the message cut nothing."""
    block = thinking()
    end = {"type": f"{'content_block' if stop == 'block' else 'message'}_stop", "index": 0}
    _, report = replayed(signed(block, end), block, complete=stop == "message")
    assert row_of(report, SIGNATURE) == ("intact", "ok", "")


def test_a_redacted_block_is_whole_in_its_first_event() -> None:
    block = {"type": "redacted_thinking", "data": MINT.seal()}
    events = signed(thinking())[:1]
    events += [{"type": "content_block_start", "index": 0, "content_block": block}]
    _, report = replayed(events, block)
    assert row_of(report, "anthropic.redacted_thinking.data") == ("intact", "ok", "")


def openai(events: list[Body], item: Body) -> Report:
    tracker = Tracker(KEY)
    body = asked("openai") | {"store": False}
    stream = exchange("openai", copy.deepcopy(body), None, events=events, complete=False)
    tracker.observe(stream)
    history(body).extend([item, *ask("openai", "Go on.")])
    return tracker.observe(exchange("openai", body, None))


@pytest.mark.parametrize("place", [{"output_index": 0}, {}], ids=["placed", "not placed"])
def test_a_blob_of_which_only_the_first_event_came_is_unverifiable(place: Body) -> None:
    item = reasoning()
    added = {"type": "response.output_item.added", "item": item} | place
    assert row_of(openai([added], item), BLOB) == ("unsealed", "unverifiable", "X11")


def test_a_blob_whose_item_was_done_is_intact() -> None:
    item = reasoning()
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    assert row_of(openai([added, done], item), BLOB) == ("intact", "ok", "")


@pytest.mark.parametrize(("stopped", "fate"), [(False, "unsealed"), (True, "intact")])
def test_a_step_of_interactions_is_whole_once_it_stopped(*, stopped: bool, fate: str) -> None:
    seal = MINT.seal()
    thought = {"type": "thought", "signature": seal, "summary": []}
    events: list[Body] = [
        {"event_type": "step.start", "index": 0, "step": {"type": "thought", "summary": []}},
        {
            "event_type": "step.delta",
            "index": 0,
            "delta": {"type": "thought_signature", "signature": seal},
        },
    ]
    events += [{"event_type": "step.stop", "index": 0}] if stopped else []
    tracker = Tracker(KEY)
    ask: Body = {"model": "gemini-3-pro", "input": "Which ledger?", "store": False}
    tracker.observe(Exchange(Api.INTERACTIONS, request=ask, events=events, complete=False))
    steps = [{"type": "user_input", "content": [{"type": "text", "text": "Which ledger?"}]}]
    report = tracker.observe(Exchange(Api.INTERACTIONS, request=ask | {"input": [*steps, thought]}))
    assert row_of(report, "interactions.thought.signature")[0] == fate
