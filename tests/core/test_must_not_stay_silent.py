"""The twelve situations of the provider contract in which silence would be wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from otel_sealed.model import Finding, ProviderVerdict, Rejection, Report
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
    parts_of,
    reasoning,
    redacted,
    response,
    said,
    sets,
    text,
    thinking,
    use,
    without,
)
from tests.core.conversations import (
    KEY,
    Body,
    ask,
    exchange,
    history,
    replay,
    request,
    rows,
    step,
)

BINDING = "claude-fable-5-2"


def loud(*reports: Report) -> list[tuple[str, str, str]]:
    """(artifact, fate, verdict) of every violation."""
    return [
        (f.artifact, f.fate.value, f.verdict.value) for f in rows(reports) if f.verdict.violates
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b | {"system": "You are a clerk. It is noon."},
        lambda b: b | {"tools": [*b["tools"], {"name": "new", "input_schema": {}}]},
        edit(lambda b: b["messages"][0]["content"][0].update(text="Another question.")),
    ],
    ids=["system", "tools", "message"],
)
def test_1_prefix_changed_on_a_binding_model(change: Any) -> None:
    """The seal is equal, what stands before it is not (A12)."""
    answer = message(thinking(), use(), model=BINDING)
    report = replay("anthropic", answer, change, asked=asked("anthropic", model=BINDING))
    assert loud(report) == [("request.prefix", "prefix_changed", "breaks")]


def test_1_tool_result_trimmed() -> None:
    """A tool result before a seal was cut (A12)."""
    answers = [message(thinking(), use(), model=BINDING) for _ in range(2)]

    def change(body: Body) -> None:
        body["messages"][2]["content"][0]["content"] = "[cut]"

    first = asked("anthropic", model=BINDING)
    report = chat("anthropic", *answers, change=edit(change), first=first)
    assert loud(*report) == [("request.prefix", "prefix_changed", "breaks")]


def test_1_prefix_changed_behind_a_compaction() -> None:
    """Turns behind a compaction block stay valid only under the same system and tools (A25)."""
    block = {
        "type": "compaction",
        "content": "All that was said.",
        "encrypted_content": "Q2Fu" * 30,
    }
    answers = [
        message(thinking(), text(), model=BINDING),
        message(block, text(), model=BINDING),
        message(thinking(), use(), model=BINDING),
    ]

    def change(body: Body) -> None:
        del body["messages"][:3]
        body["system"] = "Other."

    first = asked("anthropic", model=BINDING)
    report = chat("anthropic", *answers, change=edit(change), first=first)
    assert loud(*report) == [("request.prefix", "prefix_changed", "breaks")]


def test_1_prefix_changed_on_newer_openai_models() -> None:
    """Reasoning items behind a changed prefix are dropped with 200 (O13)."""
    answer = response(reasoning(), call(), model="gpt-6.2")
    report = replay(
        "openai", answer, lambda b: b | {"tools": []}, asked=asked("openai", model="gpt-6.2")
    )
    assert loud(report) == [("request.prefix", "prefix_changed", "degrades")]


def test_2_id_rewritten() -> None:
    """The blob is equal, the id it is bound to is not (O6)."""
    report = replay("openai", response(reasoning(), call()), sets("id", "rs_mine", "reasoning"))
    assert loud(report) == [("openai.reasoning.id", "modified", "breaks")]


@pytest.mark.parametrize("value", [..., "final_answer"], ids=["lost", "changed"])
def test_3_phase_lost(value: Any) -> None:
    """The phase of a message is state as well (O21)."""
    answer = response(reasoning(), said(phase="commentary"), call())
    report = replay("openai", answer, sets("phase", value, "message"))
    assert [row[0] for row in loud(report)] == ["openai.message.phase"]


def test_4_redacted_block_filtered() -> None:
    """Thinking is kept, the redacted block beside it is lost (A2)."""
    answer = message(thinking(), redacted(), use())
    report = replay("anthropic", answer, without("redacted_thinking"))
    assert loud(report) == [("anthropic.redacted_thinking.data", "dropped", "breaks")]


def test_5_empty_text_part_lost() -> None:
    """A Gemini stream brings the signature in a part with empty text (G5)."""
    answer = candidate(part("text", signed=False), part("empty"))
    report = replay("gemini", answer, edit(lambda b: parts_of(b).pop()))
    assert loud(report) == [("gemini.part.thought_signature", "dropped", "degrades")]


def test_6_compaction_reduced_to_its_text() -> None:
    """The text of a compaction block is not its state (A24)."""
    words = "All that was said before, in a few words."
    block = {"type": "compaction", "content": words, "encrypted_content": MINT.seal()}

    def change(body: Body) -> None:
        blocks(body)[0] = {"type": "text", "text": words}

    report = replay("anthropic", message(block, text()), edit(change))
    assert loud(report) == [("anthropic.compaction.encrypted_content", "substituted", "degrades")]


def test_6_compaction_block_without_its_sealed_field() -> None:
    """An SDK that ignores the delta brings the block back without its seal."""
    block = {"type": "compaction", "content": "In short.", "encrypted_content": MINT.seal()}
    change = edit(lambda b: blocks(b)[0].pop("encrypted_content"))
    report = replay("anthropic", message(block, text()), change)
    assert loud(report) == [("anthropic.compaction.encrypted_content", "dropped", "degrades")]


def test_7_encrypted_content_of_web_results_lost() -> None:
    """Titles and addresses survive, the sealed content does not (A26)."""
    result = {
        "type": "web_search_result",
        "url": "https://one.example",
        "title": "One",
        "encrypted_content": MINT.seal(),
    }
    answer = message(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [result]},
        text(),
    )
    change = edit(lambda b: blocks(b)[1]["content"][0].pop("encrypted_content"))
    report = replay("anthropic", answer, change)
    assert loud(report) == [("anthropic.web_search_result.encrypted_content", "dropped", "breaks")]


def test_8_dummy_in_place_of_a_held_signature() -> None:
    """A dummy hurts quality where a real signature was held (G9)."""
    change = edit(
        lambda b: parts_of(b)[0].update(thoughtSignature="skip_thought_signature_validator")
    )
    report = replay("gemini", candidate(part()), change)
    assert loud(report) == [("gemini.part.thought_signature", "fabricated", "degrades")]


def answered(dialect: str, first: Body, second: Body, **around: Any) -> Report:
    """The report of a faithful replay to which the provider says something."""
    tracker = Tracker(KEY)
    body = request(dialect, [])
    tracker.observe(exchange(dialect, copy.deepcopy(body), first))
    history(body).extend(step(dialect, first, "And?"))
    return tracker.observe(exchange(dialect, body, second, **around))


def test_9_anthropic_reports_a_removal_with_200() -> None:
    """A block removed silently is the provider's verdict on that block."""
    entry = {
        "type": "thinking_dropped",
        "path": "messages.1.content.0",
        "reason": "model_binding_mismatch",
    }
    second = message(text()) | {"input_transformations": [entry]}
    report = answered("anthropic", message(thinking(), use()), second)
    assert report.provider_verdict is ProviderVerdict.REMOVED
    assert [r.reason for r in report.removals] == ["model_binding_mismatch"]
    assert {(f.artifact, f.provider_verdict.value) for f in report.findings} == {
        ("anthropic.thinking.signature", "removed"),
        ("anthropic.thinking.text", "removed"),
    }
    assert {f.locus and f.locus.value for f in report.findings} == {"beyond"}


