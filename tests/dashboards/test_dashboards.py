"""The committed dashboards: up to date, made of our vocabulary, and usable wherever they land."""

from __future__ import annotations

import re
from typing import Any

import promql_parser
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import generate
from otel_sealed import vocab
from tests.dashboards import reading
from tests.dashboards.reading import (
    DASHBOARDS,
    Query,
    annotation_queries,
    filled,
    labels_of,
    matched,
    panels,
    queries,
    scraped_names,
    used,
    variable_queries,
)

NAMES = sorted(DASHBOARDS)
PANELS = [
    pytest.param(panel, id=f"{name}-{panel['title']}")
    for name in NAMES
    for panel in panels(DASHBOARDS[name])
]
METRIC_QUERIES = [
    pytest.param(query, id=query.where)
    for name in NAMES
    for query in (*queries(name), *annotation_queries(name))
    if query.kind == "prometheus"
]
VARIABLES = [pytest.param(q, id=q.where) for name in NAMES for q in variable_queries(name)]
UNITS = {
    "bytes",
    "dateTimeAsIso",
    "dateTimeFromNow",
    "locale",
    "ms",
    "ops",
    "percentunit",
    "reqps",
    "s",
    "short",
}

# Three ways to the same names, measured once: scraping the Python exporter, Prometheus's own OTLP
# endpoint with its default translation, VictoriaMetrics with `usePrometheusNaming`.
GOLDEN = {
    "otel_sealed.artifact.checks": ("otel_sealed_artifact_checks_total",),
    "otel_sealed.artifact.expected": ("otel_sealed_artifact_expected_total",),
    "otel_sealed.artifact.returned": ("otel_sealed_artifact_returned_total",),
    "otel_sealed.artifact.size": (
        "otel_sealed_artifact_size_bytes_bucket",
        "otel_sealed_artifact_size_bytes_count",
        "otel_sealed_artifact_size_bytes_sum",
    ),
    "otel_sealed.calls": ("otel_sealed_calls_total",),
    "otel_sealed.check.duration": (
        "otel_sealed_check_duration_seconds_bucket",
        "otel_sealed_check_duration_seconds_count",
        "otel_sealed_check_duration_seconds_sum",
    ),
    "otel_sealed.internal.errors": ("otel_sealed_internal_errors_total",),
    "otel_sealed.leaks": ("otel_sealed_leaks_total",),
    "otel_sealed.ledger.entries": ("otel_sealed_ledger_entries",),
    "otel_sealed.ledger.evictions": ("otel_sealed_ledger_evictions_total",),
    "otel_sealed.ledger.lookups": ("otel_sealed_ledger_lookups_total",),
    "otel_sealed.objections": ("otel_sealed_objections_total",),
    "otel_sealed.outcomes": ("otel_sealed_outcomes_total",),
    "otel_sealed.rejections": ("otel_sealed_rejections_total",),
    "otel_sealed.seams": ("otel_sealed_seams",),
    "otel_sealed.state": ("otel_sealed_state",),
    "otel_sealed.unobserved": ("otel_sealed_unobserved_total",),
    "otel_sealed.unread": ("otel_sealed_unread_total",),
    "otel_sealed.violations": ("otel_sealed_violations_total",),
    "otel_sealed.violations.causes": ("otel_sealed_violations_causes_total",),
    "otel_sealed.violations.known": ("otel_sealed_violations_known_total",),
}


# ------------------------------------------------------------------------------ as committed


def test_they_are_what_the_generator_writes() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in reading.FOLDER.iterdir()}
    assert committed == generate.rendered(), "run: python -m dashboards.generate"


@pytest.mark.parametrize("name", NAMES)
def test_they_read_back_into_the_models_of_grafana(name: str) -> None:
    """A key that the models do not know, or a value of the wrong kind, would be lost or refused."""
    model = Dashboard.from_json(DASHBOARDS[name])
    again = JSONEncoder(sort_keys=True).encode(model)
    assert len(DASHBOARDS[name]["panels"]) == len(model.panels or ())
    for panel in panels(DASHBOARDS[name]):
        assert panel["title"] in again


