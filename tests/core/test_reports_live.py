"""What public reports tell of, in a live process, each beside its faithful twin.

As transcripts they are the cases R01 and up of `tests/cases`.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.model import Report
from otel_sealed.providers.vendors import resolve
from otel_sealed.tracker import Tracker
from tests.core.builders import (
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
    responses,
    row_of,
    step,
)

SIGNATURE = "anthropic.thinking.signature"
SEAL = "openai.reasoning.encrypted_content"
THOUGHT = "gemini.part.thought_signature"
BINDING = "claude-fable-5-2"


# -------------------------------------------------------------------- a block without its field


@pytest.mark.parametrize("value", [..., None, ""], ids=["absent", "null", "empty"])
@pytest.mark.parametrize("thought", ["adaptive", "disabled"])
def test_a_signature_alone_may_not_go_in_a_finished_turn(value: Any, thought: str) -> None:
    """The block is refused wherever it stands, whatever thinking is now (A3)."""

    def change(body: Body) -> Body:
        return sets("signature", value, "thinking")(body) | {"thinking": {"type": thought}}

    report = replay("anthropic", message(thinking(), text()), change)
    assert row_of(report, SIGNATURE) == ("dropped", "breaks", "A3")


def test_data_alone_may_not_go_in_a_finished_turn() -> None:
    """The same of a redacted block (A3)."""
    report = replay(
        "anthropic", message(redacted(), text()), sets("data", ..., "redacted_thinking")
    )
    assert row_of(report, "anthropic.redacted_thinking.data") == ("dropped", "breaks", "A3")


def test_a_block_as_a_whole_may_go_in_a_finished_turn() -> None:
    """Nothing is refused for what is not there (A8)."""
    report = replay("anthropic", message(thinking(), text()), without("thinking"))
    assert row_of(report, SIGNATURE) == ("dropped", "allowed", "A8")


# ------------------------------------------------------------------------ where blocks stand


def _parted(speaker: list[Body]) -> Any:
    """A host that puts messages between the first block of an answer and the others."""

    def change(body: Body) -> None:
        content = body["messages"][1]["content"]
        body["messages"][1:2] = [
            {"role": "assistant", "content": content[:1]},
            *speaker,
            {"role": "assistant", "content": content[1:]},
        ]

    return edit(change)


def test_thinking_is_split_from_its_call_by_a_message_between() -> None:
    """The message with the call does not start with thinking any more (A1, A5)."""
    speaker = [{"role": "user", "content": "One more thing."}]
    report = replay("anthropic", message(thinking(), use()), _parted(speaker))
    assert row_of(report, SIGNATURE) == ("split", "breaks", "A5")


def test_an_answer_may_be_sent_as_messages_in_a_row() -> None:
    """Nobody speaks between them."""
    report = replay("anthropic", message(thinking(), use()), _parted([]))
    assert row_of(report, SIGNATURE)[0] == "intact"


def test_two_blocks_of_thinking_touch_where_the_call_between_is_gone() -> None:
    """The provider takes them for one run (A5)."""
    answer = message(thinking(), use(), thinking(), use(), stop="tool_use")
    gone = answer["content"][1]["id"]

    def change(body: Body) -> None:
        blocks(body).pop(1)
        results = body["messages"][2]["content"]
        results[:] = [r for r in results if r.get("tool_use_id") != gone]

    report = replay("anthropic", answer, edit(change))
    assert [f.fate.value for f in report.findings if f.artifact == SIGNATURE] == ["merged"] * 2


def test_a_call_gone_behind_the_last_thinking_moves_nothing() -> None:
    """A lost neighbour that parted nothing."""
    answer = message(thinking(), use(), use(), stop="tool_use")
    report = replay("anthropic", answer, edit(lambda b: blocks(b).pop(1)))
    assert row_of(report, SIGNATURE)[0] == "intact"


def test_text_moved_behind_a_call_of_its_message_is_reordered() -> None:
    """The sequence of types in the turn the loop continues is another (A1)."""
    answer = message(thinking(), text(), use(), stop="tool_use")
    report = replay("anthropic", answer, edit(lambda b: blocks(b).append(blocks(b).pop(1))))
    assert row_of(report, SIGNATURE) == ("reordered", "breaks", "A5")


def test_text_left_out_before_a_call_is_not_reordered() -> None:
    """The order of those that are left is what it was."""
    answer = message(thinking(), text(), use(), stop="tool_use")
    report = replay("anthropic", answer, without("text"))
    assert row_of(report, SIGNATURE)[0] == "intact"


def test_of_a_text_said_twice_the_first_may_be_left_out() -> None:
    """The other one is not a text that was moved behind the call."""
    twice = text()
    answer = message(thinking(), twice, use(), dict(twice), stop="tool_use")
    report = replay("anthropic", answer, edit(lambda b: blocks(b).pop(1)))
    assert row_of(report, SIGNATURE)[0] == "intact"


def test_the_first_thought_of_a_loop_may_not_go_alone_on_a_binding_model() -> None:
    """Think, call, think, and the front is gone: a gap, though nothing stands before (A12)."""
    answers = [
        message(thinking(), use(), model=BINDING),
        message(thinking(), text(), model=BINDING),
    ]
    change = edit(lambda b: blocks(b).pop(0))
    first = asked("anthropic", model=BINDING)
    report = chat("anthropic", *answers, change=change, first=first)[-1]
    found = [(f.fate.value, f.rule) for f in report.findings if f.artifact == SIGNATURE]
    assert found == [("dropped", "A12"), ("intact", "")]


def test_the_first_loop_as_a_whole_may_go_on_a_binding_model() -> None:
    """From the front, up to a word of the user (A13)."""
    answers = [message(thinking(), text(), model=BINDING) for _ in range(2)]
    change = edit(lambda b: blocks(b).pop(0))
    first = asked("anthropic", model=BINDING)
    report = chat("anthropic", *answers, change=change, first=first)[-1]
    found = [(f.fate.value, f.rule) for f in report.findings if f.artifact == SIGNATURE]
    assert found == [("dropped", "A13"), ("intact", "")]


# ---------------------------------------------------------------------- thinking off, at the end


@pytest.mark.parametrize(("kind", "verdict"), [("disabled", "breaks"), ("adaptive", "ok")])
def test_thinking_may_not_stand_in_a_last_message_when_it_is_off(kind: str, verdict: str) -> None:
    """The provider refuses it in the final position, loop or not (A9)."""

    def change(body: Body) -> Body:
        return body | {"messages": body["messages"][:-1], "thinking": {"type": kind}}

    report = replay("anthropic", message(thinking(), text()), change)
    assert row_of(report, SIGNATURE)[:2] == ("intact", verdict)


# --------------------------------------------------------------------------- thoughts made up


@pytest.mark.parametrize(
    "said_so", ["<think>maybe</think>Fine.", "<think>\nmaybe\n</think>\n\nFine."]
)
@pytest.mark.parametrize("seal", [{}, {"signature": ""}, {"signature": "c2lnbmF0dXJl"}])
def test_tags_made_into_thinking_are_fabricated(said_so: str, seal: Body) -> None:
    """No thought was ever signed there (A18)."""
    answer = message({"type": "text", "text": said_so})

    def change(body: Body) -> None:
        thought = {"type": "thinking", "thinking": "maybe", **seal}
        body["messages"][1]["content"] = [thought, {"type": "text", "text": "Fine."}]

    report = replay("anthropic", answer, edit(change))
    assert row_of(report, SIGNATURE) == ("fabricated", "breaks", "A18")


def test_another_answer_with_a_thought_of_its_own_is_unknown() -> None:
    """Another process may have answered the same request with tags in no text of ours."""
    answer = message({"type": "text", "text": "<think>maybe</think>Fine."})
    other = message(thinking(), {"type": "text", "text": "Fine."})
    change = edit(lambda b: b["messages"][1].update(content=other["content"]))
    report = replay("anthropic", answer, change)
    assert row_of(report, SIGNATURE) == ("unknown", "unverifiable", "X2")


def test_a_signed_thought_of_gemini_as_ordinary_text_is_substituted() -> None:
    """The text is there, the seal is gone, and it is no thought any more (G4)."""
    thought = part("text") | {"thought": True}

    def change(body: Body) -> None:
        for key in ("thought", "thoughtSignature"):
            parts_of(body)[0].pop(key)

    report = replay("gemini", candidate(thought, part("text", signed=False)), edit(change))
    assert row_of(report, THOUGHT) == ("substituted", "degrades", "G4")


def test_a_changed_seal_at_the_end_of_texts_sent_in_pieces_is_modified() -> None:
    """As a stream brought them: what stands before it is not what came, and not its place."""
    answer = candidate(part("text", signed=False), part("empty"))

    def change(body: Body) -> None:
        whole = parts_of(body)[0]["text"]
        parts_of(body)[:1] = [{"text": whole[:20]}, {"text": whole[20:]}]
        seal = parts_of(body)[-1]["thoughtSignature"]
        parts_of(body)[-1]["thoughtSignature"] = seal[:40] + "Zz" + seal[42:]

    report = replay("gemini", answer, edit(change))
    assert row_of(report, THOUGHT)[0] == "modified"


def test_an_answer_of_gemini_that_lost_its_signature_is_dropped() -> None:
    """Ordinary text was to be there."""
    change = edit(lambda b: parts_of(b)[0].pop("thoughtSignature"))
    report = replay("gemini", candidate(part("text")), change)
    assert row_of(report, THOUGHT)[0] == "dropped"


# -------------------------------------------------------------------------------- by reference


def _referring(*types: str) -> Any:
    """A host that sends items of these types as references."""

    def change(body: Body) -> None:
        body["input"] = [
            {"type": "item_reference", "id": item["id"]} if item.get("type") in types else item
            for item in body["input"]
        ]

    return edit(change)


@pytest.mark.parametrize("types", [("reasoning",), ("reasoning", "function_call")])
def test_a_stored_item_that_is_referred_to_is_held_by_the_server(types: tuple[str, ...]) -> None:
    """Nothing is lost, and the call that is sent in full is no orphan (O2)."""
    answer = response(reasoning(), call()) | {"store": True}
    report = replay("openai", answer, _referring(*types))
    assert [(f.fate.value, f.verdict.value) for f in report.findings] == [
        ("server_held", "allowed")
    ]


def test_a_call_that_is_referred_to_follows_its_reasoning() -> None:
    """The reasoning in full, its call by reference."""
    answer = response(reasoning(), call()) | {"store": True}
    report = replay("openai", answer, _referring("function_call"))
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_an_item_sent_and_referred_to_is_duplicated() -> None:
    """Once too often (O2)."""
    answer = response(reasoning(), call()) | {"store": True}

    def change(body: Body) -> None:
        reference = {"type": "item_reference", "id": answer["output"][0]["id"]}
        body["input"].insert(1, reference)

    assert row_of(replay("openai", answer, edit(change)), SEAL)[0] == "duplicated"


def test_a_reference_to_what_was_not_stored_holds_nothing() -> None:
    """With store off the provider cannot find it."""
    answer = response(reasoning(), call()) | {"store": False}
    first = asked("openai", store=False, include=["reasoning.encrypted_content"])
    report = replay("openai", answer, _referring("reasoning"), asked=first)
    found = next(f for f in report.findings if f.artifact == SEAL)
    assert (found.fate.value, found.verdict.violates) == ("dropped", True)


def test_the_id_of_an_item_sent_beside_server_state_has_its_row() -> None:
    """A companion has a row while its seal is in the request, and no prefix is missed."""
    answer = response(reasoning(), call())
    report = replay("openai", answer, lambda b: b | {"previous_response_id": answer["id"]})
    assert [(f.artifact, f.fate.value) for f in report.findings] == [
        (SEAL, "duplicated"),
        ("openai.reasoning.id", "intact"),
    ]


# --------------------------------------------------------------------------------------- others


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_reasoning_of_a_cut_answer_is_orphaned_where_somebody_else_speaks(reason: str) -> None:
    """What was to follow it never came (O3)."""
    answer = response(reasoning()) | {
        "status": "incomplete",
        "incomplete_details": {"reason": reason},
    }
    report = replay("openai", answer)
    assert row_of(report, "openai.reasoning") == ("orphaned", "breaks", "O3")


def _sent_as_steps(*kinds: bool, late: Body | None = None) -> Report:
    """Calls without ids, signed or not, that are sent back as steps of their own.

    `late`: keys the last one has besides.
    """
    answer = candidate(*(part(signed=signed) for signed in kinds))
    calls = answer["candidates"][0]["content"]["parts"]
    for one in calls:
        one["functionCall"].pop("id")
    tracker, body = Tracker(KEY), asked("gemini")
    tracker.observe(exchange("gemini", copy.deepcopy(body), copy.deepcopy(answer)))
    calls[-1] |= late or {}
    for one in calls:
        result = {"name": "look_up", "response": {"output": "found"}}
        history(body).append({"role": "model", "parts": [one]})
        history(body).append({"role": "user", "parts": [{"functionResponse": result}]})
    return tracker.observe(exchange("gemini", body, None, status=None))


def test_calls_without_ids_sent_as_steps_of_their_own_are_split() -> None:
    """The second is a first call without a signature (G14)."""
    report = _sent_as_steps(True, False, False)
    assert row_of(report, THOUGHT) == ("split", "breaks", "G14")


def test_the_same_call_made_later_by_an_answer_of_its_own_splits_nothing() -> None:
    """It has the seal of an answer nobody here saw."""
    seal = {"thoughtSignature": part()["thoughtSignature"]}
    report = _sent_as_steps(True, False, late=seal)
    assert [f.fate.value for f in report.findings if f.artifact == THOUGHT] == ["intact", "unknown"]


def test_content_put_into_a_reasoning_item_is_seen() -> None:
    """A provider of OpenAI's takes none there (O23)."""
    content = [{"type": "reasoning_text", "text": "I think."}]
    report = replay("openai", response(reasoning(), call()), sets("content", content, "reasoning"))
    assert row_of(report, "openai.reasoning.envelope") == ("envelope_modified", "breaks", "O23")


