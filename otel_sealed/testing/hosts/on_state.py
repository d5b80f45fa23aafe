"""Hosts with state elsewhere: at the provider, in a compaction, in a cut stream, in no process.

Each shows a fate that a host with a history of its own does not have. They play for traffic only.
"""

from __future__ import annotations

import base64
import json
import secrets
import urllib.request
from collections.abc import Callable
from typing import Any, Final

import anthropic

from otel_sealed.model import Fate, Verdict
from otel_sealed.testing.hosts import on_anthropic, on_openai
from otel_sealed.testing.hosts.base import Expected, Host, Json, Scene, says
from otel_sealed.testing.strict import StrictProvider

_COMPACTION: Final = "openai.compaction.encrypted_content"
_TIMEOUT_S: Final = 20.0


def refers_to_the_server(scene: Scene) -> None:
    """Names the response before instead of sending the history; the provider keeps it."""
    with on_openai.client_of(scene) as client:
        tool = {"type": "function", "name": scene.tool, "parameters": scene.schema}
        ask: Json = {"model": on_openai.MODEL, "store": True, "tools": [tool]}
        response = client.responses.create(**ask, input=scene.question)
        for _ in range(3):
            news = on_openai.answered(scene, response)
            response = client.responses.create(**ask, input=news, previous_response_id=response.id)


def compacts(scene: Scene) -> None:
    """Compacts twice, and after that once sends what the first compaction gave."""
    with on_openai.client_of(scene) as client:
        asked: Json = {"role": "user", "content": scene.question}
        response = on_openai.ask(client, scene, [asked])
        items = [asked, *on_openai.faithful(response), *on_openai.answered(scene, response)]
        more: Json = {"role": "user", "content": scene.follow_up}
        first = _compacted(client, items)
        second = _compacted(client, [*first, more])
        on_openai.ask(client, scene, [*second, more])
        on_openai.ask(client, scene, [*first, more])


def _compacted(client: Any, items: list[Json]) -> list[Json]:
    compacted = client.responses.compact(model=on_openai.MODEL, input=items)
    # a user's message is no output by the SDK's types, and it warns of that
    return [item.to_dict(warnings=False) for item in compacted.output]


def compacts_to_nothing(scene: Scene) -> None:
    """Asks for a compaction, and the provider answers without one."""
    empty = {
        "id": "resp_empty",
        "object": "response.compaction",
        "created_at": 1,
        "model": on_openai.MODEL,
        "output": [{"id": "msg_0", "type": "message", "role": "user", "content": []}],
        "usage": None,
    }
    with on_openai.client_of(scene) as client:
        asked: Json = {"role": "user", "content": scene.question}
        on_openai.ask(client, scene, [asked])
        scene.provider.malform_next(json.dumps(empty).encode())
        _compacted(client, [asked])


def never_asks_for_the_seal(scene: Scene) -> None:
    """Stores nothing and does not ask for encrypted reasoning, as the API once was."""
    with StrictProvider(populate_encrypted=False) as provider:
        elsewhere = Scene(provider, scene.question, scene.tool, scene.result, scene.follow_up)
        items: list[Json] = [{"role": "user", "content": scene.question}]
        tool = {"type": "function", "name": scene.tool, "parameters": scene.schema}
        with on_openai.client_of(elsewhere) as client:
            for _ in range(2):
                response = client.responses.create(
                    model=on_openai.MODEL, store=False, tools=[tool], input=items
                )
                items += [*on_openai.faithful(response), *on_openai.answered(scene, response)]


def keeps_a_cut_stream(scene: Scene) -> None:
    """Keeps what came of a stream that broke off before the signature was whole, and goes on."""
    messages: list[Json] = [{"role": "user", "content": scene.question}]
    url = scene.provider.anthropic_url
    with anthropic.Anthropic(api_key="demo", base_url=url, max_retries=0) as client:
        scene.provider.cut_next_stream(5)
        kept: list[Json] = []
        try:
            with client.messages.stream(
                model=on_anthropic.MODEL,
                max_tokens=4096,
                thinking={"type": "adaptive"},
                tools=[{"name": scene.tool, "input_schema": scene.schema}],
                messages=messages,  # type: ignore[arg-type]
            ) as stream:
                for event in stream:
                    if event.type == "thinking":
                        kept = [{"type": "thinking", "thinking": event.snapshot, "signature": ""}]
        except Exception:  # noqa: BLE001 - each transport has its own error for a broken stream
            messages.append({"role": "assistant", "content": kept})
        messages.append({"role": "user", "content": scene.follow_up})
        on_anthropic.ask(client, scene, messages)


def resumes(scene: Scene) -> None:
    """Goes on with a conversation that another process began."""
    messages: list[Json] = [{"role": "user", "content": scene.question}]
    begun = _elsewhere(scene, messages)
    messages.append({"role": "assistant", "content": begun["content"]})
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": scene.result}
        for block in begun["content"]
        if block["type"] == "tool_use"
    ]
    messages.append({"role": "user", "content": results or scene.follow_up})
    url = scene.provider.anthropic_url
    with anthropic.Anthropic(api_key="demo", base_url=url, max_retries=0) as client:
        on_anthropic.ask(client, scene, messages)


