"""HTTP requests and responses of httpx's kind, whichever httpx: what was sent, and what comes back.

Duck-typed, since an SDK brings httpx or httpx2 by release.
"""

from __future__ import annotations

import re
from typing import Any, Final

from otel_sealed.instrument.body import plain
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.tee import put

# The model of Bedrock may be an ARN with slashes in it: all from the first mark to the last.
_URL_MODEL: Final = re.compile(
    r"\A(?>.*?/model/)(?P<bedrock>.+)/invoke(?:-with-response-stream)?$"
    r"|/publishers/anthropic/models/(?P<vertex>[^/:]+):(?:stream)?[rR]awPredict$"
)
_LONGEST_PATH: Final = 4096
"""A path that names a model is no longer: ARNs have 2,048 characters at most."""
_UNASKED: Final = object()
_PROJECT: Final = re.compile(r"/(projects/[^/]+)/")
_KEY_HEADERS: Final = ("x-api-key", "api-key", "x-goog-api-key")
# Short-lived tokens say nothing about the account: JWTs, Google's and Anthropic's OAuth tokens.
_ROTATING: Final = re.compile(r"\A(?:ey[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.|ya29\.|sk-ant-oat)")


class HttpSent:
    """An httpx or httpx2 request, read once the call is over."""

    def __init__(self, request: Any) -> None:
        """`request` is kept as it is."""
        self._request = request
        self._names: bytes | None = None
        self._named: Any = _UNASKED

    def body(self) -> Any:
        """The bytes that were sent, without their content-encoding; None if streamed, or none.

        An `Unread` where they cannot be undone within bounds.
        """
        try:
            content = self._request.content
        except RuntimeError:  # httpx raises RequestNotRead for a body it did not keep
            return None
        encoding = self._header("content-encoding")
        return (plain(content, encoding) if encoding else content) or None

    def _header(self, name: str) -> str:
        """The value of a header, empty where there is none.

        Most that are asked for are not there, and httpx passes over all of them to find out.
        """
        headers = self._request.headers
        if self._names is None:
            pairs = getattr(headers, "raw", None)
            self._names = None if pairs is None else b" ".join([key for key, _ in pairs]).lower()
        there = self._names is None or name.encode() in self._names
        return str(headers.get(name, "")) if there else ""

    def host(self) -> str:
        """Host of the URL."""
        return str(self._request.url.host or "")

    def path(self) -> str:
        """Path and query of the URL."""
        raw = self._request.url.raw_path
        return raw.decode("ascii", "replace") if isinstance(raw, bytes) else str(raw)

    def port(self) -> int | None:
        """Port of the URL, None for the scheme's own."""
        port = self._request.url.port
        return port if isinstance(port, int) else None

    def model(self) -> str | None:
        """The model of a Bedrock or Vertex URL, whose bodies have none."""
        found = self._with_model()
        return found[found.lastgroup] if found is not None and found.lastgroup else None

    def cloud(self) -> str | None:
        """Bedrock or Vertex, whose paths have a model, or Azure, whose queries have a version."""
        found = self._with_model()
        if found is not None:
            return found.lastgroup
        url = self._request.url
        azure = "/openai/" in url.path and b"api-version=" in url.query
        return "azure" if azure else None

    def _with_model(self) -> re.Match[str] | None:
        """The path, where it names a model; the group is named after the cloud."""
        if self._named is _UNASKED:
            path = self._request.url.path
            self._named = _URL_MODEL.search(path) if len(path) <= _LONGEST_PATH else None
        found: re.Match[str] | None = self._named
        return found

    def credential(self) -> str | None:
        """An API key, or the project of a Vertex URL; None for tokens that rotate."""
        path = self._request.url.path
        project = _PROJECT.search(path) if "/projects/" in path else None
        if project is not None:
            return project[1]
        for name in _KEY_HEADERS:
            if value := self._header(name):
                return value
        scheme, _, token = self._header("authorization").partition(" ")
        if scheme.lower() != "bearer" or not token or _ROTATING.match(token):
            return None
        return token

    def betas(self) -> tuple[str, ...]:
        """The parts of `anthropic-beta`, or of `openai-beta`."""
        asked = self._header("anthropic-beta") or self._header("openai-beta")
        return tuple(part for part in map(str.strip, asked.split(",")) if part)


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
