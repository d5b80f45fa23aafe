"""What the supplied configuration makes of alerts, by a real Alertmanager."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboards.alerts import rules as table
from dashboards.alerts.promql import Clock
from tests.dashboards.alertmanager import Alertmanager, Labels, Pager, alertmanager
from tests.dashboards.prometheus import eventually

CLOCK = Clock(1 / 60)
SETTLED_S = 3.0
"""More than the longest `group_wait` of that clock."""
ANTHROPIC = {"gen_ai_provider_name": "anthropic"}
OPENAI = {"gen_ai_provider_name": "openai"}
LOST = {"otel_sealed_artifact": "anthropic.thinking.signature", "otel_sealed_rule": "A1"}


def page(alert: str, **labels: str) -> Labels:
    return {"alertname": alert, "severity": "page", **labels}


def ticket(alert: str, **labels: str) -> Labels:
    return {"alertname": alert, "severity": "ticket", **labels}


@dataclass(frozen=True)
class Desk:
    """An Alertmanager and the pager it posts to."""

    manager: Alertmanager
    pager: Pager

    def told(self, *alerts: Labels) -> set[tuple[str, ...]]:
        """(alert, service) of all that is told of these, each once."""
        self.manager.post(alerts)
        time.sleep(SETTLED_S)
        found = self.pager.told("alertname", "service")
        assert set(found.values()) <= {1}
        return set(found)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Pager() as pager, alertmanager(tmp_path, pager, CLOCK) as manager:
        yield Desk(manager, pager)


def test_a_provider_incident_holds_back_alerts_of_services_about_that_provider(desk: Desk) -> None:
    found = desk.told(
        page(table.INCIDENT, **ANTHROPIC),
        page(table.REFUSALS, service="a", **ANTHROPIC),
        ticket(table.FIRST, service="a", **ANTHROPIC, **LOST),
        ticket(table.SILENT, service="a", **ANTHROPIC, **LOST),
        ticket(table.REMOVALS, service="a", **ANTHROPIC),
        ticket(table.ONE_HOST, service="a", **ANTHROPIC),
        page(table.REFUSALS, service="b", **OPENAI),
        ticket(table.BLIND, service="a", reason="state"),
        ticket(table.LEAK, service="a", otel_sealed_place="span"),
    )
    assert found == {
        (table.INCIDENT, ""),
        (table.REFUSALS, "b"),
        (table.BLIND, "a"),
        (table.LEAK, "a"),
    }


def test_a_blind_observer_holds_back_the_silent_loss_of_its_service_alone(desk: Desk) -> None:
    found = desk.told(
        ticket(table.BLIND, service="a", reason="unknown"),
        ticket(table.SILENT, service="a", **ANTHROPIC, **LOST),
        ticket(table.SILENT, service="b", **ANTHROPIC, **LOST),
        ticket(table.FIRST, service="a", **ANTHROPIC, **LOST),
    )
    assert found == {(table.BLIND, "a"), (table.SILENT, "b"), (table.FIRST, "a")}


def test_one_fault_in_twenty_services_is_one_page(desk: Desk) -> None:
    refusals = [page(table.REFUSALS, service=f"s{n}", **ANTHROPIC) for n in range(20)]
    assert 20 == len(desk.told(*refusals))
    assert [20] == [len(fires) for fires in desk.pager.firing("page")]


def test_a_provider_incident_in_twenty_services_is_one_page(desk: Desk) -> None:
    refusals = [page(table.REFUSALS, service=f"s{n}", **ANTHROPIC) for n in range(20)]
    assert {(table.INCIDENT, "")} == desk.told(page(table.INCIDENT, **ANTHROPIC), *refusals)


def test_tickets_are_grouped_by_service_and_fingerprint(desk: Desk) -> None:
    """What its parts tell apart is a ticket of its own; who is hit again joins its ticket."""
    lost = {**ANTHROPIC, **LOST, "otel_sealed_fate": "dropped"}
    desk.manager.post(
        [
            ticket(table.FIRST, service="a", **lost, job="x"),
            ticket(table.FIRST, service="a", **lost, job="y"),
            ticket(table.FIRST, service="a", **{**lost, "otel_sealed_fate": "modified"}),
            ticket(table.FIRST, service="b", **lost),
        ]
    )
    eventually(lambda: len(desk.pager.firing("ticket")) == 3, what="three tickets", within_s=20)
    assert [1, 1, 2] == sorted(len(fires) for fires in desk.pager.firing("ticket"))
    assert [] == desk.pager.firing("page")
