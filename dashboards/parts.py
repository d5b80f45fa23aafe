"""What the three dashboards are built of: variables, links, annotations, panels of each kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from grafana_foundation_sdk.builders import (
    bargauge,
    logs,
    loki,
    prometheus,
    stat,
    table,
    tempo,
    timeseries,
)
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models import prometheus as prometheus_model
from grafana_foundation_sdk.models import tempo as tempo_model

from dashboards.queries import JOB, RATE, label, name, select
from otel_sealed import vocab

TAG: Final = "otel-sealed"
OVERVIEW: Final = "otel-sealed-overview"
INCIDENT: Final = "otel-sealed-incident"
HEALTH: Final = "otel-sealed-health"

METRICS: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
TRACES: Final = common.DataSourceRef(type_val="tempo", uid="${traces}")
LOGS: Final = common.DataSourceRef(type_val="loki", uid="${logs}")

GREEN, YELLOW, ORANGE, RED, BLUE, GREY = "green", "yellow", "orange", "red", "blue", "text"
COLOURS: Final = {
    "ok": "green",
    "allowed": "blue",
    "unverifiable": "purple",
    "degrades": "orange",
    "breaks": "red",
    "none": "text",
    "accepted": "green",
    "removed": "orange",
    "rejected": "red",
    "unreported": "text",
    "hit": "green",
    "miss": "orange",
    "active": "green",
    "killed": "red",
    "resting": "orange",
    "replayed": "green",
    "by_reference": "blue",
}
"""One colour for one word on every panel. Red and orange are kept for what is a violation."""
_WIDTHS: Final = {"Provider": 110, "Model": 150, "Artifact": 310, "Fate": 140, "Verdict": 100}
"""Pixels of columns of words: a table that is wider than its panel hides its numbers."""
Steps = Sequence[tuple[float | None, str]]
Target = prometheus.Dataquery
Link = dict[str, str]
Built = Any
"""A builder of the SDK; its panel kinds have no type in common that says more."""

# ------------------------------------------------------------------------------------ queries


def series(expression: str, legend: str = "", *, exemplars: bool = False) -> Target:
    """A query over time. `exemplars` asks for the traces behind the numbers as well."""
    made = prometheus.Dataquery().datasource(METRICS).expr(expression).range()
    made = made.legend_format(legend or "__auto")
    return made.exemplar(True) if exemplars else made


def instant(expression: str, legend: str = "", *, as_table: bool = False) -> Target:
    """A query of one moment, the end of the range."""
    made = prometheus.Dataquery().datasource(METRICS).expr(expression).instant()
    made = made.legend_format(legend or "__auto")
    return made.format(prometheus_model.PromQueryFormat.TABLE) if as_table else made


# ---------------------------------------------------------------------------------- dashboard


def new(uid: str, title: str, description: str, *, since: str) -> build.Dashboard:
    """An empty dashboard with the variables, links and annotations that all have."""
    made = (
        build.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG, "gen-ai", "opentelemetry"])
        .timezone("browser")
        .time(since, "now")
        .refresh("1m")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(
            build.DashboardLink("Sealed state")
            .type(dashboard.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
            .as_dropdown(False)
        )
    )
    for variable in _variables():
        made = made.with_variable(variable)
    for annotation in _annotations():
        made = made.annotation(annotation)
    return made


def _variables() -> list[Any]:
    source = build.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    seen = name(vocab.VIOLATIONS)
    service = f'{JOB}=~"$service"'
    provider, model = label(vocab.PROVIDER), label(vocab.REQUEST_MODEL)
    narrowed = f'{{{service}, {provider}=~"$provider"}}'
    hosts = f"label_values({name(vocab.OUTCOMES)}{narrowed}, {label(vocab.SERVER_ADDRESS)})"
    return [
        source,
        _query("service", "Service", f"label_values({seen}, {JOB})"),
        _query("provider", "Provider", f"label_values({seen}{{{service}}}, {provider})"),
        _query("model", "Model", f"label_values({name(vocab.CALLS)}{narrowed}, {model})"),
        _query("host", "Host", hosts),
    ]


def _query(variable: str, title: str, query: str) -> build.QueryVariable:
    return (
        build.QueryVariable(variable)
        .label(title)
        .datasource(METRICS)
        .query(
            {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"}
        )
        .definition(query)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        # a series without the label is of "All" too
        .all_value(".*")
        .current(dashboard.VariableOption(selected=True, text="All", value="$__all"))
    )


def drill_down_sources() -> list[Any]:
    """Variables of the stores that hold traces and log events."""
    return [
        build.DatasourceVariable("traces").label("Tempo").type("tempo"),
        build.DatasourceVariable("logs").label("Loki").type("loki"),
    ]


def _annotations() -> list[build.AnnotationQuery]:
    state = select(vocab.PROCESS_STATE, (vocab.STATE, "!=", vocab.ACTIVE))
    broken = select(vocab.VIOLATIONS, (vocab.VERDICT, "=", "breaks"))
    return [
        _annotation(
            "Requests that break",
            f"sum(increase({broken}[$__rate_interval])) > 0",
            "a sealed value came back in a way that the provider refuses",
            RED,
        ),
        _annotation(
            "Nobody watches",
            f"sum by ({label(vocab.STATE)}) ({state}) > 0",
            "calls go through unobserved: {{" + label(vocab.STATE) + "}}",
            GREY,
        ),
    ]


def _annotation(title: str, query: str, text: str, colour: str) -> build.AnnotationQuery:
    return (
        build.AnnotationQuery()
        .name(title)
        .datasource(METRICS)
        .enable(True)
        .icon_color(colour)
        .expr(query)
        .title_format(title)
        .text_format(text)
        .step("60s")
    )


def row(title: str) -> build.Row:
    """A headline."""
    return build.Row(title)


def filled(
    made: build.Dashboard, first: Iterable[Built], *sections: tuple[str, Iterable[Built]]
) -> build.Dashboard:
    """`made` with panels that stand first, then those of each section under its headline."""
    for panel in first:
        made = made.with_panel(panel)
    for title, panels in sections:
        made = made.with_row(row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return made


# ------------------------------------------------------------------------------------- panels


def thresholds(steps: Steps) -> build.ThresholdsConfig:
    """Colours by value, from the first step on, which has no bound."""
    return (
        build.ThresholdsConfig()
        .mode(dashboard.ThresholdsMode.ABSOLUTE)
        .steps([dashboard.Threshold(value=value, color=colour) for value, colour in steps])
    )


def number(
    title: str,
    description: str,
    query: str,
    unit: str,
    steps: Steps,
    *,
    decimals: int | None = None,
    over_time: bool = False,
    width: int = 4,
) -> Built:
    """One number; `over_time` draws its course behind it and shows the last."""
    made = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(unit)
        .thresholds(thresholds(steps))
        .color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.AREA if over_time else common.BigValueGraphMode.NONE)
        .no_value("no data")
        .height(4)
        .span(width)
        .with_target(series(query) if over_time else instant(query))
    )
    return made if decimals is None else made.decimals(decimals)


def _colour_of(word: str) -> tuple[str, list[dashboard.DynamicConfigValue]]:
    fixed = {"mode": "fixed", "fixedColor": COLOURS[word]}
    # the word as it stands or at the end of a legend
    return f"/(^| ){word}$/", [dashboard.DynamicConfigValue(id_val="color", value=fixed)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How series over time are drawn.

    Attributes:
        steps: Colours by value; bounds beyond the first step are drawn as lines.
        words: Words whose series have the colour of the word.
        empty: What is said where there is nothing to draw.
    """

    width: int = 12
    height: int = 8
    stacked: bool = False
    bars: bool = False
    least: float | None = 0
    most: float | None = None
    decimals: int | None = None
    steps: Steps = ((None, GREEN),)
    words: tuple[str, ...] = ()
    empty: str = "no data"


