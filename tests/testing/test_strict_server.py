"""The strict provider as a server: what it logs, how it streams, what a test can make go wrong."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import closing
from http.client import HTTPConnection, IncompleteRead
from typing import TYPE_CHECKING, Any

import pytest

from otel_sealed.testing import StrictProvider, run
from otel_sealed.testing.strict import sse
from otel_sealed.testing.strict.mint import Mint
from otel_sealed.testing.strict.script import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE: dict[str, Any] = {
    "model": "claude-opus-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Go."}],
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
}
RESPONSE = {"model": "gpt-5.6-sol", "input": "Go."}
CONTENT = {"contents": [{"parts": [{"text": "Go."}]}]}
CALLS = {
    "anthropic": ("/v1/messages", {**MESSAGE, "stream": True}),
    "openai": ("/v1/responses", {**RESPONSE, "stream": True}),
    "gemini": ("/v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse", CONTENT),
}


@pytest.fixture(name="provider")
def _provider() -> Iterator[StrictProvider]:
    with StrictProvider() as provider:
        yield provider


def connect(provider: StrictProvider) -> HTTPConnection:
    return HTTPConnection(provider.base_url.removeprefix("http://"), timeout=10)


def post(provider: StrictProvider, path: str, body: Any) -> tuple[int, bytes]:
    with closing(connect(provider)) as client:
        client.request("POST", path, json.dumps(body))
        reply = client.getresponse()
        return reply.status, reply.read()


def events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]


# ------------------------------------------------------------------------------------- minting


def test_seals_are_awkward() -> None:
    """Every seal has `+`, `/` and `=`, decodes, and is 300 to 4000 characters long."""
    mint = Mint()
    for _ in range(200):
        seal = mint.seal("anthropic", "kind")
        assert {"+", "/", "="} <= set(seal)
        assert 300 <= len(seal) <= 4000
        assert base64.b64encode(base64.b64decode(seal, validate=True)).decode() == seal


def test_minting_repeats_with_the_seed() -> None:
    """The same seed mints the same, another seed something else, and nothing twice."""
    one, two, other = (Mint(seed) for seed in (1, 1, 2))
    first = [one.seal("openai", "kind") for _ in range(50)]
    assert first == [two.seal("openai", "kind") for _ in range(50)]
    assert not set(first) & {other.seal("openai", "kind") for _ in range(50)}
    assert len(set(first)) == 50


def test_a_seal_is_known_by_kind_and_issuer() -> None:
    """A value is known only as what it was minted as."""
    mint = Mint()
    seal = mint.seal("gemini", "kind", issuer="vertex")
    assert mint.known("kind", seal, "vertex") is not None
    assert mint.known("kind", seal, "developer") is None
    assert mint.known("other", seal, "vertex") is None


def test_arguments_follow_the_schema() -> None:
    """Arguments satisfy required properties, alternatives, references and types."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "INTEGER", "minimum": 3},
            "flag": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
            "unit": {"enum": ["c", "f"]},
            "place": {"$ref": "#/$defs/Place"},
            "tags": {"type": "array", "items": {"type": ["null", "string"]}},
            "left_out": {"type": "string"},
        },
        "required": ["name", "count", "flag", "unit", "place", "tags"],
        "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
    }
    assert arguments(schema, str.upper) == {
        "name": "NAME",
        "count": 3,
        "flag": True,
        "unit": "c",
        "place": {"lat": 1},
        "tags": ["TAGS"],
    }


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (None, {"query": "QUERY"}),
        ({"type": "object"}, {"query": "QUERY"}),
        ({"type": "object", "properties": {}}, {}),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, {"a": "A"}),
    ],
)
def test_arguments_of_bare_schemas(schema: Any, made: dict[str, Any]) -> None:
    """Without properties there is one argument, with none declared there is none."""
    assert arguments(schema, str.upper) == made


def test_arguments_of_a_schema_that_contains_itself_end() -> None:
    """A recursive schema is filled to some depth and no further."""
    schema = {"properties": {"next": {"$ref": "#"}}}
    assert '{"next": {}}' in json.dumps(arguments(schema, str.upper))


# ----------------------------------------------------------------------------------- streaming


def test_a_frame_is_written_in_pieces_that_break_seals() -> None:
    """No piece can hold a whole seal, and the pieces are the frame."""
    seal = Mint().seal("anthropic", "kind")
    frame = sse.named({"type": "x", "signature": seal})
    pieces = list(sse.pieces(frame))
    assert b"".join(pieces) == frame
    assert max(len(piece) for piece in pieces) < 300


