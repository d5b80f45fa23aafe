"""What the committed dashboards hold: panels, queries, variables as Grafana fills them in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import promql_parser

from otel_sealed import vocab

FOLDER: Final = Path(__file__).resolve().parents[2] / "dashboards" / "grafana"
DASHBOARDS: Final = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.iterdir())
}
ALL: Final = dict.fromkeys(("service", "provider", "model", "host"), ".*")
"""The variables with "All" chosen: Grafana puts the custom all value in as it is."""
_VARIABLE: Final = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel, a variable or an annotation."""

    where: str
    kind: str
    text: str
    instant: bool = False


def panels(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel that shows something, also those of closed rows."""
    for panel in dashboard["panels"]:
        yield from panel.get("panels", ())
        if panel["type"] != "row":
            yield panel


def queries(name: str) -> Iterator[Query]:
    """Every query of the panels of a dashboard; `kind` is that of its datasource."""
    for panel in panels(DASHBOARDS[name]):
        for target in panel["targets"]:
            text = target.get("expr") or target["query"]
            kind = target["datasource"]["type"]
            where = f"{name}, {panel['title']} {target['refId']}"
            yield Query(where, kind, text, bool(target.get("instant")))


def variable_queries(name: str) -> Iterator[Query]:
    """Every query of a variable."""
    for variable in DASHBOARDS[name]["templating"]["list"]:
        if variable["type"] == "query":
            yield Query(f"{name}, ${variable['name']}", "variable", variable["query"]["query"])


def annotation_queries(name: str) -> Iterator[Query]:
    """Every query of an annotation."""
    for annotation in DASHBOARDS[name]["annotations"]["list"]:
        yield Query(f"{name}, {annotation['name']}", "prometheus", annotation["expr"])


def filled(
    text: str, chosen: Mapping[str, str] = ALL, *, scrape_s: int = 60, range_s: int = 3600
) -> str:
    """A query as Grafana sends it.

    `$__rate_interval` is at least four scrapes; `$__interval` the range over the points of a panel.
    """
    interval = max(range_s // 60, 1)
    known = {
        **chosen,
        "__rate_interval": f"{max(interval + scrape_s, 4 * scrape_s)}s",
        "__interval": f"{interval}s",
        "__range": f"{range_s}s",
        "__auto": f"{interval}s",
    }
    return _VARIABLE.sub(lambda found: known[found[1]], text)


def matched(text: str) -> tuple[str, str]:
    """The selector and the label of `label_values(selector, label)`."""
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", text)
    assert found is not None, text
    return found[1], found[2]


# -------------------------------------------------------------------------------------- names


@dataclass(frozen=True, slots=True)
class Used:
    """What a PromQL expression uses: metrics, and labels it matches or groups by."""

    selected: frozenset[tuple[str, frozenset[str]]]
    grouped: frozenset[str]


def used(expression: str) -> Used:
    """The metrics and labels of an expression, from its syntax tree."""
    selected, grouped = set(), set()
    for node in walk(promql_parser.parse(expression)):
        if isinstance(node, promql_parser.VectorSelector):
            labels = frozenset(matcher.name for matcher in node.matchers.matchers)
            selected.add((str(node.name), labels))
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            grouped |= set(node.modifier.labels)
        if isinstance(node, promql_parser.BinaryExpr) and node.modifier is not None:
            grouped |= set(node.modifier.matching.labels if node.modifier.matching else ())
    return Used(frozenset(selected), frozenset(grouped))


def walk(node: Any) -> Iterator[Any]:
    """Every node of a syntax tree."""
    yield node
    for name in ("lhs", "rhs", "expr", "args", "vector_selector", "param"):
        inner = getattr(node, name, None)
        for child in inner if isinstance(inner, list) else [inner]:
            if child is not None and type(child).__module__ == type(node).__module__:
                yield from walk(child)


SUFFIXES: Final = {"By": "_bytes", "s": "_seconds"}


def scraped_names() -> dict[str, vocab.Metric]:
    """What Prometheus calls each series of the vocabulary, on both ways into it."""
    names = {}
    for metric in vocab.METRICS:
        stem = metric.name.replace(".", "_") + SUFFIXES.get(metric.unit, "")
        match metric.instrument:
            case "counter":
                names[f"{stem}_total"] = metric
            case "histogram":
                names |= {f"{stem}_{part}": metric for part in ("bucket", "sum", "count")}
            case _:
                names[stem] = metric
    return names


def labels_of(metric: vocab.Metric) -> frozenset[str]:
    """The labels a series of a metric has on both ways into Prometheus."""
    own = {attribute.replace(".", "_") for attribute in metric.attributes}
    return frozenset(own | {"job", "instance"} | ({"le"} if metric.boundaries else set()))
