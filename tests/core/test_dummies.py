"""Gemini, on both its wires: steps, dummies and constants (G6, G9, G11, G14), and R7."""

from __future__ import annotations

import base64
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from otel_sealed import tracker
from otel_sealed.contract import Constant
from otel_sealed.digest import Digest, published
from otel_sealed.model import State
from otel_sealed.providers import dialects
from otel_sealed.providers.gemini import DIALECT
from otel_sealed.wire import Reader
from tests.core.builders import MINT, candidate, chat, edit, part, parts_of
from tests.core.chat_cases import answer as chat_answer
from tests.core.chat_cases import called
from tests.core.chat_wire import detail, tool_call
from tests.core.conversations import KEY, Body, Change, exchange, replay, request

Row = tuple[str, str, str, bool]
DUMMY = "skip_thought_signature_validator"
SEALS = {"gemini": "gemini.part.thought_signature", "chat": "gemini.tool_call.thought_signature"}


def rows(dialect: str, answer: Body, change: Change, **more: Any) -> list[Row]:
    report = replay(dialect, answer, change, **more)
    return [(f.fate.value, f.verdict.value, f.rule, f.disputed) for f in report.findings if f.rule]


def parallel(dialect: str) -> Body:
    """Two calls, of which the first is signed."""
    if dialect == "chat":
        return called(count=2)
    return candidate(part("call"), part("call", signed=False))


def signs(item: Body, dialect: str, value: str) -> Body:
    if dialect == "chat":
        return item | {"extra_content": {"google": {"thought_signature": value}}}
    return item | {"thoughtSignature": value}


def in_steps(dialect: str, *, answers_between: bool, value: str = "") -> Change:
    """Parallel calls sent in two messages; `value`: what the second call is signed with."""

    def change(body: Body) -> None:
        told = body["contents" if dialect == "gemini" else "messages"]
        if dialect == "gemini":
            at = next(i for i, c in enumerate(told) if c["role"] == "model")
            one, two = told[at]["parts"]
            two = signs(two, dialect, value) if value else two
            said = [{"role": "model", "parts": [p]} for p in (one, two)]
            results = [{"role": "user", "parts": [p]} for p in told[at + 1]["parts"]]
            end = at + 2
        else:
            at = next(i for i, m in enumerate(told) if m["role"] == "assistant")
            one, two = told[at]["tool_calls"]
            two = signs(two, dialect, value) if value else two
            said = [told[at] | {"tool_calls": [c]} for c in (one, two)]
            results = told[at + 1 : at + 3]
            end = at + 3
        order = [said[0], results[0], said[1], results[1]] if answers_between else [*said, *results]
        told[at:end] = order

    return edit(change)


@pytest.mark.parametrize("dialect", SEALS)
@pytest.mark.parametrize(
    ("between", "value", "expected"),
    [
        (True, "", ("split", "breaks", "G14", False)),
        (True, DUMMY, ("split", "degrades", "G14", False)),
        (False, "", ("split", "degrades", "G14", True)),
    ],
    ids=["two steps", "two steps and a dummy", "two messages in a row"],
)
def test_calls_of_one_answer_in_two_messages(
    dialect: str, *, between: bool, value: str, expected: Row
) -> None:
    """G14: what is refused is a step whose first call bears no value that the API accepts."""
    change = in_steps(dialect, answers_between=between, value=value)
    assert expected in rows(dialect, parallel(dialect), change)


@pytest.mark.parametrize("between", [True, False], ids=["two steps", "two contents in a row"])
def test_a_first_step_that_begins_with_the_unsigned_call_breaks(*, between: bool) -> None:
    """G14: it is not the later step alone that has to begin with a value."""

    def change(body: Body) -> Body:
        body = in_steps("gemini", answers_between=between)(body)
        told = body["contents"]
        one, two = (i for i, c in enumerate(told) if c["role"] == "model")
        told[one], told[two] = told[two], told[one]
        return body

    found = rows("gemini", parallel("gemini"), change)
    assert [row[1] for row in found] == ["breaks"]


@pytest.mark.parametrize("dialect", SEALS)
def test_two_messages_in_a_row_that_each_begin_with_a_value_are_no_split(dialect: str) -> None:
    change = in_steps(dialect, answers_between=False, value=DUMMY)
    assert "split" not in {row[0] for row in rows(dialect, parallel(dialect), change)}


def test_a_streamed_answer_in_contents_of_its_own_is_no_split() -> None:
    """Google's own chats keep a content for each chunk: a thought, a text, a signed call."""
    answer = candidate(
        {"text": "Hm.", "thought": True}, {"text": MINT.text("Let me look")}, part("call")
    )

    def apart(body: Body) -> None:
        at = next(i for i, c in enumerate(body["contents"]) if c["role"] == "model")
        body["contents"][at : at + 1] = [
            {"role": "model", "parts": [p]} for p in body["contents"][at]["parts"]
        ]

    assert rows("gemini", answer, edit(apart)) == []


