"""`otel-sealed doctor`: what it looks at, and the exit status."""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import anthropic
import pytest

from otel_sealed import rulebook
from otel_sealed.cli import doctor, main
from otel_sealed.cli.doctor import Line
from otel_sealed.instrument import dry, limits
from otel_sealed.instrument.limits import NOT_COVERED, TRANSPORTS, Sdk
from otel_sealed.ledger import sqlite
from otel_sealed.telemetry.families import FORM

TODAY = date.fromisoformat(rulebook.version()[:10])


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def lines(environ: Mapping[str, str] | None = None, *, today: date = TODAY) -> list[Line]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (environ or {}).items():
            patch.setenv(name, value)
        return list(doctor.examine(environ or {}, today=lambda: today))


def of(about: str, found: list[Line]) -> list[tuple[str, str]]:
    return [(line.level, line.says) for line in found if line.about == about]


def test_the_sdks_of_this_environment_are_whole_and_tested() -> None:
    found = lines()
    for tested in limits.TESTED:
        version, seams = [x for x in found if x.about.startswith(f"{tested.distribution} ")]
        assert (version.level, version.says) == ("ok", "a tested version")
        assert (seams.level, seams.says[:4]) == ("ok", "all ")


def test_a_dry_attachment_leaves_every_method_as_it_was() -> None:
    owner = anthropic._base_client.SyncAPIClient
    before = dict(vars(owner))
    tried = dry.attach("anthropic")
    assert dict(vars(owner)) == before
    assert tried.missing == ()
    assert "anthropic._base_client.SyncAPIClient.request" in tried.present


def test_a_seam_that_vanished_is_to_be_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(anthropic._base_client.BaseClient, "_build_request")
    assert of("anthropic seams", lines()) == [
        (
            "mend",
            "missing, update otel-sealed: anthropic._base_client.BaseClient._build_request",
        )
    ]


@pytest.mark.parametrize(
    ("version", "covered"),
    [
        ("0.52.0", False),
        ("0.52.1", True),
        ("0.125.0", True),
        ("2.14.0", True),
        ("2.14.7", True),
        ("2.15.0", False),
        ("2.14.0rc1", True),
        ("3.0", False),
        ("2", True),
    ],
)
def test_a_version_is_tested_between_the_bounds(version: str, *, covered: bool) -> None:
    assert Sdk("anthropic", "anthropic", "0.52.1", "2.14").covers(version) is covered


def test_an_untested_version_is_named_and_nothing_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TESTED", (Sdk("anthropic", "anthropic", "0.52.1", "0.60"),))
    (line,) = [x for x in lines() if x.about.startswith("anthropic ") and "seams" not in x.about]
    assert (line.level, line.says) == ("note", "not tested; tested are 0.52.1 to 0.60")


def test_without_an_sdk_one_is_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TESTED", (Sdk("acme", "acme-sdk-not-there", "1", "2"),))
    assert of("SDKs", lines()) == [
        ("mend", "none of acme-sdk-not-there is installed here; install one")
    ]


def test_an_sdk_that_cannot_be_imported_is_to_be_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> Any:
        raise RuntimeError("CANARY")

    monkeypatch.setattr(dry, "attach", broken)
    assert of("openai seams", lines()) == [("mend", "it cannot be imported: RuntimeError")]


def test_exporters_are_connected_to() -> None:
    with socket.socket() as listening, socket.socket() as deaf:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        deaf.bind(("127.0.0.1", 0))  # bound and not listening: refused
        ports = [s.getsockname()[1] for s in (listening, deaf)]
        found = lines(
            {
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{ports[0]}/v1/traces",
                "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"http://127.0.0.1:{ports[1]}/v1/logs",
                "OTEL_METRICS_EXPORTER": "none",
            }
        )
    where = [f"127.0.0.1:{port} (http/protobuf)" for port in ports]
    assert of("traces exporter", found) == [("ok", f"{where[0]} takes connections")]
    assert of("logs exporter", found) == [
        ("mend", f"{where[1]} cannot be reached: Connection refused")
    ]
    assert of("metrics exporter", found) == []