LINES: Final = Look()
COUNTS: Final = Look(bars=True, stacked=True, decimals=0)
"""What happened in each interval."""
KINDS: Final = replace(COUNTS, empty="none, or no data")
"""The same, of kinds of which most never happen."""
_AT_LEAST: Final = {"short": 1, "ops": 1, "reqps": 1, "percentunit": 0.01}
"""What the axis of a unit reaches at least."""


def chart(
    title: str, description: str, targets: Sequence[Target], unit: str, look: Look = LINES
) -> Built:
    """Series over time."""
    made = _drawn(timeseries.Panel(), look)
    made = made.title(title).description(description).datasource(METRICS).unit(unit)
    made = made.thresholds(thresholds(look.steps)).no_value(look.empty)
    made = made.color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.PALETTE_CLASSIC))
    made = made.legend(
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    made = made.tooltip(
        common_builders.VizTooltipOptions()
        .mode(common.TooltipDisplayMode.MULTI)
        .sort(common.SortOrder.DESCENDING)
    )
    if unit in _AT_LEAST and look.most is None:
        # all zeros would be drawn on a scale of a hundred
        made = made.axis_soft_max(_AT_LEAST[unit])
    for word in look.words:
        made = made.override_by_regexp(*_colour_of(word))
    for target in targets:
        # one bar a window: with smaller steps windows overlap, and an event stands in several bars
        made = made.with_target(target.interval(RATE) if look.bars else target)
    return made


def _drawn(made: Built, look: Look) -> Built:
    lined = len(look.steps) > 1
    style = common.GraphThresholdsStyleMode.DASHED if lined else common.GraphThresholdsStyleMode.OFF
    made = made.height(look.height).span(look.width)
    made = made.draw_style(common.GraphDrawStyle.BARS if look.bars else common.GraphDrawStyle.LINE)
    filled = 60 if look.bars else 25 if look.stacked else 0
    made = made.line_width(1 if look.bars else 2).fill_opacity(filled)
    made = made.show_points(common.VisibilityMode.AUTO)
    made = made.thresholds_style(common_builders.GraphThresholdsStyleConfig().mode(style))
    if look.stacked:
        mode = common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A")
        made = made.stacking(mode)
    if look.least is not None:
        made = made.min(look.least)
    if look.most is not None:
        made = made.max(look.most)
    if look.least is None:
        # a share that is whole is drawn at the top, and a loss of one in a hundred is seen
        made = made.axis_soft_min(0.9)
    return made if look.decimals is None else made.decimals(look.decimals)


def ranking(
    title: str, description: str, query: str, legend: str, unit: str, *, width: int = 8
) -> Built:
    """The largest of a kind, as bars."""
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(unit)
        .decimals(0)
        .min(0)
        .thresholds(thresholds(((None, BLUE),)))
        .color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
        .display_mode(common.BarGaugeDisplayMode.BASIC)
        .orientation(common.VizOrientation.HORIZONTAL)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("none, or no data")
        .height(8)
        .span(width)
        .with_target(instant(query, legend))
    )


