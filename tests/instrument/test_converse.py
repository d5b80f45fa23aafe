"""Bedrock by botocore's own client: Converse whole and streamed, and InvokeModel, on loopback."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from otel_sealed.instrument import instrument, uninstrument
from otel_sealed.tracker import Tracker
from tests.core import converse
from tests.core.builders import message, redacted, thinking, use
from tests.core.test_bedrock import CLAUDE, frames

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder, Spans, Wire

SESSION: Any = importlib.import_module("botocore.session")
CONFIG: Any = importlib.import_module("botocore.config")
Body = dict[str, Any]
STREAMED = {"content-type": "application/vnd.amazon.eventstream"}


@pytest.fixture
def client(wire: Wire) -> Any:
    session = SESSION.get_session()
    return session.create_client(
        "bedrock-runtime",
        "eu-west-1",
        endpoint_url=wire.url,
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        config=CONFIG.Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def on(spans: Spans) -> Iterator[Spans]:
    instrument("http", tracer_provider=spans.provider, tracker=Tracker(b"k" * 32))
    yield spans
    uninstrument()


def whole(client: Any, messages: list[Body], **more: Any) -> Body:
    asked = client.converse(modelId=CLAUDE, messages=messages, **more)
    return dict(asked["output"]["message"])


def streamed(client: Any, messages: list[Body], **more: Any) -> Body:
    """What a host makes of a stream: the message again, from botocore's parsed events."""
    reply = client.converse_stream(modelId=CLAUDE, messages=messages, **more)
    return {"role": "assistant", "content": converse_back(list(reply["stream"]))}


def converse_back(events: list[Body]) -> list[Body]:
    blocks: dict[int, Body] = {}
    for one in events:
        start, delta = one.get("contentBlockStart"), one.get("contentBlockDelta")
        if start:
            blocks[start["contentBlockIndex"]] = {
                "toolUse": {**start["start"]["toolUse"], "input": {}}
            }
        if delta and "reasoningContent" in delta["delta"]:
            held = delta["delta"]["reasoningContent"]
            block = blocks.setdefault(delta["contentBlockIndex"], {"reasoningContent": {}})
            if "redactedContent" in held:
                block["reasoningContent"] = {"redactedContent": held["redactedContent"]}
            else:
                text = block["reasoningContent"].setdefault("reasoningText", {})
                for name, value in held.items():
                    text[name] = text.get(name, "") + value
    return [blocks[at] for at in sorted(blocks)]


THINKS: Body = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}


@pytest.mark.parametrize("delivery", [whole, streamed])
@pytest.mark.parametrize("faithful", [True, False])
def test_a_loop_over_converse_is_judged(
    client: Any,
    wire: Wire,
    on: Spans,
    delivery: Callable[..., Body],
    faithful: bool,  # noqa: FBT001 - both hosts
) -> None:
    answer = converse.response(message(thinking(), redacted(), use(), stop="tool_use"))
    if delivery is whole:
        wire.answers(json.dumps(answer).encode())
    else:
        wire.answers(frames(converse.events(answer)), headers=STREAMED)
    history: list[Body] = [{"role": "user", "content": [{"text": "Go."}]}]
    said = delivery(client, history, **THINKS)
    if not faithful:
        said["content"] = [b for b in said["content"] if "redactedContent" not in str(b)]
    (name,) = (b["toolUse"]["toolUseId"] for b in said["content"] if "toolUse" in b)
    result = {"toolResult": {"toolUseId": name, "content": [{"text": "r"}]}}
    history += [said, {"role": "user", "content": [result]}]
    delivery(client, history, **THINKS)
    first, second = [dict(span.attributes or {}) for span in on.ended]
    assert first["otel_sealed.received.count"] == 2
    assert first["gen_ai.request.model"] == CLAUDE
    assert first["gen_ai.provider.name"] == "aws.bedrock"
    assert second["otel_sealed.verdict"] == ("ok" if faithful else "breaks")
    assert second["otel_sealed.returned.count"] == (2 if faithful else 1)


def test_invoke_model_with_claude_is_a_call_of_messages(
    client: Any, wire: Wire, tracker: Recorder
) -> None:
    instrument("http", tracker=tracker)
    wire.answers(json.dumps(message(thinking(), use())).encode())
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}
    client.invoke_model(modelId=CLAUDE, body=json.dumps(body))["body"].read()
    seen = tracker.one
    assert (seen.api, seen.model, json.loads(seen.request)) == ("messages", CLAUDE, body)
    assert seen.response == wire.seen[0].sent
    assert (seen.status, seen.complete) == (200, True)


def test_a_model_that_embeds_is_no_turn(client: Any, wire: Wire, tracker: Recorder) -> None:
    instrument("http", tracker=tracker)
    wire.answers(b"{}")
    client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=b'{"inputText":"x"}')
    assert tracker.exchanges == []
