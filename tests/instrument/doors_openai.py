"""Every door into the openai SDK that the Responses API has."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import openai
from openai.resources import responses
from openai.resources.beta import beta as beta_resources

from otel_sealed.testing.strict.records import Exchange as Sent
from tests.instrument.doors import (
    CUSTOM_ID,
    PROMPT,
    App,
    Door,
    Told,
    entry_for_entry,
    message_for_message,
    tried,
)

_LOST: Final = frozenset(
    {
        "dropped openai.reasoning.encrypted_content O4",
        "orphaned openai.function_call O4",
    }
)
TOLD: Final = Told((None, "ok", "breaks"), _LOST)
ASK: Final[dict[str, Any]] = {
    "model": "gpt-5.6-sol",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "instructions": "Be brief.",
    "tools": [
        {
            "type": "function",
            "name": "look",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
            "strict": False,
        }
    ],
}
HELLO: Final = {"role": "user", "content": PROMPT}
Ask = Callable[[Any, list[Any]], Any]
"""Asks a client for one turn; returns what has `output`."""
AsyncAsk = Callable[[Any, list[Any]], Coroutine[Any, Any, Any]]


def follow(output: Sequence[Any]) -> list[Any]:
    """The next request's input, where the model called its function with the last of `output`."""
    last = output[-1]
    ident = last["call_id"] if isinstance(last, dict) else last.call_id
    result = {"type": "function_call_output", "call_id": ident, "output": "The second."}
    return [HELLO, *output, result]


def talk(ask: Callable[[list[Any]], Any]) -> list[Any]:
    """Three turns over `ask`: one asked, one that carries all, one that lost the seal."""
    told: list[Any] = []
    first = ask([HELLO])
    told.append(first)
    output = first["output"] if isinstance(first, dict) else first.output
    tried(told, lambda: ask(follow(output)))
    tried(told, lambda: ask(follow(output[1:])))
    return told


def opened(url: str, kind: type | None = None, **options: Any) -> Any:
    made = {"base_url": f"{url}/v1", "api_key": "k", "max_retries": 0, **options}
    sockets = {"websocket_base_url": f"{url}/v1".replace("http", "ws")}
    kind = kind or openai.OpenAI
    known = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    return kind(**made, **(sockets if "websocket_base_url" in known else {}))


def sync(ask: Ask, **options: Any) -> App:
    def app(url: str) -> list[Any]:
        with opened(url, **options) as client:
            return talk(partial(ask, client))

    return app


def asynchronous(ask: AsyncAsk, **options: Any) -> App:
    def app(url: str) -> list[Any]:
        with asyncio.Runner() as runner:
            client = opened(url, openai.AsyncOpenAI, **options)
            told = talk(lambda items: runner.run(ask(client, items)))
            runner.run(client.close())
        return told

    return app


# ------------------------------------------------------------------------------ one turn, asked


def create(client: Any, items: list[Any]) -> Any:
    return client.responses.create(**ASK, input=items)


def stream(client: Any, items: list[Any]) -> Any:
    events = list(client.responses.create(**ASK, input=items, stream=True))
    return {"output": events[-1].response.output, "events": events}


def helper(client: Any, items: list[Any]) -> Any:
    with client.responses.stream(**ASK, input=items) as made:
        return made.get_final_response()


def raw(client: Any, items: list[Any]) -> Any:
    return client.responses.with_raw_response.create(**ASK, input=items).parse()


def streaming(client: Any, items: list[Any]) -> Any:
    with client.responses.with_streaming_response.create(**ASK, input=items) as made:
        return json.loads("".join(made.iter_text()))


def parse(client: Any, items: list[Any]) -> Any:
    strict = [{**ASK["tools"][0], "strict": True}]
    return client.responses.parse(**{**ASK, "tools": strict}, input=items)


def beta(client: Any, items: list[Any]) -> Any:
    return client.beta.responses.create(**ASK, input=items)


def post(client: Any, items: list[Any]) -> Any:
    body = json.loads(json.dumps({**ASK, "input": items}, default=lambda item: item.to_dict()))
    return client.post("/responses", body=body, cast_to=object)


def extra_body(client: Any, items: list[Any]) -> Any:
    extra = json.loads(json.dumps(items, default=lambda item: item.to_dict()))
    return client.responses.create(**ASK, input=[HELLO], extra_body={"input": extra})


async def acreate(client: Any, items: list[Any]) -> Any:
    return await client.responses.create(**ASK, input=items)


async def astream(client: Any, items: list[Any]) -> Any:
    made = await client.responses.create(**ASK, input=items, stream=True)
    events = [event async for event in made]
    return {"output": events[-1].response.output, "events": events}


async def ahelper(client: Any, items: list[Any]) -> Any:
    async with client.responses.stream(**ASK, input=items) as made:
        return await made.get_final_response()


