"""Every query in the grammar that Grafana itself reads it with: TraceQL, LogQL, PromQL.

The grammars are npm packages, which `.ci/run dashboards` installs; without them the tests are
skipped, and fail instead where `REQUIRE_PROMETHEUS` is set, as it is there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from dashboards.alerts.render import TREE
from dashboards.alerts.runbooks import RUNBOOKS
from otel_sealed import vocab
from tests.dashboards.prometheus import REQUIRE
from tests.dashboards.reading import DASHBOARDS, annotation_queries, filled, queries

Errors = Callable[[list[tuple[str, str]]], list[list[int]]]
GRAMMARS = Path(__file__).with_name("grammars")
BROKEN = {
    "tempo": (
        "{ span.otel_sealed.findings =~ }",
        '{ span.a = "b" && }',
        '{ span.a = "b" ',
        "{ } | rate( by (x)",
    ),
    "loki": (
        '{service_name=~".+"} | otel_sealed_verdict=',
        "{service_name} | json",
        'sum by (a) (count_over_time({a="b"} [))',
        '{a="b"',
    ),
    "prometheus": ("sum by (a) (rate(x[5m])", "x{a=}", "rate(x[])"),
}


@pytest.fixture(name="errors", scope="module")
def _errors() -> Errors:
    node = shutil.which("node")
    if node is None or not (GRAMMARS / "node_modules").is_dir():
        reason = "the grammars are not installed: npm ci in tests/dashboards/grammars"
        if os.environ.get(REQUIRE):
            pytest.fail(reason)
        pytest.skip(reason)

    def errors(asked: list[tuple[str, str]]) -> list[list[int]]:
        lines = "\n".join(json.dumps({"kind": kind, "text": text}) for kind, text in asked)
        done = subprocess.run(
            [node, str(GRAMMARS / "check.mjs")],
            input=lines,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return errors


def written() -> list[tuple[str, str]]:
    """Every query of every dashboard, and those that links carry into Explore."""
    asked = [
        (query.kind, filled(query.text))
        for name in DASHBOARDS
        for query in (*queries(name), *annotation_queries(name))
    ]
    return [*asked, *(("tempo", text) for text in linked())]


def linked() -> list[str]:
    """The TraceQL of links, as it is when Grafana has filled in the cell."""
    found = []
    for made in DASHBOARDS.values():
        for url in re.findall(r'"url": "(/explore[^"]+)"', json.dumps(made)):
            panes = unquote(url.partition("panes=")[2])
            text = re.sub(r"\$\{__data\.fields\.\w+\}", "word", panes)
            found.append(json.loads(text)["a"]["queries"][0]["query"])
    return found


def test_every_query_is_of_its_language(errors: Errors) -> None:
    asked = written()
    assert {kind for kind, _ in asked} == {"prometheus", "loki", "tempo"}
    answers = errors(asked)
    wrong = [(one, at) for one, at in zip(asked, answers, strict=True) if at]
    assert wrong == []


def documented() -> list[tuple[str, str]]:
    """Every query of the runbooks and of the page on backends."""
    kinds = {"promql": "prometheus", "logql": "loki", "traceql": "tempo"}
    looks = [(look.language, look.query) for book in RUNBOOKS for look in book.look]
    page = (TREE / "docs/backends.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(promql|logql|traceql)\n(.*?)\n```", page, re.DOTALL)
    return [(kinds[language], text) for language, text in [*looks, *blocks]]


def test_every_documented_query_is_of_its_language(errors: Errors) -> None:
    asked = documented()
    assert {kind for kind, _ in asked} == {"prometheus", "loki", "tempo"}
    assert [[]] * len(asked) == errors(asked)


def test_what_is_broken_is_found(errors: Errors) -> None:
    asked = [(kind, text) for kind, texts in BROKEN.items() for text in texts]
    assert [] not in errors(asked)


def test_there_are_links_into_traces() -> None:
    assert linked()


@pytest.mark.parametrize("kind", ["tempo", "loki"])
def test_drill_downs_use_names_of_the_vocabulary(kind: str) -> None:
    texts = [text for of, text in written() if of == kind]
    attributes = {attribute.name for attribute in vocab.ATTRIBUTES}
    if kind == "tempo":
        used = {name for text in texts for name in re.findall(r"span\.([a-z_.]+)", text)}
        assert used <= attributes
        assert used
    else:
        labels = {attribute.replace(".", "_") for attribute in attributes}
        events = {event.name for event in vocab.EVENTS}
        for text in texts:
            assert set(re.findall(r"`([\w.]+)`", text)) <= events
            used = set(re.findall(r"\b((?:otel_sealed|gen_ai|event)_\w+)", text))
            assert used
            assert used <= labels


def test_two_arrays_are_never_paired() -> None:
    """An array matches where any element does, so two of them may match on different rows."""
    arrays = {a.name for a in vocab.ATTRIBUTES if a.type.endswith("[]")}
    for kind, text in written():
        if kind == "tempo":
            used = [name for name in re.findall(r"span\.([a-z_.]+)", text) if name in arrays]
            assert used in ([], [vocab.FINDINGS]), text
