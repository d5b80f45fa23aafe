"""Adapter for the Responses API over a WebSocket: `client.responses.connect()` of the openai SDK.

No HTTP request is made there, so none of the other seams sees it. A connection of the SDK is given
one of the `websockets` package, which has the wire in both directions, whatever of the SDK uses it
(`send`, `response.create`, lanes of a session, `recv`, iteration). Its `send`, `recv` and `close`
are shadowed on that one object: a message that asks for a response begins a call, and the events
that answer it end it. Requests of one lane (`stream_id`) are answered in their order, those of
others in between. A response that nobody asked for is the successor of a steered one.

A connection that was open before we came is not looked at.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from inspect import iscoroutinefunction
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import urlsplit

from otel_sealed.contract import OK, REFUSED
from otel_sealed.instrument import finalizing
from otel_sealed.instrument.body import Kept
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.http import HttpSent
from otel_sealed.instrument.runtime import Kind, Runtime, Where
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.span import stands_aside
from otel_sealed.instrument.state import passing
from otel_sealed.wire import Api
from otel_sealed.wire.parse import as_text

_MODULE: Final = "openai.resources.responses.responses"
_KIND: Final = Kind(Api.RESPONSES, "chat", transport="websocket")
_CREATE: Final = '"response.create"'
# In JSON, quotes inside of a text are escaped: what looks like a type is one.
_BOUNDARY: Final = re.compile(
    rb'"type": ?"(?:response\.(?:created|completed|failed|incomplete)|error)"'
)
_MODEL: Final = re.compile(r'"model": ?"([^"\\]{1,128})"')
_LANE: Final = re.compile(rb'"stream_id": ?"([^"\\]{1,256})"')
_CLOSING: Final = frozenset(
    {"response.completed", "response.failed", "response.incomplete", "error"}
)


class SocketSent(HttpSent):
    """A message that asks for a response, on the connection whose handshake is known."""

    def __init__(self, handshake: Any, data: Any) -> None:
        """`handshake` is the request the connection was opened with; `data` text or bytes."""
        at = urlsplit(f"//{handshake.headers.get('Host', '')}{handshake.path}")
        url = SimpleNamespace(host=at.hostname or "", port=at.port, path=at.path, query=b"")
        super().__init__(SimpleNamespace(url=url, headers=handshake.headers))
        self._data = data

    def body(self) -> Any:
        """The message as bytes."""
        data = self._data
        return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data

    def where(self) -> Where:
        """Where the connection was opened to, and the model that the message asks for."""
        found = _MODEL.search(self._data) if isinstance(self._data, str) else None
        return super().where()._replace(model=found[1] if found else None)


class Unasked(SocketSent):
    """No message: the response succeeds one that was steered."""

    def body(self) -> Any:
        """Nothing was sent."""
        return None


class Sockets:
    """The adapter under one runtime."""

    def __init__(self, runtime: Runtime, module: str = _MODULE) -> None:
        """All calls it sees are observed under `runtime`; `module` has the connections."""
        self.module = module
        self._runtime = runtime

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap, by name; reconnecting came later than connecting."""
        again = "Connection._reconnect"
        return (
            Seam("ResponsesConnection", "__init__", self._opened, "Responses.connect"),
            Seam("AsyncResponsesConnection", "__init__", self._opened, "AsyncResponses.connect"),
            Seam(
                "ResponsesConnectionManager",
                "_connect_ws",
                self._connected,
                f"Responses{again}",
            ),
            Seam(
                "AsyncResponsesConnectionManager",
                "_connect_ws",
                self._async_connected,
                f"AsyncResponses{again}",
            ),
        )

    def vanished(self) -> tuple[str, ...]:
        """Nothing beyond what its seams tell; `vanished` is asked by the adapter that is first."""
        return ()

    def _opened(
        self, wrapped: Callable[..., Any], _made: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        wrapped(*args, **kwargs)
        with shield("sockets.opened"):
            self._watch(kwargs["connection"] if "connection" in kwargs else args[0])

    def _connected(
        self, wrapped: Callable[..., Any], _manager: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        socket = wrapped(*args, **kwargs)
        with shield("sockets.connected"):
            self._watch(socket)
        return socket

    async def _async_connected(
        self, wrapped: Callable[..., Any], _manager: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        socket = await wrapped(*args, **kwargs)
        with shield("sockets.connected"):
            self._watch(socket)
        return socket

    def _watch(self, socket: Any) -> None:
        """Look on at a connection, once; sync and async ones have the same names."""
        if getattr(vars(socket).get("recv"), "line", None) is not None:
            return
        line = Line(self._runtime, socket.request)
        told = {"send": line.send, "recv": line.recv, "close": line.close}
        made = {name: _shadow(socket, name, tells) for name, tells in told.items()}
        if all(map(callable, made.values())):
            made["recv"].line = line
            for name, shadow in made.items():
                setattr(socket, name, shadow)


def beta_sockets(runtime: Runtime) -> Sockets:
    """The adapter for `client.beta.responses.connect()`, whose classes have the same names."""
    return Sockets(runtime, "openai.resources.beta.responses.responses")


def vanished() -> tuple[str, ...]:
    """The seams of the sockets, where the module that had them in every release is gone.

    It is looked for, not imported: an SDK imports it late, and it takes its time.
    """
    package, *parts = _MODULE.split(".")
    where, name = list(sys.modules[package].__path__), package
    for part in parts:
        name = f"{name}.{part}"
        found = PathFinder.find_spec(name, where)
        if found is None:
            return (f"{_MODULE}.ResponsesConnection.__init__",)
        where = list(found.submodule_search_locations or ())
    return ()


@dataclass(frozen=True, slots=True)
class Told:
    """What one method of a connection tells: before it runs, with its result, with its error."""

    before: Callable[[Any], Any]
    after: Callable[[Any, Any], object]
    failed: Callable[[Any, BaseException], object]


def _shadow(socket: Any, name: str, told: Told) -> Any:
    """A stand-in for one method of one connection, without a reference back to it."""
    own = vars(socket).get(name)
    method = getattr(type(socket), name)
    there = weakref.ref(socket)

    def real(args: Any, kwargs: Any) -> Any:
        return own(*args, **kwargs) if own is not None else method(there(), *args, **kwargs)

    return (_async if iscoroutinefunction(method) else _sync)(real, told)


def _sync(real: Callable[[Any, Any], Any], told: Told) -> Any:
    def shadow(*args: Any, **kwargs: Any) -> Any:
        call = None
        with shield("sockets.before"):
            call = told.before(args)
        try:
            result = real(args, kwargs)
        except BaseException as error:
            with shield("sockets.failed"):
                told.failed(call, error)
            raise
        with shield("sockets.after"):
            told.after(call, result)
        return result

    return shadow


def _async(real: Callable[[Any, Any], Any], told: Told) -> Any:
    async def shadow(*args: Any, **kwargs: Any) -> Any:
        call = None
        with shield("sockets.before"):
            call = told.before(args)
        try:
            result = await real(args, kwargs)
        except BaseException as error:
            with shield("sockets.failed"):
                told.failed(call, error)
            raise
        with shield("sockets.after"):
            told.after(call, result)
        return result

    return shadow


class Line:
    """The calls under way on one connection, by lane."""

    def __init__(self, runtime: Runtime, handshake: Any) -> None:
        """`handshake` is the request the connection was opened with."""
        self._runtime = runtime
        self._handshake = handshake
        self._lanes: dict[bytes, deque[Reply]] = {}
        self._unrouted: list[Reply] = []
        self._lock = threading.Lock()

    # ------------------------------------------------------------- what the connection tells

    @property
    def send(self) -> Told:
        """A message goes out."""
        return Told(self._sending, _nothing, self._unsent)

    @property
    def recv(self) -> Told:
        """A message is waited for."""
        return Told(_nothing, self._came, self._broke)

    @property
    def close(self) -> Told:
        """The connection is closed by the application."""
        return Told(_nothing, self._over, self._over)

    def _sending(self, args: Any) -> Any:
        data = args[0] if args else None
        asks = isinstance(data, str) and _CREATE in data
        if not asks or not self._looks():
            return None
        sent = SocketSent(self._handshake, data)
        reply = Reply(None, Kept(), sent) if stands_aside() else self._begin(sent)
        with self._lock:
            self._unrouted.append(reply)
        return reply

    def _unsent(self, reply: Any, error: BaseException) -> None:
        if reply is not None:
            self._drop(reply)
            if reply.call is not None:
                reply.call.failed(error)

    def _came(self, _: Any, data: Any) -> None:
        if self._looks():
            self._read(data.encode() if isinstance(data, str) else bytes(data))

    def _broke(self, _: Any, error: BaseException) -> None:
        if any(kind.__name__ == "ConnectionClosed" for kind in type(error).__mro__):
            self._all_over(error)

    def _over(self, *_: Any) -> None:
        self._all_over()

    # ------------------------------------------------------------------- the calls under way

    def _looks(self) -> bool:
        return self._runtime.on and not passing()

    def _begin(self, sent: SocketSent) -> Reply:
        """A call; its message is not looked through before it is sent."""
        call = Call(self._runtime, _KIND)
        reply = Reply(call, call.kept(""), sent)
        over = partial(call.body_over, reply.kept, whole=False)
        finalizing.when_dropped(reply, call.started, over)
        call.sending(sent)
        call.streaming(None, reply.kept)
        call.returned()
        return reply

    def _route(self) -> None:
        """Find the lanes of the messages that went out."""
        with self._lock:
            for reply in self._unrouted:
                self._lanes.setdefault(_lane(reply.sent.body() or b""), deque()).append(reply)
            self._unrouted.clear()

    def _read(self, data: bytes) -> None:
        """One event: kept for the call of its lane, which may begin or end with it."""
        self._route()
        event = json.loads(data) if _BOUNDARY.search(data) else None
        kind = as_text(event.get("type")) if isinstance(event, dict) else ""
        lane = _lane(data)
        if kind == "response.created" and lane not in self._lanes:
            self._succeed(lane)
        if kind == "error" and lane not in self._lanes and len(self._lanes) == 1:
            (lane,) = self._lanes
        if lane not in self._lanes:
            return
        reply = self._lanes[lane][0]
        status = event.get("status") if event is not None and kind == "error" else OK
        reply.keeps(data, status if isinstance(status, int) else REFUSED)
        if kind in _CLOSING:
            self._drop(reply)
            reply.over(whole=True)

    def _succeed(self, lane: bytes) -> None:
        """The call of a response that nobody asked for."""
        reply = self._begin(Unasked(self._handshake, None))
        with self._lock:
            self._lanes.setdefault(lane, deque()).append(reply)

    def _drop(self, reply: Reply) -> None:
        with self._lock:
            for waiting in (self._unrouted, *self._lanes.values()):
                if reply in waiting:
                    waiting.remove(reply)
            self._lanes = {lane: waiting for lane, waiting in self._lanes.items() if waiting}

    def _all_over(self, error: BaseException | None = None) -> None:
        """Nothing more comes for any call under way."""
        with self._lock:
            waiting = [reply for lane in self._lanes.values() for reply in lane]
            waiting += self._unrouted
            self._lanes = {}
            self._unrouted = []
        for reply in waiting:
            reply.over(whole=False, error=error)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Reply:
    """One call, None for one that is not looked at, and what has come of its reply."""

    call: Call | None
    kept: Kept
    sent: SocketSent

    def keeps(self, event: bytes, status: int) -> None:
        """Keep an event of it as a stream of HTTP would have it."""
        if self.call is not None:
            self.call.streaming(status, self.kept)
            self.kept.keep(b"data: " + event + b"\n\n")

    def over(self, *, whole: bool, error: BaseException | None = None) -> None:
        """Its last event was there (`whole`), or the connection is gone."""
        if self.call is not None:
            self.call.body_over(self.kept, whole=whole, error=error)


def _nothing(*_: Any) -> None:
    return None


def _lane(data: bytes) -> bytes:
    """The `stream_id` of a message, empty for the one lane of who names none."""
    found = _LANE.search(data)
    return found[1] if found else b""
