"""Adapter for google-genai: `_api_client.BaseApiClient`, its four request methods.

Every turn of `models`, `chats` and automatic function calling goes through them, one call a turn.
`request_dict` is the wire JSON by reference: the SDK serialises exactly it, below, after dropping
its own `_url` and `_query` from it. There is no lower place that has the bytes: the HTTP stack
differs by release, installed packages and credentials. Results carry the reply as JSON text (as
parsed JSON before 1.30); in a stream each chunk does.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from otel_sealed.contract import OK, Api, snake
from otel_sealed.instrument import interactions
from otel_sealed.instrument.body import Kept
from otel_sealed.instrument.current import enter, leave
from otel_sealed.instrument.entries_google import contents_answered, contents_asked
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.parts import Parts
from otel_sealed.instrument.runtime import Kind, Runtime, Where
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.span import stands_aside
from otel_sealed.instrument.tee import Reading, observed, observed_async
from otel_sealed.model import Role
from otel_sealed.providers import dialects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from otel_sealed.contract import Dialect

_TURN: Final = re.compile(r"(?:^|/)([^/:?]+):(?:g|streamG)enerateContent(?:\?|$)")
_KIND: Final = Kind(Api.GENERATE_CONTENT, "generate_content", provider="google")
# Inline batches: their requests go out in one, their replies come with the batch that is fetched.
_BATCHES: Final = (
    (
        "post",
        re.compile(r"(?:^|/)([^/:?]+):batchGenerateContent(?:\?|$)"),
        replace(_KIND, name="batch_request", transport="batch", parts=contents_asked),
    ),
    (
        "get",
        re.compile(r"(?:^|/)batches/()[^/:?]+(?:\?|$)"),
        replace(_KIND, name="batch_result", transport="batch", parts=contents_answered),
    ),
)
_LONGEST_PATH: Final = 4096
"""No longer path names a model: 256 of them are remembered, and page tokens have any length."""
_NAMES: Final = ("http_method", "path", "request_dict")


class DictSent:
    """A request of google-genai, read once the call is over."""

    def __init__(self, client: Any, model: str, request: dict[str, Any]) -> None:
        """All by reference; nothing of it is ever changed."""
        self._client = client
        self._model = model
        self._request = request

    def body(self) -> Any:
        """The wire-shaped JSON."""
        return self._request

    def where(self) -> Where:
        """The base URL of the client, and whether it is one of Vertex; the path has the model."""
        options = self._client._http_options
        base = options.get("base_url") if isinstance(options, dict) else options.base_url
        url = urlsplit(str(base or ""))
        cloud = "vertex" if self._client.vertexai else None
        return Where(url.hostname or "", url.port, self._model or None, cloud)

    def credential(self) -> str | None:
        """The project on Vertex, else the API key."""
        project = self._client.project if self._client.vertexai else None
        found = project or self._client.api_key
        return str(found) if found else None

    def betas(self) -> tuple[str, ...]:
        """Gemini has none."""
        return ()


class GenAI:
    """The adapter under one runtime."""

    module: Final = "google.genai._api_client"

    def __init__(self, runtime: Runtime) -> None:
        """All calls it sees are observed under `runtime`."""
        self._runtime = runtime

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap, by name."""
        return (
            Seam("BaseApiClient", "request", self._request),
            Seam("BaseApiClient", "async_request", self._async_request),
            Seam("BaseApiClient", "request_streamed", self._streamed),
            Seam("BaseApiClient", "async_request_streamed", self._async_streamed),
        )

    def vanished(self) -> tuple[str, ...]:
        """The seams of Interactions, if this release hides them somewhere else."""
        return interactions.vanished()

    def _request(
        self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        call = token = None
        try:
            call = self._begin(client, args, kwargs)
            token = enter(call)
        except Exception:
            with shield("genai.request"):
                raise
        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            if call is not None:
                with shield("genai.failed"):
                    _failed(call, error)
            raise
        finally:
            with shield("genai.leave"):
                leave(token)
        if call is not None:
            with shield("genai.returned"):
                _returned(call, result)
        return result

    async def _async_request(
        self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        call = token = None
        try:
            call = self._begin(client, args, kwargs)
            token = enter(call)
        except Exception:
            with shield("genai.request"):
                raise
        try:
            result = await wrapped(*args, **kwargs)
        except BaseException as error:
            if call is not None:
                with shield("genai.failed"):
                    _failed(call, error)
            raise
        finally:
            with shield("genai.leave"):
                leave(token)
        if call is not None:
            with shield("genai.returned"):
                _returned(call, result)
        return result

    def _streamed(
        self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        """The real one is a generator function: nothing is sent before the first `next`."""
        inner = wrapped(*args, **kwargs)
        with shield("genai.request_streamed"):
            if hasattr(inner, "throw") and _turn(args, kwargs) and not stands_aside():
                return self._drive(inner, client, args, kwargs)
        return inner

    def _drive(self, inner: Any, client: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        call, kept = None, Kept()
        with shield("genai.request_streamed"):
            call = self._begin(client, args, kwargs)
            if call is not None:
                call.streaming(OK, kept)
                call.returned()
        if call is None:
            return (yield from inner)
        return (yield from observed(inner, Reading(call, kept), _broken))

    async def _async_streamed(
        self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        call = token = None
        try:
            call = self._begin(client, args, kwargs)
            token = enter(call)
        except Exception:
            with shield("genai.request"):
                raise
        try:
            inner = await wrapped(*args, **kwargs)
        except BaseException as error:
            if call is not None:
                with shield("genai.failed"):
                    _failed(call, error)
            raise
        finally:
            with shield("genai.leave"):
                leave(token)
        if call is not None:
            with shield("genai.async_request_streamed"):
                if not hasattr(inner, "athrow"):
                    call.returned()
                    return inner
                kept = Kept()
                call.streaming(OK, kept)
                call.returned()
                return observed_async(inner, Reading(call, kept), _broken)
        return inner

    def _begin(self, client: Any, args: Any, kwargs: Mapping[str, Any]) -> Call | None:
        turn = _turn(args, kwargs)
        if turn is None or stands_aside():
            return None
        kind, model, request = turn
        made = Call if kind.parts is None else Parts
        call = made(self._runtime, kind, model)
        call.sending(DictSent(client, model, request))
        return call


@cache
def _kind() -> Kind:
    """The kind of all calls. Up to 1.19 a part has no field for its signature and loses it."""
    part = getattr(sys.modules.get("google.genai.types"), "Part", None)
    fields = getattr(part, "model_fields", None)
    if fields is None:
        return _KIND
    return replace(_KIND, lacks=lacking(dialects()[Api.GENERATE_CONTENT], fields))


def lacking(dialect: Dialect, fields: Collection[str]) -> frozenset[str]:
    """The sealed artifacts that an object with these fields alone cannot hold."""
    sealed = (f for c in dialect.carriers.values() for f in c.fields if f.role is Role.SEAL)
    return frozenset(
        one.artifact for one in sealed if not any(snake(key) in fields for key in one.names())
    )


def _turn(args: Any, kwargs: Mapping[str, Any]) -> tuple[Kind, str, dict[str, Any]] | None:
    """(kind, model, wire JSON) of a call that is a turn of a model, or a batch of some."""
    given = {**dict(zip(_NAMES, args, strict=False)), **kwargs} if args else kwargs
    request = given["request_dict"]
    path = str(given["path"])
    if len(path) > _LONGEST_PATH:
        return None
    found = _asked(str(given["http_method"]).lower(), path)
    if found is None or not isinstance(request, dict):
        return None
    kind, model = found
    return kind or _kind(), model, request


@lru_cache(maxsize=256)
def _asked(method: str, path: str) -> tuple[Kind | None, str] | None:
    """(kind, model) of what is observed, by method and path; no kind for what one turn is."""
    found = _TURN.search(path) if method == "post" else None
    if found is not None:
        return None, found[1]
    for asked, pattern, kind in _BATCHES:
        found = pattern.search(path) if method == asked else None
        if found is not None:
            return kind, found[1]
    return None


def _returned(call: Call, result: Any) -> None:
    call.answered(OK, getattr(result, "body", result))
    call.returned()


def _failed(call: Call, error: BaseException) -> None:
    code = getattr(error, "code", None)
    if isinstance(code, int):
        call.answered(code, _details(error))
    call.failed(error)


def _broken(call: Call, kept: Kept, error: BaseException) -> None:
    """A stream raised: at its first step that is a refusal, later it may bring an error event."""
    if not kept.chunks:
        _failed(call, error)
        return
    details = _details(error)
    if details is not None:
        kept.keep(json.dumps(details))
    call.body_over(kept, whole=False, error=error)


def _details(error: BaseException) -> Any:
    """The body of an `errors.APIError`, parsed by the SDK."""
    details = getattr(error, "details", None)
    return details if isinstance(details, (dict, list)) else None
