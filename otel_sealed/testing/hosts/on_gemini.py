"""Hosts on the `google-genai` SDK. They differ in what contents they make of a reply's parts."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from google import genai
from google.genai import types

from otel_sealed.model import Fate, Rejection, Verdict
from otel_sealed.testing.hosts.base import REQUESTS, Expected, Host, Json, Scene, each_turn, says

MODEL: Final = "gemini-3.8-flash"
_SEAL: Final = "gemini.part.thought_signature"
_TEXT: Final = "gemini.part.text"
PLACEHOLDER: Final = b"skip_thought_signature_validator"
"""Google documents it for calls that never had a signature."""

Parts = list[types.Part]
Replay = Callable[[Parts, Parts], list[types.Content]]
"""(the reply's parts, the results of its calls) to what is added to the history."""


# ---------------------------------------------------------------------------- the common loop


def converse(scene: Scene, replay: Replay, *, streamed: bool = False) -> None:
    """An agent loop over a history it keeps itself. A refusal ends it with the SDK's error."""
    contents: list[types.Content] = [types.UserContent(scene.question)]
    options = types.HttpOptions(base_url=scene.provider.gemini_url)
    client = genai.Client(api_key="demo", vertexai=False, http_options=options)
    try:
        for _ in range(REQUESTS):
            parts = ask(client, scene, contents, streamed=streamed)
            contents += replay(parts, results(scene, parts))
            if not any(part.function_call for part in parts):
                contents.append(types.UserContent(scene.follow_up))
    finally:
        client.close()


def ask(client: Any, scene: Scene, contents: list[Any], *, streamed: bool = False) -> Parts:
    """One request, functions declared and not called by the SDK."""
    declared = [
        types.FunctionDeclaration(name=name, parameters_json_schema=scene.schema)
        for name in (scene.tool, f"{scene.tool}_again")
    ]
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    asked: Json = {"model": MODEL, "contents": contents, "config": config}
    if not streamed:
        return list(client.models.generate_content(**asked).candidates[0].content.parts)
    chunks = client.models.generate_content_stream(**asked)
    return [part for chunk in chunks for part in chunk.candidates[0].content.parts]


def results(scene: Scene, parts: Parts) -> Parts:
    """The results of the functions that are called, in their order."""
    return [
        types.Part(
            function_response=types.FunctionResponse(
                id=call.id, name=call.name, response={"result": scene.result}
            )
        )
        for part in parts
        if (call := part.function_call)
    ]


def _contents(parts: Parts, results: Parts) -> list[types.Content]:
    said = [types.Content(role="model", parts=parts)]
    return [*said, types.Content(role="user", parts=results)] if results else said


# ------------------------------------------------------------------------------------ replays


def faithful(parts: Parts, results: Parts) -> list[types.Content]:
    """Sends every part back as it came."""
    return _contents(parts, results)


def rebuilds_calls(parts: Parts, results: Parts) -> list[types.Content]:
    """Builds the calls anew from name and arguments; the signature is neither."""
    made = [
        types.Part(function_call=part.function_call) if part.function_call else part
        for part in parts
    ]
    return _contents(made, results)


def splits_parallel_calls(parts: Parts, results: Parts) -> list[types.Content]:
    """Sends parallel calls back as steps, each with its result; only the first is signed."""
    calls = [part for part in parts if part.function_call]
    if len(calls) < 2:  # noqa: PLR2004 - parallel
        return _contents(parts, results)
    return [
        content
        for call, result in zip(calls, results, strict=True)
        for content in _contents([call], [result])
    ]


def puts_placeholders(parts: Parts, results: Parts) -> list[types.Content]:
    """Puts the documented placeholder on calls although it holds their signature."""
    made = [
        part.model_copy(update={"thought_signature": PLACEHOLDER})
        if part.function_call and part.thought_signature
        else part
        for part in parts
    ]
    return _contents(made, results)


def encodes_twice(parts: Parts, results: Parts) -> list[types.Content]:
    """Stores signatures as base64 text and hands that text back as the bytes."""
    made = [
        part.model_copy(update={"thought_signature": base64.b64encode(part.thought_signature)})
        if part.thought_signature
        else part
        for part in parts
    ]
    return _contents(made, results)


def joins_texts(parts: Parts, results: Parts) -> list[types.Content]:
    """Joins the texts of an answer into one part that bears the signature."""
    if results:
        return _contents(parts, results)
    text = "".join(part.text or "" for part in parts)
    signature = next((p.thought_signature for p in parts if p.thought_signature), None)
    return _contents([types.Part(text=text, thought_signature=signature)], results)


def drops_empty_parts(parts: Parts, results: Parts) -> list[types.Content]:
    """Drops parts with empty text; the last one of a stream bears the signature."""
    return _contents([part for part in parts if part.function_call or part.text], results)


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

    return Host(name, "gemini", run, says(replay), losses, rejection)


F, V = Fate, Verdict
HOSTS: Final = (
    _host("gemini", faithful),
    _host("gemini-streaming", faithful, streamed=True),
    _host(
        "gemini-rebuilder",
        rebuilds_calls,
        Expected(2, _SEAL, F.DROPPED, V.BREAKS),
        rejection=Rejection.SIGNATURE_MISSING,
    ),
    _host(
        "gemini-step-splitter",
        splits_parallel_calls,
        Expected(3, _SEAL, F.SPLIT, V.BREAKS),
        rejection=Rejection.SIGNATURE_MISSING,
    ),
    _host(
        "gemini-placeholder",
        puts_placeholders,
        *each_turn(_SEAL, F.FABRICATED, (2, 1, V.DEGRADES), (3, 2, V.DEGRADES), (4, 2, V.DEGRADES)),
    ),
    _host(
        "gemini-double-encoder",
        encodes_twice,
        Expected(2, _SEAL, F.MODIFIED, V.BREAKS),
        rejection=Rejection.SIGNATURE_INVALID,
    ),
    _host(
        "gemini-text-joiner",
        joins_texts,
        Expected(4, _SEAL, F.MERGED, V.DEGRADES),
        Expected(4, _TEXT, F.MERGED, V.DEGRADES),
    ),
    _host(
        "gemini-stream-tail",
        drops_empty_parts,
        Expected(4, _SEAL, F.DROPPED, V.DEGRADES),
        streamed=True,
    ),
)
