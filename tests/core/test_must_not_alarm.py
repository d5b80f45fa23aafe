"""The fifteen situations of the provider contract in which an alarm would be false."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from otel_sealed.contract import Api, Exchange
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
    parts_of,
    reasoning,
    redacted,
    response,
    said,
    text,
    thinking,
    use,
    without,
)
from tests.core.conversations import (
    KEY,
    MATRIX,
    Body,
    ask,
    conversation,
    events,
    exchange,
    history,
    observe,
    replay,
    request,
    rows,
    seen,
    step,
)


def quiet(*reports: Report) -> list[tuple[str, str, str]]:
    """(fate, verdict, rule) of everything, none of which may be a violation."""
    found = [(f.fate.value, f.verdict.value, f.rule) for f in rows(reports)]
    assert [row for row in found if row[1] in ("degrades", "breaks")] == []
    return found


def test_1_parallel_gemini_calls_without_signature() -> None:
    """Only the first of several parallel calls has a signature (G2)."""
    answer = candidate(part(), part(signed=False), part(signed=False))
    assert quiet(replay("gemini", answer)) == [("intact", "ok", "")]


def test_2_previous_response_id() -> None:
    """The server holds the reasoning of a response that is referred to (O2)."""
    answer = response(reasoning(), call())

    def change(body: Body) -> Body:
        return body | {"input": body["input"][-1:], "previous_response_id": answer["id"]}

    assert quiet(replay("openai", answer, change)) == [("server_held", "allowed", "O2")]


def test_2_conversation() -> None:
    """The server holds the reasoning of a conversation of its own (O2)."""
    answer = response(reasoning(), call())
    first = asked("openai", conversation={"id": "conv_1"}, store=True)

    def change(body: Body) -> Body:
        return body | {"input": body["input"][-1:], "conversation": "conv_1"}

    assert quiet(replay("openai", answer, change, asked=first)) == [
        ("server_held", "allowed", "O2")
    ]


def test_2_continued_thread() -> None:
    """A continued thread sends only what is new (A31)."""
    answer = message(thinking(), use())

    def change(body: Body) -> Body:
        thread = {"type": "continue", "previous_message_id": answer["id"]}
        return body | {"messages": body["messages"][-1:], "thread": thread}

    assert quiet(replay("anthropic", answer, change)) == [("server_held", "allowed", "A31")]


def test_2_previous_interaction_id() -> None:
    """Gemini's interactions keep state on the server (G17)."""
    tracker = Tracker(KEY)
    thought = {"type": "thought", "signature": "c2VhbGVk" * 20, "summary": []}
    call = {"type": "function_call", "id": "c_1", "name": "look_up", "arguments": {}}
    answer = {"id": "i_1", "model": "gemini-3-pro-preview", "steps": [thought, call]}
    ask = {"model": "gemini-3-pro-preview", "input": "Which ledger?"}
    tracker.observe(Exchange(Api.INTERACTIONS, request=ask, response=answer, status=200))
    result = {"type": "function_result", "call_id": "c_1", "result": "42"}
    body = ask | {"input": [result], "previous_interaction_id": "i_1"}
    report = tracker.observe(Exchange(Api.INTERACTIONS, request=body))
    assert [("server_held", "allowed", "G17")] == [
        (f.fate, f.verdict, f.rule) for f in report.findings
    ]


def keep_from_compaction(body: Body) -> Body:
    """What stands before the latest compaction is left out."""
    body = copy.deepcopy(body)
    told = history(body)
    at = max(
        n
        for n, one in enumerate(told)
        if one.get("type") == "compaction"
        or any(
            isinstance(b, dict) and b.get("type") == "compaction" for b in one.get("content", ())
        )
    )
    del told[:at]
    return body


def test_3_items_before_the_latest_compaction_item() -> None:
    """What a compaction item carries may go (O16)."""
    answers = [response(reasoning(), said()), response(compacted(), reasoning(), said())]
    found = quiet(*chat("openai", *answers, change=keep_from_compaction))
    assert ("superseded", "allowed", "O16") in found


def test_3_messages_before_the_compaction_block() -> None:
    """Messages before a compaction block may go (A24, A25)."""
    block = {
        "type": "compaction",
        "content": "All that was said.",
        "encrypted_content": "Q2Fu" * 30,
    }
    answers = [message(thinking(), text()), message(block, thinking(), text())]
    found = quiet(*chat("anthropic", *answers, change=keep_from_compaction))
    assert ("superseded", "allowed", "A24") in found


