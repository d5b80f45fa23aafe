"""HTTP requests and responses of httpx's kind, whichever httpx: what was sent, and what comes back.

Duck-typed, since an SDK brings httpx or httpx2 by release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from otel_sealed.instrument.body import plain
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.runtime import Where
from otel_sealed.instrument.tee import put

# The model of Bedrock may be an ARN with slashes in it: all from the first mark to the last.
_URL_MODEL: Final = re.compile(
    r"\A(?>.*?/model/)(?P<bedrock>.+)/(?:invoke(?:-with-response-stream)?|converse(?:-stream)?)$"
    r"|/publishers/anthropic/models/(?P<vertex>[^/:]+):(?:stream)?[rR]awPredict$"
    r"|/models/(?P<gemini>[^/:]+):(?:stream)?[gG]enerateContent$"
)
_CLOUDS: Final = {"bedrock": "bedrock", "vertex": "vertex"}
_LONGEST_PATH: Final = 4096
"""A path that names a model is no longer: ARNs have 2,048 characters at most."""
_LONGEST_KEPT: Final = 512
"""Characters of path and query up to which what they say is kept: 256 of them are 128 KB."""
_PROJECT: Final = re.compile(r"/(projects/[^/]+)/")
_KEY_HEADERS: Final = (b"x-api-key", b"api-key", b"x-goog-api-key")
_ASKED_FOR: Final = frozenset(
    {*_KEY_HEADERS, b"authorization", b"anthropic-beta", b"openai-beta", b"content-encoding"}
)
_LENGTHS: Final = frozenset(map(len, _ASKED_FOR))
# Short-lived tokens say nothing about the account: JWTs, Google's and Anthropic's OAuth tokens.
_ROTATING: Final = re.compile(r"\A(?:ey[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.|ya29\.|sk-ant-oat)")


@lru_cache(maxsize=256)
def _read(host: object, port: object, path: str, query: bytes) -> Where:
    """What the parts of a URL say; a path holds no ids where turns are sent, so few are met."""
    named = _URL_MODEL.search(path) if len(path) <= _LONGEST_PATH else None
    model = named[named.lastgroup] if named is not None and named.lastgroup else None
    azure = named is None and "/openai/" in path and b"api-version=" in query
    project = _PROJECT.search(path) if "/projects/" in path else None
    return Where(
        host=str(host or ""),
        port=port if isinstance(port, int) else None,
        model=model,
        cloud=_CLOUDS.get(named.lastgroup or "")
        if named is not None
        else "azure"
        if azure
        else None,
        project=project[1] if project is not None else "",
    )


class Url(NamedTuple):
    """The parts of a URL that `HttpSent` asks for."""

    host: str
    path: str
    port: int | None = None
    query: bytes = b""

    @classmethod
    def of(cls, text: str, host: str = "") -> Url:
        """The parts of a URL, or of what a client sends to `host`. Raises ValueError."""
        parts = urlsplit(text)
        query = parts.query.encode("utf-8", "replace")
        return cls(parts.hostname or host, unquote(parts.path), parts.port, query)


class Plain:
    """A request of any other client, as `HttpSent` reads one of httpx."""

    def __init__(self, url: Url, headers: Any, body: Any) -> None:
        """`headers`: a mapping or pairs of texts or bytes; kept, as is `body`, and read later."""
        self.url = url
        self._headers = headers
        self._body = body

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        pairs = getattr(self._headers, "items", lambda: self._headers or ())()
        return {_text(name).lower(): _text(value) for name, value in pairs}

    @property
    def content(self) -> Any:
        """The body where it is bytes, or was JSON. Raises RuntimeError where it is a stream."""
        body = self._body
        if isinstance(body, str):
            return body.encode("utf-8", "surrogatepass")
        if isinstance(body, (bytearray, memoryview)):
            return bytes(body)
        if isinstance(body, (bytes, dict)) or body is None:
            return body
        raise RuntimeError("streamed")


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


class HttpSent:
    """An httpx or httpx2 request, read once the call is over."""

    def __init__(self, request: Any) -> None:
        """`request` is kept as it is."""
        self._request = request
        self._asked: dict[bytes, str] | None = None
        self._where: Where | None = None
        self._spelled: bytes | None = None

    def body(self) -> Any:
        """The bytes that were sent, without their content-encoding; None if streamed, or none.

        An `Unread` where they cannot be undone within bounds.
        """
        try:
            content = self._request.content if self._spelled is None else self._spelled
        except RuntimeError:  # httpx raises RequestNotRead for a body it did not keep
            return None
        encoding = self._headers().get(b"content-encoding")
        return (plain(content, encoding) if encoding else content) or None

    def spelled(self, body: bytes) -> None:
        """The body in the bytes that go out, where the request has it in another form."""
        self._spelled = body

    def _headers(self) -> Mapping[bytes, str]:
        """Those of `_ASKED_FOR` that there are, by lower-case name.

        httpx passes over all headers at each look-up. No `raw` ones: no request of httpx.
        """
        if self._asked is None:
            found: dict[bytes, str] = {}
            headers = self._request.headers
            pairs = getattr(headers, "raw", None)
            if pairs is None:
                pairs = [(name, headers.get(name.decode(), "").encode()) for name in _ASKED_FOR]
            for key, value in pairs:
                if value and len(key) in _LENGTHS and (name := key.lower()) in _ASKED_FOR:
                    text = value.decode("utf-8", "replace")
                    found[name] = f"{found[name]}, {text}" if name in found else text
            self._asked = found
        return self._asked

    def path(self) -> str:
        """Path and query of the URL."""
        raw = self._request.url.raw_path
        return raw.decode("ascii", "replace") if isinstance(raw, bytes) else str(raw)

    def where(self) -> Where:
        """Bedrock and Vertex have the model in their paths, Azure a version in its query."""
        if self._where is None:
            url = self._request.url
            host, port, path, query = url.host, url.port, url.path, url.query
            read = _read if len(path) + len(query) <= _LONGEST_KEPT else _read.__wrapped__
            self._where = read(host, port, path, query)
        return self._where

    def credential(self) -> str | None:
        """An API key, or the project of a Vertex URL; None for tokens that rotate."""
        if project := self.where().project:
            return project
        headers = self._headers()
        for name in _KEY_HEADERS:
            if name in headers:
                return headers[name]
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token or _ROTATING.match(token):
            return None
        return token

    def betas(self) -> tuple[str, ...]:
        """The parts of `anthropic-beta`, or of `openai-beta`."""
        headers = self._headers()
        asked = headers.get(b"anthropic-beta") or headers.get(b"openai-beta")
        return tuple(filter(None, map(str.strip, asked.split(",")))) if asked else ()


def responded(call: Call, response: Any) -> None:
    """An attempt was answered: its body is read by the SDK already, or somebody will read it."""
    call.attempted(HttpSent(response.request))
    if response.is_closed:
        whole(call, response)
    else:
        _tee(call, response)


def whole(call: Call, response: Any) -> None:
    """A response whose body the SDK has read, or closed unread."""
    read = response.is_stream_consumed
    call.answered(response.status_code, response.content if read else None)


def _tee(call: Call, response: Any) -> None:
    kept = call.kept(str(response.headers.get("content-encoding", "")))
    put(response, call, kept)
    call.streaming(response.status_code, kept, str(response.headers.get("content-type", "")))
