"""A real Alertmanager on loopback with the supplied configuration, and what it tells whom."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import yaml

from dashboards.alerts.promql import Clock
from dashboards.alerts.render import alertmanager as configuration
from tests.dashboards.prometheus import binary, free_port, process

Labels = Mapping[str, str]
PACKAGE = "prometheus-alertmanager"


class Pager:
    """A webhook receiver: it keeps every notification it is sent."""

    def __init__(self) -> None:
        pager = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                pager.notifications.append((self.path.strip("/"), json.loads(body)))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.notifications: list[tuple[str, dict[str, Any]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path: str) -> str:
        """Where a receiver of this name posts to."""
        return f"http://127.0.0.1:{self._server.server_port}/{path}"

    def firing(self, receiver: str | None = None) -> list[list[dict[str, str]]]:
        """Of each notification that tells of something firing, the labels of what fires."""
        return [
            fires
            for path, told in self.notifications
            if receiver in (None, path)
            if (fires := [a["labels"] for a in told["alerts"] if a["status"] == "firing"])
        ]

    def told(self, *labels: str) -> Counter[tuple[str, ...]]:
        """How often each firing alert was told, by some of its labels."""
        return Counter(
            tuple(alert.get(label, "") for label in labels)
            for fires in self.firing()
            for alert in fires
        )


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """One that is running, as `host:port`."""

    address: str

    def post(self, alerts: Iterable[Labels]) -> None:
        """Tell it of firing alerts, as Prometheus does."""
        body = json.dumps([{"labels": dict(labels)} for labels in alerts]).encode()
        request = urllib.request.Request(
            f"http://{self.address}/api/v2/alerts",
            body,
            {"content-type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=20) as reply:
            assert 200 == reply.status


@contextmanager
def alertmanager(folder: Path, pager: Pager, clock: Clock) -> Iterator[Alertmanager]:
    """The supplied configuration, faster, with the pager for both of its receivers."""
    config = configuration(clock, page=pager.url("page"), ticket=pager.url("ticket"))
    file = folder / "alertmanager.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [
        binary(PACKAGE),
        f"--config.file={file}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    with process(command, folder, f"http://{address}/-/ready"):
        yield Alertmanager(address)
