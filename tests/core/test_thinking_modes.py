"""Anthropic: what a loop may lack depends on how its model thinks (A1, A2, A8, A9, A13)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from otel_sealed.tracker import Tracker
from tests.core.builders import (
    chat,
    edit,
    message,
    redacted,
    text,
    thinking,
    use,
    without,
)
from tests.core.conversations import KEY, Body, Change, exchange, replay, request, same

Row = tuple[str, str, str, str]
MANUAL = {"type": "enabled", "budget_tokens": 2048}
ADAPTIVE = {"type": "adaptive"}
BARE = without("thinking", "redacted_thinking")
SIGNATURE = "anthropic.thinking.signature"
REDACTED = "anthropic.redacted_thinking.data"


def thinks(mode: Body | None, model: str = "", change: Change = same) -> Change:
    """The last request asks for thinking in this way, of this model; None: it says nothing."""

    def changed(body: Body) -> Body:
        body = change(body)
        body.pop("thinking", None)
        named = {"model": model} if model else {}
        return body | named | ({} if mode is None else {"thinking": mode})

    return changed


def rows(answer: Body, change: Change, **more: Any) -> list[Row]:
    """What is not ok in a request that follows one answer."""
    report = replay("anthropic", answer, change, **more)
    return [
        (f.artifact, f.fate.value, f.verdict.value, f.rule)
        for f in report.findings
        if f.verdict.value != "ok"
    ]


@pytest.mark.parametrize(
    ("mode", "model", "verdict", "rule"),
    [
        (MANUAL, "claude-opus-5", "breaks", "A1"),
        (MANUAL, "claude-sonnet-4-5-20250929", "breaks", "A1"),
        (ADAPTIVE, "claude-opus-5", "degrades", "A1"),
        (ADAPTIVE, "claude-opus-4-6", "degrades", "A1"),
        (None, "claude-sonnet-5", "degrades", "A1"),
        (None, "claude-opus-5", "degrades", "A1"),
        (None, "claude-fable-5", "degrades", "A1"),
        (None, "anthropic/claude-opus-5.5", "degrades", "A1"),
        (
            None,
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-5-v1:0",
            "degrades",
            "A1",
        ),
        (None, "claude-opus-4-8", "allowed", "A9"),
        (None, "anthropic/claude-opus-4.8:beta", "allowed", "A9"),
        (None, "claude-opus-4-5@20251101", "allowed", "A9"),
        (None, "claude-haiku-4-5", "allowed", "A9"),
        (None, "claude-3-7-sonnet-20250219", "allowed", "A9"),
        ({"type": "disabled"}, "claude-sonnet-5", "allowed", "A9"),
    ],
)
@pytest.mark.parametrize("kind", [thinking, redacted], ids=["thinking", "redacted"])
def test_a_loop_without_any_thinking_of_a_turn(
    kind: Any, mode: Body | None, model: str, verdict: str, rule: str
) -> None:
    answer = message(kind(), use(), stop="tool_use", model=model)
    artifact = SIGNATURE if kind is thinking else REDACTED
    found = rows(answer, thinks(mode, model, BARE))
    expected = "A2" if (verdict, kind) == ("breaks", redacted) else rule
    assert found == [(artifact, "dropped", verdict, expected)]


@pytest.mark.parametrize("mode", [MANUAL, ADAPTIVE, None], ids=["manual", "adaptive", "absent"])
@pytest.mark.parametrize("lost", ["thinking", "redacted_thinking"])
def test_a_part_of_the_thinking_of_a_turn_breaks_in_every_mode(
    mode: Body | None, lost: str
) -> None:
    answer = message(thinking(), redacted(), use(), stop="tool_use")
    found = rows(answer, thinks(mode, change=without(lost)))
    assert [row[1:3] for row in found] == [("dropped", "breaks")]


@pytest.mark.parametrize("mode", [MANUAL, ADAPTIVE, None], ids=["manual", "adaptive", "absent"])
def test_thinking_in_another_order_breaks_in_every_mode(mode: Body | None) -> None:
    answer = message(thinking(), redacted(), use(), stop="tool_use")

    def swap(body: Body) -> None:
        content = body["messages"][1]["content"]
        content[0], content[1] = content[1], content[0]

    found = rows(answer, thinks(mode, change=edit(swap)))
    assert {row[1:3] for row in found} == {("reordered", "breaks")}


def test_one_bare_turn_of_an_adaptive_loop_does_not_touch_the_other() -> None:
    first, second = (message(thinking(), use(), stop="tool_use") for _ in range(2))

    def forget(body: Body) -> None:
        del body["messages"][1]["content"][0]

    (report,) = chat("anthropic", first, second, change=edit(forget))
    found = [(f.artifact, f.fate.value, f.verdict.value) for f in report.findings]
    assert found == [
        (SIGNATURE, "dropped", "degrades"),
        (SIGNATURE, "intact", "ok"),
        ("anthropic.thinking.text", "intact", "ok"),
    ]


def test_on_a_model_that_binds_a_bare_turn_before_thinking_voids_it() -> None:
    """A12: a block left out between others fails, in the loop and adaptively as well."""
    model = "claude-opus-5-5"
    answers = [message(thinking(), use(), stop="tool_use", model=model) for _ in range(2)]

    def forget(body: Body) -> None:
        del body["messages"][3]["content"][0]

    first = request("anthropic", []) | {"model": model}
    answers.append(message(thinking(), use(), stop="tool_use", model=model))
    (report,) = chat("anthropic", *answers, change=edit(forget), first=first)
    lost = [(f.verdict.value) for f in report.findings if f.fate.value == "dropped"]
    assert lost == ["breaks"]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [({"system": "Another clerk."}, "allowed"), ({"tools": []}, "allowed"), ({}, "degrades")],
    ids=["system", "tools", "nothing"],
)
def test_after_a_change_all_thinking_may_go_on_a_model_that_binds(
    change: Body, verdict: str
) -> None:
    """A13: the way out of a changed prefix is no loss; without a change it is one."""
    model = "claude-fable-5-2"
    answer = message(thinking(), use(), stop="tool_use", model=model)
    found = rows(answer, lambda body: thinks(None, model, BARE)(body) | change)
    assert [row[1:3] for row in found] == [("dropped", verdict)]


@pytest.mark.parametrize(
    "added",
    [
        [{"role": "user", "content": "Be brief."}],
        [{"role": "user", "content": [{"type": "text", "text": "Be brief."}]}],
        [{"role": "system", "content": "Now."}, {"role": "user", "content": "Be brief."}],
        [{"role": "user", "content": "Be brief."}, {"role": "user", "content": "Please."}],
    ],
    ids=["text", "block", "system between", "two words"],
)
def test_a_word_of_the_user_after_results_does_not_end_the_loop(added: list[Body]) -> None:
    """A2: the API joins messages of one role in a row, as if they were one mixed message."""
    answer = message(thinking(), redacted(), use(), stop="tool_use")
    lost = without("redacted_thinking")
    found = rows(answer, lambda body: lost(body) | {"messages": lost(body)["messages"] + added})
    assert found == [(REDACTED, "dropped", "breaks", "A2")]


def test_the_same_messages_end_the_loop_once_the_model_has_answered() -> None:
    """A8: what is finished may lack its thinking, and a later reading says so as well."""
    tracker = Tracker(KEY)
    body = request("anthropic", [])
    answer = message(thinking(), redacted(), use(), stop="tool_use")
    tracker.observe(exchange("anthropic", copy.deepcopy(body), answer))
    lost = {"role": "assistant", "content": [answer["content"][0], answer["content"][2]]}
    result = {"type": "tool_result", "tool_use_id": answer["content"][2]["id"], "content": "42"}
    body["messages"] += [lost, {"role": "user", "content": [result]}]
    body["messages"].append({"role": "user", "content": "Be brief."})
    live = tracker.observe(exchange("anthropic", copy.deepcopy(body), None, status=None))
    second = message(text())
    tracker.observe(exchange("anthropic", copy.deepcopy(body), second))
    body["messages"] += [{"role": "assistant", "content": second["content"]}]
    body["messages"].append({"role": "user", "content": "And?"})
    done = tracker.observe(exchange("anthropic", copy.deepcopy(body), None, status=None))
    dropped = [
        [f.verdict.value for f in r.findings if f.fate.value == "dropped"] for r in (live, done)
    ]
    assert dropped == [["breaks"], ["allowed"]]


@pytest.mark.parametrize(
    ("model", "verdict"),
    [
        ("claude-opus-4-5-20251101", "breaks"),
        ("us.anthropic.claude-opus-4-8-20260101-v1:0", "breaks"),
        ("publishers/anthropic/models/claude-opus-4-5@20251101", "breaks"),
        ("anthropic/claude-sonnet-4.5", "breaks"),
        ("claude-4-opus-20250514", "breaks"),
        ("claude-sonnet-4-6", "breaks"),
        ("claude-3-7-sonnet-latest", "breaks"),
        ("claude-sonnet-5", "ok"),
        ("claude-opus-5", "ok"),
        ("claude-fable-5", "ok"),
        ("eu.anthropic.claude-fable-5-20260101-v1:0", "ok"),
        ("anthropic/claude-opus-5.5", "ok"),
        ("claude-next", "ok"),
    ],
)
def test_thinking_is_refused_where_its_absence_means_off(model: str, verdict: str) -> None:
    """A9: what an absent parameter means is the model's; of an unknown one nobody knows."""
    answer = message(thinking(), use(), stop="tool_use", model=model)
    report = replay("anthropic", answer, thinks(None, model))
    assert {f.verdict.value for f in report.findings if f.artifact == SIGNATURE} == {verdict}


