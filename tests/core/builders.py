"""Single blocks and items as providers mint them, and small hosts that spoil them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from otel_sealed.model import Report
from otel_sealed.tracker import Tracker
from tests.core.conversations import (
    KEY,
    Body,
    Change,
    Mint,
    ask,
    base,
    exchange,
    history,
    replay,
    same,
    step,
)

Case = Callable[[], list[Report]]

MINT = Mint("builders")


# ------------------------------------------------------------------------- what is said on the wire


def thinking(text: str | None = None, **more: Any) -> Body:
    thought = MINT.text("Thought") if text is None else text
    return {"type": "thinking", "thinking": thought, "signature": MINT.seal(), **more}


def redacted() -> Body:
    return {"type": "redacted_thinking", "data": MINT.seal()}


def use() -> Body:
    return {"type": "tool_use", "id": MINT.name("toolu"), "name": "look_up", "input": {}}


def text() -> Body:
    return {"type": "text", "text": MINT.text("Answer")}


def message(*content: Body, stop: str = "end_turn", model: str = "claude-opus-5") -> Body:
    return {
        "id": MINT.name("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": stop,
    }


def reasoning(summary: str | None = None) -> Body:
    parts = [] if summary is None else [{"type": "summary_text", "text": summary}]
    blob = MINT.seal()
    return {"type": "reasoning", "id": MINT.name("rs"), "summary": parts, "encrypted_content": blob}


def call() -> Body:
    return {
        "type": "function_call",
        "id": MINT.name("fc"),
        "call_id": MINT.name("call"),
        "name": "look_up",
        "arguments": "{}",
    }


def said(**more: Any) -> Body:
    content = [{"type": "output_text", "text": MINT.text("Answer")}]
    return {
        "type": "message",
        "id": MINT.name("msg"),
        "role": "assistant",
        "content": content,
        **more,
    }


def compacted() -> Body:
    return {"type": "compaction", "id": MINT.name("cmp"), "encrypted_content": MINT.seal()}


def response(*output: Body, model: str = "gpt-5.6-sol") -> Body:
    return {"id": MINT.name("resp"), "model": model, "output": list(output), "status": "completed"}


def part(kind: str = "call", *, signed: bool = True) -> Body:
    kinds: dict[str, Body] = {
        "call": {
            "functionCall": {
                "id": MINT.name("call"),
                "name": "look_up",
                "args": {"q": MINT.text("q")},
            }
        },
        "text": {"text": MINT.text("Answer")},
        "empty": {"text": ""},
        "image": {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        "only": {},
    }
    return kinds[kind] | ({"thoughtSignature": MINT.seal()} if signed else {})


def candidate(*parts: Body, model: str = "gemini-3-pro-preview") -> Body:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": model}


def searched(kind: str = "web") -> list[Body]:
    """A server tool and its sealed result."""
    name = MINT.name("srvtoolu")
    query = {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}
    results: dict[str, Body] = {
        "web": {
            "type": "web_search_tool_result",
            "tool_use_id": name,
            "content": [
                {
                    "type": "web_search_result",
                    "url": "https://one.example",
                    "title": "One",
                    "encrypted_content": MINT.seal(),
                }
            ],
        },
        "code": {
            "type": "code_execution_tool_result",
            "tool_use_id": name,
            "content": {
                "type": "encrypted_code_execution_result",
                "encrypted_stdout": MINT.seal(),
            },
        },
        "advisor": {
            "type": "advisor_tool_result",
            "tool_use_id": name,
            "content": {"type": "advisor_redacted_result", "encrypted_content": MINT.seal()},
        },
    }
    return [query, results[kind], text()]


# -------------------------------------------------------------------------------- what hosts do


def edit(change: Callable[[Body], object]) -> Change:
    """A change of a body from a function that edits it."""

    def changed(body: Body) -> Body:
        body = copy.deepcopy(body)
        change(body)
        return body

    return changed


def blocks(body: Body) -> list[Body]:
    """The content of the first assistant message of a request to Anthropic."""
    found: list[Body] = next(m for m in body["messages"] if m["role"] == "assistant")["content"]
    return found


def parts_of(body: Body) -> list[Body]:
    """The parts of the first content of the model."""
    found: list[Body] = next(c for c in body["contents"] if c["role"] == "model")["parts"]
    return found


def without(*types: str) -> Change:
    """A host that leaves out blocks or items of some types."""

    def change(body: Body) -> None:
        for turn in body.get("messages", ()):
            if turn["role"] == "assistant":
                turn["content"] = [b for b in turn["content"] if b["type"] not in types]
        if "input" in body:
            body["input"] = [i for i in body["input"] if i.get("type") not in types]

    return edit(change)


def sets(key: str, value: Any, kind: str) -> Change:
    """A host that sets a key of every block or item of a type; Ellipsis takes it away."""

    def change(body: Body) -> None:
        found = [b for m in body.get("messages", ()) for b in listed(m["content"])]
        for block in [*found, *body.get("input", ())]:
            if block.get("type") == kind:
                if value is ...:
                    block.pop(key)
                else:
                    block[key] = value

    return edit(change)


def listed(content: Any) -> list[Body]:
    """The objects of a list of blocks; nothing for a plain text."""
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def unsigned(body: Body) -> Body:
    """A host that loses every signature of Gemini."""
    body = copy.deepcopy(body)
    for content in body["contents"]:
        for one in content["parts"]:
            one.pop("thoughtSignature", None)
    return body


def asked(dialect: str, **more: Any) -> Body:
    """A first request with other settings."""
    body = base(dialect) | more
    history(body).extend(ask(dialect, "Question."))
    return body


def chat(
    dialect: str,
    *answers: Body,
    change: Change = same,
    ends: str | None = None,
    first: Body | None = None,
    tracker: Tracker | None = None,
    **around: Any,
) -> list[Report]:
    """Several turns, faithful but for the last request.

    `ends`: a question that makes the last turn a finished one.
    """
    tracker = tracker or Tracker(KEY)
    body = asked(dialect) if first is None else copy.deepcopy(first)
    for number, answer in enumerate(answers):
        tracker.observe(exchange(dialect, copy.deepcopy(body), answer))
        history(body).extend(step(dialect, answer, f"Question {number + 1}."))
    if ends is not None:
        history(body).extend(ask(dialect, ends))
    last = exchange(dialect, change(copy.deepcopy(body)), None, status=None, **around)
    return [tracker.observe(last)]


def once(dialect: str, answer: Body, change: Change = same, **more: Any) -> Case:
    """A case of one turn and its replay."""
    return lambda: [replay(dialect, answer, change, **more)]


def turns(dialect: str, *answers: Body, **more: Any) -> Case:
    """A case of several turns."""
    return lambda: chat(dialect, *answers, **more)


def alone(dialect: str, request: Body | None, answer: Body | None, **more: Any) -> Case:
    """A case of one exchange."""
    return lambda: [Tracker(KEY).observe(exchange(dialect, request, answer, **more))]
