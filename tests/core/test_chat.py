"""Chat Completions: where sealed values ride along, and the many replies that hold none."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Report, State
from otel_sealed.providers import dialects
from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, edit
from tests.core.chat_cases import (
    answer,
    blocked,
    called,
    in_id,
    on_detail,
    on_first,
    reasoned,
    relayed,
    relayed_text,
    short_ids,
    texted,
    thought,
    without,
)
from tests.core.chat_wire import chat_events, detail, encrypted, signature, tool_call
from tests.core.conversations import (
    KEY,
    STREAM,
    Body,
    Delivery,
    exchange,
    history,
    replay,
    request,
    row_of,
    step,
)

FOLD = dialects()[Api.CHAT_COMPLETIONS].fold
ON_CALL = "gemini.tool_call.thought_signature"
ON_TEXT = "gemini.message.thought_signature"
IN_ID = "litellm.tool_call.thought_signature"
RELAYED = "litellm.message.thought_signature"
DATA = "openrouter.reasoning_details.data"
SIGNATURE = "openrouter.reasoning_details.signature"
TEXT = "openrouter.reasoning_details.text"
THINKING = "litellm.thinking_blocks.signature"
THINKING_TEXT = "litellm.thinking_blocks.text"
HIDDEN = "litellm.thinking_blocks.data"
OPENAI: dict[str, Any] = {"provider": "", "host": "api.openai.com", "model": "gpt-5.6-sol"}
NOWHERE: dict[str, Any] = {"provider": "", "host": "gateway.internal"}


def came(reply: Body | None, dialect: str = "openrouter", **around: Any) -> Report:
    """The report of one first call."""
    return Tracker(KEY).observe(exchange(dialect, request(dialect, []), reply, **around))


def received(report: Report) -> list[tuple[str, str]]:
    return [(one.artifact, one.path) for one in report.received]


def message_of(reply: Body) -> Body:
    found: Body = reply["choices"][0]["message"]
    return found


# ------------------------------------------------------------------------------ what is sealed


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            reasoned(encrypted(MINT), detail(MINT, 1)),
            [(DATA, "reasoning_details.0"), (SIGNATURE, "reasoning_details.1")],
        ),
        (called(count=2), [(ON_CALL, "tool_calls.0")]),
        (texted(), [(ON_TEXT, "extra_content.google")]),
        (in_id(), [(IN_ID, "tool_calls.0")]),
        (relayed(count=2), [(IN_ID, "tool_calls.0")]),
        (relayed(hidden=False), [(IN_ID, "tool_calls.0")]),
        (relayed_text(), [(RELAYED, "provider_specific_fields")]),
        (
            blocked(thought(), {"type": "redacted_thinking", "data": MINT.seal()}),
            [(THINKING, "thinking_blocks.0"), (HIDDEN, "thinking_blocks.1")],
        ),
    ],
    ids=["openrouter", "call", "text", "id", "relayed", "beside", "relayed text", "blocks"],
)
def test_every_sealed_value_of_the_wire_has_a_receipt(
    reply: Body, expected: list[tuple[str, str]]
) -> None:
    """By artifact name and place below the message of its choice."""
    found = received(came(reply))
    assert found == [(name, f"choices.0.message.{place}") for name, place in expected]


@pytest.mark.parametrize(
    "reply",
    [
        reasoned(encrypted(MINT), detail(MINT, 1)),
        called(count=2),
        texted(),
        in_id(),
        relayed(count=2),
        relayed_text(),
        blocked(thought(), {"type": "redacted_thinking", "data": MINT.seal()}),
    ],
    ids=["openrouter", "call", "text", "id", "relayed", "relayed text", "blocks"],
)
def test_what_model_dump_adds_is_no_change(reply: Body) -> None:
    """Nulls of fields that the SDK knows, and numbers of calls."""
    nulls = dict.fromkeys(("refusal", "audio", "parsed", "annotations", "function_call"))

    def dumped(message: Body) -> None:
        message |= nulls
        for number, call in enumerate(message.get("tool_calls") or ()):
            call |= {"index": number, "custom": None}

    dialect = "openrouter"
    report = replay(dialect, reply, on_first(dumped))
    assert {(f.fate.value, f.verdict.value) for f in report.findings} == {("intact", "ok")}


def test_the_thinking_blocks_of_a_relay_are_judged() -> None:
    """Lost, changed, and retyped."""
    lost = replay("openrouter", blocked(thought()), without("thinking_blocks"))
    assert row_of(lost, THINKING) == ("dropped", "degrades", "R7")
    changed = on_detail(lambda one: one.update(thinking="Other."), "thinking_blocks")
    report = replay("openrouter", blocked(thought()), changed)
    assert row_of(report, "litellm.thinking_blocks.text") == ("modified", "breaks", "R1")
    assert row_of(report, THINKING)[0] == "intact"

    def retyped(block: Body) -> None:
        data = block["signature"]
        block.clear()
        block.update(type="redacted_thinking", data=data)

    report = replay("openrouter", blocked(thought()), on_detail(retyped, "thinking_blocks"))
    assert row_of(report, THINKING) == ("retyped", "breaks", "R5")


def test_a_seal_that_a_relay_gives_twice_is_whole_while_one_of_both_comes_back() -> None:
    """LiteLLM takes it from beside the call, or else from its id."""
    for lost in (without("provider_specific_fields"), short_ids):
        report = replay("chat", relayed(), lost)
        assert row_of(report, IN_ID)[:2] == ("intact", "ok")
        assert {f.verdict.value for f in report.findings} == {"ok"}


def test_a_seal_that_a_relay_gave_twice_is_lost_with_both() -> None:
    """As where it stood in the id alone."""

    both = edit(lambda body: body.update(without("provider_specific_fields")(short_ids(body))))
    assert row_of(replay("chat", relayed(), both), IN_ID) == ("dropped", "breaks", "G20")


def test_a_seal_that_is_left_beside_the_message_alone_is_no_longer_on_its_call() -> None:
    """LiteLLM puts it on a text then, if there is one."""

    @edit
    def beside(body: Body) -> None:
        body |= short_ids(body)
        for message in body["messages"]:
            for call in message.get("tool_calls") or ():
                call.pop("provider_specific_fields", None)

    assert row_of(replay("chat", relayed(), beside), IN_ID) == ("misplaced", "breaks", "G6")


def test_the_seal_of_a_relayed_text_is_missed_and_its_change_is_seen() -> None:
    """The first of the list is what LiteLLM sends on."""
    lost = replay("chat", relayed_text(), without("provider_specific_fields"))
    assert row_of(lost, RELAYED) == ("dropped", "degrades", "G19")

    def cut(message: Body) -> None:
        held = message["provider_specific_fields"]["thought_signatures"]
        held[0] = held[0][:40]

    assert row_of(replay("chat", relayed_text(), on_first(cut)), RELAYED) == (
        "modified",
        "breaks",
        "G11",
    )


def test_a_relayed_text_in_several_parts_is_not_sent_with_the_signature_beside_it() -> None:
    """LiteLLM puts it on a text in one piece only."""

    def parts(message: Body) -> None:
        message["content"] = [{"type": "text", "text": message["content"]}]

    found = row_of(replay("chat", relayed_text(), on_first(parts)), RELAYED)
    assert found == ("misplaced", "degrades", "G6")


@pytest.mark.parametrize("reply", [relayed(), relayed_text(), blocked(thought())])
def test_a_relay_takes_off_what_another_vendor_could_not_read(reply: Body) -> None:
    """LiteLLM does, so that nothing foreign reaches the other."""
    to_another = edit(lambda body: body.update(model="gpt-5.6-sol"))
    report = replay("chat", reply, to_another, minted=NOWHERE, **NOWHERE)
    told = {(f.fate.value, f.verdict.value) for f in report.findings if f.artifact != THINKING_TEXT}
    assert told == {("foreign", "allowed")}


@pytest.mark.parametrize("spelt", [str.lower, lambda name: name.replace("+", "_")])
def test_an_id_that_was_spelt_anew_has_a_changed_seal_in_it(spelt: Callable[[str], str]) -> None:
    """What stands before the mark still says which call it is."""

    @edit
    def renamed(body: Body) -> None:
        for message in body["messages"]:
            for call in message.get("tool_calls") or ():
                call["id"] = spelt(call["id"])
            if "tool_call_id" in message:
                message["tool_call_id"] = spelt(message["tool_call_id"])

    reply = in_id()
    call = message_of(reply)["tool_calls"][0]
    call["id"] = f"call_1__thought__{'+/Ab' * 30}"
    assert row_of(replay("chat", reply, renamed), IN_ID) == ("modified", "breaks", "G11")


def test_what_a_relay_puts_beside_an_answer_is_looked_for_at_its_own_place() -> None:
    """LiteLLM hands details on under a key at which it looks for nothing."""
    reply = reasoned()
    message = message_of(reply)
    message["provider_specific_fields"] = {"reasoning_details": message.pop("reasoning_details")}
    place = "choices.0.message.provider_specific_fields.reasoning_details.0"
    assert received(came(reply)) == [(SIGNATURE, place)]

    def lifted(message: Body) -> None:
        message |= message.pop("provider_specific_fields")

    assert row_of(replay("openrouter", reply, on_first(lifted)), SIGNATURE)[:2] == ("intact", "ok")
    assert row_of(replay("openrouter", reply), SIGNATURE) == ("misplaced", "degrades", "R5")


def test_the_signatures_of_portkey_are_read() -> None:
    """On the function of a call, and in blocks beside the text."""
    call = tool_call(MINT)
    call["function"]["thought_signature"] = MINT.seal()
    reply = answer("chat", calls=[call])

    def bare(message: Body) -> None:
        message["tool_calls"][0]["function"].pop("thought_signature")

    assert row_of(replay("chat", reply, on_first(bare)), ON_CALL) == ("dropped", "breaks", "G19")
    blocks = [thought(), {"type": "redacted_thinking", "data": MINT.seal()}]
    reply = answer("openrouter", content="Done.", content_blocks=blocks)
    places = [f"choices.0.message.content_blocks.{number}" for number in (0, 1)]
    assert received(came(reply)) == [(THINKING, places[0]), (HIDDEN, places[1])]
    lost = replay("openrouter", reply, without("content_blocks"))
    assert {f.fate.value for f in lost.findings} == {"dropped"}


def test_streamed_signatures_of_a_relay_are_one_list() -> None:
    """However often a chunk repeats what another brought."""
    first, second = MINT.seal(), MINT.seal()
    chunks = [
        {"choices": [{"index": 0, "delta": {"provider_specific_fields": fields}}]}
        for fields in (
            {"thought_signatures": [first]},
            None,
            {"thought_signatures": [first, second]},
            {"thought_signatures": None, "continuation_token": "x"},
        )
    ]
    assert message_of(FOLD(chunks))["provider_specific_fields"] == {
        "thought_signatures": [first, second],
        "continuation_token": "x",
    }


def test_a_gemini_behind_a_relay_needs_the_seal_of_its_call() -> None:
    """Its data stands beside the call, not on it."""
    model = "google/gemini-3-pro-preview"
    asked = request("openrouter", []) | {"model": model}
    reply = reasoned(encrypted(MINT, form="google-gemini-v1"), model=model)
    report = replay("openrouter", reply, without("reasoning_details"), asked=asked, model=model)
    assert row_of(report, DATA) == ("dropped", "breaks", "R7")
    talk = reasoned(encrypted(MINT, form="google-gemini-v1"), calls=0, model=model)
    report = replay("openrouter", talk, without("reasoning_details"), asked=asked, model=model)
    assert row_of(report, DATA) == ("dropped", "degrades", "R7")


def test_details_that_a_relay_puts_where_nobody_looks_are_lost_in_silence() -> None:
    """LiteLLM's client sends them back under a key of its own."""

    def moved(message: Body) -> None:
        message["provider_specific_fields"] = {
            "reasoning_details": message.pop("reasoning_details")
        }

    report = replay("openrouter", reasoned(), on_first(moved))
    assert row_of(report, SIGNATURE) == ("misplaced", "degrades", "R5")