def test_anthropic_stream_brings_one_signature_just_before_the_stop(
    provider: StrictProvider,
) -> None:
    """One `signature_delta` a block, last before its stop (A4); redacted data in the start."""
    _, body = post(provider, *CALLS["anthropic"])
    told = [e for e in events(body) if e.get("index") == 0]
    deltas = [e["delta"]["type"] for e in told if e["type"] == "content_block_delta"]
    assert deltas[-1] == "signature_delta"
    assert set(deltas[:-1]) == {"thinking_delta"}
    assert told[-1]["type"] == "content_block_stop"


def test_anthropic_redacted_block_comes_complete(provider: StrictProvider) -> None:
    """Redacted data stands in `content_block_start`, with no delta after it."""
    result = {"type": "tool_result", "tool_use_id": "toolu_x", "content": "ok"}
    messages = [*MESSAGE["messages"], {"role": "user", "content": [result]}]
    _, body = post(provider, "/v1/messages", {**MESSAGE, "messages": messages, "stream": True})
    told = [e for e in events(body) if e.get("index") == 1]
    assert [e["type"] for e in told] == ["content_block_start", "content_block_stop"]
    assert told[0]["content_block"]["data"] == provider.minted[1].value


@pytest.mark.parametrize("dialect", CALLS)
def test_whole_and_streamed_exchanges_are_logged_alike(
    provider: StrictProvider, dialect: str
) -> None:
    """The log has the bytes as received, and as sent without the chunking."""
    path, body = CALLS[dialect]
    _, received = post(provider, path, body)
    (exchange,) = provider.exchanges
    assert exchange.dialect == dialect
    assert exchange.path == path
    assert exchange.request_body == json.dumps(body).encode()
    assert exchange.response_body == received
    assert exchange.stream
    assert exchange.complete


@pytest.mark.parametrize("dialect", CALLS)
def test_cut_stream_breaks_off(provider: StrictProvider, dialect: str) -> None:
    """The connection ends after so many events, without the chunking's end; the next is whole."""
    provider.cut_next_stream(after_events=1)
    with pytest.raises(IncompleteRead) as caught:
        post(provider, *CALLS[dialect])
    assert len(events(caught.value.partial)) == 1
    assert post(provider, *CALLS[dialect])[0] == 200
    assert [e.complete for e in provider.exchanges] == [False, True]


def test_cut_waits_for_a_stream(provider: StrictProvider) -> None:
    """A whole reply does not use a planned cut up."""
    provider.cut_next_stream(after_events=0)
    assert post(provider, "/v1/messages", MESSAGE)[0] == 200
    with pytest.raises(IncompleteRead):
        post(provider, *CALLS["openai"])


# --------------------------------------------------------------------------------------- knobs


def test_planned_failures_come_first(provider: StrictProvider) -> None:
    """So many requests fail as planned, without being looked at; then all is as before."""
    provider.fail_next(503, {"error": "busy"}, times=2, headers={"retry-after": "0"})
    replies = [post(provider, "/v1/messages", MESSAGE) for _ in range(3)]
    assert [status for status, _ in replies] == [503, 503, 200]
    assert replies[0][1] == b'{"error":"busy"}'
    assert provider.exchanges[0].response_headers["retry-after"] == "0"
    assert len(provider.minted) == 1


@pytest.mark.parametrize(
    ("dialect", "status", "word"),
    [
        ("anthropic", 529, b"overloaded_error"),
        ("openai", 500, b"server_error"),
        ("gemini", 503, b"UNAVAILABLE"),
    ],
)
def test_planned_failure_without_a_body_is_the_dialects_own(
    provider: StrictProvider, dialect: str, status: int, word: bytes
) -> None:
    """A failure can be left to the dialect to word."""
    provider.fail_next(status)
    found, body = post(provider, *CALLS[dialect])
    assert found == status
    assert word in body


def test_gateway_page_is_sent_as_it_is(provider: StrictProvider) -> None:
    """A body may be text that is no JSON."""
    provider.fail_next(502, "<html>Bad Gateway</html>")
    assert post(provider, "/v1/messages", MESSAGE) == (502, b"<html>Bad Gateway</html>")


def test_malformed_reply_is_sent_as_it_is(provider: StrictProvider) -> None:
    """Bytes stand in for a whole reply or a stream; events are framed as the dialect does."""
    provider.malform_next(b'{"id": ')
    provider.malform_next(b"data: nonsense\n\n")
    provider.malform_next([{"type": "ping"}])
    assert post(provider, "/v1/messages", MESSAGE) == (200, b'{"id": ')
    assert post(provider, *CALLS["anthropic"]) == (200, b"data: nonsense\n\n")
    pong = b'event: ping\ndata: {"type":"ping"}\n\n'
    assert post(provider, *CALLS["anthropic"]) == (200, pong)


