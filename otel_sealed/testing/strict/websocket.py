"""The Responses API over a WebSocket: a message asks for a response, its events are messages.

The protocol is that of the `websockets` package, where that is installed, fed from the handler's
own connection, so that one port serves everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .records import Obj, Reply, Request, decode, encode

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

    from websockets.server import ServerProtocol

    from .server import Sink

Respond = Callable[[Request, str], tuple[Reply, "Sink"]]

METHOD = "WEBSOCKET"
"""The method of a request that came as a message."""
_CHUNK = 65536
_REFUSED = 400


def serve(handler: BaseHTTPRequestHandler, respond: Respond) -> None:
    """Take a connection over that asks for an upgrade, until it is closed."""
    from websockets.http11 import Request as Handshake
    from websockets.protocol import State
    from websockets.server import ServerProtocol

    handler.close_connection = True
    protocol = ServerProtocol(max_size=None)
    lines = [f"GET {handler.path} HTTP/1.1", *(f"{k}: {v}" for k, v in handler.headers.items())]
    protocol.receive_data("\r\n".join([*lines, "", ""]).encode("latin-1"))
    for event in protocol.events_received():
        if isinstance(event, Handshake):
            protocol.send_response(protocol.accept(event))
    headers = {name.lower(): value for name, value in handler.headers.items()}
    for message in _messages(handler, protocol):
        if (decode(message) or {}).get("type") != "response.create":
            continue
        path = handler.path.partition("?")[0]
        request = Request(METHOD, path, {}, headers, message, str(id(protocol)))
        reply, sink = respond(request, handler.path)
        sink.begin(reply)
        for text in _texts(reply, (decode(message) or {}).get("stream_id")):
            if protocol.state is not State.OPEN:
                return  # the client is closing
            sink.sent(text + b"\n")
            protocol.send_text(text)
            _flush(handler, protocol)
        if reply.cut_after is not None:
            return
        sink.end()


def _messages(handler: BaseHTTPRequestHandler, protocol: ServerProtocol) -> Iterator[bytes]:
    """Every message of the client, put together from its frames."""
    from websockets.frames import Frame, Opcode

    parts: list[bytes] = []
    while True:
        _flush(handler, protocol)
        if protocol.close_expected():
            return  # a server hangs up first
        data = handler.rfile.read1(_CHUNK)
        if not data:
            return
        protocol.receive_data(data)
        for frame in protocol.events_received():
            if isinstance(frame, Frame) and frame.opcode in (Opcode.TEXT, Opcode.CONT):
                parts.append(bytes(frame.data))
                if frame.fin:
                    yield b"".join(parts)
                    parts.clear()


def _flush(handler: BaseHTTPRequestHandler, protocol: ServerProtocol) -> None:
    for data in protocol.data_to_send():
        if data:
            handler.wfile.write(data)


def _texts(reply: Reply, lane: Any) -> Iterator[bytes]:
    """The messages of a reply: its events, or the error that a refusal is."""
    routed = {"stream_id": lane} if lane is not None else {}
    if reply.status >= _REFUSED:
        error = (decode(reply.body) or {}).get("error")
        yield encode({"type": "error", "status": reply.status, "error": error, **routed})
        return
    for frame in (reply.frames or ())[: reply.cut_after]:
        event: Obj = json.loads(frame.partition(b"data: ")[2])
        yield encode({**event, **routed})
