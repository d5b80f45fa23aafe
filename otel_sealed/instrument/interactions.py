"""Adapter for the Interactions API of google-genai, which has a client of its own.

From 2.34 on that is `_gaos.basesdk`: `do_request` is one logical call, retries included. It is
given the HTTP request and returns the HTTP response, a refusal too, unread where it is a stream.
From 1.55 to 2.0 it was a client of the Stainless generator, for which there is an adapter already.

An interaction that was made in the background, or by another process, comes in when it is fetched
or cancelled; such a call replays nothing, and one that brings no seal, as while it is waited for,
says nothing.
"""

from __future__ import annotations

import importlib.util
import re
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Final

from otel_sealed.instrument.current import enter, leave
from otel_sealed.instrument.entries_google import interaction_fetched
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.http import HttpSent, responded
from otel_sealed.instrument.parts import Parts
from otel_sealed.instrument.runtime import Kind, Runtime
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.span import stands_aside
from otel_sealed.instrument.stainless import Stainless, Turns, kind_of
from otel_sealed.wire import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INTERACTIONS: Final[Turns] = (
    (
        "post",
        re.compile(r"(?:^|/)interactions/?$"),
        Kind(Api.INTERACTIONS, "chat", provider="google"),
    ),
    (
        "get",
        re.compile(r"(?:^|/)interactions/[^/]+/?$"),
        Kind(Api.INTERACTIONS, "retrieve", "retrieve", "google", parts=interaction_fetched),
    ),
    (
        "post",
        re.compile(r"(?:^|/)interactions/[^/]+/cancel/?$"),
        Kind(Api.INTERACTIONS, "cancel", "cancel", "google", parts=interaction_fetched),
    ),
)
_PACKAGE: Final = "google.genai"
_GENERATED: Final = f"{_PACKAGE}._gaos.basesdk"
_STAINLESS: Final = f"{_PACKAGE}._interactions"


class Interactions:
    """The adapter for the generated client under one runtime."""

    module: Final = _GENERATED

    def __init__(self, runtime: Runtime) -> None:
        """All calls it sees are observed under `runtime`."""
        self._runtime = runtime

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap, by name."""
        return (
            Seam("BaseSDK", "do_request", self._request),
            Seam("AsyncBaseSDK", "do_request_async", self._async_request),
        )

    def vanished(self) -> tuple[str, ...]:
        """Nothing of its own; `vanished` is asked by the adapter whose module is always there."""
        return ()

    def _request(
        self, wrapped: Callable[..., Any], _sdk: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        call = token = None
        with shield("interactions.request"):
            call = self._begin(args, kwargs)
            token = enter(call)
        try:
            response = wrapped(*args, **kwargs)
        except BaseException as error:
            if call is not None:
                with shield("interactions.failed"):
                    call.failed(error)
            raise
        finally:
            with shield("interactions.leave"):
                leave(token)
        if call is not None:
            with shield("interactions.returned"):
                _returned(call, response)
        return response

    async def _async_request(
        self, wrapped: Callable[..., Any], _sdk: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        call = token = None
        with shield("interactions.request"):
            call = self._begin(args, kwargs)
            token = enter(call)
        try:
            response = await wrapped(*args, **kwargs)
        except BaseException as error:
            if call is not None:
                with shield("interactions.failed"):
                    call.failed(error)
            raise
        finally:
            with shield("interactions.leave"):
                leave(token)
        if call is not None:
            with shield("interactions.returned"):
                _returned(call, response)
        return response

    def _begin(self, args: Any, kwargs: Mapping[str, Any]) -> Call | None:
        request = kwargs["request"] if "request" in kwargs else args[1]
        kind = kind_of(INTERACTIONS, request.method, request.url.path)
        if kind is None or stands_aside():
            return None
        call = (Call if kind.parts is None else Parts)(self._runtime, kind)
        call.sending(HttpSent(request))
        return call


def legacy_interactions(runtime: Runtime) -> Stainless:
    """The adapter for the client of google-genai 1.55 to 2.0."""
    return Stainless(_STAINLESS, INTERACTIONS, runtime)


def vanished() -> tuple[str, ...]:
    """The seams of Interactions, where this release offers it and has none of the two clients."""
    if importlib.util.find_spec(f"{_PACKAGE}.interactions") is None:
        return ()
    if _there("_gaos", "basesdk") or _there("_interactions", "_base_client"):
        return ()
    return (f"{_GENERATED}.BaseSDK.do_request", f"{_GENERATED}.AsyncBaseSDK.do_request_async")


def _there(package: str, module: str) -> bool:
    """Whether the package has the module; neither is imported, for it takes its time."""
    found = importlib.util.find_spec(f"{_PACKAGE}.{package}")
    where = found.submodule_search_locations if found else None
    name = f"{_PACKAGE}.{package}.{module}"
    return where is not None and PathFinder.find_spec(name, list(where)) is not None


def _returned(call: Call, response: Any) -> None:
    """The response of the last attempt; a refusal is one, too."""
    try:
        responded(call, response)
    finally:
        call.returned()
