"""mitmproxy flow files: netstrings with a type after each, one dictionary a flow.

A value is `<length>:<payload><type>`, the types being `,` bytes, `;` text, `#` integer, `^` float,
`!` boolean, `~` null, `]` list and `}` dictionary. Read here in some fifty lines: mitmproxy itself
pins half of its world and starts a second late. The keys that are needed have been the same since
format version 7 (mitmproxy 5); flows of an older one come out broken, and are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any, Final

from otel_sealed.errors import SealedError
from otel_sealed.http.records import Capture
from otel_sealed.wire.intake import MAX_LINE, MAX_NODES
from otel_sealed.wire.parse import as_count, as_text

_LENGTH: Final = re.compile(rb"(\d{1,12}):")
_DEEPEST: Final = 16
"""Most values inside each other: mitmproxy writes six."""
_LATEST: Final = 1 << 32
_END: Final = object()


class _TornError(ValueError):
    """What is there is no value of the format."""


class _Reading:
    """One value of the file, and how many are in it. A part of it is a view, never a copy."""

    def __init__(self) -> None:
        self._values = 0

    def value(self, payload: memoryview, kind: bytes, depth: int) -> Any:
        """The value that a payload of a kind is."""
        self._values += 1
        if depth > _DEEPEST or self._values > MAX_NODES:
            raise _TornError
        match kind:
            case b",":
                return bytes(payload)
            case b";":
                return str(payload, "utf-8", "surrogateescape")
            case b"#" | b"^":
                return _number(bytes(payload), kind)
            case b"!":
                return bytes(payload) == b"true"
            case b"~":
                return None
            case b"]":
                return list(self._parts(payload, depth + 1))
            case b"}":
                values = list(self._parts(payload, depth + 1))
                names = (x.decode("latin-1") if isinstance(x, bytes) else x for x in values[::2])
                return dict(zip(map(str, names), values[1::2], strict=False))
            case _:
                raise _TornError

    def _parts(self, payload: memoryview, depth: int) -> Iterator[Any]:
        at = 0
        while at < len(payload):
            head = _LENGTH.match(payload, at)
            if head is None:
                raise _TornError
            end = head.end() + int(head[1])
            if end >= len(payload):
                raise _TornError
            yield self.value(payload[head.end() : end], bytes(payload[end : end + 1]), depth)
            at = end + 1


def read(file: BufferedReader, name: str) -> Iterator[Capture | None]:
    """The flows of a file, one at a time; None for one that is no HTTP.

    Raises:
        SealedError: The file ends within a flow, or goes on in another format.
    """
    number = 0
    while True:
        try:
            flow = _next(file)
        except _TornError:
            where = f"{name}, flow {number + 1}"
            raise SealedError("cut off or damaged", where=where) from None
        if flow is _END:
            return
        yield _capture(flow) if isinstance(flow, dict) else None
        number += 1


# ---------------------------------------------------------------------------------- the format


def _next(file: BufferedReader) -> Any:
    """The next value of the file, `_END` where there is none."""
    digits = b""
    while (char := file.read(1)) not in (b":", b""):
        digits += char
        if not digits.isdigit() or len(digits) > 12:  # noqa: PLR2004 - as in `_LENGTH`
            raise _TornError
    if not char:
        if digits:
            raise _TornError
        return _END
    length = int(digits or b"-1")
    if not 0 <= length < MAX_LINE:
        raise _TornError
    payload = file.read(length + 1)
    if len(payload) != length + 1:
        raise _TornError
    return _Reading().value(memoryview(payload)[:-1], payload[-1:], 0)


def _number(payload: bytes, kind: bytes) -> int | float:
    try:
        return int(payload) if kind == b"#" else float(payload)
    except ValueError:
        raise _TornError from None


# ------------------------------------------------------------------------------------ the flows


def _capture(flow: Mapping[str, Any]) -> Capture | None:
    request, response = flow.get("request"), flow.get("response")
    if flow.get("type") not in ("http", b"http") or not isinstance(request, dict):
        return None
    if not isinstance(response, dict):
        response = {}
    return Capture(
        method=_text(request.get("method")),
        url=_url(request),
        headers=_headers(request.get("headers")),
        request=request.get("content"),
        status=as_count(response.get("status_code")),
        answered=_headers(response.get("headers")),
        response=response.get("content"),
        complete=not flow.get("error"),
        at=_moment(request.get("timestamp_start")),
    )


def _moment(seconds: Any) -> int:
    """Nanoseconds of a time in seconds, 0 for what is none that triage could show."""
    known = isinstance(seconds, (int, float)) and 0 < seconds < _LATEST
    return int(seconds * 1e6) * 1000 if known else 0


def _url(request: Mapping[str, Any]) -> str:
    """The host is what the client asked for; behind a reverse proxy that is the proxy's target."""
    scheme, host, path = (_text(request.get(key)) for key in ("scheme", "host", "path"))
    return f"{scheme or 'https'}://{host}{path if path.startswith('/') else f'/{path}'}"


def _headers(value: Any) -> dict[str, str]:
    rows = value if isinstance(value, list) else []
    pairs = (row for row in rows if isinstance(row, list) and len(row) == 2)  # noqa: PLR2004
    return {_text(name).lower(): _text(text) for name, text in pairs}


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else as_text(value)
