"""Hosts on Chat Completions: Gemini on Google's compatible endpoint, Claude behind OpenRouter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from otel_sealed.model import Fate, Rejection, Verdict
from otel_sealed.testing.hosts.base import REQUESTS, Expected, Host, Json, Scene, each_turn, says
from otel_sealed.testing.hosts.on_openai import client_of

GEMINI: Final = "gemini-3-pro-preview"
CLAUDE: Final = "anthropic/claude-opus-5"
_ON_CALL: Final = "gemini.tool_call.thought_signature"
_SIGNATURE: Final = "openrouter.reasoning_details.signature"
_DATA: Final = "openrouter.reasoning_details.data"

Replay = Callable[[Json], Json]


def converse(scene: Scene, replay: Replay, *, model: str, streamed: bool) -> None:
    """An agent loop over a history it keeps itself. A refusal ends it with the SDK's error."""
    messages: list[Json] = [{"role": "user", "content": scene.question}]
    tools: list[Json] = [
        {"type": "function", "function": {"name": scene.tool, "parameters": scene.schema}}
    ]
    with client_of(scene) as client:
        for _ in range(REQUESTS):
            ask = partial(
                client.chat.completions.create, model=model, messages=messages, tools=tools
            )
            said = added_up(ask(stream=True)) if streamed else first(ask())
            messages.append(replay(said))
            messages += answered(scene, said)


def first(completion: Any) -> Json:
    """The message of the only choice, with all that stands beside the SDK's own fields."""
    found: Json = completion.choices[0].message.to_dict()
    return found


def added_up(chunks: Any) -> Json:
    """A stream as one message, its details and calls by their numbers."""
    message: Json = {"role": "assistant", "content": ""}
    lists: dict[str, dict[int, Json]] = {"reasoning_details": {}, "tool_calls": {}}
    for chunk in chunks:
        delta = chunk.choices[0].delta.to_dict() if chunk.choices else {}
        message["content"] += delta.get("content") or ""
        message |= {k: v for k, v in delta.items() if k == "extra_content"}
        for key, found in lists.items():
            for piece in delta.get(key) or ():
                grown(found.setdefault(piece["index"], {}), piece)
    return message | {key: list(found.values()) for key, found in lists.items() if found}


def grown(item: Json, piece: Json) -> None:
    """Pieces of text behind each other; anything else as it came last."""
    for key, value in piece.items():
        if key == "function":
            grown(item.setdefault(key, {}), value)
        elif key in ("text", "signature", "arguments") and key in item:
            item[key] += value
        else:
            item[key] = value


def answered(scene: Scene, message: Json) -> list[Json]:
    """The messages that come next: results of the tools it calls, or a follow-up."""
    results: list[Json] = [
        {"role": "tool", "tool_call_id": call["id"], "content": scene.result}
        for call in message.get("tool_calls", ())
    ]
    return results or [{"role": "user", "content": scene.follow_up}]


# ------------------------------------------------------------------------------------ replays


def faithful(message: Json) -> Json:
    """Sends every message back as it came."""
    return message


def keeps_typed_fields(message: Json) -> Json:
    """Builds messages anew from the fields that the SDK's types have."""
    calls = [
        {key: call[key] for key in ("id", "type", "function")}
        for call in message.get("tool_calls", ())
    ]
    kept = {"role": "assistant", "content": message["content"]}
    return kept | ({"tool_calls": calls} if calls else {})


def masks_signatures(message: Json) -> Json:
    """Masks signatures in the reasoning as if they were secrets."""
    details = [
        {**one, "signature": f"{one['signature'][:20]}****"} if "signature" in one else one
        for one in message["reasoning_details"]
    ]
    return {**message, "reasoning_details": details}


# -------------------------------------------------------------------------------------- hosts


def _host(
    name: str,
    replay: Replay,
    *losses: Expected,
    model: str,
    rejection: Rejection | None = None,
    streamed: bool = False,
) -> Host:
    run = partial(converse, replay=replay, model=model, streamed=streamed)
    return Host(name, "chat", run, says(replay), losses, rejection)


F, V = Fate, Verdict
HOSTS: Final = (
    _host("chat-gemini", faithful, model=GEMINI),
    _host("chat-gemini-streaming", faithful, model=GEMINI, streamed=True),
    _host("chat-openrouter", faithful, model=CLAUDE),
    _host("chat-openrouter-streaming", faithful, model=CLAUDE, streamed=True),
    _host(
        "chat-gemini-typed-fields",
        keeps_typed_fields,
        Expected(2, _ON_CALL, F.DROPPED, V.BREAKS),
        model=GEMINI,
        rejection=Rejection.SIGNATURE_MISSING,
    ),
    _host(
        "chat-openrouter-typed-fields",
        keeps_typed_fields,
        *each_turn(_SIGNATURE, F.DROPPED, (2, 1, V.DEGRADES), (3, 1, V.DEGRADES)),
        Expected(3, _DATA, F.DROPPED, V.DEGRADES),
        Expected(3, _SIGNATURE, F.DROPPED, V.DEGRADES),
        Expected(4, _SIGNATURE, F.DROPPED, V.DEGRADES),
        Expected(4, _DATA, F.DROPPED, V.DEGRADES),
        *each_turn(_SIGNATURE, F.DROPPED, (4, 2, V.DEGRADES)),
        model=CLAUDE,
    ),
    _host(
        "chat-openrouter-masked",
        masks_signatures,
        Expected(2, _SIGNATURE, F.MODIFIED, V.BREAKS),
        model=CLAUDE,
        rejection=Rejection.SIGNATURE_INVALID,
    ),
)
