"""Hooks at HTTP clients: a turn of a model that no hook at an SDK accounts for is noticed.

Theory of operation. Each client is wrapped at the one method that has a whole logical request of
its kind, redirects included, whatever transport is below: `send` of httpx, httpx2 and requests,
`_request` of aiohttp, `urlopen` of urllib3 (its own retries included), `send` of botocore's session
and `stream` of lm15's transports (DSPy), `request` of `http.client`. There the request is whole and
the response is what it returns, so that an exchange can be read there, too.

A request is noticed where its URL is one that sends turns (`routes.sends_turn`) and nothing above
accounts for it in its context: a call of an SDK that is observed (`current.CURRENT`), or the hook
of another client that noticed it already, since clients are built on clients (requests on urllib3,
httpx on aiohttp, botocore on urllib3). Whatever is sent below it is not noticed again.

What is counted are requests: an attempt that an application or a framework makes anew counts anew.
Nothing of a request is changed, kept or consumed, and of its body no more is looked at than whether
it has one key, and that only where the URL leaves doubt. Work that a client hands to a thread
without its context is not below anything. gRPC, WebSockets, other processes, and clients that are
not listed are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from otel_sealed.instrument.current import ASIDE, CURRENT, UNSEEN, leave
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.routes import sends_turn
from otel_sealed.instrument.runtime import Runtime
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.span import suppressed

_POST: Final = "POST"


class Asked(NamedTuple):
    """What of a request says what it is. `request`: the object that an SDK built, if it is one."""

    host: str
    path: str
    body: object
    request: object = None


Reads = Callable[[Any, Any, Mapping[str, Any]], Asked | None]
"""Told instance, args and kwargs of the method, gives a POST, and None for anything else."""


@dataclass(frozen=True, slots=True)
class Client:
    """One HTTP client: its name in telemetry, where its methods are, how they are read.

    `methods`: class and method, and whether it is async. `light`: whether its module may be
    imported just to see if the methods are there.
    """

    name: str
    module: str
    methods: tuple[tuple[str, str, bool], ...]
    reads: Reads
    light: bool = True


class HttpHook:
    """The adapter for one client under one runtime."""

    def __init__(self, client: Client, runtime: Runtime) -> None:
        """What it notices is told to the emitter of `runtime`."""
        self.client = client
        self._runtime = runtime

    @property
    def module(self) -> str:
        """The module whose import makes the methods."""
        return self.client.module

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap, by name."""
        return tuple(
            Seam(owner, name, self._async if is_async else self._sync)
            for owner, name, is_async in self.client.methods
        )

    def vanished(self) -> tuple[str, ...]:
        """Nothing: a client is one module."""
        return ()

    def _sync(
        self, wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        token = None
        try:
            if self._begins(owner, args, kwargs):
                token = CURRENT.set(None)
        except Exception:
            with shield("clients.request"):
                raise
        if token is None:
            return wrapped(*args, **kwargs)
        try:
            return wrapped(*args, **kwargs)
        finally:
            with shield("clients.leave"):
                leave(token)

    def _async(
        self, wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        begins = False
        try:
            begins = self._begins(owner, args, kwargs)
        except Exception:
            with shield("clients.request"):
                raise
        made = wrapped(*args, **kwargs)
        return _below(made) if begins else made

    def _begins(self, owner: Any, args: Any, kwargs: Mapping[str, Any]) -> bool:
        """Whether a turn of a model is sent, and nothing below is to be noticed any more."""
        above = CURRENT.get()
        if above is None or (isinstance(above, Call) and not above.late and above.covers(None)):
            return False
        asked = self.client.reads(owner, args, kwargs)
        if asked is None or not sends_turn(asked.host, asked.path, asked.body):
            return False
        if not (isinstance(above, Call) and above.covers(asked.request)):
            silenced = above is ASIDE or (above is UNSEEN and suppressed())
            self._runtime.emitter.unobserved(self.client.name, asked.host, suppressed=silenced)
        return True


async def _below(made: Any) -> Any:
    token = None
    with shield("clients.enter"):
        token = CURRENT.set(None)
    try:
        return await made
    finally:
        with shield("clients.leave"):
            leave(token)


# ------------------------------------------------------------------------- what a request says


def _argument(args: Any, kwargs: Mapping[str, Any], at: int, name: str) -> Any:
    return args[at] if len(args) > at else kwargs.get(name)


def _parsed(url: object, body: object) -> Asked:
    """A URL, or its path; one that cannot be parsed leads nowhere, as the client will say."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        return Asked(parts.hostname or "", parts.path, body)
    except ValueError:
        return Asked("", "", None)


def _httpx(_: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    request = _argument(args, kwargs, 0, "request")
    if request.method != _POST:
        return None
    url = request.url
    return Asked(url.host, url.path, getattr(request, "_content", None), request)


def _aiohttp(session: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    method = _argument(args, kwargs, 0, "method")
    if not isinstance(method, str) or method.upper() != _POST:
        return None
    body = kwargs.get("json")
    body = kwargs.get("data") if body is None else body
    asked = _parsed(str(_argument(args, kwargs, 1, "str_or_url")), body)
    base = getattr(session, "_base_url", None)
    if asked.host or base is None:
        return asked
    path = asked.path if asked.path.startswith("/") else f"{base.path.rstrip('/')}/{asked.path}"
    return Asked(base.host or "", path, body)


def _prepared(_: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    """A prepared request of requests or of botocore, or one of lm15."""
    request = _argument(args, kwargs, 0, "request")
    return _parsed(request.url, request.body) if request.method == _POST else None


def _urllib3(pool: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    if _argument(args, kwargs, 0, "method") != _POST:
        return None
    url, body = _argument(args, kwargs, 1, "url"), _argument(args, kwargs, 2, "body")
    asked = _parsed(url, body)
    return asked if asked.host else Asked(pool.host, asked.path, body)


def _stdlib(connection: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    if _argument(args, kwargs, 0, "method") != _POST:
        return None
    url, body = _argument(args, kwargs, 1, "url"), _argument(args, kwargs, 2, "body")
    asked = _parsed(url, body)
    host = getattr(connection, "_tunnel_host", None) or connection.host
    return asked if asked.host else Asked(host, asked.path, body)


def _lm15(module: str) -> tuple[Client, ...]:
    methods = (
        ("_sync", ("StdlibTransport", "stream", False)),
        ("_async", ("StdlibAsyncTransport", "_do_stream", True)),
    )
    return tuple(
        Client("lm15", f"{module}.transports.{name}", (method,), _prepared, light=False)
        for name, method in methods
    )


_SEND: Final = (("Client", "send", False), ("AsyncClient", "send", True))
CLIENTS: Final = (
    Client("httpx", "httpx._client", _SEND, _httpx),
    Client("httpx2", "httpx2._client", _SEND, _httpx),
    Client("aiohttp", "aiohttp.client", (("ClientSession", "_request", True),), _aiohttp),
    Client("requests", "requests.sessions", (("Session", "send", False),), _prepared),
    Client(
        "urllib3", "urllib3.connectionpool", (("HTTPConnectionPool", "urlopen", False),), _urllib3
    ),
    Client("botocore", "botocore.httpsession", (("URLLib3Session", "send", False),), _prepared),
    Client("http.client", "http.client", (("HTTPConnection", "request", False),), _stdlib),
    *_lm15("dspy._vendor.lm15"),
    *_lm15("lm15"),
)
"""Every client there is a hook for."""
