"""Compaction is a layer of its own: each of its situations, and a client that does it by hand."""

from __future__ import annotations

from typing import Any

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
    asked,
    call,
    compacted,
    message,
    reasoning,
    response,
    said,
    text,
    thinking,
)
from tests.core.conversations import KEY, Body, ask, exchange, history, row_of, step

BLOB = "openai.compaction.encrypted_content"
REASONING = "openai.reasoning.encrypted_content"


def compact_call(tracker: Tracker, body: Body, *output: Body) -> Report:
    answer = {"id": MINT.name("resp"), "object": "response.compaction", "output": list(output)}
    return tracker.observe(exchange("openai", body, answer, operation="compact"))


def talked(tracker: Tracker) -> Body:
    """A conversation of one turn that is about to be compacted."""
    body = asked("openai")
    first = response(reasoning(), call())
    tracker.observe(exchange("openai", body, first))
    history(body).extend(step("openai", first, "Go on."))
    return body


def sent(tracker: Tracker, *items: Body) -> Report:
    body = asked("openai") | {"input": [*items, *ask("openai", "Next.")]}
    return tracker.observe(exchange("openai", body, None, status=None))


def test_the_prefix_is_legitimately_gone_behind_a_compaction_that_is_sent() -> None:
    tracker = Tracker(KEY)
    item = compacted()
    compact_call(tracker, talked(tracker), item)
    report = sent(tracker, item)
    assert ("superseded", "allowed", "O16") == row_of(report, REASONING)
    assert ("intact", "ok", "") == row_of(report, BLOB)


def test_the_latest_of_several_compactions_is_enough() -> None:
    tracker = Tracker(KEY)
    one, two = compacted(), compacted()
    compact_call(tracker, talked(tracker), one)
    compact_call(tracker, asked("openai") | {"input": [one, *ask("openai", "More.")]}, two)
    report = sent(tracker, two)
    rows = [(f.fate, f.verdict) for f in report.findings if f.artifact == BLOB]
    assert [("superseded", "allowed"), ("intact", "ok")] == rows


def test_both_compactions_sent_accuse_nobody() -> None:
    tracker = Tracker(KEY)
    one, two = compacted(), compacted()
    compact_call(tracker, talked(tracker), one)
    compact_call(tracker, asked("openai") | {"input": [one, *ask("openai", "More.")]}, two)
    report = sent(tracker, one, two)
    assert [] == [f for f in report.findings if f.verdict.violates]


def test_an_older_compaction_in_the_place_of_the_latest_is_stale() -> None:
    tracker = Tracker(KEY)
    one, two = compacted(), compacted()
    compact_call(tracker, talked(tracker), one)
    compact_call(tracker, asked("openai") | {"input": [one, *ask("openai", "More.")]}, two)
    report = sent(tracker, one)
    rows = [(f.fate, f.verdict) for f in report.findings if f.artifact == BLOB]
    assert [("stale", "degrades"), ("dropped", "degrades")] == rows


def test_a_fork_from_before_the_second_compaction_is_not_stale() -> None:
    tracker = Tracker(KEY)
    one, two = compacted(), compacted()
    compact_call(tracker, talked(tracker), one)
    start = asked("openai") | {"input": [one, *ask("openai", "More.")]}
    answer = response(reasoning(), call())
    tracker.observe(exchange("openai", start, answer))
    compact_call(tracker, start, two)
    forked = start | {"input": [*start["input"], *step("openai", answer, "And?")]}
    report = tracker.observe(exchange("openai", forked, None, status=None))
    assert [] == [f for f in report.findings if f.verdict.violates]


def test_a_compact_call_that_answers_200_without_an_artifact_degrades() -> None:
    tracker = Tracker(KEY)
    report = compact_call(tracker, talked(tracker), said())
    assert ("absent_at_source", "degrades", "O17") == row_of(report, BLOB)


def test_a_compact_call_is_known_by_its_operation_too() -> None:
    tracker = Tracker(KEY)
    answer = response(said())
    report = tracker.observe(exchange("openai", talked(tracker), answer, operation="compact"))
    assert ("absent_at_source", "degrades", "O17") == row_of(report, BLOB)


def test_a_refused_compact_call_has_no_such_row() -> None:
    tracker = Tracker(KEY)
    answer = {"error": {"message": "no"}}
    report = tracker.observe(
        exchange("openai", talked(tracker), answer, status=400, operation="compact")
    )
    assert [] == [f for f in report.findings if f.artifact == BLOB]


