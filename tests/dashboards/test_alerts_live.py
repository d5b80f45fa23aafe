"""Metrics of real processes, scraped by a real Prometheus, told by a real Alertmanager.

Rules and routing are those that are committed, with every duration shortened alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from dashboards.alerts import rules as table
from dashboards.alerts.promql import Clock
from dashboards.alerts.render import rule_file
from tests.dashboards import services
from tests.dashboards.alertmanager import PACKAGE, Pager, alertmanager
from tests.dashboards.prometheus import (
    Prometheus,
    binary,
    eventually,
    free_port,
    prometheus,
    reachable,
)

CLOCK = Clock(1 / 60)
"""An hour is a minute; a scrape and an evaluation a second."""
DOOR = "from otel_sealed.cli import main; main()"


@contextmanager
def watched(
    folder: Path, targets: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Prometheus, Pager]]:
    """Prometheus with the rules, Alertmanager with the routing, and who is told."""
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump(rule_file(CLOCK)), encoding="utf-8")
    with (
        Pager() as pager,
        alertmanager(folder, pager, CLOCK) as manager,
        prometheus(folder, targets, rules=[rules], alertmanager=manager.address) as found,
    ):
        yield found, pager


@pytest.mark.timeout(400)
def test_every_alert_reaches_its_receiver_exactly_once(tmp_path: Path) -> None:
    binary(), binary(PACKAGE)
    made = [
        services.Service("well", services.faithful),
        services.Service("dropping", services.dropping),
        services.Service("sanitising", services.sanitising),
        services.Service("leaking", services.leaking),
        services.Service("routing", services.routing),
        services.Service("removed", services.removed),
        services.Service("killed", services.killed(tmp_path)),
        *(services.Service(f"struck-{n}", services.refused_whole) for n in range(3)),
    ]
    wanted = {
        ("page", table.REFUSALS, "dropping"),
        ("page", table.INCIDENT, ""),
        ("ticket", table.FIRST, "dropping"),
        ("ticket", table.FIRST, "sanitising"),
        ("ticket", table.SILENT, "sanitising"),
        ("ticket", table.LEAK, "leaking"),
        ("ticket", table.ONE_HOST, "routing"),
        ("ticket", table.REMOVALS, "removed"),
        ("ticket", table.BLIND, "killed"),
    }
    targets = {service.name: [service.address] for service in made}
    with services.running(made), watched(tmp_path, targets) as (_, pager):
        eventually(
            lambda: wanted <= set(pager.told("severity", "alertname", "service")),
            what=f"all of {sorted(wanted)} told",
            within_s=240,
        )
        time.sleep(10)  # time for whatever should not come
        assert dict.fromkeys(wanted, 1) == pager.told("severity", "alertname", "service")
    assert {"anthropic", "openai"} == {
        fires["gen_ai_provider_name"] for told in pager.firing("page") for fires in told
    }


@pytest.mark.timeout(300)
def test_the_demos_first_violations_are_told_once_each(tmp_path: Path) -> None:
    """A process of its own, its series born with their first violation."""
    binary(), binary(PACKAGE)
    port = free_port()
    command = [sys.executable, "-c", DOOR, "demo", "--traffic", "--scrape", str(port)]
    with (
        (tmp_path / "demo.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=os.environ) as demo,
    ):
        try:
            page = f"http://127.0.0.1:{port}/metrics"
            eventually(lambda: reachable(page), what="the demo is scraped", within_s=60)
            with watched(tmp_path, {"demo": [f"127.0.0.1:{port}"]}) as (found, pager):
                eventually(
                    lambda: len(kinds(pager)) >= 5, what="five first violations", within_s=120
                )
                told = kinds(pager)
                assert {1} == set(told.values())
                assert {"demo"} == {kind[0] for kind in told}
                seen = found.query("sum(otel_sealed_violations_total)")
                assert float(seen[0]["value"][1]) >= len(told)
        finally:
            demo.terminate()


def kinds(pager: Pager) -> Mapping[tuple[str, ...], int]:
    """How often each first violation was told, by service and fingerprint."""
    parts = ("otel_sealed_artifact", "otel_sealed_fate", "otel_sealed_rule", "gen_ai_provider_name")
    found = pager.told("alertname", "service", *parts)
    return {key[1:]: times for key, times in found.items() if key[0] == table.FIRST}
