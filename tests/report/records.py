"""Calls as a record tells them, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from otel_sealed.triage.model import About, Call, Minted, Row, Usage

SIGNATURE, DATA = "anthropic.thinking.signature", "anthropic.redacted_thinking.data"
KEY = "aa" * 16
SECOND = 1_000_000_000
START = 1_795_000_000 * SECOND


def minted(digest: str, position: str, artifact: str = SIGNATURE) -> Minted:
    return Minted(artifact, digest * 32, 400, position)


def row(digest: str, position: str, fate: str = "intact", **more: Any) -> Row:
    verdict = more.pop("verdict", "ok" if fate == "intact" else "breaks")
    rule = more.pop("rule", "" if fate == "intact" else "A1")
    artifact = more.pop("artifact", SIGNATURE)
    return Row(
        artifact, digest * 32, 400 if position else -1, position, fate, verdict, rule, **more
    )


def call(number: int, **more: Any) -> Call:
    base = Call(
        at=START + number * 60 * SECOND,
        trace=f"{number:032x}",
        span=f"{number:016x}",
        conversation=KEY,
        provider="anthropic",
        model="claude-opus-5",
        host="api.anthropic.com",
        said="accepted",
        usage=Usage(100, 50, 40, 10),
        about=About(service="shop", release="4.2.0", sdks=("anthropic=2.14.0",), otel="1.45.2"),
    )
    return replace(base, **more)


FIRST = call(
    1,
    received=(minted("1", "content.0"),),
    received_types=("thinking", "tool_use"),
    operation="chat",
)
SECOND_CALL = call(
    2,
    received=(minted("2", "content.0"), minted("3", "content.1", DATA)),
    received_types=("thinking", "redacted_thinking", "text", "tool_use"),
    returned=(row("1", "messages.1.content.0"),),
    returned_types=("thinking", "tool_use"),
    tools=(("d" * 32, "look"),),
    verdict="ok",
)
REFUSED = call(
    3,
    returned=(
        row("2", "messages.3.content.0"),
        row("3", "", "dropped", artifact=DATA, rule="A2", locus="process", confidence="proven"),
    ),
    returned_types=("thinking", "tool_use", "thinking", "text", "tool_use"),
    tools=(("e" * 32, "look_again"),),
    verdict="breaks",
    said="rejected",
    rejection="thinking_modified",
    rest=1,
)
STORY = (FIRST, SECOND_CALL, REFUSED)
