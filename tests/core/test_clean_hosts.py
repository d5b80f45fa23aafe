"""Hosts that do what is allowed and were accused once, each beside the fault it was taken for."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    asked,
    blocks,
    call,
    candidate,
    chat,
    compacted,
    edit,
    message,
    part,
    reasoning,
    response,
    said,
    searched,
    text,
    thinking,
    unsigned,
    use,
    without,
)
from tests.core.conversations import (
    KEY,
    Body,
    ask,
    events,
    exchange,
    history,
    replay,
    request,
    row_of,
    step,
)

BINDING = "claude-fable-5-2"
SEAL = "openai.reasoning.encrypted_content"
SIGNATURE = "anthropic.thinking.signature"


def verdicts(report: Report) -> set[str]:
    return {f.verdict.value for f in report.findings}


# ------------------------------------------------------------------------ what binds a prefix


def test_results_that_stay_are_no_thinking_on_a_binding_model() -> None:
    """All thinking left out is accepted, whatever else of the turn is sealed (A13)."""
    answer = message(thinking(), *searched(), text(), model=BINDING)
    first = asked("anthropic", model=BINDING)
    report = replay("anthropic", answer, without("thinking"), asked=first)
    assert row_of(report, SIGNATURE) == ("dropped", "allowed", "A13")


def test_results_alone_are_bound_to_no_prefix() -> None:
    """Only thinking is checked against what stands before it (A12)."""
    answer = message(*searched(), text(), model=BINDING)
    first = asked("anthropic", model=BINDING)
    report = replay("anthropic", answer, lambda b: b | {"system": "Other."}, asked=first)
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_messages_before_a_compaction_may_go_where_nothing_sealed_stood_in_them() -> None:
    """The block carries them (A24)."""
    block = {"type": "compaction", "content": "All of it.", "encrypted_content": "Q2Fu" * 30}
    answers = [message(text(), model=BINDING), message(block, thinking(), text(), model=BINDING)]
    change = edit(lambda b: b["messages"].__delitem__(slice(0, 3)))
    report = chat("anthropic", *answers, change=change, first=asked("anthropic", model=BINDING))[0]
    assert verdicts(report) == {"ok"}


def test_a_change_that_the_request_asks_to_be_dropped_is_shown_and_accuses_nobody() -> None:
    """`drop_block` (docs/contract/common.md#never-an-alarm)."""
    model = "claude-opus-5-5"
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    first = asked("anthropic", model=model, thinking=binding)
    answer = message(thinking(), use(), model=model)
    report = replay("anthropic", answer, lambda b: b | {"system": "Other."}, asked=first)
    assert row_of(report, "request.prefix") == ("prefix_changed", "allowed", "A12")


@pytest.mark.parametrize(
    "spelling",
    [
        lambda b: b | {"input": [{"type": "message", **b["input"][0]}, *b["input"][1:]]},
        lambda b: (
            b
            | {
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "Question."}]},
                    *b["input"][1:],
                ]
            }
        ),
        lambda b: b | {"text": {"format": {"type": "text"}}},
    ],
    ids=["typed", "list", "format"],
)
def test_what_the_model_was_told_has_several_spellings(spelling: Any) -> None:
    """None of them is another prefix (O13)."""
    first = asked("openai", model="gpt-6.2")
    answer = response(reasoning(), call(), model="gpt-6.2")
    report = replay("openai", answer, spelling, asked=first)
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_an_input_that_is_a_text_is_the_message_it_stands_for() -> None:
    """As the first call of many hosts has it."""
    tracker = Tracker(KEY)
    body = asked("openai", model="gpt-6.2") | {"input": "Question."}
    answer = response(reasoning(), call(), model="gpt-6.2")
    tracker.observe(exchange("openai", copy.deepcopy(body), answer))
    body["input"] = [{"role": "user", "content": "Question."}, *step("openai", answer, "")]
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert {f.fate.value for f in report.findings} == {"intact"}


