"""One HTTP exchange, recorded or just over, and the exchange of a model it may be.

The wire is decided by path and body together: a path alone is no proof (`/responses` is also where
surveys are sent), and a gateway has any host. Credential, model of a URL and betas are read as the
hooks of SDKs read them, so that a recording, a call through a proxy and one in the process are
judged alike. What is no API that is known is counted by the name of its host, and never guessed at.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from otel_sealed.contract import Api, Exchange
from otel_sealed.digest import Digest
from otel_sealed.http.records import Capture, Passed
from otel_sealed.instrument.body import aws_events, decoded, is_events
from otel_sealed.instrument.http import HttpSent, Plain, Url
from otel_sealed.instrument.routes import wires_at
from otel_sealed.providers import dialects
from otel_sealed.vocab import host_name, word
from otel_sealed.wire import as_json, as_payloads
from otel_sealed.wire.parse import Unread

_AWS: Final = "application/vnd.amazon.eventstream"
_ENCODINGS: Final = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


class Reading:
    """Turns the captures of one file, or of one server, into exchanges; counts those that are none.

    `number` of an exchange is its place in a file; None lets the tracker count.
    """

    def __init__(self, passed: Passed, account: Callable[[str], str] | None = None) -> None:
        """`account` makes the stand-in of a credential.

        Without it credentials are told apart within this reading only: its key is random and lost.
        """
        self._passed = passed
        self._account = account or Digest(secrets.token_bytes(32)).account

    def exchange(self, capture: Capture, number: int | None) -> Exchange | None:
        """The exchange of a model that was captured, None for anything else."""
        url = _split(capture.url)
        wires = wires_at(url.path) if _posts(capture) else []
        if not wires:
            self._pass(url)
            return None
        try:
            request = _json(capture.request, capture.headers)
        except Unread:
            self._passed.bodies += 1
            return None
        wire = next((x for x in wires if request is None or _asks(x.api, request)), None)
        if wire is None:
            self._pass(url)
            return None
        return self._made(capture, url, wire.api, wire.path.operation, request, number)

    def _pass(self, url: Url) -> None:
        self._passed.hosts[word(host_name(url.host))] += 1

    def _made(
        self,
        capture: Capture,
        url: Url,
        api: Api,
        operation: str | None,
        request: Any,
        number: int | None,
    ) -> Exchange:
        sent = HttpSent(Plain(url, capture.headers, None))
        credential = sent.credential()
        response, events, complete = self._answer(capture)
        return Exchange(
            api=api,
            operation=operation,
            model=sent.where().model,
            host=url.host,
            account=self._account(credential) if credential else None,
            betas=sent.betas(),
            transport=capture.transport,
            request=request,
            response=response,
            events=events,
            status=capture.status,
            complete=complete,
            number=number,
        )

    def _answer(self, capture: Capture) -> tuple[Any, Any, bool]:
        """(response, events, complete) of what came back, as far as it can be read."""
        body = capture.response
        if capture.events is not None:
            return None, capture.events, capture.complete
        if not isinstance(body, (str, bytes)):
            return body if isinstance(body, (dict, list)) else None, None, capture.complete
        try:
            body = _plain(body, capture.answered)
            if capture.answered.get("content-type", "").startswith(_AWS):
                return None, aws_events(body), capture.complete
            if is_events(body):
                payloads, lost = as_payloads(body)
                return None, payloads, capture.complete and not lost
            parsed = as_json(body) if body.strip() else None
        except Unread:
            # an error page of a gateway in front of the provider is one that says nothing of seals
            self._passed.bodies += capture.status in (None, 200)
            return None, None, capture.complete
        # Gemini streams a JSON array where it is not asked for an event stream
        return (None, parsed, True) if isinstance(parsed, list) else (parsed, None, True)


def _asks(api: Api, request: Any) -> bool:
    """Whether the body of a request is one of an API."""
    return dialects()[api].asks(_mapping(request))


def _posts(capture: Capture) -> bool:
    return capture.method.upper() == "POST"


def _split(url: str) -> Url:
    try:
        return Url.of(url)
    except ValueError:
        return Url("", "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(body: Any, headers: Mapping[str, str]) -> Any:
    """The request's JSON, None where it was not kept.

    Raises Unread where it is no JSON.
    """
    if not isinstance(body, (str, bytes)):
        return body
    plain = _plain(body, headers)
    return as_json(plain) if plain.strip() else None


def _plain(body: str | bytes, headers: Mapping[str, str]) -> bytes:
    """A body without its content-encoding. Many recorders decode it and keep the header.

    Raises Unread where it cannot be undone.
    """
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    encoding = headers.get("content-encoding", "").strip().lower()
    magic = _ENCODINGS.get(encoding)
    if encoding in ("", "identity") or (magic and not body.startswith(magic)):
        return body
    if body[:64].lstrip()[:1] in (b"{", b"[") or is_events(body):
        return body
    plain = decoded(body, encoding)
    if plain is None:
        raise Unread("encoding")
    return plain
