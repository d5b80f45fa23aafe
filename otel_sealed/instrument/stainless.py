"""Adapter for SDKs of the Stainless generator: anthropic, openai, and their subclasses for clouds.

Seams, all in `<package>._base_client`, the same in every release of 18 months
(docs/sdk-surface.md#anthropic-and-openai):

* `{Sync,Async}APIClient.request`: one logical call, whatever method, helper or raw form made it;
* `BaseClient._build_request`: the HTTP request of each attempt, a reference only;
* `{Sync,Async}APIClient._process_response`: the HTTP response of the attempt that succeeded, before
  anything is parsed; an unread body gets a tee, whoever will read it;
* `BaseClient._make_status_error_from_response`: the response of a refusal;
* `{Sync,Async}APIClient.post`: what the methods of an application call, before any tracer that
  wraps `request`; and `_copy_and_prepare`, where there is one: after such a tracer, before the SDK
  opens a span of its own. They say whose suppression it is (`span.py`).

A context variable joins the others to the first. What was sent is read from the HTTP request
and what came from the HTTP response, never from options or models: those are not the wire.

Another instrumentation may have kept the `request` it found before us, on a subclass of the client
(OpenInference, logfire) or on one client, and calls it past ours. The other seams are looked up at
each call and cannot be passed by, so a turn that reaches `_build_request` unseen begins there, and
ends where its response is processed. Only a failure without a response is then not told.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from otel_sealed.instrument.current import ASIDE, CURRENT, UNSEEN, leave
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.http import HttpSent, responded, whole
from otel_sealed.instrument.parts import Parts, sent_of
from otel_sealed.instrument.runtime import Kind, Runtime
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.span import ENTRY, Entry, entered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_PATHS: Final = 256
_PREPARES: Final = "_copy_and_prepare"

Turns = tuple[tuple[str, re.Pattern[str], Kind], ...]
"""What is observed, by method and path."""


class Stainless:
    """The adapter for one such SDK under one runtime."""

    def __init__(
        self,
        package: str,
        turns: Turns,
        runtime: Runtime,
        vanished: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """`turns` tells by URL path which calls are turns of a model.

        `vanished` gives the seams of adapters beside it whose modules this release has not.
        """
        self._vanished = vanished
        self._package = package
        self._where = f"{package}.request"
        self._turns = turns
        self._runtime = runtime
        self._kinds: dict[tuple[Any, str], Kind | None] = {}

    @property
    def module(self) -> str:
        """The module whose import makes the seams."""
        return f"{self._package}._base_client"

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap, by name."""
        return (
            Seam("SyncAPIClient", "request", self._request),
            Seam("AsyncAPIClient", "request", self._async_request),
            Seam("BaseClient", "_build_request", self._build_request),
            Seam("BaseClient", "_make_status_error_from_response", _make_status_error),
            Seam("SyncAPIClient", "_process_response", _process_response),
            Seam("AsyncAPIClient", "_process_response", _process_response),
            Seam("SyncAPIClient", "post", _post),
            Seam("AsyncAPIClient", "post", _async_post),
            *(
                Seam(owner, _PREPARES, _prepare, f"{owner}.{_PREPARES}")
                for owner in ("SyncAPIClient", "AsyncAPIClient")
            ),
        )

    def vanished(self) -> tuple[str, ...]:
        """The seams of this SDK that are in other modules, if this release hides them elsewhere."""
        return self._vanished()

    def _request(
        self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        call = token = None
        try:
            call, current = self._begin(client, args, kwargs)
            token = CURRENT.set(current)
        except Exception:
            with shield(self._where):
                raise
        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            if call is not None:
                with shield("stainless.failed"):
                    call.failed(error)
            raise
        finally:
            try:
                leave(token)
            except Exception:
                with shield("stainless.reset"):
                    raise
        if call is not None:
            try:
                call.returned(result)
            except Exception:
                with shield("stainless.returned"):
                    raise
        return result

    async def _async_request(
        self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        call = token = None
        try:
            call, current = self._begin(client, args, kwargs)
            token = CURRENT.set(current)
        except Exception:
            with shield(self._where):
                raise
        try:
            result = await wrapped(*args, **kwargs)
        except BaseException as error:
            if call is not None:
                with shield("stainless.failed"):
                    call.failed(error)
            raise
        finally:
            try:
                leave(token)
            except Exception:
                with shield("stainless.reset"):
                    raise
        if call is not None:
            try:
                call.returned(result)
            except Exception:
                with shield("stainless.returned"):
                    raise
        return result

    def _begin(
        self, client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> tuple[Call | None, object]:
        """A call to observe, if it is one, and what is current while it is made."""
        options = kwargs["options"] if "options" in kwargs else args[1]
        return self._begun(client, options)

    def _begun(self, client: Any, options: Any) -> tuple[Call | None, object]:
        kind = self._kind(options)
        if kind is None:
            return None, None
        observed, outer = entered(client)
        if not observed:
            return None, ASIDE
        call = self._call(kind, options)
        if outer is not None:
            call.outer = outer
        return call, call

    def _call(self, kind: Kind, options: Any) -> Call:
        made = Call if kind.parts is None else Parts
        model = _field(options, "model")
        return made(self._runtime, kind, model if isinstance(model, str) else "")

    def _build_request(
        self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        request = wrapped(*args, **kwargs)
        try:
            call = CURRENT.get()
            if call is UNSEEN or (isinstance(call, Call) and call.late):
                call = self._late(call, client, args, kwargs)
            if isinstance(call, Call):
                sent = HttpSent(request)
                call.sending(sent if type(call) is Call else sent_of(sent, request, call))
        except Exception:
            with shield("stainless.build_request"):
                raise
        return request

    def _late(
        self, before: object, client: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Call | None:
        """The call of an attempt whose `request` did not come by us; a retry goes on with it."""
        if isinstance(before, Call):
            if kwargs.get("retries_taken"):
                return before
            before.settle()  # it had no response, and nobody said so
        options = kwargs["options"] if "options" in kwargs else args[0]
        call, _ = self._begun(client, options)
        if call is None:
            if isinstance(before, Call):
                CURRENT.set(UNSEEN)
            return None
        call.late = True
        CURRENT.set(call)
        return call

    def _kind(self, options: Any) -> Kind | None:
        asked = options.method, str(options.url).partition("?")[0]
        if asked in self._kinds:
            kind = self._kinds[asked]
        else:
            if len(self._kinds) >= _MOST_PATHS:  # paths may hold ids
                self._kinds.clear()
            kind = self._kinds[asked] = kind_of(self._turns, *asked)
        if kind is not None and kind.purpose and kind.purpose != _field(options, "purpose"):
            return None
        return kind


def kind_of(turns: Turns, method: Any, path: str) -> Kind | None:
    """What sort of call that is, None for one that is not observed."""
    name = str(method).lower()
    return next((kind for m, pattern, kind in turns if m == name and pattern.search(path)), None)


def _field(options: Any, name: str) -> Any:
    """One look-up; nothing is walked, since a walk would use generators up."""
    data = options.json_data
    return data.get(name) if isinstance(data, dict) else None


def _post(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    token = None
    try:
        token = ENTRY.set(Entry(client))
    except Exception:
        with shield("stainless.post"):
            raise
    try:
        return wrapped(*args, **kwargs)
    finally:
        try:
            leave(token, ENTRY)
        except Exception:
            with shield("stainless.post"):
                raise


async def _async_post(
    wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]
) -> Any:
    token = None
    with shield("stainless.post"):
        token = ENTRY.set(Entry(client))
    try:
        return await wrapped(*args, **kwargs)
    finally:
        with shield("stainless.post"):
            leave(token, ENTRY)


def _prepare(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """Sync and async alike: the span is looked at before the real one starts."""
    try:
        entry = ENTRY.get()
        if entry is not None and entry.client is client:
            entry.span = trace.get_current_span()
    except Exception:
        with shield("stainless.prepare"):
            raise
    return wrapped(*args, **kwargs)


def _make_status_error(
    wrapped: Callable[..., Any], _client: Any, args: Any, kwargs: Mapping[str, Any]
) -> Any:
    with shield("stainless.refused"):
        call = CURRENT.get()
        if isinstance(call, Call):
            whole(call, kwargs["response"] if "response" in kwargs else args[0])
    error = wrapped(*args, **kwargs)
    with shield("stainless.refused"):
        call = CURRENT.get()
        if isinstance(call, Call) and call.late:
            CURRENT.set(UNSEEN)
            call.failed(error)
    return error


def _process_response(
    wrapped: Callable[..., Any], _client: Any, args: Any, kwargs: Mapping[str, Any]
) -> Any:
    """Sync and async alike: what is ours is done before the real one starts."""
    try:
        call = CURRENT.get()
        if isinstance(call, Call):
            _responded(call, kwargs["response"])
    except Exception:
        with shield("stainless.response"):
            raise
    return wrapped(*args, **kwargs)


def _responded(call: Call, response: Any) -> None:
    try:
        responded(call, response)
    finally:
        if call.late:
            CURRENT.set(UNSEEN)
            call.returned()
