"""Hosts on the `anthropic` SDK. They differ in how they put a reply back into the history."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import anthropic

from otel_sealed.model import Fate, Rejection, Verdict
from otel_sealed.testing.hosts.base import REQUESTS, Expected, Host, Json, Scene, each_turn, says

MODEL: Final = "claude-opus-5"
_SIGNATURE: Final = "anthropic.thinking.signature"
_SECOND: Final = (_SIGNATURE, "anthropic.redacted_thinking.data")
"""What the provider seals in its second turn."""
_TEXT: Final = "anthropic.thinking.text"
_UNUSUAL: Final = re.compile(r"[^\w\s.,;:!?-]")

Replay = Callable[[Any], list[Json]]


# ---------------------------------------------------------------------------- the common loop


def converse(
    scene: Scene,
    replay: Replay,
    *,
    streamed: bool = False,
    silent: bool = False,
    manual: bool = False,
) -> None:
    """An agent loop: ask, run the tools, ask again. A refusal ends it with the SDK's error."""
    messages: list[Json] = [{"role": "user", "content": scene.question}]
    url = scene.provider.anthropic_url
    with anthropic.Anthropic(api_key="demo", base_url=url, max_retries=0) as client:
        for _ in range(REQUESTS):
            message = ask(client, scene, messages, streamed=streamed, silent=silent, manual=manual)
            messages.append({"role": "assistant", "content": replay(message)})
            messages.append({"role": "user", "content": answered(scene, message)})


def ask(
    client: Any,
    scene: Scene,
    messages: list[Json],
    *,
    streamed: bool = False,
    silent: bool = False,
    manual: bool = False,
) -> Any:
    """One request; `silent` asks for thinking without readable text, as newer models answer.

    `manual`: with a budget, where every turn of a tool loop has to come with its thinking (A1).
    """
    mode: Json = {"type": "enabled", "budget_tokens": 2048} if manual else {"type": "adaptive"}
    arguments: Json = {
        "model": MODEL,
        "max_tokens": 4096,
        "thinking": {**mode, **({"display": "omitted"} if silent else {})},
        "tools": [{"name": scene.tool, "description": "Looks.", "input_schema": scene.schema}],
        "messages": messages,
    }
    if not streamed:
        return client.messages.create(**arguments)
    with client.messages.stream(**arguments) as stream:
        return stream.get_final_message()


def answered(scene: Scene, message: Any) -> Any:
    """What the user says next: results of the tools it calls, or a follow-up."""
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": scene.result}
        for block in message.content
        if block.type == "tool_use"
    ]
    return results or scene.follow_up


# ------------------------------------------------------------------------------------ replays


def faithful(message: Any) -> list[Json]:
    """Sends every block back as it came."""
    return [block.to_dict() for block in message.content]


def filters_types(message: Any) -> list[Json]:
    """Keeps thinking, text and tool calls; redacted thinking is none of them."""
    return [
        block.to_dict()
        for block in message.content
        if block.type in ("thinking", "text", "tool_use")
    ]


def translates(message: Any) -> list[Json]:
    """Keeps the history in a format without a place for thinking, and sends none."""
    return [b for b in faithful(message) if b["type"] in ("text", "tool_use")]


def skips_empty_text(message: Any) -> list[Json]:
    """Skips thinking whose text is empty; it was signed all the same."""
    return [block for block in faithful(message) if block.get("thinking") != ""]


def thinks_aloud(message: Any) -> list[Json]:
    """Puts the thinking back as text in tags, without its signature."""
    return [
        {"type": "text", "text": f"<thinking>{block['thinking']}</thinking>"}
        if block["type"] == "thinking"
        else block
        for block in faithful(message)
    ]


def sanitises_text(message: Any) -> list[Json]:
    """Strips unusual characters from every text; the signed one is a text, too."""
    return [
        {**block, "thinking": _UNUSUAL.sub("", block["thinking"])}
        if block["type"] == "thinking"
        else block
        for block in faithful(message)
    ]


