"""Gemini Interactions: steps, their signatures, and the state the server keeps."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from tests.core.builders import MINT
from tests.core.conversations import KEY, Body, row_of

MODEL = "gemini-3-pro-preview"
THOUGHT = "interactions.thought.signature"
STEP = "interactions.step.signature"


def steps() -> list[Body]:
    summary = [{"type": "text", "text": "Look it up before answering."}]
    return [
        {"type": "thought", "signature": MINT.seal(), "summary": summary},
        {"type": "google_search_call", "id": "g_1", "arguments": {}, "signature": MINT.seal()},
        {"type": "google_search_result", "call_id": "g_1", "result": [], "signature": MINT.seal()},
        {"type": "model_output", "content": [{"type": "text", "text": "The second ledger."}]},
    ]


def question(text: str = "Which ledger?") -> Body:
    return {"type": "user_input", "content": [{"type": "text", "text": text}]}


def replayed(sent: list[Body], came: list[Body], **more: Any) -> Report:
    tracker = Tracker(KEY)
    ask: Body = {"model": MODEL, "input": [question()], "store": False}
    answer = {"id": "i_1", "model": MODEL, "status": "completed", "steps": came}
    tracker.observe(Exchange(Api.INTERACTIONS, request=ask, response=answer, status=200))
    body = ask | {"input": [question(), *sent, question("And?")]} | more
    return tracker.observe(Exchange(Api.INTERACTIONS, request=body))


def test_steps_sent_again_as_they_came_are_intact() -> None:
    came = steps()
    report = replayed(copy.deepcopy(came), came)
    assert ["intact"] * 3 == [f.fate for f in report.findings]
    assert "ok" == report.verdict


def test_a_lost_thought_degrades_and_is_marked_disputed() -> None:
    came = steps()
    report = replayed(came[1:], came)
    assert ("dropped", "degrades", "G17") == row_of(report, THOUGHT)
    assert next(f for f in report.findings if f.fate == "dropped").disputed


def test_steps_are_compared_as_text_not_as_bytes() -> None:
    came = steps()
    sent = copy.deepcopy(came)
    sent[0]["signature"] = came[0]["signature"].rstrip("=")
    assert "modified" == row_of(replayed(sent, came), THOUGHT)[0]


def test_by_reference_and_sent_again_accuses_nobody() -> None:
    came = steps()
    report = replayed(came, came, previous_interaction_id="i_1")
    assert {("duplicated", "allowed")} == {(f.fate, f.verdict) for f in report.findings}


def test_a_seal_of_another_vendor_breaks_and_its_absence_is_right() -> None:
    tracker = Tracker(KEY)
    thinking = {"type": "thinking", "thinking": "Mine.", "signature": MINT.seal()}
    answer = {"content": [thinking], "model": "claude-opus-5", "id": "msg_1"}
    tracker.observe(Exchange(Api.MESSAGES, response=answer, conversation="c"))
    foreign = {"type": "thought", "signature": thinking["signature"]}
    output = {"type": "model_output", "content": [{"type": "text", "text": "Words."}]}
    reports = [
        tracker.observe(
            Exchange(
                Api.INTERACTIONS,
                request={"model": MODEL, "input": [question(), sent, question("And?")]},
                conversation="c",
                continues=True,
            )
        )
        for sent in (foreign, output)
    ]
    found = [row_of(report, "anthropic.thinking.signature")[:2] for report in reports]
    assert [("foreign", "breaks"), ("dropped", "allowed")] == found


def events(came: list[Body]) -> list[Any]:
    """The stream of an interaction; signatures and texts come as deltas."""
    said: list[Any] = [{"event_type": "interaction.created", "interaction": {"id": "i_1"}}]
    for index, step in enumerate(came):
        bare = {k: v for k, v in step.items() if k not in ("signature", "content")}
        said.append({"event_type": "step.start", "index": index, "step": bare})
        if "signature" in step:
            delta = {"type": "thought_signature", "signature": step["signature"]}
            said.append({"event_type": "step.delta", "index": index, "delta": delta})
        said += [
            {"event_type": "step.delta", "index": index, "delta": part}
            for part in step.get("content", ())
        ]
        said.append({"event_type": "step.stop", "index": index})
    done = {"id": "i_1", "model": MODEL, "status": "completed", "steps": []}
    return [*said, None, {"event_type": "interaction.completed", "interaction": done}]


def test_a_stream_brings_what_a_whole_body_brings() -> None:
    came = steps()
    whole = Tracker(KEY).observe(
        Exchange(Api.INTERACTIONS, response={"id": "i_1", "model": MODEL, "steps": came})
    )
    stream = Tracker(KEY).observe(Exchange(Api.INTERACTIONS, events=events(came)))
    assert whole.received == stream.received
    assert 3 == len(stream.received)
    assert (True, "completed") == (stream.complete, stream.stop)


def test_the_steps_of_the_last_event_go_before_those_of_the_deltas() -> None:
    came = steps()
    done = {"id": "i_1", "model": MODEL, "status": "completed", "steps": came}
    told = [
        *events(came[:1])[:-1],
        {"event_type": "interaction.completed", "interaction": done},
    ]
    report = Tracker(KEY).observe(Exchange(Api.INTERACTIONS, events=told))
    assert 3 == len(report.received)


def test_a_cut_stream_is_not_complete() -> None:
    report = Tracker(KEY).observe(Exchange(Api.INTERACTIONS, events=events(steps())[:4]))
    assert not report.complete


def test_an_error_in_a_stream_is_classed() -> None:
    error = {"event_type": "error", "error": {"message": "Thought signature is not valid"}}
    report = Tracker(KEY).observe(Exchange(Api.INTERACTIONS, events=[error], status=200))
    assert "signature_invalid" == report.rejection


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        ({"input": "Which?"}, {"steps": "x", "usage": 7}),
        ({"input": question()}, {"steps": [None, 7, {"no": "type"}], "usage": {}}),
        ({"input": [None, "x", {"type": 7}], "store": 7}, []),
        ({"previous_interaction_id": 7}, {"error": {"message": "no"}}),
        ({"input": [{"type": "function_result"}]}, {"usage": {"total_thought_tokens": True}}),
    ],
)
def test_odd_bodies_raise_nothing(request_: Body, response: Any) -> None:
    report = Tracker(KEY).observe(
        Exchange(Api.INTERACTIONS, request=request_, response=response, status=200)
    )
    assert () == report.unread


def test_odd_deltas_raise_nothing() -> None:
    odd: list[Any] = [
        {"event_type": "step.delta", "index": "x", "delta": {"type": "text", "text": "a"}},
        {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": 7}},
        {"event_type": "step.start", "index": 2, "step": {"type": "model_output", "content": 7}},
        {"event_type": "step.delta", "index": 2, "delta": {"type": "text", "text": "a"}},
        {"event_type": "step.start", "step": None},
    ]
    report = Tracker(KEY).observe(Exchange(Api.INTERACTIONS, events=odd))
    assert not report.complete


# ------------------------------------------------------- the first revision, 1.55 to 1.75


def outputs() -> list[Body]:
    return [
        {"type": "thought", "signature": MINT.seal(), "summary": []},
        {"type": "function_call", "id": "c_1", "name": "look", "arguments": {"q": "x"}},
        {"type": "text", "text": "The second ledger."},
    ]


def turns(came: list[Body]) -> list[Body]:
    result = {"type": "function_result", "call_id": "c_1", "name": "look", "result": "x"}
    return [
        {"role": "user", "content": "Which ledger?"},
        {"role": "model", "content": came},
        {"role": "user", "content": [result]},
    ]


def first_revision(came: list[Body], sent: list[Body]) -> Report:
    tracker = Tracker(KEY)
    ask: Body = {"model": MODEL, "input": turns([])[:1], "store": False}
    answer = {"id": "i_1", "model": MODEL, "status": "completed", "outputs": came}
    usage = {"total_input_tokens": 1, "total_reasoning_tokens": 7}
    first = tracker.observe(
        Exchange(Api.INTERACTIONS, request=ask, response=answer | {"usage": usage}, status=200)
    )
    assert 1 == len(first.received)
    assert 7 == first.usage.reasoning_tokens
    body = ask | {"input": turns(sent)}
    return tracker.observe(Exchange(Api.INTERACTIONS, request=body))


def test_turns_of_the_first_revision_sent_again_as_they_came_are_intact() -> None:
    came = outputs()
    report = first_revision(came, copy.deepcopy(came))
    assert [("intact", "ok")] == [(f.fate, f.verdict) for f in report.findings]


def test_a_thought_lost_from_a_turn_of_the_first_revision_is_dropped() -> None:
    came = outputs()
    assert ("dropped", "degrades", "G17") == row_of(first_revision(came, came[1:]), THOUGHT)


def first_events(came: list[Body]) -> list[Any]:
    """The stream of the first revision: calls come in a delta of their own type."""
    thought, call, text = came
    start = {"id": "i_1", "status": "in_progress", "outputs": []}
    signature = {"type": "thought_signature", "signature": thought["signature"]}
    pieces = [
        {"type": "text", "text": text["text"][:5]},
        {"type": "text", "text": text["text"][5:]},
    ]
    return [
        {"event_type": "interaction.start", "interaction": start},
        {"event_type": "content.start", "index": 0, "content": {"type": "thought", "summary": []}},
        {"event_type": "content.delta", "index": 0, "delta": signature},
        {"event_type": "content.stop", "index": 0},
        {"event_type": "content.start", "index": 1, "content": {"type": "function_call"}},
        {"event_type": "content.delta", "index": 1, "delta": call},
        {"event_type": "content.stop", "index": 1},
        {"event_type": "content.start", "index": 2, "content": {"type": "text"}},
        *({"event_type": "content.delta", "index": 2, "delta": piece} for piece in pieces),
        {"event_type": "content.stop", "index": 2},
        {"event_type": "interaction.complete", "interaction": {"id": "i_1", "model": MODEL}},
    ]


def test_a_stream_of_the_first_revision_brings_what_a_whole_body_brings() -> None:
    came = outputs()
    tracker = Tracker(KEY)
    tracker.observe(
        Exchange(
            Api.INTERACTIONS,
            request={"model": MODEL, "input": turns([])[:1], "store": False},
            events=first_events(came),
            status=200,
        )
    )
    body = {"model": MODEL, "input": turns(copy.deepcopy(came)), "store": False}
    report = tracker.observe(Exchange(Api.INTERACTIONS, request=body))
    assert [("intact", "ok")] == [(f.fate, f.verdict) for f in report.findings]


def test_outputs_of_the_last_event_go_before_those_of_the_deltas() -> None:
    came = outputs()
    done = {"event_type": "interaction.complete", "interaction": {"id": "i_1", "outputs": came}}
    told = [*first_events(came)[:3], done]
    assert 1 == len(Tracker(KEY).observe(Exchange(Api.INTERACTIONS, events=told)).received)
