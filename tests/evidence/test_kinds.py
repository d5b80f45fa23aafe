"""`verify` on cassettes of the kinds that public ones have: what the provider answered is said.

They are made up anew: streams whose events seal an item each in other bytes (O11, O20), tool loops
without thinking (A1), requests that say nothing of thinking (A9), items that lost their ids (O3,
O4, O7), and words of the user after results (A2).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_sealed.cli import main
from tests.core.builders import (
    MINT,
    call,
    compacted,
    message,
    reasoning,
    redacted,
    response,
    said,
    thinking,
    use,
)
from tests.core.conversations import Body, history, request, server_sent, step

Kind = tuple[str, str, str]
PATHS = {
    "anthropic": "https://api.anthropic.com/v1/messages",
    "openai": "https://api.openai.com/v1/responses",
}
MANUAL = {"type": "enabled", "budget_tokens": 2048}
ADAPTIVE = {"type": "adaptive"}


def interaction(dialect: str, asked: Body, answered: str, status: int = 200) -> Body:
    """One interaction as vcrpy writes it."""
    return {
        "request": {
            "method": "POST",
            "uri": PATHS[dialect],
            "headers": {"content-type": ["application/json"]},
            "body": json.dumps(asked),
        },
        "response": {
            "status": {"code": status, "message": ""},
            "headers": {},
            "body": {"string": answered},
        },
    }


class Cassette:
    """A conversation of one answer and what goes back, recorded."""

    def __init__(self, dialect: str, answer: Body, **asked: Any) -> None:
        """`asked` is what the requests say; None takes a key out."""
        self.dialect = dialect
        self.answer = answer
        self.body = request(dialect, []) | asked
        self.body = {key: value for key, value in self.body.items() if value is not None}
        self.recorded = [interaction(dialect, self.body, json.dumps(answer))]

    def streamed(self, events: list[Body]) -> Cassette:
        self.recorded = [interaction(self.dialect, self.body, server_sent(events).decode())]
        return self

    def then(self, sent: Body, *more: Body, status: int = 200) -> Cassette:
        """The next request has the answer as `sent`, and `more` at its end."""
        self.body = copy.deepcopy(self.body)
        history(self.body).extend([*step(self.dialect, sent, "Go on."), *more])
        self.recorded.append(interaction(self.dialect, self.body, "{}", status))
        return self

    def verified(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[list[Kind]]:
        """Artifact, fate and verdict of each row, from JSON and from YAML."""
        whole = {"version": 1, "interactions": self.recorded}
        found = []
        for name, text in (("a.json", json.dumps(whole)), ("a.yaml", yaml.safe_dump(whole))):
            (folder / name).write_text(text, "utf-8")
            main(["verify", "--json", str(folder / name)])
            rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            found.append([(r["artifact"], r["fate"], r["verdict"]) for r in rows])
        return found


Make = Callable[[], Cassette]


# ------------------------------------------------------------------------------------- streams


def _resealed(*output: Body) -> tuple[Body, list[Body], list[Body]]:
    """An answer, the events that bring it, and its items as `output_item.done` had them."""
    answer = response(*output)
    done = [
        item | ({"encrypted_content": MINT.seal()} if "encrypted_content" in item else {})
        for item in output
    ]
    events: list[Body] = [
        {"type": "response.created", "response": answer | {"output": [], "status": "in_progress"}}
    ]
    for index, item in enumerate(done):
        begun = dict(item)
        if "encrypted_content" in begun:
            begun["encrypted_content"] = MINT.seal()[:64]
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": begun},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    return answer, [*events, {"type": "response.completed", "response": answer}], done


def search() -> Body:
    action = {"type": "search", "query": MINT.text("query")}
    return {
        "type": "web_search_call",
        "id": MINT.name("ws"),
        "status": "completed",
        "action": action,
    }


OUTPUTS: dict[str, Callable[[], list[Body]]] = {
    "phases": lambda: [reasoning(), said(phase="commentary"), reasoning("So."), call()],
    "web search": lambda: [reasoning(), search(), reasoning(), said()],
    "compaction": lambda: [compacted(), reasoning(), said()],
}


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("which", ["done", "completed"])
def test_a_resealed_stream_is_intact_with_the_items_of_either_event(
    kind: str, which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, events, done = _resealed(*OUTPUTS[kind]())
    sent = answer | {"output": done if which == "done" else answer["output"]}
    cassette = Cassette("openai", answer).streamed(events).then(sent)
    for rows in cassette.verified(tmp_path, capsys):
        assert {row[1:] for row in rows} == {("intact", "ok")}


def test_a_resealed_item_of_which_the_end_was_cut_is_modified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, events, done = _resealed(reasoning(), call())
    done[0] = done[0] | {"encrypted_content": done[0]["encrypted_content"][:-20]}
    cassette = Cassette("openai", answer).streamed(events).then(answer | {"output": done})
    for rows in cassette.verified(tmp_path, capsys):
        assert rows[0] == ("openai.reasoning.encrypted_content", "modified", "breaks")


# ------------------------------------------------------------- loops of Anthropic, and thinking


def bare(answer: Body, *types: str) -> Body:
    return answer | {"content": [b for b in answer["content"] if b["type"] not in types]}


@pytest.mark.parametrize(
    ("model", "mode", "verdict"),
    [
        ("claude-sonnet-5", None, "degrades"),
        ("claude-sonnet-5", ADAPTIVE, "degrades"),
        ("claude-opus-5", MANUAL, "breaks"),
        ("claude-sonnet-4-5", MANUAL, "breaks"),
        ("claude-opus-4-8", None, "allowed"),
    ],
)
def test_a_loop_that_comes_back_without_its_thinking(
    model: str,
    mode: Body | None,
    verdict: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = message(thinking(), use(), stop="tool_use", model=model)
    asks = mode if mode is not None or "4-8" not in model else MANUAL
    cassette = Cassette("anthropic", answer, model=model, thinking=asks)
    cassette.body = {k: v for k, v in cassette.body.items() if k != "thinking"}
    cassette.body |= {} if mode is None else {"thinking": mode}
    for rows in cassette.then(bare(answer, "thinking")).verified(tmp_path, capsys):
        assert rows == [("anthropic.thinking.signature", "dropped", verdict)]


@pytest.mark.parametrize(
    ("model", "verdict"), [("claude-opus-4-5", "breaks"), ("claude-opus-5", "ok")]
)
def test_thinking_that_comes_back_where_nothing_asks_for_it(
    model: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = message(thinking(), use(), stop="tool_use", model=model)
    cassette = Cassette("anthropic", answer, model=model, thinking=MANUAL)
    del cassette.body["thinking"]
    for rows in cassette.then(answer).verified(tmp_path, capsys):
        assert rows[0] == ("anthropic.thinking.signature", "intact", verdict)


def test_a_word_of_the_user_in_a_message_of_its_own_does_not_end_the_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = message(thinking(), redacted(), use(), stop="tool_use")
    word = {"role": "user", "content": "Be brief."}
    cassette = Cassette("anthropic", answer).then(bare(answer, "redacted_thinking"), word)
    for rows in cassette.verified(tmp_path, capsys):
        assert ("anthropic.redacted_thinking.data", "dropped", "breaks") in rows


# ----------------------------------------------------------------------------------- items and ids


def without_ids(answer: Body, *types: str) -> Body:
    """The answer whose items of some types lost their ids."""
    output = [
        {k: v for k, v in item.items() if k != "id" or item["type"] not in types}
        for item in answer["output"]
    ]
    return answer | {"output": output}


@pytest.mark.parametrize(
    ("follower", "types", "expected"),
    [
        (said, ("message",), [("openai.reasoning", "orphaned", "breaks")]),
        (search, ("web_search_call",), [("openai.reasoning", "orphaned", "breaks")]),
        (call, ("function_call",), []),
        (
            said,
            ("message", "reasoning"),
            [("openai.reasoning.id", "dropped", "allowed")],
        ),
    ],
    ids=["message", "search", "call", "both"],
)
def test_items_that_lost_their_ids(
    follower: Callable[[], Body],
    types: tuple[str, ...],
    expected: list[Kind],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = response(reasoning(), follower())
    cassette = Cassette("openai", answer).then(without_ids(answer, *types))
    for rows in cassette.verified(tmp_path, capsys):
        assert [row for row in rows if row[2] != "ok"] == expected


def test_a_reference_to_a_message_alone_needs_its_reasoning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = response(reasoning(), said()) | {"store": True}
    named = {"type": "item_reference", "id": answer["output"][1]["id"]}
    cassette = Cassette("openai", answer, store=True).then(answer | {"output": [named]})
    for rows in cassette.verified(tmp_path, capsys):
        assert ("openai.reasoning.encrypted_content", "dropped", "breaks") in rows