# ---------------------------------------------------------------------------- turns that are over


def paused() -> list[Body]:
    first = message(thinking(), *searched(), stop="pause_turn")
    return [first, message(thinking(), text())]


def _continued(change: Any, *, over: bool) -> Report:
    """A paused answer sent back as it was, continued, and then `change`d; over, or not."""
    tracker, body = Tracker(KEY), asked("anthropic")
    first, second = paused()
    tracker.observe(exchange("anthropic", copy.deepcopy(body), first))
    history(body).append({"role": "assistant", "content": copy.deepcopy(first["content"])})
    if over:
        tracker.observe(exchange("anthropic", copy.deepcopy(body), second))
        history(body).append({"role": "assistant", "content": second["content"]})
        history(body).extend(ask("anthropic", "Next."))
    return tracker.observe(exchange("anthropic", change(body), None, status=None))


@pytest.mark.parametrize(("over", "verdict"), [(True, "allowed"), (False, "breaks")])
def test_a_paused_turn_is_bound_until_it_is_over(verdict: str, *, over: bool) -> None:
    """Sent back as it is to be continued; later it is a finished turn as any (A21)."""
    report = _continued(edit(lambda b: blocks(b).pop(0)), over=over)
    found = [f for f in report.findings if f.fate.value == "dropped"]
    assert [f.verdict.value for f in found] == [verdict]


def test_turns_trimmed_as_a_whole_take_their_results_with_them() -> None:
    """Nothing of them is missed (X7)."""
    answers = [message(*searched(), text()), message(thinking(), text())]
    change = edit(lambda b: b["messages"].__delitem__(slice(0, 2)))
    report = chat("anthropic", *answers, change=change)[0]
    assert verdicts(report) <= {"ok", "allowed"}


@pytest.mark.parametrize("kind", ["call", "text", "image"])
@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro-preview"])
def test_turns_of_gemini_trimmed_from_the_front_are_not_missed(kind: str, model: str) -> None:
    """Of any model, and with images in them (X7)."""
    answers = [candidate(part(kind), model=model), candidate(part("text"), model=model)]
    gone = 4 if kind == "call" else 2

    def change(body: Body) -> None:
        del body["contents"][:gone]

    tracker, body = Tracker(KEY), asked("gemini")
    for answer in answers:
        sent = exchange("gemini", copy.deepcopy(body), answer, model=model)
        tracker.observe(sent)
        history(body).extend(step("gemini", answer, "And then?"))
        if kind == "call" and answer is answers[0]:
            history(body).extend(ask("gemini", "More."))
    last = exchange("gemini", edit(change)(body), None, status=None, model=model)
    assert verdicts(tracker.observe(last)) <= {"ok", "allowed"}


def test_a_turn_of_xai_left_out_as_a_whole_is_not_missed() -> None:
    """Nothing of it is there to be worse for it (X7)."""
    tracker, body = Tracker(KEY), asked("openai")
    for answer in (response(reasoning(), said()), response(reasoning(), said())):
        tracker.observe(exchange("openai", copy.deepcopy(body), answer, provider="xai"))
        history(body).extend(step("openai", answer, "And?"))
    del body["input"][:3]
    report = tracker.observe(exchange("openai", body, None, status=None, provider="xai"))
    assert verdicts(report) <= {"ok", "allowed"}


# ------------------------------------------------------------------------------ transcripts


def told(body: Body, answer: Body | None, tracker: Tracker) -> Report:
    """One exchange of a transcript."""
    status = 200 if answer is not None else None
    sent = exchange(
        "openai", copy.deepcopy(body), answer, conversation="file", continues=True, status=status
    )
    return tracker.observe(sent)


def test_an_agent_beside_the_conversation_of_a_transcript_owes_it_nothing() -> None:
    """Its request has nothing that was told there (docs/contract/common.md#never-an-alarm)."""
    tracker, body = Tracker(KEY), asked("openai")
    told(body, response(compacted(), reasoning(), said()), tracker)
    side = asked("openai")
    side["input"] = [{"role": "user", "content": "A title for this."}]
    assert told(side, response(said()), tracker).findings == ()