@pytest.mark.parametrize("nothing", [None, []], ids=["null", "empty"])
def test_a_content_that_holds_nothing_is_no_change(nothing: Any) -> None:
    """As `model_dump` writes it."""
    report = replay("openai", response(reasoning(), call()), sets("content", nothing, "reasoning"))
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_only_the_foreign_seal_has_a_row_where_its_text_stands_beside_it() -> None:
    """A text of Gemini's that goes to Claude as text is not lost."""
    tracker = Tracker(KEY)
    answer = candidate(part("text"))
    tracker.observe(exchange("gemini", asked("gemini"), answer))
    told = answer["candidates"][0]["content"]["parts"][0]
    body = asked("anthropic")
    thought = {"type": "thinking", "thinking": "...", "signature": told["thoughtSignature"]}
    content = [thought, {"type": "text", "text": told["text"]}]
    history(body).append({"role": "assistant", "content": content})
    history(body).extend(ask("anthropic", "Act."))
    report = tracker.observe(exchange("anthropic", copy.deepcopy(body), None, status=None))
    assert [(f.artifact, f.fate.value) for f in report.findings] == [(THOUGHT, "foreign")]


class Torn(MemoryLedger):
    """A ledger that knows some turns by their numbers alone, as one whose store rests does."""

    lost: frozenset[int] = frozenset()

    def lookup(self, key: bytes) -> tuple[int, ...]:
        return tuple(number for number in super().lookup(key) if number not in self.lost)


