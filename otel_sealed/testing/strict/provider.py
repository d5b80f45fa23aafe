"""The strict provider: a real HTTP server on loopback that refuses what real providers refuse."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from .anthropic import Anthropic
from .chat import Chat
from .gemini import Gemini
from .mint import Mint
from .openai import OpenAI
from .plans import Failure, Malformed, Plans
from .records import Dialect, Exchange, Minted, Obj, Reply, Request, Settings, decode, whole
from .server import Server, Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

_POLL_SECONDS = 0.02
_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie")


class StrictProvider:
    """Speaks Anthropic Messages, OpenAI Responses, Gemini generateContent and Chat Completions.

    It plays a scripted tool loop (two turns with calls, an answer, then answers to follow-ups),
    seals its reasoning as each provider does, and judges the raw bytes that come back by rules of
    its own. Use it as a context manager, or with `start` and `stop`.

    Attributes:
        faults: Errors of the provider itself; leaving the context raises the first.
    """

    def __init__(  # noqa: PLR0913 - what a test may choose of a provider's conduct
        self,
        *,
        verify_signed_text: bool = False,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        canary: str = "",
        populate_encrypted: bool = True,
        refuse_held_duplicates: bool = False,
        seal_each_event: bool = False,
        own_host: bool = True,
    ) -> None:
        settings = Settings(
            verify_signed_text=verify_signed_text,
            populate_encrypted=populate_encrypted,
            refuse_held_duplicates=refuse_held_duplicates,
            seal_each_event=seal_each_event,
            own_host=own_host,
            canary=canary,
        )
        self._address = (host, port)
        self._mint = Mint(seed, canary)
        self._anthropic = Anthropic(self._mint, settings)
        self._openai = OpenAI(self._mint, settings)
        self._gemini = Gemini(self._mint, settings)
        self._chat = Chat(self._mint, settings)
        self._plans = Plans()
        self._log: list[_Entry] = []
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self.faults: list[BaseException] = []

    # -------------------------------------------------------------------------- life and place

    def start(self) -> Self:
        """Listen and serve, in threads of its own."""
        self._server = Server(self._address, self._respond)
        self._server.faults = self.faults
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop serving and close every connection."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.shutdown()
            server.drop_connections()
            server.server_close()
            thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None and self.faults:
            raise self.faults[0]

    @property
    def base_url(self) -> str:
        """Where it listens, without a slash at the end."""
        if self._server is None:
            raise RuntimeError("the strict provider is not running")
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def anthropic_url(self) -> str:
        """What `anthropic.Anthropic(base_url=...)` wants."""
        return self.base_url

    @property
    def openai_url(self) -> str:
        """What `openai.OpenAI(base_url=...)` wants."""
        return f"{self.base_url}/v1"

    @property
    def gemini_url(self) -> str:
        """What `genai.Client(http_options={"base_url": ...})` wants."""
        return self.base_url

    # --------------------------------------------------------------------------------- records

    @property
    def exchanges(self) -> list[Exchange]:
        """All exchanges so far, in order of receipt."""
        with self._lock:
            return [entry.exchange() for entry in self._log]

    @property
    def minted(self) -> tuple[Minted, ...]:
        """All sealed values handed out so far, in order."""
        return self._mint.minted

    def clear(self) -> None:
        """Forget the exchanges and what is planned; what was minted stays valid."""
        with self._lock:
            self._log.clear()
        self._plans.clear()

    def forget_state(self) -> None:
        """Let threads and stored responses expire; what was minted stays valid."""
        with self._lock:
            for dialect in self._dialects:
                dialect.forget_state()

    # ----------------------------------------------------------------------------------- knobs

    def fail_next(
        self,
        status: int,
        body: bytes | str | Obj | None = None,
        times: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer the next requests with a failure; without a body, with the dialect's own."""
        self._plans.add(Failure(status, body, dict(headers or {})), times)

    def cut_next_stream(self, after_events: int) -> None:
        """Break the connection of the next event stream off after so many events."""
        self._plans.cut(after_events)

    def malform_next(
        self,
        sent: bytes | Sequence[Obj],
        *,
        status: int = 200,
        content_type: str | None = None,
    ) -> None:
        """Send these bytes, or these stream events, in place of the next reply."""
        self._plans.add(Malformed(sent, status, content_type))

    # --------------------------------------------------------------------------------- serving

    @property
    def _dialects(self) -> tuple[Dialect, ...]:
        return (self._anthropic, self._openai, self._gemini, self._chat)

    def _respond(self, request: Request, raw_path: str) -> tuple[Reply, Sink]:
        dialect = next((d for d in self._dialects if d.matches(request.path)), None)
        entry = _Entry(dialect.name if dialect else "", request, _public(raw_path), self._lock)
        with self._lock:
            self._log.append(entry)
            if dialect is None:
                return whole({"error": {"message": "Not Found"}}, 404), entry
            planned = self._plans.reply(dialect, streamed=_streamed(request))
            reply = dialect.answer(request) if planned is None else planned
        return self._plans.shorten(reply), entry


class _Entry:
    """One exchange while it happens."""

    def __init__(self, dialect: str, request: Request, path: str, lock: threading.Lock) -> None:
        self._dialect = dialect
        self._request = request
        self._path = path
        self._lock = lock
        self._reply = Reply(status=0)
        self._sent = bytearray()
        self._complete = False

    def begin(self, reply: Reply) -> None:
        """Enter that a reply begins."""
        with self._lock:
            self._reply = reply

    def sent(self, data: bytes) -> None:
        """Enter bytes of the body."""
        with self._lock:
            self._sent += data

    def end(self) -> None:
        """Enter that the reply was sent to its end."""
        with self._lock:
            self._complete = True

    def exchange(self) -> Exchange:
        """Freeze what there is so far; the caller holds the lock."""
        request, reply = self._request, self._reply
        return Exchange(
            dialect=self._dialect,
            method=request.method,
            path=self._path,
            request_body=request.body,
            response_body=bytes(self._sent),
            status=reply.status,
            stream=reply.frames is not None,
            complete=self._complete,
            headers={k: v for k, v in request.headers.items() if k not in _CREDENTIALS},
            response_headers={"content-type": reply.content_type, **reply.headers},
        )


def run(
    port: int,
    *,
    verify_signed_text: bool = False,
    on_ready: Callable[[str], None],
    until: threading.Event | None = None,
) -> None:
    """Serve until interrupted.

    Args:
        port: Where to listen; 0 for any free port.
        verify_signed_text: Refuse signed texts that changed.
        on_ready: Told the base URL once the provider listens.
        until: Serve until this is set, for callers that end otherwise than by an interrupt.
    """
    with StrictProvider(verify_signed_text=verify_signed_text, port=port) as provider:
        on_ready(provider.base_url)
        try:
            (until or threading.Event()).wait()
        except KeyboardInterrupt:
            return


def _public(raw_path: str) -> str:
    """Take an API key out of the query, the one place where a path holds a credential."""
    parts = urlsplit(raw_path)
    query = parse_qsl(parts.query, keep_blank_values=True)
    if not any(name == "key" for name, _ in query):
        return raw_path
    return parts._replace(query=urlencode([(k, v) for k, v in query if k != "key"])).geturl()


def _streamed(request: Request) -> bool:
    """Say whether a request asks for an event stream, in any dialect."""
    body = decode(request.body)
    return request.query.get("alt") == "sse" or (body is not None and body.get("stream") is True)