def test_4_older_compaction_item_dropped() -> None:
    """The newest compaction item carries the older one (O16)."""
    answers = [response(compacted(), said()), response(compacted(), said())]
    found = quiet(*chat("openai", *answers, change=keep_from_compaction))
    assert ("superseded", "allowed", "O16") in found


def test_5_empty_thinking_text_with_a_signature() -> None:
    """Empty text is no damage (A7)."""
    assert quiet(replay("anthropic", message(thinking(""), use()))) == [("intact", "ok", "")] * 2


def test_5_empty_summary() -> None:
    """An item with an empty summary is whole (O9)."""
    assert quiet(replay("openai", response(reasoning(), call()))) == [("intact", "ok", "")] * 2


def test_6_thinking_of_finished_turns() -> None:
    """Older thinking may be left out on models that do not bind (A8)."""
    answers = [message(thinking(), text()), message(thinking(), text())]
    found = quiet(*chat("anthropic", *answers, change=without("thinking")))
    assert found == [("dropped", "allowed", "A8")] * 2


def test_6_turn_boundary() -> None:
    """A removal at the turn boundary is by design (O15)."""
    answer = response(reasoning(), said())
    tracker = Tracker(KEY)
    body = request("openai", [])
    tracker.observe(exchange("openai", body, answer))
    history(body).extend(step("openai", answer, "And?"))
    entry = {
        "type": "reasoning",
        "action": "removed",
        "id": answer["output"][0]["id"],
        "reason": "turn_boundary",
    }
    second = response(reasoning(), said()) | {"input_transformations": [entry]}
    report = tracker.observe(exchange("openai", body, second))
    assert quiet(report) == [("intact", "ok", "")] * 2
    assert report.provider_verdict.value == "accepted"


def test_7_thinking_before_the_last_fallback() -> None:
    """What stands before the turn's last fallback may be left out (A20)."""
    answer = message(thinking(), {"type": "fallback"}, thinking("two"), text())
    change = edit(lambda b: blocks(b).pop(0))
    found = quiet(replay("anthropic", answer, change))
    assert found[0] == ("dropped", "allowed", "A20")


def test_7_trailing_thinking() -> None:
    """Thinking at the end of a turn is rightly cut off before a prefill (A11)."""
    answer = message(text(), thinking())
    assert quiet(replay("anthropic", answer, without("thinking"))) == [
        ("dropped", "allowed", "A11")
    ]


@pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
def test_8_refused_or_truncated_turn(stop: str) -> None:
    """A refused or truncated turn need not be replayed (A21)."""
    answers = [message(thinking(), text()), message(thinking(), text(), stop=stop)]
    found = quiet(*chat("anthropic", *answers, change=edit(lambda b: b["messages"].pop(3))))
    assert [row for row in found if row[0] != "intact"] in ([], [("dropped", "allowed", "A21")])


@pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
def test_8_thinking_of_a_refused_or_truncated_turn(stop: str) -> None:
    """Nor need its thinking be, where its text is (A21)."""
    answer = message(thinking(), text(), stop=stop)
    assert quiet(replay("anthropic", answer, without("thinking"))) == [
        ("dropped", "allowed", "A21")
    ]


def test_8_block_with_empty_signature_left_out() -> None:
    """What never had a seal is nobody's loss (A3)."""
    answer = message(thinking() | {"signature": ""}, use())
    assert quiet(replay("anthropic", answer, without("thinking"))) == []


def test_9_item_id_absent() -> None:
    """Ids may be left out (O7)."""
    change = edit(lambda b: [item.pop("id", None) for item in b["input"]])
    found = quiet(replay("openai", response(reasoning(), call()), change))
    assert found == [("intact", "ok", ""), ("dropped", "allowed", "O7")]


def test_9_nulls_of_model_dump() -> None:
    """Nulls that a dump adds are no keys."""
    change = edit(lambda b: blocks(b)[0].update(citations=None, text=None))
    assert (
        quiet(replay("anthropic", message(thinking(), use()), change)) == [("intact", "ok", "")] * 2
    )


def test_9_base64_alphabet() -> None:
    """Re-spelling a Gemini signature is benign."""

    def change(body: Body) -> None:
        one = parts_of(body)[0]
        seal = one["thoughtSignature"]
        one["thoughtSignature"] = seal.replace("+", "-").replace("/", "_").rstrip("=")

    assert quiet(replay("gemini", candidate(part()), edit(change))) == [("intact", "ok", "")]


