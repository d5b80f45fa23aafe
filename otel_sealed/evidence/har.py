"""HAR 1.2, as browsers, mitmproxy, Proxyman and Charles export it.

Fields: `log.entries[].request.{method,url,headers[{name,value}],postData.{text,encoding}}` and
`response.{status,headers,content.{text,encoding}}`; `encoding` is `base64` where the body was no
text. An exporter may decode the content-encoding and keep its header. Source: the HAR 1.2 spec.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import datetime
from io import BufferedReader
from typing import Any, Final

from otel_sealed.errors import SealedError
from otel_sealed.http.records import Capture
from otel_sealed.wire.intake import MAX_DOCUMENT, WHY, NotJson, value_of
from otel_sealed.wire.parse import Unread, as_count, as_text

_REMEDY: Final = "a HAR file or a cassette, whole, as the recorder wrote it"


def document(file: BufferedReader, name: str) -> Any:
    """The one JSON document of a file.

    Raises:
        SealedError: It is too long, or no JSON. The original error is not chained: it holds it all.
    """
    try:
        return value_of(whole(file, name))
    except NotJson as error:
        what = f"not valid JSON at line {error.line}"
        raise SealedError(what, where=name, remedy=_REMEDY) from None
    except Unread as unread:
        bytes_ = unread.reason == "encoding"
        what = "neither UTF-8 text nor JSON" if bytes_ else WHY[unread.reason]
        raise SealedError(what, where=name, remedy=_REMEDY) from None


def whole(file: BufferedReader, name: str, most: int = MAX_DOCUMENT) -> bytes:
    """The rest of a file, up to a bound."""
    data = file.read(most + 1)
    if len(data) > most:
        raise SealedError(f"longer than {most >> 20} MiB", where=name, remedy="split it")
    return data


def read(har: Mapping[str, Any], name: str) -> Iterator[Capture | None]:
    """The entries of a HAR in their order; None for one that has not its shape."""
    log = har.get("log")
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise SealedError("its log has no entries", where=name, remedy=_REMEDY)
    for entry in entries:
        yield _capture(entry) if isinstance(entry, dict) else None


def _capture(entry: Mapping[str, Any]) -> Capture | None:
    request, response = entry.get("request"), entry.get("response")
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return None
    if not isinstance(response, dict):
        response = {}
    return Capture(
        method=as_text(request.get("method")),
        url=request["url"],
        headers=_headers(request.get("headers")),
        request=_body(request.get("postData")),
        # 0 and -1 stand for a request that was never answered
        status=(as_count(response.get("status")) or 0) if _answered(response) else None,
        answered=_headers(response.get("headers")),
        response=_body(response.get("content")),
        complete=not (entry.get("_error") or response.get("_error")),
        at=_moment(entry.get("startedDateTime")),
    )


def _moment(text: Any) -> int:
    try:
        return int(datetime.fromisoformat(as_text(text)).timestamp() * 1e6) * 1000
    except (ValueError, OverflowError, OSError):
        return 0


def _answered(response: Mapping[str, Any]) -> bool:
    return (as_count(response.get("status")) or 0) > 0


def _headers(value: Any) -> dict[str, str]:
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return {as_text(row.get("name")).lower(): as_text(row.get("value")) for row in rows}


def _body(value: Any) -> Any:
    """Text, or the bytes a base64 of it stands for; None where there is none."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return None
    if value.get("encoding") != "base64":
        return _as_utf8(value["text"])
    try:
        return base64.b64decode(value["text"])
    except (binascii.Error, ValueError):
        return None


def _as_utf8(text: str) -> str:
    """Text whose bytes an exporter took for Latin-1, as mitmproxy does without a charset.

    What is no such text stays as it is: a letter of Latin-1 alone is no UTF-8.
    """
    try:
        return text if text.isascii() else text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
