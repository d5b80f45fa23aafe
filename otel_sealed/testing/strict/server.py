"""HTTP for the strict provider: keep-alive, chunked event streams in small writes, raw logging.

Theory of operation: a connection has a thread. It reads one request, asks the provider for the
reply, and writes it; every byte is entered in the log *before* it is written, so that whoever has
read a reply finds it in the log. Stopping shuts the live connections down and waits for their
threads, so that no socket outlives the provider.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from . import websocket
from .records import Reply, Request
from .sse import pieces

_JOIN_SECONDS = 5.0


class Sink(Protocol):
    """Where the bytes of one reply are entered as they go out."""

    def begin(self, reply: Reply) -> None:
        """Enter that a reply begins."""

    def sent(self, data: bytes) -> None:
        """Enter bytes of the body."""

    def end(self) -> None:
        """Enter that the reply was sent to its end."""


Respond = Callable[[Request, str], tuple[Reply, Sink]]
"""Answers a request; told the request and the raw path, it returns the reply and its log entry."""


class Server(ThreadingHTTPServer):
    """A threading server that can be stopped while clients keep connections open."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # fifty clients may come at once

    def __init__(self, address: tuple[str, int], respond: Respond) -> None:
        super().__init__(address, Handler)
        self.respond = respond
        self.faults: list[BaseException] = []
        self._live: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, both noted before it starts."""
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        with self._lock:
            self._live[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, then forget it."""
        super().shutdown_request(request)
        with self._lock:
            self._live.pop(request, None)

    def drop_connections(self) -> None:
        """Shut all live connections down and wait for their threads."""
        with self._lock:
            live = list(self._live.items())
        for connection, _ in live:
            _shut(connection)
        for _, thread in live:
            thread.join(_JOIN_SECONDS)

    def handle_error(
        self,
        request: Any,  # noqa: ARG002 - the base class's
        client_address: Any,  # noqa: ARG002 - the same
    ) -> None:
        """Keep a fault of our own for the test to see; a client that leaves is none."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.faults.append(error)


class Handler(BaseHTTPRequestHandler):
    """Serves one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # each small write becomes a packet of its own
    server: Server

    def log_message(
        self,
        format: str,  # noqa: A002 - the base class's
        *args: Any,
    ) -> None:
        """Say nothing: the log is the provider's `exchanges`."""

    def do_POST(self) -> None:
        """Answer a request."""
        self._serve()

    def do_GET(self) -> None:
        """Answer a request."""
        self._serve()

    def do_DELETE(self) -> None:
        """Answer a request."""
        self._serve()

    def _serve(self) -> None:
        if self.headers.get("upgrade", "").lower() == "websocket":
            websocket.serve(self, self.server.respond)
            return
        body = b"".join(self._body())
        parts = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
        )
        reply, sink = self.server.respond(request, self.path)
        sink.begin(reply)
        self._head(reply)
        if reply.frames is None:
            sink.sent(reply.body)
            sink.end()
            self.wfile.write(reply.body)
        else:
            self._stream(reply, reply.frames, sink)

    def _body(self) -> Iterator[bytes]:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass  # trailers
        else:
            yield self.rfile.read(int(self.headers.get("content-length", 0)))

    def _head(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("content-type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.frames is None:
            self.send_header("content-length", str(len(reply.body)))
        else:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _stream(self, reply: Reply, frames: tuple[bytes, ...], sink: Sink) -> None:
        for frame in frames[: reply.cut_after]:
            for piece in pieces(frame):
                sink.sent(piece)
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if reply.cut_after is not None:
            # No closing chunk: the client sees the connection break, as it would in the field.
            self.close_connection = True
            return
        sink.end()
        self.wfile.write(b"0\r\n\r\n")


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the client was faster