async def araw(client: Any, items: list[Any]) -> Any:
    return (await client.responses.with_raw_response.create(**ASK, input=items)).parse()


async def astreaming(client: Any, items: list[Any]) -> Any:
    async with client.responses.with_streaming_response.create(**ASK, input=items) as made:
        return json.loads("".join([text async for text in made.iter_text()]))


async def aparse(client: Any, items: list[Any]) -> Any:
    strict = [{**ASK["tools"][0], "strict": True}]
    return await client.responses.parse(**{**ASK, "tools": strict}, input=items)


async def abeta(client: Any, items: list[Any]) -> Any:
    return await client.beta.responses.create(**ASK, input=items)


async def apost(client: Any, items: list[Any]) -> Any:
    body = json.loads(json.dumps({**ASK, "input": items}, default=lambda item: item.to_dict()))
    return await client.post("/responses", body=body, cast_to=object)


def of_the_module(url: str) -> list[Any]:
    """`openai.responses.create`, the client the module makes by itself."""
    openai.api_key, openai.base_url, openai.max_retries = "k", f"{url}/v1/", 0
    try:
        with openai.DefaultHttpxClient() as http:
            openai.http_client = http  # the module keeps its client, and its resources keep to that
            return talk(partial(create, openai))
    finally:
        openai.api_key = openai.base_url = openai.http_client = None
        openai.max_retries = 2


def azure(url: str) -> list[Any]:
    with openai.AzureOpenAI(
        api_key="k", azure_endpoint=url, api_version="2025-04-01-preview", max_retries=0
    ) as client:
        return talk(partial(create, client))


# --------------------------------------------------------------------------------- the WebSocket


def closing(event: Any) -> bool:
    return event.type in ("response.completed", "response.failed", "error")


def answered(events: list[Any]) -> Any:
    last = events[-1]
    return {"output": last.response.output if last.type != "error" else [], "events": events}


def sent_on(items: list[Any]) -> Any:
    """The items as the SDK's own types for events, which take no objects."""
    return json.loads(json.dumps(items, default=lambda item: item.to_dict()))


def socket(url: str, of: Callable[[Any], Any] = lambda client: client) -> list[Any]:
    """All turns on one connection."""

    def ask(items: list[Any]) -> Any:
        line.response.create(**ASK, input=sent_on(items))
        events: list[Any] = []
        for event in line:
            events.append(event)
            if closing(event):
                break
        return answered(events)

    with opened(url) as client, of(client).responses.connect() as line:
        return talk(ask)


def its_beta(client: Any) -> Any:
    return client.beta


def socket_bytes(url: str) -> list[Any]:
    """Messages of one's own making, and events read as bytes."""

    def ask(items: list[Any]) -> Any:
        line.send({"type": "response.create", **ASK, "input": sent_on(items)})
        events: list[Any] = []
        while not events or not closing(events[-1]):
            events.append(line.parse_event(line.recv_bytes()))
        return answered(events)

    with opened(url) as client:
        line = client.responses.connect().enter()
        try:
            return talk(ask)
        finally:
            line.close()


def async_socket(url: str) -> list[Any]:
    async def ask(line: Any, items: list[Any]) -> Any:
        await line.response.create(**ASK, input=sent_on(items))
        events: list[Any] = []
        async for event in line:
            events.append(event)
            if closing(event):
                break
        return answered(events)

    with asyncio.Runner() as runner:
        client = opened(url, openai.AsyncOpenAI)
        line = runner.run(client.responses.connect().enter())
        told = talk(lambda items: runner.run(ask(line, items)))
        runner.run(line.close())
        runner.run(client.close())
    return told


def session(url: str) -> list[Any]:
    """A session of the SDK, whose background reader routes events to a lane."""
    made: Any = importlib.import_module("openai.lib.responses_websocket")
    limits = made.ResponsesWebSocketLimits(2, 999, 999, 1 << 22, 1 << 22)

    def ask(items: list[Any]) -> Any:
        lane.send({"type": "response.create", **ASK, "input": sent_on(items)})
        return lane.get_final_response(timeout=10)

    with (
        opened(url) as client,
        client.responses.connect() as line,
        made.ResponsesWebSocketSession(line, limits=limits) as held,
    ):
        lane = held.lane("one")
        return talk(ask)


# -------------------------------------------------------------------------------------- batches


def batches(url: str) -> list[Any]:
    """Three batches of an entry each: the file that goes up, the file that comes down."""
    client = opened(url)

    def ask(items: list[Any]) -> Any:
        body = {**ASK, "input": sent_on(items)}
        line = {"custom_id": CUSTOM_ID, "method": "POST", "url": "/v1/responses", "body": body}
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        file = client.files.create(file=("in.jsonl", data), purpose="batch")
        made = client.batches.create(
            input_file_id=file.id, endpoint="/v1/responses", completion_window="24h"
        )
        return read(client.files.content(made.output_file_id).text)

    with client:
        return talk(ask)


