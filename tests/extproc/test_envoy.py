"""A real Envoy between a client and an upstream, and the processor beside it.

Run by `.ci/run gateway`, which installs Envoy; elsewhere what needs it is skipped. What needs no
Envoy calls the service as Envoy does, by gRPC.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from otel_sealed.extproc import messages as pb
from otel_sealed.extproc.server import Server
from otel_sealed.http.observer import Observer
from otel_sealed.telemetry.settings import Settings
from tests.extproc.test_stream import ANSWER, REQUEST
from tests.proxy.test_server import EVENTS, HERE, RAW, REPLY, Upstream, parted, post, watched

TREE = Path(__file__).parents[2]
ENVOY = shutil.which("envoy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
envoy = pytest.mark.skipif(ENVOY is None, reason="Envoy is not installed")


# ------------------------------------------------------------------------------- by gRPC alone


def headers(values: dict[str, str]) -> Any:
    pairs = [pb.HeaderValue(key=k, raw_value=v.encode()) for k, v in values.items()]
    return pb.HttpHeaders(headers=pb.HeaderMap(headers=pairs))


def messages(*, observes: bool, answer: bytes = REPLY, asked: bytes = RAW) -> list[Any]:
    mode = {"observability_mode": observes}
    return [
        pb.ProcessingRequest(request_headers=headers(REQUEST), **mode),
        pb.ProcessingRequest(request_body=pb.HttpBody(body=asked, end_of_stream=True), **mode),
        pb.ProcessingRequest(response_headers=headers(ANSWER), **mode),
        pb.ProcessingRequest(response_body=pb.HttpBody(body=answer, end_of_stream=True), **mode),
    ]


async def processed(observer: Observer, sent: list[Any]) -> list[Any]:
    server = Server(observer)
    port = await server.start(f"{HERE}:0")
    try:
        async with grpc.aio.insecure_channel(f"{HERE}:{port}") as channel:
            call = channel.stream_stream(
                f"/{pb.SERVICE}/{pb.METHOD}",
                request_serializer=pb.ProcessingRequest.SerializeToString,
                response_deserializer=pb.ProcessingResponse.FromString,
            )
            return [answer async for answer in call(iter(sent))]
    finally:
        await server.stop()


@pytest.mark.parametrize("observes", [True, False])
def test_a_message_is_answered_only_where_the_gateway_waits_for_it(observes: bool) -> None:  # noqa: FBT001
    with watched("extproc") as seen:
        answers = asyncio.run(processed(seen.observer, messages(observes=observes)))
    kinds = [] if observes else ["request_headers", "request_body"]
    kinds += [] if observes else ["response_headers", "response_body"]
    assert [answer.WhichOneof("response") for answer in answers] == kinds
    assert [span.name for span in seen.spans] == ["chat claude-opus-4-6"]
    assert (seen.observer.judged, seen.observer.held.bytes) == (1, 0)


def test_what_was_torn_is_counted_and_not_judged() -> None:
    with watched("extproc") as seen:
        asyncio.run(processed(seen.observer, messages(observes=True)[:3]))
    assert (seen.spans, seen.observer.judged, seen.observer.missed) == ((), 0, 1)


@pytest.mark.parametrize("faithful", [True, False])
def test_a_conversation_over_two_replicas_is_one(faithful: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """They share a ledger; what one received the other knows, also when the first is gone."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    said = {**json.loads(REPLY), "stop_reason": "tool_use"}
    said["content"] = [*said["content"], call]
    shared = Settings(ledger=f"sqlite:///{tmp_path}/ledger.sqlite")
    with watched("extproc", shared) as one:
        first = messages(observes=True, answer=json.dumps(said).encode())
        asyncio.run(processed(one.observer, first))
    back = said["content"] if faithful else [call]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    asked = json.loads(RAW)
    asked["messages"] += [
        {"role": "assistant", "content": back},
        {"role": "user", "content": [result]},
    ]
    with watched("extproc", shared) as two:
        again = messages(observes=True, asked=json.dumps(asked, ensure_ascii=False).encode())
        asyncio.run(processed(two.observer, again))
    (span,) = two.spans
    attributes = dict(span.attributes or {})
    assert attributes["otel_sealed.verdict"] == ("ok" if faithful else "breaks")
    assert "unknown" not in str(attributes.get("otel_sealed.findings", ""))


# ------------------------------------------------------------------------------- by a real Envoy


def free_port() -> int:
    with socket.create_server((HERE, 0)) as found:
        return int(found.getsockname()[1])


