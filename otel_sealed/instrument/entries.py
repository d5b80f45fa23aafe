"""Exchanges that are more, or less, than one turn of a model, taken apart into such as are one.

Each function is told the exchange of one HTTP request and its path with query, and gives the
exchanges in it. A request without its reply (an entry of a batch, items for a conversation) is
judged when it is sent; a reply without its request (a result of a batch, an item that is listed)
is recorded when it comes. Shapes as the SDKs of anthropic 2.14 and openai 3.57 have them; what
does not look like them is no entry. Nothing here raises on what came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from otel_sealed.contract import FAILED, OK, REFUSED
from otel_sealed.wire import Exchange, as_json
from otel_sealed.wire.parse import Unread

_SEALED: Final = "encrypted_content"
_CONVERSATION: Final = re.compile(r"conversations/([^/?]+)/items")
_BOUNDARY: Final = re.compile(rb"^--([^\r\n]{1,200})\r?\n")
_GAP: Final = b"\r\n\r\n"


# ----------------------------------------------------------------------------------- batches


def messages_asked(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """The requests of `POST /v1/messages/batches`: `{"requests": [{"custom_id", "params"}]}`."""
    for entry in _list(_json(whole.request), "requests"):
        params = entry.get("params") if isinstance(entry, dict) else None
        if isinstance(params, dict):
            yield _asked(whole, params)


def messages_answered(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """The results of a batch of messages, a JSON object a line, in any order."""
    for line in _lines(whole.response):
        result = line.get("result")
        if not isinstance(result, dict):
            continue
        if result.get("type") == "succeeded":
            yield _answered(whole, result.get("message"), OK)
        elif result.get("type") == "errored":
            error = result.get("error")
            inner = error.get("error") if isinstance(error, dict) else None
            refused = isinstance(inner, dict) and inner.get("type") == "invalid_request_error"
            yield _answered(whole, error, REFUSED if refused else FAILED)


def responses_asked(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """The requests for responses in the file of a batch: `{"custom_id", "url", "body"}` a line."""
    for line in _lines(_file(whole.request)):
        body = line.get("body")
        if isinstance(body, dict) and _path_is_responses(line.get("url")):
            yield _asked(whole, body)


def responses_answered(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """The responses in the output file of a batch; of any other file, nothing."""
    for line in _lines(whole.response):
        response = line.get("response")
        if "custom_id" not in line or not isinstance(response, dict):
            continue
        status, body = response.get("status_code"), response.get("body")
        code = status if isinstance(status, int) else OK
        responds = isinstance(body, dict) and body.get("object") == "response"
        if responds or (isinstance(body, dict) and code >= REFUSED):
            yield _answered(whole, body, code)


def _asked(whole: Exchange, body: dict[str, Any]) -> Exchange:
    """A request that will be answered elsewhere."""
    model = body.get("model")
    return replace(
        whole,
        request=body,
        response=None,
        events=None,
        status=None,
        complete=True,
        sdk=None,
        model=model if isinstance(model, str) else None,
    )


def _answered(whole: Exchange, body: Any, status: int) -> Exchange:
    """A reply to what was asked elsewhere."""
    return replace(
        whole,
        request=None,
        response=body,
        events=None,
        status=status,
        complete=True,
        sdk=None,
    )


def _path_is_responses(url: Any) -> bool:
    return isinstance(url, str) and url.rstrip("/").endswith("/responses")


# ---------------------------------------------------------------- what the server of OpenAI holds


def response_retrieved(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """A stored response that is fetched; without a seal in it there is nothing to record."""
    if _holds_seals(whole.events) or _holds_seals(whole.response):
        yield replace(whole, request=None)


def items_added(whole: Exchange, path: str) -> Iterator[Exchange]:
    """Items that are put into a conversation of the server's, as a request that carries them."""
    body = _json(whole.request)
    items = _list(body, "items")
    if not items:
        return
    found = _CONVERSATION.search(path)
    named = {"conversation": found[1]} if found else {}
    refused = (whole.status or 0) >= REFUSED
    yield replace(
        whole,
        request={"input": items, **named},
        response=whole.response if refused else None,
        complete=True,
        sdk=None,
    )


def items_listed(whole: Exchange, path: str) -> Iterator[Exchange]:
    """Items of the model that a conversation hands out, those of one answer together."""
    if not _holds_seals(whole.response):
        return
    body = _json(whole.response)
    items = [item for item in _list(body, "data") if isinstance(item, dict)]
    if isinstance(body, dict) and isinstance(body.get("type"), str):
        items = [body]  # one item, by its id
    if "order=asc" not in path:
        items.reverse()
    for said, run in groupby(items, _said_by_the_model):
        output = list(run)
        if said and any(_SEALED in item for item in output):
            # what a server lists, it stores
            yield _answered(whole, {"object": "response", "store": True, "output": output}, OK)


def _said_by_the_model(item: dict[str, Any]) -> bool:
    kind = str(item.get("type", "message"))
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")


def _holds_seals(body: Any) -> bool:
    """A cheap look, so that what is polled a hundred times is not parsed a hundred times."""
    if isinstance(body, str):
        return _SEALED in body
    return isinstance(body, (bytes, bytearray)) and _SEALED.encode() in body


# --------------------------------------------------------------------------------------- bodies


def _json(body: Any) -> Any:
    try:
        return as_json(body)
    except Unread:
        return None


def _list(body: Any, name: str) -> list[Any]:
    found = body.get(name) if isinstance(body, dict) else None
    return found if isinstance(found, list) else []


def _lines(data: Any) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file with one a line; lines that are none are left out.

    A file that does not begin like one is not looked through.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if not isinstance(data, (bytes, bytearray)) or not begins_like_lines(data):
        return
    for line in bytes(data).splitlines():
        try:
            value = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def begins_like_lines(data: bytes | bytearray) -> bool:
    """Whether a body may be a file of JSON objects, by its first bytes."""
    return data[:64].lstrip().startswith(b"{")


def _file(form: Any) -> bytes | None:
    """The file of a multipart form; the part that says it has a file name."""
    found = _BOUNDARY.match(form) if isinstance(form, (bytes, bytearray)) else None
    if found is None:
        return None
    for part in bytes(form).split(b"--" + found[1]):
        head, gap, content = part.partition(_GAP)
        if gap and b"filename=" in head:
            return content.removesuffix(b"\r\n")
    return None
