"""Every fate that an exchange can show, and which of several is reported."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Cause, Fate, Finding, Locus, Report, Verdict
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
    asked,
    blocks,
    call,
    candidate,
    chat,
    compacted,
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
    SEALS,
    Body,
    ask,
    conversation,
    exchange,
    history,
    observe,
    replay,
    request,
    responses,
    results,
    row_of,
    step,
)

SIGNATURE = "anthropic.thinking.signature"
TEXT = "anthropic.thinking.text"
REDACTED = "anthropic.redacted_thinking.data"
SEAL = "openai.reasoning.encrypted_content"
ID = "openai.reasoning.id"
THOUGHT = "gemini.part.thought_signature"


def fates(report: Report, artifact: str) -> list[str]:
    return [f.fate.value for f in report.findings if f.artifact == artifact]


def only(report: Report, artifact: str) -> Finding:
    found = [f for f in report.findings if f.artifact == artifact]
    assert len(found) == 1
    return found[0]


# ------------------------------------------------------------------------------------- in order


def test_intact() -> None:
    """What came back as it came is intact, ok and under no rule."""
    report = replay("anthropic", message(thinking(), use()))
    found = only(report, SIGNATURE)
    assert (found.fate, found.verdict, found.rule) == (Fate.INTACT, Verdict.OK, "")
    assert (found.digest_in, found.size_in) == (found.digest_out, found.size_out)
    assert (found.locus, found.cause, found.first) == (None, None, True)
    assert found.received is not None
    assert (found.received.exchange, found.received.path) == (0, "content.0")
    assert found.returned == "messages.1.content.0"


def test_a_lost_neighbour_moves_nothing() -> None:
    """What is left of a turn stays in its place."""
    report = replay(
        "anthropic", message(redacted(), thinking(), use()), without("redacted_thinking")
    )
    assert fates(report, SIGNATURE) == ["intact"]
    assert fates(report, REDACTED) == ["dropped"]


def test_modified() -> None:
    """Another value in its place, with how it changed."""
    change = edit(lambda b: blocks(b)[0].update(signature=blocks(b)[0]["signature"][:-8]))
    found = only(replay("anthropic", message(thinking(), use()), change), SIGNATURE)
    assert (found.fate, found.cause, found.locus) == (Fate.MODIFIED, Cause.CUT_END, Locus.PROCESS)
    assert found.size_in is not None
    assert found.size_out == found.size_in - 8


def test_modified_by_another_seal_is_swapped() -> None:
    """The seal of an earlier turn in its place is a change of value."""
    first, second = message(thinking(), text()), message(thinking(), use())
    other = first["content"][0]["signature"]

    def change(body: Body) -> None:
        body["messages"][1]["content"].pop(0)
        body["messages"][3]["content"][0]["signature"] = other

    report = chat("anthropic", first, second, change=edit(change))[0]
    found = [f for f in report.findings if f.artifact == SIGNATURE][1]
    assert (found.fate, found.cause) == (Fate.MODIFIED, Cause.SWAPPED)


def test_dropped_block() -> None:
    """A block that is gone has one row, its seal's."""
    report = replay("anthropic", message(thinking(), use()), without("thinking"))
    assert [(f.artifact, f.fate.value) for f in report.findings] == [(SIGNATURE, "dropped")]
    assert report.findings[0].returned is None
    assert (report.expected, report.returned) == (1, 0)


@pytest.mark.parametrize("value", [..., None, ""], ids=["absent", "null", "empty"])
def test_dropped_field(value: Any) -> None:
    """A seal missing in a carrier that stands is dropped there."""
    report = replay("anthropic", message(thinking(), use()), sets("signature", value, "thinking"))
    found = only(report, SIGNATURE)
    assert (found.fate, found.returned) == (Fate.DROPPED, "messages.1.content.0")
    assert found.verdict is Verdict.BREAKS


def test_a_companion_has_no_row_where_its_seal_is_gone() -> None:
    """Text and id stand beside a seal or not at all."""
    report = replay(
        "openai", response(reasoning(), call()), sets("encrypted_content", None, "reasoning")
    )
    assert fates(report, ID) == []
    assert fates(report, SEAL) == ["dropped"]


def test_a_companion_missing_beside_its_seal_is_dropped() -> None:
    """The id is gone, the blob is there."""
    report = replay("openai", response(reasoning(), call()), sets("id", ..., "reasoning"))
    assert row_of(report, ID) == ("dropped", "allowed", "O7")
    assert row_of(report, SEAL) == ("intact", "ok", "")


def test_a_companion_that_changed_is_modified() -> None:
    """The text is another, the signature is the same."""
    change = sets("thinking", "Something else.", "thinking")
    report = replay("anthropic", message(thinking(), use()), change)
    assert row_of(report, TEXT) == ("modified", "degrades", "A6")
    assert row_of(report, SIGNATURE) == ("intact", "ok", "")


