"""The rules as one book."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from otel_sealed import rulebook
from otel_sealed.model import Fate, Finding, Trait, Verdict

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


def test_rules_unchecked_for_120_days_are_stale() -> None:
    newest = max(
        date.fromisoformat(rule.checked) for _, rules in rulebook.chapters() for rule in rules
    )
    assert () == rulebook.stale(newest)
    assert "A1" in rulebook.stale(newest + timedelta(days=rulebook.STALE_DAYS + 1))


def test_the_version_names_the_newest_check() -> None:
    assert rulebook.version().startswith("20")
    assert 19 == len(rulebook.version())
