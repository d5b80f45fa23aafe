"""A simulated day of two hundred services: silence while all is well, one page for one fault."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dashboards.alerts import rules as table
from dashboards.alerts.promql import Clock, duration, name
from otel_sealed import vocab
from tests.dashboards import soak
from tests.dashboards.alertmanager import Labels, Pager, alertmanager
from tests.dashboards.promtool import bare_rules, run, severities

ALERTS = sorted(severities())
GROUP = 40
ANTHROPIC: Labels = {"gen_ai_provider_name": "anthropic"}
BEGINS, LOOKED_AT, TICKS = 40, 62, 70
"""A fault begins, is looked at 44 minutes later, and the simulation ends."""

pytestmark = pytest.mark.soak


def never(ticks: Iterable[int], alerts: Iterable[str] = ALERTS) -> list[dict[str, Any]]:
    """That none of these fires at any tick."""
    return [
        {"eval_time": duration(tick * soak.TICK_S), "alertname": alert, "exp_alerts": []}
        for tick in ticks
        for alert in alerts
    ]


def verified(
    folder: Path,
    series: list[dict[str, str]],
    checks: list[dict[str, Any]],
    *alerts: str,
    every: int = 1,
) -> tuple[int, str]:
    """Exit status and complaints of promtool. Rules are evaluated every so many ticks."""
    test = {
        "interval": duration(soak.TICK_S),
        "input_series": series,
        "alert_rule_test": checks,
    }
    status, said = run(folder, [test], bare_rules(*alerts), every_s=soak.TICK_S * every)
    return status, said[-2000:] if status else ""


# ----------------------------------------------------------------------------------- a good day


def test_the_day_has_what_makes_rules_cry_wolf() -> None:
    """What the silence below is worth: restarts, forks, deploys, gaps, unknowns, known losses."""
    kinds: Counter[str] = Counter()
    for number in range(0, soak.SERVICES, 10):
        service = soak.Service(number, soak.DAY, None)
        service.live()
        kinds["deployed"] += sum(process.gone is not None for process in service.processes)
        for process in service.processes:
            kinds["born later"] += process.born > 0
            pages = [process.pages[tick] for tick in sorted(process.pages)]
            totals = [sum(page.values()) for page in pages]
            kinds["starts again"] += any(a > b for a, b in pairwise(totals))
            kinds["not scraped"] += max(process.pages, default=0) - min(
                process.pages, default=0
            ) > len(pages)
        last = str(service.processes[-1].totals)
        kinds["never seen coming in"] += "'unknown'" in last
        kinds["breaks, and known"] += "'breaks'" in last
    assert set() == {
        "deployed",
        "born later",
        "starts again",
        "not scraped",
        "never seen coming in",
        "breaks, and known",
    } - set(+kinds)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("first", range(0, soak.SERVICES, GROUP))
def test_a_day_of_healthy_traffic_fires_nothing(tmp_path: Path, first: int) -> None:
    series = soak.day(range(first, first + GROUP))
    assert (0, "") == verified(tmp_path, series, never(range(0, soak.DAY, 2)), every=2)


@pytest.mark.timeout(1500)
def test_strays_of_two_hundred_services_are_no_provider_incident(tmp_path: Path) -> None:
    """Some service is refused now and then. Only what the rule reads: calls and objections."""
    read = re.compile(f"{name(vocab.CALLS)}|{name(vocab.OBJECTIONS)}")
    series = [one for one in soak.day(range(soak.SERVICES), 360) if read.match(one["series"])]
    assert any(one["series"].startswith(name(vocab.OBJECTIONS)) for one in series)
    checks = never(range(360), [table.INCIDENT])
    assert (0, "") == verified(tmp_path, series, checks, table.INCIDENT)


# ------------------------------------------------------------------- one fault in twenty services


def fault(tmp_path: Path, kind: str, firing: dict[str, list[Labels]]) -> None:
    """Have promtool verify that exactly these fire while a fault lasts, and nothing before it."""
    series = soak.day(range(GROUP), TICKS, soak.Fault(kind, 20, BEGINS))
    known = severities()
    checks = never(range(BEGINS))
    for alert in ALERTS:
        expected = [{"severity": known[alert], **labels} for labels in firing.get(alert, [])]
        checks.append(
            {
                "eval_time": duration(LOOKED_AT * soak.TICK_S),
                "alertname": alert,
                "exp_alerts": [{"exp_labels": labels} for labels in expected],
            }
        )
    assert (0, "") == verified(tmp_path, series, checks)


def told(tmp_path: Path, firing: dict[str, list[Labels]]) -> Pager:
    """The same put to a real Alertmanager: who is told what."""
    known = severities()
    with Pager() as pager, alertmanager(tmp_path, pager, Clock(1 / 60)) as manager:
        manager.post(
            {"alertname": alert, "severity": known[alert], **labels}
            for alert, all_labels in firing.items()
            for labels in all_labels
        )
        time.sleep(4)
    return pager


def of_each(**labels: str) -> list[Labels]:
    """These labels for each of the twenty services."""
    names = [f"service-{number:03}" for number in range(20)]
    return [{"job": name, "service": name, **ANTHROPIC, **labels} for name in names]


@pytest.mark.timeout(900)
def test_a_provider_that_refuses_twenty_services_is_one_page(tmp_path: Path) -> None:
    firing = {table.INCIDENT: [ANTHROPIC], table.REFUSALS: of_each()}
    fault(tmp_path, "refused", firing)
    pager = told(tmp_path, firing)
    assert [1] == [len(fires) for fires in pager.firing("page")]
    assert [] == pager.firing("ticket")


@pytest.mark.timeout(900)
def test_a_loss_that_twenty_services_share_is_one_page_and_a_ticket_each(tmp_path: Path) -> None:
    """A library they all use, say."""
    lost = {
        "otel_sealed_artifact": "anthropic.thinking.signature",
        "otel_sealed_fate": "dropped",
        "otel_sealed_rule": "A1",
    }
    firing = {table.REFUSALS: of_each(), table.FIRST: of_each(**lost)}
    fault(tmp_path, "dropping", firing)
    pager = told(tmp_path, firing)
    assert [20] == [len(fires) for fires in pager.firing("page")]
    assert [1] * 20 == [len(fires) for fires in pager.firing("ticket")]