def test_reordered() -> None:
    """Thinking behind the call it led to: a fact of the turn, each of its seals has it."""
    answer = message(thinking(), redacted(), use())
    report = replay("anthropic", answer, edit(lambda b: blocks(b).insert(0, blocks(b).pop())))
    assert fates(report, SIGNATURE) == ["reordered"]
    assert fates(report, REDACTED) == ["reordered"]


def test_misplaced_on_another_part() -> None:
    """The signature of the first call stands on the second."""

    def change(body: Body) -> None:
        found = parts_of(body)
        found[1]["thoughtSignature"] = found[0].pop("thoughtSignature")

    report = replay("gemini", candidate(part(), part(signed=False)), edit(change))
    assert row_of(report, THOUGHT) == ("misplaced", "breaks", "G6")


def test_misplaced_in_a_message_of_the_user() -> None:
    """Right bytes, wrong role."""

    def change(body: Body) -> None:
        block = blocks(body).pop(0)
        body["messages"][-1]["content"].append(block)

    report = replay("anthropic", message(thinking(), use()), edit(change))
    assert fates(report, SIGNATURE) == ["misplaced"]


def test_misplaced_into_readable_text() -> None:
    """A blob written into a message is misplaced, with the cause `in_text`."""

    def change(body: Body) -> None:
        block = blocks(body).pop(0)
        blocks(body).insert(0, {"type": "text", "text": f"[sealed: {block['signature']}]"})

    found = only(replay("anthropic", message(thinking(), use()), edit(change)), SIGNATURE)
    assert (found.fate, found.cause) == (Fate.MISPLACED, Cause.IN_TEXT)


def test_misplaced_into_an_id() -> None:
    """A signature in the id of its call is misplaced, with the cause `in_id`."""

    def change(body: Body) -> None:
        one = parts_of(body)[0]
        one["functionCall"]["id"] += f"__thought__{one.pop('thoughtSignature')}"

    found = only(replay("gemini", candidate(part()), edit(change)), THOUGHT)
    assert (found.fate, found.cause) == (Fate.MISPLACED, Cause.IN_ID)


def test_retyped() -> None:
    """Signed thinking with empty text sent back as a redacted block."""

    def change(body: Body) -> None:
        block = blocks(body)[0]
        seal = block["signature"]
        block.clear()
        block.update(type="redacted_thinking", data=seal)

    report = replay("anthropic", message(thinking(""), use()), edit(change))
    assert row_of(report, SIGNATURE) == ("retyped", "breaks", "A1")


def test_merged_seals() -> None:
    """Two signatures set end to end: both are merged."""

    def change(body: Body) -> None:
        one, two = blocks(body)[:2]
        one["thinking"] += two["thinking"]
        one["signature"] += two["signature"]
        blocks(body).remove(two)

    report = replay("anthropic", message(thinking(), thinking(), use()), edit(change))
    assert fates(report, SIGNATURE) == ["merged", "merged"]
    assert fates(report, TEXT) == ["merged"]


def test_merged_with_an_unsigned_neighbour() -> None:
    """A signed part that also holds its neighbour's text."""

    def change(body: Body) -> None:
        one, two = parts_of(body)
        two["text"] = one["text"] + two["text"]
        parts_of(body).remove(one)

    answer = candidate(part("text", signed=False), part("text"))
    assert fates(replay("gemini", answer, edit(change)), THOUGHT) == ["merged"]


def test_split_seal() -> None:
    """One signature in two blocks."""

    def change(body: Body) -> None:
        block = blocks(body)[0]
        seal = block["signature"]
        block["signature"] = seal[:100]
        blocks(body).insert(1, block | {"thinking": "", "signature": seal[100:]})

    report = replay("anthropic", message(thinking(), use()), edit(change))
    assert fates(report, SIGNATURE) == ["split"]


def test_split_step() -> None:
    """Parallel calls sent as several steps."""

    def change(body: Body) -> None:
        calls, results = body["contents"][1]["parts"], body["contents"][2]["parts"]
        body["contents"][1:3] = [
            one
            for a, b in zip(calls, results, strict=True)
            for one in ({"role": "model", "parts": [a]}, {"role": "user", "parts": [b]})
        ]

    report = replay("gemini", candidate(part(), part(signed=False)), edit(change))
    assert row_of(report, THOUGHT) == ("split", "breaks", "G14")


def test_duplicated() -> None:
    """Sent more often than received."""
    change = edit(lambda b: blocks(b).insert(0, dict(blocks(b)[0])))
    assert fates(replay("anthropic", message(thinking(), use()), change), SIGNATURE) == [
        "duplicated"
    ]


def test_duplicated_beside_server_state() -> None:
    """Sent although this very request refers to state the server holds."""
    answer = response(reasoning(), call())

    def change(b: Body) -> Body:
        return b | {"previous_response_id": answer["id"]}

    found = only(replay("openai", answer, change), SEAL)
    assert (found.fate, found.cause) == (Fate.DUPLICATED, Cause.SERVER_STATE)
    assert (found.verdict, found.rule) == (Verdict.BREAKS, "O2")


