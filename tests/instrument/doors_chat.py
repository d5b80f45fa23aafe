"""Every door into the openai SDK that Chat Completions has.

Gemini on Google's compatible endpoint, whose signatures stand beside tool calls, goes through all
of them; Claude behind OpenRouter, whose reasoning stands beside the text, through some.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.instrument.doors import PROMPT, App, Door, Told, tried
from tests.instrument.doors_openai import opened

GEMINI: Final = Told(
    (None, "ok", "breaks"), frozenset({"dropped gemini.tool_call.thought_signature G19"})
)
CLAUDE: Final = Told(
    (None, "ok", "degrades"), frozenset({"dropped openrouter.reasoning_details.signature R7"})
)
FUNCTION: Final[dict[str, Any]] = {
    "name": "look",
    "parameters": {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    },
    "strict": True,
}
ASK: Final[dict[str, Any]] = {
    "model": "gemini-3-pro-preview",
    "tools": [{"type": "function", "function": FUNCTION}],
}
BEHIND: Final = ASK | {"model": "anthropic/claude-opus-5"}
HELLO: Final = {"role": "user", "content": PROMPT}
Messages = list[Any]
Ask = Callable[[Any, dict[str, Any]], Any]
"""Asks a client for one turn; returns a completion, as the SDK's object or as plain data."""
AsyncAsk = Callable[[Any, dict[str, Any]], Coroutine[Any, Any, Any]]


def message_of(answer: Any) -> Any:
    if isinstance(answer, dict):
        return answer["choices"][0]["message"]
    return answer.choices[0].message


def follow(message: Any) -> Messages:
    """The next request's messages, where the model called its function."""
    call = plain(message)["tool_calls"][0]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "The second."}
    return [HELLO, message, result]


