"""The same for google-genai: batches of inline requests, and interactions that are fetched.

Shapes as google-genai 3.6 has them. A batch over a file is none of ours: its lines are uploaded by
another client, and its results read from a bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from otel_sealed.contract import FAILED, OK, REFUSED
from otel_sealed.wire import Exchange, as_json

_INVALID: Final = 3  # google.rpc.Code: INVALID_ARGUMENT
_SIGNED: Final = "ignature"  # of `thoughtSignature` and `signature`


def contents_asked(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """The inline requests of `batchGenerateContent`."""
    batch = _in(whole.request, "batch", "inputConfig", "requests", "requests")
    for entry in batch if isinstance(batch, list) else ():
        request = _in(entry, "request")
        if isinstance(request, dict):
            yield replace(
                whole,
                request=request,
                response=None,
                events=None,
                status=None,
                complete=True,
                sdk=None,
            )


def contents_answered(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """The inline responses of a batch that is fetched; one that runs still has none."""
    if not _signed(whole.response):
        return
    body = as_json(whole.response)
    model = _in(body, "metadata", "model")
    for entry in _responses(body):
        response, error = _in(entry, "response"), _in(entry, "error")
        refused = isinstance(error, dict)
        code = REFUSED if _in(error, "code") == _INVALID else FAILED
        if refused or isinstance(response, dict):
            yield replace(
                whole,
                request=None,
                response={"error": error} if refused else response,
                events=None,
                status=code if refused else OK,
                complete=True,
                sdk=None,
                model=model.removeprefix("models/") if isinstance(model, str) else None,
            )


def interaction_fetched(whole: Exchange, _path: str) -> Iterator[Exchange]:
    """An interaction that is fetched or cancelled; without a seal there is nothing to record."""
    if _signed(whole.events) or _signed(whole.response):
        yield replace(whole, request=None)


def _responses(body: Any) -> list[Any]:
    for where in (("metadata", "output"), ("response",)):
        found = _in(body, *where, "inlinedResponses", "inlinedResponses")
        if isinstance(found, list):
            return found
    return []


def _in(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _signed(body: Any) -> bool:
    """A cheap look, so that what is polled a hundred times is not parsed a hundred times."""
    if isinstance(body, (bytes, bytearray)):
        return _SIGNED.encode() in body
    return isinstance(body, dict) or (isinstance(body, str) and _SIGNED in body)