def test_uids_are_stable_readable_and_their_own() -> None:
    uids = {name: DASHBOARDS[name]["uid"] for name in NAMES}
    assert uids == {
        "fidelity-overview.json": "otel-sealed-overview",
        "incident.json": "otel-sealed-incident",
        "observer-health.json": "otel-sealed-health",
    }


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_one_installation_is_in_them(name: str) -> None:
    made = DASHBOARDS[name]
    assert not {"id", "version", "__inputs", "__requires", "gnetId"} & set(made)
    assert 41 <= made["schemaVersion"] <= 42
    for found in _values_of(made, "id"):
        assert isinstance(found, str), "an id of a panel is Grafana's to give"
    assert "${DS_" not in str(made)


def _values_of(value: Any, wanted: str) -> list[Any]:
    if isinstance(value, dict):
        own = [value[wanted]] if wanted in value else []
        return own + [found for inner in value.values() for found in _values_of(inner, wanted)]
    if isinstance(value, list):
        return [found for inner in value for found in _values_of(inner, wanted)]
    return []


# ------------------------------------------------------------------------------------- lint


@pytest.mark.parametrize("name", NAMES)
def test_every_datasource_is_a_variable_that_exists(name: str) -> None:
    made = DASHBOARDS[name]
    kinds = {
        f"${{{variable['name']}}}": variable["query"]
        for variable in made["templating"]["list"]
        if variable["type"] == "datasource"
    }
    assert kinds["${datasource}"] == "prometheus"
    found = _values_of(made, "datasource")
    assert found
    for source in found:
        assert kinds[source["uid"]] == source["type"]


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_asks_names_its_datasource(name: str) -> None:
    made = DASHBOARDS[name]
    asking = [*panels(made), *made["annotations"]["list"]]
    asking += [target for panel in panels(made) for target in panel["targets"]]
    asking += [v for v in made["templating"]["list"] if v["type"] == "query"]
    assert [thing for thing in asking if "datasource" not in thing] == []


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"] in UNITS
    assert defaults["noValue"]
    assert defaults["thresholds"]["steps"]


@pytest.mark.parametrize("panel", PANELS)
def test_a_stat_or_gauge_says_how_it_reduces(panel: dict[str, Any]) -> None:
    if panel["type"] in ("stat", "bargauge"):
        assert panel["options"]["reduceOptions"]["calcs"] == ["lastNotNull"]


