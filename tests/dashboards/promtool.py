"""Rules put to promtool: series by the names of the vocabulary, in every shape they arrive in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from dashboards.alerts import promql
from dashboards.alerts.render import rule_file
from otel_sealed import vocab
from tests.dashboards.prometheus import binary

Labels = Mapping[str, str]

SHAPES: Final[Mapping[str, Labels]] = {
    "scraped": {
        "job": "checkout",
        "instance": "10.0.0.7:9464",
        "otel_scope_name": "otel_sealed",
        "otel_scope_version": "0.1.0",
        "otel_scope_schema_url": "",
    },
    "otlp": {"job": "shop/checkout", "instance": "627cc493-f310-47de-96bd-71410b7dec09"},
    "resource attributes on every series": {
        "service_name": "checkout",
        "service_instance_id": "627cc493",
        "telemetry_sdk_language": "python",
        "scope_name": "otel_sealed",
    },
    "behind a collector": {
        "job": "otel-collector",
        "instance": "10.0.0.2:8889",
        "exported_job": "shop/checkout",
        "exported_instance": "627cc493",
        "otel_scope_name": "otel_sealed",
    },
}
"""What stands on a series beside our own labels, by the way it came (the golden table of names)."""


def identity(shape: Labels) -> dict[str, str]:
    """The labels of a shape that results are grouped by."""
    return {name: shape[name] for name in promql.SERVICE if name in shape}


def service(shape: Labels) -> str:
    """The value of the label `service` that an alert gets."""
    return next(iter(identity(shape).values()))


def other(shape: Labels, number: int) -> dict[str, str]:
    """The same way, from another service."""
    first = next(iter(identity(shape)))
    return {**shape, first: f"{shape[first]}-{number}"}


def instance(shape: Labels, number: int) -> dict[str, str]:
    """The same service, from another process."""
    names = ("exported_instance", "service_instance_id", "instance")
    name = next(name for name in names if name in shape)
    return {**shape, name: f"{shape[name]}-{number}"}


@dataclass(frozen=True, slots=True)
class Series:
    """One series: values as promtool writes them, a sample a minute.

    `shape` overrides where it comes from; given `info`, it is that series of another's making.
    """

    metric: vocab.Metric | None
    values: str
    attributes: Labels = field(default_factory=dict)
    shape: Labels | None = None

    def line(self, shape: Labels) -> dict[str, str]:
        """As a rule test has it."""
        name = promql.TARGET_INFO if self.metric is None else promql.name(self.metric)
        ours = {promql.label(key): value for key, value in self.attributes.items()}
        labels = {**(self.shape or shape), **ours}
        shown = ",".join(f'{key}="{value}"' for key, value in labels.items() if value)
        return {"series": f"{name}{{{shown}}}", "values": self.values}


@dataclass(frozen=True, slots=True)
class Check:
    """What of an alert fires at a time, in minutes: the labels of each."""

    at: float
    alert: str
    firing: tuple[Labels, ...] = ()

    def entry(self, severity: str) -> dict[str, Any]:
        """As a rule test has it."""
        return {
            "eval_time": promql.duration(self.at * 60),
            "alertname": self.alert,
            "exp_alerts": [{"exp_labels": {"severity": severity, **x}} for x in self.firing],
        }


def bare_rules(*alerts: str) -> dict[str, Any]:
    """The rules of these alerts, of all if none is named, without annotations.

    promtool would compare those word for word.
    """
    found = rule_file()
    rules = [
        {key: value for key, value in rule.items() if key != "annotations"}
        for rule in found["groups"][0]["rules"]
        if not alerts or rule["alert"] in alerts
    ]
    return {"groups": [{"name": "otel_sealed", "rules": rules}]}


def severities() -> dict[str, str]:
    """The severity of each alert."""
    return {
        rule["alert"]: rule["labels"]["severity"] for rule in bare_rules()["groups"][0]["rules"]
    }


def group(shape: Labels, series: Iterable[Series], checks: Iterable[Check]) -> dict[str, Any]:
    """One test of a file of tests."""
    known = severities()
    return {
        "interval": "1m",
        "input_series": [one.line(shape) for one in series],
        "alert_rule_test": [check.entry(known[check.alert]) for check in checks],
    }


def run(
    folder: Path,
    groups: list[dict[str, Any]],
    rules: dict[str, Any] | None = None,
    *,
    every_s: int = 60,
) -> tuple[int, str]:
    """Exit status and output of promtool; rules are evaluated every so many seconds."""
    folder.joinpath("rules.yml").write_text(yaml.safe_dump(rules or bare_rules()))
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": promql.duration(every_s),
        "tests": groups,
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    folder.joinpath("test.yml").write_text(yaml.dump(tests, Dumper=dumper))
    done = subprocess.run(
        [binary("promtool", "prometheus"), "test", "rules", "test.yml"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