def rows(
    title: str,
    description: str,
    queries: Mapping[str, str],
    columns: Mapping[str, str],
    units: Mapping[str, str],
    *,
    sort: str,
    size: tuple[int, int] = (24, 9),
    links: Mapping[str, Link] | None = None,
) -> Built:
    """A table.

    Args:
        title: Of the panel.
        description: Of the panel.
        queries: Query by the title of the column that shows its value.
        columns: Title of the column by label, in their order.
        units: Unit by the title of a column of numbers.
        sort: Title of the column that the largest stand first of.
        size: Width in the grid of 24, and height.
        links: Where a cell leads to, by the title of its column.
    """
    values = {
        f"Value #{chr(65 + at)}" if len(queries) > 1 else "Value": title
        for at, title in enumerate(queries)
    }
    order = [*columns, *values]
    made = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(next(iter(units.values())))
        .thresholds(thresholds(((None, GREY),)))
        .filterable(True)
        .sort_by([common_builders.TableSortByFieldState().display_name(sort).desc(True)])
        .no_value("no rows")
        .span(size[0])
        .height(size[1])
        .transformations(
            [
                dashboard.DataTransformerConfig(id_val="merge", options={}),
                dashboard.DataTransformerConfig(
                    id_val="organize",
                    options={
                        "excludeByName": {"Time": True},
                        "indexByName": {column: at for at, column in enumerate(order)},
                        "renameByName": {**columns, **values},
                    },
                ),
            ]
        )
    )
    for column, unit in units.items():
        value = dashboard.DynamicConfigValue(id_val="unit", value=unit)
        plain = dashboard.DynamicConfigValue(id_val="decimals", value=0)
        made = made.override_by_name(column, [value, plain] if unit == "locale" else [value])
    # with few columns there is room enough
    for column in columns.values() if "Artifact" in columns.values() else ():
        if column in _WIDTHS:
            width = dashboard.DynamicConfigValue(id_val="custom.width", value=_WIDTHS[column])
            made = made.override_by_name(column, [width])
    for column in ("Verdict", "Provider says"):
        if column in columns.values():
            made = made.override_by_name(column, _coloured())
    for column, link in (links or {}).items():
        shown = dashboard.DynamicConfigValue(id_val="links", value=[link])
        made = made.override_by_name(column, [shown])
    for at, query in enumerate(queries.values()):
        made = made.with_target(instant(query, as_table=True).ref_id(chr(65 + at)))
    return made


