"""A real Prometheus on loopback, for tests: what it scrapes, what it answers, what rules do.

It is Debian's package `prometheus`; where the binary is missing the tests that ask for it are
skipped, and fail instead where `REQUIRE_PROMETHEUS` is set, as `.ci/run dashboards` does.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

REQUIRE: Final = "REQUIRE_PROMETHEUS"
_READY_S: Final = 30.0
_LOOK_S: Final = 0.05


def binary(name: str = "prometheus", package: str = "") -> str:
    """The path of a program, by name and Debian package. Skips the test without it, or fails it."""
    found = shutil.which(name)
    if found is None:
        reason = f"{name} is not installed; on Debian: apt-get install {package or name}"
        if os.environ.get(REQUIRE):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def free_port() -> int:
    """A port of the loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def eventually(condition: Callable[[], Any], *, what: str, within_s: float = _READY_S) -> Any:
    """The first true answer of `condition`; fails when there is none in time."""
    deadline = time.monotonic() + within_s
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(_LOOK_S)
    return answer


def get_json(url: str) -> Any:
    """JSON of an address of the loopback, also of an answer that is an error."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=20) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)


def reachable(url: str) -> bool:
    """Whether it answers with 200."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@contextmanager
def process(command: Sequence[str], folder: Path, ready: str) -> Iterator[None]:
    """A server with its output in `folder`, from when `ready` answers to the end of the block."""
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as running:
        try:
            eventually(
                lambda: running.poll() is not None or reachable(ready), what=f"{ready} answers"
            )
            assert running.poll() is None, log.read_text()[-2000:]
            yield
        finally:
            running.terminate()
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                running.kill()


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that is running."""

    url: str

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """The samples of an instant query; an error of Prometheus fails the test."""
        given = {"query": expression, **({} if at is None else {"time": f"{at:.3f}"})}
        return self._result("query", given)

    def query_range(
        self, expression: str, *, start: float, end: float, step: float
    ) -> list[dict[str, Any]]:
        """The series of a range query; times are unix seconds."""
        given = {
            "query": expression,
            "start": f"{start:.3f}",
            "end": f"{end:.3f}",
            "step": f"{step:g}",
        }
        return self._result("query_range", given)

    def value(self, expression: str) -> float | None:
        """The one value of an instant query; None where there is none."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def label_values(self, label: str, match: str) -> list[str]:
        """The values of a label on the series of a selector, as a variable lists them."""
        asked = urllib.parse.urlencode({"match[]": match})
        answer = get_json(f"{self.url}/api/v1/label/{label}/values?{asked}")
        assert answer["status"] == "success", answer
        found: list[str] = answer["data"]
        return found

    def firing(self) -> list[dict[str, Any]]:
        """The alerts that are firing, as Prometheus itself sees it."""
        alerts = get_json(f"{self.url}/api/v1/alerts")["data"]["alerts"]
        return [alert for alert in alerts if alert["state"] == "firing"]

    def _result(self, what: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
        answer = get_json(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(given)}")
        assert answer["status"] == "success", (given["query"], answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


@contextmanager
def prometheus(
    folder: Path,
    targets: Mapping[str, Sequence[str]],
    *,
    rules: Sequence[Path] = (),
    alertmanager: str = "",
    every: str = "1s",
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes, from ready to stopped.

    Args:
        folder: Where its data, configuration and log go.
        targets: `host:port`s to scrape, by the name of their job.
        rules: Rule files to load.
        alertmanager: `host:port` that alerts go to; empty for none.
        every: Scrape and evaluation interval.
    """
    program = binary()
    address = f"127.0.0.1:{free_port()}"
    alerting = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    config = {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": list(found)}]}
            for job, found in targets.items()
        ],
        "rule_files": [str(path.resolve()) for path in rules],
        **({"alerting": alerting} if alertmanager else {}),
    }
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    with process(command, folder, f"http://{address}/-/ready"):
        yield Prometheus(f"http://{address}")