def test_once_the_turn_is_over_two_contents_in_a_row_are_allowed() -> None:
    answers = (parallel("gemini"), candidate(part("text")))
    (report,) = chat(
        "gemini", *answers, change=in_steps("gemini", answers_between=False), ends="And?"
    )
    found = [(f.fate.value, f.verdict.value, f.disputed) for f in report.findings]
    assert ("split", "allowed", True) in found
    assert {verdict for _, verdict, _ in found} <= {"ok", "allowed"}


@pytest.mark.parametrize("held", [True, False], ids=["in place", "never held"])
@pytest.mark.parametrize(
    ("provider", "host", "verdicts"),
    [
        ("google", "generativelanguage.googleapis.com", {"degrades", "allowed"}),
        ("vertex", "us-aiplatform.googleapis.com", {"breaks"}),
    ],
)
def test_the_dummy_of_the_developer_api_is_refused_on_vertex(
    provider: str, host: str, verdicts: set[str], *, held: bool
) -> None:
    """G9: the other one is known to both."""
    around: Body = {"provider": provider, "host": host}
    other = "context_engineering_is_the_way_to_go"

    def signed(text: str) -> Change:
        return edit(lambda body: parts_of(body)[0].update(thoughtSignature=text))

    for text, found in ((other, verdicts), (DUMMY, {"degrades", "allowed"})):
        answer = candidate(part("call", signed=held))
        (row,) = rows("gemini", answer, signed(text), **around, minted=around)
        assert (row[0], row[2]) == ("fabricated", "G9")
        assert row[1] in found


def test_a_dummy_where_the_seal_was_that_is_elsewhere_is_a_loss_of_both() -> None:
    """G6, G9: the call is accepted, its own signature is on another part."""

    def move(body: Body) -> None:
        parts = parts_of(body)
        parts.insert(0, {"thoughtSignature": parts[-1]["thoughtSignature"]})
        parts[-1]["thoughtSignature"] = DUMMY

    answer = candidate(part("text", signed=False), part("call"))
    assert rows("gemini", answer, edit(move)) == [
        ("misplaced", "degrades", "G6", False),
        ("fabricated", "degrades", "G9", False),
    ]


@pytest.mark.parametrize("where", ["response", "id"])
def test_so_it_is_where_no_part_of_the_model_has_the_seal(where: str) -> None:
    """On the response of the function, or in its id: the seal is nobody's, the call has a dummy."""

    def move(body: Body) -> None:
        (one,) = parts_of(body)
        seal, one["thoughtSignature"] = one["thoughtSignature"], DUMMY
        if where == "id":
            one["functionCall"]["id"] += f"__thought__{seal}"
        else:
            body["contents"][2]["parts"][0]["thoughtSignature"] = seal

    assert rows("gemini", candidate(part("call")), edit(move)) == [
        ("misplaced", "degrades", "G6", False),
        ("fabricated", "degrades", "G9", False),
    ]


def test_a_seal_that_is_elsewhere_and_nothing_in_its_place_breaks() -> None:
    def move(body: Body) -> None:
        parts = parts_of(body)
        parts.insert(0, {"thoughtSignature": parts[-1].pop("thoughtSignature")})

    answer = candidate(part("text", signed=False), part("call"))
    assert rows("gemini", answer, edit(move)) == [("misplaced", "breaks", "G6", False)]


def test_on_chat_a_dummy_on_the_call_and_its_seal_on_the_message_are_losses() -> None:
    def move(body: Body) -> None:
        said = next(m for m in body["messages"] if m["role"] == "assistant")
        said["extra_content"] = said["tool_calls"][0]["extra_content"]
        said["tool_calls"][0] = signs(said["tool_calls"][0], "chat", DUMMY)

    found = rows("chat", called(), edit(move))
    assert {row[:2] for row in found} <= {
        ("misplaced", "degrades"),
        ("retyped", "degrades"),
        ("fabricated", "degrades"),
    }
    assert len(found) == 2


@pytest.mark.parametrize("text", ["The answer is 42.", ""], ids=["filled", "empty"])
@pytest.mark.parametrize("came", [False, True], ids=["sent as a thought", "sent as an answer"])
def test_a_signed_text_that_became_a_thought_is_retyped(text: str, *, came: bool) -> None:
    """G6: the same bytes in a part of another type, whichever way round."""
    thought = {"thought": True} if came else {}
    answer = candidate({"text": text, "thoughtSignature": MINT.seal()} | thought)

    def turn(body: Body) -> None:
        if came:
            del parts_of(body)[0]["thought"]
        else:
            parts_of(body)[0]["thought"] = True

    assert rows("gemini", answer, edit(turn)) == [("retyped", "degrades", "G6", False)]


@pytest.mark.parametrize("dialect", SEALS)
def test_a_dummy_on_an_unsigned_call_next_to_a_signed_one_is_disputed(dialect: str) -> None:
    """G9: an empty answer was seen (litellm#37541)."""

    def sign(body: Body) -> None:
        calls = _calls(body, dialect)
        calls[1] = signs(calls[1], dialect, DUMMY)

    found = rows(dialect, parallel(dialect), edit(sign))
    assert found == [("fabricated", "degrades", "G9", True)]