def _coloured() -> list[dashboard.DynamicConfigValue]:
    shown = {
        word: {"color": colour, "index": at} for at, (word, colour) in enumerate(COLOURS.items())
    }
    mappings = [{"type": "value", "options": shown}]
    return [
        dashboard.DynamicConfigValue(id_val="mappings", value=mappings),
        dashboard.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
    ]


def log_lines(title: str, description: str, query: str, *, width: int = 24) -> Built:
    """Log events out of Loki."""
    return (
        logs.Panel()
        .title(title)
        .description(description)
        .datasource(LOGS)
        .unit("short")
        .thresholds(thresholds(((None, GREY),)))
        .no_value("none")
        .show_time(True)
        .wrap_log_message(True)
        .enable_log_details(True)
        .height(9)
        .span(width)
        .with_target(loki.Dataquery().datasource(LOGS).expr(query).query_type("range"))
    )


def log_counts(title: str, description: str, query: str, legend: str) -> Built:
    """Log events out of Loki, counted."""
    made = chart(title, description, [], "short", COUNTS)
    target = loki.Dataquery().datasource(LOGS).expr(query).legend_format(legend)
    return made.datasource(LOGS).with_target(target.query_type("range"))


def traces(title: str, description: str, query: str, *, width: int = 12) -> Built:
    """Traces out of Tempo."""
    target = tempo.Dataquery().datasource(TRACES).query(query).query_type("traceql").limit(20)
    return (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(TRACES)
        .unit("ms")
        .thresholds(thresholds(((None, GREY),)))
        .no_value("none")
        .height(8)
        .span(width)
        .with_target(target.table_type(tempo_model.SearchTableType.TRACES))
    )


# -------------------------------------------------------------------------------------- links


def to_dashboard(title: str, uid: str, variables: Mapping[str, str]) -> Link:
    """A link to a dashboard with the time range, the sources, and some variables set."""
    given = "&".join(f"var-{name}=${{{value}}}" for name, value in variables.items())
    kept = "${datasource:queryparam}&${service:queryparam}"
    return {"title": title, "url": f"/d/{uid}?${{__url_time_range}}&{kept}&{given}"}


def to_traces(title: str, query: str) -> Link:
    """A link into Explore with a TraceQL query. `${…}` in it is filled by Grafana."""
    panes = {
        "a": {
            "datasource": "${traces}",
            "queries": [{"refId": "A", "queryType": "traceql", "query": query, "limit": 20}],
            "range": {"from": "${__from}", "to": "${__to}"},
        }
    }
    shown = quote(json.dumps(panes, separators=(",", ":")), safe="${}:._")
    return {"title": title, "url": f"/explore?schemaVersion=1&panes={shown}"}