def test_an_answer_asked_for_again_in_a_transcript_leaves_no_rows() -> None:
    """A fork expects what lies before its branching point."""
    tracker, body = Tracker(KEY), asked("openai")
    told(body, response(reasoning(), said()), tracker)
    assert told(body, response(reasoning(), said()), tracker).findings == ()


def test_an_example_in_front_is_not_the_turn_that_was_trimmed() -> None:
    """Where the requests were seen, it is known what was answered where."""
    tracker, body = Tracker(KEY), asked("openai")
    few = [*ask("openai", "Example?"), {"role": "assistant", "content": "Example answer."}]
    body["input"] = [*few, *ask("openai", "Now?")]
    for _ in range(2):
        answer = response(reasoning(), said())
        told(body, answer, tracker)
        history(body).extend(step("openai", answer, "And then?"))
    del body["input"][2:5]
    report = told(body, None, tracker)
    assert verdicts(report) <= {"ok", "allowed"}


# -------------------------------------------------------------------------- what came, and where


@pytest.mark.parametrize("left", [None, "", ..., "cut"], ids=["null", "empty", "absent", "cut"])
def test_an_item_that_was_done_counts_where_the_closing_event_lacks_its_blob(left: Any) -> None:
    """Both count, and the whole one was there (docs/contract/common.md#incomplete-values)."""
    answer = response(reasoning(), call())
    sent = json.loads(json.dumps(events("openai", answer)))
    item = sent[-1]["response"]["output"][0]
    if left is ...:
        item.pop("encrypted_content")
    else:
        item["encrypted_content"] = item["encrypted_content"][:40] if left == "cut" else left
    tracker, body = Tracker(KEY), request("openai", [])
    tracker.observe(exchange("openai", copy.deepcopy(body), None, events=sent))
    history(body).extend(step("openai", answer, "And?"))
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_an_item_that_was_done_counts_where_the_closing_event_leaves_it_out() -> None:
    """It came."""
    answer = response(reasoning(), call())
    sent = json.loads(json.dumps(events("openai", answer)))
    del sent[-1]["response"]["output"][0]
    tracker, body = Tracker(KEY), request("openai", [])
    tracker.observe(exchange("openai", copy.deepcopy(body), None, events=sent))
    history(body).extend(step("openai", answer, "And?"))
    report = tracker.observe(exchange("openai", without("reasoning")(body), None, status=None))
    assert row_of(report, SEAL)[0] == "dropped"


@pytest.mark.parametrize(("stored", "verdict"), [(True, "allowed"), (False, "breaks")])
@pytest.mark.parametrize("now", [True, False])
def test_an_item_is_stored_where_its_own_call_stored_it(
    verdict: str, *, stored: bool, now: bool
) -> None:
    """Whatever the later request says of itself (O8)."""
    answer = response(reasoning(), call()) | {"store": stored}

    def change(body: Body) -> None:
        body["store"] = now
        for item in body["input"]:
            item.pop("encrypted_content", None)

    report = replay("openai", answer, edit(change), asked=asked("openai", store=stored))
    assert row_of(report, SEAL)[:2] == ("dropped", verdict)


def test_reasoning_with_that_of_another_answer_behind_it_is_orphaned() -> None:
    """The item that followed it stands elsewhere (O3)."""
    tracker, body = Tracker(KEY), asked("openai")
    for _ in range(2):
        answer = response(reasoning(), call())
        tracker.observe(exchange("openai", copy.deepcopy(body), answer))
        history(body).extend(step("openai", answer, ""))
    items = body["input"]
    items.insert(2, items.pop(4))
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert ("openai.reasoning", "orphaned") in {(f.artifact, f.fate.value) for f in report.findings}


