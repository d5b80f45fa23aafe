"""**Incident**: one time window, from the first bad call to the traces and log events behind it."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard as build

from dashboards import parts
from dashboards.overview import BROKEN_STEPS, NONE_STEPS, REFUSED_STEPS, REJECTED, VIOLATES
from dashboards.parts import GREEN, GREY, KINDS, RED, Look, chart, number, ranking, rows, series
from dashboards.queries import (
    RANGE,
    events,
    label,
    or_zero,
    rate,
    refused_by_host,
    select,
    share,
    some,
)
from otel_sealed import vocab

POINTS: Final = 60
"""How finely a first time is looked for: each point is a query over the whole window."""
KIND: Final = (
    "job",
    vocab.PROVIDER,
    vocab.REQUEST_MODEL,
    vocab.ARTIFACT,
    vocab.FATE,
    vocab.VERDICT,
)
_LOG: Final = f"""{{service_name=~".+"}} | {label(vocab.EVENT_NAME)}=`{vocab.VIOLATION.name}`"""
_OF_PROVIDER: Final = f'{label(vocab.PROVIDER)}=~"$provider"'


def built() -> build.Dashboard:
    """The dashboard."""
    made = parts.new(
        parts.INCIDENT,
        "Sealed state: incident",
        "One time window: when it began, what was lost, how and where, and the traces and log "
        "events behind it. Narrow the time range to the incident, then the variables.",
        since="now-1h",
    )
    for variable in parts.drill_down_sources():
        made = made.with_variable(variable)
    made = parts.filled(made, (*_numbers(), *_course()), ("What, how and where", _what()))
    # needs more than Prometheus: closed, so that nothing fails where there is neither
    drill = parts.row("Drill-down: log events (Loki) and traces (Tempo)").collapsed(True)
    for panel in _behind():
        drill = drill.with_panel(panel)
    return made.with_row(drill)


def first_seen(selector: str, *by: str) -> str:
    """When the first event of the time range was, in milliseconds, to a sixtieth of the range."""
    seen = f"timestamp({some(events(selector, *by))})"
    return f"min_over_time({seen}[$__range:$__interval]) * 1000"


def _numbers() -> list[parts.Built]:
    violations, refused = select(vocab.VIOLATIONS), select(vocab.OUTCOMES, REJECTED)
    bad = select(vocab.CHECKS, VIOLATES)
    of_models = events(bad, vocab.REQUEST_MODEL, window=RANGE)
    of_services = events(violations, "job", window=RANGE)
    return [
        number(
            "First bad call",
            "When the first finding of the time range that degrades or breaks was counted.",
            f"min({first_seen(violations)})",
            "dateTimeFromNow",
            ((None, GREY),),
        )
        .no_value("none, or no data")
        .max_data_points(POINTS),
        number(
            "Violations",
            "Findings in the time range that degrade or break, known losses apart.",
            f"round({events(violations, window=RANGE)})",
            "locale",
            NONE_STEPS,
            decimals=0,
        ),
        number(
            "Refused calls",
            "Calls in the time range that the provider refused over sealed state.",
            f"round({or_zero(events(refused, window=RANGE))})",
            "locale",
            BROKEN_STEPS,
            decimals=0,
        ),
        number(
            "Refused share",
            "Those over all calls of the time range.",
            share(
                or_zero(events(refused, window=RANGE)),
                events(select(vocab.OUTCOMES), window=RANGE),
            ),
            "percentunit",
            REFUSED_STEPS,
            decimals=2,
        ),
        number(
            "Services hit",
            "Jobs with a finding that degrades or breaks in the time range.",
            or_zero(f"count({of_services} > 0)"),
            "locale",
            NONE_STEPS,
            decimals=0,
        ),
        number(
            "Models hit",
            "Models with a finding that degrades or breaks in the time range.",
            or_zero(f"count({of_models} > 0)"),
            "locale",
            NONE_STEPS,
            decimals=0,
        ),
    ]


def _course() -> list[parts.Built]:
    return [
        chart(
            "Violations by service",
            "Findings in each interval that degrade or break, by the job that reports them.",
            [series(some(events(select(vocab.VIOLATIONS), "job")), "{{job}}", exemplars=True)],
            "short",
            KINDS,
        ),
        chart(
            "Refusals by class",
            "Requests the provider refused over sealed state, in each interval, by what it said.",
            [
                series(
                    some(events(select(vocab.REJECTIONS), vocab.REJECTION_CLASS)),
                    f"{{{{{label(vocab.REJECTION_CLASS)}}}}}",
                    exemplars=True,
                )
            ],
            "short",
            KINDS,
        ),
        chart(
            "Came back, by model",
            "Returned over expected. A step down at a deploy is a change of ours; a step down of "
            "one model everywhere is the provider's.",
            [
                series(
                    share(
                        rate(select(vocab.RETURNED), vocab.REQUEST_MODEL),
                        rate(select(vocab.EXPECTED), vocab.REQUEST_MODEL),
                    ),
                    f"{{{{{label(vocab.REQUEST_MODEL)}}}}}",
                )
            ],
            "percentunit",
            Look(steps=((None, GREEN), (0.999, RED)), least=None, most=1),
        ),
        chart(
            "Refused share, by host",
            "Calls refused over all calls, by the host they were sent to.",
            [series(refused_by_host(), f"{{{{{label(vocab.SERVER_ADDRESS)}}}}}")],
            "percentunit",
            Look(steps=REFUSED_STEPS),
        ),
    ]


def _what() -> list[parts.Built]:
    bad = select(vocab.CHECKS, VIOLATES)
    lost = rows(
        "What was lost",
        "Every kind of violation in the time range, known losses included: how many findings, and "
        "when the first. Its fate leads to traces with such a finding.",
        {
            "Findings": f"{events(bad, *KIND, window=RANGE)} > 0",
            "First seen": first_seen(bad, *KIND),
        },
        {
            "job": "Service",
            label(vocab.PROVIDER): "Provider",
            label(vocab.REQUEST_MODEL): "Model",
            label(vocab.ARTIFACT): "Artifact",
            label(vocab.FATE): "Fate",
            label(vocab.VERDICT): "Verdict",
        },
        {"Findings": "locale", "First seen": "dateTimeAsIso"},
        sort="Findings",
        size=(24, 10),
        links={
            "Fate": parts.to_traces(
                "Traces with this finding",
                f"{{ span.{vocab.FINDINGS} =~ "
                '"${__data.fields.Fate} ${__data.fields.Artifact} .*" }',
            )
        },
    )
    causes = select(vocab.CAUSES)
    return [
        lost.max_data_points(POINTS),
        ranking(
            "How: causes",
            "Findings by how the value changed, found from lengths and keyed windows. `none` is "
            "where a value is gone rather than changed.",
            f"{events(causes, vocab.CAUSE, window=RANGE)} > 0",
            f"{{{{{label(vocab.CAUSE)}}}}}",
            "locale",
        ),
        ranking(
            "Where: loci",
            "Findings by where the change happened: in this process, in an SDK, beyond (clean "
            "here, refused there), or at the source (never received whole).",
            f"{events(causes, vocab.LOCUS, window=RANGE)} > 0",
            f"{{{{{label(vocab.LOCUS)}}}}}",
            "locale",
        ),
        ranking(
            "Which rules",
            "Findings by the rule that was broken; docs/rules.md says what it asks and where it "
            "comes from.",
            f"{events(causes, vocab.RULE, window=RANGE)} > 0",
            f"{{{{{label(vocab.RULE)}}}}}",
            "locale",
        ),
    ]


def _behind() -> list[parts.Built]:
    cause, locus = label(vocab.CAUSE), label(vocab.LOCUS)
    count = f"count_over_time({_LOG} | {_OF_PROVIDER} [$__auto])"
    lost = f'span.{vocab.FINDINGS} =~ ".* (degrades|breaks)"'
    refused = f'span.{vocab.PROVIDER_VERDICT} = "rejected"'
    return [
        parts.log_lines(
            "Violations as log events",
            "One for each conversation, artifact, fate and rule, then at 10, 100 and 1000. It "
            "has the trace of the call, and in origin.trace_id the one that brought the value.",
            f"{_LOG} | {_OF_PROVIDER}",
        ),
        parts.log_counts(
            "Log events by cause and locus",
            "The same, counted.",
            f"sum by ({cause}, {locus}) ({count})",
            f"{{{{{cause}}}}} {{{{{locus}}}}}",
        ),
        parts.log_counts(
            "Where the two verdicts differ",
            "Events where the provider said something else than we did.",
            f"sum by ({label(vocab.VERDICT)}, {label(vocab.PROVIDER_VERDICT)}) (count_over_time("
            + _LOG.replace(vocab.VIOLATION.name, vocab.DISAGREEMENT.name)
            + f" | {_OF_PROVIDER} [$__auto]))",
            f"{{{{{label(vocab.VERDICT)}}}}} {{{{{label(vocab.PROVIDER_VERDICT)}}}}}",
        ),
        parts.traces(
            "Traces with a violation",
            "Calls with a finding that degrades or breaks. Arrays of a span match where any one "
            "element does, so what belongs together is asked of findings, never of two arrays.",
            f'{{ {lost} && span.{vocab.PROVIDER} =~ "$provider" }}',
        ),
        parts.traces(
            "Refused, and whole here",
            "Calls the provider refused although nothing we saw breaks: look beyond the process.",
            f"{{ {refused} && span.{vocab.VIOLATIONS_COUNT} = 0 }}",
        ),
    ]
