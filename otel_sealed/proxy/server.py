"""The server: every chunk goes on when it comes, in both directions; a copy is judged at the end.

Theory of operation. A request is sent to its upstream with the bytes of its path, its headers but
those of the connection, and its body as it comes; the response goes back likewise. Nothing is
decoded, compressed, followed or retried. A client that leaves ends the request upstream; an
upstream that breaks off has the connection to the client broken off, so that a cut reply is cut
there as well. Messages of a WebSocket go on one by one; each that asks for a response begins an
exchange, which the closing event of its lane ends.

Nothing of a request is logged, and no header is kept but on the way to a judgement.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    WSMsgType,
    WSServerHandshakeError,
    web,
)
from aiohttp.client_exceptions import ClientConnectionResetError
from yarl import URL

from otel_sealed.http.lanes import Lanes
from otel_sealed.http.observer import Copy, Observer, Seen, lowered
from otel_sealed.instrument import guard
from otel_sealed.proxy.upstreams import Upstreams

_OF_THE_CONNECTION: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
    }
)
_CONNECT_S: Final = 30.0
"""Seconds to reach an upstream; once it is reached nothing is cut off."""
_CHUNK: Final = 1 << 18
"""Bytes that wait between an upstream and a slow client, for each exchange."""
_SILENT: Final = logging.getLogger("otel_sealed.proxy")
_SILENT.disabled = True  # aiohttp would log paths, and what it could not parse


class Proxy:
    """One reverse proxy. `url` is where it listens, once it does."""

    def __init__(self, upstreams: Upstreams, observer: Observer) -> None:
        """`observer` is given what passed."""
        self._upstreams = upstreams
        self._observer = observer
        self._session: ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError where the port is taken."""
        self._session = ClientSession(
            auto_decompress=False,
            connector=TCPConnector(limit=0),
            cookie_jar=DummyCookieJar(),
            read_bufsize=_CHUNK,
            requote_redirect_url=False,
            skip_auto_headers={"User-Agent", "Accept", "Accept-Encoding", "Content-Type"},
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT_S),
            trust_env=True,
        )
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            auto_decompress=False,
            handler_cancellation=True,
            logger=_SILENT,
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        bound = self._runner.addresses[0]
        self.url = f"http://{host if ':' not in host else f'[{host}]'}:{bound[1]}"

    async def stop(self) -> None:
        """Stop listening; what is under way is ended."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        url = self._upstreams.of(request.raw_path)
        if url is None or self._session is None:
            names = ", ".join(f"/{name}" for name in self._upstreams.bases)
            return _error(404, f"no upstream has this path; there are {names}")
        handle = self._exchange
        if request.headers.get("upgrade", "").lower() == "websocket":
            handle = self._socket
        try:
            return await handle(self._session, request, url)
        except Exception as error:
            # a fault of ours, which aiohttp would log with the path, and that may hold a key
            if guard.STRICT:
                raise
            guard.internal_error("proxy", type(error).__name__)
            return _error(502, f"a fault of the proxy: {type(error).__name__}")

    # ------------------------------------------------------------------------------------ HTTP

    async def _exchange(
        self, session: ClientSession, request: web.Request, url: str
    ) -> web.StreamResponse:
        seen = self._seen(request, url)
        try:
            upstream = await session.request(
                request.method,
                URL(url, encoded=True),
                headers=_sent(request),
                data=_copied(request, seen.request) if request.body_exists else None,
                allow_redirects=False,
            )
        except ClientError as error:
            self._over(seen, complete=False)
            return _error(502, f"the upstream cannot be reached: {type(error).__name__}")
        except BaseException:
            self._over(seen, complete=False)
            raise
        async with upstream:
            seen.status, seen.answered = upstream.status, lowered(upstream.raw_headers)
            response = web.StreamResponse(status=upstream.status, reason=upstream.reason)
            _answer(response, upstream.raw_headers)
            complete = False
            try:
                await response.prepare(request)
                async for chunk in upstream.content.iter_any():
                    seen.response.add(chunk)
                    await response.write(chunk)
                complete = True
                await response.write_eof()
            except ClientPayloadError:
                if request.transport is not None:
                    request.transport.abort()  # cut here as it was cut there
            except ClientConnectionResetError:
                pass  # the client left: there is nobody to tell
            finally:
                self._over(seen, complete=complete)
        return response

    def _seen(self, request: web.Request, url: str) -> Seen:
        held = self._observer.held
        return Seen(
            method=request.method,
            url=url,
            headers=lowered(request.raw_headers),
            request=Copy(held),
            response=Copy(held),
            started_ns=time.time_ns(),
        )

    def _over(self, seen: Seen, *, complete: bool) -> None:
        seen.complete = complete
        seen.ended_ns = time.time_ns()
        self._observer.hand(seen)

    # ------------------------------------------------------------------------------- WebSocket

    async def _socket(
        self, session: ClientSession, request: web.Request, url: str
    ) -> web.StreamResponse:
        headers = [(n, v) for n, v in _sent(request) if not n.lower().startswith("sec-websocket")]
        protocols = request.headers.get("sec-websocket-protocol", "")
        wanted = [name.strip() for name in protocols.split(",") if name.strip()]
        try:
            upstream = await session.ws_connect(
                URL(url, encoded=True),
                headers=headers,
                protocols=wanted,
                max_msg_size=0,
                compress=15,
            )
        except WSServerHandshakeError as error:
            refused = web.Response(status=error.status)
            for name, value in (error.headers or {}).items():
                if name.lower() not in _OF_THE_CONNECTION:
                    refused.headers.add(name, value)
            return refused
        except ClientError as error:
            return _error(502, f"the upstream cannot be reached: {type(error).__name__}")
        client = web.WebSocketResponse(max_msg_size=0, protocols=wanted, compress=True)
        await client.prepare(request)
        lanes = Lanes(lambda: self._seen(request, url), self._lane_over)
        down = asyncio.create_task(_down(upstream, client, lanes))
        try:
            async for message in client:
                if message.type is WSMsgType.TEXT:
                    lanes.sent(message.data)
                    await upstream.send_str(message.data)
                elif message.type is WSMsgType.BINARY:
                    await upstream.send_bytes(message.data)
        finally:
            lanes.close()
            down.cancel()
            with suppress(Exception):
                await asyncio.shield(upstream.close(code=client.close_code or 1000))
        return client

    def _lane_over(self, seen: Seen, complete: bool) -> None:  # noqa: FBT001 - as `Lanes` calls it
        self._over(seen, complete=complete)


async def _down(upstream: Any, client: web.WebSocketResponse, lanes: Lanes) -> None:
    """What the upstream sends goes to the client."""
    async for message in upstream:
        if message.type is WSMsgType.TEXT:
            lanes.answered(message.data)
            await client.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await client.send_bytes(message.data)
    await client.close(code=upstream.close_code or 1000)


async def _copied(request: web.Request, copy: Copy) -> AsyncIterator[bytes]:
    async for chunk in request.content.iter_any():
        copy.add(chunk)
        yield chunk


def _sent(request: web.Request) -> list[tuple[str, str]]:
    """The headers for the upstream: as they came, but those of the connection."""
    found = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers
    ]
    found = [(name, value) for name, value in found if name.lower() not in _OF_THE_CONNECTION]
    length = request.headers.get("content-length")
    return found if length is None else [*found, ("Content-Length", length)]


def _text(raw: bytes) -> str:
    """A name or a value, which aiohttp writes as UTF-8 again; other bytes it cannot write."""
    return raw.decode("utf-8", "ignore")


def _answer(response: web.StreamResponse, raw: Any) -> None:
    """The headers of the upstream on a response."""
    for name, value in raw:
        text = _text(name)
        if text.lower() == "content-length":
            response.content_length = int(value)
        elif text.lower() not in _OF_THE_CONNECTION:
            response.headers.add(text, _text(value))


def _error(status: int, says: str) -> web.Response:
    error = {"type": "api_error", "message": f"otel-sealed proxy: {says}"}
    return web.json_response({"error": error}, status=status)
