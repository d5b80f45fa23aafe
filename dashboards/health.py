"""**Health of the observer**: does anybody watch, and what does it cost?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard as build

from dashboards import parts
from dashboards.parts import GREEN, ORANGE, RED, YELLOW, Look, chart, number, rows, series
from dashboards.queries import RANGE, events, label, or_zero, quantile, rate, select, share, some
from otel_sealed import vocab

HIT: Final = (vocab.LOOKUP_RESULT, "=", "hit")
ACTIVE: Final = (vocab.STATE, "=", vocab.ACTIVE)
GONE: Final = (vocab.SEAM_STATE, "=", vocab.MISSING)


def built() -> build.Dashboard:
    """The dashboard."""
    made = parts.new(
        parts.HEALTH,
        "Sealed state: health of the observer",
        "Whether calls are observed at all, whether the ledger remembers enough to judge them, "
        "what it costs, and whether sealed values leak into other telemetry.",
        since="now-6h",
    )
    return parts.filled(
        made,
        (*_numbers(), *_state()),
        ("Ledger", _ledger()),
        ("Cost", _cost()),
        ("Faults and leaks", _faults()),
    )


def _numbers() -> list[parts.Built]:
    state, lookups = select(vocab.PROCESS_STATE), select(vocab.LOOKUPS)
    watching = share(f"sum({select(vocab.PROCESS_STATE, ACTIVE)})", f"sum({state})")
    hits = events(select(vocab.LOOKUPS, HIT), window=RANGE)
    return [
        number(
            "Processes that observe",
            "Those whose calls are observed, over all that report. The others rest after too many "
            "faults of ours, or the kill file is there.",
            watching,
            "percentunit",
            ((None, RED), (1, GREEN)),
            decimals=0,
        ),
        number(
            "Missing seams",
            "Methods of the SDKs that were not found where they should be: calls through them are "
            "not observed. An SDK was updated; update otel_sealed.",
            f"sum({select(vocab.SEAMS, GONE)})",
            "locale",
            ((None, GREEN), (1, RED)),
            decimals=0,
        ),
        number(
            "Internal errors",
            "Faults of otel_sealed itself in the time range. They were swallowed: no call was "
            "hurt, but it may not have been judged.",
            f"round({or_zero(events(select(vocab.INTERNAL_ERRORS), window=RANGE))})",
            "locale",
            ((None, GREEN), (1, ORANGE)),
            decimals=0,
        ),
        number(
            "Leaks",
            "Sealed values found in the telemetry of other instrumentations in the time range.",
            f"round({events(select(vocab.LEAKS), window=RANGE)})",
            "locale",
            ((None, GREEN), (1, RED)),
            decimals=0,
        ),
        number(
            "Ledger hits",
            "Lookups that found the turn they were for. Misses are conversations that began in "
            "another process, or were forgotten.",
            share(hits, events(lookups, window=RANGE)),
            "percentunit",
            ((None, RED), (0.8, YELLOW), (0.95, GREEN)),
            decimals=1,
        ),
        number(
            "Check, p99",
            "What reading and judging one call takes, off the way of the request.",
            quantile(0.99, vocab.DURATION),
            "s",
            ((None, GREEN), (0.05, YELLOW), (0.5, RED)),
            over_time=True,
        ),
    ]


def _state() -> list[parts.Built]:
    state, seam = label(vocab.STATE), label(vocab.SEAM_STATE)
    client, host = label(vocab.HTTP_CLIENT), label(vocab.SERVER_ADDRESS)
    return [
        chart(
            "Processes by state",
            "active: calls are observed. resting: too many faults, it ends by itself. killed: the "
            "kill file is there.",
            [series(f"sum by ({state}) ({select(vocab.PROCESS_STATE)})", f"{{{{{state}}}}}")],
            "short",
            Look(decimals=0, words=vocab.STATES),
        ),
        chart(
            "Calls observed, by provider",
            "Calls judged a second. None where there should be some: nothing is wrapped, or "
            "nothing is exported.",
            [
                series(
                    rate(select(vocab.CALLS), vocab.PROVIDER),
                    f"{{{{{label(vocab.PROVIDER)}}}}}",
                )
            ],
            "reqps",
            Look(stacked=True),
        ),
        chart(
            "Requests that nobody observed, by client and host",
            "Turns of a model that went past the SDKs, or that the application suppressed, in each "
            "interval. Nothing is known of what they carry; otel-sealed doctor names what sends "
            "them.",
            [
                series(
                    events(select(vocab.UNOBSERVED), vocab.HTTP_CLIENT, vocab.SERVER_ADDRESS),
                    f"{{{{{client}}}}} {{{{{host}}}}}",
                )
            ],
            "short",
            Look(width=24, height=6, decimals=0),
        ),
        chart(
            "Exchanges not read, by reason",
            "Bodies that were too large, needed too many steps, or could not be parsed, in each "
            "interval. Nothing of them is judged.",
            [
                series(
                    events(select(vocab.UNREAD), vocab.UNREAD_REASON),
                    f"{{{{{label(vocab.UNREAD_REASON)}}}}}",
                )
            ],
            "short",
            Look(width=24, height=6, decimals=0),
        ),
        chart(
            "Seams by service",
            "Methods of SDKs and HTTP clients that are wrapped, and that are missing, over all "
            "processes.",
            [
                series(
                    f"sum by (job, {seam}) ({select(vocab.SEAMS)})", f"{{{{job}}}} {{{{{seam}}}}}"
                )
            ],
            "short",
            Look(width=24, height=6, decimals=0),
        ),
    ]


def _ledger() -> list[parts.Built]:
    provider = label(vocab.PROVIDER)
    return [
        chart(
            "Hit ratio, by provider",
            "Lookups that found the turn they were for.",
            [
                series(
                    share(
                        rate(select(vocab.LOOKUPS, HIT), vocab.PROVIDER),
                        rate(select(vocab.LOOKUPS), vocab.PROVIDER),
                    ),
                    f"{{{{{provider}}}}}",
                )
            ],
            "percentunit",
            Look(most=1, width=8),
        ),
        chart(
            "Turns remembered",
            "By the fullest process of each service. It is bounded by OTEL_SEALED_MAX_TURNS.",
            [series(f"max by (job) ({select(vocab.ENTRIES)})", "{{job}}")],
            "short",
            Look(width=8, decimals=0),
        ),
        chart(
            "Turns forgotten",
            "Turns a second that the ledger let go to stay within its bound. What was forgotten is "
            "unknown when it comes back: raise OTEL_SEALED_MAX_TURNS if the unknown share grows.",
            [series(rate(select(vocab.EVICTIONS), "job"), "{{job}}")],
            "ops",
            Look(width=8),
        ),
    ]


def _cost() -> list[parts.Built]:
    provider = label(vocab.PROVIDER)
    return [
        chart(
            "Check duration",
            "What reading and judging one call takes. It happens after the reply is in.",
            [
                series(quantile(0.5, vocab.DURATION), "p50"),
                series(quantile(0.95, vocab.DURATION), "p95"),
                series(quantile(0.99, vocab.DURATION), "p99", exemplars=True),
            ],
            "s",
        ),
        chart(
            "Size of sealed values, p95 by provider",
            "As received. Growth is the provider's; a size that falls may be a cut.",
            [
                series(
                    quantile(0.95, vocab.SIZE, vocab.PROVIDER),
                    f"{{{{{provider}}}}}",
                    exemplars=True,
                )
            ],
            "bytes",
        ),
    ]


def _faults() -> list[parts.Built]:
    place, error = label(vocab.PLACE), label(vocab.ERROR_TYPE)
    faults = select(vocab.INTERNAL_ERRORS)
    return [
        chart(
            "Internal errors by place",
            "Faults of ours in each interval, by the part that had them; zero is drawn while "
            "anybody reports.",
            [
                series(or_zero(events(faults)), "all"),
                series(events(faults, vocab.PLACE), f"{{{{{place}}}}}"),
            ],
            "short",
            Look(decimals=0),
        ),
        chart(
            "Leaks by place",
            "Sealed values found in spans and log records of other instrumentations, in each "
            "interval. RedactingSpanExporter keeps them from leaving the process.",
            [series(events(select(vocab.LEAKS), vocab.PLACE), f"{{{{{place}}}}}")],
            "short",
            Look(decimals=0),
        ),
        rows(
            "Internal errors by class",
            "By service, part and class of the exception, in the time range.",
            {"Errors": some(events(faults, "job", vocab.PLACE, vocab.ERROR_TYPE, window=RANGE))},
            {"job": "Service", place: "Place", error: "Error"},
            {"Errors": "locale"},
            sort="Errors",
            size=(24, 7),
        ),
    ]
