"""Hosts on the `openai` SDK (Responses, nothing stored). They differ in what items they keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import openai

from otel_sealed.model import Fate, Rejection, Verdict
from otel_sealed.testing.hosts.base import REQUESTS, Expected, Host, Json, Scene, each_turn, says

MODEL: Final = "gpt-5.6-sol"
_SEAL: Final = "openai.reasoning.encrypted_content"
_ID: Final = "openai.reasoning.id"

Replay = Callable[[Any], list[Json]]


# ---------------------------------------------------------------------------- the common loop


def converse(scene: Scene, replay: Replay, *, streamed: bool = False) -> None:
    """An agent loop over a history it keeps itself. A refusal ends it with the SDK's error."""
    items: list[Json] = [{"role": "user", "content": scene.question}]
    with client_of(scene) as client:
        for _ in range(REQUESTS):
            response = ask(client, scene, items, streamed=streamed)
            items += replay(response)
            items += answered(scene, response)


def client_of(scene: Scene, key: str = "demo") -> Any:
    """A client that talks to the scene's provider."""
    return openai.OpenAI(api_key=key, base_url=scene.provider.openai_url, max_retries=0)


def ask(client: Any, scene: Scene, items: list[Json], *, streamed: bool = False) -> Any:
    """One request, nothing stored."""
    arguments: Json = {
        "model": MODEL,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": scene.tool, "parameters": scene.schema}],
        "input": items,
    }
    if not streamed:
        return client.responses.create(**arguments)
    with client.responses.create(**arguments, stream=True) as events:
        return next(e.response for e in list(events) if e.type == "response.completed")


def answered(scene: Scene, response: Any) -> list[Json]:
    """The items that come next: outputs of the functions it calls, or a follow-up."""
    results: list[Json] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": scene.result}
        for item in response.output
        if item.type == "function_call"
    ]
    return results or [{"role": "user", "content": scene.follow_up}]


# ------------------------------------------------------------------------------------ replays


def faithful(response: Any) -> list[Json]:
    """Sends every item back as it came."""
    return [item.to_dict() for item in response.output]


def drops_without_summary(response: Any) -> list[Json]:
    """Drops reasoning that has no summary; it is complete all the same."""
    return [item for item in faithful(response) if item.get("summary") != []]


def sends_the_summary(response: Any) -> list[Json]:
    """Puts the readable summary where the sealed reasoning belongs."""
    return [
        {**item, "encrypted_content": item["summary"][0]["text"]}
        if item["type"] == "reasoning" and item["summary"]
        else item
        for item in faithful(response)
    ]


def strips_ids(response: Any) -> list[Json]:
    """Strips the server's ids off every item, which is allowed."""
    return [{k: v for k, v in item.items() if k != "id"} for item in faithful(response)]


def keeps_calls_only(response: Any) -> list[Json]:
    """Keeps messages and calls without ids; that reasoning is missing nobody notices."""
    return [item for item in strips_ids(response) if item["type"] != "reasoning"]


def turns_ids_over(response: Any) -> list[Json]:
    """Gives reasoning items ids of its own; a seal is bound to the id it came with."""
    return [
        {**item, "id": f"rs_local_{at}"} if item["type"] == "reasoning" else item
        for at, item in enumerate(faithful(response))
    ]


# -------------------------------------------------------------------------------------- hosts


def _host(
    name: str,
    replay: Replay,
    *losses: Expected,
    rejection: Rejection | None = None,
    streamed: bool = False,
) -> Host:
    def run(scene: Scene) -> None:
        converse(scene, replay, streamed=streamed)

    return Host(name, "openai", run, says(replay), losses, rejection)


F, V = Fate, Verdict
HOSTS: Final = (
    _host("openai", faithful),
    _host("openai-streaming", faithful, streamed=True),
    _host(
        "openai-no-summary",
        drops_without_summary,
        Expected(3, _SEAL, F.DROPPED, V.BREAKS),
        Expected(3, "openai.function_call", F.ORPHANED, V.BREAKS),
        rejection=Rejection.ORPHAN_FOLLOWER,
    ),
    _host(
        "openai-summary-as-seal",
        sends_the_summary,
        Expected(2, _SEAL, F.SUBSTITUTED, V.BREAKS),
        rejection=Rejection.UNDECRYPTABLE,
    ),
    _host(
        "openai-calls-only",
        keeps_calls_only,
        *each_turn(_SEAL, F.DROPPED, (2, 1, V.DEGRADES), (3, 2, V.DEGRADES), (4, 3, V.DEGRADES)),
    ),
    _host(
        "openai-no-ids",
        strips_ids,
        *each_turn(_ID, F.DROPPED, (2, 1, V.ALLOWED), (3, 2, V.ALLOWED), (4, 3, V.ALLOWED)),
    ),
    _host(
        "openai-own-ids",
        turns_ids_over,
        Expected(2, _ID, F.MODIFIED, V.BREAKS),
        rejection=Rejection.ID_BINDING,
    ),
)