def test_a_text_that_comes_back_in_the_pieces_of_its_stream_is_split() -> None:
    """Told once: a piece without a seal is no made-up one."""

    def pieces(message: Body) -> None:
        (whole,) = message["reasoning_details"]
        bare = {k: v for k, v in whole.items() if k != "signature"}
        texts = [whole["text"][at : at + 9] for at in range(0, len(whole["text"]), 9)]
        message["reasoning_details"] = [bare | {"text": piece} for piece in texts]
        message["reasoning_details"].append(whole | {"text": ""})

    report = replay("openrouter", reasoned(), on_first(pieces))
    assert {(f.artifact, f.fate.value, f.verdict.value, f.rule) for f in report.findings} == {
        (SIGNATURE, "intact", "ok", ""),
        (TEXT, "split", "breaks", "R1"),
    }


@pytest.mark.parametrize(
    ("dialect", "reply", "artifact", "rule"),
    [("openrouter", reasoned(), SIGNATURE, "R7"), ("chat", called(), ON_CALL, "G19")],
)
def test_a_call_that_is_told_in_words_has_lost_its_seal(
    dialect: str, reply: Body, artifact: str, rule: str
) -> None:
    """A host for models that call no tools writes the call down, its id too, and its result."""
    tracker = Tracker(KEY)
    body = request(dialect, [])
    tracker.observe(exchange(dialect, body, reply))
    told = [{k: call[k] for k in ("id", "type", "function")} for call in calls_of(reply)]
    history(body).append({"role": "assistant", "content": f"Calling tools:\n{told}"})
    history(body).append({"role": "user", "content": "Observation:\n1"})
    report = tracker.observe(exchange(dialect, body, None))
    assert row_of(report, artifact) == ("dropped", "degrades", rule)
    history(body)[-2]["content"] = "Calling tools:\n[{'id': 'call_0123456789abcdef0123'}]"
    report = tracker.observe(exchange(dialect, body, None))
    assert report.findings == ()


