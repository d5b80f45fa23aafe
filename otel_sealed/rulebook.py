"""All rules as one book: its version, its page, and which of them were not checked for long.

The rules themselves stand in the provider files; this renders them for people and for spans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date
from functools import cache

from otel_sealed.contract import Rule
from otel_sealed.judge import OWN_RULES, judged_as
from otel_sealed.model import Finding
from otel_sealed.providers import dialects

STALE_DAYS = 120
"""A rule not checked for longer than this is named by `doctor`."""


def chapters() -> Iterator[tuple[str, tuple[Rule, ...]]]:
    """(dialect name, its rules in the order they are tried), our own rules first."""
    yield "otel_sealed", OWN_RULES
    for dialect in sorted(dialects().values(), key=lambda d: d.name):
        yield dialect.name, dialect.rules


@cache
def version() -> str:
    """Date of the newest check and a short digest of every row: changes when any verdict may."""
    rows = [(name, rule) for name, rules in chapters() for rule in rules]
    newest = max(rule.checked for _, rule in rows)
    text = "\n".join(_row(name, rule) for name, rule in rows)
    return f"{newest}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def stale(today: date) -> tuple[str, ...]:
    """Ids of the rules whose last check is more than `STALE_DAYS` days before `today`."""
    return tuple(
        dict.fromkeys(
            rule.id
            for _, rules in chapters()
            for rule in rules
            if (today - date.fromisoformat(rule.checked)).days > STALE_DAYS
        )
    )


def reason(finding: Finding) -> str:
    """What the rule behind a verdict says of this fate, empty where there is none."""
    fate = judged_as(finding)
    for _, rules in chapters():
        for rule in rules:
            fits = not rule.artifacts or finding.artifact.startswith(rule.artifacts)
            if rule.id == finding.rule and fate in rule.fates and fits:
                return rule.says
    return ""


def page() -> str:
    """The rules as a Markdown page."""
    lines = [
        "# Rules",
        "",
        "Rendered from the provider files by `python -m otel_sealed.rulebook > docs/rules.md`.",
        f"Version `{version()}`. The first row that fits a finding gives its verdict; within a",
        "dialect rows are tried from top to bottom. Sources: S docstring or type of an SDK,",
        "D provider documentation, I public issue, C code of a third party, M measured.",
        "*disputed*: sources disagree. *preview*: shown, never alerting. What the SDK lost",
        "(`sdk_lossy`) is judged as the `dropped` or `modified` that the provider sees.",
        "",
    ]
    for name, rules in chapters():
        lines += [f"## {name}", "", "| id | rule | fates | when | verdict | source | checked |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [_line(rule) for rule in rules]
        lines.append("")
    return "\n".join(lines)


def _row(name: str, rule: Rule) -> str:
    return "|".join(
        (
            name,
            rule.id,
            ",".join(sorted(rule.fates)),
            ",".join(rule.artifacts),
            ",".join(sorted(rule.when)),
            ",".join(sorted(rule.unless)),
            rule.verdict,
            str(rule.disputed),
            str(rule.preview),
            rule.checked,
        )
    )


def _line(rule: Rule) -> str:
    marks = [m for m, on in (("disputed", rule.disputed), ("preview", rule.preview)) if on]
    verdict = " ".join([f"`{rule.verdict}`", *(f"*{mark}*" for mark in marks)])
    if rule.undecidable:
        verdict = f"not decided from history: {rule.undecidable}"
    when = [f"`{t}`" for t in sorted(rule.when)] + [f"not `{t}`" for t in sorted(rule.unless)]
    only = [f"`{a}…`" for a in rule.artifacts]
    cells = (
        rule.id,
        rule.says,
        " ".join(f"`{fate}`" for fate in sorted(rule.fates)),
        ", ".join([*only, *when]),
        verdict,
        rule.source,
        rule.checked,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - `python -m otel_sealed.rulebook > docs/rules.md`