def test_clear_forgets_log_and_plans_but_not_seals(provider: StrictProvider) -> None:
    """After `clear` the log is empty and nothing is planned; what was minted stays valid."""
    post(provider, "/v1/messages", MESSAGE)
    provider.fail_next(500)
    provider.clear()
    assert provider.exchanges == []
    assert len(provider.minted) == 1
    assert post(provider, "/v1/messages", MESSAGE)[0] == 200


def test_credentials_are_not_logged(provider: StrictProvider) -> None:
    """Neither a header nor a query parameter that holds a key enters the log."""
    with closing(connect(provider)) as client:
        headers = {"X-Goog-Api-Key": "hunter2", "Authorization": "Bearer hunter2", "x-a": "b"}
        path = "/v1beta/models/gemini-3.8-flash:generateContent?key=hunter2&a=b"
        client.request("POST", path, json.dumps(CONTENT), headers)
        client.getresponse().read()
    assert "hunter2" not in repr(provider.exchanges)
    assert provider.exchanges[0].headers["x-a"] == "b"
    assert provider.exchanges[0].path.endswith("?a=b")


# ------------------------------------------------------------------------------------------ HTTP


def test_connection_is_kept_alive(provider: StrictProvider) -> None:
    """Whole replies, streams and refusals follow each other on one connection."""
    with closing(connect(provider)) as client:
        client.connect()
        first = client.sock
        for path, body in [*CALLS.values(), ("/v1/messages", {})]:
            client.request("POST", path, json.dumps(body))
            client.getresponse().read()
            assert client.sock is first
    assert [e.status for e in provider.exchanges] == [200, 200, 200, 400]


def test_chunked_request_is_read(provider: StrictProvider) -> None:
    """A request body may come in chunks of unknown length."""
    body = json.dumps(MESSAGE).encode()
    with closing(connect(provider)) as client:
        client.request("POST", "/v1/messages", iter([body[:7], body[7:]]), encode_chunked=True)
        assert client.getresponse().status == 200
    assert provider.exchanges[0].request_body == body


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
@pytest.mark.parametrize("dialect", CALLS)
def test_body_that_is_no_object_is_refused(
    provider: StrictProvider, dialect: str, body: bytes
) -> None:
    """Every dialect answers 400 to what is no JSON object, in its own shape."""
    with closing(connect(provider)) as client:
        client.request("POST", CALLS[dialect][0], body)
        reply = client.getresponse()
        assert reply.status == 400
        assert json.loads(reply.read())["error"]["message"]


@pytest.mark.parametrize("path", ["/", "/v1/completions", "/v1/messages/nothing"])
def test_unknown_path_is_not_found(provider: StrictProvider, path: str) -> None:
    """What it does not speak is a 404."""
    assert post(provider, path, {})[0] == 404


def test_stops_with_connections_open() -> None:
    """Stopping waits for no client, and the port is free afterwards."""
    with StrictProvider() as provider:
        client = connect(provider)
        client.request("POST", "/v1/messages", json.dumps(MESSAGE))
        client.getresponse().read()
        port = int(provider.base_url.rsplit(":", 1)[1])
    with closing(client), StrictProvider(port=port) as again:
        assert post(again, "/v1/messages", MESSAGE)[0] == 200


def test_parallel_conversations_mint_no_value_twice(provider: StrictProvider) -> None:
    """Many clients at once get values of their own, and the log has all of them."""
    threads = [
        threading.Thread(target=post, args=(provider, *CALLS[dialect])) for dialect in [*CALLS] * 6
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.status for e in provider.exchanges] == [200] * 18
    assert len({seal.value for seal in provider.minted}) == 18


def test_run_serves_until_told() -> None:
    """`run` says where it listens, and serves until it is told to end."""
    ready, until, urls = threading.Event(), threading.Event(), list[str]()

    def on_ready(url: str) -> None:
        urls.append(url)
        ready.set()

    thread = threading.Thread(target=run, args=(0,), kwargs={"on_ready": on_ready, "until": until})
    thread.start()
    assert ready.wait(10)
    with closing(HTTPConnection(urls[0].removeprefix("http://"), timeout=10)) as client:
        client.request("POST", "/v1/responses", json.dumps(RESPONSE))
        assert client.getresponse().status == 200
    until.set()
    thread.join(10)
    assert not thread.is_alive()


def test_urls_fit_the_sdks(provider: StrictProvider) -> None:
    """Each SDK gets the base URL it adds its own path to."""
    assert provider.anthropic_url == provider.base_url
    assert provider.openai_url == f"{provider.base_url}/v1"
    assert provider.gemini_url == provider.base_url


def test_base_url_needs_a_running_server() -> None:
    """Before it starts there is no URL to give."""
    with pytest.raises(RuntimeError, match="not running"):
        _ = StrictProvider().base_url