@pytest.mark.parametrize("model", ["claude-opus-4-5", "claude-opus-5"])
def test_thinking_of_an_earlier_turn_of_the_loop_is_refused_with_it_off(model: str) -> None:
    """A9: the final message of the model is the whole loop, with the turn that did not think."""
    off: Body = {"type": "disabled"}
    answers = (message(thinking(), use(), stop="tool_use"), message(use(), stop="tool_use"))
    (report,) = chat("anthropic", *answers, change=thinks(off, model))
    found = [(f.artifact, f.verdict.value, f.rule) for f in report.findings]
    assert (SIGNATURE, "breaks", "A9") in found


def test_who_thinks_without_being_asked_is_not_taken_to_be_off() -> None:
    """A gateway that turns thinking on by itself: the model's default does not hold there."""
    model = "claude-opus-4-5"
    first = request("anthropic", []) | {"model": model}
    del first["thinking"]
    answer = message(thinking(), use(), stop="tool_use", model=model)
    (report,) = chat("anthropic", answer, first=first)
    assert {f.verdict.value for f in report.findings} == {"ok"}


def test_thinking_of_finished_turns_may_come_where_its_absence_means_off() -> None:
    """Only the final message of the model may not hold thinking."""
    model = "claude-opus-4-5"
    answer = message(thinking(), text(), model=model)
    (report,) = chat("anthropic", answer, message(text(), model=model), change=thinks(None, model))
    assert {f.verdict.value for f in report.findings} == {"ok"}
