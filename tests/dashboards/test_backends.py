"""The page on backends: names are of the vocabulary, snippets are whole, and *run* means run."""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.alerts.render import TREE
from tests.dashboards import services
from tests.dashboards.alert_names import promql_complaints, word_complaints
from tests.dashboards.prometheus import binary, eventually, prometheus

PAGE = (TREE / "docs/backends.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| Backend", "| ---"))
]
WANTED = (
    "Tempo Loki Prometheus VictoriaMetrics ClickHouse Datadog Honeycomb New_Relic Sentry Langfuse"
    " Phoenix"
)
PROMQL = [text.strip() for language, text in BLOCKS if language == "promql"]


def test_every_backend_has_a_row_a_section_and_a_snippet() -> None:
    wanted = {name.replace("_", " ") for name in WANTED.split()}
    assert wanted == {row[0] for row in ROWS}
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
    assert wanted == sections.keys()
    assert all("```yaml\nexporters:\n" in text for text in sections.values())


def test_every_row_says_whether_it_was_run_or_read() -> None:
    marks = {tuple(row[:2]): re.match(r"(run|read)\b", row[4]) for row in ROWS}
    assert [] == [row for row, mark in marks.items() if mark is None]


@pytest.mark.parametrize("query", PROMQL)
def test_every_promql_query_asks_for_what_there_is(query: str) -> None:
    assert [] == promql_complaints(query)


@pytest.mark.parametrize(
    "text", [text for language, text in BLOCKS if language != "yaml"], ids=lambda text: text[:40]
)
def test_every_name_in_a_query_is_of_the_vocabulary(text: str) -> None:
    assert [] == word_complaints(text)


def test_a_wrong_name_in_any_language_is_found() -> None:
    assert ["otel_sealed.verdicts"] == word_complaints('{ span.otel_sealed.verdicts = "x" }')
    assert ["otel_sealed.fates"] == word_complaints("WHERE LogAttributes['otel_sealed.fates'] = 1")
    assert ["otel_sealed_verdikt"] == word_complaints('| otel_sealed_verdikt="breaks"')


def test_exporters_of_a_snippet_are_whole() -> None:
    snippets: list[Any] = [yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml"]
    exporters = [one for found in snippets for one in found.get("exporters", {}).items()]
    assert len(exporters) >= 11
    for name, given in exporters:
        assert name.split("/")[0] in {"otlp", "otlphttp", "clickhouse", "datadog"}
        assert any("endpoint" in key for key in given) or given["api"]["key"]


def test_every_promql_query_is_answered_by_a_real_prometheus(tmp_path: Path) -> None:
    """This is what *run* stands for in the row of Prometheus."""
    binary()
    made = [
        services.Service("dropping", services.dropping),
        services.Service("sanitising", services.sanitising),
    ]
    targets = {service.name: [service.address] for service in made}
    with services.running(made), prometheus(tmp_path, targets) as found:
        time.sleep(2)
        for query in PROMQL:
            # what the refused service is asked for last is answered once it grew between scrapes
            eventually(partial(found.query, query), what=query, within_s=30)
