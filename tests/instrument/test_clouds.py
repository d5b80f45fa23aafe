"""Clients for clouds: what their URLs and headers say, and what of it tells accounts apart."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from otel_sealed.instrument.build import MAX_ACCOUNTS, once_each
from otel_sealed.instrument.http import HttpSent
from otel_sealed.wire import Api

if TYPE_CHECKING:
    from otel_sealed.instrument import Handle
    from tests.instrument.conftest import Recorder, Spans, Wire

pytestmark = pytest.mark.usefixtures("handle")

ASK: dict[str, Any] = {"model": "claude-x", "max_tokens": 9, "messages": []}
MESSAGE = b'{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[]}'
RESPONSE = json.dumps({"id": "resp_1", "object": "response", "output": []}).encode()
EVENTS = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


def test_vertex(handle: Handle, tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """On Vertex the model is read from the URL, and the project is the account."""
    wire.answers(MESSAGE)
    client = anthropic.AnthropicVertex(
        region="r", project_id="p", access_token="t", base_url=wire.url
    )
    with client:
        client.messages.create(**ASK)
        wire.replies[:] = []
        wire.streams(EVENTS)
        assert len(list(client.messages.create(**ASK, stream=True))) == 1
    whole, stream = tracker.exchanges
    assert [s.path.rpartition(":")[2] for s in wire.seen] == ["rawPredict", "streamRawPredict"]
    assert (whole.api, whole.model, stream.model) == (Api.MESSAGES, "claude-x", "claude-x")
    assert [e.request for e in tracker.exchanges] == [s.body for s in wire.seen]
    assert (whole.response, stream.events) == (MESSAGE, EVENTS)
    assert whole.account == stream.account == handle.runtime.account("projects/p")
    assert spans.names == ["chat claude-x"] * 2


def test_bedrock(tracker: Recorder, wire: Wire) -> None:
    """On Bedrock the model is read from the URL; signed requests name no account."""
    pytest.importorskip("boto3")
    wire.answers(MESSAGE)
    client = anthropic.AnthropicBedrock(
        aws_access_key="a", aws_secret_key="s", aws_region="r", base_url=wire.url
    )
    with client:
        client.messages.create(**ASK)
    seen = tracker.one
    assert (seen.api, seen.model, seen.account) == (Api.MESSAGES, "claude-x", None)
    assert (seen.request, seen.response) == (wire.seen[0].body, MESSAGE)


def test_azure(handle: Handle, tracker: Recorder, wire: Wire) -> None:
    """On Azure a response is one exchange; its key tells the account."""
    wire.answers(RESPONSE)
    client = openai.AzureOpenAI(
        api_key="azure-key", azure_endpoint=wire.url, api_version="2025-04-01-preview"
    )
    with client:
        client.responses.create(model="deployment", input="x")
    seen = tracker.one
    assert (seen.api, seen.request) == (Api.RESPONSES, wire.seen[0].body)
    assert seen.account == handle.runtime.account("azure-key")


def test_old_httpx_client(tracker: Recorder, wire: Wire) -> None:
    """A client object of the other httpx works as well."""
    httpx: Any = pytest.importorskip("httpx")
    wire.streams(b"data: [DONE]\n\n")
    with openai.OpenAI(api_key="k", base_url=wire.url, http_client=httpx.Client()) as client:
        assert list(client.responses.create(model="m", input="x", stream=True)) == []
    assert tracker.one.events == b"data: [DONE]\n\n"


def sent(path: str = "/v1/messages", **headers: str) -> HttpSent:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpSent(
        SimpleNamespace(
            url=SimpleNamespace(
                path=path.partition("?")[0],
                query=path.partition("?")[2].encode(),
                host="h",
                port=None,
            ),
            headers=named,
            content=b"",
        )
    )


@pytest.mark.parametrize(
    ("headers", "credential"),
    [
        ({"x_api_key": "sk-ant-api03-x"}, "sk-ant-api03-x"),
        ({"api_key": "azure"}, "azure"),
        ({"authorization": "Bearer sk-proj-x"}, "sk-proj-x"),
        ({"authorization": "Bearer sk-ant-oat01-x"}, None),
        ({"authorization": "Bearer eyJhbGciOi.eyJzdWIi.c2ln"}, None),
        ({"authorization": "Bearer ya29.x"}, None),
        ({"authorization": "AWS4-HMAC-SHA256 Credential=AKIA/1/r/s"}, None),
        ({"authorization": "Bearer "}, None),
        ({}, None),
    ],
)
def test_credentials(headers: dict[str, str], credential: str | None) -> None:
    """Only what does not rotate by itself tells accounts apart."""
    assert sent(**headers).credential() == credential


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1/messages", None),
        ("/model/us.anthropic.claude-x-v1:0/invoke", "us.anthropic.claude-x-v1:0"),
        ("/model/claude-x/invoke-with-response-stream", "claude-x"),
        (
            "/v1/projects/p/locations/r/publishers/anthropic/models/claude-x@1:rawPredict",
            "claude-x@1",
        ),
        ("/openai/responses", None),
    ],
)
def test_models_of_urls(path: str, model: str | None) -> None:
    """The model is read from the URL where the body has none."""
    assert sent(path).where().model == model


def test_betas() -> None:
    """Beta features are the parts of the header."""
    assert sent(anthropic_beta="a-1, b-2,,").betas() == ("a-1", "b-2")
    assert sent().betas() == ()


def test_bodies() -> None:
    """A compressed request is read decompressed, a streamed one not at all."""
    import zlib

    request: Any = SimpleNamespace(headers={"content-encoding": "deflate"})
    request.content = zlib.compress(b"{}")
    assert HttpSent(request).body() == b"{}"

    class Streamed:
        headers: dict[str, str] = {}  # noqa: RUF012

        @property
        def content(self) -> bytes:
            raise RuntimeError("RequestNotRead")

    assert HttpSent(Streamed()).body() is None


ARN = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x-v1:0"


@pytest.mark.parametrize(
    ("path", "cloud", "model"),
    [
        ("/model/us.anthropic.claude-x-v1:0/invoke", "bedrock", "us.anthropic.claude-x-v1:0"),
        (f"/model/{ARN}/invoke-with-response-stream", "bedrock", ARN),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:rawPredict",
            "vertex",
            "claude-x@1",
        ),
        ("/openai/deployments/mine/chat/completions?api-version=1", "azure", None),
        ("/openai/responses?api-version=1", "azure", None),
        ("/v1/responses", None, None),
        ("/v1/messages?beta=true", None, None),
    ],
)
def test_paths_tell_the_cloud(path: str, cloud: str | None, model: str | None) -> None:
    """Whatever the host, which may be a gateway's."""
    assert (sent(path).where().cloud, sent(path).where().model) == (cloud, model)


def test_the_stand_in_of_a_credential_is_made_once_and_the_credential_is_not_kept() -> None:
    """A process asks for each credential once; what it remembers holds none of them."""
    asked: list[str] = []

    def account(credential: str) -> str:
        asked.append(credential)
        return f"stand-in {len(asked)}"

    of = once_each(account)
    found = [of("key one"), of("key two"), of("key one")]
    assert found == ["stand-in 1", "stand-in 2", "stand-in 1"]
    assert asked == ["key one", "key two"]
    kept = [cell.cell_contents for cell in of.__closure__ or ()]
    assert not any("key one" in repr(one) for one in kept)


def test_credentials_that_rotate_do_not_fill_the_memory() -> None:
    """Of ever new credentials as many stand-ins are kept as the bound says."""
    of = once_each(str.upper)
    for number in range(3 * MAX_ACCOUNTS):
        of(f"key {number}")
    (known,) = (c.cell_contents for c in of.__closure__ or () if isinstance(c.cell_contents, dict))
    assert len(known) <= MAX_ACCOUNTS
