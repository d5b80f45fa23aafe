"""Hooks at HTTP clients: turns of a model that no hook at an SDK accounts for.

Theory of operation. Each client is wrapped at the one method that has a whole logical request of
its kind, redirects included, whatever transport is below: `send` of httpx, httpx2 and requests,
`_request` of aiohttp, `urlopen` of urllib3 (its own retries included), `send` of botocore's session
and `stream` of lm15's transports (DSPy), `request` of `http.client`. There the request is whole and
the response is what it returns.

A request is looked at where its URL is one that sends turns (`routes.turn`) and nothing above
accounts for it in its context: a call of an SDK that is observed (`current.CURRENT`), or the hook
of another client that has it already, since clients are built on clients (requests on urllib3,
httpx on aiohttp, botocore on urllib3). Whatever is sent below it is not looked at again.

Under `instrument("http")` such a request is observed as a call of its own (`transport.py`); an
attempt that an application or a framework makes anew is another one, so that what a retry strips is
seen. Else, and at clients whose replies cannot be looked on (`http.client`), it is counted as
unobserved. Work that a client hands to a thread without its context is not below anything. gRPC,
WebSockets, other processes, and clients that are not listed are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from otel_sealed.instrument import transport
from otel_sealed.instrument.current import ASIDE, CURRENT, UNSEEN, leave
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.http import HttpSent, Plain, Url
from otel_sealed.instrument.routes import turn
from otel_sealed.instrument.runtime import Runtime, Sent
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.span import suppressed
from otel_sealed.instrument.transport import HttpCall

_POST: Final = "POST"


class Asked(NamedTuple):
    """What of a request says what it is. `request`: the object that an SDK built, if it is one.

    `sent` makes what is read of it once the call is over.
    """

    host: str
    path: str
    body: object
    sent: Callable[[], Sent]
    request: object = None


Reads = Callable[[Any, Any, Mapping[str, Any]], Asked | None]
"""Told instance, args and kwargs of the method, gives a POST, and None for anything else."""


@dataclass(frozen=True, slots=True)
class Client:
    """One HTTP client: its name in telemetry, where its methods are, how they are read.

    `methods`: class and method, and whether it is async. `replied`: tells a call of the response;
    None where that cannot be looked on. `light`: whether its module may be
    imported just to see if the methods are there.
    """

    name: str
    module: str
    methods: tuple[tuple[str, str, bool], ...]
    reads: Reads
    replied: transport.Replied | None = None
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
        begun = token = None
        try:
            begun = self._begins(owner, args, kwargs)
            if begun is not None:
                token = CURRENT.set(begun.call)
        except Exception:
            with shield("clients.request"):
                raise
        if begun is None:
            return wrapped(*args, **kwargs)
        try:
            response = wrapped(*args, **kwargs)
        except BaseException as error:
            with shield("clients.failed"):
                begun.failed(error)
            raise
        finally:
            with shield("clients.leave"):
                leave(token)
        with shield("clients.response"):
            begun.replied(response)
        return response

    def _async(
        self, wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        begun = None
        try:
            begun = self._begins(owner, args, kwargs)
        except Exception:
            with shield("clients.request"):
                raise
        made = wrapped(*args, **kwargs)
        return made if begun is None else _below(made, begun)

    def _begins(self, owner: Any, args: Any, kwargs: Mapping[str, Any]) -> Begun | None:
        """A turn of a model that is sent, below which nothing is to be looked at any more."""
        above = CURRENT.get()
        if above is None or (isinstance(above, Call) and not above.late and above.covers(None)):
            return None
        asked = self.client.reads(owner, args, kwargs)
        if asked is None:
            return None
        kind = turn(asked.host, asked.path, asked.body)
        if kind is None:
            return None
        if isinstance(above, Call) and above.covers(asked.request):
            return Begun()
        silenced = above is ASIDE or (above is UNSEEN and suppressed())
        if silenced or self.client.replied is None or not self._runtime.transport or not kind.known:
            self._runtime.emitter.unobserved(self.client.name, asked.host, suppressed=silenced)
            return Begun()
        call = HttpCall(self._runtime, kind, self.client.name, asked.host)
        call.sending(asked.sent())
        return Begun(call, self.client.replied)


class Begun(NamedTuple):
    """What began at a hook: a call, or a request that is not looked at any more."""

    call: HttpCall | None = None
    tell: transport.Replied | None = None

    def failed(self, error: BaseException) -> None:
        """The client raised."""
        if self.call is not None:
            self.call.failed(error)

    def replied(self, response: Any) -> None:
        """The client returned a response."""
        if self.call is None or self.tell is None:
            return
        try:
            self.tell(self.call, response)
        finally:
            self.call.returned()


async def _below(made: Any, begun: Begun) -> Any:
    token = None
    with shield("clients.enter"):
        token = CURRENT.set(begun.call)
    try:
        response = await made
    except BaseException as error:
        with shield("clients.failed"):
            begun.failed(error)
        raise
    finally:
        with shield("clients.leave"):
            leave(token)
    with shield("clients.response"):
        begun.replied(response)
    return response


# ------------------------------------------------------------------------- what a request says


def _argument(args: Any, kwargs: Mapping[str, Any], at: int, name: str) -> Any:
    return args[at] if len(args) > at else kwargs.get(name)


def _parsed(url: object, body: object, headers: Any, host: str = "") -> Asked:
    """A URL, or its path at `host`; one that cannot be parsed leads nowhere, as its client says."""
    try:
        at = Url.of(url if isinstance(url, str) else "", host)
    except ValueError:
        at, body = Url("", ""), None
    return Asked(at.host, at.path, body, lambda: HttpSent(Plain(at, headers, body)))


def _httpx(_: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    request = _argument(args, kwargs, 0, "request")
    if request.method != _POST:
        return None
    url, body = request.url, getattr(request, "_content", None)
    return Asked(url.host, url.path, body, lambda: HttpSent(request), request)


def _aiohttp(session: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    method = _argument(args, kwargs, 0, "method")
    if not isinstance(method, str) or method.upper() != _POST:
        return None
    body = kwargs.get("json")
    body = kwargs.get("data") if body is None else body
    url, base = str(_argument(args, kwargs, 1, "str_or_url")), getattr(session, "_base_url", None)
    if base is not None and not urlsplit(url).hostname:
        url = url if url.startswith("/") else f"{base.path.rstrip('/')}/{url}"
        url = f"{base.scheme}://{base.authority}{url}"
    headers = {**dict(session.headers or {}), **dict(kwargs.get("headers") or {})}
    return _parsed(url, body, headers)


def _prepared(_: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    """A prepared request of requests or of botocore, or one of lm15."""
    request = _argument(args, kwargs, 0, "request")
    if request.method != _POST:
        return None
    return _parsed(request.url, request.body, request.headers)


def _urllib3(pool: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    if _argument(args, kwargs, 0, "method") != _POST:
        return None
    url, body = _argument(args, kwargs, 1, "url"), _argument(args, kwargs, 2, "body")
    headers = _argument(args, kwargs, 3, "headers") or pool.headers
    return _parsed(url, body, headers, pool.host)


def _stdlib(connection: Any, args: Any, kwargs: Mapping[str, Any]) -> Asked | None:
    if _argument(args, kwargs, 0, "method") != _POST:
        return None
    url, body = _argument(args, kwargs, 1, "url"), _argument(args, kwargs, 2, "body")
    host = getattr(connection, "_tunnel_host", None) or connection.host
    return _parsed(url, body, _argument(args, kwargs, 3, "headers"), host)


def _lm15(module: str) -> tuple[Client, ...]:
    methods = (
        ("_sync", ("StdlibTransport", "stream", False)),
        ("_async", ("StdlibAsyncTransport", "_do_stream", True)),
    )
    return tuple(
        Client(
            "lm15", f"{module}.transports.{name}", (method,), _prepared, transport.lm15, light=False
        )
        for name, method in methods
    )


def _client(name: str, module: str, method: tuple[str, str, bool], *of: Any) -> Client:
    return Client(name, module, (method,), *of)


_SEND: Final = (("Client", "send", False), ("AsyncClient", "send", True))
_REQUESTS: Final = ("Session", "send", False)
_URLLIB3: Final = ("HTTPConnectionPool", "urlopen", False)
_BOTOCORE: Final = ("URLLib3Session", "send", False)
CLIENTS: Final = (
    Client("httpx", "httpx._client", _SEND, _httpx, transport.httpx),
    Client("httpx2", "httpx2._client", _SEND, _httpx, transport.httpx),
    _client(
        "aiohttp",
        "aiohttp.client",
        ("ClientSession", "_request", True),
        _aiohttp,
        transport.aiohttp,
    ),
    _client("requests", "requests.sessions", _REQUESTS, _prepared, transport.requests),
    _client("urllib3", "urllib3.connectionpool", _URLLIB3, _urllib3, transport.urllib3),
    _client("botocore", "botocore.httpsession", _BOTOCORE, _prepared, transport.botocore),
    _client("http.client", "http.client", ("HTTPConnection", "request", False), _stdlib),
    *_lm15("dspy._vendor.lm15"),
    *_lm15("lm15"),
)
"""Every client there is a hook for."""
