"""One trace out of Tempo: a GET, and nothing else. No word of an answer is told."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from otel_sealed.errors import SealedError
from otel_sealed.triage.files import MAX_LINE

TIMEOUT_S: Final = 30.0
_TRACE: Final = re.compile(r"[0-9a-fA-F]{16,32}\Z")
_PATHS: Final = ("api/v2/traces", "api/traces")
_MISSING: Final = 404


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
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:  # noqa: S310
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
        raise SealedError("answered with more than 256 MiB", where=host)
    return body
