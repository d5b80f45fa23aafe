"""Writes the rule file, the Alertmanager configuration and the runbooks page from one source.

`python -m dashboards.alerts.render [SCALE] [FOLDER]`: without arguments it writes the committed
files. With a scale, which shortens every duration alike, it writes rules for a test or a drill.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from dashboards.alerts import grafana, rules, runbooks
from dashboards.alerts.promql import HOUR, MINUTE, SERVICE, Clock, label
from otel_sealed import vocab

TREE: Final = Path(__file__).resolve().parents[2]
RULES: Final = "dashboards/alerts/otel_sealed.rules.yml"
ALERTMANAGER: Final = "dashboards/alerts/alertmanager.yml"
GRAFANA: Final = "dashboards/provisioning/alerting/otel_sealed.yaml"
PAGE: Final = "docs/runbooks.md"

_PROVIDER: Final = label(vocab.PROVIDER)
_PLACEHOLDERS: Final = {
    "{{ service }}": "{{ or " + " ".join(f"$labels.{name}" for name in SERVICE) + ' "unnamed" }}',
    "{{ provider }}": "{{ $labels." + _PROVIDER + " }}",
    "{{ host }}": "{{ $labels." + label(vocab.SERVER_ADDRESS) + " }}",
    "{{ fingerprint }}": " ".join(
        "{{ $labels." + label(part) + " }}" for part in (vocab.FATE, vocab.ARTIFACT, vocab.RULE)
    ),
}


class _Dumper(yaml.SafeDumper):
    """Long text as a block, so that a person can read the expressions."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(data: Any, head: str = "") -> str:
    """YAML in the order it is given, with comment lines at its head."""
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True, indent=2
    )
    return comment + text


def filled(text: str) -> str:
    """A template of ours in Prometheus's terms."""
    for ours, theirs in _PLACEHOLDERS.items():
        text = text.replace(ours, theirs)
    return text


def rule_file(clock: Clock | None = None) -> dict[str, Any]:
    """The Prometheus rule file."""
    clock = clock or Clock()
    books = {book.alert: book for book in runbooks.RUNBOOKS}
    group = [_rule(clock, rule, books[rule.alert]) for rule in rules.rules(clock)]
    return {"groups": [{"name": "otel_sealed", "rules": group}]}


def _rule(clock: Clock, rule: rules.Rule, book: runbooks.Runbook) -> dict[str, Any]:
    labels = {"severity": rule.severity}
    if rule.per_service:
        labels["service"] = filled("{{ service }}")
    if rule.reason:
        labels["reason"] = rule.reason
    return {
        "alert": rule.alert,
        "expr": rule.expr,
        **({"for": clock.of(rule.for_s)} if rule.for_s else {}),
        "keep_firing_for": clock.of(rule.keep_s),
        "labels": labels,
        "annotations": {
            "summary": filled(rule.summary),
            "description": book.means,
            "runbook": runbooks.short(book),
            "runbook_page": f"{PAGE}#{rule.alert.lower()}",
        },
    }


def alertmanager(clock: Clock | None = None, *, page: str = "", ticket: str = "") -> dict[str, Any]:
    """The Alertmanager configuration; `page` and `ticket` are where it posts to."""
    clock = clock or Clock()
    fingerprint = [label(part) for part in rules.FINGERPRINT]
    return {
        "route": {
            "receiver": rules.TICKET,
            "group_by": ["alertname", "service", "reason", *fingerprint],
            "group_wait": clock.of(30),
            "group_interval": clock.of(5 * MINUTE),
            "repeat_interval": clock.of(24 * HOUR),
            "routes": [
                {
                    "matchers": [f'severity="{rules.PAGE}"'],
                    "receiver": rules.PAGE,
                    # a fault that strikes many services at once is one page
                    "group_by": ["alertname", _PROVIDER],
                    "group_wait": clock.of(MINUTE),
                    "repeat_interval": clock.of(4 * HOUR),
                }
            ],
        },
        "inhibit_rules": [
            {
                "source_matchers": [f'alertname="{rules.INCIDENT}"'],
                "target_matchers": [f'alertname=~"{"|".join(rules.OF_A_SERVICE)}"'],
                "equal": [_PROVIDER],
            },
            {
                "source_matchers": [f'alertname="{rules.BLIND}"'],
                "target_matchers": [f'alertname="{rules.SILENT}"'],
                "equal": ["service"],
            },
        ],
        "receivers": [
            _receiver(rules.PAGE, page or "http://127.0.0.1:9098/page"),
            _receiver(rules.TICKET, ticket or "http://127.0.0.1:9098/ticket"),
        ],
    }


def _receiver(name: str, url: str) -> dict[str, Any]:
    return {"name": name, "webhook_configs": [{"url": url, "send_resolved": True}]}


def files(clock: Clock | None = None) -> dict[str, str]:
    """Every file that is rendered, by its path in the tree."""
    clock = clock or Clock()
    made = "Rendered by `python -m dashboards.alerts.render`; change dashboards/alerts/*.py.\n"
    return {
        RULES: dump(
            rule_file(clock),
            made + "For Prometheus 2.42 or newer; what to do is in docs/runbooks.md.",
        ),
        ALERTMANAGER: dump(
            alertmanager(clock),
            made + "Put your pager and your ticket system in the place of the two webhooks.",
        ),
        GRAFANA: dump(
            grafana.provisioning(rule_file(clock)),
            made
            + "Paused: for a Grafana whose Prometheus loads no rule files. It inhibits nothing.",
        ),
        PAGE: runbooks.page(rules.rules(clock)),
    }


def main(arguments: list[str]) -> None:
    """Write the files."""
    scale = float(arguments[0]) if arguments else 1.0
    folder = Path(arguments[1]) if len(arguments) > 1 else TREE
    for path, text in files(Clock(scale)).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
