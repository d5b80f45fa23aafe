"""Every door into the anthropic SDK."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import anthropic
from anthropic.resources.beta import messages as beta_messages
from anthropic.resources.messages import Messages

from otel_sealed.testing import StrictProvider
from otel_sealed.testing.strict.records import Exchange as Sent
from tests.instrument.doors import CUSTOM_ID, PROMPT, App, Door, Told, entry_for_entry, tried

# contract-corrections, A1: thinking left out of a tool loop degrades where it is adaptive
TOLD: Final = Told((None, "ok", "degrades"), frozenset({"dropped anthropic.thinking.signature A1"}))
HELD: Final = Told((None, "allowed", "allowed"))
REPLAYED: Final = Told((None, "allowed", "ok", "allowed", "ok"))
ASK: Final[dict[str, Any]] = {
    "model": "claude-opus-5",
    "max_tokens": 2048,
    "thinking": {"type": "adaptive"},
    "system": "Be brief.",
    "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {"q": {}}}}],
}
HELLO: Final = {"role": "user", "content": PROMPT}
Ask = Callable[[Any, list[Any]], Any]
"""Asks a client for one turn; returns what has `content`."""
AsyncAsk = Callable[[Any, list[Any]], Coroutine[Any, Any, Any]]


def follow(content: Sequence[Any]) -> list[Any]:
    """The next request's messages, where the model called its tool with the last of `content`."""
    last = content[-1]
    ident = last["id"] if isinstance(last, dict) else last.id
    result = {"type": "tool_result", "tool_use_id": ident, "content": "The second."}
    said = {"role": "assistant", "content": content}
    return [HELLO, said, {"role": "user", "content": [result]}]


def talk(ask: Callable[[list[Any]], Any]) -> list[Any]:
    """Three turns over `ask`: one asked, one that carries all, one that lost the seal."""
    told: list[Any] = []
    first = ask([HELLO])
    told.append(first)
    content = first["content"] if isinstance(first, dict) else first.content
    tried(told, lambda: ask(follow(content)))
    tried(told, lambda: ask(follow(content[1:])))
    return told


def sync(ask: Ask, **options: Any) -> App:
    def app(url: str) -> list[Any]:
        made = {"base_url": url, "api_key": "k", "max_retries": 0, **options}
        with anthropic.Anthropic(**made) as client:
            return talk(partial(ask, client))

    return app


def asynchronous(ask: AsyncAsk, **options: Any) -> App:
    def app(url: str) -> list[Any]:
        made = {"base_url": url, "api_key": "k", "max_retries": 0, **options}
        with asyncio.Runner() as runner:
            client = anthropic.AsyncAnthropic(**made)
            told = talk(lambda messages: runner.run(ask(client, messages)))
            runner.run(client.close())
        return told

    return app


# ------------------------------------------------------------------------------ one turn, asked


def fold(events: list[Any]) -> dict[str, Any]:
    """What an application that reads a stream by itself makes of it."""
    content: list[Any] = []
    for event in events:
        if event.type == "content_block_start":
            content.append(event.content_block.to_dict())
        elif event.type == "content_block_delta":
            delta, block = event.delta, content[event.index]
            if delta.type == "input_json_delta":
                block["partial"] = block.get("partial", "") + delta.partial_json
            else:
                key = delta.type.removesuffix("_delta")
                block[key] = block.get(key, "") + getattr(delta, key)
    for block in content:
        if "partial" in block:
            block["input"] = json.loads(block.pop("partial") or "{}")
    return {"content": content, "events": events}


def create(client: Any, messages: list[Any]) -> Any:
    return client.messages.create(**ASK, messages=messages)


def stream(client: Any, messages: list[Any]) -> Any:
    return fold(list(client.messages.create(**ASK, messages=messages, stream=True)))


def helper(client: Any, messages: list[Any]) -> Any:
    with client.messages.stream(**ASK, messages=messages) as made:
        return made.get_final_message()


def raw(client: Any, messages: list[Any]) -> Any:
    return client.messages.with_raw_response.create(**ASK, messages=messages).parse()


def raw_stream(client: Any, messages: list[Any]) -> Any:
    made = client.messages.with_raw_response.create(**ASK, messages=messages, stream=True)
    return fold(list(made.parse()))


