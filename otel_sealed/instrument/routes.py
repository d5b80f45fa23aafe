"""Which HTTP requests carry turns of a model and so sealed state, by method and URL path.

`ANTHROPIC` and `OPENAI` say it of the Stainless SDKs, `WIRES` of exchanges that are found in files,
and `sends_turn` of requests of any HTTP client, from both.

Most are turns of a model: one request and its reply. Some hold several, or half of one: a batch
is many requests in one body, its results are many replies in one file, a conversation of the
server's takes items in and hands them out. Those name the function of `entries` that takes them
apart. What is in no table (counting tokens, models, embeddings) goes by unlooked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from otel_sealed.instrument import entries
from otel_sealed.instrument.runtime import Kind
from otel_sealed.providers.vendors import HOSTS
from otel_sealed.wire import Api

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
    """One API by its path, whatever the host; `operation` as `Exchange` has it."""

    path: re.Pattern[str]
    api: Api
    operation: str | None = None


WIRES: Final = tuple(
    Wire(re.compile(pattern), api, operation)
    for pattern, api, operation in (
        (r"/messages/?$", Api.MESSAGES, None),
        (r"/messages/count_tokens/?$", Api.MESSAGES, "count_tokens"),
        (r"/models/[^/]+:(?:stream)?[rR]awPredict$", Api.MESSAGES, None),
        (r"/model/[^/]+/invoke(?:-with-response-stream)?$", Api.MESSAGES, None),
        (r"/responses/?$", Api.RESPONSES, None),
        (r"/responses/compact/?$", Api.RESPONSES, "compact"),
        (r"/responses/input_tokens/?$", Api.RESPONSES, "input_tokens"),
        (r":(?:stream)?[gG]enerateContent$", Api.GENERATE_CONTENT, None),
        (r":countTokens$", Api.GENERATE_CONTENT, "countTokens"),
        (r"/interactions/?$", Api.INTERACTIONS, None),
        (r"/chat/completions/?$", Api.CHAT_COMPLETIONS, None),
        (r"/model/[^/]+/converse(?:-stream)?$", Api.CONVERSE, None),
    )
)

# ------------------------------------------------------------------- requests of any HTTP client

_COUNTS: Final = frozenset({"count_tokens", "input_tokens", "countTokens"})
"""Operations that bring nothing and leave nothing."""
_SENT: Final = (
    *(w.path for w in WIRES if w.operation not in _COUNTS and w.api is not Api.MESSAGES),
    *(at for method, at, kind in (*ANTHROPIC, *OPENAI) if method == "post" and not kind.purpose),
    re.compile(r":batchGenerateContent$"),
)
_BEDROCK: Final = ("/converse", "/converse-stream")
_INVOKE: Final = ("/invoke", "/invoke-with-response-stream")
_RAW: Final = (":rawPredict", ":streamRawPredict")
_CERTAIN: Final = ("/chat/completions", ":generateContent", ":streamGenerateContent")
"""Ends of paths that no other API is known to have."""
_LIKELY: Final = ("/v1/messages", "/v1/responses", "/v1/responses/compact", "/v1/messages/batches")
"""Ends of paths that others have, too (messages to telephones, responses to surveys)."""
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
    if path.endswith(_CERTAIN):
        return True
    if path.endswith(_RAW):
        return "/publishers/anthropic/" in path and "/count-tokens:" not in path
    if "/model/" in path and path.endswith(_BEDROCK):
        return True
    if "/model/" in path and path.endswith(_INVOKE):
        return "anthropic" in path or _has(body, "anthropic_version")
    if host.endswith(HOSTS):
        return any(at.search(path) for at in _SENT)
    return path.endswith(_LIKELY) and _has(body, "model" if "batches" not in path else "requests")


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
