"""Strips show every block of a wire: those inside others, and Chat's in lists of their own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from otel_sealed.cli.strips import title
from otel_sealed.contract import Api, Exchange
from otel_sealed.triage.files import found_in
from otel_sealed.triage.incidents import ordered
from otel_sealed.triage.index import Index
from otel_sealed.triage.strip import Strip, strips
from tests.core.builders import MINT, edit, message, redacted, searched, thinking, use
from tests.core.chat_cases import answer as chat_answer
from tests.core.chat_cases import blocked, called, relayed_text, texted, thought
from tests.core.chat_wire import detail, encrypted, tool_call
from tests.core.conversations import Body, exchange, history, request, step
from tests.triage.replay import replayed

Column = tuple[str, str, str]
Touch = Callable[[Body], object]


def drawn(dialect: str, answer: Body, touch: Touch, folder: Path) -> list[Column]:
    """The columns of the request that follows an answer: came, went back, fate of what is sealed.

    `touch`: what a host does to the message of the model.
    """
    body = request(dialect, [])
    first = exchange(dialect, copy.deepcopy(body), answer)
    history(body).extend(step(dialect, answer, "And?"))
    changed = edit(lambda b: touch(next(m for m in history(b) if m.get("role") == "assistant")))
    refused: Body = {"error": {"message": "no"}}
    second = exchange(dialect, changed(body), refused, status=400)
    (strip,) = shown([first, second], folder)
    return [(x.came, x.back, x.fate if x.sealed else "") for x in strip.columns]


def shown(exchanges: list[Exchange], folder: Path) -> list[Strip]:
    """The strip of the second call."""
    with Index() as index:
        index.update(found_in((replayed(folder, exchanges),)))
        key = index.incidents()[0].conversation
        return strips(ordered(index.conversation(key)), [2])


def lost(*types: str) -> list[Column]:
    return [(type_, "", "dropped") for type_ in types]


def test_a_block_inside_a_result_that_lost_its_seal_is_at_its_place(tmp_path: Path) -> None:
    answer = message(thinking(), *searched("code"), use(), stop="tool_use")
    touch: Touch = lambda m: m["content"][2]["content"].pop("encrypted_stdout")  # noqa: E731
    found = drawn("anthropic", answer, touch, tmp_path)
    assert found[2:4] == [
        ("code_execution_tool_result", "code_execution_tool_result", ""),
        ("encrypted_code_execution_result", "encrypted_code_execution_result", "dropped"),
    ]


def test_a_block_after_the_results_of_two_searches_is_at_its_place(tmp_path: Path) -> None:
    answer = message(
        thinking(), *searched()[:2], redacted(), *searched()[:2], use(), stop="tool_use"
    )
    found = drawn("anthropic", answer, lambda m: m["content"].pop(3), tmp_path)
    kept = [(one, one, "") for one in ("server_tool_use", "web_search_tool_result")]
    result = ("web_search_result", "web_search_result", "intact")
    assert found == [
        ("thinking", "thinking", "intact"),
        *kept,
        result,
        *lost("redacted_thinking"),
        *kept,
        result,
        ("tool_use", "tool_use", ""),
    ]


def in_fields_of_its_own() -> Body:
    """A reply through LiteLLM whose details are among what it has no field for."""
    beside = {"reasoning_details": [detail(MINT), encrypted(MINT, 1)]}
    return chat_answer(
        "openrouter", content="So.", provider_specific_fields=beside, calls=[tool_call(MINT)]
    )


def of_portkey() -> Body:
    blocks = [thought(), {"type": "text", "text": "So."}]
    return chat_answer("openrouter", content="So.", content_blocks=blocks, calls=[tool_call(MINT)])


@pytest.mark.parametrize(
    ("dialect", "make", "touch", "expected"),
    [
        (
            "openrouter",
            lambda: chat_answer(
                "openrouter",
                content="So.",
                reasoning_details=[detail(MINT), encrypted(MINT, 1)],
                calls=[tool_call(MINT)],
            ),
            lambda m: m["reasoning_details"].pop(1),
            [("reasoning.text", "reasoning.text", "intact"), *lost("reasoning.encrypted")],
        ),
        (
            "openrouter",
            in_fields_of_its_own,
            lambda m: m.pop("provider_specific_fields"),
            lost("reasoning.text", "reasoning.encrypted"),
        ),
        (
            "openrouter",
            lambda: blocked(thought(), {"type": "redacted_thinking", "data": MINT.seal()}),
            lambda m: m["thinking_blocks"].pop(0),
            [*lost("thinking"), ("redacted_thinking", "redacted_thinking", "intact")],
        ),
        (
            "openrouter",
            of_portkey,
            lambda m: m["content_blocks"][0].update(signature=MINT.seal()),
            [("thinking", "thinking", "modified")],
        ),
        ("chat", texted, lambda m: m.pop("extra_content"), lost("thought_signature")),
        (
            "chat",
            relayed_text,
            lambda m: m.pop("provider_specific_fields"),
            lost("thought_signatures"),
        ),
        (
            "chat",
            lambda: called(count=2),
            lambda m: m["tool_calls"][0].pop("extra_content"),
            [("function", "function", "dropped")],
        ),
    ],
    ids=["details", "beside", "thinking_blocks", "portkey", "google", "litellm", "on a call"],
)
def test_a_seal_of_chat_is_shown_with_its_block(
    dialect: str,
    make: Callable[[], Body],
    touch: Touch,
    expected: list[Column],
    tmp_path: Path,
) -> None:
    found = drawn(dialect, make(), touch, tmp_path)
    assert [column for column in found if column[2]] == expected


@pytest.mark.parametrize("listed", ["steps", "outputs"])
def test_a_thought_of_interactions_that_was_lost_is_at_its_place(
    listed: str, tmp_path: Path
) -> None:
    """Both revisions of the wire."""
    thought_ = {"type": "thought", "signature": MINT.seal(), "summary": []}
    call_ = {"type": "function_call", "id": "call_1", "name": "look", "arguments": {"q": "1"}}
    result = {"type": "function_result", "call_id": "call_1", "result": "found"}
    question: Body = {"type": "user_input", "content": [{"type": "text", "text": "Which?"}]}
    body: Body = {"model": "gemini-3-pro-preview", "store": False, "input": [question]}
    answer: Body = {"id": "v1_1", "model": body["model"], listed: [thought_, call_]}
    more = body | {"input": [question, call_, result]}
    calls = [
        Exchange(Api.INTERACTIONS, request=body, response=answer, status=200),
        Exchange(Api.INTERACTIONS, request=more, response={}, status=200),
    ]
    (found,) = shown(calls, tmp_path)
    assert [(x.came, x.back, x.fate if x.sealed else "") for x in found.columns[:2]] == [
        ("thought", "", "dropped"),
        ("function_call", "function_call", ""),
    ]


def test_a_refusal_of_no_known_class_is_no_missing_answer(tmp_path: Path) -> None:
    answer = message(thinking(), use(), stop="tool_use")
    body = request("anthropic", [])
    first = exchange("anthropic", copy.deepcopy(body), answer)
    history(body).extend(step("anthropic", answer, "And?"))
    del history(body)[1]["content"][0]
    second = exchange("anthropic", body, {"error": {"message": "no"}}, status=400)
    (found,) = shown([first, second], tmp_path)
    assert title(found) == "turn 2: refused (other)"