@pytest.mark.parametrize(
    ("environ", "about", "level", "says"),
    [
        ({}, "settings", "ok", "valid"),
        ({}, "exporters", "note", "none in the environment; `otel-sealed run` records into"),
        ({}, "key", "note", "random in each process;"),
        ({}, "ledger", "ok", "in memory, of each process alone, 20000 turns or 64 MB at most"),
        (
            {"OTEL_SEALED_LEDGER": "postgres://x"},
            "settings",
            "mend",
            "OTEL_SEALED_LEDGER is invalid; it takes `memory`, a file",
        ),
        ({}, "rules", "ok", f"version {rulebook.version()}"),
        ({}, "recorded", "ok", "keyed digests, sizes and places"),
        (
            {"OTEL_SEALED_MAX_TURNS": "x"},
            "settings",
            "mend",
            "OTEL_SEALED_MAX_TURNS is invalid; it",
        ),
        ({"OTEL_SEALED_ENABLED": "0"}, "settings", "note", "switched off by OTEL_SEALED_ENABLED"),
        ({"OTEL_SDK_DISABLED": "true"}, "settings", "note", "switched off by OTEL_SDK_DISABLED"),
        ({"OTEL_SEALED_KILL_FILE": __file__}, "settings", "note", "the kill file is there"),
        ({"OTEL_SEALED_HASH_KEY": "ab" * 16}, "key", "ok", "configured, called "),
        ({"OTEL_CONFIG_FILE": "x.yaml"}, "exporters", "note", "as OTEL_CONFIG_FILE says"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "exporters", "note", "console: not looked at"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[bad"},
            "exporters",
            "mend",
            "an OTLP endpoint is no URL",
        ),
        ({"OTEL_SEALED_KNOWN": "/no/such"}, "known losses", "mend", "/no/such: No such file"),
    ],
)
def test_what_is_set_is_said(environ: dict[str, str], about: str, level: str, says: str) -> None:
    (line,) = of(about, lines(environ))
    assert (line[0], line[1][: len(says)]) == (level, says)


def test_known_losses_are_counted_and_expired_ones_are_to_be_mended(tmp_path: Path) -> None:
    entry = (
        '[[known]]\nartifact = "a.b"\nfate = "dropped"\nprovider = "x"\nreason = "y"\nexpires = '
    )
    path = tmp_path / "known.toml"
    path.write_text(f"{entry}{TODAY}\n{entry}{TODAY + timedelta(days=1)}\n", "utf-8")
    environ = {"OTEL_SEALED_KNOWN": str(path)}
    assert of("known losses", lines(environ)) == [("ok", "2 entries, none expired")]
    assert of("known losses", lines(environ, today=TODAY + timedelta(days=1))) == [
        ("mend", "1 of 2 entries expired: they alert")
    ]
    path.write_text("[[known]]", "utf-8")
    assert of("known losses", lines(environ))[0][0] == "mend"


def test_model_families_are_counted_and_broken_entries_are_to_be_mended(tmp_path: Path) -> None:
    path = tmp_path / "families.toml"
    environ = {"OTEL_SEALED_FAMILIES": str(path)}
    remedy = FORM.remedies["vendor"]
    path.write_text(
        '[[family]]\nvendor = "x"\nproducer = "a*"\nreader = "b"\nreads = "read"\n'
        f'source = "y"\nchecked = {TODAY}\n[[family]]\n',
        "utf-8",
    )
    assert of("model families", lines(environ)) == [
        ("mend", f"{path}: entry 2: vendor is missing; {remedy}; the other entries are used"),
        ("ok", "1 entries before the built-in table"),
    ]


def test_rules_that_nobody_checked_for_long_are_to_be_mended() -> None:
    ((level, says),) = of("rules", lines(today=TODAY + timedelta(days=400)))
    assert level == "mend"
    assert "rules not checked for 120 days; update otel-sealed" in says


def test_what_cannot_be_covered_is_named() -> None:
    found = of("not covered", lines())
    assert found == [("note", f"{limit.what}: {limit.why}") for limit in NOT_COVERED]
    assert len(found) == 8


def test_other_tracers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        def __init__(self, name: str) -> None:
            self.metadata = {"Name": name}

    names = ("openinference-instrumentation-anthropic", "Langfuse", "requests", "langfuse")
    monkeypatch.setattr("importlib.metadata.distributions", lambda: [Found(n) for n in names])
    ((level, says),) = of("other tracers", lines())
    listed = "langfuse, openinference-instrumentation-anthropic"
    second = (
        "that of langfuse is not current while the call is made, so there may be two: count tokens"
        " and cost of one of them"
    )
    assert (level, says) == (
        "note",
        f"{listed}: where one has a span for a call, it is enriched; {second}",
    )


def test_tracers_whose_spans_are_current_add_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        metadata = {"Name": "logfire"}  # noqa: RUF012 - read alone

    monkeypatch.setattr("importlib.metadata.distributions", lambda: [Found()])
    ((_, says),) = of("other tracers", lines())
    assert says == "logfire: where one has a span for a call, it is enriched"


def test_the_http_clients_at_which_calls_are_noticed_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ((level, says),) = of("HTTP clients", lines())
    names = "httpx, httpx2, aiohttp, requests, urllib3, botocore, http.client"
    assert (level, says) == ("ok", f"calls that go past the SDKs are noticed at {names}")
    monkeypatch.delattr("httpx._client.Client.send")
    ((level, says),) = of("HTTP clients", lines())
    assert (level, says) == ("mend", "missing, update otel-sealed: httpx._client.Client.send")
    monkeypatch.setenv("OTEL_SEALED_HTTP_HOOKS", "false")
    ((level, says),) = of("HTTP clients", lines())
    assert level == "note"
    assert says.startswith("switched off by OTEL_SEALED_HTTP_HOOKS")


def test_packages_that_go_past_the_sdks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {transport.distribution: "1.2" for transport in TRANSPORTS}
    monkeypatch.setattr("otel_sealed.cli.doctor.version_of", lambda name: there.get(name, ""))
    monkeypatch.setattr("otel_sealed.cli.doctor.TESTED", ())
    found = {line.about: (line.level, line.says) for line in lines()}
    for transport in TRANSPORTS:
        assert found[f"{transport.distribution} 1.2"] == ("note", transport.says)
        assert "counted" in transport.says
    assert {"litellm", "dspy", "smolagents", "boto3", "claude-agent-sdk"} <= there.keys()


def test_the_command_exits_with_0_or_1_and_prints_a_line_or_an_object_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rulebook, "stale", lambda _: ())
    log = logging.getLogger("otel_sealed")
    before = log.disabled
    assert main(["doctor"]) == 0
    plain = capsys.readouterr()
    monkeypatch.setenv("OTEL_SEALED_MAX_TURNS", "x")
    assert main(["doctor", "--json"]) == 1
    as_json = capsys.readouterr()
    found = [json.loads(line) for line in as_json.out.splitlines()]
    assert {("about", "level", "says")} == {tuple(line) for line in found}
    assert (plain.err, as_json.err) == ("", "")
    assert len(plain.out.splitlines()) == len(found)
    assert [x["about"] for x in found if x["level"] == "mend"] == ["settings"]
    assert log.disabled is before


