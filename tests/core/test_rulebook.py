"""The rules as one book."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from itertools import product

from otel_sealed import rulebook
from otel_sealed.contract import Rule
from otel_sealed.judge import OWN_RULES, fits, judge
from otel_sealed.model import Fate, Finding, Trait, Verdict
from otel_sealed.providers import dialects
from otel_sealed.triage.remedies import rule_of

SEAL = "gemini.part.thought_signature"


def test_a_rule_is_linked_by_its_id_in_lower_case() -> None:
    assert "docs/rules.md#a5" == rulebook.link("A5")
    assert "docs/rules.md" == rulebook.link("")
    assert "https://example.com/d/rules.md#x1" == rulebook.link("X1", "https://example.com/d/")


def test_a_reason_is_that_of_the_row_for_the_fate() -> None:
    moved = Finding(SEAL, Fate.MISPLACED, rule="G6")
    edited = Finding("gemini.part.text", Fate.MODIFIED, rule="G6")
    assert rulebook.reason(moved).startswith("a signature stays on its part")
    assert rulebook.reason(edited).startswith("the text of a signed part")
    assert "" == rulebook.reason(Finding(SEAL, Fate.INTACT))


def test_a_reason_is_that_of_the_row_that_fired_not_of_the_first_with_its_id() -> None:
    lost = Finding(
        "anthropic.citation.encrypted_index",
        Fate.DROPPED,
        verdict=Verdict.DEGRADES,
        rule="A26",
    )
    required = replace(lost, verdict=Verdict.BREAKS, traits=frozenset({Trait.FIELD_LOST}))
    assert "a lost or changed result is accepted and its memory is gone" == rulebook.reason(lost)
    assert "the sealed field is required when the block is sent back" == rulebook.reason(required)


def fired() -> Iterator[tuple[Rule, Finding]]:
    """Each row of each dialect, with the findings it judges first."""
    for dialect in dialects().values():
        carriers = dialect.carriers.values()
        names = {f.artifact for c in carriers for f in c.fields}
        names |= {n for c in carriers for n in (c.envelope, c.orphan) if n}
        names |= {"request.prefix", "request.issuer", "request.thinking"}
        excused = frozenset(trait for rule in dialect.rules for trait in rule.unless)
        for rule in (*OWN_RULES[2:], *dialect.rules):
            for artifact, fate in product(sorted(names), sorted(rule.fates)):
                for traits in (rule.when, rule.when | (excused - rule.unless)):
                    found = judge(Finding(artifact, fate, traits=traits), dialect)
                    first = next(
                        (r for r in (*OWN_RULES[2:], *dialect.rules) if _is(r, found)), None
                    )
                    if first is rule:
                        yield rule, found


def _is(rule: Rule, found: Finding) -> bool:
    return found.fate in rule.fates and fits(rule, found)


def test_the_reason_of_every_row_of_every_dialect_is_its_own() -> None:
    wrong = {(r.id, r.says) for r, found in fired() if rulebook.reason(found) != r.says}
    assert wrong == set()


def test_a_record_suffices_to_quote_the_row_that_judged() -> None:
    """Of a row a record has no more than its id, and what it said of what."""
    wrong = set()
    for rule, found in fired():
        quoted = rule_of(
            rule.id, found.fate, found.artifact, found.verdict, disputed=found.disputed
        )
        if quoted is None or quoted.says != rule.says:
            wrong.add((rule.id, rule.says))
    assert wrong == set()


def test_rules_unchecked_for_120_days_are_stale() -> None:
    newest = max(
        date.fromisoformat(rule.checked) for _, rules in rulebook.chapters() for rule in rules
    )
    assert () == rulebook.stale(newest)
    assert "A1" in rulebook.stale(newest + timedelta(days=rulebook.STALE_DAYS + 1))


def test_the_version_names_the_newest_check() -> None:
    assert rulebook.version().startswith("20")
    assert 19 == len(rulebook.version())