def _elsewhere(scene: Scene, messages: list[Json]) -> Json:
    """A call that nobody watches, as another process would make it."""
    body = {
        "model": on_anthropic.MODEL,
        "max_tokens": 4096,
        "thinking": {"type": "adaptive"},
        "tools": [{"name": scene.tool, "description": "Looks.", "input_schema": scene.schema}],
        "messages": messages,
    }
    request = urllib.request.Request(  # noqa: S310 - the address is our own provider's
        f"{scene.provider.anthropic_url}/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json", "x-api-key": "demo"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_TIMEOUT_S) as reply:
        answer: Json = json.load(reply)
    return answer


def loses_it_at_the_provider(scene: Scene) -> None:
    """Sends everything as it came, and the provider says that it took reasoning out."""
    removed = {"type": "thinking_removed", "reason": "model_mismatch", "path": "messages.1"}
    messages: list[Json] = [{"role": "user", "content": scene.question}]
    url = scene.provider.anthropic_url
    with anthropic.Anthropic(api_key="demo", base_url=url, max_retries=0) as client:
        message = on_anthropic.ask(client, scene, messages)
        messages.append({"role": "assistant", "content": on_anthropic.faithful(message)})
        messages.append({"role": "user", "content": on_anthropic.answered(scene, message)})
        answer = {
            "id": "msg_removed",
            "type": "message",
            "role": "assistant",
            "model": on_anthropic.MODEL,
            "content": [{"type": "text", "text": scene.result}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 3},
            "input_transformations": [removed],
        }
        scene.provider.malform_next(json.dumps(answer).encode())
        on_anthropic.ask(client, scene, messages)


def adds_up_with_a_helper(scene: Scene) -> None:
    """Goes on with what the SDK's stream helper adds up, where the closing event has no output."""
    scene.provider.malform_next(_closing_without_output(scene))
    asked: Json = {"role": "user", "content": scene.question}
    with on_openai.client_of(scene) as client:
        with client.responses.stream(
            model=on_openai.MODEL, store=False, input=scene.question
        ) as stream:
            said = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            kept = on_openai.faithful(stream.get_final_response())
        spoken: Json = {"role": "assistant", "content": said}
        more: Json = {"role": "user", "content": scene.follow_up}
        on_openai.ask(client, scene, [asked, *kept, spoken, more])


def _closing_without_output(scene: Scene) -> list[Json]:
    """The events of an answer whose items are done, and are not in its last event."""
    response = {
        "id": "resp_helper",
        "object": "response",
        "created_at": 1,
        "model": on_openai.MODEL,
        "status": "completed",
        "output": [],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
    }
    seal = base64.b64encode(secrets.token_bytes(300)).decode()
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": seal}
    text = f"{scene.result} {scene.result}"
    part = {"type": "output_text", "text": text, "annotations": []}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    at = {"output_index": 1, "content_index": 0, "item_id": "msg_1"}
    empty = message | {"content": []}
    events: list[Json] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.added", "output_index": 1, "item": empty},
        {"type": "response.content_part.added", **at, "part": part | {"text": ""}},
        {"type": "response.output_text.delta", **at, "delta": text, "logprobs": []},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": message | {"content": [part]},
        },
        {"type": "response.completed", "response": response},
    ]
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


def _host(name: str, dialect: str, run: Callable[[Scene], None], *rows: tuple[str, Fate]) -> Host:
    losses = tuple(Expected(0, *row, Verdict.UNVERIFIABLE) for row in rows)
    return Host(name, dialect, run, says(run), losses)


_SEAL: Final = "openai.reasoning.encrypted_content"
_SIGNATURE: Final = "anthropic.thinking.signature"
HOSTS: Final = (
    _host("openai-stored", "openai", refers_to_the_server, (_SEAL, Fate.SERVER_HELD)),
    _host(
        "openai-compacting",
        "openai",
        compacts,
        (_SEAL, Fate.SUPERSEDED),
        (_COMPACTION, Fate.STALE),
    ),
    _host(
        "openai-empty-compaction",
        "openai",
        compacts_to_nothing,
        (_COMPACTION, Fate.ABSENT_AT_SOURCE),
    ),
    _host("openai-no-include", "openai", never_asks_for_the_seal, (_SEAL, Fate.NOT_REQUESTED)),
    _host("openai-stream-helper", "openai", adds_up_with_a_helper, (_SEAL, Fate.SDK_LOSSY)),
    _host("anthropic-cut-stream", "anthropic", keeps_a_cut_stream, (_SIGNATURE, Fate.UNSEALED)),
    _host("anthropic-resumed", "anthropic", resumes, (_SIGNATURE, Fate.UNKNOWN)),
    _host("anthropic-removed", "anthropic", loses_it_at_the_provider),
)
