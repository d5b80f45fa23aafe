"""The supplied stack: what can be told of its files without starting it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from dashboards.alerts.render import GRAFANA, RULES, TREE
from otel_sealed import vocab
from tests.dashboards.alert_names import LABELS
from tests.dashboards.prometheus import binary

FOLDER = TREE / "dashboards"


def read(path: str) -> Any:
    return yaml.safe_load((FOLDER / path).read_text(encoding="utf-8"))


COMPOSE = read("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
COLLECTOR = read("compose/collector.yaml")
DATASOURCES: list[dict[str, Any]] = read("provisioning/datasources/otel_sealed.yaml")["datasources"]


def test_the_stack_says_that_it_is_not_started_in_ci() -> None:
    assert "NOT STARTED IN CI" in (FOLDER / "compose.yaml").read_text()


def test_every_file_the_stack_mounts_is_there() -> None:
    mounts = [volume for service in SERVICES.values() for volume in service.get("volumes", ())]
    assert len(mounts) > 5
    for mount in mounts:
        source, _, mode = mount.split(":")
        assert (FOLDER / source).exists()
        assert "ro" == mode


def test_images_are_pinned_and_ports_are_on_the_loopback_alone() -> None:
    for service in SERVICES.values():
        assert re.search(r":v?\d+\.\d+\.\d+\Z", service["image"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert set(service.get("depends_on", ())) <= SERVICES.keys()


def test_pipelines_of_the_collector_name_what_it_has() -> None:
    """Every component is defined and used, and every signal has a pipeline."""
    pipelines = COLLECTOR["service"]["pipelines"]
    assert {"traces", "metrics", "logs"} == pipelines.keys()
    for kind in ("receivers", "processors", "exporters"):
        used = {name for pipeline in pipelines.values() for name in pipeline[kind]}
        assert COLLECTOR[kind].keys() == used


def test_whoever_is_sent_to_is_in_the_stack() -> None:
    urls = [x["url"] for x in DATASOURCES] + [
        x["endpoint"] for x in COLLECTOR["exporters"].values()
    ]
    hosts = {urlsplit(url if "//" in url else f"//{url}").hostname for url in urls}
    assert {"prometheus", "tempo", "loki", "alertmanager"} == hosts
    assert hosts <= SERVICES.keys()


def test_every_kind_of_data_source_a_dashboard_asks_for_is_provisioned() -> None:
    asked = set()
    for path in (FOLDER / "grafana").glob("*.json"):
        for variable in json.loads(path.read_text())["templating"]["list"]:
            if variable["type"] == "datasource":
                asked.add(variable["query"])
    assert {"prometheus", "tempo", "loki"} == asked
    assert asked <= {source["type"] for source in DATASOURCES}


def test_links_between_data_sources_lead_to_one_there_is() -> None:
    uids = [source["uid"] for source in DATASOURCES]
    assert len(uids) == len(set(uids))
    linked = set(re.findall(r"'(?:datasourceUid|alertmanagerUid)': '([^']+)'", str(DATASOURCES)))
    assert linked
    assert linked <= set(uids)


def test_the_link_to_the_minting_trace_is_an_attribute_of_the_event() -> None:
    loki = next(source for source in DATASOURCES if source["type"] == "loki")
    fields = {field["matcherRegex"] for field in loki["jsonData"]["derivedFields"]}
    assert LABELS["otel_sealed_origin_trace_id"].name in vocab.VIOLATION.attributes
    assert {"trace_id", "otel_sealed_origin_trace_id"} == fields


def test_a_value_for_grafana_is_not_taken_for_a_variable_of_its_environment() -> None:
    text = (FOLDER / "provisioning/datasources/otel_sealed.yaml").read_text()
    assert [] == re.findall(r"(?<!\$)\$\{", text)


def test_dashboards_are_looked_for_where_they_are_mounted() -> None:
    (provider,) = read("provisioning/dashboards/otel_sealed.yaml")["providers"]
    mounted = [mount.split(":")[1] for mount in SERVICES["grafana"]["volumes"]]
    assert provider["options"]["path"] in mounted


def test_promtool_takes_the_configuration_of_prometheus(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "compose/prometheus.yaml", tmp_path / "prometheus.yml")
    shutil.copy(TREE / RULES, tmp_path)
    done = subprocess.run(
        [binary("promtool", "prometheus"), "check", "config", tmp_path / "prometheus.yml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    assert "1 rule files found" in done.stdout


# ------------------------------------------------------------------------------- Grafana's rules

MANAGED: list[dict[str, Any]] = yaml.safe_load((TREE / GRAFANA).read_text())["groups"][0]["rules"]


def test_grafanas_rules_are_those_of_prometheus_and_paused() -> None:
    rules = yaml.safe_load((TREE / RULES).read_text())["groups"][0]["rules"]
    assert [rule["expr"] for rule in rules] == [
        rule["data"][0]["model"]["expr"] for rule in MANAGED
    ]
    assert all(rule["isPaused"] for rule in MANAGED)


def test_grafanas_rules_have_uids_and_titles_of_their_own() -> None:
    """A uid has at most 40 characters; titles are unique in a folder."""
    for key in ("uid", "title"):
        found = [rule[key] for rule in MANAGED]
        assert len(found) == len(set(found))
        assert all(re.fullmatch(r"[\w -]{1,40}", text) for text in found)


@pytest.mark.parametrize("rule", MANAGED, ids=lambda rule: rule["title"])
def test_the_condition_of_a_managed_rule_is_one_of_its_queries(rule: dict[str, Any]) -> None:
    query, condition = rule["data"]
    assert rule["condition"] == condition["refId"]
    assert condition["model"]["expression"] == query["refId"]
    assert query["datasourceUid"] in {source["uid"] for source in DATASOURCES}
    assert "$value " not in rule["annotations"]["summary"]
