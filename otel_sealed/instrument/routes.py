"""Which HTTP requests of the Stainless SDKs carry sealed state, told by method and URL path.

Most are turns of a model: one request and its reply. Some hold several, or half of one: a batch
is many requests in one body, its results are many replies in one file, a conversation of the
server's takes items in and hands them out. Those name the function of `entries` that takes them
apart. What is in no table (counting tokens, models, embeddings) goes by unlooked at.
"""

from __future__ import annotations

import re
from typing import Final

from otel_sealed.instrument import entries
from otel_sealed.instrument.runtime import Kind
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