def test_a_seal_that_came_twice_may_be_sent_twice() -> None:
    """A mock that always signs alike is no duplicate."""
    seal = MINT.seal()
    answers = [message(thinking() | {"signature": seal}, use()) for _ in range(2)]
    report = chat("anthropic", *answers)[0]
    assert fates(report, SIGNATURE) == ["intact", "intact"]


@pytest.mark.parametrize("wrap", ["{}", "<thinking>{}</thinking>", "```\n{}\n```", "> {}"])
def test_substituted(wrap: str) -> None:
    """The readable text stands where the seal was, also inside tags or fences."""

    def change(body: Body) -> None:
        block = blocks(body).pop(0)
        blocks(body).insert(0, {"type": "text", "text": wrap.format(block["thinking"])})

    report = replay("anthropic", message(thinking(), use()), edit(change))
    # contract-corrections, A1: where thinking is adaptive the loop goes on without any of it
    assert row_of(report, SIGNATURE) == ("substituted", "degrades", "A1")


def test_substituted_in_the_slot() -> None:
    """The summary in the field of the blob cannot be decrypted."""
    summary = "What was weighed, at some length."

    def change(body: Body) -> None:
        body["input"][1]["encrypted_content"] = summary

    found = only(replay("openai", response(reasoning(summary), call()), edit(change)), SEAL)
    assert (found.fate, found.cause) == (Fate.SUBSTITUTED, Cause.READABLE_TEXT)
    assert (found.verdict, found.rule) == (Verdict.BREAKS, "O10")


DUMMY = "skip_thought_signature_validator"


@pytest.mark.parametrize(
    "dummy",
    [
        DUMMY,
        base64.b64encode(DUMMY.encode()).decode(),
        base64.urlsafe_b64encode(DUMMY.encode()).decode().rstrip("="),
        "context_engineering_is_the_way_to_go",
    ],
)
def test_fabricated_dummy(dummy: str) -> None:
    """A documented dummy in any spelling, where a signature was held."""
    change = edit(lambda b: parts_of(b)[0].update(thoughtSignature=dummy))
    found = only(replay("gemini", candidate(part()), change), THOUGHT)
    assert (found.fate, found.cause) == (Fate.FABRICATED, Cause.PLACEHOLDER)
    assert (found.verdict, found.rule) == (Verdict.DEGRADES, "G9")


@pytest.mark.parametrize(("dialect", "artifact"), [("anthropic", SIGNATURE), ("openai", SEAL)])
def test_fabricated_with_a_dummy_of_another_vendor(dialect: str, artifact: str) -> None:
    """A documented dummy is one on any wire."""
    answer = message(thinking(), use()) if dialect == "anthropic" else response(reasoning(), call())
    key, kind = (
        ("signature", "thinking") if dialect == "anthropic" else ("encrypted_content", "reasoning")
    )
    report = replay(dialect, answer, sets(key, DUMMY, kind))
    assert [(f.fate.value, f.verdict.value) for f in report.findings if f.artifact == artifact] == [
        ("fabricated", "breaks")
    ]


def test_fabricated_where_none_was_ever_issued() -> None:
    """A sealed block amid a turn that brought none."""
    change = edit(lambda b: blocks(b).insert(0, thinking()))
    report = replay("anthropic", message(text(), use()), change)
    assert row_of(report, SIGNATURE) == ("fabricated", "breaks", "A18")


def test_a_dummy_where_no_seal_was_held_is_allowed_for_gemini() -> None:
    """A history of another model has nothing to carry."""
    body = request("gemini", [])
    body["contents"] += [
        {"role": "model", "parts": [part(signed=False) | {"thoughtSignature": DUMMY}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look_up", "response": {}}}]},
    ]
    report = Tracker(KEY).observe(exchange("gemini", body, None))
    assert row_of(report, THOUGHT) == ("fabricated", "allowed", "G9")


def test_foreign_as_it_is() -> None:
    """A seal goes to another vendor that speaks the same wire."""
    report = replay(
        "anthropic", message(thinking(), use()), provider="minimax", host="api.minimax.io"
    )
    assert row_of(report, SIGNATURE) == ("foreign", "breaks", "A18")


def across(encode: int, *, in_id: bool = False) -> Report:
    """A Gemini signature in a request to Anthropic."""
    tracker = Tracker(KEY)
    answer = candidate(part())
    tracker.observe(exchange("gemini", request("gemini", []), answer))
    seal = answer["candidates"][0]["content"]["parts"][0]["thoughtSignature"]
    for _ in range(encode):
        seal = base64.b64encode(seal.encode()).decode()
    name = f"call_1__thought__{seal}" if in_id else "call_1"
    content: list[Body] = [{"type": "tool_use", "id": name, "name": "look_up", "input": {}}]
    if not in_id:
        content.insert(0, {"type": "thinking", "thinking": "", "signature": seal})
    body = request("anthropic", [])
    body["messages"] += [
        {"role": "assistant", "content": content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "x"}]},
    ]
    return tracker.observe(exchange("anthropic", body, None))


@pytest.mark.parametrize("encode", [0, 1, 2])
def test_foreign_across_wires(encode: int) -> None:
    """Plain, encoded once more, or twice."""
    assert [f.fate.value for f in across(encode).findings if f.returned] == ["foreign"]


