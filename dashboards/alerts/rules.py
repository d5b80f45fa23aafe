"""The alerts, as data: what is asked of Prometheus, and for how long.

Two page, all others are tickets. Each stands on what the service itself reports, never on a size of
somebody's installation. What an alert means and what to do is in `runbooks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashboards.alerts.promql import (
    DAY,
    HOUR,
    MINUTE,
    TARGET_INFO,
    Clock,
    Counted,
    group,
    label,
    on,
    selector,
)
from dashboards.alerts.promql import SERVICE as WHO
from otel_sealed import vocab
from otel_sealed.model import Fate, ProviderVerdict, Verdict

PAGE: Final = "page"
TICKET: Final = "ticket"

REFUSALS: Final = "OtelSealedRefusals"
INCIDENT: Final = "OtelSealedProviderIncident"
FIRST: Final = "OtelSealedFirstViolation"
SILENT: Final = "OtelSealedSilentLoss"
REMOVALS: Final = "OtelSealedProviderRemovals"
ONE_HOST: Final = "OtelSealedOneHostRefuses"
BLIND: Final = "OtelSealedObserverBlind"
LEAK: Final = "OtelSealedLeak"

OF_A_SERVICE: Final = (REFUSALS, FIRST, SILENT, REMOVALS, ONE_HOST)
"""What a provider incident silences: alerts about one service and the provider it called."""

FINGERPRINT: Final = (vocab.ARTIFACT, vocab.FATE, vocab.RULE, vocab.PROVIDER)
"""What a fingerprint is made of; no digest is a label, so alerts are grouped by these."""
SHARE: Final = 0.01
LEAST: Final = 5
SERVICES: Final = 3
EVER: Final = 7 * DAY
"""How far back a first violation looks. Prometheus keeps 15 days unless told otherwise."""

_REJECTED: Final = (vocab.PROVIDER_VERDICT, "=", ProviderVerdict.REJECTED.value)
_REMOVED: Final = (vocab.PROVIDER_VERDICT, "=", ProviderVerdict.REMOVED.value)
_WHOLE: Final = (vocab.VERDICT, "=~", f"{Verdict.OK}|{Verdict.ALLOWED}")
_DEGRADES: Final = (vocab.VERDICT, "=", Verdict.DEGRADES.value)
_SEALED: Final = (vocab.VERDICT, "!=", vocab.NOTHING_SEALED)
_PROVIDER: Final = label(vocab.PROVIDER)
_HOST: Final = label(vocab.SERVER_ADDRESS)
_PARTS: Final = tuple(label(part) for part in FINGERPRINT)


@dataclass(frozen=True, slots=True)
class Rule:
    """One alerting rule; seconds as they are meant for production, already scaled in `expr`.

    `reason` tells apart rules of one alert. `of` are the labels its results carry beside those of
    the service, which `per_service` says it has.
    """

    alert: str
    severity: str
    summary: str
    expr: str
    of: tuple[str, ...] = ()
    for_s: int = 0
    keep_s: int = 0
    reason: str = ""
    per_service: bool = True


def rules(clock: Clock) -> tuple[Rule, ...]:
    """Every rule, the pages first."""
    return (
        _refusals(clock),
        _incident(clock),
        _first(clock),
        _silent(clock),
        _removals(clock),
        _one_host(clock),
        *_blind(clock),
        _leak(clock),
    )


def _all(*conditions: str) -> str:
    return "\nand\n".join(conditions)


def _refusals(clock: Clock) -> Rule:
    refused = selector(vocab.OBJECTIONS, _REJECTED)
    lately = Counted(clock, refused, 5 * MINUTE).by(_PROVIDER)
    calls = Counted(clock, selector(vocab.CALLS), 5 * MINUTE).by(_PROVIDER)
    enough = Counted(clock, refused, 10 * MINUTE).by(_PROVIDER)
    return Rule(
        REFUSALS,
        PAGE,
        "{{ $value | humanizePercentage }} of the calls of {{ service }} to {{ provider }} are"
        " refused over sealed state",
        # a window shorter than `for`: one burst is over before ten minutes are
        _all(group(f"{lately}\n/\n{calls}\n> {SHARE}"), group(f"{enough}\n>= {LEAST}")),
        (_PROVIDER,),
        for_s=10 * MINUTE,
        keep_s=10 * MINUTE,
    )


def _incident(clock: Clock) -> Rule:
    refused = Counted(clock, selector(vocab.OBJECTIONS, _REJECTED, _WHOLE), 10 * MINUTE)
    calls = Counted(clock, selector(vocab.CALLS), 10 * MINUTE)
    struck = _all(
        group(f"{refused.by(_PROVIDER)}\n/\n{calls.by(_PROVIDER)}\n> {SHARE}"),
        group(f"{refused.by(_PROVIDER)}\n>= 2"),
    )
    return Rule(
        INCIDENT,
        PAGE,
        "{{ provider }} refuses sealed state of {{ $value }} services that sent it back whole",
        f"count by ({_PROVIDER}) {group(struck)}\n>= {SERVICES}",
        (_PROVIDER,),
        for_s=5 * MINUTE,
        # longer than a page of one service can last behind it
        keep_s=20 * MINUTE,
        per_service=False,
    )


def _first(clock: Clock) -> Rule:
    window, ever = clock.of(10 * MINUTE), clock.of(EVER)
    causes = selector(vocab.CAUSES)
    by = ", ".join((*WHO, *_PARTS))
    seen = f"sum by ({by}) (max_over_time({causes}[{ever}] offset {window}))"
    return Rule(
        FIRST,
        TICKET,
        "{{ service }} loses sealed state in a way not seen before: {{ fingerprint }}",
        f"{Counted(clock, causes, 10 * MINUTE).by(*_PARTS)}\n> 0\nunless\n{group(f'{seen} > 0')}",
        _PARTS,
        keep_s=HOUR,
    )


def _silent(clock: Clock) -> Rule:
    lost = Counted(clock, selector(vocab.VIOLATIONS, _DEGRADES), HOUR).by(_PROVIDER)
    calls = Counted(clock, selector(vocab.CALLS, _SEALED), HOUR).by(_PROVIDER)
    kinds = Counted(clock, selector(vocab.CAUSES, _DEGRADES), HOUR).by(*_PARTS)
    often = _all(group(f"{lost}\n/\n{calls}\n> {SHARE}"), group(f"{lost}\n>= {LEAST}"))
    return Rule(
        SILENT,
        TICKET,
        "{{ provider }} answers {{ service }}, and the model goes on without its reasoning:"
        " {{ fingerprint }}",
        f"{kinds}\n> 0\nand {on(_PROVIDER)}\n{group(often)}",
        _PARTS,
        for_s=30 * MINUTE,
        keep_s=HOUR,
    )


def _removals(clock: Clock) -> Rule:
    removed = Counted(clock, selector(vocab.OBJECTIONS, _REMOVED), HOUR).by(_PROVIDER)
    return Rule(
        REMOVALS,
        TICKET,
        "{{ provider }} removed sealed state from {{ $value | humanize }} calls of {{ service }}"
        " within the hour",
        f"{removed}\n>= 3",
        (_PROVIDER,),
        keep_s=HOUR,
    )


def _one_host(clock: Clock) -> Rule:
    refused = Counted(clock, selector(vocab.OBJECTIONS, _REJECTED), HOUR).by(_PROVIDER, _HOST)
    calls = Counted(clock, selector(vocab.OUTCOMES), HOUR).by(_PROVIDER, _HOST)
    by = ", ".join((*WHO, _PROVIDER))
    bad = _all(group(f"{refused}\n/\n{calls}\n> 0.05"), group(f"{refused}\n>= 3"))
    alone = f"count by ({by}) (\n{refused}\n> 0\n) == 1"
    well = f"count by ({by}) (\n({calls}\n>= 20)\nunless\n({refused}\n> 0)\n)"
    return Rule(
        ONE_HOST,
        TICKET,
        "of the hosts {{ service }} calls for {{ provider }} only {{ host }} refuses sealed state",
        f"{group(bad)}\nand {on(_PROVIDER)}\n{group(alone)}\nand {on(_PROVIDER)}\n{group(well)}",
        (_PROVIDER, _HOST),
        for_s=5 * MINUTE,
        keep_s=HOUR,
    )


def _blind(clock: Clock) -> tuple[Rule, ...]:
    who = ", ".join(WHO)
    jobs = "exported_job, job"
    unknown = Counted(
        clock, selector(vocab.CHECKS, (vocab.FATE, "=", Fate.UNKNOWN.value)), HOUR
    ).by()
    checks = Counted(clock, selector(vocab.CHECKS), HOUR).by()
    errors = Counted(clock, selector(vocab.INTERNAL_ERRORS), HOUR).by()
    calls = Counted(clock, selector(vocab.CALLS), HOUR).by()
    passing = selector(vocab.PROCESS_STATE, (vocab.STATE, "!=", vocab.ACTIVE))
    missing = selector(vocab.SEAMS, (vocab.SEAM_STATE, "=", vocab.MISSING))
    state = selector(vocab.PROCESS_STATE)
    says = "what otel_sealed reports of {{ service }} cannot be trusted: "
    return (
        Rule(
            BLIND,
            TICKET,
            says + "{{ $value | humanizePercentage }} of what it sends was never seen coming in",
            _all(group(f"{unknown}\n/\n{checks}\n> 0.3"), group(f"{checks}\n>= 200")),
            for_s=HOUR,
            keep_s=HOUR,
            reason="unknown",
        ),
        Rule(
            BLIND,
            TICKET,
            says + "calls pass unobserved ({{ $labels." + label(vocab.STATE) + " }})",
            f"max by ({who}, {label(vocab.STATE)}) (max_over_time({passing}"
            f"[{clock.of(10 * MINUTE)}]))\n== 1",
            (label(vocab.STATE),),
            for_s=5 * MINUTE,
            keep_s=10 * MINUTE,
            reason="state",
        ),
        Rule(
            BLIND,
            TICKET,
            says + "{{ $value }} methods of an SDK were not found where they should be",
            f"max by ({who}) ({missing})\n> 0",
            for_s=10 * MINUTE,
            keep_s=10 * MINUTE,
            reason="seams",
        ),
        Rule(
            BLIND,
            TICKET,
            says + "it failed on {{ $value | humanizePercentage }} of the calls",
            _all(group(f"{errors}\n/\n{calls}\n> {SHARE}"), group(f"{errors}\n>= {LEAST}")),
            for_s=10 * MINUTE,
            keep_s=HOUR,
            reason="errors",
        ),
        Rule(
            BLIND,
            TICKET,
            says + "its processes still report metrics, and none of otel_sealed",
            f"count by ({jobs}) (max_over_time({state}[{clock.of(DAY)}]))\n"
            f"and\ncount by ({jobs}) ({TARGET_INFO})\n"
            f"unless\ncount by ({jobs}) ({state})",
            for_s=30 * MINUTE,
            keep_s=10 * MINUTE,
            reason="gone",
        ),
    )


def _leak(clock: Clock) -> Rule:
    place = label(vocab.PLACE)
    leaks = Counted(clock, selector(vocab.LEAKS), HOUR).by(place)
    return Rule(
        LEAK,
        TICKET,
        "telemetry of {{ service }} holds sealed values ({{ $labels." + place + " }})",
        f"{leaks}\n> 0",
        (place,),
        keep_s=HOUR,
    )
