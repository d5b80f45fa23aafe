"""`otel-sealed demo`: what it prints, what it leaves behind, and what it does not touch."""

from __future__ import annotations

import io
import json
import logging
import os
import stat
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry._logs import get_logger_provider

from otel_sealed.cli import main
from otel_sealed.instrument import guard
from otel_sealed.testing import hosts as hosts_module
from otel_sealed.testing.hosts import Host, hosts, play

KEYS = ("turn", "artifact", "fate", "verdict", "rule", "provider_verdict", "rejection")


@dataclass
class Ran:
    """One run of the demo in a folder of its own, and what is global before and after it."""

    status: int
    out: str
    err: str
    folder: Path
    before: tuple[object, ...]
    after: tuple[object, ...]


def world() -> tuple[object, ...]:
    log = logging.getLogger("otel_sealed")
    providers = (trace.get_tracer_provider(), metrics.get_meter_provider())
    return (*providers, get_logger_provider(), log.propagate, log.level, tuple(log.handlers))


def run(folder: Path, *arguments: str) -> Ran:
    before = world()
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(guard, "STRICT", True)
        status = main(["demo", *arguments])
    folder = folder / ".otel-sealed"
    return Ran(status, out.getvalue(), err.getvalue(), folder, before, world())


@pytest.fixture(scope="module", name="plain")
def _plain(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module", name="as_json")
def _as_json(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(tmp_path_factory.mktemp("json"), "--json")


def test_it_succeeds_and_says_nothing_on_stderr(plain: Ran, as_json: Ran) -> None:
    """Not even the warnings of our own log, which say what the table says."""
    assert (plain.status, plain.err) == (0, "")
    assert (as_json.status, as_json.err) == (0, "")


def test_json_is_one_object_a_host(as_json: Ran) -> None:
    found = [json.loads(line) for line in as_json.out.splitlines()]
    assert [(host.name, host.dialect, host.faithful) for host in hosts()] == [
        (row["host"], row["dialect"], row["faithful"]) for row in found
    ]
    assert {("host", "dialect", "faithful", "findings")} == {tuple(row) for row in found}
    assert {KEYS} == {tuple(finding) for row in found for finding in row["findings"]}
    assert all(row["findings"] for row in found)


def test_json_of_one_loss(as_json: Ran) -> None:
    rows = [json.loads(line) for line in as_json.out.splitlines()]
    (row,) = (row for row in rows if row["host"] == "anthropic-type-filter")
    expected = {
        "turn": 3,
        "artifact": "anthropic.redacted_thinking.data",
        "fate": "dropped",
        "verdict": "breaks",
        "rule": "A2",
        "provider_verdict": "rejected",
        "rejection": "thinking_modified",
    }
    assert [expected] == [f for f in row["findings"] if f["fate"] != "intact"]


def test_the_table_has_every_host_and_says_where_a_conversation_ends(plain: Ran) -> None:
    table = plain.out.split("\n\n")[0].splitlines()
    names = {line.split()[0] for line in table[2:]}
    assert names == {host.name for host in hosts()}
    for host in hosts():
        lines = [line for line in table if line.split()[0] == host.name]
        ends = [line for line in lines if line.rstrip().endswith("ends here")]
        assert bool(ends) == bool(host.rejection)
        assert all(str(host.rejection) in line for line in ends)


def test_the_table_is_plain(plain: Ran) -> None:
    assert "\x1b" not in plain.out
    header = plain.out.splitlines()[0].split("  ")
    expected = ["host", "turn", "came in", "went back", "fate", "verdict", "the provider said"]
    assert expected == [name.strip() for name in header if name.strip()]


def test_the_folder_is_its_owners_and_ignores_itself(plain: Ran) -> None:
    names = {f"{signal}-{os.getpid()}.jsonl" for signal in ("traces", "metrics", "logs")}
    assert {".gitignore", "key", *names} == {path.name for path in plain.folder.iterdir()}
    assert (plain.folder / ".gitignore").read_text("utf-8") == "*\n"
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in plain.folder.iterdir()}
    assert stat.S_IMODE(plain.folder.stat().st_mode) == 0o700
    assert all(name in plain.out for name in names)


def lines_of(ran: Ran, signal: str) -> list[dict[str, Any]]:
    text = (ran.folder / f"{signal}-{os.getpid()}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_spans_metrics_and_log_events_are_otlp_json_lines(plain: Ran) -> None:
    spans = [
        span
        for line in lines_of(plain, "traces")
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    requests = sum(len(played.reports) for played in play(hosts()))
    assert requests == len(spans)
    kept = [{a["key"] for a in span["attributes"]} for span in spans]
    assert all("otel_sealed.received.count" in keys for keys in kept)
    metric = [
        metric["name"]
        for line in lines_of(plain, "metrics")
        for resource in line["resourceMetrics"]
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    ]
    assert "otel_sealed.violations" in metric
    events = [
        record["eventName"]
        for line in lines_of(plain, "logs")
        for resource in line["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]
    assert "otel_sealed.violation" in events


def test_nothing_global_is_left_behind(plain: Ran, as_json: Ran) -> None:
    assert plain.before == plain.after
    assert as_json.before == as_json.after


def test_a_second_run_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = tuple(host for host in hosts() if host.name == "openai")
    monkeypatch.setattr(hosts_module, "hosts", lambda: one)
    counts = [len(lines_of(run(tmp_path), "traces")) for _ in range(2)]
    assert [4, 8] == counts


def test_a_host_that_shows_something_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {host.name: host for host in hosts()}
    faithful, lossy = known["openai"], known["openai-no-ids"]
    odd = Host("odd", "openai", faithful.run, "Odd.", lossy.losses)
    monkeypatch.setattr(hosts_module, "hosts", lambda: (faithful, odd))
    ran = run(tmp_path)
    assert ran.status == 1
    assert ran.err == "otel-sealed: odd did not show what it is known for\n"


def test_without_an_sdk_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> tuple[Host, ...]:
        raise ModuleNotFoundError("No module named 'openai'", name="openai")

    monkeypatch.setattr(hosts_module, "hosts", missing)
    ran = run(tmp_path)
    assert ran.status == 2
    expected = (
        "otel-sealed: the demo needs the package that has openai"
        " (python -m pip install 'otel-sealed[demo]')\n"
    )
    assert expected == ran.err
    assert not ran.folder.exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".otel-sealed").write_text("in the way", "utf-8")
    ran = run(tmp_path)
    assert ran.status == 2
    assert ran.err == "otel-sealed: .otel-sealed: File exists (run it where you may write)\n"


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".otel-sealed").mkdir()
    target = tmp_path / "elsewhere"
    (tmp_path / ".otel-sealed" / f"traces-{os.getpid()}.jsonl").symlink_to(target)
    assert run(tmp_path).status == 2
    assert not target.exists()


def test_a_proxy_of_the_environment_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider is on loopback; a proxy that answers for everything would break the demo."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    one = tuple(host for host in hosts() if host.name in ("anthropic", "openai", "gemini"))
    monkeypatch.setattr(hosts_module, "hosts", lambda: one)
    assert run(tmp_path).status == 0
    assert "NO_PROXY" not in os.environ or "127.0.0.1" not in os.environ["NO_PROXY"]