def calls_of(reply: Body) -> list[Body]:
    found: list[Body] = message_of(reply)["tool_calls"]
    return found


def test_a_custom_tool_call_is_a_call() -> None:
    """Its name and input stand under another key."""
    call = {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "x = 1"}}
    reply = answer("chat", calls=[call | {"extra_content": signature(MINT)}])
    assert received(came(reply)) == [(ON_CALL, "choices.0.message.tool_calls.0")]
    report = replay("chat", reply, on_first(lambda m: m["tool_calls"][0].pop("type")))
    assert row_of(report, ON_CALL)[0] == "intact"


def test_the_old_form_of_a_call_is_read() -> None:
    """`function_call` and its result seal nothing, and are no strangers."""
    call = {"name": "look_up", "arguments": "{}"}
    reply = answer("chat", function_call=call, extra_content=signature(MINT))
    result = {"role": "function", "name": "look_up", "content": "1"}
    tracker = Tracker(KEY)
    body = request("chat", [])
    tracker.observe(exchange("chat", body, reply))
    history(body).extend([message_of(reply), result])
    report = tracker.observe(exchange("chat", body, None))
    assert row_of(report, ON_TEXT)[0] == "intact"
    assert report.returned_types == ("function_call", "thought_signature")


# --------------------------------------------------------------------------------- what is not


