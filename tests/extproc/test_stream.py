"""What one exchange shows a processor: judged only if both of its ends were seen."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from otel_sealed.extproc.stream import Exchange
from otel_sealed.http.observer import Held, Seen
from tests.extproc.test_frames import connected

REQUEST = {
    ":method": "POST",
    ":scheme": "https",
    ":authority": "api.anthropic.com",
    ":path": "/v1/messages",
    "content-type": "application/json",
}
ANSWER = {":status": "200", "content-type": "application/json"}


def headers(values: dict[str, str], *, end: bool = False) -> Any:
    pairs = [SimpleNamespace(key=k, value="", raw_value=v.encode()) for k, v in values.items()]
    return SimpleNamespace(headers=SimpleNamespace(headers=pairs), end_of_stream=end)


def body(data: bytes, *, end: bool = False) -> Any:
    return SimpleNamespace(body=data, end_of_stream=end)


def shown(*messages: tuple[str, Any], close: bool = True) -> list[Seen]:
    handed: list[Seen] = []
    exchange = Exchange(Held(), handed.append)
    for kind, part in messages:
        exchange.take(kind, part)
    if close:
        exchange.close()
    return handed


WHOLE: tuple[tuple[str, Any], ...] = (
    ("request_headers", headers(REQUEST)),
    ("request_body", body(b'{"a"')),
    ("request_body", body(b":1}", end=True)),
    ("response_headers", headers(ANSWER)),
    ("response_body", body(b"x")),
    ("response_body", body(b"y", end=True)),
)


def test_a_whole_exchange_is_handed_over_at_its_end_and_once() -> None:
    (before,) = shown(*WHOLE, close=False)
    (seen,) = shown(*WHOLE)
    assert (seen.request.whole(), seen.response.whole()) == (b'{"a":1}', b"xy")
    assert (seen.url, seen.status, seen.whole, seen.complete) == (
        *("https://api.anthropic.com/v1/messages", 200),
        *(True, True),
    )
    assert before.whole


def test_an_answer_that_comes_before_the_request_has_ended_ends_with_it() -> None:
    late = (*WHOLE[:2], *WHOLE[3:], WHOLE[2])
    (seen,) = shown(*late, close=False)
    assert (seen.request.whole(), seen.whole) == (b'{"a":1}', True)


@pytest.mark.parametrize("missing", [2, 5])
def test_an_exchange_without_one_of_its_ends_is_torn(missing: int) -> None:
    (seen,) = shown(*(one for at, one in enumerate(WHOLE) if at != missing))
    assert (seen.whole, seen.complete) == (False, False)


def test_a_reply_without_a_body_ends_with_its_headers() -> None:
    (seen,) = shown(*WHOLE[:3], ("response_headers", headers({":status": "204"}, end=True)))
    assert (seen.status, seen.whole, seen.response.whole()) == (204, True, b"")


def test_trailers_end_a_body() -> None:
    ends = (*WHOLE[:5], ("response_trailers", SimpleNamespace()))
    (seen,) = shown(*ends, close=False)
    assert seen.whole


def test_the_messages_of_a_websocket_are_exchanges() -> None:
    client, server, extensions = connected(deflate=True, keeps=True)
    upgraded = {":status": "101", "sec-websocket-extensions": extensions}
    asked = json.dumps({"type": "response.create", "model": "gpt-5.2", "input": "hé"})
    told = ['{"type":"response.created"}', '{"type":"response.completed","response":{}}']
    client.send_text(asked.encode())
    for text in told:
        server.send_text(text.encode())
    sent, came = (b"".join(end.data_to_send()) for end in (client, server))
    handed = shown(
        ("request_headers", headers({**REQUEST, ":path": "/v1/responses", ":method": "GET"})),
        ("response_headers", headers(upgraded)),
        ("request_body", body(sent[:5])),
        ("request_body", body(sent[5:])),
        ("response_body", body(came[:9])),
        ("response_body", body(came[9:])),
        close=False,
    )
    (seen,) = handed
    assert (seen.method, seen.messages, seen.complete) == ("POST", True, True)
    assert (seen.request.whole().decode(), [x.decode() for x in seen.response.parts]) == (
        asked,
        told,
    )


def test_frames_that_are_none_end_what_is_under_way_and_raise_nothing() -> None:
    client, _, _ = connected(deflate=False, keeps=True)
    client.send_text(b'{"type":"response.create"}')
    handed = shown(
        ("request_headers", headers(REQUEST)),
        ("response_headers", headers({":status": "101"})),
        ("request_body", body(b"".join(client.data_to_send()))),
        ("response_body", body(b"\x81\x7f" + b"\xff" * 8)),
        ("response_body", body(b"more")),
    )
    assert [seen.complete for seen in handed] == [False]


def test_nothing_is_held_once_an_exchange_is_released() -> None:
    held = Held()
    handed: list[Seen] = []
    exchange = Exchange(held, handed.append)
    for kind, part in WHOLE:
        exchange.take(kind, part)
    assert held.bytes == 9
    handed[0].release()
    assert held.bytes == 0
