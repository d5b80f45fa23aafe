"""Makes tests/data/evidence: one run of the real SDKs, recorded by every recorder at once.

    python tests/golden/evidence.py MITMDUMP

The SDKs talk through vcrpy to `mitmdump` (11 or newer), which gzips what the strict provider
answers and keeps flows and a HAR of the same calls. `transcript.jsonl` is what really crossed the
wire, from the provider's own log; `browser.har` has the same calls in the shape browsers export.
Every value is made up by the strict provider.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.error import URLError

import vcr  # type: ignore[import-untyped] # it has no types

from otel_sealed.testing import StrictProvider
from otel_sealed.testing.hosts import Scene, hosts, on_gemini, on_openai
from otel_sealed.testing.strict import Exchange

TARGET = Path(__file__).parents[1] / "data" / "evidence"
HOSTS = ("anthropic-type-filter", "openai-streaming", "gemini-streaming")
API = {"anthropic": "messages", "openai": "responses", "gemini": "generateContent"}
ADDON = """
def response(flow):
    flow.response.encode("gzip")
"""


class Behind:
    """A strict provider behind a proxy: its URLs are the proxy's."""

    def __init__(self, url: str) -> None:
        self.anthropic_url = self.gemini_url = url
        self.openai_url = f"{url}/v1"


def main(mitmdump: str) -> None:
    os.environ.update(no_proxy="127.0.0.1", NO_PROXY="127.0.0.1")
    TARGET.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = []
    for serializer in ("yaml", "json"):  # the second run overwrites flows and HAR, and differs not
        with StrictProvider(seed=11) as provider, tempfile.TemporaryDirectory() as folder:
            record(mitmdump, provider, Path(folder), serializer)
            lines = [
                json.dumps(line(exchange)) for exchange in provider.exchanges if ours(exchange)
            ]
            (TARGET / "transcript.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
            entries = [entry(exchange) for exchange in provider.exchanges]
    log = {"version": "1.2", "creator": {"name": "WebInspector", "version": "537.36"}, "pages": []}
    har = {"log": {**log, "entries": entries}}
    (TARGET / "browser.har").write_text(json.dumps(har, indent=2), "utf-8")


def record(mitmdump: str, provider: StrictProvider, folder: Path, serializer: str) -> None:
    addon = folder / "addon.py"
    addon.write_text(ADDON, "utf-8")
    for name in ("mitmproxy.flows", "mitmproxy.har", f"vcrpy.{serializer}"):
        (TARGET / name).unlink(missing_ok=True)
    port = 20_000 + os.getpid() % 20_000
    proxy = subprocess.Popen(
        [
            mitmdump,
            *("--mode", f"reverse:{provider.base_url}", "--listen-host", "127.0.0.1"),
            *("-p", str(port), "-w", str(TARGET / "mitmproxy.flows"), "-s", str(addon), "-q"),
            *("--set", f"hardump={TARGET / 'mitmproxy.har'}", "--set", f"confdir={folder}"),
        ]
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait(url)
        cassette = TARGET / f"vcrpy.{serializer}"
        options: dict[str, Any] = {
            "serializer": serializer,
            "filter_headers": ["x-api-key", "x-goog-api-key"],
            # bytes have no place in JSON
            "decode_compressed_response": serializer == "json",
        }
        with vcr.use_cassette(str(cassette), **options):
            play(url)
    finally:
        proxy.terminate()
        proxy.wait(30)


def wait(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"{url}/up")  # noqa: S310 - loopback
        except urllib.error.HTTPError:
            return
        except URLError:
            time.sleep(0.2)
    raise SystemExit("the proxy does not answer")


def play(url: str) -> None:
    """Two calls of each streaming host suffice, and an exchange that is no call of a model."""
    scene = Scene(Behind(url))  # type: ignore[arg-type] # all that a host asks of it
    with mock.patch.object(on_openai, "REQUESTS", 2), mock.patch.object(on_gemini, "REQUESTS", 2):
        for host in hosts():
            if host.name in HOSTS:
                with suppress(Exception):  # the first one ends with a refusal
                    host.run(scene)
    beacon = urllib.request.Request(f"{url}/v1/events", data=b'{"event": "clicked"}')  # noqa: S310
    with suppress(URLError):
        urllib.request.urlopen(beacon)  # noqa: S310 - loopback


# --------------------------------------------------------------------------- what was on the wire


def ours(exchange: Exchange) -> bool:
    return bool(exchange.dialect)


def line(exchange: Exchange) -> dict[str, Any]:
    body = exchange.response_body.decode()
    events = [json.loads(x[5:]) for x in body.splitlines() if x.startswith("data:")]
    return {
        "provider": {"gemini": "google"}.get(exchange.dialect, exchange.dialect),
        "api": API[exchange.dialect],
        "model": on_gemini.MODEL if exchange.dialect == "gemini" else None,
        "conversation": exchange.dialect,
        "request": json.loads(exchange.request_body),
        "response": None if exchange.stream else json.loads(body),
        "events": events if exchange.stream else None,
        "status": exchange.status,
    }


def entry(exchange: Exchange) -> dict[str, Any]:
    """An entry as browsers write it: bodies decoded, what is no plain text in base64."""
    text: dict[str, Any] = {"text": exchange.response_body.decode()}
    if exchange.stream:
        encoded = base64.b64encode(exchange.response_body).decode()
        text = {"text": encoded, "encoding": "base64"}
    kind = exchange.response_headers["content-type"]
    return {
        "startedDateTime": "2026-11-29T09:00:00.000Z",
        "time": 12.5,
        "request": {
            "method": exchange.method,
            "url": f"https://gateway.example{exchange.path}",
            "httpVersion": "http/2.0",
            "headers": [{"name": "Content-Type", "value": "application/json"}],
            "queryString": [],
            "cookies": [],
            "headersSize": -1,
            "bodySize": len(exchange.request_body),
            "postData": {"mimeType": "application/json", "text": exchange.request_body.decode()},
        },
        "response": {
            "status": exchange.status,
            "statusText": "",
            "httpVersion": "http/2.0",
            "headers": [
                {"name": "content-type", "value": kind},
                {"name": "content-encoding", "value": "gzip"},
            ],
            "cookies": [],
            "content": {"size": len(exchange.response_body), "mimeType": kind, **text},
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0.1, "wait": 12.0, "receive": 0.4},
    }


if __name__ == "__main__":
    main(sys.argv[1])