PLAIN: dict[str, Body] = {
    "text": {"content": "Hello."},
    "calls": {"content": None, "calls": [tool_call(MINT), tool_call(MINT)]},
    "plain reasoning": {"content": "Hello.", "reasoning_content": "Because.", "reasoning": "So."},
    "unsigned detail": {
        "content": "Hello.",
        "reasoning_details": [{"type": "reasoning.text", "text": "Because.", "format": None}],
    },
    "null signature": {
        "content": "Hello.",
        "reasoning_details": [{"type": "reasoning.text", "text": "So.", "signature": None}],
    },
    "summary": {
        "content": "Hello.",
        "reasoning_details": [{"type": "reasoning.summary", "summary": "In short."}],
    },
    "nulls": {
        "content": "Hello.",
        "refusal": None,
        "audio": None,
        "reasoning_details": None,
        "thinking_blocks": None,
        "extra_content": None,
        "tool_calls": None,
    },
    "refusal": {"content": None, "refusal": "I will not."},
    "parts": {"content": [{"type": "text", "text": "Hello."}, {"type": "refusal", "refusal": "x"}]},
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("lost", [False, True], ids=["replayed", "lost"])
def test_a_reply_without_a_seal_has_no_verdict(name: str, *, lost: bool) -> None:
    """Plain replies of any host, replayed as they came or reduced to their text."""
    reply = answer("chat", model="gpt-5.6-sol", **PLAIN[name])
    asked = request("chat", []) | {"model": "gpt-5.6-sol"}
    first = Tracker(KEY).observe(exchange("chat", asked, reply, **OPENAI))
    assert (first.received, first.drift, first.verdict) == ((), (), None)

    def reduced(message: Body) -> None:
        for key in message.keys() - {"role", "content", "tool_calls"}:
            del message[key]

    change = on_first(reduced) if lost else edit(lambda _: None)
    report = replay("chat", reply, change, asked=asked, **OPENAI)
    assert (report.findings, report.verdict, report.expected) == ((), None, 0)


def test_of_several_choices_none_is_expected() -> None:
    """Which one the caller goes on with shows later: another is no loss, and neither is unseen."""
    one, other = reasoned(), reasoned()
    both = copy.deepcopy(one)
    both["choices"].append(copy.deepcopy(other["choices"][0]) | {"index": 1})
    tracker = Tracker(KEY)
    first = tracker.observe(exchange("openrouter", request("openrouter", []), both))
    assert first.received == ()
    body = request("openrouter", [])
    history(body).extend(step("openrouter", other, "And?"))
    report = tracker.observe(exchange("openrouter", body, None))
    assert {(f.fate.value, f.verdict.value) for f in report.findings} == {
        ("unknown", "unverifiable")
    }


def test_an_unknown_vendor_or_model_is_never_accused() -> None:
    """A gateway with names of its own."""
    for model, host in (("in-house-1", NOWHERE), ("claude-opus-5", {"host": "api.deepseek.com"})):
        around: dict[str, Any] = {"provider": "", **host, "model": model}
        asked = request("openrouter", []) | {"model": model}
        reply = reasoned(model=model)
        report = replay(
            "openrouter", reply, without("reasoning_details"), asked=asked, minted=around, **around
        )
        assert row_of(report, SIGNATURE) == ("dropped", "unverifiable", "X1")


def test_the_vendor_of_a_relay_is_told_by_the_model() -> None:
    """Not by the wire: anybody speaks it."""
    found = [
        came(None, host=host, provider="", request={"model": model, "messages": []}).facts
        for model, host in (
            ("anthropic/claude-opus-5", "openrouter.ai"),
            ("gemini-3-pro-preview", "generativelanguage.googleapis.com"),
            ("gpt-5.6-sol", "gateway.internal"),
            ("in-house-1", "gateway.internal"),
        )
    ]
    assert [facts.vendor for facts in found] == ["anthropic", "google", "openai", ""]
    assert found[0].platform == "openrouter"


# ------------------------------------------------------------------------------------- streams


def folded(*deltas: Body, finish: str | None = "stop") -> Body:
    """The message that some deltas amount to."""
    events: list[Body] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return message_of(FOLD(events))


def piece(**more: Any) -> Body:
    return {"reasoning_details": [{"type": "reasoning.text", **more}]}


def test_pieces_of_details_are_joined_by_number() -> None:
    """Texts and signatures in turn, of two details at once."""
    found = folded(
        piece(index=0, text="a"),
        piece(index=1, text="x"),
        piece(index=0, text="b", signature=None),
        piece(index=1, text="y", signature="S1"),
        piece(index=0, signature="S0"),
        piece(index=0, signature="S0"),
    )
    assert [(x["text"], x["signature"]) for x in found["reasoning_details"]] == [
        ("ab", "S0S0"),
        ("xy", "S1"),
    ]


@pytest.mark.parametrize("numbers", [{"index": 0}, {}], ids=["all the same number", "no numbers"])
def test_a_text_behind_a_signature_begins_another_detail(numbers: Body) -> None:
    """Not every host counts them."""
    found = folded(
        piece(text="a", **numbers),
        piece(signature="S", **numbers),
        piece(text="b", **numbers),
        piece(signature="T", **numbers),
    )
    assert [(x["text"], x["signature"]) for x in found["reasoning_details"]] == [
        ("a", "S"),
        ("b", "T"),
    ]


def test_encrypted_details_come_whole() -> None:
    """Those of parallel calls may all be number 0."""
    one, two = encrypted(MINT), encrypted(MINT)
    found = folded({"reasoning_details": [one]}, {"reasoning_details": [two]})
    assert found["reasoning_details"] == [one, two]


def test_parallel_calls_that_are_all_number_0_are_several() -> None:
    """Google's endpoint counts them so; their ids tell them apart."""
    one, two = tool_call(MINT, signed=True), tool_call(MINT)
    found = folded(
        {"tool_calls": [{"index": 0, **one}]},
        {"tool_calls": [{"index": 0, **two}]},
    )
    assert [call["id"] for call in found["tool_calls"]] == [one["id"], two["id"]]


def test_pieces_of_calls_are_joined() -> None:
    """Arguments in pieces, the rest once; an empty id names nobody."""
    found = folded(
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}]},
        {"tool_calls": [{"index": 1, "id": "d", "function": {"name": "g", "arguments": "[]"}}]},
        {"tool_calls": [{"index": 0, "id": "", "function": {"name": None, "arguments": "}"}}]},
        {"tool_calls": [{"index": 0, "extra_content": {"google": {"a": 1}}}]},
        {"tool_calls": [{"index": 0, "extra_content": {"google": {"b": 2}, "x": None, "y": 1}}]},
        {"tool_calls": [{"function": {"arguments": "]"}}]},
        {"function_call": {"name": "old", "arguments": "1"}},
        {"function_call": {"arguments": "2"}},
    )
    assert found["tool_calls"] == [
        {
            "index": 0,
            "id": "c",
            "function": {"name": "f", "arguments": "{}"},
            "extra_content": {"google": {"a": 1, "b": 2}, "y": 1},
        },
        {"index": 1, "id": "d", "function": {"name": "g", "arguments": "[]]"}},
    ]
    assert found["function_call"] == {"name": "old", "arguments": "12"}


