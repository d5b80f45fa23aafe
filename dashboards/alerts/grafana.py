"""The same rules as Grafana manages them, for those whose Prometheus loads no rule files.

They are provisioned paused: two sets of the same alerts would tell everything twice. Grafana has no
inhibition, so a provider incident does not hold back the alerts of single services there.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from dashboards.alerts.promql import DAY, HOUR, Clock, duration

FOLDER: Final = "Sealed state"
DATASOURCE: Final = "prometheus"
"""The uid of the data source, as in dashboards/provisioning/datasources."""


def provisioning(rule_file: dict[str, Any]) -> dict[str, Any]:
    """An alerting file for Grafana's provisioning folder, made of a Prometheus rule file."""
    rules = rule_file["groups"][0]["rules"]
    return {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": "otel_sealed",
                "folder": FOLDER,
                "interval": Clock().of(60),
                "rules": [_rule(rule) for rule in rules],
            }
        ],
    }


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    reason = rule["labels"].get("reason", "")
    title = f"{rule['alert']} {reason}".strip()
    return {
        "uid": "otel-sealed-" + hashlib.sha256(title.encode()).hexdigest()[:12],
        "title": title,
        "condition": "B",
        "data": [_query(rule["expr"]), _holds()],
        "noDataState": "OK",  # every rule is silent where there is nothing
        "execErrState": "Error",
        "for": rule.get("for", duration(0)),
        "labels": rule["labels"],
        "annotations": {
            key: text.replace("$value", "$values.A.Value")
            for key, text in rule["annotations"].items()
        },
        "isPaused": True,
    }


def _query(expression: str) -> dict[str, Any]:
    return {
        "refId": "A",
        "relativeTimeRange": {"from": DAY, "to": 0},
        "datasourceUid": DATASOURCE,
        "model": {"refId": "A", "expr": expression, "instant": True, "range": False},
    }


def _holds() -> dict[str, Any]:
    """Whether the query has an answer at all; the condition itself is in the query."""
    return {
        "refId": "B",
        "relativeTimeRange": {"from": HOUR, "to": 0},
        "datasourceUid": "__expr__",
        "model": {
            "refId": "B",
            "type": "threshold",
            "expression": "A",
            "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
        },
    }