def test_9_openai_reports_a_removal_with_200() -> None:
    """The entry names the item by its id."""
    first = response(reasoning(), call())
    entry = {
        "type": "reasoning",
        "action": "removed",
        "id": first["output"][0]["id"],
        "reason": "prefix_mismatch",
    }
    second = response(reasoning(), said()) | {"input_transformations": [entry]}
    report = answered("openai", first, second)
    removed = [f for f in report.findings if f.provider_verdict is ProviderVerdict.REMOVED]
    assert {f.artifact for f in removed} == {
        "openai.reasoning.encrypted_content",
        "openai.reasoning.id",
    }


def test_9_missing_thought_signature_with_200() -> None:
    """Gemini can refuse inside a 200 (G15)."""
    second = candidate()
    second["candidates"][0]["finishReason"] = "MISSING_THOUGHT_SIGNATURE"
    report = answered("gemini", candidate(part()), second)
    assert report.provider_verdict is ProviderVerdict.REJECTED
    assert report.rejection is Rejection.SIGNATURE_MISSING


def test_9_xai_drop_with_200() -> None:
    """xAI accepts the loss; only we can say it."""
    answer = response(reasoning(), call(), model="grok-5")

    def change(body: Body) -> None:
        body["input"] = [i for i in body["input"] if i.get("type") != "reasoning"]
        for item in body["input"]:
            item.pop("id", None)

    around: Body = {"provider": "xai", "host": "api.x.ai", "model": "grok-5"}
    report = replay(
        "openai",
        answer,
        edit(change),
        minted=around,
        asked=asked("openai", model="grok-5"),
        **around,
    )
    assert [row[1] for row in loud(report)] == ["dropped"]