@pytest.mark.parametrize("dialect", ["anthropic", "openai", "gemini"])
@pytest.mark.parametrize("lost", [{0}, {1}, {0, 1}])
def test_turns_that_no_key_leads_to_stand_where_they_stand(dialect: str, lost: set[int]) -> None:
    """Their seals are in the request, and nobody moved them."""
    answers = responses(dialect)[:4]
    ledger = Torn()
    tracker = Tracker(KEY, ledger=ledger, settles=False)
    body = asked(dialect)
    for answer in answers:
        tracker.observe(exchange(dialect, copy.deepcopy(body), answer))
        history(body).extend(step(dialect, answer, "And then?"))
    ledger.lost = frozenset(lost)
    report = tracker.observe(exchange(dialect, body, None, status=None))
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_the_prefix_of_a_seal_born_behind_server_state_is_not_known() -> None:
    """Its request had what was new alone, and the whole of it is no other prefix (A31, O2)."""
    tracker = Tracker(KEY)
    model = {"model": "gpt-6.2"}
    first, second = (response(reasoning(), call(), **model) for _ in range(2))
    body = asked("openai", **model)
    tracker.observe(exchange("openai", copy.deepcopy(body), first))
    history(body).extend(step("openai", first, ""))
    new = body | {"input": body["input"][-1:], "previous_response_id": first["id"]}
    tracker.observe(exchange("openai", new, second))
    history(body).extend(step("openai", second, ""))
    report = tracker.observe(exchange("openai", body, None, status=None))
    assert {f.fate.value for f in report.findings} == {"intact"}


