"""One receipt per tool result: the pair, not the prose."""

from __future__ import annotations

from typing import Any

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import ToolReceipt
from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, asked, message, thinking, use
from tests.core.conversations import KEY, exchange, history, reply


def receipts(body: dict[str, Any], api: Api, tracker: Tracker | None = None) -> tuple[Any, ...]:
    return (tracker or Tracker(KEY)).observe(Exchange(api, request=body)).receipts


def anthropic(result: Any, **more: Any) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": "héllo"}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": result, **more}
    return {
        "model": "claude-opus-5",
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [answer]},
        ],
    }


def test_sizes_are_bytes_of_compact_json_or_of_the_text() -> None:
    found = receipts(anthropic("dönë"), Api.MESSAGES)
    assert [("look_up", len(b'{"q":"h\xc3\xa9llo"}'), 6)] == [
        (r.name, r.arguments_size, r.result_size) for r in found
    ]


def test_an_error_flag_is_true_false_or_unknown() -> None:
    flags = [
        receipts(anthropic("x", is_error=True), Api.MESSAGES)[0].failed,
        receipts(anthropic("x"), Api.MESSAGES)[0].failed,
        receipts(openai(), Api.RESPONSES)[0].failed,
    ]
    assert [True, False, None] == flags


def openai() -> dict[str, Any]:
    call = {"type": "function_call", "call_id": "call_1", "name": "pay", "arguments": '{"n":1}'}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "paid"}
    return {"model": "gpt-5.6-sol", "input": [{"role": "user", "content": "q"}, call, output]}


def test_an_openai_pair_is_found_by_its_call_id() -> None:
    (found,) = receipts(openai(), Api.RESPONSES)
    assert ("pay", 7, 4) == (found.name, found.arguments_size, found.result_size)


def test_gemini_results_without_ids_are_paired_by_their_order() -> None:
    calls = [{"functionCall": {"name": n, "args": {"n": "x" * size}}} for n, size in _SIZES]
    answers = [{"functionResponse": {"name": n, "response": {"ok": True}}} for n, _ in _SIZES]
    contents = [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
    ]
    found = receipts({"contents": contents}, Api.GENERATE_CONTENT)
    assert [("one", 9), ("two", 13)] == [(r.name, r.arguments_size) for r in found]
    assert [b"", b""] == [r.call for r in found]


_SIZES = (("one", 1), ("two", 5))


def test_only_results_that_go_out_for_the_first_time_have_a_receipt() -> None:
    body = anthropic("x")
    body["messages"] += [
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks"},
    ]
    assert () == receipts(body, Api.MESSAGES)


def test_a_receipt_names_the_turn_its_call_came_in() -> None:
    tracker = Tracker(KEY)
    body = asked("anthropic")
    tool = use()
    first = message(thinking(), tool, stop="tool_use")
    tracker.observe(exchange("anthropic", body, first))
    history(body).extend(reply("anthropic", first))
    result = {"type": "tool_result", "tool_use_id": tool["id"], "content": "ok"}
    history(body).append({"role": "user", "content": [result]})
    (found,) = tracker.observe(exchange("anthropic", body, None, status=None)).receipts
    assert 0 == found.turn


def test_a_result_without_its_call_says_so() -> None:
    body = anthropic("x")
    body["messages"][1]["content"] = "gone"
    (found,) = receipts(body, Api.MESSAGES)
    assert ("other", None) == (found.name, found.arguments_size)


def test_an_effect_the_app_told_is_on_the_receipt_once() -> None:
    tracker = Tracker(KEY)
    tracker.effects.tell("toolu_1", {"charged": 5})
    (first,) = receipts(anthropic("x"), Api.MESSAGES, tracker)
    (second,) = receipts(anthropic("x"), Api.MESSAGES, tracker)
    assert (16, len('{"charged":5}')) == (len(first.effect), first.effect_size)
    assert (b"", None) == (second.effect, second.effect_size)


def test_equal_effects_have_equal_digests_and_bytes_are_taken_as_they_are() -> None:
    tracker = Tracker(KEY)
    digests = set()
    for value in ("paid", b"paid"):
        tracker.effects.tell("toolu_1", value)
        (found,) = receipts(anthropic("x"), Api.MESSAGES, tracker)
        digests.add((found.effect, found.effect_size))
    assert 1 == len(digests)


def test_effects_nobody_collects_are_bounded() -> None:
    tracker = Tracker(KEY)
    for number in range(10_050):
        tracker.effects.tell(f"toolu_{number}", "x")
    assert 10_000 == len(tracker.effects._pending)


def test_a_tool_name_that_is_no_word_goes_out_as_other() -> None:
    body = anthropic("x")
    body["messages"][1]["content"][0]["name"] = "Müller's secret tool!"
    assert "other" == receipts(body, Api.MESSAGES)[0].name


def test_the_summary_is_a_size_and_never_an_input_to_a_verdict() -> None:
    tracker = Tracker(KEY)
    answer = message(thinking("four"), use())
    report = tracker.observe(exchange("anthropic", asked("anthropic"), answer))
    assert 4 == report.summary_size
    assert None is report.verdict


def test_a_receipt_holds_no_content() -> None:
    canary = MINT.text("canary")
    (found,) = receipts(anthropic(canary), Api.MESSAGES)
    assert canary not in repr(found)
    assert isinstance(found, ToolReceipt)


def test_what_came_in_is_told_with_the_id_of_its_item() -> None:
    body = {
        "model": "gpt-5.6-sol",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": MINT.seal()}
        ],
    }
    tracker = Tracker(KEY)
    received = tracker.observe(Exchange(Api.RESPONSES, request={"input": "q"}, response=body))
    assert [tracker.digest.name("rs_1")] == [receipt.id for receipt in received.received]