def test_foreign_hidden_in_an_id() -> None:
    """A gateway's id that holds another vendor's signature."""
    found = [f for f in across(0, in_id=True).findings if f.fate is Fate.FOREIGN]
    assert [(f.artifact, f.cause) for f in found] == [(THOUGHT, Cause.IN_ID)]


def test_stale_and_the_newer_one_dropped() -> None:
    """An older compaction is sent although a newer one was issued."""

    def change(body: Body) -> Body:
        first = next(i for i in body["input"] if i.get("type") == "compaction")
        return body | {"input": [first, body["input"][-1]]}

    answers = [response(compacted(), said()) for _ in range(2)]
    report = chat("openai", *answers, change=change)[0]
    name = "openai.compaction.encrypted_content"
    assert fates(report, name) == ["stale", "dropped"]


def test_superseded() -> None:
    """What a compaction in this request carries is rightly absent."""
    answers = [response(reasoning(), said()), response(compacted(), said())]

    def change(body: Body) -> Body:
        at = next(n for n, i in enumerate(body["input"]) if i.get("type") == "compaction")
        return body | {"input": body["input"][at:]}

    report = chat("openai", *answers, change=change)[0]
    assert row_of(report, SEAL) == ("superseded", "allowed", "O16")


def test_not_superseded_by_a_compaction_that_is_not_there() -> None:
    """Only a compaction in this very request carries what came before."""
    answers = [response(reasoning(), said()), response(compacted(), said())]
    report = chat("openai", *answers, change=lambda b: b | {"input": b["input"][-1:]})[0]
    assert "superseded" not in {f.fate.value for f in report.findings}


def test_server_held() -> None:
    """The request refers to the response that brought it."""
    answer = response(reasoning(), call())

    def change(b: Body) -> Body:
        return b | {"input": b["input"][-1:], "previous_response_id": answer["id"]}

    report = replay("openai", answer, change)
    assert row_of(report, SEAL) == ("server_held", "allowed", "O2")
    assert report.carry.value == "by_reference"


@pytest.mark.parametrize("value", ["", None, ...], ids=["empty", "null", "absent"])
def test_unsealed_or_not_requested(value: Any) -> None:
    """What came without its seal and is replayed as if it had one."""
    answer = message(thinking(), use())
    if value is ...:
        del answer["content"][0]["signature"]
    else:
        answer["content"][0]["signature"] = value
    report = replay("anthropic", answer)
    expected = "unsealed" if value == "" else "not_requested"
    assert row_of(report, SIGNATURE) == (expected, "breaks", "A3")
    assert report.findings[0].locus is Locus.SOURCE


def test_a_block_cut_inside_its_signature_is_unsealed() -> None:
    """Half a signature was never complete, and is replayed as if it were."""
    half = thinking()
    seal = half["signature"]
    events = [
        {"type": "message_start", "message": message() | {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": half | {"signature": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": seal[:40]},
        },
    ]
    tracker = Tracker(KEY)
    body = request("anthropic", [])
    tracker.observe(exchange("anthropic", body, None, events=events, complete=False))
    body["messages"] += [
        {"role": "assistant", "content": [half | {"signature": seal[:40]}]},
        *ask("anthropic", "Go on."),
    ]
    report = tracker.observe(exchange("anthropic", body, None))
    assert row_of(report, SIGNATURE) == ("unsealed", "unverifiable", "X11")


def test_dropping_what_was_never_sealed_has_no_row() -> None:
    """A block without a seal is nobody's loss."""
    answer = message(thinking() | {"signature": ""}, use())
    assert replay("anthropic", answer, without("thinking")).findings == ()


def test_not_requested_for_openai() -> None:
    """The item came without a blob, store is off, and it is replayed by id."""
    answer = response(reasoning() | {"encrypted_content": None}, call())
    assert row_of(replay("openai", answer), SEAL) == ("not_requested", "breaks", "O8")


def test_absent_at_source() -> None:
    """A compact call that answers 200 without an artifact."""
    answer = response() | {"object": "response.compaction"}
    report = Tracker(KEY).observe(exchange("openai", asked("openai"), answer, operation="compact"))
    name = "openai.compaction.encrypted_content"
    assert row_of(report, name) == ("absent_at_source", "degrades", "O17")
    assert report.findings[0].locus is Locus.SOURCE


def test_a_refused_call_is_not_absent_at_source() -> None:
    """Nothing came because nothing was given."""
    answer = response() | {"object": "response.compaction"}
    report = Tracker(KEY).observe(exchange("openai", asked("openai"), answer, status=500))
    assert report.findings == ()


def test_orphaned_follower() -> None:
    """A call keeps its server id without its reasoning."""
    report = replay("openai", response(reasoning(), call()), without("reasoning"))
    assert row_of(report, "openai.function_call") == ("orphaned", "breaks", "O4")


def test_orphaned_reasoning() -> None:
    """The reasoning keeps its server id without its call."""
    report = replay("openai", response(reasoning(), call()), without("function_call"))
    assert row_of(report, "openai.reasoning") == ("orphaned", "breaks", "O3")