@pytest.mark.parametrize("name", NAMES)
def test_titles_are_unique_and_panels_do_not_overlap(name: str) -> None:
    made = list(panels(DASHBOARDS[name]))
    titles = [panel["title"] for panel in made]
    assert len(titles) == len(set(titles))
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARDS[name]["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("query", METRIC_QUERIES)
def test_windows_are_grafanas_own(query: Query) -> None:
    """`rate()` of a window that is no `$__rate_interval` is empty where scrapes are far apart."""
    for function, window in re.findall(r"\b(\w+)\([^()]*(?:\{[^{}]*\})?\[([^\]]+)\]", query.text):
        if function == "rate":
            assert window == "$__rate_interval"
        if function == "increase":
            assert window in {"$__rate_interval", "$__range", "$__interval"}
        if window == "$__range":
            assert query.instant, "over the whole range there is one value"


@pytest.mark.parametrize("panel", PANELS)
def test_legends_stand_below(panel: dict[str, Any]) -> None:
    if panel["type"] == "timeseries":
        assert panel["options"]["legend"]["placement"] == "bottom"
        assert panel["options"]["legend"]["showLegend"] is True


@pytest.mark.parametrize("panel", PANELS)
def test_bars_are_as_wide_as_their_window(panel: dict[str, Any]) -> None:
    """With smaller steps the windows overlap, and one event stands in several bars."""
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    if custom.get("drawStyle") == "bars":
        for target in panel["targets"]:
            if target["datasource"]["type"] == "prometheus":
                assert target["interval"] == "$__rate_interval"


@pytest.mark.parametrize("name", NAMES)
def test_all_is_the_choice_before_there_is_one_and_matches_a_missing_label(name: str) -> None:
    asked = [v for v in DASHBOARDS[name]["templating"]["list"] if v["type"] == "query"]
    for variable in asked:
        assert (variable["includeAll"], variable["multi"]) == (True, True)
        assert variable["allValue"] == ".*"
        assert variable["current"]["value"] == "$__all"
    assert {variable["name"] for variable in asked} == set(reading.ALL)


@pytest.mark.parametrize("name", NAMES)
def test_the_dashboards_lead_to_each_other_and_keep_time_and_variables(name: str) -> None:
    (link,) = DASHBOARDS[name]["links"]
    assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
    assert set(link["tags"]) <= set(DASHBOARDS[name]["tags"])
    uids = {made["uid"] for made in DASHBOARDS.values()}
    for url in _values_of(DASHBOARDS[name]["panels"], "url"):
        found = re.match(r"/d/([\w-]+)\?", url)
        assert url.startswith("/explore?") or (found is not None and found[1] in uids)


def test_exemplars_are_asked_for_where_a_number_leads_to_traces() -> None:
    asked = {
        panel["title"]
        for name in NAMES
        for panel in panels(DASHBOARDS[name])
        for target in panel["targets"]
        if target.get("exemplar")
    }
    assert asked >= {"Violations by verdict", "Violations by service", "Check duration"}


# ------------------------------------------------------------------------------- vocabulary


def test_both_ways_into_prometheus_give_the_same_names() -> None:
    names: dict[str, tuple[str, ...]] = {}
    for series, metric in sorted(scraped_names().items()):
        names[metric.name] = (*names.get(metric.name, ()), series)
    assert names == {name: GOLDEN[name] for name in names}


def test_names_that_differ_between_the_ways_are_avoided() -> None:
    """A gauge of unit 1 ends in `_ratio` on one way only; one with a suffix is doubled or not."""
    for metric in vocab.METRICS:
        assert metric.unit in {"By", "s"} or metric.unit.startswith("{")


@pytest.mark.parametrize("query", METRIC_QUERIES)
def test_queries_use_metrics_and_labels_of_the_vocabulary(query: Query) -> None:
    known = scraped_names()
    found = used(filled(query.text))
    assert found.selected
    grouped: set[str] = set()
    for name, labels in found.selected:
        assert name in known, f"{query.where}: {name} is no metric of ours"
        assert labels <= labels_of(known[name]), query.where
        grouped |= labels_of(known[name])
    assert found.grouped <= grouped, query.where


@pytest.mark.parametrize("query", METRIC_QUERIES)
def test_values_that_queries_ask_for_are_of_the_vocabulary(query: Query) -> None:
    members = {
        attribute.name.replace(".", "_"): set(attribute.members)
        for attribute in vocab.ATTRIBUTES
        if attribute.members
    }
    for node in reading.walk(promql_parser.parse(filled(query.text))):
        if isinstance(node, promql_parser.VectorSelector):
            for matcher in node.matchers.matchers:
                if matcher.name in members and matcher.value != ".*":
                    assert set(matcher.value.split("|")) <= members[matcher.name], query.where


@pytest.mark.parametrize("query", METRIC_QUERIES)
def test_queries_do_not_lean_on_what_only_one_way_has(query: Query) -> None:
    found = used(filled(query.text))
    labels = found.grouped.union(*(labels for _, labels in found.selected))
    lean = {label for label in labels if label.startswith(("otel_scope", "service_", "telemetry"))}
    assert lean == set()
    assert "instance" not in labels


@pytest.mark.parametrize("query", VARIABLES)
def test_variables_list_labels_of_the_vocabulary(query: Query) -> None:
    selector, label = matched(filled(query.text))
    ((name, labels),) = used(selector).selected
    metric = scraped_names()[name]
    assert labels | {label} <= labels_of(metric)


def test_a_renamed_metric_is_found() -> None:
    """The check above is one that can fail."""
    ((name, _),) = used("sum(rate(otel_sealed_violation_total[5m]))").selected
    assert name not in scraped_names()


def test_every_metric_is_on_some_dashboard() -> None:
    known = scraped_names()
    shown = {
        known[metric].name
        for name in NAMES
        for query in queries(name)
        if query.kind == "prometheus"
        for metric, _ in used(filled(query.text)).selected
    }
    assert {metric.name for metric in vocab.METRICS} == shown
