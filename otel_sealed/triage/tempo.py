"""One trace out of Tempo: a GET, and nothing else. No word of an answer is printed.

What `--header` names is sent to the origin that `--tempo` names (scheme, host and port) and to no
other: a redirect within it is followed, one that leaves it is an error.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from otel_sealed.errors import SealedError
from otel_sealed.wire.intake import MAX_LINE

TIMEOUT_S: Final = 30.0
_TRACE: Final = re.compile(r"[0-9a-fA-F]{16,32}\Z")
_PATHS: Final = ("api/v2/traces", "api/traces")
_MISSING: Final = 404
_PORTS: Final = {"http": 80, "https": 443}


def trace(url: str, ident: str, headers: Mapping[str, str] | None = None) -> bytes:
    """The JSON of a trace, by version 2 of the API or, where that is not served, version 1.

    Raises:
        SealedError: No such trace, or the server cannot be asked; names the host and no more.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise SealedError("no http or https URL", where="--tempo")
    if not _TRACE.match(ident):
        raise SealedError("no trace id: 16 to 32 hex digits", where="--trace")
    for path in _PATHS:
        where = urlunsplit(
            (parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{path}/{ident}", "", "")
        )
        found = _get(where, host, headers or {})
        if found is not None:
            return found
    raise SealedError("has no such trace", where=host)


def _get(where: str, host: str, headers: Mapping[str, str]) -> bytes | None:
    # the scheme was looked at above
    asked = urllib.request.Request(where, headers={**headers, "Accept": "application/json"})  # noqa: S310
    try:
        with _opener(where).open(asked, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(MAX_LINE + 1)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _MISSING:
            return None
        raise SealedError(f"answered {error.code}", where=host) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or "cannot be asked"
        raise SealedError(said, where=host) from None
    if len(body) > MAX_LINE:
        raise SealedError("answered with more than 64 MiB", where=host)
    return body


def _opener(where: str) -> urllib.request.OpenerDirector:
    """What speaks HTTP and nothing else, within the origin of `where`."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SameOrigin(_origin(where)),
    ):
        opener.add_handler(handler)
    return opener


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Follows a redirect within one origin alone."""

    def __init__(self, origin: tuple[str, str, int]) -> None:
        self._origin = origin

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        """Look at where it leads before anything is sent there."""
        to = headers.get("location") or headers.get("uri") or ""
        if _origin(_joined(req.full_url, to)) != self._origin:
            fp.close()
            raise SealedError(
                f"answered {code}, a redirect to another server, which is not followed",
                where=self._origin[1],
                remedy="name in --tempo the address that serves the traces themselves",
            )
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _joined(url: str, to: str) -> str:
    try:
        return urljoin(url, to)
    except ValueError:
        return ""


def _origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port; nothing of what is no URL."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        return scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(scheme, 0)
    except ValueError:
        return "", "", 0
