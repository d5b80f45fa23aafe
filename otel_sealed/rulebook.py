"""All rules as one book: its version, where each is explained, and which were not checked for long.

The rules themselves are in the files of the providers. `docs/rules.md` is written from them by
`python -m docs.generate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Final

from otel_sealed.contract import Rule
from otel_sealed.judge import OWN_RULES, fits, judged_as
from otel_sealed.model import Finding
from otel_sealed.providers import dialects

DOCS: Final = "docs"
"""Where the pages are: a path in the repository, because no host has them for sure."""
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


def link(rule_id: str, docs: str = DOCS) -> str:
    """The place of a rule on the page of all rules, as `docs/rules.md#a5`; the page without one."""
    anchor = f"#{rule_id.lower()}" if rule_id else ""
    return f"{docs.rstrip('/')}/rules.md{anchor}"


def reason(finding: Finding) -> str:
    """What the row behind a verdict says, empty where there is none.

    An id may have several rows for a fate: of those the traits choose, as they did when it was
    judged.
    """
    fate = judged_as(finding)
    return next(
        (
            rule.says
            for _, rules in chapters()
            for rule in rules
            if rule.id == finding.rule and fate in rule.fates and fits(rule, finding)
        ),
        "",
    )


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