def test_10_ids_stripped_and_reasoning_dropped() -> None:
    """No error will ever come (O5)."""

    def change(body: Body) -> None:
        body["input"] = [i for i in body["input"] if i.get("type") != "reasoning"]
        for item in body["input"]:
            item.pop("id", None)

    report = replay("openai", response(reasoning(), call()), edit(change))
    assert loud(report) == [("openai.reasoning.encrypted_content", "dropped", "degrades")]


def test_11_a_retry_that_stripped_thinking_and_succeeded() -> None:
    """A refused call is repeated without its seals: the second is seen as what it is."""
    tracker = Tracker(KEY)
    answer = message(thinking(), use())
    body = request("anthropic", [])
    tracker.observe(exchange("anthropic", copy.deepcopy(body), answer))
    history(body).extend(step("anthropic", answer, "And?"))
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    refused = tracker.observe(exchange("anthropic", copy.deepcopy(body), error, status=400))
    stripped = without("thinking")(body)
    accepted = tracker.observe(exchange("anthropic", stripped, message(text())))
    assert (loud(refused), refused.provider_verdict.value) == ([], "rejected")
    # contract-corrections, A1: where thinking is adaptive the loop goes on without any of it
    assert loud(accepted) == [("anthropic.thinking.signature", "dropped", "degrades")]
    assert accepted.provider_verdict is ProviderVerdict.ACCEPTED


def test_12_fallback_removed_between_two_runs_of_thinking() -> None:
    """Without the fallback block two runs of thinking merge (A20)."""
    answer = message(thinking(), {"type": "fallback"}, thinking("two"), use())
    found: list[Finding] = rows([replay("anthropic", answer, without("fallback"))])
    assert [(f.artifact, f.fate.value) for f in found if f.verdict.violates] == [
        ("anthropic.thinking.signature", "merged"),
        ("anthropic.thinking.signature", "merged"),
    ]


@pytest.mark.parametrize(
    "spelt",
    [
        '{"verdict":"the second","size":1}',
        '{\n  "size": 1,\n  "verdict": "the second"\n}',
        ' {"verdict": "the second", "size": 1, "note": null}\n',
    ],
)
@pytest.mark.parametrize("dialect", ["openai", "gemini"])
def test_an_answer_that_the_host_keeps_as_an_object(dialect: str, spelt: str) -> None:
    """Written anew, the JSON is the same answer, and its seal is lost."""
    whole = '{"verdict": "the second", "size": 1}'
    if dialect == "openai":
        answer = response(reasoning(), said(content=[{"type": "output_text", "text": whole}]))
        back: Body = {"role": "assistant", "content": spelt}
    else:
        answer = candidate(part("text") | {"text": whole})
        back = {"role": "model", "parts": [{"text": spelt}]}
    tracker = Tracker(KEY)
    body = request(dialect, [])
    tracker.observe(exchange(dialect, body, answer))
    history(body).extend([back, *ask(dialect, "And now?")])
    report = tracker.observe(exchange(dialect, body, None))
    assert [(fate, verdict) for _, fate, verdict in loud(report)] == [("dropped", "degrades")]