def test_a_piece_of_the_wrong_type_gives_way_to_the_next() -> None:
    """What came before an object is not joined with it."""
    found = folded(
        {"tool_calls": [{"index": 0, "function": 7, "extra_content": "x"}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}, "extra_content": {"a": 1}}]},
    )
    assert found["tool_calls"] == [
        {"index": 0, "function": {"arguments": "{}"}, "extra_content": {"a": 1}}
    ]


def test_thinking_blocks_are_joined_in_order() -> None:
    """LiteLLM sends them without numbers."""
    blocks = [
        {"type": "thinking", "thinking": "a", "signature": None},
        {"type": "thinking", "thinking": "b", "signature": ""},
        {"type": "thinking", "thinking": "", "signature": "S"},
        {"type": "redacted_thinking", "data": "D"},
        {"type": "redacted_thinking", "data": "E"},
        {"type": "thinking", "thinking": "c"},
    ]
    found = folded(*({"thinking_blocks": [block]} for block in blocks))["thinking_blocks"]
    assert [(x["type"], x.get("thinking", x.get("data")), x.get("signature")) for x in found] == [
        ("thinking", "ab", "S"),
        ("redacted_thinking", "D", None),
        ("redacted_thinking", "E", None),
        ("thinking", "c", None),
    ]