def test_a_compaction_reduced_to_its_text_loses_the_state() -> None:
    tracker = Tracker(KEY)
    summary = MINT.text("Summary of it all")
    block = {"type": "compaction", "content": summary, "encrypted_content": MINT.seal()}
    body = asked("anthropic")
    first = message(block, text())
    tracker.observe(exchange("anthropic", body, first))
    answer = {"role": "assistant", "content": [{"type": "text", "text": summary}, text()]}
    history(body).extend([answer, *ask("anthropic", "Next.")])
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    found = row_of(report, "anthropic.compaction.encrypted_content")
    assert ("substituted", "degrades", "A24") == found


def test_a_failed_compaction_may_be_left_out() -> None:
    tracker = Tracker(KEY)
    block = {"type": "compaction", "content": None, "encrypted_content": MINT.seal()}
    body = asked("anthropic")
    first = message(block, thinking(), text())
    tracker.observe(exchange("anthropic", body, first))
    history(body).append({"role": "assistant", "content": first["content"][1:]})
    history(body).extend(ask("anthropic", "Next."))
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    found = row_of(report, "anthropic.compaction.encrypted_content")
    assert ("dropped", "allowed", "A24") == found


def test_a_signed_compaction_whose_text_was_edited_is_refused() -> None:
    tracker = Tracker(KEY)
    block = {"type": "compaction", "content": MINT.text("Sum"), "signature": MINT.seal()}
    body = asked("anthropic")
    tracker.observe(exchange("anthropic", body, message(block, stop="compaction")))
    edited = block | {"content": "Something else, and shorter."}
    history(body)[:] = [{"role": "assistant", "content": [edited]}, *ask("anthropic", "Next.")]
    report = tracker.observe(exchange("anthropic", body, None, status=None))
    assert ("modified", "breaks", "A25") == row_of(report, "anthropic.compaction.text")


def summarised(tracker: Tracker, held: Body | None, conversation: str | None) -> Report:
    """A client that asks for a summary and starts over from it, with words around it."""
    body = talked(tracker) if held is None else asked("openai") | {"input": [held]}
    history(body).extend(ask("openai", "Summarise our work."))
    summary = " ".join(MINT.text("Part") for _ in range(3))
    content = [{"type": "output_text", "text": summary}]
    last = {"type": "message", "id": MINT.name("msg"), "role": "assistant", "content": content}
    tracker.observe(
        exchange("openai", body, response(reasoning(), last), conversation=conversation)
    )
    told = f"This session continues an earlier one.\n\n{summary}\n\nGo on."
    fresh = asked("openai") | {"input": ask("openai", told)}
    return tracker.observe(exchange("openai", fresh, None, status=None, conversation=conversation))


def test_a_client_that_summarises_by_prompting_is_named_and_allowed() -> None:
    report = summarised(Tracker(KEY), None, None)
    assert {("dropped", "allowed", "X5")} == {
        (f.fate, f.verdict, f.rule) for f in report.findings if f.artifact == REASONING
    }


def test_a_client_that_held_an_artifact_and_summarises_all_the_same_degrades() -> None:
    tracker = Tracker(KEY)
    item = compacted()
    answer = {"id": "resp_c", "object": "response.compaction", "output": [item]}
    opening = exchange("openai", asked("openai"), answer, operation="compact", conversation="c")
    tracker.observe(opening)
    report = summarised(tracker, item, "c")
    assert ("dropped", "degrades", "X5") == row_of(report, BLOB)


def test_a_client_that_never_held_anything_sealed_has_no_verdict() -> None:
    tracker = Tracker(KEY)
    answer = message(text())
    summary = answer["content"][0]["text"] + " " + MINT.text("more")
    answer["content"][0]["text"] = summary
    tracker.observe(exchange("anthropic", asked("anthropic"), answer))
    fresh: dict[str, Any] = asked("anthropic") | {"messages": ask("anthropic", f"So:\n\n{summary}")}
    report = tracker.observe(exchange("anthropic", fresh, None, status=None))
    assert (None, ()) == (report.verdict, report.findings)


def test_a_transcript_that_goes_on_without_its_compaction_has_dropped_it() -> None:
    tracker = Tracker(KEY)
    answer = {"id": "r", "object": "response.compaction", "output": [compacted()]}
    around: dict[str, Any] = {"conversation": "file", "continues": True}
    tracker.observe(Exchange(Api.RESPONSES, response=answer, status=200, **around))
    body = asked("openai") | {"input": ask("openai", "Next.")}
    report = tracker.observe(Exchange(Api.RESPONSES, request=body, **around))
    assert ("dropped", "degrades", "O16") == row_of(report, BLOB)
