"""Corners of the core that no conversation of the other tests happens to reach."""

from __future__ import annotations

import copy
from typing import Any

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Cause, Fate, Report
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
    asked,
    blocks,
    call,
    candidate,
    chat,
    edit,
    message,
    part,
    reasoning,
    response,
    said,
    text,
    thinking,
    use,
)
from tests.core.conversations import KEY, Body, ask, exchange, history, row_of, step

SIGNATURE = "anthropic.thinking.signature"


def test_of_two_followers_without_their_reasoning_the_one_with_an_id_is_orphaned() -> None:
    one, two = call(), call()
    other = {"type": "mcp_list_tools", "id": "mcpl_1", "tools": []}

    def change(body: Body) -> None:
        body["input"] = [i for i in body["input"] if i.get("type") != "reasoning"]
        next(i for i in body["input"] if i.get("call_id") == one["call_id"]).pop("id")

    report = chat("openai", response(reasoning(), other, one, two), change=edit(change))[0]
    assert [Fate.ORPHANED] == [
        f.fate for f in report.findings if f.artifact == "openai.function_call"
    ]


def test_a_seal_put_at_the_top_of_the_body_is_misplaced() -> None:
    def change(body: Body) -> None:
        body["signature"] = blocks(body)[0]["signature"]
        blocks(body).pop(0)

    report = chat("anthropic", message(thinking(), use()), change=edit(change))[0]
    found = next(f for f in report.findings if f.artifact == SIGNATURE)
    assert (Fate.MISPLACED, Cause.WRONG_SLOT, "signature") == (
        found.fate,
        found.cause,
        found.returned,
    )


def test_another_vendors_seal_in_a_slot_is_foreign_for_the_seal_it_displaced() -> None:
    tracker = Tracker(KEY)
    signed = part("call")
    tracker.observe(Exchange(Api.GENERATE_CONTENT, response=candidate(signed)))
    foreign = signed["thoughtSignature"]
    report = chat(
        "anthropic",
        message(thinking(), use()),
        change=edit(lambda body: blocks(body)[0].update(signature=foreign)),
        tracker=tracker,
    )[0]
    assert Fate.FOREIGN in {f.fate for f in report.findings}
    assert report.verdict == "breaks"


def test_signed_text_that_grew_by_something_else_is_modified_not_merged() -> None:
    longer = "something else entirely, and longer than what was there before it was replaced"
    answer = message(thinking("short and signed"), thinking("its neighbour, also signed"), use())
    report = chat(
        "anthropic", answer, change=edit(lambda body: blocks(body)[0].update(thinking=longer))
    )[0]
    fates = [f.fate for f in report.findings if f.artifact == "anthropic.thinking.text"]
    assert [Fate.MODIFIED, Fate.INTACT] == fates


