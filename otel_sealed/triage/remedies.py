"""Which ways out fit an incident, and the row of the rules that judged it.

The ways are the table of `ways`. Where a rule of the provider's allows one, its own words go with
it, so that nobody has to take ours for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from otel_sealed.contract import Rule
from otel_sealed.rulebook import chapters
from otel_sealed.triage.model import Remedy
from otel_sealed.triage.ways import WAYS, Way


@lru_cache(4096)
def remedies(
    artifact: str, fate: str, locus: str, rejection: str = "", rule: str = ""
) -> tuple[Remedy, ...]:
    """The ways out of an incident, safest first."""
    return tuple(
        dict.fromkeys(
            Remedy(_told(way), way.loses)
            for way in WAYS
            if _fits(way, artifact, fate, locus) and _works(way, rejection, rule)
        )
    )


def _fits(way: Way, artifact: str, fate: str, locus: str) -> bool:
    return (
        (not way.fates or fate in way.fates)
        and (not way.artifacts or artifact in way.artifacts)
        and (not way.loci or locus in way.loci)
    )


def _works(way: Way, rejection: str, rule: str) -> bool:
    """Whether a way can work after that refusal, and of that rule."""
    return (
        (not way.refusals or rejection in way.refusals)
        and rejection not in way.never
        and rule.startswith(way.of)
        and rule not in way.but
    )


def _told(way: Way) -> str:
    rule = allowed(*way.rule)
    return f"{way.does} ({rule.id}: {rule.says})" if rule else way.does


def allowed(chapter: str, ident: str) -> Rule | None:
    """The row of a rule that allows something, None where the book has none."""
    return next((rule for rule in _rules(chapter, ident) if rule.verdict == "allowed"), None)


def rule_of(
    ident: str, fate: str, artifact: str, verdict: str = "", *, disputed: bool = False
) -> Rule | None:
    """The row that judged.

    Of those that speak of this fate of this artifact the one that gives this verdict, disputed or
    not; else another of them, else any row of that id.
    """
    rows = list(_rules("", ident))
    fitting = [
        rule
        for rule in rows
        if fate in rule.fates and (not rule.artifacts or artifact.startswith(rule.artifacts))
    ]
    judged = (rule for rule in fitting if (rule.verdict, rule.disputed) == (verdict, disputed))
    like = (rule for rule in fitting if rule.verdict == verdict)
    return next((row for found in (judged, like, fitting, rows) for row in found), None)


def _rules(chapter: str, ident: str) -> Iterator[Rule]:
    for name, rules in chapters():
        if chapter in ("", name):
            yield from (rule for rule in rules if rule.id == ident)
