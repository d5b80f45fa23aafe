"""Hosts made of the catalogue of mutations: one conversation each, every request spoilt in one way.

What each is known for stands in the catalogue and is tested there; here it is made to happen on the
real SDKs, for traffic that shows every fate. What an SDK does not send is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import anthropic
from google import genai
from google.genai import types

from otel_sealed.model import Verdict
from otel_sealed.testing.hosts import on_anthropic, on_gemini, on_openai
from otel_sealed.testing.hosts.base import REQUESTS, Expected, Host, Json, Scene
from otel_sealed.testing.mutations import MUTATIONS, Mutation, Side
from otel_sealed.testing.mutations.records import Change

_SYSTEM: Final = "You are a clerk."
_KEYS: Final = ("demo", "demo-two")
"""The second account, where a host changes it in the middle of a conversation."""


def _converse_anthropic(scene: Scene, change: Change, keys: tuple[str, str]) -> None:
    messages: list[Json] = [{"role": "user", "content": scene.question}]
    for turn in range(REQUESTS):
        key = keys[turn > 0]
        url = scene.provider.anthropic_url
        body = change(
            {
                "model": on_anthropic.MODEL,
                "max_tokens": 4096,
                "system": _SYSTEM,
                "thinking": {"type": "adaptive"},
                "tools": [
                    {"name": scene.tool, "description": "Looks.", "input_schema": scene.schema}
                ],
                "messages": messages,
            }
        )
        with anthropic.Anthropic(api_key=key, base_url=url, max_retries=0) as client:
            message = client.messages.create(**body)
        messages.append({"role": "assistant", "content": on_anthropic.faithful(message)})
        messages.append({"role": "user", "content": on_anthropic.answered(scene, message)})


def _converse_openai(scene: Scene, change: Change, keys: tuple[str, str]) -> None:
    items: list[Json] = [{"role": "user", "content": scene.question}]
    for turn in range(REQUESTS):
        body = change(
            {
                "model": on_openai.MODEL,
                "instructions": _SYSTEM,
                "store": False,
                "include": ["reasoning.encrypted_content"],
                "tools": [{"type": "function", "name": scene.tool, "parameters": scene.schema}],
                "input": items,
            }
        )
        with on_openai.client_of(scene, keys[turn > 0]) as client:
            response = client.responses.create(**body)
        items += on_openai.faithful(response)
        items += on_openai.answered(scene, response)


def _converse_gemini(scene: Scene, change: Change, keys: tuple[str, str]) -> None:
    contents: list[Json] = [{"role": "user", "parts": [{"text": scene.question}]}]
    options = types.HttpOptions(base_url=scene.provider.gemini_url)
    for turn in range(REQUESTS):
        body = change({"contents": contents})
        made = [types.Content.model_validate_json(json.dumps(one)) for one in body["contents"]]
        client = genai.Client(api_key=keys[turn > 0], vertexai=False, http_options=options)
        try:
            parts = on_gemini.ask(client, scene, made)
        finally:
            client.close()
        added = on_gemini.faithful(parts, on_gemini.results(scene, parts))
        contents += [_as_json(content) for content in added]
        if not any(part.function_call for part in parts):
            contents.append({"role": "user", "parts": [{"text": scene.follow_up}]})


def _as_json(content: types.Content) -> Json:
    found: Json = json.loads(content.model_dump_json(by_alias=True, exclude_none=True))
    return found


_CONVERSE: Final[dict[str, Callable[[Scene, Change, tuple[str, str]], None]]] = {
    "anthropic": _converse_anthropic,
    "openai": _converse_openai,
    "gemini": _converse_gemini,
}


def _host(dialect: str, mutation: Mutation) -> Host:
    keys = _KEYS if "account" in mutation.around else (_KEYS[0], _KEYS[0])

    def run(scene: Scene) -> None:
        _CONVERSE[dialect](scene, mutation.change, keys)

    losses = tuple(Expected(0, *row, Verdict.UNVERIFIABLE) for row in mutation.expected)
    return Host(f"{dialect}-{mutation.name.replace('_', '-')}", dialect, run, mutation.says, losses)


_REFUSED_BY_THE_SDK: Final = frozenset({"masks_ciphertext", "puts_signatures_inside_the_call"})
"""google-genai takes no signature that is not base64, and no unknown key."""


def _playable(dialect: str, mutation: Mutation) -> bool:
    """Whether the SDKs can be made to do it: a request is spoilt, and no other vendor is asked."""
    if dialect == "gemini" and mutation.name in _REFUSED_BY_THE_SDK:
        return False
    elsewhere = set(mutation.around) - {"account"}
    return mutation.side is Side.REQUEST and mutation.conversation == "standard" and not elsewhere


HOSTS: Final = tuple(
    _host(dialect, mutation)
    for mutation in MUTATIONS
    for dialect in mutation.dialects
    if dialect in _CONVERSE and _playable(dialect, mutation)
)
