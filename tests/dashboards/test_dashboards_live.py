"""Every query of every dashboard, put to a real Prometheus that scrapes the traffic of the demo."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.dashboards.prometheus import Prometheus, prometheus
from tests.dashboards.reading import (
    ALL,
    DASHBOARDS,
    Query,
    annotation_queries,
    filled,
    matched,
    queries,
    scraped_names,
    variable_queries,
)
from tests.dashboards.service import service

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("prometheus")]
RANGE_S = 120
WAIT_S = 240.0


@dataclass(frozen=True, slots=True)
class Grafana:
    """Asks as Grafana does: variables filled in, at the end of a range or over it."""

    prometheus: Prometheus

    def shows(self, query: Query, chosen: dict[str, str] | None = None) -> bool:
        """Whether a panel with this query would show something."""
        text = filled(query.text, chosen or ALL, scrape_s=1, range_s=RANGE_S)
        now = time.time()
        if query.instant:
            found = self.prometheus.query(text, now)
            return any(sample["value"][1] != "NaN" for sample in found)
        found = self.prometheus.query_range(text, start=now - RANGE_S, end=now, step=2)
        return any(value != "NaN" for series in found for _, value in series["values"])


@pytest.fixture(scope="module", name="grafana")
def _grafana(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grafana]:
    """A service that does well and loses things, and one whose observer has faults."""
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        service("--rate", "10") as agents,
        service("--rate", "4", "--faithful", faulty=True) as faulty,
    ):
        targets = {"agents": [agents], "faulty": [faulty]}
        with prometheus(folder, targets) as running:
            yield Grafana(running)


def test_every_panel_variable_and_annotation_returns_data(grafana: Grafana) -> None:
    """All of them in one test, so that traffic is waited for once."""
    waiting = [
        query
        for name in DASHBOARDS
        for query in (*queries(name), *annotation_queries(name))
        if query.kind == "prometheus"
    ]

    until = time.monotonic() + WAIT_S
    while waiting := [query for query in waiting if not grafana.shows(query)]:
        assert time.monotonic() < until, f"no data: {[query.where for query in waiting]}"
        time.sleep(1)
    for name in DASHBOARDS:
        for query in variable_queries(name):
            selector, label = matched(filled(query.text))
            assert grafana.prometheus.label_values(label, selector), query.where
    narrowed(grafana)
    scraped(grafana)


def narrowed(grafana: Grafana) -> None:
    """With one value chosen of each variable a panel still shows what there is of it."""
    chosen = {
        "service": "agents",
        "provider": "anthropic",
        "model": "claude-opus-5",
        "host": "127.0.0.1",
    }
    other = {**chosen, "provider": "nobody"}
    of_fate = next(q for q in queries("fidelity-overview.json") if "Which artifacts" in q.where)
    assert grafana.shows(of_fate, chosen)
    assert not grafana.shows(of_fate, other)


def scraped(grafana: Grafana) -> None:
    """Each name the dashboards may use is one that Prometheus really has."""
    found = set(grafana.prometheus.label_values("__name__", '{__name__=~"otel_sealed_.+"}'))
    assert set(scraped_names()) - found == set()
    created = {name for name in found if name.endswith("_created")}
    assert found - created - set(scraped_names()) == set()