def shortens_long_values(message: Any) -> list[Json]:
    """Shortens long values for its session file, and sends what it finds there."""
    return [
        {**block, "signature": _shortened(block["signature"])}
        if block["type"] == "thinking"
        else block
        for block in faithful(message)
    ]


def _shortened(text: str) -> str:
    return f"{text[: len(text) // 3]}…{text[-len(text) // 3 :]}"


def calls_it_redacted(message: Any) -> list[Json]:
    """Sends thinking without text back as redacted thinking, the signature as its data."""
    return [
        {"type": "redacted_thinking", "data": block["signature"]}
        if block.get("thinking") == ""
        else block
        for block in faithful(message)
    ]


def marks_for_cache(message: Any) -> list[Json]:
    """Puts its cache marker on the first block of a turn; thinking takes no further key."""
    first, *rest = faithful(message)
    return [{**first, "cache_control": {"type": "ephemeral"}}, *rest]


# -------------------------------------------------------------------------------------- hosts


def _host(
    name: str,
    replay: Replay,
    *losses: Expected,
    rejection: Rejection | None = None,
    streamed: bool = False,
    silent: bool = False,
    manual: bool = False,
) -> Host:
    def run(scene: Scene) -> None:
        converse(scene, replay, streamed=streamed, silent=silent, manual=manual)

    return Host(name, "anthropic", run, says(replay), losses, rejection)


F, V = Fate, Verdict
HOSTS: Final = (
    _host("anthropic", faithful),
    _host("anthropic-streaming", faithful, streamed=True),
    _host(
        "anthropic-type-filter",
        filters_types,
        Expected(3, "anthropic.redacted_thinking.data", F.DROPPED, V.BREAKS),
        rejection=Rejection.THINKING_MODIFIED,
    ),
    _host(
        "anthropic-bridge",
        translates,
        Expected(2, _SIGNATURE, F.DROPPED, V.DEGRADES),
        *(Expected(3, artifact, F.DROPPED, V.DEGRADES) for artifact in (_SIGNATURE, *_SECOND)),
        *(Expected(4, lost, F.DROPPED, V.ALLOWED) for lost in (_SIGNATURE, *_SECOND, _SIGNATURE)),
    ),
    _host(
        "anthropic-budget",
        translates,
        Expected(2, _SIGNATURE, F.DROPPED, V.BREAKS),
        rejection=Rejection.THINKING_MISSING,
        manual=True,
    ),
    _host(
        "anthropic-empty-text",
        skips_empty_text,
        Expected(2, _SIGNATURE, F.DROPPED, V.BREAKS),
        rejection=Rejection.THINKING_MISSING,
        silent=True,
        manual=True,
    ),
    _host(
        "anthropic-as-text",
        thinks_aloud,
        Expected(2, _SIGNATURE, F.SUBSTITUTED, V.BREAKS),
        rejection=Rejection.THINKING_MISSING,
        manual=True,
    ),
    _host(
        "anthropic-sanitiser",
        sanitises_text,
        *each_turn(_TEXT, F.MODIFIED, (2, 1, V.DEGRADES), (3, 2, V.DEGRADES), (4, 2, V.DEGRADES)),
    ),
    _host(
        "anthropic-shortener",
        shortens_long_values,
        Expected(2, _SIGNATURE, F.MODIFIED, V.BREAKS),
        rejection=Rejection.SIGNATURE_INVALID,
    ),
    _host(
        "anthropic-retyper",
        calls_it_redacted,
        Expected(2, _SIGNATURE, F.RETYPED, V.BREAKS),
        rejection=Rejection.SIGNATURE_INVALID,
        silent=True,
    ),
    _host(
        "anthropic-cache-mark",
        marks_for_cache,
        Expected(2, "anthropic.thinking.envelope", F.ENVELOPE_MODIFIED, V.BREAKS),
        rejection=Rejection.ENVELOPE_POLLUTED,
    ),
)