def listens(port: int) -> bool:
    """Whether somebody does. Raises OSError where nobody does."""
    with socket.create_connection((HERE, port), 1):
        return True


class Gateway:
    """Envoy with our filter from `deploy/envoy`, and the processor as a process of its own."""

    def __init__(self, folder: Path, upstream: Upstream) -> None:
        self.folder = folder
        self.port, self.listen = free_port(), free_port()
        text = (TREE / "deploy" / "envoy" / "envoy.yaml").read_text("utf-8")
        text = text.replace("port_value: 10000", f"port_value: {self.port}")
        text = text.replace("port_value: 50051", f"port_value: {self.listen}")
        text = text.replace(
            "address: upstream.example, port_value: 443",
            f"address: {HERE}, port_value: {upstream.port}",
        )
        (folder / "envoy.yaml").write_text(text, "utf-8")
        self.processor = self._processor()
        command = [
            str(ENVOY),
            "-c",
            str(folder / "envoy.yaml"),
            "-l",
            "error",
            "--concurrency",
            "1",
        ]
        command += ["--base-id", str(self.port)]
        self.envoy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for port in (self.port, self.listen):
            self._until(partial(listens, port))

    def _processor(self) -> subprocess.Popen[bytes]:
        code = "import sys; from otel_sealed.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "extproc", "--listen", f"{HERE}:{self.listen}"]
        environ = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**environ, "PYTHONPATH": str(TREE)},
            stderr=subprocess.DEVNULL,
        )

    def _until(self, holds: Any) -> None:
        for _ in range(300):
            try:
                if holds():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise TimeoutError

    def spans(self, count: int) -> list[dict[str, Any]]:
        """The attributes of the spans in the record, once there are so many."""
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            found.clear()
            for path in sorted((self.folder / ".otel-sealed").glob("traces-*.jsonl")):
                for line in path.read_text("utf-8").splitlines():
                    for scope in json.loads(line)["resourceSpans"][0]["scopeSpans"]:
                        found.extend(scope["spans"])
            return len(found) >= count

        self._until(enough)
        return [{a["key"]: a["value"] for a in span["attributes"]} for span in found]

    def stop(self) -> None:
        self.envoy.terminate()
        self.envoy.wait(20)
        self.processor.send_signal(signal.SIGTERM)
        self.processor.wait(40)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    made = Upstream()
    yield made
    made.stop()


@pytest.fixture
def gateway(tmp_path: Path, upstream: Upstream) -> Iterator[Gateway]:
    made = Gateway(tmp_path, upstream)
    yield made
    made.stop()


@envoy
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_bytes_pass_and_are_judged(gateway: Gateway, upstream: Upstream, encoding: str) -> None:
    packed = gzip.compress(REPLY) if encoding else REPLY
    more = [f"content-encoding: {encoding}"] if encoding else []
    upstream.answers(packed, "content-type: application/json", *more)
    found = post(gateway.port, "/v1/messages", RAW, "x-api-key: k")
    assert parted(found)[1] == packed
    assert parted(upstream.seen[0])[1] == RAW
    (span,) = gateway.spans(1)
    assert span["otel_sealed.received.count"] == {"intValue": "1"}


@envoy
def test_a_stream_passes_and_is_judged(gateway: Gateway, upstream: Upstream) -> None:
    upstream.streams(*EVENTS)
    assert parted(post(gateway.port, "/v1/messages", RAW))[1] == b"".join(EVENTS)
    assert len(gateway.spans(1)) == 1


@envoy
def test_with_the_processor_dead_calls_still_answer(gateway: Gateway, upstream: Upstream) -> None:
    gateway.processor.kill()
    gateway.processor.wait(20)
    upstream.answers(REPLY, "content-type: application/json")
    found = post(gateway.port, "/v1/messages", RAW)
    assert found.startswith(b"HTTP/1.1 200 ")
    assert parted(found)[1] == REPLY


@envoy
def test_a_processor_that_comes_back_sees_the_next_call(
    gateway: Gateway, upstream: Upstream
) -> None:
    gateway.processor.kill()
    gateway.processor.wait(20)
    gateway.processor = gateway._processor()
    gateway._until(partial(listens, gateway.listen))
    upstream.answers(REPLY, "content-type: application/json")
    for _ in range(3):  # Envoy tries a lost connection anew after a moment
        post(gateway.port, "/v1/messages", RAW)
        time.sleep(1)
    assert gateway.spans(1)
