"""Exchanges of Messages, said on the wire of Bedrock Converse: the same model, the same seals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

from otel_sealed.contract import Api, Exchange
from otel_sealed.model import Report
from otel_sealed.tracker import Tracker

Body = dict[str, Any]
HOST = "bedrock-runtime.eu-west-1.amazonaws.com"


def block(part: Any) -> Any:
    """A block of Messages as Converse has it."""
    if isinstance(part, str):
        return {"text": part}
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if kind == "thinking":
        text = {
            k: part[n] for k, n in (("text", "thinking"), ("signature", "signature")) if n in part
        }
        return {"reasoningContent": {"reasoningText": text}}
    if kind == "redacted_thinking":
        data = {"redactedContent": part["data"]} if "data" in part else {}
        return {"reasoningContent": data}
    if kind == "text":
        return {"text": part.get("text")}
    if kind == "tool_use":
        return {
            "toolUse": {
                "toolUseId": part.get("id"),
                "name": part.get("name"),
                "input": part.get("input"),
            }
        }
    if kind == "tool_result":
        said = part.get("content")
        content = [block(one) for one in (said if isinstance(said, list) else [said])]
        return {"toolResult": {"toolUseId": part.get("tool_use_id"), "content": content}}
    return {str(kind): {}}


def blocks(content: Any) -> list[Any]:
    """The content of a message."""
    return [block(part) for part in (content if isinstance(content, list) else [content])]


def request(body: Any) -> Any:
    """A request of Messages as Converse has it; the model is in the URL."""
    if not isinstance(body, dict):
        return body
    messages = [
        {**message, "content": blocks(message.get("content"))}
        if isinstance(message, dict)
        else message
        for message in body.get("messages", [])
    ]
    made: Body = {"messages": messages}
    if "thinking" in body:
        made["additionalModelRequestFields"] = {"thinking": body["thinking"]}
    if "system" in body:
        made["system"] = blocks(body["system"])
    if "tools" in body:
        made["toolConfig"] = {"tools": [{"toolSpec": tool} for tool in body["tools"]]}
    return made


def response(body: Any) -> Any:
    """A response of Messages as Converse has it."""
    if not isinstance(body, dict) or "content" not in body:
        return body
    message = {"role": "assistant", "content": blocks(body["content"])}
    usage = body.get("usage") or {}
    return {
        "output": {"message": message},
        "stopReason": body.get("stop_reason"),
        "usage": {
            "inputTokens": usage.get("input_tokens"),
            "outputTokens": usage.get("output_tokens"),
        },
    }


def events(answer: Body) -> list[Body]:
    """A whole response of Converse as the events of `ConverseStream`."""
    found: list[Body] = [{"messageStart": {"role": "assistant"}}]
    for at, part in enumerate(answer["output"]["message"]["content"]):
        index = {"contentBlockIndex": at}
        if "toolUse" in part:
            tool = {k: v for k, v in part["toolUse"].items() if k != "input"}
            found.append({"contentBlockStart": {**index, "start": {"toolUse": tool}}})
            found.append({"contentBlockDelta": {**index, "delta": {"toolUse": {"input": "{}"}}}})
        found += [{"contentBlockDelta": {**index, "delta": one}} for one in _deltas(part)]
        found.append({"contentBlockStop": index})
    found.append({"messageStop": {"stopReason": answer["stopReason"]}})
    found.append({"metadata": {"usage": answer["usage"]}})
    return found


def _deltas(part: Body) -> list[Body]:
    if "text" in part:
        text = part["text"]
        return [{"text": text[:3]}, {"text": text[3:]}]
    reasoning = part.get("reasoningContent", {})
    if "redactedContent" in reasoning:
        return [{"reasoningContent": reasoning}]
    text = reasoning.get("reasoningText", {})
    return [{"reasoningContent": {key: value}} for key, value in text.items()]


def exchange(one: Exchange, *, streamed: bool = False) -> Exchange:
    """An exchange of Messages as one of Converse."""
    answer = response(one.response)
    model = one.request.get("model") if isinstance(one.request, dict) else None
    made = replace(
        one,
        api=Api.CONVERSE,
        provider="bedrock" if one.provider == "anthropic" else one.provider,
        host=HOST,
        model=model or one.model,
        request=request(one.request),
        response=answer,
    )
    if streamed and isinstance(answer, dict) and "output" in answer:
        made = replace(made, response=None, events=events(answer))
    return made


def on_converse(case: Callable[[], list[Report]]) -> Callable[[], list[Report]]:
    """A case of Messages, its exchanges said on the wire of Converse."""
    observe = Tracker.observe

    def said(tracker: Tracker, one: Exchange) -> Report:
        return observe(tracker, exchange(one) if one.api is Api.MESSAGES else one)

    def run() -> list[Report]:
        with mock.patch.object(Tracker, "observe", said):
            return case()

    return run