@pytest.mark.parametrize("between", [*ask("openai", "And this?"), {"role": "developer"}])
def test_reasoning_is_orphaned_where_somebody_else_speaks_before_its_call(between: Body) -> None:
    """What follows it has to follow it."""

    def change(body: Body) -> None:
        at = [i.get("type") for i in body["input"]].index("function_call")
        body["input"].insert(at, {"content": "x", **between})

    report = replay("openai", response(reasoning(), call()), edit(change))
    assert row_of(report, "openai.reasoning") == ("orphaned", "breaks", "O3")
    assert row_of(report, SEAL)[0] == "intact"


def test_nothing_is_orphaned_without_ids() -> None:
    """Without server ids no pair is enforced."""

    def change(body: Body) -> None:
        body["input"] = [i for i in body["input"] if i.get("type") != "reasoning"]
        for item in body["input"]:
            item.pop("id", None)

    report = replay("openai", response(reasoning(), call()), edit(change))
    assert {f.fate.value for f in report.findings} == {"dropped"}


@pytest.mark.parametrize("key", ["cache_control", "index"])
def test_envelope_modified(key: str) -> None:
    """The carrier gained a key, the seal is intact."""
    report = replay("anthropic", message(thinking(), use()), sets(key, {"a": 1}, "thinking"))
    assert row_of(report, "anthropic.thinking.envelope") == ("envelope_modified", "breaks", "A30")
    assert row_of(report, SIGNATURE) == ("intact", "ok", "")


@pytest.mark.parametrize(
    ("change", "cause", "detail"),
    [
        (lambda b: b | {"system": "Other."}, Cause.SYSTEM, "system"),
        (lambda b: b | {"tools": []}, Cause.TOOLS, "tools"),
        (
            edit(lambda b: b["messages"][0].update(content="Other.")),
            Cause.MESSAGE,
            "messages.0",
        ),
        (
            edit(lambda b: b["messages"].insert(1, *ask("anthropic", "New."))),
            Cause.MESSAGE,
            "messages.1",
        ),
    ],
    ids=["system", "tools", "message", "inserted"],
)
def test_prefix_changed(change: Any, cause: Cause, detail: str) -> None:
    """What stands before the seal is not what it was; the first element is named."""
    report = replay("anthropic", message(thinking(), use()), change)
    found = only(report, "request.prefix")
    assert (found.fate, found.cause, found.detail) == (Fate.PREFIX_CHANGED, cause, detail)
    assert (found.verdict, found.rule) == (Verdict.OK, "")


def test_a_prefix_changed_behind_the_seal_is_none() -> None:
    """An edit voids only what stands after it."""
    change = edit(lambda b: b["messages"][-1].update(content="Other."))
    assert fates(replay("anthropic", message(thinking(), text()), change), "request.prefix") == []


@pytest.mark.parametrize(
    ("around", "detail"),
    [
        ({"account": "two"}, "account"),
        ({"provider": "aws.bedrock", "host": "bedrock-runtime.amazonaws.com"}, "platform"),
        ({"host": "gateway.example"}, "host"),
    ],
    ids=["account", "platform", "host"],
)
def test_issuer_changed(around: Body, detail: str) -> None:
    """Another platform, host or account of the same vendor."""
    found = only(replay("anthropic", message(thinking(), use()), **around), "request.issuer")
    assert (found.fate, found.detail, found.rule) == (Fate.ISSUER_CHANGED, detail, "A17")


def test_unknown() -> None:
    """A value never seen coming in is never called intact and is no violation."""
    report = Tracker(KEY).observe(conversation("anthropic")[3])
    assert {(f.fate.value, f.verdict.value, f.rule) for f in report.findings} == {
        ("unknown", "unverifiable", "X2")
    }
    assert (report.expected, report.returned) == (0, 0)


def test_sdk_lossy() -> None:
    """The wire brought it and the SDK's own object was seen to lack it."""
    answer = message(thinking(), use())
    bare = copy.deepcopy(answer)
    bare["content"][0].pop("signature")
    report = replay("anthropic", answer, sets("signature", None, "thinking"), minted={"sdk": bare})
    found = only(report, SIGNATURE)
    assert (found.fate, found.verdict, found.locus) == ("sdk_lossy", "breaks", Locus.SDK)


def test_a_seal_of_another_vendor_put_into_a_users_message_is_foreign() -> None:
    """The history around it says whose conversation it is; who minted the seal is known."""
    tracker = Tracker(KEY)
    answer = response(reasoning(), call())
    tracker.observe(exchange("openai", request("openai", []), answer))
    alien = redacted() | {"data": answer["output"][0]["encrypted_content"]}

    def change(body: Body) -> Body:
        told = {"role": "user", "content": [alien]}
        return body | {"messages": [*body["messages"], told]}

    own = [message(thinking(), use()), message(thinking(), text())]
    report = chat("anthropic", *own, change=change, tracker=tracker)[0]
    assert fates(report, REDACTED) == ["foreign"]


