"""Which names stand in a query, held against the vocabulary. Each complaint is one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import promql_parser as ast

from dashboards.alerts import promql
from otel_sealed import vocab

_SUFFIXES: Final = {
    "counter": ("",),
    "updowncounter": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}
METRICS: Final[Mapping[str, vocab.Metric]] = {
    promql.name(metric) + suffix: metric
    for metric in vocab.METRICS
    for suffix in _SUFFIXES[metric.instrument]
}
ATTRIBUTES: Final = {attribute.name: attribute for attribute in vocab.ATTRIBUTES}
LABELS: Final = {promql.label(name): attribute for name, attribute in ATTRIBUTES.items()}
_OPEN: Final = {vocab.ARTIFACT, vocab.RULE}
_OURS: Final = re.compile(r"\b((?:otel_sealed|gen_ai)\.\w[\w.]*)")
_LABEL: Final = re.compile(r"\b(otel_sealed_\w+|gen_ai_\w+|event_name|server_address)\b")


def promql_complaints(query: str) -> list[str]:
    """What of a PromQL query names nothing: metrics, labels of theirs, values of closed lists."""
    return list(_walk(ast.parse(query)))


def metrics_of(query: str) -> set[str]:
    """The metrics a PromQL query reads."""
    return _metrics(ast.parse(query))


def _metrics(root: Any) -> set[str]:
    return {str(node.name) for node in _nodes(root) if isinstance(node, ast.VectorSelector)}


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    below = [getattr(node, part, None) for part in ("lhs", "rhs", "expr", "param")]
    below.append(node.vector_selector if isinstance(node, ast.MatrixSelector) else None)
    for child in [*below, *(getattr(node, "args", None) or ())]:
        if child is not None and not isinstance(child, str):
            yield from _nodes(child)


def _walk(root: Any) -> Iterator[str]:
    for node in _nodes(root):
        if isinstance(node, ast.VectorSelector):
            yield from _selector(node)
        if isinstance(node, ast.AggregateExpr | ast.BinaryExpr):
            yield from _grouping(node)


def _selector(node: Any) -> Iterator[str]:
    if node.name == promql.TARGET_INFO:
        return
    metric = METRICS.get(node.name)
    if metric is None:
        yield f"no metric {node.name}"
        return
    known = {promql.label(name): ATTRIBUTES[name] for name in metric.attributes}
    for matcher in node.matchers.matchers:
        attribute = known.get(matcher.name)
        if attribute is None:
            yield f"{node.name} has no label {matcher.name}"
        elif attribute.members and attribute.name not in _OPEN:
            values = matcher.value.split("|")
            yield from (
                f"{matcher.name} is never {value}"
                for value in values
                if value not in attribute.members
            )


def _grouping(node: Any) -> Iterator[str]:
    modifier = node.modifier
    if isinstance(node, ast.BinaryExpr):
        modifier = modifier and modifier.matching
    labels = modifier.labels if modifier else ()
    found = _metrics(node)
    allowed = {
        promql.label(name)
        for metric in found & METRICS.keys()
        for name in METRICS[metric].attributes
    }
    for label in labels:
        if label not in allowed | set(promql.SERVICE):
            yield f"none of {', '.join(sorted(found))} has a label {label}"


def word_complaints(text: str) -> list[str]:
    """Names in any other language that look like ours and are not: dotted ones, and labels."""
    known = {*ATTRIBUTES, *(event.name for event in vocab.EVENTS)}
    known |= {metric.name for metric in vocab.METRICS}
    labels = LABELS.keys() | METRICS.keys() | {promql.label(name) for name in known}
    wrong = [name for name in _OURS.findall(text) if name.rstrip(".") not in known]
    return wrong + [name for name in _LABEL.findall(text) if name not in labels]
