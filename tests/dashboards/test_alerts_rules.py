"""Each rule under promtool, in every shape its series arrive in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dashboards.alerts import rules as table
from otel_sealed import vocab
from tests.dashboards.promtool import (
    SHAPES,
    Check,
    Labels,
    Series,
    bare_rules,
    group,
    identity,
    instance,
    other,
    run,
    service,
)

BY = {vocab.PROVIDER: "anthropic"}
PROVIDER = {"gen_ai_provider_name": "anthropic"}
REFUSED = {**BY, vocab.PROVIDER_VERDICT: "rejected", vocab.SERVER_ADDRESS: "api.example"}
BROKEN = {**REFUSED, vocab.VERDICT: "breaks"}
WHOLE = {**REFUSED, vocab.VERDICT: "ok"}
REMOVED = {**WHOLE, vocab.PROVIDER_VERDICT: "removed"}
LOST = {
    **BY,
    vocab.ARTIFACT: "anthropic.thinking.signature",
    vocab.FATE: "dropped",
    vocab.RULE: "A1",
    vocab.VERDICT: "degrades",
    vocab.CAUSE: "none",
    vocab.LOCUS: "process",
}
FINGERPRINT = {
    **PROVIDER,
    "otel_sealed_artifact": "anthropic.thinking.signature",
    "otel_sealed_fate": "dropped",
    "otel_sealed_rule": "A1",
}
DEGRADES = {**BY, vocab.VERDICT: "degrades"}


def calls(values: str, **given: Any) -> Series:
    attributes = {**BY, vocab.VERDICT: "ok", vocab.REQUEST_MODEL: "claude-opus-5"}
    return Series(vocab.CALLS, values, attributes, **given)


def objections(values: str, attributes: Labels = BROKEN, **given: Any) -> Series:
    return Series(vocab.OBJECTIONS, values, attributes, **given)


def causes(values: str, attributes: Labels = LOST, **given: Any) -> Series:
    return Series(vocab.CAUSES, values, attributes, **given)


def at_host(host: str, calls_: str, refused: str = "") -> list[Series]:
    """A service that reaches a provider through a host, and is refused there."""
    to = {vocab.SERVER_ADDRESS: host}
    outcome = {**WHOLE, **to, vocab.PROVIDER_VERDICT: "accepted", vocab.CARRY: "replayed"}
    found = [Series(vocab.OUTCOMES, calls_, outcome)]
    return [*found, objections(refused, {**WHOLE, **to})] if refused else found


def checks(values: str, fate: str) -> Series:
    known = {**LOST, vocab.FATE: fate, vocab.REQUEST_MODEL: "claude-opus-5"}
    return Series(vocab.CHECKS, values, {k: known[k] for k in vocab.CHECKS.attributes})


def state(values: str, word: str, **given: Any) -> Series:
    return Series(vocab.PROCESS_STATE, values, {vocab.STATE: word}, **given)


@dataclass(frozen=True)
class Case:
    """Series of one shape, and what of one alert fires when.

    `fires` holds minutes and the labels beside those of the service; no labels: nothing fires.
    """

    name: str
    alert: str
    series: Any
    at: float
    fires: Labels | None = None


def silent(name: str, alert: str, at: float, *series: Series) -> Case:
    return Case(name, alert, lambda _: list(series), at)


def fires(name: str, alert: str, at: float, labels: Labels, *series: Series) -> Case:
    return Case(name, alert, lambda _: list(series), at, labels)


ALERTS = (
    table.REFUSALS,
    table.INCIDENT,
    table.FIRST,
    table.SILENT,
    table.REMOVALS,
    table.ONE_HOST,
    table.BLIND,
    table.LEAK,
)
R, F, S, M, ONE, B, L = (
    table.REFUSALS,
    table.FIRST,
    table.SILENT,
    table.REMOVALS,
    table.ONE_HOST,
    table.BLIND,
    table.LEAK,
)
PAGES = [
    fires(
        "two in a hundred for ten minutes", R, 16, PROVIDER, calls("0+100x60"), objections("0+2x60")
    ),
    silent("not before ten minutes", R, 10, calls("0+100x60"), objections("0+2x60")),
    silent("half in a hundred", R, 60, calls("0+1000x60"), objections("0+5x60")),
    silent("four of a few calls", R, 60, calls("0+4x60"), objections("0x20 1 2 3 4 4x60")),
    silent("one burst", R, 30, calls("0+10x60"), objections("0x10 50x50")),
    fires("born at three", R, 36, PROVIDER, calls("0+100x60"), objections("_x20 3+3x40")),
    fires(
        "all processes are new",
        R,
        36,
        PROVIDER,
        calls("_x20 100+100x40"),
        objections("_x20 3+3x40"),
    ),
    fires(
        "a counter that starts again",
        R,
        40,
        PROVIDER,
        calls("0+100x20 0+100x40"),
        objections("300+3x20 0+3x40"),
    ),
    silent(
        "a counter that starts again and stays",
        R,
        40,
        calls("0+100x20 0+100x40"),
        objections("300x20 0x40"),
    ),
    silent(
        "an old counter after an outage",
        R,
        45,
        calls("0+1x20 _x20 40+1x40"),
        objections("9x20 _x20 9x40"),
    ),
    fires(
        "one service of two providers",
        R,
        20,
        PROVIDER,
        calls("0+100x60"),
        objections("0+2x60"),
        Series(vocab.CALLS, "0+9000x60", {**BY, vocab.PROVIDER: "openai", vocab.VERDICT: "ok"}),
    ),
    silent("calls and no objection", R, 60, calls("0+100x60")),
    silent("objections at zero", R, 60, calls("0+100x60"), objections("0x60")),
    silent("nothing at all", R, 60),
    silent("removals are no refusals", R, 60, calls("0+100x60"), objections("0+9x60", REMOVED)),
    silent(
        "known losses",
        R,
        60,
        calls("0+100x60"),
        Series(vocab.KNOWN_VIOLATIONS, "0+50x60", DEGRADES),
        Series(vocab.REJECTIONS, "0+50x60", {**BY, vocab.REJECTION_CLASS: "signature_missing"}),
    ),
    fires("it stays a while", R, 38, PROVIDER, calls("0+100x60"), objections("0+2x30 60x30")),
    silent("it ends", R, 59, calls("0+100x60"), objections("0+2x30 60x30")),
]
TICKETS = [
    fires("born at one", F, 12, FINGERPRINT, causes("_x11 1x60")),
    fires("from zero to one", F, 12, FINGERPRINT, causes("0x11 1x60")),
    fires("still told after most of an hour", F, 70, FINGERPRINT, causes("_x11 1x60")),
    silent("not for ever", F, 90, causes("_x11 1x90")),
    silent("not before", F, 10, causes("_x11 1x60")),
    silent("not at zero", F, 60, causes("0x60")),
    silent("nothing at all", F, 60),
    silent("a known loss", F, 60, Series(vocab.KNOWN_VIOLATIONS, "_x11 1x60", DEGRADES)),
    silent(
        "seen days ago",
        F,
        4000,
        causes("1x100"),
        causes("_x3990 1x60", {**LOST, vocab.LOCUS: "sdk"}),
    ),
    fires("seen more than a week ago", F, 10_502, FINGERPRINT, causes("1x100 _x10400 1x60")),
    fires(
        "another kind than the one seen",
        F,
        4000,
        {**FINGERPRINT, "otel_sealed_rule": "A2"},
        causes("1x4000"),
        causes("_x3999 1x60", {**LOST, vocab.RULE: "A2"}),
    ),
    Case(
        "a restart repeats what is known",
        F,
        lambda shape: [causes("1x1000"), causes("_x990 1x60", shape=instance(shape, 2))],
        995,
    ),
    silent("a counter that starts again", F, 1005, causes("0x10 5x900 1x100")),
    fires(
        "five in a hundred",
        S,
        60,
        FINGERPRINT,
        calls("0+100x90"),
        causes("0+5x90"),
        Series(vocab.VIOLATIONS, "0+5x90", DEGRADES),
    ),
    silent(
        "not at once",
        S,
        20,
        calls("0+100x90"),
        causes("0+5x90"),
        Series(vocab.VIOLATIONS, "0+5x90", DEGRADES),
    ),
    fires(
        "born at five",
        S,
        150,
        FINGERPRINT,
        calls("0+1x200"),
        causes("_x100 5x200"),
        Series(vocab.VIOLATIONS, "_x100 5x200", DEGRADES),
    ),
    fires(
        "a counter that starts again",
        S,
        150,
        FINGERPRINT,
        calls("0+1x50 0+1x150"),
        causes("50+1x50 0+1x150"),
        Series(vocab.VIOLATIONS, "50+1x50 0+1x150", DEGRADES),
    ),
    silent(
        "half in a hundred",
        S,
        90,
        calls("0+1000x90"),
        causes("0+5x90"),
        Series(vocab.VIOLATIONS, "0+5x90", DEGRADES),
    ),
    silent(
        "four",
        S,
        90,
        calls("0+1x90"),
        causes("0x40 4x90"),
        Series(vocab.VIOLATIONS, "0x40 4x90", DEGRADES),
    ),
    silent(
        "what breaks is not silent",
        S,
        90,
        calls("0+100x90"),
        causes("0+5x90", {**LOST, vocab.VERDICT: "breaks"}),
        Series(vocab.VIOLATIONS, "0+5x90", {**DEGRADES, vocab.VERDICT: "breaks"}),
    ),
    silent("nothing at all", S, 90),
    silent("zeroes", S, 90, calls("0+9x90"), Series(vocab.VIOLATIONS, "0x90", DEGRADES)),
    silent(
        "known losses",
        S,
        90,
        calls("0+100x90"),
        Series(vocab.VIOLATIONS, "0x90", DEGRADES),
        Series(vocab.KNOWN_VIOLATIONS, "0+50x90", DEGRADES),
    ),
    fires("three within the hour", M, 40, PROVIDER, objections("0x10 1 2 3x60", REMOVED)),
    fires("born at three", M, 40, PROVIDER, objections("_x10 3x60", REMOVED)),
    fires("a counter that starts again", M, 80, PROVIDER, objections("9x70 4x60", REMOVED)),
    silent("two", M, 40, objections("0x10 1 2x60", REMOVED)),
    silent("refusals are no removals", M, 40, objections("0x10 90x60")),
    silent("nothing at all", M, 40),
    fires(
        "one of two hosts",
        ONE,
        60,
        {**PROVIDER, "server_address": "b.example"},
        *at_host("a.example", "0+9x90"),
        *at_host("b.example", "0+9x90", "0+3x90"),
    ),
    fires(
        "born at three",
        ONE,
        70,
        {**PROVIDER, "server_address": "b.example"},
        *at_host("a.example", "0+9x90"),
        *at_host("b.example", "_x60 9x60", "_x60 3x60"),
    ),
    fires(
        "a counter that starts again",
        ONE,
        90,
        {**PROVIDER, "server_address": "b.example"},
        *at_host("a.example", "0+9x70 0+9x40"),
        *at_host("b.example", "9+9x70 0+9x40", "9x70 0+3x40"),
    ),
    silent(
        "both hosts",
        ONE,
        60,
        *at_host("a.example", "0+9x90", "0+3x90"),
        *at_host("b.example", "0+9x90", "0+3x90"),
    ),
    silent("the only host", ONE, 60, *at_host("b.example", "0+9x90", "0+3x90")),
    silent(
        "the other is hardly used",
        ONE,
        60,
        *at_host("a.example", "0x40 9x50"),
        *at_host("b.example", "0+9x90", "0+3x90"),
    ),
    silent(
        "two refusals",
        ONE,
        60,
        *at_host("a.example", "0+9x90"),
        *at_host("b.example", "0+1x9 9x90", "0x9 2x90"),
    ),
    silent("nothing at all", ONE, 60),
    fires(
        "half was never seen",
        B,
        70,
        {"reason": "unknown"},
        checks("0+10x90", "unknown"),
        checks("0+10x90", "intact"),
    ),
    fires(
        "processes born blind",
        B,
        190,
        {"reason": "unknown"},
        checks("_x100 30+30x100", "unknown"),
        checks("_x100 10+10x100", "intact"),
    ),
    silent(
        "a burst behind a restart",
        B,
        130,
        checks("0x10 2+2x30 62x100", "unknown"),
        checks("0+5x140", "intact"),
    ),
    silent("a quarter", B, 90, checks("0+10x90", "unknown"), checks("0+30x90", "intact")),
    silent("few checks", B, 90, checks("0+1x90", "unknown")),
    fires(
        "the kill file",
        B,
        20,
        {"reason": "state", "otel_sealed_state": "killed"},
        state("1x30", "killed"),
        state("0x30", "active"),
    ),
    fires(
        "resting now and then",
        B,
        40,
        {"reason": "state", "otel_sealed_state": "resting"},
        state("0x10 1x5 0x8 1x5 0x20", "resting"),
    ),
    silent(
        "active", B, 40, state("1x60", "active"), state("0x60", "killed"), state("0x60", "resting")
    ),
    fires(
        "a seam is missing",
        B,
        20,
        {"reason": "seams"},
        Series(vocab.SEAMS, "2x60", {vocab.SEAM_STATE: "missing"}),
    ),
    silent(
        "all seams are there",
        B,
        60,
        Series(vocab.SEAMS, "0x60", {vocab.SEAM_STATE: "missing"}),
        Series(vocab.SEAMS, "9x60", {vocab.SEAM_STATE: "attached"}),
    ),
    fires(
        "its own faults",
        B,
        40,
        {"reason": "errors"},
        calls("0+100x60"),
        Series(
            vocab.INTERNAL_ERRORS, "_x5 5+5x60", {vocab.PLACE: "emit", vocab.ERROR_TYPE: "KeyError"}
        ),
    ),
    fires(
        "a counter of faults that starts again",
        B,
        130,
        {"reason": "errors"},
        calls("0+100x100 0+100x60"),
        Series(
            vocab.INTERNAL_ERRORS,
            "900x100 0+5x60",
            {vocab.PLACE: "emit", vocab.ERROR_TYPE: "KeyError"},
        ),
    ),
    silent(
        "a fault",
        B,
        60,
        calls("0+1x60"),
        Series(
            vocab.INTERNAL_ERRORS, "0x5 1x60", {vocab.PLACE: "emit", vocab.ERROR_TYPE: "KeyError"}
        ),
    ),
    silent(
        "the process is gone as a whole",
        B,
        60,
        state("1x10 stale", "active"),
        Series(None, "1x10 stale"),
    ),
    silent("there is no otel_sealed", B, 60, Series(None, "1x60")),
    silent("it goes on", B, 60, state("1x60", "active"), Series(None, "1x60")),
    silent("nothing at all", B, 60),
    fires(
        "from zero to one",
        L,
        12,
        {"otel_sealed_place": "span"},
        Series(vocab.LEAKS, "0x11 1x60", {vocab.PLACE: "span"}),
    ),
    fires(
        "born at one",
        L,
        12,
        {"otel_sealed_place": "span"},
        Series(vocab.LEAKS, "_x11 1x60", {vocab.PLACE: "span"}),
    ),
    fires(
        "a process that starts again",
        L,
        112,
        {"otel_sealed_place": "span"},
        Series(vocab.LEAKS, "1x100 0x10 1x60", {vocab.PLACE: "span"}),
    ),
    silent("at zero", L, 60, Series(vocab.LEAKS, "0x60", {vocab.PLACE: "span"})),
    silent("an old one", L, 200, Series(vocab.LEAKS, "0x11 1x300", {vocab.PLACE: "span"})),
    silent("nothing at all", L, 60),
]


def struck(calls_: str, refused: str, *, services: int = 3, verdict: str = "ok") -> Any:
    """So many services whose calls a provider refuses."""
    said = {**WHOLE, vocab.VERDICT: verdict}

    def made(shape: Labels) -> list[Series]:
        each = [other(shape, number) for number in range(services)]
        return [
            *(calls(calls_, shape=one) for one in each),
            *(objections(refused, said, shape=one) for one in each),
        ]

    return made


INC = table.INCIDENT
INCIDENTS = [
    Case("three services", INC, struck("0+100x30", "0+2x30"), 10, PROVIDER),
    Case(
        "what a rule permits is whole",
        INC,
        struck("0+9x30", "0+2x30", verdict="allowed"),
        10,
        PROVIDER,
    ),
    Case("born at two", INC, struck("0+9x60", "_x20 2+2x40"), 28, PROVIDER),
    Case("a counter that starts again", INC, struck("0+9x20 0+9x40", "99x20 0+2x40"), 29, PROVIDER),
    Case(
        "it outlasts the pages of services",
        INC,
        struck("0+9x30 0x60", "0+2x30 60x60"),
        58,
        PROVIDER,
    ),
    Case("it ends", INC, struck("0+9x30 0x60", "0+2x30 60x60"), 75),
    Case("not at once", INC, struck("0+100x30", "0+2x30"), 5),
    Case("two services", INC, struck("0+100x30", "0+9x30", services=2), 30),
    Case("lost by the services", INC, struck("0+100x30", "0+9x30", verdict="breaks"), 30),
    Case("never seen coming in", INC, struck("0+9x30", "0+9x30", verdict="unverifiable"), 30),
    Case("one in two hundred", INC, struck("0+200x30", "0+1x30"), 30),
    Case("one call of each", INC, struck("0+9x30", "0x9 1x30"), 30),
    Case("objections at zero", INC, struck("0+100x30", "0x30"), 30),
    Case("nothing at all", INC, lambda _: [], 30),
]
CASES = [*PAGES, *INCIDENTS, *TICKETS]


def groups(case: Case, way: str) -> dict[str, Any]:
    shape = SHAPES[way]
    firing: tuple[Labels, ...] = ()
    if case.fires is not None:
        of = {} if case.alert == INC else {**identity(shape), "service": service(shape)}
        firing = ({**of, **case.fires},)
    return group(shape, case.series(shape), [Check(case.at, case.alert, firing)])


@pytest.mark.timeout(600)  # more than a week of evaluations, on a busy machine
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.name}")
def test_a_rule_fires_when_it_should_and_not_else(tmp_path: Path, case: Case) -> None:
    status, said = run(tmp_path, [groups(case, way) for way in SHAPES], bare_rules(case.alert))
    assert (0, "") == (status, said if status else "")


def test_the_observer_that_falls_silent_in_a_living_process_is_blind(tmp_path: Path) -> None:
    """Its own label for the service is the job, the one label both of its series have."""
    tests = [
        group(
            SHAPES[way],
            [state("1x10 stale", "active"), Series(None, "1x90")],
            [
                Check(20, B),
                Check(
                    60,
                    B,
                    (
                        {
                            **identity(SHAPES[way]),
                            "service": service(SHAPES[way]),
                            "reason": "gone",
                        },
                    ),
                ),
            ],
        )
        for way in ("scraped", "otlp", "behind a collector")
    ]
    status, said = run(tmp_path, tests, bare_rules(B))
    assert (0, "") == (status, said if status else "")


def test_every_counting_rule_is_tried_born_above_zero_started_again_and_absent() -> None:
    names = {alert: {case.name for case in CASES if case.alert == alert} for alert in ALERTS}
    for alert in ALERTS:
        assert "nothing at all" in names[alert]
        assert any(" born " in f" {name} " for name in names[alert])
        assert any("again" in name for name in names[alert])


def test_every_alert_is_tried_firing_and_silent() -> None:
    for alert in ALERTS:
        assert {True, False} == {case.fires is None for case in CASES if case.alert == alert}


def test_promtool_fails_where_an_alert_is_expected_in_vain(tmp_path: Path) -> None:
    status, said = run(tmp_path, [group(SHAPES["otlp"], [], [Check(5, L, ({"service": "x"},))])])
    assert (1, True) == (status, "FAILED" in said)