# ----------------------------------------------------------------------------------- precedence


def test_foreign_goes_before_the_place() -> None:
    """A foreign seal on the wrong part is foreign."""
    change = edit(lambda b: blocks(b).insert(0, blocks(b).pop()))
    report = replay("anthropic", message(thinking(), use()), change, provider="zhipu")
    assert fates(report, SIGNATURE) == ["foreign"]


def test_server_held_goes_before_everything() -> None:
    """What the server holds is not dropped, substituted or orphaned."""
    answer = response(reasoning("What was weighed, at some length."), call())
    words = {"role": "assistant", "content": "What was weighed, at some length."}

    def change(b: Body) -> Body:
        return b | {
            "input": [words, b["input"][-1]],
            "previous_response_id": answer["id"],
        }

    assert [f.fate.value for f in replay("openai", answer, change).findings] == ["server_held"]


def test_merged_goes_before_retyped_and_reordered() -> None:
    """A merged block at the end of its turn is merged."""

    def change(body: Body) -> None:
        one, two = blocks(body)[:2]
        one["signature"] += two["signature"]
        blocks(body).remove(two)
        blocks(body).append(blocks(body).pop(0))

    report = replay("anthropic", message(thinking(), thinking(), use()), edit(change))
    assert fates(report, SIGNATURE) == ["merged", "merged"]


def test_duplicated_goes_before_misplaced() -> None:
    """A copy in the wrong place is a copy."""

    def change(body: Body) -> None:
        body["messages"][-1]["content"].append(dict(blocks(body)[0]))

    report = replay("anthropic", message(thinking(), use()), edit(change))
    assert fates(report, SIGNATURE) == ["duplicated"]


def test_substituted_goes_before_dropped_only_where_the_text_is_the_turns_own_summary() -> None:
    """A host's own text in the place of the block is no substitute."""

    def change(body: Body) -> None:
        blocks(body)[0] = {"type": "text", "text": "Something quite different was said here."}

    report = replay("anthropic", message(thinking(), use()), edit(change))
    assert fates(report, SIGNATURE) == ["dropped"]


def test_one_artifact_has_one_row() -> None:
    """However much happened to it, a seal has one row in a request."""
    reports = observe(
        conversation("anthropic", host=lambda b: b | {"system": str(len(b["messages"]))})
    )
    for report in reports:
        keys = [
            (f.artifact, f.received and (f.received.exchange, f.received.path))
            for f in report.findings
        ]
        assert len(keys) == len(set(keys))


def test_rows_stand_in_order_of_receipt() -> None:
    """Findings follow the exchanges and positions they came in with."""
    report = observe(conversation("anthropic"))[-1]
    origins = [f.received for f in report.findings]
    keys = [(o.exchange, o.path) for o in origins if o is not None]
    assert keys == sorted(keys)


def test_a_conversation_on_a_wire_to_come_is_named_as_unread() -> None:
    """A wire that no dialect speaks is said to be unread."""
    report = Tracker(KEY).observe(Exchange(api=Api.REALTIME, request={"messages": []}))
    assert (report.unread, report.findings, report.verdict) == (("api",), (), None)


def test_a_seal_may_go_to_its_own_vendor_on_another_wire() -> None:
    """The vendor that minted a value is never foreign to itself."""
    answer = message(thinking(), use())
    report = replay("anthropic", copy.deepcopy(answer), provider="vertex")
    assert fates(report, SIGNATURE) == ["intact"]
    assert history(request("anthropic", [answer]))[1]["content"] == answer["content"]


# --------------------------------------------------------------------------------- more of a kind


def test_reasoning_without_followers_is_no_orphan() -> None:
    """An item that came alone may go alone."""
    report = replay("openai", response(reasoning()))
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_a_group_ends_at_a_compaction() -> None:
    """What came behind a compaction item is not the reasoning's."""
    answer = response(reasoning(), compacted(), said())
    report = replay("openai", answer, without("reasoning"))
    assert "orphaned" not in {f.fate.value for f in report.findings}


def test_a_lost_marker_between_unsigned_blocks_merges_nothing() -> None:
    """Only two sealed neighbours can touch."""
    answer = message(text(), {"type": "fallback"}, thinking(), use())
    report = replay("anthropic", answer, without("fallback"))
    assert fates(report, SIGNATURE) == ["intact"]


def test_a_longer_text_of_another_make_is_modified_not_merged() -> None:
    """Merged is only what holds its neighbour's words."""
    answer = candidate(part("text", signed=False), part("text"))

    def change(body: Body) -> None:
        parts_of(body)[1]["text"] = "Something else, and a good deal longer. " * 6

    report = replay("gemini", answer, edit(change))
    assert row_of(report, "gemini.part.text")[0] == "modified"
    assert row_of(report, THOUGHT)[0] == "intact"


def test_signed_text_that_moved_into_its_neighbour_is_merged() -> None:
    """One of two blocks swallowed the other and kept its own signature."""

    def change(body: Body) -> None:
        one, two = blocks(body)[:2]
        two["thinking"] = one["thinking"] + "\n" + two["thinking"]
        blocks(body).remove(one)

    report = replay("anthropic", message(thinking(), thinking(), use()), edit(change))
    assert fates(report, SIGNATURE) == ["merged", "merged"]