def streaming(client: Any, messages: list[Any]) -> Any:
    with client.messages.with_streaming_response.create(**ASK, messages=messages) as made:
        return json.loads("".join(made.iter_text()))


def beta(client: Any, messages: list[Any]) -> Any:
    return client.beta.messages.create(**ASK, messages=messages)


def beta_helper(client: Any, messages: list[Any]) -> Any:
    with client.beta.messages.stream(**ASK, messages=messages) as made:
        return made.get_final_message()


def parse(client: Any, messages: list[Any]) -> Any:
    return client.messages.parse(**ASK, messages=messages)


def beta_parse(client: Any, messages: list[Any]) -> Any:
    return client.beta.messages.parse(**ASK, messages=messages)


def post(client: Any, messages: list[Any]) -> Any:
    return client.post("/v1/messages", body={**ASK, "messages": messages}, cast_to=object)


def extra_body(client: Any, messages: list[Any]) -> Any:
    extra = json.loads(json.dumps(messages, default=lambda block: block.to_dict()))
    return client.messages.create(**ASK, messages=[HELLO], extra_body={"messages": extra})


async def acreate(client: Any, messages: list[Any]) -> Any:
    return await client.messages.create(**ASK, messages=messages)


async def astream(client: Any, messages: list[Any]) -> Any:
    made = await client.messages.create(**ASK, messages=messages, stream=True)
    return fold([event async for event in made])


async def ahelper(client: Any, messages: list[Any]) -> Any:
    async with client.messages.stream(**ASK, messages=messages) as made:
        return await made.get_final_message()


async def araw(client: Any, messages: list[Any]) -> Any:
    made = await client.messages.with_raw_response.create(**ASK, messages=messages)
    parsed = made.parse()
    return await parsed if inspect.isawaitable(parsed) else parsed


async def astreaming(client: Any, messages: list[Any]) -> Any:
    async with client.messages.with_streaming_response.create(**ASK, messages=messages) as made:
        return json.loads("".join([text async for text in made.iter_text()]))


async def abeta(client: Any, messages: list[Any]) -> Any:
    return await client.beta.messages.create(**ASK, messages=messages)


async def abeta_helper(client: Any, messages: list[Any]) -> Any:
    async with client.beta.messages.stream(**ASK, messages=messages) as made:
        return await made.get_final_message()


async def aparse(client: Any, messages: list[Any]) -> Any:
    return await client.messages.parse(**ASK, messages=messages)


async def apost(client: Any, messages: list[Any]) -> Any:
    return await client.post("/v1/messages", body={**ASK, "messages": messages}, cast_to=object)


# ------------------------------------------------------------------------------- others


def _on(request: Any, call_next: Any) -> Any:
    return call_next(request)


async def _aon(request: Any, call_next: Any) -> Any:
    return await call_next(request)


def batches(url: str) -> list[Any]:
    """Three batches of an entry each, and what came of them."""

    def ask(messages: list[Any]) -> Any:
        requests: Any = [{"custom_id": CUSTOM_ID, "params": {**ASK, "messages": messages}}]
        made = client.messages.batches.create(requests=requests)
        (line,) = list(client.messages.batches.results(made.id))
        return line.result.message if line.result.type == "succeeded" else line

    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        return [without_host(x, url) for x in talk(ask)]


def async_batches(url: str) -> list[Any]:
    async def ask(client: Any, messages: list[Any]) -> Any:
        params = {**ASK, "messages": messages}
        requests = [{"custom_id": CUSTOM_ID, "params": params}]
        made = await client.beta.messages.batches.create(requests=requests)
        (line,) = [line async for line in await client.beta.messages.batches.results(made.id)]
        return line.result.message if line.result.type == "succeeded" else line

    return [without_host(x, url) for x in asynchronous(ask)(url)]


def runs(*, lose: bool) -> Callable[[StrictProvider], list[Any]]:
    """The SDK's own tool loop, whose state the server keeps; it is lost halfway if `lose`."""

    def app(provider: StrictProvider) -> list[Any]:
        @anthropic.beta_tool
        def look(q: str) -> str:
            """Look a thing up."""
            if lose:
                provider.forget_state()
            return f"found {len(q)}"

        at = provider.base_url
        with anthropic.Anthropic(base_url=at, api_key="k", max_retries=0) as client:
            ask: Any = {**ASK, "tools": [look], "messages": [HELLO]}
            return list(client.beta.messages.tool_runner(**ask))

    return app