BOUND = "20000 turns or 64 MB at most"


def test_the_ledger_in_use_is_named_and_whether_it_can_be_reached(tmp_path: Path) -> None:
    """A file is looked at and not made; a bad one is to be mended."""
    path = tmp_path / "ledger.db"
    for spelt in (str(path), f"sqlite://{path}"):
        found = of("ledger", lines({"OTEL_SEALED_LEDGER": spelt}))
        assert found == [("ok", f"shared in {path}, which will be made, {BOUND}")]
    assert not path.exists()
    ledger = sqlite.opened(path, 100, 2**20, 60.0)
    ledger.close()
    environ = {"OTEL_SEALED_LEDGER": str(path)}
    assert of("ledger", lines(environ)) == [("ok", f"shared in {path}, 0 turns held, {BOUND}")]
    path.chmod(0o644)
    _, open_to_all = of("ledger", lines(environ))
    assert open_to_all == ("mend", f"others may read {path}, which holds a key: chmod 600")
    path.write_bytes(b"x" * 4_096)
    assert of("ledger", lines(environ)) == [
        ("mend", f"{path} cannot be used: DatabaseError; memory stands in")
    ]
    away = tmp_path / "no" / "ledger.db"
    assert of("ledger", lines({"OTEL_SEALED_LEDGER": str(away)})) == [
        ("mend", f"{away} cannot be made there; memory stands in")
    ]