def test_another_vendors_seal_in_the_place_of_ones_own_is_foreign() -> None:
    """What stands in the slot was minted elsewhere."""
    tracker = Tracker(KEY)
    other = candidate(part())
    tracker.observe(exchange("gemini", request("gemini", []), other))
    seal = other["candidates"][0]["content"]["parts"][0]["thoughtSignature"]
    change = sets("signature", seal, "thinking")
    report = replay("anthropic", message(thinking(), use()), change, tracker=tracker)
    shown = [(f.fate.value, f.verdict.value) for f in report.findings if f.returned]
    assert ("foreign", "breaks") in shown


def test_a_seal_encoded_over_in_another_slot_is_modified() -> None:
    """Neither its place nor its bytes are right; the bytes are told first."""

    def change(body: Body) -> None:
        found = parts_of(body)
        seal = found[0].pop("thoughtSignature")
        found[1]["thoughtSignature"] = base64.b64encode(seal.encode()).decode()

    report = replay("gemini", candidate(part(), part(signed=False)), edit(change))
    found = only(report, THOUGHT)
    assert (found.fate, found.cause) == (Fate.MODIFIED, Cause.DOUBLE_ENCODED)


def test_half_a_seal_at_the_end_of_everything_is_cut() -> None:
    """Nothing follows that could hold the other half."""

    def change(body: Body) -> None:
        body["input"][-1]["encrypted_content"] = body["input"][-1]["encrypted_content"][:80]

    report = chat("openai", response(said(), reasoning()), change=edit(lambda b: change(_cut(b))))[
        0
    ]
    assert only(report, SEAL).cause is Cause.CUT_END


def _cut(body: Body) -> Body:
    del body["input"][-1]
    return body


def test_a_paused_turn_has_to_come_back() -> None:
    """pause_turn asks for the content as it is (A21)."""
    answer = message(thinking(), text(), stop="pause_turn")
    report = replay("anthropic", answer, without("thinking"))
    assert row_of(report, SIGNATURE) == ("dropped", "breaks", "A21")


def test_a_compaction_that_stopped_without_its_block_is_absent_at_source() -> None:
    """Asked for, and not given (A24)."""
    answer = message(text(), stop="compaction")
    report = Tracker(KEY).observe(exchange("anthropic", asked("anthropic"), answer))
    name = "anthropic.compaction.encrypted_content"
    assert row_of(report, name) == ("absent_at_source", "degrades", "A24")


def test_system_messages_in_between_are_told_to_the_model() -> None:
    """A system message appended at the end breaks no prefix (A33)."""

    def change(body: Body) -> None:
        body["messages"].append({"role": "system", "content": "Be brief."})

    report = replay("anthropic", message(thinking(), text()), edit(change))
    assert {f.fate.value for f in report.findings} == {"intact"}


@pytest.mark.parametrize(
    "item",
    [
        {"type": "compaction_trigger"},
        {"type": "additional_tools", "tools": []},
        {"type": "message", "role": "developer", "content": "Be brief."},
        {"type": "input_text", "text": "More."},
    ],
    ids=lambda i: i["type"],
)
def test_items_of_the_client_at_the_end_break_nothing(item: Body) -> None:
    """What is appended stands behind every seal."""
    change = edit(lambda b: b["input"].append(item))
    report = replay("openai", response(reasoning(), said()), change)
    assert {f.fate.value for f in report.findings} == {"intact"}


def test_a_request_that_only_names_the_servers_state_finds_its_turns() -> None:
    """Without any other evidence the reference is enough."""
    answer = response(reasoning(), said())
    tracker = Tracker(KEY)
    tracker.observe(exchange("openai", asked("openai", store=True), answer))
    body = asked("openai", store=True, previous_response_id=answer["id"])
    body["input"] = "Anything."
    report = tracker.observe(exchange("openai", body, None))
    assert row_of(report, SEAL) == ("server_held", "allowed", "O2")


def test_an_older_gemini_model_has_no_rules_of_a_generation() -> None:
    """Neither 2 nor 3."""
    answer = candidate(part(), model="gemini-1.5-pro")
    report = replay("gemini", answer, model="gemini-1.5-pro", minted={"model": "gemini-1.5-pro"})
    assert fates(report, THOUGHT) == ["intact"]


def test_a_call_that_lost_its_id_with_its_reasoning_is_no_orphan() -> None:
    """Of two followers only the one that kept its id needs the reasoning."""

    def change(body: Body) -> None:
        body["input"] = [i for i in body["input"] if i.get("type") != "reasoning"]
        calls = [i for i in body["input"] if i.get("type") == "function_call"]
        del calls[0]["id"]

    report = replay("openai", response(reasoning(), call(), call()), edit(change))
    assert fates(report, "openai.function_call") == ["orphaned"]