def _calls(body: Body, dialect: str) -> list[Body]:
    if dialect == "gemini":
        return parts_of(body)
    found: list[Body] = next(m for m in body["messages"] if m["role"] == "assistant")["tool_calls"]
    return found


# --------------------------------------------------------------------------------- constants


def test_a_constant_is_known_by_size_and_hash_in_every_spelling_and_kept_nowhere() -> None:
    data = b"a public value that a client puts everywhere"
    constant = Constant(len(data), published(data))
    reader = Reader(DIALECT, Digest(KEY), {constant: b"known"})
    plain = base64.b64encode(data).decode()
    spellings = (plain, plain.rstrip("="), base64.urlsafe_b64encode(data).decode())
    parts = [{"text": "x", "thoughtSignature": one} for one in (*spellings, MINT.seal())]
    sent = reader.request(
        exchange("gemini", {"contents": [{"role": "model", "parts": parts}]}, None)
    )
    canons = [block.values[0].canon for block in sent.messages[0].blocks]
    assert canons[:3] == [b"known"] * 3
    assert canons[3] != b"known"
    assert {block.values[0].state for block in sent.messages[0].blocks} == {State.PRESENT}


@pytest.fixture(name="constant")
def _constant(monkeypatch: pytest.MonkeyPatch) -> str:
    """A value that counts as a client's constant in this test."""
    data = bytes(range(200, 256)) * 4
    known = (*DIALECT.constants, Constant(len(data), published(data)))
    renewed = {
        api: dataclasses.replace(d, constants=known) if d is DIALECT else d
        for api, d in dialects().items()
    }
    monkeypatch.setattr(tracker, "dialects", lambda: renewed)
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("dialect", SEALS)
def test_a_constant_is_a_placeholder_at_most_a_loss(dialect: str, constant: str) -> None:
    """G9, G11: never issued, and no forgery: on an unsigned call, and in place of a seal."""

    def sign(at: int) -> Callable[[Body], None]:
        def change(body: Body) -> None:
            calls = _calls(body, dialect)
            calls[at] = signs(calls[at], dialect, constant)

        return change

    assert rows(dialect, parallel(dialect), edit(sign(1))) == [
        ("fabricated", "degrades", "G9", True)
    ]
    assert rows(dialect, parallel(dialect), edit(sign(0))) == [
        ("fabricated", "degrades", "G9", False)
    ]


def test_the_constant_of_langchain_js_is_in_the_table() -> None:
    assert [(one.size, one.sha256[:8]) for one in DIALECT.constants] == [(313, "6e7a63a6")]


# ------------------------------------------------------------------------------------ R7


def reasoned(*details: Body, loop: bool = True) -> Body:
    calls = [tool_call(MINT)] if loop else ()
    return chat_answer("openrouter", content="So.", reasoning_details=list(details), calls=calls)


def of_detail(edit_one: Callable[[Body], object]) -> Change:
    def change(body: Body) -> None:
        for message in body["messages"]:
            for one in message.get("reasoning_details") or ():
                edit_one(one)

    return edit(change)


@pytest.mark.parametrize("how", ["gone", "null", "empty"])
def test_at_openrouter_thinking_without_its_signature_breaks_in_a_loop(how: str) -> None:
    values: dict[str, Any] = {"null": None, "empty": ""}

    def strip(one: Body) -> None:
        one.pop("signature") if how == "gone" else one.update(signature=values[how])

    found = rows("openrouter", reasoned(detail(MINT)), of_detail(strip))
    assert ("dropped", "breaks", "R7", False) in found


@pytest.mark.parametrize(
    ("model", "verdict"), [("anthropic/claude-opus-5", "breaks"), ("openai/gpt-5.2", "degrades")]
)
def test_a_word_of_the_user_after_results_does_not_end_the_loop_of_claude(
    model: str, verdict: str
) -> None:
    """A2: its API reads both as one message, through a relay as well."""

    def change(body: Body) -> Body:
        body = of_detail(lambda one: one.pop("signature"))(body)
        return body | {"messages": [*body["messages"], {"role": "user", "content": "Be brief."}]}

    first = request("openrouter", []) | {"model": model}
    answer = reasoned(detail(MINT)) | {"model": model}
    found = rows("openrouter", answer, change, asked=first, model=model)
    assert ("dropped", verdict, "R7", False) in found


def test_in_a_finished_turn_that_is_a_loss() -> None:
    answer = reasoned(detail(MINT), loop=False)
    found = rows("openrouter", answer, of_detail(lambda one: one.pop("signature")))
    assert ("dropped", "degrades", "R7", False) in found


def test_a_signed_call_sent_back_faithfully_is_well() -> None:
    for dialect in SEALS:
        report = replay(dialect, copy.deepcopy(parallel(dialect)), lambda body: body)
        assert {f.verdict.value for f in report.findings} == {"ok"}