def test_content_that_streams_as_parts_is_kept() -> None:
    """Some hosts send a list."""
    parts = [{"type": "text", "text": "a"}]
    assert folded({"content": parts})["content"] == parts
    events = [{"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}]
    assert message_of(FOLD(events))["content"] == "whole"


def test_an_error_inside_a_stream_is_the_reply() -> None:
    """OpenRouter tells of it in a chunk, or in its choice."""
    error = {"code": 400, "message": "Corrupted thought signature."}
    for chunk in ({"error": error, "choices": []}, {"choices": [{"delta": {}, "error": error}]}):
        report = came(None, events=[chunk])
        assert (report.provider_verdict.value, report.complete) == ("rejected", False)
    failed = {"choices": [{"message": {"content": None}, "error": error}]}
    assert came(failed).provider_verdict.value == "rejected"


def test_a_signature_that_was_still_coming_when_the_stream_broke_accuses_nobody() -> None:
    """Whether it was whole, nobody can tell."""
    seal = MINT.seal()
    deltas = [
        piece(index=0, text="a", format="anthropic-claude-v1"),
        piece(index=0, signature=seal),
    ]
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    tracker = Tracker(KEY)
    body = request("openrouter", [])
    first = tracker.observe(exchange("openrouter", body, None, events=events, complete=False))
    assert [one.state for one in first.received] == [State.CUT]
    history(body).append(message_of(FOLD(events)))
    report = tracker.observe(exchange("openrouter", body, None))
    assert row_of(report, SIGNATURE) == ("unsealed", "unverifiable", "X11")


def test_reasoning_that_broke_off_before_its_signature_is_unsealed() -> None:
    """A Claude refuses it; a model that signs nothing does not mind."""
    for form, expected in (("anthropic-claude-v1", ["unsealed"]), (None, [])):
        events = [{"choices": [{"index": 0, "delta": piece(index=0, text="a", format=form)}]}]
        tracker = Tracker(KEY)
        body = request("openrouter", [])
        tracker.observe(exchange("openrouter", body, None, events=events, complete=False))
        history(body).append(message_of(FOLD(events)))
        report = tracker.observe(exchange("openrouter", body, None))
        assert [f.fate.value for f in report.findings] == expected


def test_a_stream_without_chunks_or_with_others_is_no_reply() -> None:
    """Whatever a list of events may hold."""
    for events in ([], [7], [{"choices": [{"delta": 7}, 7]}], [{"choices": 7}]):
        report = came(None, events=events)
        assert (report.received, report.complete) == ((), False)


def test_a_reply_that_is_no_object_brings_nothing() -> None:
    """Nor one without choices."""
    bodies: list[Any] = [[], {"choices": 7}, {"choices": [{"message": 7}]}, {"usage": 7}]
    for body in bodies:
        assert came(None, response=body).received == ()


def test_usage_is_read_as_this_wire_counts_it() -> None:
    """Its details are objects of their own, and may be missing."""
    reply = texted()
    assert came(reply).usage.reasoning_tokens == 20
    assert came(reply).usage.cache_read_tokens == 10
    reply["usage"] = {"prompt_tokens": 3, "completion_tokens_details": None}
    usage = came(reply).usage
    assert (usage.input_tokens, usage.reasoning_tokens) == (3, None)


def test_a_stray_message_is_read_as_what_it_can_be() -> None:
    """Messages that are none, roles that nobody knows, contents of other types."""
    body = request("chat", []) | {
        "messages": [
            "text",
            7,
            {"role": "developer", "content": "a"},
            {"role": "user", "content": [{"type": "image_url"}, "b", 7]},
            {"role": "assistant", "content": 7, "tool_calls": [{"arguments": "{}"}, {"id": 7}]},
            {"role": "assistant", "extra_content": {"google": 7}},
            {"role": "tool"},
        ]
    }
    report = Tracker(KEY).observe(exchange("chat", body, None))
    assert (report.unread, report.findings) == ((), ())
    listless = Exchange(Api.CHAT_COMPLETIONS, request={"messages": {}}, model="gpt-5")
    assert Tracker(KEY).observe(listless).facts.model == "gpt-5"


def test_a_stream_of_the_helpers_is_the_reply() -> None:
    """The same receipts by stream as whole, for each way of carrying seals."""
    for reply in (called(count=2), texted(), in_id(), reasoned(encrypted(MINT), detail(MINT, 1))):
        assert came(None, events=chat_events(reply)).received == came(reply).received
    assert STREAM == Delivery(stream=True)