def test_a_few_bytes_taken_from_the_middle_read_as_masked_there() -> None:
    answer = message(thinking(), use())
    seal = answer["content"][0]["signature"]
    cut = seal[: len(seal) // 2] + seal[len(seal) // 2 + 4 :]
    report = chat(
        "anthropic", answer, change=edit(lambda body: blocks(body)[0].update(signature=cut))
    )[0]
    found = next(f for f in report.findings if f.artifact == SIGNATURE)
    assert (Fate.MODIFIED, Cause.MASKED) == (found.fate, found.cause)


def test_short_weak_evidence_alone_finds_nobody() -> None:
    tracker = Tracker(KEY)
    answer = message(thinking(), {"type": "text", "text": "ok"})
    tracker.observe(exchange("anthropic", asked("anthropic"), answer))
    body = asked("anthropic") | {"messages": ask("anthropic", "Something else.")}
    history(body).append({"role": "assistant", "content": [{"type": "text", "text": "ok"}]})
    history(body).extend(ask("anthropic", "And?"))
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    assert () == report.findings


def test_a_named_conversation_settles_a_tie() -> None:
    tracker = Tracker(KEY)
    reports: list[Report] = []
    for name in ("one", "two"):
        body = asked("anthropic")
        answer = message(thinking(), {"type": "text", "text": "The same words in both of them."})
        tracker.observe(exchange("anthropic", body, answer, conversation=name))
        told = copy.deepcopy(answer["content"][1:])
        history(body).append({"role": "assistant", "content": told})
        history(body).extend(ask("anthropic", "And?"))
        reports.append(
            tracker.observe(exchange("anthropic", body, None, status=None, conversation=name))
        )
    assert [("dropped", "allowed", "A8")] * 2 == [row_of(r, SIGNATURE) for r in reports]


def test_more_answers_without_a_key_than_turns_are_nobodys() -> None:
    tracker = Tracker(KEY)
    body = asked("anthropic")
    answer = message(thinking(), text())
    tracker.observe(exchange("anthropic", body, answer, conversation="c"))
    for number in range(3):
        unknown = [{"type": "text", "text": f"Words nobody here has seen {number}."}]
        history(body).append({"role": "assistant", "content": unknown})
        history(body).extend(ask("anthropic", f"And {number}?"))
    report = tracker.observe(exchange("anthropic", body, None, status=None, conversation="c"))
    assert [] == [f for f in report.findings if f.verdict.violates]


def test_reports_that_are_no_objects_are_passed_over() -> None:
    tracker = Tracker(KEY)
    answer = response(said()) | {"input_transformations": [None, 7, "x"]}
    report = tracker.observe(exchange("openai", asked("openai"), answer))
    assert ((), "accepted") == (report.removals, report.provider_verdict)


def test_a_block_of_an_unknown_type_is_no_reasoning() -> None:
    body = asked("anthropic") | {"thinking": {"type": "enabled", "budget_tokens": 512}}
    answer = message(text(), {"type": "from_the_future"})
    report = Tracker(KEY).observe(exchange("anthropic", body, answer))
    assert ["X6"] == [f.rule for f in report.findings]


def test_nested_things_that_are_no_carriers_are_passed_over() -> None:
    content: list[Any] = [7, {"type": "from_the_future"}, {"no": "type"}]
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": content}
    report = Tracker(KEY).observe(exchange("anthropic", asked("anthropic"), message(result)))
    assert ("web_search_tool_result",) == report.received_types


def test_a_long_id_with_a_short_ending_hides_nothing() -> None:
    body = asked("anthropic")
    name = "toolu_" + "x" * 80 + "__short"
    tool = use() | {"id": name}
    history(body).append({"role": "assistant", "content": [tool]})
    result = {"type": "tool_result", "tool_use_id": name, "content": "ok"}
    history(body).append({"role": "user", "content": [result]})
    report = Tracker(KEY).observe(exchange("anthropic", body, None, status=None))
    assert () == report.findings


def test_a_lost_seal_is_not_found_in_a_run_with_a_short_ending() -> None:
    note = {"type": "text", "text": f"see {'y' * 60}__short and {MINT.text('more')}"}

    def change(body: Body) -> None:
        blocks(body)[0] = note

    report = chat("anthropic", message(thinking(), use()), change=edit(change))[0]
    # contract-corrections, A1: where thinking is adaptive the loop goes on without any of it
    assert ("dropped", "degrades", "A1") == row_of(report, SIGNATURE)


def test_a_turn_behind_another_one_that_was_forgotten_is_still_found() -> None:
    tracker = Tracker(KEY, max_turns=1, settles=False)
    body = asked("anthropic")
    for _ in range(3):
        answer = message(thinking(), use(), stop="tool_use")
        report = tracker.observe(exchange("anthropic", body, answer))
        history(body).extend(step("anthropic", answer, "q"))
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    fates = [f.fate for f in report.findings if f.artifact == SIGNATURE]
    assert [Fate.INTACT, Fate.UNKNOWN, Fate.UNKNOWN] == sorted(fates)


def test_signed_texts_joined_with_words_between_them_are_merged() -> None:
    first, second = thinking("The first thought, signed."), thinking("The second thought, signed.")

    def change(body: Body) -> None:
        joined = f"{first['thinking']}\n-- and then --\n{second['thinking']}"
        blocks(body)[0]["thinking"] = joined
        blocks(body).pop(1)

    report = chat("anthropic", message(first, second, use()), change=edit(change))[0]
    fates = [f.fate for f in report.findings if f.artifact == SIGNATURE]
    assert [Fate.MERGED, Fate.MERGED] == fates


def test_a_constant_seal_of_another_conversation_is_no_rival() -> None:
    tracker = Tracker(KEY)
    constant = thinking("")
    body, answer = asked("anthropic"), message()
    for number in range(2):
        body = asked("anthropic") | {"messages": ask("anthropic", f"Question {number}.")}
        answer = message(copy.deepcopy(constant), text())
        tracker.observe(exchange("anthropic", body, answer))
    history(body).append({"role": "assistant", "content": answer["content"]})
    history(body).extend(ask("anthropic", "And?"))
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    assert [("intact", "ok")] * 2 == [(f.fate, f.verdict) for f in report.findings]


def test_a_handed_over_transcript_of_another_conversation_is_known() -> None:
    tracker = Tracker(KEY)
    merged = asked("anthropic")
    for number in range(2):
        body = asked("anthropic") | {"messages": ask("anthropic", f"Question {number}.")}
        for _ in range(number + 1):
            answer = message(thinking(), use(), stop="tool_use")
            tracker.observe(exchange("anthropic", body, answer))
            history(body).extend(step("anthropic", answer, "q"))
        history(merged).extend(history(body))
    report = tracker.observe(exchange("anthropic", merged, None, status=None))
    assert [Fate.INTACT] * 3 == [f.fate for f in report.findings if f.artifact == SIGNATURE]


def test_two_answers_to_one_request_and_words_of_neither_are_nobodys() -> None:
    tracker = Tracker(KEY)
    body = asked("anthropic")
    for _ in range(2):
        tracker.observe(exchange("anthropic", body, message(thinking(), text())))
    history(body).append({"role": "assistant", "content": [text()]})
    history(body).extend(ask("anthropic", "And?"))
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    assert () == report.findings


def test_a_long_run_of_letters_is_searched_to_a_bound() -> None:
    small = {"type": "thinking", "thinking": "", "signature": "Qm9" * 20}
    note = {"type": "text", "text": "ab" * 2_000}

    def change(body: Body) -> None:
        blocks(body)[0] = note

    report = chat("anthropic", message(small, use()), change=edit(change))[0]
    # contract-corrections, A1: where thinking is adaptive the loop goes on without any of it
    assert ("dropped", "degrades", "A1") == row_of(report, SIGNATURE)
