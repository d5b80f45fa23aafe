"""**Fidelity overview**: does sealed state come back whole, where not, and who says so?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard as build

from dashboards import parts
from dashboards.parts import (
    BLUE,
    GREEN,
    KINDS,
    ORANGE,
    RED,
    YELLOW,
    Look,
    chart,
    number,
    rows,
    series,
)
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

BREAKS: Final = (vocab.VERDICT, "=", "breaks")
DEGRADES: Final = (vocab.VERDICT, "=", "degrades")
VIOLATES: Final = (vocab.VERDICT, "=~", "degrades|breaks")
UNHARMED: Final = (vocab.VERDICT, "!~", "degrades|breaks")
REJECTED: Final = (vocab.PROVIDER_VERDICT, "=", "rejected")
REMOVED: Final = (vocab.PROVIDER_VERDICT, "=", "removed")
ACCEPTED: Final = (vocab.PROVIDER_VERDICT, "=", "accepted")
WHOLE_STEPS: Final = ((None, RED), (0.99, ORANGE), (0.999, YELLOW), (0.9999, GREEN))
"""Of what came back: a lost value is no noise, so only all but one in ten thousand is green."""
REFUSED_STEPS: Final = ((None, GREEN), (0.001, YELLOW), (0.01, RED))
"""The page for refusals goes off at one in a hundred."""
NONE_STEPS: Final = ((None, GREEN), (1, ORANGE))
BROKEN_STEPS: Final = ((None, GREEN), (1, RED))
UNKNOWN_STEPS: Final = ((None, GREEN), (0.05, YELLOW), (0.2, ORANGE))


def built() -> build.Dashboard:
    """The dashboard."""
    made = parts.new(
        parts.OVERVIEW,
        "Sealed state: fidelity overview",
        "Whether the sealed values of model providers come back as they were handed out: by fate, "
        "verdict, artifact, provider, model and host, beside what the provider itself says.",
        since="now-6h",
    )
    return parts.filled(
        made,
        (*_numbers(), *_violations()),
        ("Where", _where()),
        ("What the provider says", _provider()),
        ("How state is carried, and what nobody can judge", _carry()),
    )


def _numbers() -> list[parts.Built]:
    returned, expected = select(vocab.RETURNED), select(vocab.EXPECTED)
    outcomes = select(vocab.OUTCOMES)
    return [
        number(
            "Came back",
            "Silent-loss score: sealed values that were in the request over those that had to be. "
            "An absence that a rule permits was not due. Below 100 % a model works without its "
            "reasoning, whether the provider says so or not.",
            share(events(returned, window=RANGE), events(expected, window=RANGE)),
            "percentunit",
            WHOLE_STEPS,
            decimals=2,
        ),
        number(
            "Break",
            "Findings in the time range that the provider refuses. Known losses are not in it.",
            f"round({events(select(vocab.VIOLATIONS, BREAKS), window=RANGE)})",
            "locale",
            BROKEN_STEPS,
            decimals=0,
        ),
        number(
            "Degrade",
            "Findings in the time range after which the provider answers 200 and the model goes on "
            "without its reasoning. Known losses are not in it.",
            f"round({events(select(vocab.VIOLATIONS, DEGRADES), window=RANGE)})",
            "locale",
            NONE_STEPS,
            decimals=0,
        ),
        number(
            "Refused calls",
            "Share of all calls that the provider refused over sealed state.",
            share(
                or_zero(events(select(vocab.OUTCOMES, REJECTED), window=RANGE)),
                events(outcomes, window=RANGE),
            ),
            "percentunit",
            REFUSED_STEPS,
            decimals=2,
        ),
        number(
            "Known losses",
            "Violations on the owner's list of known losses (OTEL_SEALED_KNOWN), counted apart.",
            f"round({events(select(vocab.KNOWN_VIOLATIONS), window=RANGE)})",
            "locale",
            ((None, BLUE),),
            decimals=0,
        ),
        number(
            "Calls",
            "Calls judged, a second. Nothing here says something only while there are calls.",
            rate(select(vocab.CALLS)),
            "reqps",
            ((None, BLUE),),
            decimals=2,
            over_time=True,
        ),
    ]


def _violations() -> list[parts.Built]:
    verdict, fate, provider = (label(x) for x in (vocab.VERDICT, vocab.FATE, vocab.PROVIDER))
    return [
        chart(
            "Violations by verdict",
            "Findings that degrade or break in each interval, known losses apart.",
            [
                series(
                    events(select(vocab.VIOLATIONS), vocab.VERDICT),
                    f"{{{{{verdict}}}}}",
                    exemplars=True,
                ),
                series(events(select(vocab.KNOWN_VIOLATIONS)), "known"),
            ],
            "short",
            Look(bars=True, stacked=True, decimals=0, words=("degrades", "breaks")),
        ),
        chart(
            "Came back, by provider",
            "The silent-loss score over time: returned over expected.",
            [
                series(
                    share(
                        rate(select(vocab.RETURNED), vocab.PROVIDER),
                        rate(select(vocab.EXPECTED), vocab.PROVIDER),
                    ),
                    f"{{{{{provider}}}}}",
                )
            ],
            "percentunit",
            Look(steps=((None, GREEN), (0.999, RED)), least=None, most=1),
        ),
        chart(
            "What happened to what was lost",
            "Findings that degrade or break in each interval by fate, known losses included.",
            [series(some(events(select(vocab.CHECKS, VIOLATES), vocab.FATE)), f"{{{{{fate}}}}}")],
            "short",
            KINDS,
        ),
        chart(
            "Which artifacts",
            "Findings that degrade or break in each interval by artifact, known losses included.",
            [
                series(
                    some(events(select(vocab.CHECKS, VIOLATES), vocab.ARTIFACT)),
                    f"{{{{{label(vocab.ARTIFACT)}}}}}",
                )
            ],
            "short",
            KINDS,
        ),
    ]


def _where() -> list[parts.Built]:
    who = (vocab.PROVIDER, vocab.REQUEST_MODEL, vocab.ARTIFACT, vocab.FATE, vocab.VERDICT)
    lost = rows(
        "Violations by provider, model, artifact and fate",
        "Every kind of violation in the time range, known losses included, the most frequent "
        "first. A model leads to its incident dashboard.",
        {"Findings": f"{events(select(vocab.CHECKS, VIOLATES), *who, window=RANGE)} > 0"},
        {
            label(vocab.PROVIDER): "Provider",
            label(vocab.REQUEST_MODEL): "Model",
            label(vocab.ARTIFACT): "Artifact",
            label(vocab.FATE): "Fate",
            label(vocab.VERDICT): "Verdict",
        },
        {"Findings": "locale"},
        sort="Findings",
        size=(16, 8),
        links={
            "Model": parts.to_dashboard(
                "Incident with this provider and model",
                parts.INCIDENT,
                {"provider": "__data.fields.Provider", "model": "__data.fields.Model"},
            )
        },
    )
    return [
        lost,
        parts.ranking(
            "Violations by service",
            "Findings in the time range that degrade or break, by the job that reports them.",
            f"{events(select(vocab.VIOLATIONS), 'job', window=RANGE)} > 0",
            "{{job}}",
            "locale",
        ),
        chart(
            "Refused share, by host",
            "Calls refused over all calls, by the host they were sent to. One host alone is "
            "routing; all hosts of a provider are the provider or ourselves.",
            [series(refused_by_host(), f"{{{{{label(vocab.SERVER_ADDRESS)}}}}}")],
            "percentunit",
            Look(steps=REFUSED_STEPS),
        ),
        chart(
            "Violations by model",
            "Findings that degrade or break in each interval by the model asked for.",
            [
                series(
                    some(events(select(vocab.CHECKS, VIOLATES), vocab.REQUEST_MODEL)),
                    f"{{{{{label(vocab.REQUEST_MODEL)}}}}}",
                )
            ],
            "short",
            KINDS,
        ),
    ]


def _provider() -> list[parts.Built]:
    both = (vocab.VERDICT, vocab.PROVIDER_VERDICT)
    missed = events(select(vocab.OBJECTIONS, UNHARMED, REJECTED))
    removed = events(select(vocab.OBJECTIONS, UNHARMED, REMOVED))
    wrong = events(select(vocab.OUTCOMES, BREAKS, ACCEPTED))
    return [
        chart(
            "Refusals by class",
            "Requests the provider refused over sealed state, in each interval, by what it said.",
            [
                series(
                    some(events(select(vocab.REJECTIONS), vocab.REJECTION_CLASS)),
                    f"{{{{{label(vocab.REJECTION_CLASS)}}}}}",
                )
            ],
            "short",
            KINDS,
        ),
        rows(
            "Our verdict beside the provider's",
            "Calls in the time range by both verdicts. Where they differ the provider's is the "
            "evidence; our verdict stays what the contract says.",
            {"Calls": f"{events(select(vocab.OUTCOMES), *both, window=RANGE)} > 0"},
            {label(vocab.VERDICT): "Verdict", label(vocab.PROVIDER_VERDICT): "Provider says"},
            {"Calls": "locale"},
            sort="Calls",
            size=(12, 8),
        ),
        chart(
            "Where the two differ",
            "Calls in each interval: whole here and refused there points beyond this process "
            "(gateway, issuer, provider), or to rules that are behind; a break that was accepted "
            "points to a rule that is too strict.",
            [
                series(or_zero(missed), "whole here, refused there"),
                series(or_zero(removed), "whole here, removed there"),
                series(or_zero(wrong), "breaks here, accepted there"),
            ],
            "short",
            Look(width=24, height=7, decimals=0),
        ),
    ]


def _carry() -> list[parts.Built]:
    carry, provider = label(vocab.CARRY), label(vocab.PROVIDER)
    unknown = select(vocab.CHECKS, (vocab.FATE, "=", "unknown"))
    return [
        chart(
            "Carry mode",
            "Calls a second by how the request brings earlier state: replayed, by reference to "
            "what the server holds, or none.",
            [series(rate(select(vocab.OUTCOMES), vocab.CARRY), f"{{{{{carry}}}}}")],
            "reqps",
            Look(words=("replayed", "by_reference", "none")),
        ),
        chart(
            "Unknown share",
            "Checked values that nobody here saw coming in: another process received them, or this "
            "one was restarted. Where it is high, little is judged: share a ledger or pin "
            "conversations to a process.",
            [
                series(
                    share(
                        or_zero(rate(unknown)),
                        rate(select(vocab.CHECKS)),
                    ),
                    "all",
                ),
                series(
                    share(
                        rate(unknown, vocab.PROVIDER), rate(select(vocab.CHECKS), vocab.PROVIDER)
                    ),
                    f"{{{{{provider}}}}}",
                ),
            ],
            "percentunit",
            Look(steps=UNKNOWN_STEPS),
        ),
    ]