@pytest.mark.parametrize(
    "model",
    [
        "us.anthropic.claude-fable-5-2-v1:0",
        "us.anthropic.claude-fable-5-2-20260101-v1:0",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-fable-5-2-v1:0",
        "claude-fable-5-2@20260101",
        "claude-fable-5-2@default",
    ],
)
def test_a_model_binds_whatever_its_platform_calls_it(model: str) -> None:
    """The names of Bedrock and Vertex have versions behind them (A12)."""
    report = replay(
        "anthropic",
        message(thinking(), use(), model="claude-fable-5-2"),
        lambda b: b | {"system": "You are a clerk. It is noon."},
        asked=asked("anthropic", model=model),
    )
    assert row_of(report, "request.prefix") == ("prefix_changed", "breaks", "A12")


@pytest.mark.parametrize(
    ("provider", "host", "platform"),
    [
        ("google", "us-central1-aiplatform.googleapis.com", "vertex"),
        ("google", "generativelanguage.googleapis.com", "gemini"),
        ("openai", "house.openai.azure.com", "azure"),
        ("anthropic", "bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
        ("anthropic", "gateway.internal", "anthropic"),
        ("openai", "openrouter.ai", "openai"),
    ],
)
def test_the_host_of_a_cloud_tells_the_platform(provider: str, host: str, platform: str) -> None:
    """Whatever client of the vendor is pointed at it; any other host says nothing."""
    assert resolve(provider, host, "", provider) == (provider, platform)


def test_a_finished_answer_of_reasoning_and_text_is_no_orphan() -> None:
    """It came as it goes."""
    report = replay("openai", response(reasoning(), said()))
    assert {f.fate.value for f in report.findings} == {"intact"}