def plain(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = message if isinstance(message, dict) else message.to_dict()
    return found


def reduced(message: Any) -> dict[str, Any]:
    """What a host keeps that knows the fields of the SDK's types only."""
    found = plain(message)
    calls = [{key: call[key] for key in ("id", "type", "function")} for call in found["tool_calls"]]
    return {"role": "assistant", "content": found.get("content"), "tool_calls": calls}


def talk(ask: Callable[[dict[str, Any]], Any], base: dict[str, Any]) -> list[Any]:
    """Three turns over `ask`: one asked, one that carries all, one that lost what is beside."""
    first = ask({**base, "messages": [HELLO]})
    told: list[Any] = [first]
    message = message_of(first)
    tried(told, lambda: ask({**base, "messages": follow(message)}))
    tried(told, lambda: ask({**base, "messages": follow(reduced(message))}))
    return told


def sync(ask: Ask, base: dict[str, Any] = ASK, **options: Any) -> App:
    def app(url: str) -> list[Any]:
        with opened(url, **options) as client:
            return talk(partial(ask, client), base)

    return app


def asynchronous(ask: AsyncAsk, base: dict[str, Any] = ASK) -> App:
    def app(url: str) -> list[Any]:
        with asyncio.Runner() as runner:
            client = opened(url, openai.AsyncOpenAI)
            told = talk(lambda asked: runner.run(ask(client, asked)), base)
            runner.run(client.close())
        return told

    return app


# ------------------------------------------------------------------------------ one turn, asked


def create(client: Any, asked: dict[str, Any]) -> Any:
    return client.chat.completions.create(**asked)


def added_up(chunks: list[Any]) -> Any:
    state: Any = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(chunk)
    return state.current_completion_snapshot


def stream(client: Any, asked: dict[str, Any]) -> Any:
    return added_up(list(client.chat.completions.create(**asked, stream=True)))


def helpers(client: Any) -> Any:
    """The home of `stream` and `parse`, which older releases have in beta only."""
    return client.chat.completions if newer() else client.beta.chat.completions


def newer() -> bool:
    return hasattr(importlib.import_module("openai.resources.chat").Completions, "stream")


def helper(client: Any, asked: dict[str, Any]) -> Any:
    with helpers(client).stream(**asked) as made:
        return made.get_final_completion()


def iterated(client: Any, asked: dict[str, Any]) -> Any:
    with helpers(client).stream(**asked) as made:
        events = list(made)
        return {"choices": plain(made.get_final_completion())["choices"], "events": events}


def raw(client: Any, asked: dict[str, Any]) -> Any:
    return client.chat.completions.with_raw_response.create(**asked).parse()


def raw_stream(client: Any, asked: dict[str, Any]) -> Any:
    made = client.chat.completions.with_raw_response.create(**asked, stream=True)
    return added_up(list(made.parse()))


def streaming(client: Any, asked: dict[str, Any]) -> Any:
    with client.chat.completions.with_streaming_response.create(**asked) as made:
        return json.loads("".join(made.iter_text()))


def parse(client: Any, asked: dict[str, Any]) -> Any:
    return helpers(client).parse(**asked)


def beta_parse(client: Any, asked: dict[str, Any]) -> Any:
    return client.beta.chat.completions.parse(**asked)


def beta_stream(client: Any, asked: dict[str, Any]) -> Any:
    with client.beta.chat.completions.stream(**asked) as made:
        return made.get_final_completion()


def post(client: Any, asked: dict[str, Any]) -> Any:
    body = json.loads(json.dumps(asked, default=plain))
    return client.post("/chat/completions", body=body, cast_to=object)


def extra_body(client: Any, asked: dict[str, Any]) -> Any:
    messages = json.loads(json.dumps(asked["messages"], default=plain))
    return client.chat.completions.create(
        **{**asked, "messages": [HELLO]}, extra_body={"messages": messages}
    )


async def acreate(client: Any, asked: dict[str, Any]) -> Any:
    return await client.chat.completions.create(**asked)


async def astream(client: Any, asked: dict[str, Any]) -> Any:
    made = await client.chat.completions.create(**asked, stream=True)
    return added_up([chunk async for chunk in made])


async def ahelper(client: Any, asked: dict[str, Any]) -> Any:
    async with helpers(client).stream(**asked) as made:
        return await made.get_final_completion()


async def araw(client: Any, asked: dict[str, Any]) -> Any:
    return (await client.chat.completions.with_raw_response.create(**asked)).parse()


async def astreaming(client: Any, asked: dict[str, Any]) -> Any:
    async with client.chat.completions.with_streaming_response.create(**asked) as made:
        return json.loads("".join([text async for text in made.iter_text()]))


async def aparse(client: Any, asked: dict[str, Any]) -> Any:
    return await helpers(client).parse(**asked)


async def apost(client: Any, asked: dict[str, Any]) -> Any:
    body = json.loads(json.dumps(asked, default=plain))
    return await client.post("/chat/completions", body=body, cast_to=object)


def of_the_module(url: str) -> list[Any]:
    """`openai.chat.completions.create`, the client the module makes by itself."""
    openai.api_key, openai.base_url, openai.max_retries = "k", f"{url}/v1/", 0
    try:
        with openai.DefaultHttpxClient() as http:
            openai.http_client = http
            return talk(partial(create, openai), ASK)
    finally:
        openai.api_key = openai.base_url = openai.http_client = None
        openai.max_retries = 2


def azure(url: str) -> list[Any]:
    """Its URL names the deployment, and its host is ours here."""
    with openai.AzureOpenAI(
        api_key="k", azure_endpoint=url, api_version="2025-04-01-preview", max_retries=0
    ) as client:
        return talk(partial(create, client), ASK)


def has_beta() -> bool:
    return hasattr(importlib.import_module("openai.resources.beta").Beta, "chat")


_GEMINIS: Final[dict[str, App]] = {
    "chat.create": sync(create),
    "chat.create-stream": sync(stream),
    "chat.stream": sync(helper),
    "chat.stream-iterated": sync(iterated),
    "chat.with_raw_response": sync(raw),
    "chat.with_raw_response-stream": sync(raw_stream),
    "chat.with_streaming_response": sync(streaming),
    "chat.parse": sync(parse),
    "chat.post": sync(post),
    "chat.extra_body": sync(extra_body),
    "chat.module": of_the_module,
    "chat.azure": azure,
    "async-chat.create": asynchronous(acreate),
    "async-chat.create-stream": asynchronous(astream),
    "async-chat.stream": asynchronous(ahelper),
    "async-chat.with_raw_response": asynchronous(araw),
    "async-chat.with_streaming_response": asynchronous(astreaming),
    "async-chat.parse": asynchronous(aparse),
    "async-chat.post": asynchronous(apost),
}
_CLAUDES: Final[dict[str, App]] = {
    "openrouter.create": sync(create, BEHIND),
    "openrouter.create-stream": sync(stream, BEHIND),
    "openrouter.stream": sync(helper, BEHIND),
    "openrouter.parse": sync(parse, BEHIND),
    "async-openrouter.create": asynchronous(acreate, BEHIND),
    "async-openrouter.create-stream": asynchronous(astream, BEHIND),
    "async-openrouter.stream": asynchronous(ahelper, BEHIND),
}
DOORS: Final = (
    *(Door("openai", name, app, GEMINI) for name, app in _GEMINIS.items()),
    *(Door("openai", name, app, CLAUDE) for name, app in _CLAUDES.items()),
    Door("openai", "beta.chat.parse", sync(beta_parse), GEMINI, has_beta),
    Door("openai", "beta.chat.stream", sync(beta_stream), GEMINI, has_beta),
)
