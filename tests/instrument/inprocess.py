"""The three SDKs over a transport in this process that answers what a test scripts.

Each SDK brings an HTTP library of its own (httpx or httpx2, by release); the transport is made from
the one that its client uses.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from anthropic import (
    Anthropic,
    AsyncAnthropic,
    DefaultAsyncHttpxClient,
    DefaultHttpxClient,
)
from google import genai
from openai import AsyncOpenAI, OpenAI
from openai import DefaultAsyncHttpxClient as OpenAIAsyncHttp
from openai import DefaultHttpxClient as OpenAIHttp
from pydantic import BaseModel

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
_DEEPEST: Final = 40


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; more than one chunk makes a stream of them."""

    chunks: tuple[bytes, ...]
    status: int = 200
    kind: str = JSON
    cut: bool = False


@dataclass(slots=True)
class Script:
    """Replies in order; the last one is given again when the script is over."""

    replies: list[Reply] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)

    def says(self, *replies: Reply) -> None:
        self.replies[:] = replies

    def next(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def whole(body: bytes, status: int = 200) -> Reply:
    return Reply((body,), status)


def stream(*frames: bytes, cut: bool = False) -> Reply:
    return Reply(frames, kind=EVENTS, cut=cut)


def _transport(http: Any, script: Script) -> Any:
    def handle(request: Any) -> Any:
        script.requests.append(request.content)
        reply = script.next()
        body = _body(http)(reply, http.ReadError)
        return http.Response(reply.status, headers={"content-type": reply.kind}, stream=body)

    return http.MockTransport(handle)


@cache
def _body(http: Any) -> type:
    class Body(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, reply: Reply, error: type[Exception]) -> None:
            self.reply, self.error = reply, error

        def __iter__(self) -> Iterator[bytes]:
            yield from self.reply.chunks
            if self.reply.cut:
                raise self.error("cut")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in self:
                yield chunk

    return Body


def _over(made: type, script: Script) -> Any:
    """A client of the same library and kind as `made` over the script."""
    base = next(c for c in made.__mro__ if c.__name__ in ("Client", "AsyncClient"))
    http: Any = importlib.import_module(base.__module__.partition(".")[0])
    return getattr(http, base.__name__)(transport=_transport(http, script))


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of all SDKs, one script for all."""

    script: Script
    anthropic: Anthropic
    anthropic_async: AsyncAnthropic
    openai: OpenAI
    openai_async: AsyncOpenAI
    gemini: genai.Client


@cache
def clients() -> Clients:
    """Made once a process: a client costs more than all the calls of a test."""
    script = Script()

    given: dict[str, Any] = {"api_key": "k", "max_retries": 0}
    gemini = genai.Client(api_key="k", http_options={"base_url": "http://gemini.test"})
    inner: Any = gemini._api_client
    inner._httpx_client.close()
    inner._httpx_client = _over(type(inner._httpx_client), script)
    inner._async_httpx_client = _over(type(inner._async_httpx_client), script)
    return Clients(
        script,
        Anthropic(
            **given,
            base_url="http://a.test",
            http_client=_over(DefaultHttpxClient, script),
        ),
        AsyncAnthropic(
            **given,
            base_url="http://a.test",
            http_client=_over(DefaultAsyncHttpxClient, script),
        ),
        OpenAI(
            **given,
            base_url="http://o.test/v1",
            http_client=_over(OpenAIHttp, script),
        ),
        AsyncOpenAI(
            **given,
            base_url="http://o.test/v1",
            http_client=_over(OpenAIAsyncHttp, script),
        ),
        gemini,
    )


def dump(value: Any, depth: int = 0) -> Any:
    """All there is to an SDK object, as plain data that compares; NaN equals itself."""
    if depth > _DEEPEST:
        return type(value).__name__
    if isinstance(value, BaseModel):
        fields = {**vars(value), **(value.__pydantic_extra__ or {})}
        fields = {name: v for name, v in fields.items() if not name.startswith("_")}
        return type(value).__name__, value.model_fields_set, dump(fields, depth + 1)
    if isinstance(value, dict):
        return {repr(key): dump(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [dump(item, depth + 1) for item in value]
    if isinstance(value, BaseException):
        args = [dump(arg, depth + 1) for arg in value.args]
        return type(value).__name__, args, type(value.__cause__).__name__
    if value is None or isinstance(value, (str, int, float, bytes)):
        return type(value).__name__, repr(value)
    return type(value).__name__
