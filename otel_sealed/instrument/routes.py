"""Which HTTP requests carry turns of a model and so sealed state, by method and URL path.

`ANTHROPIC` and `OPENAI` say it of the Stainless SDKs, `wires` of exchanges that are found in files,
and `sends_turn` of requests of any HTTP client, from both. The paths of an API are declared in the
folder of its dialect.

Most are turns of a model: one request and its reply. Some hold several, or half of one: a batch
is many requests in one body, its results are many replies in one file, a conversation of the
server's takes items in and hands them out. Those name the function of `entries` that takes them
apart. What is in no table (counting tokens, models, embeddings) goes by unlooked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from otel_sealed.contract import Api, Path, Proof
from otel_sealed.instrument import entries
from otel_sealed.instrument.runtime import Kind
from otel_sealed.providers import dialects
from otel_sealed.providers.vendors import HOSTS
from otel_sealed.telemetry.names import operation_name

_Route = tuple[str, re.Pattern[str], Kind]


def _route(method: str, path: str, kind: Kind) -> _Route:
    return method, re.compile(rf"(?:^|/){path}/?$"), kind


ANTHROPIC: Final = (
    _route("post", "v1/messages", Kind(Api.MESSAGES, "chat")),
    _route(
        "post",
        "v1/messages/batches",
        Kind(Api.MESSAGES, "batch_request", transport="batch", parts=entries.messages_asked),
    ),
    _route(
        "get",
        "v1/messages/batches/[^/]+/results",
        Kind(Api.MESSAGES, "batch_result", transport="batch", parts=entries.messages_answered),
    ),
)
OPENAI: Final = (
    _route("post", "responses", Kind(Api.RESPONSES, "chat")),
    _route("post", "chat/completions", Kind(Api.CHAT_COMPLETIONS, "chat")),
    _route("post", "responses/compact", Kind(Api.RESPONSES, "compact", "compact")),
    _route(
        "get",
        "responses/[^/]+",
        Kind(Api.RESPONSES, "retrieve", "retrieve", parts=entries.response_retrieved),
    ),
    _route(
        "post",
        "conversations(?:/[^/]+/items)?",
        Kind(Api.RESPONSES, "add_items", "add_items", parts=entries.items_added),
    ),
    _route(
        "get",
        "conversations/[^/]+/items(?:/[^/]+)?",
        Kind(Api.RESPONSES, "list_items", "list_items", parts=entries.items_listed),
    ),
    _route(
        "post",
        "files",
        Kind(
            Api.RESPONSES,
            "batch_request",
            transport="batch",
            parts=entries.responses_asked,
            purpose="batch",
        ),
    ),
    _route(
        "get",
        "files/[^/]+/content",
        Kind(Api.RESPONSES, "batch_result", transport="batch", parts=entries.responses_answered),
    ),
)


@dataclass(frozen=True, slots=True)
class Wire:
    """One API by one of its paths, whatever the host."""

    path: Path
    api: Api


@cache
def wires() -> tuple[Wire, ...]:
    """The paths of every API, as the dialects declare them."""
    return tuple(Wire(path, d.api) for d in dialects().values() for path in d.paths)


def wires_at(path: str) -> list[Wire]:
    """The APIs that a path may belong to."""
    path = path.rstrip("/")
    return [wire for wire in wires() if wire.path.fits(path)]


# ------------------------------------------------------------------- requests of any HTTP client


@dataclass(frozen=True, slots=True)
class _Turns:
    """The paths to which turns are sent, by what proves that they are."""

    certain: tuple[Path, ...]
    at_vendors: tuple[Path, ...]
    at_gateways: tuple[str, ...]


@cache
def _turns() -> _Turns:
    sent = [wire.path for wire in wires() if wire.path.sends]
    return _Turns(
        tuple(path for path in sent if path.proof is Proof.PATH),
        tuple(path for path in sent if path.proof is Proof.HOST),
        tuple(path.gateway for path in sent if path.gateway),
    )


@dataclass(frozen=True, slots=True)
class Turn(Kind):
    """A kind of call of any HTTP client.

    `known`: whether it is one turn that a dialect reads; `asks`: whether a body is one of the API,
    where neither path nor host proves it.
    """

    known: bool = True
    asks: Callable[[Mapping[str, Any]], bool] | None = None


@lru_cache(maxsize=64)
def _turn(api: Api, operation: str | None, *, proven: bool) -> Turn:
    """The kind of a call, by its path."""
    dialect = dialects()[api]
    name = operation_name(operation or "", dialect.name)
    return Turn(api, name, operation, asks=None if proven else dialect.asks)


def turn(host: str, path: str, body: object) -> Turn | None:
    """The kind of call that a POST is, None where it sends no turns (`sends_turn`).

    Batches send turns, but no request is one of them: their kind is not known.
    """
    if not sends_turn(host, path, body):
        return None
    found = [wire for wire in wires_at(path[-_LAST:]) if wire.path.sends]
    if not found:
        return _NO_TURN
    proven = found[0].path.proof is Proof.PATH or host.endswith(HOSTS)
    return _turn(found[0].api, found[0].path.operation, proven=proven)


_NO_TURN: Final = Turn(Api.MESSAGES, "batch", known=False)
_SENT: Final = (
    *(at for method, at, kind in (*ANTHROPIC, *OPENAI) if method == "post" and not kind.purpose),
    re.compile(r":batchGenerateContent$"),
)
"""Further paths at the hosts of vendors: those of their SDKs, and what holds many turns."""
_INVOKE: Final = ("/invoke", "/invoke-with-response-stream")
_RAW: Final = (":rawPredict", ":streamRawPredict")
_BATCHES: Final = "/v1/messages/batches"
_LAST: Final = 512
"""Characters of a path that are looked at: all that tells APIs from each other is at its end."""
_WINDOW: Final = 65_536
"""Bytes of each end of a body in which its keys are looked for, however long it is."""


def sends_turn(host: str, path: str, body: object) -> bool:
    """Whether a POST sends turns of a model. `body` is looked at only where the URL leaves doubt.

    At the hosts of vendors and clouds the path says it. Anywhere else, at gateways and servers of
    one's own, its shape does; and where that is no proof, the body must have the key that the API
    demands. Embeddings, files, images and token counts have other paths. On Bedrock a path is the
    same for models that think and models that embed.
    """
    path = path[-_LAST:].rstrip("/")
    known = _turns()
    if any(one.fits(path) for one in known.certain):
        return True
    if path.endswith(_RAW):
        return "/publishers/anthropic/" in path and "/count-tokens:" not in path
    if "/model/" in path and path.endswith(_INVOKE):
        return "anthropic" in path or _has(body, "anthropic_version")
    if host.endswith(HOSTS):
        at_vendor = any(one.fits(path) for one in known.at_vendors)
        return at_vendor or any(at.search(path) for at in _SENT)
    if path.endswith(_BATCHES):
        return _has(body, "requests")
    return path.endswith(known.at_gateways) and _has(body, "model")


def _has(body: object, key: str) -> bool:
    """Whether a JSON object has a key, as far as its ends show it without being parsed.

    In JSON a quote inside of a text is escaped: what looks like a key is a key or a whole text.
    """
    if isinstance(body, Mapping):
        return key in body
    if isinstance(body, str):
        quoted: Any = f'"{key}"'
    elif isinstance(body, (bytes, bytearray)):
        quoted = f'"{key}"'.encode()
    else:
        return False
    return quoted in body[:_WINDOW] or quoted in body[-_WINDOW:]
