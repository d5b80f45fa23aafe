"""The committed rules, configuration and runbooks: rendered, well formed, every name of ours."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.alerts import rules as table
from dashboards.alerts import runbooks
from dashboards.alerts.promql import Clock, duration, label
from dashboards.alerts.render import ALERTMANAGER, RULES, TREE, alertmanager, files, rule_file
from otel_sealed import vocab
from otel_sealed.model import Verdict
from tests.dashboards.alert_names import METRICS, metrics_of, promql_complaints, word_complaints
from tests.dashboards.prometheus import binary
from tests.dashboards.promtool import SHAPES, Series, run, service
from tests.dashboards.promtool import group as one_test
from tests.dashboards.test_alerts_rules import CASES

COMMITTED: list[dict[str, Any]] = yaml.safe_load((TREE / RULES).read_text())["groups"][0]["rules"]
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?<=\[)\d+(?:ms|[smhd])(?=\])|(?<=offset )\d+(?:ms|[smhd])")


@pytest.mark.parametrize("path", sorted(files()))
def test_what_is_committed_is_what_is_rendered(path: str) -> None:
    assert files()[path] == (TREE / path).read_text(encoding="utf-8")


def test_two_alerts_page_and_all_others_are_tickets() -> None:
    pages = {rule["alert"] for rule in COMMITTED if rule["labels"]["severity"] == "page"}
    assert {"OtelSealedRefusals", "OtelSealedProviderIncident"} == pages
    assert {"page", "ticket"} == {rule["labels"]["severity"] for rule in COMMITTED}


# --------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("rule", COMMITTED, ids=lambda rule: rule["alert"])
def test_every_name_in_a_rule_is_of_the_vocabulary(rule: dict[str, Any]) -> None:
    assert [] == promql_complaints(rule["expr"])


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("otel_sealed_violation_total", "no metric otel_sealed_violation_total"),
        ("otel_sealed_violations", "no metric otel_sealed_violations"),
        (
            'rate(otel_sealed_leaks_total{place="x"}[5m])',
            "otel_sealed_leaks_total has no label place",
        ),
        (
            'otel_sealed_violations_total{otel_sealed_verdict=~"breaks|bends"}',
            "otel_sealed_verdict is never bends",
        ),
        (
            "sum by (job, model) (otel_sealed_calls_total)",
            "none of otel_sealed_calls_total has a label model",
        ),
        (
            "otel_sealed_calls_total and on (job, host) otel_sealed_outcomes_total",
            "none of otel_sealed_calls_total, otel_sealed_outcomes_total has a label host",
        ),
        ("sum(1 + otel_sealed_check_duration)", "no metric otel_sealed_check_duration"),
    ],
)
def test_a_name_that_is_not_of_the_vocabulary_is_found(query: str, complaint: str) -> None:
    assert [complaint] == promql_complaints(query)


def test_no_rule_matches_or_groups_by_what_only_one_way_into_prometheus_has() -> None:
    for rule in COMMITTED:
        assert not re.search(r"otel_scope|instance|telemetry_sdk", rule["expr"])


def test_no_alert_stands_on_known_losses() -> None:
    known = {name for name, metric in METRICS.items() if metric is vocab.KNOWN_VIOLATIONS}
    counted = {"otel_sealed.rejections", "otel_sealed.artifact.expected"}
    # these count known losses as well
    known |= {name for name, metric in METRICS.items() if metric.name in counted}
    assert set() == known & set().union(*(metrics_of(rule["expr"]) for rule in COMMITTED))


def test_every_series_of_the_violations_the_rules_ask_for_is_created_at_zero() -> None:
    """The verdicts that violate are the ones `Metrics.prime` creates."""
    asked = re.findall(r'otel_sealed_violations_total\{otel_sealed_verdict="(\w+)"', str(COMMITTED))
    assert {"degrades"} == set(asked)
    assert Verdict(asked[0]).violates


# ------------------------------------------------------------------------------------ runbooks


def test_every_alert_has_a_runbook_that_travels_with_it() -> None:
    assert [book.alert for book in runbooks.RUNBOOKS] == list(
        dict.fromkeys(rule["alert"] for rule in COMMITTED)
    )
    page = (TREE / "docs/runbooks.md").read_text()
    for rule in COMMITTED:
        assert f"## {rule['alert']}\n" in page
        says = rule["annotations"]["runbook"]
        assert ("\nLook at\n- " in says, "\nDo\n- " in says) == (True, True)


@pytest.mark.parametrize(
    "look",
    [look for book in runbooks.RUNBOOKS for look in book.look],
    ids=lambda look: look.says[:40],
)
def test_every_name_in_a_query_of_a_runbook_is_of_the_vocabulary(look: runbooks.Look) -> None:
    if look.language == runbooks.PROMQL:
        assert [] == promql_complaints(look.query)
    assert [] == word_complaints(look.query)


def test_every_attribute_a_runbook_names_is_of_the_vocabulary() -> None:
    known = {attribute.name for attribute in vocab.ATTRIBUTES}
    for book in runbooks.RUNBOOKS:
        named = re.findall(r"`(otel_sealed\.[\w.]+)`", runbooks.short(book))
        assert set() == set(named) - known


# -------------------------------------------------------------------------------- shorter times


def seconds(text: str) -> float:
    amount, unit = re.fullmatch(r"(\d+)(ms|[smhd])", text).groups()  # type: ignore[union-attr]
    return float(amount) * _SECONDS[unit]


@pytest.mark.parametrize("scale", [1 / 60, 1 / 30])
def test_a_scale_shortens_every_duration_alike_and_changes_nothing_else(scale: float) -> None:
    """What the live test runs is what is committed, only faster."""
    found = rule_file(Clock(scale))["groups"][0]["rules"]
    for real, fast in zip(COMMITTED, found, strict=True):
        assert _DURATION.sub("~", real["expr"]) == _DURATION.sub("~", fast["expr"])
        pairs = zip(_DURATION.findall(real["expr"]), _DURATION.findall(fast["expr"]), strict=True)
        times = [
            *pairs,
            *((real[key], fast[key]) for key in ("for", "keep_firing_for") if key in real),
        ]
        assert len(times) >= 2
        for long, short in times:
            assert seconds(short) == pytest.approx(seconds(long) * scale, abs=0.001)
        rest = ("alert", "labels", "annotations")
        assert [real[key] for key in rest] == [fast[key] for key in rest]


def test_durations_read_as_people_write_them() -> None:
    assert ["1m", "90s", "7d", "500ms", "0d"] == [duration(x) for x in (60, 90, 604800, 0.5, 0)]


# ------------------------------------------------------------------------- what the tools say


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    done = subprocess.run(
        [
            binary("promtool", "prometheus"),
            "check",
            "rules",
            "--lint=all",
            "--lint-fatal",
            TREE / RULES,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (0, f"SUCCESS: {len(COMMITTED)} rules found") == (
        done.returncode,
        done.stdout.strip().splitlines()[-1].strip(),
    )


def amtool(*arguments: str) -> str:
    done = subprocess.run(
        [binary("amtool", "prometheus-alertmanager"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_amtool_takes_the_configuration() -> None:
    assert "2 inhibit rules" in amtool("check-config", str(TREE / ALERTMANAGER))


@pytest.mark.parametrize("rule", COMMITTED, ids=lambda rule: rule["alert"])
def test_every_alert_is_routed_by_its_severity(rule: dict[str, Any]) -> None:
    given = [f"alertname={rule['alert']}", f"severity={rule['labels']['severity']}"]
    file = f"--config.file={TREE / ALERTMANAGER}"
    assert rule["labels"]["severity"] == amtool("config", "routes", "test", file, *given).strip()


def test_inhibition_names_alerts_and_labels_there_are() -> None:
    alerts = {rule["alert"] for rule in COMMITTED}
    for rule in alertmanager()["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            named = re.fullmatch(r'alertname=~?"([\w|]+)"', matcher)
            assert named is not None
            assert set() == set(named.group(1).split("|")) - alerts
        assert set(rule["equal"]) <= {"service", label(vocab.PROVIDER)}


# ------------------------------------------------------------------------------- what is told

SUMMARIES = {
    "OtelSealedRefusals": "2% of the calls of shop/checkout to anthropic are refused over sealed"
    " state",
    "OtelSealedProviderIncident": "anthropic refuses sealed state of 3 services that sent it back"
    " whole",
    "OtelSealedFirstViolation": "shop/checkout loses sealed state in a way not seen before: dropped"
    " anthropic.thinking.signature A1",
    "OtelSealedSilentLoss": "anthropic answers shop/checkout, and the model goes on without its"
    " reasoning: dropped anthropic.thinking.signature A1",
    "OtelSealedProviderRemovals": "anthropic removed sealed state from 3 calls of shop/checkout"
    " within the hour",
    "OtelSealedOneHostRefuses": "of the hosts shop/checkout calls for anthropic only b.example"
    " refuses sealed state",
    "OtelSealedObserverBlind": "what otel_sealed reports of shop/checkout cannot be trusted: 50% of"
    " what it sends was never seen coming in",
    "OtelSealedLeak": "telemetry of shop/checkout holds sealed values (span)",
}


@pytest.mark.parametrize("alert", sorted(SUMMARIES))
def test_the_summary_says_who_and_what(tmp_path: Path, alert: str) -> None:
    """The first firing case of each alert, its templates filled by promtool."""
    case = next(case for case in CASES if case.alert == alert and case.fires is not None)
    shape = SHAPES["otlp"]
    given = rule_file()
    for rule in given["groups"][0]["rules"]:
        rule["annotations"] = {"summary": rule["annotations"]["summary"]}
    kept = [rule for rule in given["groups"][0]["rules"] if rule["alert"] == alert]
    severity = kept[0]["labels"]["severity"]
    mine = {} if alert == table.INCIDENT else {"job": "shop/checkout", "service": service(shape)}
    series: list[Series] = case.series(shape)
    test = one_test(shape, series, [])
    test["alert_rule_test"] = [
        {
            "eval_time": f"{case.at}m",
            "alertname": alert,
            "exp_alerts": [
                {
                    "exp_labels": {"severity": severity, **mine, **(case.fires or {})},
                    "exp_annotations": {"summary": SUMMARIES[alert]},
                }
            ],
        }
    ]
    status, said = run(tmp_path, [test], {"groups": [{"name": "otel_sealed", "rules": kept}]})
    assert (0, "") == (status, said if status else "")


def test_no_label_and_no_text_of_an_alert_can_hold_more_than_names() -> None:
    """Everything a template fills in is a number or a label of ours, and those are vocabulary."""
    allowed = {label(name) for metric in vocab.METRICS for name in metric.attributes}
    allowed |= {"service_name", "exported_job", "job"}
    filled = set(re.findall(r"\$labels\.(\w+)", json.dumps(COMMITTED)))
    assert set() == filled - allowed
