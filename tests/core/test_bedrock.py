"""Claude by Bedrock Converse: judged as on Messages, whole, streamed, and from one to the other."""

from __future__ import annotations

import base64
import binascii
import copy
import json
import struct
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange
from otel_sealed.instrument.body import aws_events
from otel_sealed.model import Fate, Report, Verdict
from otel_sealed.tracker import Tracker
from tests.core import converse
from tests.core.builders import message, redacted, thinking, use
from tests.core.conversations import KEY
from tests.core.test_rules import _CLAUDE, CASES

CLAUDE = "anthropic.claude-opus-4-6-v1:0"
Body = dict[str, Any]
HOLDS = "bedrock.reasoning_text.signature"


def frame(name: str, payload: Body, kind: str = "event") -> bytes:
    """One message of an AWS event stream, its checksums included."""
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in (
            (f":{kind}-type", name),
            (":content-type", "application/json"),
            (":message-type", kind),
        )
    )
    data = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    begun = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + data
    return begun + struct.pack(">I", binascii.crc32(begun))


def frames(events: list[Body]) -> bytes:
    return b"".join(frame(name, value) for one in events for name, value in one.items())


def asked(*more: Body, thinks: bool = True) -> Body:
    fields = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}} if thinks else {}
    return {"messages": [{"role": "user", "content": [{"text": "Go."}]}, *more], **fields}


def answered() -> Body:
    made: Body = converse.response(message(thinking(), redacted(), use(), stop="tool_use"))
    return made


def replayed(answer: Body) -> list[Body]:
    said = answer["output"]["message"]
    (name,) = (b["toolUse"]["toolUseId"] for b in said["content"] if "toolUse" in b)
    result = {"toolResult": {"toolUseId": name, "content": [{"text": "r"}]}}
    return [json.loads(json.dumps(said)), {"role": "user", "content": [result]}]


def exchange(request: Body, **more: Any) -> Exchange:
    known: Body = {"model": CLAUDE, "host": converse.HOST, "status": 200, "request": request}
    return Exchange(Api.CONVERSE, **{**known, **more})


def fates(report: Report) -> dict[str, tuple[Fate, Verdict]]:
    return {f.artifact: (f.fate, f.verdict) for f in report.findings}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_faithful_host_is_well(stream: bool) -> None:  # noqa: FBT001 - both deliveries
    tracker, answer = Tracker(KEY), answered()
    came = {"events": converse.events(answer)} if stream else {"response": answer}
    first = tracker.observe(exchange(asked(), **came))
    assert [r.artifact for r in first.received] == [HOLDS, "bedrock.redacted_content"]
    report = tracker.observe(exchange(asked(*replayed(answer))))
    assert fates(report) == {
        HOLDS: (Fate.INTACT, Verdict.OK),
        "bedrock.reasoning_text.text": (Fate.INTACT, Verdict.OK),
        "bedrock.redacted_content": (Fate.INTACT, Verdict.OK),
    }


@pytest.mark.parametrize("raw", [False, True], ids=["parsed", "bytes of the stream"])
def test_what_a_stream_brings_is_missed_where_it_does_not_go_back(raw: bool) -> None:  # noqa: FBT001
    tracker, answer = Tracker(KEY), answered()
    events: Any = converse.events(answer)
    tracker.observe(exchange(asked(), events=aws_events(frames(events)) if raw else events))
    back = replayed(answer)
    back[0]["content"] = [b for b in back[0]["content"] if "redactedContent" not in str(b)]
    report = tracker.observe(exchange(asked(*back)))
    found = fates(report)["bedrock.redacted_content"]
    assert found == (Fate.DROPPED, Verdict.BREAKS)
    assert {f.rule for f in report.findings if f.fate is Fate.DROPPED} == {"A2"}


def test_redacted_bytes_may_come_in_pieces_each_encoded_by_itself() -> None:
    tracker, answer = Tracker(KEY), answered()
    blocks = answer["output"]["message"]["content"]
    data = base64.b64decode(blocks[1]["reasoningContent"]["redactedContent"])
    events = []
    for one in converse.events(answer):
        delta = one.get("contentBlockDelta", {})
        if delta.get("contentBlockIndex") != 1:
            events.append(one)
            continue
        for piece in (data[:7], data[7:]):
            held = {"redactedContent": base64.b64encode(piece).decode()}
            events.append({"contentBlockDelta": {**delta, "delta": {"reasoningContent": held}}})
    tracker.observe(exchange(asked(), events=events))
    report = tracker.observe(exchange(asked(*replayed(answer))))
    assert fates(report)["bedrock.redacted_content"] == (Fate.INTACT, Verdict.OK)