def async_batches(url: str) -> list[Any]:
    async def ask(client: Any, items: list[Any]) -> Any:
        body = {**ASK, "input": sent_on(items)}
        line = {"custom_id": CUSTOM_ID, "method": "POST", "url": "/v1/responses", "body": body}
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        file = await client.files.create(file=("in.jsonl", data), purpose="batch")
        made = await client.batches.create(
            input_file_id=file.id, endpoint="/v1/responses", completion_window="24h"
        )
        told = client.files.with_streaming_response.content(made.output_file_id)
        async with told as content:
            return read("".join([text async for text in content.iter_text()]))

    return asynchronous(ask)(url)


def read(text: str) -> Any:
    (line,) = [json.loads(line) for line in text.splitlines()]
    return line["response"]["body"]


def _lines(body: bytes) -> list[Any]:
    return [json.loads(line) for line in body.splitlines() if line.startswith(b"{")]


def _asked(sent: Sent) -> list[Any]:
    uploaded = sent.method == "POST" and sent.path.endswith("/files")
    return [line["body"] for line in _lines(sent.request_body)] if uploaded else []


def _answers(sent: Sent) -> list[Any]:
    downloaded = sent.path.endswith("/content")
    return [line["response"]["body"] for line in _lines(sent.response_body)] if downloaded else []


# ---------------------------------------------------------------- what the server of OpenAI holds

HELD: Final = Told((None, "allowed"))


def conversation(url: str) -> list[Any]:
    """Two turns in a conversation that the server keeps."""
    with opened(url) as client:
        made = client.conversations.create()
        ask = partial(client.responses.create, **{**ASK, "store": True}, conversation=made.id)
        first = ask(input=[HELLO])
        return [made, first, ask(input=follow(first.output)[-1:])]


def by_response(url: str) -> list[Any]:
    """Two turns, the second by the id of the first response."""
    with opened(url) as client:
        ask = partial(client.responses.create, **{**ASK, "store": True})
        first = ask(input=[HELLO])
        return [first, ask(input=follow(first.output)[-1:], previous_response_id=first.id)]


def only_responses(sent: Sequence[Sent]) -> list[Sent]:
    return [x for x in sent if x.path.endswith("/responses")]


def has(owner: Any, name: str) -> Callable[[], bool]:
    return lambda: hasattr(owner, name)


def beta_connects() -> bool:
    found: Any = getattr(openai.resources.beta, "responses", None)
    return hasattr(getattr(found, "Responses", None), "connect")


def has_session() -> bool:
    return importlib.util.find_spec("openai.lib.responses_websocket") is not None


_PLAIN: Final[dict[str, App]] = {
    "responses.create": sync(create),
    "responses.create-stream": sync(stream),
    "responses.stream": sync(helper),
    "responses.with_raw_response": sync(raw),
    "responses.with_streaming_response": sync(streaming),
    "responses.parse": sync(parse),
    "client.post": sync(post),
    "extra_body": sync(extra_body),
    "module": of_the_module,
    "azure": azure,
    "async-responses.create": asynchronous(acreate),
    "async-responses.create-stream": asynchronous(astream),
    "async-responses.stream": asynchronous(ahelper),
    "async-responses.with_raw_response": asynchronous(araw),
    "async-responses.with_streaming_response": asynchronous(astreaming),
    "async-responses.parse": asynchronous(aparse),
    "async-client.post": asynchronous(apost),
}
_CONNECTS: Final = has(responses.Responses, "connect")
_BATCH: Final = entry_for_entry(_asked, _answers)
_BETA: Final = has(beta_resources.Beta, "responses")
DOORS: Final = (
    *(Door("openai", name, app, TOLD) for name, app in _PLAIN.items()),
    Door("openai", "beta.responses", sync(beta), TOLD, _BETA),
    Door("openai", "async-beta.responses", asynchronous(abeta), TOLD, _BETA),
    Door("openai", "websocket", socket, TOLD, _CONNECTS, same=message_for_message),
    Door(
        "openai",
        "beta.websocket",
        partial(socket, of=its_beta),
        TOLD,
        beta_connects,
        same=message_for_message,
    ),
    Door("openai", "websocket-bytes", socket_bytes, TOLD, _CONNECTS, same=message_for_message),
    Door("openai", "async-websocket", async_socket, TOLD, _CONNECTS, same=message_for_message),
    Door("openai", "websocket-session", session, TOLD, has_session, same=message_for_message),
    Door("openai", "batches", batches, TOLD, same=_BATCH),
    Door("openai", "async-batches", async_batches, TOLD, same=_BATCH),
    Door(
        "openai",
        "conversation",
        conversation,
        HELD,
        has(openai.OpenAI, "conversations"),
        turns=only_responses,
    ),
    Door("openai", "previous_response_id", by_response, HELD),
)
