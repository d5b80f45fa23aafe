"""OpenAI: what a reasoning item has to be sent with, and what may be added (O3 to O7, O23)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.builders import MINT, call, edit, reasoning, response, said, sets, without
from tests.core.conversations import Body, Change, exchange, replay

Row = tuple[str, str, str, str]
REASONING = "openai.reasoning.encrypted_content"
ENVELOPE = "openai.reasoning.envelope"
XAI: Body = {
    "provider": "xai",
    "host": "api.x.ai",
    "minted": {"provider": "xai", "host": "api.x.ai"},
}


def rows(answer: Body, change: Change, **more: Any) -> list[Row]:
    """What is neither ok nor of a prefix."""
    report = replay("openai", answer, change, **more)
    return [
        (f.artifact, f.fate.value, f.verdict.value, f.rule)
        for f in report.findings
        if f.verdict.value != "ok"
    ]


def custom() -> Body:
    return {
        "type": "custom_tool_call",
        "id": MINT.name("ctc"),
        "call_id": MINT.name("call"),
        "name": "look_up",
        "input": "q",
    }


@pytest.mark.parametrize(
    "value", [..., None, "", "msg_another"], ids=["absent", "null", "empty", "another"]
)
def test_a_message_that_lost_its_id_orphans_its_reasoning(value: Any) -> None:
    """O3: the message is known by its id alone."""
    found = rows(response(reasoning(), said()), sets("id", value, "message"))
    assert found == [("openai.reasoning", "orphaned", "breaks", "O3")]


HOSTED: dict[str, Body] = {
    "web_search_call": {"action": {"type": "search", "query": "q"}},
    "file_search_call": {"queries": ["q"]},
    "code_interpreter_call": {"code": "1 + 1"},
    "mcp_call": {"name": "look_up", "arguments": "{}"},
    "mcp_approval_request": {"name": "look_up", "arguments": "{}"},
    "image_generation_call": {"result": "aGk="},
}


@pytest.mark.parametrize("kind", HOSTED)
def test_a_call_of_a_hosted_tool_that_lost_its_id_orphans_its_reasoning(kind: str) -> None:
    """O3: it has no `call_id`."""
    item = {"type": kind, "id": MINT.name("item"), **HOSTED[kind]}
    found = rows(response(reasoning(), item), sets("id", ..., kind))
    assert found == [("openai.reasoning", "orphaned", "breaks", "O3")]


@pytest.mark.parametrize("kind", HOSTED)
def test_a_call_of_a_hosted_tool_needs_its_reasoning(kind: str) -> None:
    item = {"type": kind, "id": MINT.name("item"), **HOSTED[kind]}
    found = rows(response(reasoning(), item), without("reasoning"))
    assert {row[2:] for row in found} == {("breaks", "O4")}


def test_so_does_one_that_was_written_anew() -> None:
    def rewrite(body: Body) -> None:
        body["input"][2] = {"role": "assistant", "content": "It is 42."}

    found = rows(response(reasoning(), said()), edit(rewrite))
    assert ("openai.reasoning", "orphaned", "breaks", "O3") in found


@pytest.mark.parametrize("made", [call, custom], ids=["function", "custom"])
@pytest.mark.parametrize("value", [..., None, ""], ids=["absent", "null", "empty"])
def test_a_call_without_its_id_is_known_by_its_call_id(made: Any, value: Any) -> None:
    item = made()
    assert rows(response(reasoning(), item), sets("id", value, item["type"])) == []


@pytest.mark.parametrize("value", [..., None, ""], ids=["absent", "null", "empty"])
def test_a_reasoning_item_without_its_id_is_paired_with_nothing(value: Any) -> None:
    """O7: an id may be absent, and an empty one is; then its message needs none either."""

    def bare(body: Body) -> Body:
        return sets("id", value, "message")(sets("id", value, "reasoning")(body))

    found = rows(response(reasoning(), said()), bare)
    assert found == [("openai.reasoning.id", "dropped", "allowed", "O7")]


def test_on_xai_nothing_is_paired_by_ids() -> None:
    found = rows(response(reasoning(), said(), model="grok-4"), sets("id", ..., "message"), **XAI)
    assert found == [("openai.reasoning", "orphaned", "allowed", "X9")]


@pytest.mark.parametrize("content", ["", [], "Let me look."], ids=["empty", "none", "a text"])
def test_a_message_that_never_came_between_reasoning_and_call_is_disputed(content: Any) -> None:
    def interpose(body: Body) -> None:
        body["input"].insert(2, {"role": "assistant", "content": content})

    report = replay("openai", response(reasoning(), call()), edit(interpose))
    found = [(f.artifact, f.fate.value, f.verdict.value, f.disputed) for f in report.findings]
    assert ("openai.reasoning", "orphaned", "degrades", True) in found


def test_a_message_under_the_id_of_its_reasoning_is_disputed() -> None:
    def share(body: Body) -> None:
        body["input"][2]["id"] = body["input"][1]["id"]

    report = replay("openai", response(reasoning(), said()), edit(share))
    found = [(f.artifact, f.fate.value, f.verdict.value, f.disputed) for f in report.findings]
    assert ("openai.message", "orphaned", "degrades", True) in found


@pytest.mark.parametrize("made", [said, call], ids=["message", "call"])
def test_a_reference_to_what_followed_alone_needs_its_reasoning(made: Any) -> None:
    """O4: a reference is the item, with its id."""
    answer = response(reasoning(), made()) | {"store": True}

    def refer(body: Body) -> None:
        del body["input"][1]
        body["input"][1] = {"type": "item_reference", "id": answer["output"][1]["id"]}

    found = rows(answer, edit(refer))
    assert (REASONING, "dropped", "breaks", "O4") in found


@pytest.mark.parametrize("kind", ["item_reference", None])
def test_references_to_both_are_held_by_the_server(kind: str | None) -> None:
    answer = response(reasoning(), said()) | {"store": True}

    def refer(body: Body) -> None:
        for at in (1, 2):
            named = {"id": answer["output"][at - 1]["id"]}
            body["input"][at] = named | ({"type": kind} if kind else {})

    assert rows(answer, edit(refer)) == [(REASONING, "server_held", "allowed", "O2")]


@pytest.mark.parametrize("made", [said, call], ids=["message", "call"])
def test_a_reference_to_the_reasoning_alone_needs_what_followed(made: Any) -> None:
    """O3: a reference is the item."""
    answer = response(reasoning(), made()) | {"store": True}

    def refer(body: Body) -> None:
        body["input"][1:3] = [{"type": "item_reference", "id": answer["output"][0]["id"]}]

    assert ("openai.reasoning", "orphaned", "breaks", "O3") in rows(answer, edit(refer))


@pytest.mark.parametrize(("made", "orphaned"), [(said, True), (call, False)])
def test_behind_a_reference_to_reasoning_a_message_without_its_id_is_none(
    made: Any, *, orphaned: bool
) -> None:
    answer = response(reasoning(), made()) | {"store": True}

    def refer(body: Body) -> None:
        body["input"][1] = {"type": "item_reference", "id": answer["output"][0]["id"]}
        del body["input"][2]["id"]

    found = rows(answer, edit(refer))
    assert (("openai.reasoning", "orphaned", "breaks", "O3") in found) is orphaned


def test_the_message_alone_without_its_reasoning_breaks() -> None:
    found = rows(response(reasoning(), said()), without("reasoning"))
    assert (REASONING, "dropped", "breaks", "O4") in found


def passes_metadata(body: Body) -> None:
    for item in body["input"]:
        item["internal_chat_message_metadata_passthrough"] = {"turn_id": MINT.name("turn")}


@pytest.mark.parametrize(
    ("host", "provider", "verdict"),
    [
        ("api.openai.com", "openai", "allowed"),
        ("API.OpenAI.com:443", "openai", "allowed"),
        ("eu.api.openai.com", "openai", "allowed"),
        ("chatgpt.com", "openai", "allowed"),
        (None, "openai", "allowed"),
        ("api.githubcopilot.com", "openai", "breaks"),
        ("relay.example", "openai", "breaks"),
        ("notapi.openai.com.example", "openai", "breaks"),
        ("one.openai.azure.com", "azure", "breaks"),
    ],
)
def test_the_metadata_of_codex_is_taken_by_openai_alone(
    host: str | None, provider: str, verdict: str
) -> None:
    around: Body = {"host": host, "provider": provider}
    found = rows(response(reasoning(), call()), edit(passes_metadata), **around, minted=around)
    assert found == [(ENVELOPE, "envelope_modified", verdict, "O23")]


def test_another_key_and_that_of_codex_breaks_everywhere() -> None:
    def more(body: Body) -> None:
        passes_metadata(body)
        body["input"][1]["author"] = "me"

    found = rows(response(reasoning(), call()), edit(more))
    assert found == [(ENVELOPE, "envelope_modified", "breaks", "O23")]


@pytest.mark.parametrize("key", ["status", "created_by"])
@pytest.mark.parametrize("kept", [False, True])
def test_a_key_that_the_provider_fills_in_is_not_added_by_a_host(key: str, *, kept: bool) -> None:
    """O23: `Unknown parameter: 'input[1].status'`. One that came may go back, whatever it says."""
    item = reasoning() | ({key: "in_progress"} if kept else {})
    found = rows(response(item, call()), sets(key, "completed", "reasoning"))
    assert found == ([] if kept else [(ENVELOPE, "envelope_modified", "breaks", "O23")])


@pytest.mark.parametrize("key", ["status", "created_by", "content"])
def test_a_null_that_a_sdk_adds_is_no_key(key: str) -> None:
    assert rows(response(reasoning(), call()), sets(key, None, "reasoning")) == []


def retells(body: Body) -> None:
    item = body["input"][1]
    item["summary"] = [{"type": "summary_text", "text": "Made of what was readable."}]
    item.pop("content", None)


@pytest.mark.parametrize(
    ("model", "around", "verdict", "rule", "disputed"),
    [
        ("gpt-5.6-sol", {}, "allowed", "O9", False),
        ("grok-4", XAI, "degrades", "X9", True),
    ],
)
def test_a_made_up_summary_with_an_untouched_seal(
    model: str, around: Body, verdict: str, rule: str, *, disputed: bool
) -> None:
    item = reasoning() | {"content": [{"type": "reasoning_text", "text": "Some thought."}]}
    report = replay("openai", response(item, call(), model=model), edit(retells), **around)
    found = [
        (f.artifact, f.verdict.value, f.rule, f.disputed)
        for f in report.findings
        if f.verdict.value != "ok"
    ]
    assert found == [(ENVELOPE, verdict, rule, disputed)]


@pytest.mark.parametrize(
    ("model", "around", "verdict"), [("gpt-5.6-sol", {}, "allowed"), ("grok-4", XAI, "degrades")]
)
def test_a_summary_in_other_words_is_a_changed_key(model: str, around: Body, verdict: str) -> None:
    """Gained or changed."""
    found = rows(response(reasoning("As it was."), call(), model=model), edit(retells), **around)
    assert [row[:3] for row in found] == [(ENVELOPE, "envelope_modified", verdict)]


@pytest.mark.parametrize("value", [[], None, ...], ids=["empty", "null", "gone"])
def test_a_summary_may_be_empty_or_gone(value: Any) -> None:
    answer = response(reasoning("What was weighed."), call())
    assert rows(answer, sets("summary", value, "reasoning")) == []


def test_an_exchange_of_the_builders_goes_to_a_host_of_openai() -> None:
    assert exchange("openai", None, None).host == "api.openai.com"