def test_an_item_of_no_known_pair_needs_no_reasoning() -> None:
    """Only items that the provider pairs have a group."""
    item = {"type": "mcp_list_tools", "id": "mcpl_1", "tools": []}
    report = replay("openai", response(reasoning(), item, call()), without("reasoning"))
    assert {f.artifact for f in report.findings if f.fate is Fate.ORPHANED} == {
        "openai.function_call"
    }


def test_a_part_that_lost_the_words_of_its_own_is_not_merged() -> None:
    """Its neighbour's words alone are another text."""
    answer = candidate(part("text", signed=False), part("text"))

    def change(body: Body) -> None:
        one, two = parts_of(body)
        two["text"] = f"{one['text']} And a few more words of nobody's, to be longer than before."

    report = replay("gemini", answer, edit(change))
    assert fates(report, THOUGHT) == ["intact"]
    assert fates(report, "gemini.part.text") == ["modified"]


@pytest.mark.parametrize(
    ("dialect", "lost", "old"),
    [
        # contract-corrections, A2: to Anthropic the user's word after the results goes on with them
        ("anthropic", ("breaks", "A1"), ("breaks", "A1")),
        ("openai", ("degrades", "O5"), ("allowed", "X7")),
        ("gemini", ("breaks", "G1"), ("allowed", "X7")),
        ("chat", ("breaks", "G19"), ("allowed", "X7")),
        # Claude behind a relay, the same
        ("openrouter", ("degrades", "R7"), ("degrades", "R7")),
    ],
)
def test_a_turn_that_is_gone_is_under_way_while_the_results_of_its_calls_are_sent(
    dialect: str, lost: tuple[str, str], old: tuple[str, str]
) -> None:
    """Once the user went on it is one of those that were left out."""
    answer = responses(dialect)[0]
    tracker = Tracker(KEY)
    body = request(dialect, [])
    tracker.observe(exchange(dialect, body, answer))
    history(body).extend(results(dialect, answer))
    report = tracker.observe(exchange(dialect, body, None))
    assert row_of(report, SEALS[dialect]) == ("dropped", *lost)
    history(body).extend(ask(dialect, "And now?"))
    report = tracker.observe(exchange(dialect, body, None))
    assert row_of(report, SEALS[dialect]) == ("dropped", *old)


def test_a_block_left_out_between_others_of_the_oldest_turn_is_a_gap() -> None:
    """As one of any other turn, whatever was left out in front of it."""
    tracker = Tracker(KEY)
    asked = request("anthropic", []) | {"model": "claude-opus-5-5"}
    first = message(thinking(), use(), stop="tool_use", model="claude-opus-5-5")
    second = message(thinking(), redacted(), thinking(), text(), model="claude-opus-5-5")
    around: dict[str, Any] = {"model": "claude-opus-5-5"}
    tracker.observe(exchange("anthropic", asked, first, **around))
    asked["messages"] += step("anthropic", first, "")
    tracker.observe(exchange("anthropic", asked, second, **around))
    asked["messages"] += step("anthropic", second, "And now?")
    one, two = [m["content"] for m in asked["messages"] if m["role"] == "assistant"]
    one[:] = [b for b in one if b["type"] != "thinking"]
    two[:] = [b for b in two if b["type"] != "redacted_thinking"]
    report = tracker.observe(exchange("anthropic", asked, None, **around))
    assert row_of(report, REDACTED) == ("dropped", "breaks", "A12")


def test_a_seal_in_the_slot_of_another_type_is_refused_in_a_finished_turn_too() -> None:
    """An empty thought is taken for a redacted one."""

    def retyped(body: Body) -> None:
        blocks(body)[0] = {"type": "redacted_thinking", "data": blocks(body)[0]["signature"]}

    report = replay("anthropic", message(thinking(""), text()), edit(retyped))
    assert row_of(report, SIGNATURE) == ("retyped", "breaks", "A5")


def test_an_answer_that_a_request_ends_in_is_under_no_loop() -> None:
    """As a summary is asked for, or an answer to be gone on with."""
    tracker = Tracker(KEY)
    asked = request("anthropic", [])
    answer = message(thinking(), text())
    tracker.observe(exchange("anthropic", asked, answer))
    said = [b for b in answer["content"] if b["type"] == "text"]
    asked["messages"].append({"role": "assistant", "content": said})
    report = tracker.observe(exchange("anthropic", asked, None))
    assert row_of(report, SIGNATURE) == ("dropped", "allowed", "A8")


def test_a_dummy_on_the_call_that_is_left_stands_for_the_seal_of_the_one_that_is_gone() -> None:
    """A handoff takes one call of two, and the provider takes the dummy."""

    def change(body: Body) -> None:
        _, two = parts_of(body)
        parts_of(body)[:] = [two | {"thoughtSignature": "skip_thought_signature_validator"}]

    report = replay("gemini", candidate(part("call"), part("call", signed=False)), edit(change))
    assert sorted({(f.fate.value, f.verdict.value, f.rule) for f in report.findings}) == [
        ("fabricated", "allowed", "G9"),
        ("fabricated", "degrades", "G9"),
    ]