async def arun(client: Any) -> list[Any]:
    @anthropic.beta_async_tool
    async def look(q: str) -> str:
        """Look a thing up."""
        return f"found {len(q)}"

    ask: Any = {**ASK, "tools": [look], "messages": [HELLO]}
    return [message async for message in client.beta.messages.tool_runner(**ask)]


def async_runs(url: str) -> list[Any]:
    with asyncio.Runner() as runner:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
        told = runner.run(arun(client))
        runner.run(client.close())
    return told


def without_host(value: Any, url: str) -> Any:
    """The port is another one in each run."""
    return value.replace(url, "") if isinstance(value, str) else value


def _lines(body: bytes) -> list[Any]:
    return [json.loads(line) for line in body.splitlines()]


def _params(sent: Sent) -> list[Any]:
    if sent.method != "POST":
        return []
    return [entry["params"] for entry in json.loads(sent.request_body)["requests"]]


def _results(sent: Sent) -> list[Any]:
    if not sent.path.partition("?")[0].endswith("/results"):
        return []
    results = [line["result"] for line in _lines(sent.response_body)]
    return [result.get("message", result.get("error")) for result in results]


def keeps_threads() -> bool:
    return hasattr(anthropic.types.beta, "BetaMessageThreadParam")


def has(owner: Any, name: str) -> Callable[[], bool]:
    return lambda: hasattr(owner, name)


def itself(provider: StrictProvider) -> StrictProvider:
    return provider


def takes_middleware() -> bool:
    return "middleware" in inspect.signature(anthropic.Anthropic.__init__).parameters


_PLAIN: Final[dict[str, App]] = {
    "messages.create": sync(create),
    "messages.create-stream": sync(stream),
    "messages.stream": sync(helper),
    "messages.with_raw_response": sync(raw),
    "messages.with_raw_response-stream": sync(raw_stream),
    "messages.with_streaming_response": sync(streaming),
    "beta.messages.create": sync(beta),
    "beta.messages.stream": sync(beta_helper),
    "client.post": sync(post),
    "extra_body": sync(extra_body),
    "async-messages.create": asynchronous(acreate),
    "async-messages.create-stream": asynchronous(astream),
    "async-messages.stream": asynchronous(ahelper),
    "async-messages.with_raw_response": asynchronous(araw),
    "async-messages.with_streaming_response": asynchronous(astreaming),
    "async-beta.messages.create": asynchronous(abeta),
    "async-beta.messages.stream": asynchronous(abeta_helper),
    "async-client.post": asynchronous(apost),
}
_BATCH: Final = entry_for_entry(_params, _results)
DOORS: Final = (
    *(Door("anthropic", name, app, TOLD) for name, app in _PLAIN.items()),
    Door("anthropic", "messages.parse", sync(parse), TOLD, has(Messages, "parse")),
    Door("anthropic", "async-messages.parse", asynchronous(aparse), TOLD, has(Messages, "parse")),
    Door(
        "anthropic",
        "beta.messages.parse",
        sync(beta_parse),
        TOLD,
        has(beta_messages.Messages, "parse"),
    ),
    Door("anthropic", "middleware", sync(create, middleware=[_on]), TOLD, takes_middleware),
    Door(
        "anthropic",
        "middleware-stream",
        sync(stream, middleware=[_on]),
        TOLD,
        takes_middleware,
    ),
    Door(
        "anthropic",
        "async-middleware",
        asynchronous(acreate, middleware=[_aon]),
        TOLD,
        takes_middleware,
    ),
    Door("anthropic", "tool_runner", runs(lose=False), HELD, keeps_threads, at=itself),
    Door("anthropic", "async-tool_runner", async_runs, HELD, keeps_threads),
    Door("anthropic", "tool_runner-lost", runs(lose=True), REPLAYED, keeps_threads, at=itself),
    Door("anthropic", "messages.batches", batches, TOLD, same=_BATCH),
    Door("anthropic", "async-beta.messages.batches", async_batches, TOLD, same=_BATCH),
)
