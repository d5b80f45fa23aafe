"""Kinds that cases of an independent reading of the contract showed: each one fact of a host."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
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
    response,
    said,
    searched,
    text,
    thinking,
    use,
)
from tests.core.conversations import KEY, Body, ask, exchange, history, replay, request, step

SIGNATURE = "anthropic.thinking.signature"
SEAL = "openai.reasoning.encrypted_content"
PAIR = "openai.reasoning"


def fates(report: Report, artifact: str) -> list[str]:
    return [f.fate.value for f in report.findings if f.artifact == artifact]


def orphans(answer: Body, change: Any) -> list[tuple[str, str, str]]:
    report = replay("openai", answer, edit(change))
    return [
        (f.verdict.value, f.rule, "disputed" if f.disputed else "")
        for f in report.findings
        if f.artifact == PAIR
    ]


# ------------------------------------------------------------- what follows a reasoning item (O3)


@pytest.mark.parametrize("first", [call, said], ids=["call", "message"])
def test_reasoning_needs_the_first_item_that_followed_it(first: Any) -> None:
    """A later one of the same answer is none."""
    found = orphans(response(reasoning(), first(), call()), lambda body: body["input"].pop(2))
    assert found == [("breaks", "O3", "")]


def test_of_parallel_calls_a_later_one_may_be_pruned() -> None:
    def prune(body: Body) -> None:
        gone = body["input"].pop(3)["call_id"]
        body["input"] = [item for item in body["input"] if item.get("call_id") != gone]

    assert orphans(response(reasoning(), call(), call()), prune) == []


@pytest.mark.parametrize("anew", ["It was written anew.", None], ids=["rewritten", "same"])
def test_a_message_under_another_id_is_another_item(anew: str | None) -> None:
    def rename(body: Body) -> None:
        item = body["input"][2]
        item["id"] = MINT.name("msg")
        if anew is not None:
            item["content"][0]["text"] = anew

    assert orphans(response(reasoning(), said()), rename) == [("breaks", "O3", "")]


def test_a_message_edited_under_its_own_id_is_the_same_item() -> None:
    def reword(body: Body) -> None:
        body["input"][2]["content"][0]["text"] = "It was put in other words."

    assert orphans(response(reasoning(), said()), reword) == []


@pytest.mark.parametrize("words", ["", "I look it up."], ids=["empty", "text"])
def test_a_text_of_the_hosts_between_reasoning_and_call_is_disputed(words: str) -> None:
    def interpose(body: Body) -> None:
        body["input"].insert(2, {"role": "assistant", "content": words})

    assert orphans(response(reasoning(), call()), interpose) == [("degrades", "O3", "disputed")]


# ---------------------------------------------------------------------------------- the seal itself


def test_a_blob_welded_to_one_that_goes_back_at_its_place_is_merged() -> None:
    answers = [response(reasoning(), call()), response(reasoning(), call())]

    def weld(body: Body) -> None:
        first, second = (i for i in body["input"] if i.get("type") == "reasoning")
        second["encrypted_content"] = first["encrypted_content"] + second["encrypted_content"]

    report = chat("openai", *answers, change=edit(weld))[-1]
    assert fates(report, SEAL)[-1] == "merged"


def test_prose_in_the_slot_of_a_seal_is_made_up_beside_an_answer_that_brought_none() -> None:
    def invent(body: Body) -> None:
        thought = {
            "type": "reasoning",
            "summary": [],
            "encrypted_content": "I weighed both of them",
        }
        body["input"].insert(1, thought)

    report = replay("openai", response(said()), edit(invent))
    assert [(f.fate.value, f.verdict.value) for f in report.findings] == [("fabricated", "breaks")]


def test_a_blob_that_nobody_saw_beside_such_an_answer_is_unknown() -> None:
    report = replay("openai", response(said()), edit(lambda b: b["input"].insert(1, reasoning())))
    assert fates(report, SEAL) == ["unknown"]


def test_a_long_thought_under_another_signature_has_a_changed_one() -> None:
    """Its answer was short, and nothing of the signature is left: a forged one is refused (A1)."""
    thought = thinking("It is the same number as the one that I found in the other ledger.")
    first = message(thought, text() | {"text": "So."})

    def forge(body: Body) -> None:
        blocks(body)[0]["signature"] = MINT.seal()

    report = chat("anthropic", first, message(thinking(), text()), change=edit(forge))[-1]
    assert fates(report, SIGNATURE) == ["modified", "intact"]


def test_a_short_thought_under_another_signature_may_be_another_answers() -> None:
    first = message(thinking("Hm."), text() | {"text": "So."})

    def forge(body: Body) -> None:
        blocks(body)[0]["signature"] = MINT.seal()

    report = chat("anthropic", first, message(thinking(), text()), change=edit(forge))[-1]
    assert "modified" not in fates(report, SIGNATURE)


def test_thinking_that_touches_because_a_search_between_is_gone_is_merged() -> None:
    """A5: what the server made between two thoughts is left out with its result."""
    answer = message(thinking(), *searched(), thinking(), use())

    def leave_out(body: Body) -> None:
        del blocks(body)[1:-2]

    report = replay("anthropic", copy.deepcopy(answer), edit(leave_out))
    found = [(f.fate.value, f.verdict.value) for f in report.findings if f.artifact == SIGNATURE]
    assert found == [("merged", "breaks"), ("merged", "breaks")]


# ------------------------------------------------------------------ what a memory of messages mixes


def swapped(*, over: bool, model: str = "claude-opus-5") -> tuple[str, str, bool]:
    """The signature of the first turn beside the thought of the second."""
    first = message(thinking(), text(), model=model)
    second = message(thinking(), *([text()] if over else [use()]), model=model)

    def change(body: Body) -> None:
        turns = [m for m in body["messages"] if m["role"] == "assistant"]
        turns[1]["content"][0]["signature"] = turns[0]["content"].pop(0)["signature"]

    start = asked("anthropic", model=model)
    report = chat("anthropic", first, second, change=edit(change), first=start)[-1]
    (found,) = (f for f in report.findings if f.fate.value == "modified")
    return found.verdict.value, found.rule, found.disputed


def test_the_signature_of_another_block_in_a_finished_turn_is_disputed() -> None:
    assert swapped(over=True) == ("degrades", "A6", True)


def test_in_the_turn_under_way_it_breaks() -> None:
    assert swapped(over=False) == ("breaks", "A1", False)


def test_on_a_model_that_binds_it_breaks() -> None:
    assert swapped(over=True, model="claude-fable-5-1")[:2] == ("breaks", "A1")


def test_a_second_reference_to_an_item_is_the_item_once_more() -> None:
    """X4: also where it is in the place of the message that came after the first."""
    answer = response(reasoning(), said()) | {"store": True}

    def refer(body: Body) -> None:
        for at in (1, 2):
            body["input"][at] = {"type": "item_reference", "id": answer["output"][0]["id"]}

    report = replay("openai", answer, edit(refer))
    found = [(f.fate.value, f.verdict.value, f.rule) for f in report.findings if f.artifact == SEAL]
    assert found == [("duplicated", "breaks", "X4")]


@pytest.mark.parametrize("kind", ["item_reference", None])
def test_a_reference_to_what_is_not_stored_breaks(kind: str | None) -> None:
    """O8: nothing else of the answer keeps an id, so that no pair is missed."""
    answer = response(reasoning(), said()) | {"store": False}

    def refer(body: Body) -> None:
        named = {"id": answer["output"][0]["id"]}
        body["input"][1] = named | ({"type": kind} if kind else {})
        body["input"][2].pop("id")

    report = replay("openai", answer, edit(refer))
    found = [(f.fate.value, f.verdict.value, f.rule) for f in report.findings if f.artifact == SEAL]
    assert found == [("dropped", "breaks", "O8")]


# ------------------------------------------------------- mocks: one answer, seal and all, again


def mocked(dialect: str, conversations: int, *, aside: bool) -> list[tuple[str, str]]:
    """What is not well where faithful hosts talk to a mock that knows one answer.

    `aside`: the conversations go on side by side, else one after the other.
    """
    answer = {
        "anthropic": lambda: message(thinking(), use(), stop="tool_use"),
        "openai": lambda: response(reasoning(), call()),
        "gemini": lambda: candidate(part()),
    }[dialect]()
    tracker = Tracker(KEY)
    bodies = [request(dialect, [], seed) for seed in range(conversations)]
    turns = [(number, turn) for number in range(conversations) for turn in range(4)]
    found: list[tuple[str, str]] = []
    for number, _ in sorted(turns, key=lambda one: one[::-1]) if aside else turns:
        sent = copy.deepcopy(bodies[number])
        report = tracker.observe(exchange(dialect, sent, copy.deepcopy(answer)))
        found += [(f.fate.value, f.verdict.value) for f in report.findings if f.verdict.violates]
        history(bodies[number]).extend(step(dialect, answer, f"Go on, {number}."))
    return found


@pytest.mark.parametrize("aside", [False, True], ids=["in a row", "side by side"])
@pytest.mark.parametrize("conversations", [1, 3])
@pytest.mark.parametrize("dialect", ["anthropic", "openai", "gemini"])
def test_nobody_is_accused_before_a_mock_with_one_answer(
    dialect: str, conversations: int, *, aside: bool
) -> None:
    assert mocked(dialect, conversations, aside=aside) == []


def test_answers_without_their_requests_are_several_where_their_ids_differ() -> None:
    """A mock gives the same thought under the same signature with each call."""
    thought, tracker = thinking(), Tracker(KEY)
    answers = [message(copy.deepcopy(thought), use(), stop="tool_use") for _ in range(3)]
    for answer in answers:
        tracker.observe(exchange("anthropic", None, answer))
    report = tracker.observe(exchange("anthropic", request("anthropic", answers), None))
    assert fates(report, SIGNATURE) == ["intact", "intact", "intact"]


def test_an_answer_that_is_fetched_again_is_one() -> None:
    answer, tracker = message(thinking(), use(), stop="tool_use"), Tracker(KEY)
    for _ in range(2):
        tracker.observe(exchange("anthropic", None, copy.deepcopy(answer)))
    report = tracker.observe(exchange("anthropic", request("anthropic", [answer]), None))
    assert fates(report, SIGNATURE) == ["intact"]


@pytest.mark.parametrize(("came", "goes"), [("empty", "only"), ("only", "empty")])
def test_an_empty_text_next_to_a_signature_may_be_lost_or_gained_on_the_way(
    came: str, goes: str
) -> None:
    """G6: Go leaves an empty text out of its JSON; what the API makes of that is not known."""
    answer = candidate(part("text", signed=False), part(came))
    seal = answer["candidates"][0]["content"]["parts"][1]["thoughtSignature"]

    def change(body: Body) -> None:
        parts_of(body)[1] = part(goes, signed=False) | {"thoughtSignature": seal}

    report = replay("gemini", answer, edit(change))
    found = [
        (f.fate.value, f.verdict.value, f.rule, f.disputed)
        for f in report.findings
        if f.artifact == "gemini.part.thought_signature"
    ]
    assert found == [("retyped", "degrades", "G6", True)]


@pytest.mark.parametrize("value", [None, "", "cmp_of_another"], ids=["null", "empty", "other"])
def test_a_compaction_under_no_id_of_its_own_is_where_the_answer_before_it_was(
    value: str | None,
) -> None:
    """O7, O6: it goes behind the first question, in the place of the turns that it carries."""
    tracker, start = Tracker(KEY), request("openai", [])
    answer, compaction = response(reasoning(), said()), response(compacted())
    tracker.observe(exchange("openai", copy.deepcopy(start), answer))
    longer = copy.deepcopy(start)
    history(longer).extend(answer["output"])
    tracker.observe(exchange("openai", longer, compaction))
    history(start).append(compaction["output"][0] | {"id": value})
    history(start).extend(ask("openai", "And now?"))
    report = tracker.observe(exchange("openai", start, None, status=None))
    assert fates(report, "openai.compaction.encrypted_content") == ["intact"]
