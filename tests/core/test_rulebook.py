"""The rules as one book."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from otel_sealed import rulebook
from otel_sealed.model import Fate, Finding

SEAL = "gemini.part.thought_signature"


def test_the_page_is_up_to_date() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "rules.md"
    assert rulebook.page() == page.read_text()


def test_a_reason_is_that_of_the_row_for_the_fate() -> None:
    moved = Finding(SEAL, Fate.MISPLACED, rule="G6")
    edited = Finding("gemini.part.text", Fate.MODIFIED, rule="G6")
    assert rulebook.reason(moved).startswith("a signature stays on its part")
    assert rulebook.reason(edited).startswith("the text of a signed part")
    assert "" == rulebook.reason(Finding(SEAL, Fate.INTACT))


def test_rules_unchecked_for_120_days_are_stale() -> None:
    newest = max(
        date.fromisoformat(rule.checked) for _, rules in rulebook.chapters() for rule in rules
    )
    assert () == rulebook.stale(newest)
    assert "A1" in rulebook.stale(newest + timedelta(days=rulebook.STALE_DAYS + 1))


def test_the_version_names_the_newest_check() -> None:
    assert rulebook.version().startswith("20")
    assert 19 == len(rulebook.version())
