"""Hosts that change the provider in the middle of a conversation."""

from __future__ import annotations

from typing import Any, Final

import anthropic

from otel_sealed.model import Fate, Rejection, Verdict
from otel_sealed.testing.hosts import on_anthropic, on_openai
from otel_sealed.testing.hosts.base import Expected, Host, Json, Scene, says


def ships_the_signature(scene: Scene) -> None:
    """Goes on at OpenAI and ships Anthropic's signature there as encrypted reasoning."""
    asked: Json = {"role": "user", "content": scene.question}
    url = scene.provider.anthropic_url
    with anthropic.Anthropic(api_key="demo", base_url=url, max_retries=0) as client:
        message = on_anthropic.ask(client, scene, [asked])
    items = [asked, *(item for block in message.content for item in _item(block, scene))]
    with on_openai.client_of(scene) as client:
        on_openai.ask(client, scene, items)


def _item(block: Any, scene: Scene) -> list[Json]:
    if block.type == "thinking":
        return [{"type": "reasoning", "summary": [], "encrypted_content": block.signature}]
    if block.type == "tool_use":
        call = {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": block.id, "output": scene.result}
        return [call, result]
    return [{"role": "assistant", "content": block.text}]


HOSTS: Final = (
    Host(
        "openai-after-anthropic",
        "openai",
        ships_the_signature,
        says(ships_the_signature),
        (
            # named as it was received: what it claims to be at the other vendor is the claim
            Expected(2, "anthropic.thinking.signature", Fate.FOREIGN, Verdict.BREAKS),
        ),
        Rejection.UNDECRYPTABLE,
    ),
)
