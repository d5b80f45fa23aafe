"""What the wire brought and the SDK's own object was seen to lack: lost before any host saw it."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from otel_sealed.model import Finding, Locus, Report
from otel_sealed.rulebook import reason
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    asked,
    call,
    candidate,
    message,
    part,
    reasoning,
    response,
    text,
    thinking,
    use,
)
from tests.core.conversations import KEY, Body, Change, exchange, history, row_of, same, step

SIGNATURE = "anthropic.thinking.signature"
TEXT = "anthropic.thinking.text"
BLOB = "openai.reasoning.encrypted_content"
THOUGHT = "gemini.part.thought_signature"


class Raises:
    """An object of somebody else's that answers no question."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def models(value: Any) -> Any:
    """Wire JSON as the models of an SDK: attributes and lists."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: models(item) for key, item in value.items()})
    return [models(item) for item in value] if isinstance(value, list) else value


def seen(dialect: str, answer: Body, sdk: Any, change: Change = same, **around: Any) -> Report:
    """The report of a replay from `sdk`, the object that the SDK made of `answer`."""
    tracker = Tracker(KEY)
    body = asked(dialect)
    tracker.observe(exchange(dialect, copy.deepcopy(body), answer, sdk=sdk, **around))
    history(body).extend(step(dialect, answer, "And then?"))
    return tracker.observe(exchange(dialect, change(body), None, status=None))


def unsigned(body: Body) -> Body:
    body["messages"][1]["content"][0].pop("signature")
    return body


def signed(value: str) -> Change:
    def change(body: Body) -> Body:
        body["messages"][1]["content"][0]["signature"] = value
        return body

    return change


def without_reasoning(body: Body) -> Body:
    return body | {"input": [i for i in body["input"] if i.get("type") != "reasoning"]}


def only(report: Report, artifact: str) -> Finding:
    (found,) = (f for f in report.findings if f.artifact == artifact)
    return found


@pytest.mark.parametrize("kind", [models, same], ids=["models", "mappings"])
def test_a_field_the_object_lacks_was_lost_by_the_sdk(kind: Any) -> None:
    answer = message(thinking(), use())
    sdk = kind(copy.deepcopy(answer))
    bare = copy.deepcopy(answer)
    bare["content"][0].pop("signature")
    report = seen("anthropic", answer, kind(bare), unsigned)
    # A3: a block that lost its signature is refused, also where a turn may come without thinking
    assert row_of(report, SIGNATURE) == ("sdk_lossy", "breaks", "A3")
    assert only(report, SIGNATURE).locus is Locus.SDK
    assert reason(only(report, SIGNATURE)) != ""
    assert row_of(seen("anthropic", answer, sdk, unsigned), SIGNATURE)[0] == "dropped"


@pytest.mark.parametrize("left", [None, ""], ids=["null", "empty"])
def test_a_field_that_is_null_or_empty_in_the_object_was_lost_by_the_sdk(left: Any) -> None:
    answer = message(thinking(), use())
    bare = copy.deepcopy(answer)
    bare["content"][0]["signature"] = left
    report = seen("anthropic", answer, models(bare), unsigned)
    assert row_of(report, SIGNATURE)[0] == "sdk_lossy"


def test_a_value_the_object_has_otherwise_was_changed_by_the_sdk() -> None:
    """The SDK keeps the last of two deltas (docs/sdk-surface.md#streams-of-anthropic)."""
    answer = message(thinking(), use())
    last = answer["content"][0]["signature"][40:]
    other = copy.deepcopy(answer)
    other["content"][0]["signature"] = last
    report = seen("anthropic", answer, models(other), signed(last))
    assert row_of(report, SIGNATURE) == ("sdk_lossy", "breaks", "A1")
    assert only(report, SIGNATURE).digest_out != b""


def test_a_host_that_sends_it_all_the_same_lost_nothing() -> None:
    """It may read the raw response."""
    answer = message(thinking(), use())
    bare = copy.deepcopy(answer)
    bare["content"][0].pop("signature")
    assert row_of(seen("anthropic", answer, models(bare)), SIGNATURE) == ("intact", "ok", "")


def test_an_item_the_object_lacks_was_lost_by_the_sdk() -> None:
    """A closing event without the items that were done (docs/sdk-surface.md#streams-of-openai)."""
    answer = response(reasoning(), call())
    report = seen("openai", answer, models(answer | {"output": []}), without_reasoning)
    assert row_of(report, BLOB)[0] == "sdk_lossy"


def test_a_host_that_puts_its_own_in_the_place_did_so_itself() -> None:
    answer = message(thinking(), use())
    bare = copy.deepcopy(answer)
    bare["content"][0].pop("signature")
    report = seen("anthropic", answer, models(bare), signed("skip_thought_signature_validator"))
    assert row_of(report, SIGNATURE)[0] == "fabricated"


@pytest.mark.parametrize(
    "sdk",
    [
        SimpleNamespace(content=b"raw"),
        SimpleNamespace(),
        Raises(),
        SimpleNamespace(content=[SimpleNamespace(type="text", text="another block")]),
        SimpleNamespace(content=[Raises()]),
        "text",
        7,
    ],
    ids=["raw", "empty", "raises", "another", "raises below", "text", "number"],
)
def test_an_object_that_cannot_be_followed_says_nothing(sdk: Any) -> None:
    answer = message(thinking(), use())
    assert row_of(seen("anthropic", answer, sdk, unsigned), SIGNATURE)[0] == "dropped"


def test_bytes_are_compared_as_what_they_decode_to() -> None:
    import base64

    signed_part = part("call")
    answer = candidate(signed_part)
    data = base64.b64decode(signed_part["thoughtSignature"])
    for value, fate in ((data, "dropped"), (data[:-1], "sdk_lossy"), (None, "sdk_lossy")):
        parts = [SimpleNamespace(thought_signature=value)]
        sdk = SimpleNamespace(candidates=[SimpleNamespace(content=SimpleNamespace(parts=parts))])

        def change(body: Body) -> Body:
            body["contents"][1]["parts"][0].pop("thoughtSignature")
            return body

        assert row_of(seen("gemini", answer, sdk, change), THOUGHT)[0] == fate


def test_what_no_object_of_a_release_can_hold_was_lost_by_the_sdk() -> None:
    """google-genai 1.17 has no field for a thought signature."""

    def change(body: Body) -> Body:
        body["contents"][1]["parts"][0].pop("thoughtSignature")
        return body

    answer = candidate(part("call"))
    report = seen("gemini", answer, None, change, sdk_lacks=frozenset({THOUGHT}))
    found = only(report, THOUGHT)
    assert (found.fate, found.locus) == ("sdk_lossy", Locus.SDK)
    other = seen("gemini", answer, None, change, sdk_lacks=frozenset({SIGNATURE}))
    assert row_of(other, THOUGHT)[0] == "dropped"


def test_the_object_is_looked_into_for_seals_only() -> None:
    answer = message(thinking(), text())
    other = copy.deepcopy(answer)
    other["content"][0]["thinking"] = "shortened"
    report = seen("anthropic", answer, models(other))
    assert {(SIGNATURE, "intact"), (TEXT, "intact")} == {
        (f.artifact, f.fate.value) for f in report.findings
    }


def test_a_block_of_a_type_no_table_knows_is_not_held_against_the_object() -> None:
    block = {"type": "novel_reasoning", "encrypted_content": thinking()["signature"]}
    answer = message(block, use())

    def change(body: Body) -> Body:
        body["messages"][1]["content"].pop(0)
        return body

    report = seen("anthropic", answer, models(answer | {"content": [{"type": "x"}]}), change)
    assert [f.fate.value for f in report.findings if f.received] == ["dropped"]