def test_a_blob_cut_before_a_compaction_that_carries_it_is_modified() -> None:
    """It is superseded only where it is absent."""
    answers = [response(reasoning(), said()), response(compacted(), said())]

    def change(body: Body) -> None:
        item = next(i for i in body["input"] if i.get("type") == "reasoning")
        item["encrypted_content"] = item["encrypted_content"][:60]

    report = chat("openai", *answers, change=edit(change))[0]
    assert row_of(report, SEAL)[:2] == ("modified", "breaks")


def test_a_reference_needs_no_type() -> None:
    """`id` alone is one."""
    answer = response(reasoning(), call()) | {"store": True}

    def change(body: Body) -> None:
        body["input"] = [
            {"id": i["id"]} if i.get("type") == "reasoning" else i for i in body["input"]
        ]

    assert row_of(replay("openai", answer, edit(change)), SEAL)[:2] == ("server_held", "allowed")


def test_a_seal_of_one_call_on_another_without_ids_is_swapped() -> None:
    """The call tells whose it is, where no id does (G11)."""
    tracker, body = Tracker(KEY), asked("gemini")
    for _ in range(2):
        answer = candidate(part())
        answer["candidates"][0]["content"]["parts"][0]["functionCall"].pop("id")
        tracker.observe(exchange("gemini", copy.deepcopy(body), answer))
        one = copy.deepcopy(answer["candidates"][0]["content"]["parts"][0])
        result = {"name": "look_up", "response": {"output": "found"}}
        history(body).append({"role": "model", "parts": [one]})
        history(body).append({"role": "user", "parts": [{"functionResponse": result}]})
    told_parts = [c["parts"][0] for c in body["contents"] if c["role"] == "model"]
    told_parts[1]["thoughtSignature"] = told_parts[0]["thoughtSignature"]
    report = tracker.observe(exchange("gemini", body, None, status=None))
    assert ("modified", "breaks") in {(f.fate.value, f.verdict.value) for f in report.findings}


def test_the_same_seal_under_another_wires_name_is_not_retyped() -> None:
    """From Google's OpenAI endpoint to its own."""
    seal = part()["thoughtSignature"]
    function = {"name": "look_up", "arguments": "{}"}
    extra = {"google": {"thought_signature": seal}}
    called = {"id": "c1", "type": "function", "function": function, "extra_content": extra}
    said_so = {"role": "assistant", "content": None, "tool_calls": [called]}
    answer = {"id": "x", "model": "gemini-3-pro-preview", "choices": [{"message": said_so}]}
    tracker = Tracker(KEY)
    first = {"model": "gemini-3-pro-preview", "messages": [{"role": "user", "content": "Go."}]}
    tracker.observe(exchange("chat", first, answer, provider="google"))
    body = asked("gemini")
    now = {"functionCall": {"id": "c1", "name": "look_up", "args": {}}, "thoughtSignature": seal}
    result = {"functionResponse": {"id": "c1", "name": "look_up", "response": {}}}
    history(body).append({"role": "model", "parts": [now]})
    history(body).append({"role": "user", "parts": [result]})
    report = tracker.observe(exchange("gemini", body, None, status=None, provider="google"))
    assert "retyped" not in {f.fate.value for f in report.findings}
    lost = tracker.observe(exchange("gemini", unsigned(body), None, status=None, provider="google"))
    assert "dropped" in {f.fate.value for f in lost.findings}


@pytest.mark.parametrize(
    ("host", "same"),
    [
        ("House.openai.azure.com:443", True),
        ("house.cognitiveservices.azure.com", True),
        ("house.services.ai.azure.com", True),
        ("other.openai.azure.com", False),
    ],
)
def test_a_resource_of_azure_has_several_names(host: str, *, same: bool) -> None:
    """One label, several domains (O12)."""
    answer = response(reasoning(), call())
    minted = {"host": "house.openai.azure.com", "provider": "azure"}
    report = replay("openai", answer, minted=minted, host=host, provider="azure")
    assert ("request.issuer" not in {f.artifact for f in report.findings}) is same
