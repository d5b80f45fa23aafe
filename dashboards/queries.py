"""PromQL of the dashboards, made of the vocabulary so that a renamed metric cannot be missed.

Names are those of both ways into Prometheus: the Python exporter's scrape page and Prometheus's own
OTLP endpoint with its default translation. What only one of them has (`otel_scope_name`, resource
attributes on every series) is neither filtered nor grouped by; `job` is on every scraped series and
made of `service.name` by the OTLP endpoint, and "All" matches where it is missing.
"""

from __future__ import annotations

from typing import Final

from dashboards.alerts.promql import label, name
from otel_sealed import vocab

__all__ = [
    "events",
    "label",
    "name",
    "or_zero",
    "quantile",
    "rate",
    "refused_by_host",
    "select",
    "share",
    "some",
]

JOB: Final = "job"
RATE: Final = "$__rate_interval"
RANGE: Final = "$__range"
BORN: Final = "1h"
"""A series without a sample for so long before a window is new in it. Shorter, and the first scrape
after an outage would count everything a process ever counted as of now."""
_FILTERS: Final = {
    vocab.PROVIDER: "provider",
    vocab.REQUEST_MODEL: "model",
    vocab.SERVER_ADDRESS: "host",
}
"""Attributes that a variable of the dashboard filters, where a metric has them."""


def select(
    metric: vocab.Metric,
    *matchers: tuple[str, str, str],
    suffix: str = "",
    without: tuple[str, ...] = (),
) -> str:
    """A selector that obeys the variables of the dashboard.

    Args:
        metric: What is selected.
        matchers: What else is asked, each as (attribute, operator, value).
        suffix: Of a histogram, which of its series.
        without: Attributes whose variable is not obeyed.
    """
    asked = [f'{JOB}=~"$service"']
    asked += [
        f'{label(attribute)}=~"${variable}"'
        for attribute, variable in _FILTERS.items()
        if attribute in metric.attributes and attribute not in without
    ]
    asked += [f'{label(key)}{operator}"{value}"' for key, operator, value in matchers]
    return f"{name(metric)}{suffix}{{{', '.join(asked)}}}"


def rate(selector: str, *by: str) -> str:
    """Per second, summed by labels."""
    return _sum(f"rate({selector}[{RATE}])", by)


def events(selector: str, *by: str, window: str = RATE) -> str:
    """How many in a window, also those that a series is born with.

    `increase()` compares the samples within a window: it does not see the one before, so that of
    four scrapes it makes 4/3 of what happened, and it does not see a birth; the first event of its
    kind in a process is one. Over a short window the difference to the sample before is exact. Over
    the whole range it is `increase()`, whose error is small there, and which minds restarts.
    """
    came_to = f"max_over_time({selector}[{window}])"
    new = f"{came_to} unless max_over_time({selector}[{BORN}] offset {window})"
    grown = f"clamp_min({came_to} - {selector} offset {window}, 0)"
    if window == RANGE:
        grown = f"increase({selector}[{window}])"
    return _sum(f"({new}) or {grown}", by)


def some(expression: str) -> str:
    """Only what is more than nothing, so that a legend names what there is."""
    return f"{expression} > 0"


def share(part: str, whole: str) -> str:
    """A ratio; nothing where there was nothing."""
    return f"({part}) / ({whole} > 0)"


def refused_by_host() -> str:
    """Calls refused over all calls, by host; zero where none was."""
    rejected = select(vocab.OUTCOMES, (vocab.PROVIDER_VERDICT, "=", "rejected"))
    refused = rate(rejected, vocab.SERVER_ADDRESS)
    calls = rate(select(vocab.OUTCOMES), vocab.SERVER_ADDRESS)
    return share(f"{refused} or 0 * {calls}", calls)


def or_zero(expression: str) -> str:
    """Zero instead of nothing, but only while some process reports at all."""
    return f"{expression} or 0 * sum({select(vocab.PROCESS_STATE)})"


def quantile(q: float, metric: vocab.Metric, *by: str) -> str:
    """A quantile of a histogram, by labels."""
    buckets = rate(select(metric, suffix="_bucket"), "le", *by)
    return f"histogram_quantile({q:g}, {buckets})"


def _sum(expression: str, by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(map(label, by))}) ({expression})" if by else f"sum({expression})"
