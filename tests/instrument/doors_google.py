"""Every door into google-genai that generateContent has."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from google import genai
from google.auth.credentials import AnonymousCredentials

from otel_sealed.testing.strict.records import Exchange as Sent
from otel_sealed.wire import Exchange
from tests.instrument.doors import App, Door, Told, payloads, tried

_LOST: Final = frozenset({"dropped gemini.part.thought_signature G1"})
MODERN: Final = hasattr(genai.types.Part(), "thought_signature")
TOLD: Final = Told((None, "ok", "breaks"), _LOST)
MODEL: Final = "gemini-3-pro-preview"
LOOK: Final[dict[str, Any]] = {
    "name": "look",
    "description": "Look it up.",
    "parameters": {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}},
}
ASK: Final[dict[str, Any]] = {
    "model": MODEL,
    "config": {"tools": [{"function_declarations": [LOOK]}]},
}
HELLO: Final = {"role": "user", "parts": [{"text": "Which ledger is right? \U0001f600é\u2028"}]}
Ask = Callable[[Any, list[Any]], Any]
AsyncAsk = Callable[[Any, list[Any]], Coroutine[Any, Any, Any]]


def opened(url: str, **options: Any) -> Any:
    return genai.Client(**{"api_key": "k", "http_options": {"base_url": url}, **options})


def close(client: Any) -> None:
    client._api_client._httpx_client.close()


def parts_of(answer: Any) -> list[Any]:
    """The parts that an answer, or the chunks of one, brought."""
    chunks = answer if isinstance(answer, list) else [answer]
    return [part for c in chunks for part in (c.candidates[0].content.parts or ())]


def follow(parts: Sequence[Any], *, keep: bool = True) -> list[Any]:
    """The next request's contents, where the model called its function; or without its seals."""
    said = [part.model_dump(exclude_none=True) for part in parts]
    if not keep:
        said = [{k: v for k, v in part.items() if k != "thought_signature"} for part in said]
    calls = [part["function_call"]["name"] for part in said if "function_call" in part]
    results = [{"function_response": {"name": n, "response": {"r": "The second."}}} for n in calls]
    return [HELLO, {"role": "model", "parts": said}, {"role": "user", "parts": results}]


def talk(ask: Callable[[list[Any]], Any]) -> list[Any]:
    """Three turns over `ask`: one asked, one that carries all, one that lost the seals."""
    first = timeless(ask([HELLO]))
    told = [first]
    tried(told, lambda: timeless(ask(follow(parts_of(first)))))
    tried(told, lambda: timeless(ask(follow(parts_of(first), keep=False))))
    return told


def timeless(answer: Any) -> Any:
    """An answer without the date of its HTTP response."""
    for chunk in answer if isinstance(answer, list) else [answer]:
        headers = getattr(getattr(chunk, "sdk_http_response", None), "headers", None) or {}
        for name in [name for name in headers if name.lower() == "date"]:
            del headers[name]
    return answer


def sync(ask: Ask, **options: Any) -> App:
    def app(url: str) -> list[Any]:
        client = opened(url, **options)
        try:
            return talk(partial(ask, client))
        finally:
            close(client)

    return app


def asynchronous(ask: AsyncAsk) -> App:
    def app(url: str) -> list[Any]:
        with asyncio.Runner() as runner:
            client = opened(url)
            told = talk(lambda contents: runner.run(ask(client.aio, contents)))
            runner.run(client._api_client._async_httpx_client.aclose())
            close(client)
        return told

    return app


def on_vertex(url: str) -> list[Any]:
    credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
    credentials.token = "t"
    client = genai.Client(
        vertexai=True,
        project="p",
        location="l",
        credentials=credentials,
        http_options={"base_url": url},
    )
    try:
        return talk(partial(create, client))
    finally:
        close(client)


def create(client: Any, contents: list[Any]) -> Any:
    return client.models.generate_content(**ASK, contents=contents)


def stream(client: Any, contents: list[Any]) -> Any:
    return list(client.models.generate_content_stream(**ASK, contents=contents))


def said(contents: list[Any]) -> list[Any]:
    """What a chat takes as the next message."""
    return [genai.types.Part.model_validate(part) for part in contents[-1]["parts"]]


def chat(client: Any, contents: list[Any]) -> Any:
    made = client.chats.create(**ASK, history=contents[:-1])
    return made.send_message(said(contents))


def chat_stream(client: Any, contents: list[Any]) -> Any:
    made = client.chats.create(**ASK, history=contents[:-1])
    return list(made.send_message_stream(said(contents)))


async def acreate(client: Any, contents: list[Any]) -> Any:
    return await client.models.generate_content(**ASK, contents=contents)


async def astream(client: Any, contents: list[Any]) -> Any:
    made = await client.models.generate_content_stream(**ASK, contents=contents)
    return [chunk async for chunk in made]


async def achat(client: Any, contents: list[Any]) -> Any:
    made = client.chats.create(**ASK, history=contents[:-1])
    return await made.send_message(said(contents))


async def achat_stream(client: Any, contents: list[Any]) -> Any:
    made = client.chats.create(**ASK, history=contents[:-1])
    return [chunk async for chunk in await made.send_message_stream(said(contents))]


def counting(url: str) -> list[Any]:
    client = opened(url)
    told: list[Any] = []
    with contextlib.closing(client._api_client._httpx_client):
        tried(told, lambda: client.models.count_tokens(model=MODEL, contents=[HELLO]))
    told[:] = map(timeless, told)
    return told


def json_for_json(seen: Sequence[Exchange], sent: Sequence[Sent]) -> bool:
    """The same values, since the SDK has parsed its reply, and hands us what it will serialise."""
    return [(x.request, _came(x)) for x in seen] == [
        (json.loads(x.request_body), _went(x)) for x in sent
    ]


def _came(seen: Exchange) -> Any:
    if seen.events is not None:
        if isinstance(seen.events, bytes):
            return payloads(seen.events)
        return [json.loads(one) if isinstance(one, str) else one for one in seen.events]
    return json.loads(seen.response) if isinstance(seen.response, str) else seen.response


def _went(sent: Sent) -> Any:
    body = sent.response_body
    return payloads(body) if body.startswith(b"data:") else json.loads(body)


def _door(name: str, app: App, **more: Any) -> Door:
    return Door("google", name, app, TOLD, lambda: MODERN, same=json_for_json, **more)


DOORS: Final = (
    _door("generate_content", sync(create)),
    _door("generate_content_stream", sync(stream)),
    _door("chats", sync(chat)),
    _door("chats_stream", sync(chat_stream)),
    _door("vertex", on_vertex),
    _door("async-generate_content", asynchronous(acreate)),
    _door("async-generate_content_stream", asynchronous(astream)),
    _door("async-chats", asynchronous(achat)),
    _door("async-chats_stream", asynchronous(achat_stream)),
    Door("google", "count_tokens", counting, Told(()), turns=lambda _: []),
)