def test_bytes_of_botocore_are_the_base64_of_the_wire() -> None:
    """Its parsed events and bodies hold bytes where the wire has base64."""
    tracker, answer = Tracker(KEY), answered()
    events = copy.deepcopy(converse.events(answer))
    for one in events:
        held = one.get("contentBlockDelta", {}).get("delta", {}).get("reasoningContent", {})
        if "redactedContent" in held:
            held["redactedContent"] = base64.b64decode(held["redactedContent"])
    tracker.observe(exchange(asked(), events=events))
    report = tracker.observe(exchange(asked(*replayed(answer))))
    assert report.verdict is Verdict.OK


@pytest.mark.parametrize("cut", range(1, 13))
def test_a_stream_that_is_cut_accuses_nobody_of_what_never_came(cut: int) -> None:
    tracker, answer = Tracker(KEY), answered()
    events = converse.events(answer)
    tracker.observe(exchange(asked(), events=events[:cut], complete=cut >= len(events)))
    report = tracker.observe(exchange(asked({"role": "user", "content": [{"text": "Again."}]})))
    assert not [f for f in report.findings if f.verdict.violates]


def test_a_conversation_that_goes_on_by_invoke_model_is_recognised() -> None:
    """The values are the same; only the blocks around them are others."""
    tracker = Tracker(KEY)
    said = message(thinking(), use(), stop="tool_use")
    tracker.observe(exchange(asked(), response=converse.response(said)))
    result = {"type": "tool_result", "tool_use_id": said["content"][1]["id"], "content": "r"}
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 9,
        "thinking": {"type": "adaptive"},
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": said["content"]},
            {"role": "user", "content": [result]},
        ],
    }
    report = tracker.observe(
        Exchange(Api.MESSAGES, provider="bedrock", model=CLAUDE, request=body, status=200)
    )
    assert not [f for f in report.findings if f.verdict.violates]


def test_of_another_model_nothing_is_accused() -> None:
    tracker, answer = Tracker(KEY), answered()
    for model in ("deepseek.r2-v1:0", "amazon.nova-premier-v2:0"):
        tracker.observe(exchange(asked(), model=model, response=answer))
        back = replayed(answer)
        back[0]["content"] = back[0]["content"][2:]
        report = tracker.observe(exchange(asked(*back), model=model))
        assert not [f for f in report.findings if f.verdict.violates]


def test_a_refusal_of_aws_is_classed_as_that_of_anthropic() -> None:
    tracker, answer = Tracker(KEY), answered()
    tracker.observe(exchange(asked(), response=answer))
    back = replayed(answer)
    back[0]["content"][0]["reasoningContent"]["reasoningText"]["signature"] = "AAAA" * 20
    said = {
        "message": "The model returned the following errors: messages.1.content.0: Invalid"
        " `signature` in `thinking` block"
    }
    report = tracker.observe(exchange(asked(*back), status=400, response=said))
    assert (report.provider_verdict, report.rejection) == ("rejected", "signature_invalid")
    assert fates(report)[HOLDS] == (Fate.MODIFIED, Verdict.BREAKS)


def test_an_event_stream_is_read_frame_by_frame_and_a_cut_frame_is_left_out() -> None:
    events = converse.events(answered())
    data = frames(events)
    assert aws_events(data) == events
    assert aws_events(data[:-3]) == events[:-1]
    broken = frame("modelStreamErrorException", {"message": "no"}, "exception")
    assert aws_events(data + broken)[-1] == {"modelStreamErrorException": {"message": "no"}}


@pytest.mark.parametrize("id_", sorted(_CLAUDE & CASES["anthropic"].keys()))
def test_a_case_of_messages_has_the_same_verdicts_on_converse(id_: str) -> None:
    """Those of the thinking that both wires have; artifacts are named after their wire."""
    names = {
        "anthropic.thinking.signature": HOLDS,
        "anthropic.thinking.text": "bedrock.reasoning_text.text",
        "anthropic.redacted_thinking.data": "bedrock.redacted_content",
    }
    for case in CASES["anthropic"][id_]:
        there = [
            sorted(
                (names[f.artifact], f.fate, f.verdict, f.rule)
                for f in report.findings
                if f.artifact in names
            )
            for report in case()
        ]
        here = [
            sorted((f.artifact, f.fate, f.verdict, f.rule) for f in report.findings)
            for report in converse.on_converse(case)()
        ]
        lost = [[r for r in rows if r not in mine] for rows, mine in zip(there, here, strict=True)]
        assert lost == [[]] * len(there)