def test_9_cache_control_moved() -> None:
    """A cache marker that moves changes no prefix, also on models that bind."""
    first = asked("anthropic", model="claude-fable-5-2")
    history(first)[0]["content"][0]["cache_control"] = {"type": "ephemeral"}

    def change(body: Body) -> None:
        del body["messages"][0]["content"][0]["cache_control"]
        body["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}

    answer = message(thinking(), use(), model="claude-fable-5-2")
    report = replay("anthropic", answer, edit(change), asked=first)
    assert quiet(report) == [("intact", "ok", "")] * 2


def test_10_include_absent_but_the_blob_is_there() -> None:
    """The blob comes by default; not having asked is no fault."""
    first = asked("openai")
    del first["include"]
    found = quiet(replay("openai", response(reasoning(), call()), asked=first))
    assert found == [("intact", "ok", "")] * 2


def test_10_the_blob_of_added_differs_from_that_of_done() -> None:
    """Only `output_item.done` and the closing event count."""
    answer = response(reasoning(), call())
    sent = events("openai", answer)
    added = next(e for e in sent if e["type"] == "response.output_item.added")
    assert added["item"]["encrypted_content"] != answer["output"][0]["encrypted_content"]
    tracker = Tracker(KEY)
    body = request("openai", [])
    tracker.observe(exchange("openai", body, None, events=sent))
    history(body).extend(step("openai", answer, "And?"))
    assert quiet(tracker.observe(exchange("openai", body, None))) == [("intact", "ok", "")] * 2


def test_11_removals_the_caller_asked_for() -> None:
    """With `drop_block` a changed prefix removes blocks as asked: shown, not as breaking."""
    answer = message(thinking(), use(), model="claude-fable-5-2")
    binding = {"prefix_mismatch_behavior": "drop_block"}
    first = asked(
        "anthropic",
        model="claude-fable-5-2",
        thinking={"type": "adaptive", "block_binding": binding},
    )
    report = replay("anthropic", answer, lambda b: b | {"system": "Other."}, asked=first)
    assert "breaks" not in {f.verdict.value for f in report.findings}
    assert "prefix_changed" in {f.fate.value for f in report.findings}


def test_11_context_editing() -> None:
    """What the server edits out of its own copy is not the client's doing (A23)."""
    first = asked("anthropic", context_management={"edits": [{"type": "clear_thinking_20251015"}]})
    report = replay("anthropic", message(thinking(), use()), asked=first)
    assert quiet(report) == [("intact", "ok", "")] * 2


@pytest.mark.parametrize("dialect", MATRIX)
def test_12_retry(dialect: str) -> None:
    """The same request again, answered anew: only the answer that is replayed is expected."""
    plan = conversation(dialect)
    again = dataclasses.replace(
        plan[2],
        response=exchange(dialect, None, conversation(dialect, "again")[2].response).response,
    )
    quiet(*observe([*plan[:2], again, *plan[2:]]))


@pytest.mark.parametrize("dialect", MATRIX)
def test_12_fork(dialect: str) -> None:
    """Two branches from one point expect only what lies before it and their own."""
    main = conversation(dialect)
    tracker = Tracker(KEY)
    observe(main[:3], tracker)
    branch = copy.deepcopy(main[3].request)
    history(branch)[-1:] = ask(dialect, "Another question altogether.")
    side = tracker.observe(exchange(dialect, branch, conversation(dialect, "side")[3].response))
    quiet(side, *observe(main[3:], tracker))


@pytest.mark.parametrize("dialect", MATRIX)
def test_12_regeneration_from_an_earlier_point(dialect: str) -> None:
    """Going back two turns drops nothing."""
    plan = conversation(dialect)
    tracker = Tracker(KEY)
    observe(plan, tracker)
    body = copy.deepcopy(plan[1].request)
    quiet(tracker.observe(exchange(dialect, body, conversation(dialect, "new")[1].response)))


@pytest.mark.parametrize("dialect", MATRIX)
def test_13_parallel_conversations(dialect: str) -> None:
    """Conversations interleaved in one process never meet."""
    plans = [conversation(dialect, seed) for seed in range(4)]
    tracker = Tracker(KEY)
    quiet(*(tracker.observe(plan[at]) for at in range(6) for plan in plans))


@pytest.mark.parametrize("dialect", MATRIX)
def test_13_sub_agent(dialect: str) -> None:
    """A sub-agent has a history of its own, started from within a turn."""
    outer, inner = conversation(dialect, "outer"), conversation(dialect, "inner")
    tracker = Tracker(KEY)
    quiet(*observe([*outer[:2], *inner, *outer[2:]], tracker))


def test_14_signature_only_part_on_vertex() -> None:
    """A part that is nothing but a signature may be left out on Vertex (G12)."""
    answer = candidate(part("text", signed=False), part("only"))
    report = replay(
        "gemini",
        answer,
        edit(lambda b: parts_of(b).pop()),
        provider="vertex",
        minted={"provider": "vertex"},
    )
    assert quiet(report) == [("dropped", "allowed", "G12")]


@pytest.mark.parametrize("dialect", MATRIX)
def test_15_process_restart(dialect: str) -> None:
    """Without a record everything is unverifiable, and what comes after is known again."""
    plan = conversation(dialect)
    first, *later = observe(plan[3:])
    assert {row[:2] for row in quiet(first)} == {("unknown", "unverifiable")}
    quiet(*later)
    assert seen(later) == {("unknown", "unverifiable"), ("intact", "ok")}


def test_a_redacted_block_beside_thinking_is_no_alarm() -> None:
    """Redacted and readable thinking side by side come back as they came."""
    report = replay("anthropic", message(redacted(), thinking(), use()))
    assert {row[0] for row in quiet(report)} == {"intact"}


def test_a_reference_to_an_answer_that_another_worker_took() -> None:
    """Its server may hold what that answer continued; nobody here can tell."""
    answer = response(reasoning(), call())

    def change(body: Body) -> Body:
        kept = [i for i in body["input"] if i.get("type") != "reasoning"]
        return body | {"input": kept, "previous_response_id": "resp_elsewhere"}

    found = quiet(replay("openai", answer, change))
    assert set(found) == {
        ("dropped", "unverifiable", "X12"),
        ("orphaned", "unverifiable", "X12"),
    }


def test_the_server_of_one_vendor_does_not_hold_the_seals_of_another() -> None:
    """Nor did they have to be sent there."""
    tracker = Tracker(KEY)
    body = request("anthropic", [])
    answer = message(thinking(), text())
    tracker.observe(exchange("anthropic", body, answer))
    visible = answer["content"][1]["text"]
    there = request("openai", [])
    there["input"] += [{"role": "assistant", "content": visible}, *ask("openai", "And now?")]
    second = response(reasoning(), said())
    tracker.observe(exchange("openai", there, second))
    on = request("openai", []) | {"previous_response_id": second["id"]}
    on["input"] = ask("openai", "And then?")
    found = tracker.observe(exchange("openai", on, None))
    assert {(f.artifact, f.fate.value, f.verdict.value) for f in found.findings} == {
        ("openai.reasoning.encrypted_content", "server_held", "allowed"),
        ("anthropic.thinking.signature", "dropped", "allowed"),
    }


def test_a_text_that_an_answer_trimmed_away_had_too_stays_with_its_reasoning() -> None:
    """Dialects with an item a message: what stands between two items of a turn is its own."""
    tracker = Tracker(KEY)
    body = request("openai", [])
    same = [{"type": "output_text", "text": "Let me look at the ledger."}]
    first = response(reasoning(), said(content=same))
    second = response(reasoning(), said(content=same), reasoning(), call())
    for answer in (first, second):
        tracker.observe(exchange("openai", body, answer))
        for item in answer["output"]:  # of all: contract-corrections, O3
            if item["type"] != "function_call":
                item.pop("id")
        history(body).extend(step("openai", answer, "Go on."))
    del body["input"][:4]
    assert body["input"][0] == second["output"][0]
    report = tracker.observe(exchange("openai", body, None))
    assert {(f.fate.value, f.verdict.value) for f in report.findings} == {
        ("intact", "ok"),
        ("dropped", "allowed"),
        ("prefix_changed", "ok"),
    }


def test_an_answer_nobody_saw_right_behind_one_that_lost_its_calls() -> None:
    """With nothing between them its call is no other call of the one before."""
    tracker = Tracker(KEY)
    body = request("gemini", [])
    first = candidate(part(), part(signed=False))
    tracker.observe(exchange("gemini", body, first))
    seal = first["candidates"][0]["content"]["parts"][0]["thoughtSignature"]
    history(body).append({"role": "model", "parts": [{"thoughtSignature": seal}]})
    history(body).extend(step("gemini", candidate(part(signed=False), part()), ""))
    report = tracker.observe(exchange("gemini", body, None))
    assert {(f.fate.value, f.verdict.value) for f in report.findings} == {
        ("misplaced", "breaks"),
        ("unknown", "unverifiable"),
    }
