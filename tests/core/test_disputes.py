"""A rule that the provider contradicts falls; a rule in preview is shown and does not accuse."""

from __future__ import annotations

from dataclasses import replace

from otel_sealed.judge import judge
from otel_sealed.model import Fate, Finding, ProviderVerdict, Verdict
from otel_sealed.providers import dialects
from otel_sealed.tracker import Tracker
from otel_sealed.tracker.disputes import ENOUGH, Disputes
from tests.core.builders import asked, message, thinking, use, without
from tests.core.conversations import APIS, KEY, exchange, history, row_of, step

SIGNATURE = "anthropic.thinking.signature"


def accepted(tracker: Tracker) -> tuple[str, str, str]:
    """One conversation whose host drops thinking in the loop, and whose provider says 200."""
    body = asked("anthropic", thinking={"type": "enabled", "budget_tokens": 2048})
    first = message(thinking(), use(), stop="tool_use")
    tracker.observe(exchange("anthropic", body, first))
    history(body).extend(step("anthropic", first, "q"))
    report = tracker.observe(
        exchange("anthropic", without("thinking")(body), message(thinking(), use()))
    )
    return row_of(report, SIGNATURE)


def test_ten_acceptances_in_a_process_make_a_rule_disputed_there() -> None:
    tracker = Tracker(KEY)
    verdicts = [accepted(tracker)[1] for _ in range(ENOUGH + 1)]
    assert ["breaks"] * ENOUGH + ["degrades"] == verdicts
    assert tracker.disputes.disputed("anthropic", "A1")


def test_another_process_is_not_told() -> None:
    tracker = Tracker(KEY)
    for _ in range(ENOUGH):
        accepted(tracker)
    assert ("dropped", "breaks", "A1") == accepted(Tracker(KEY))


def test_only_acceptances_of_what_would_break_count() -> None:
    disputes = Disputes()
    said = [ProviderVerdict.REJECTED, ProviderVerdict.UNREPORTED, ProviderVerdict.REMOVED]
    for verdict in said * ENOUGH:
        row = Finding("x", Fate.DROPPED, verdict=Verdict.BREAKS, rule="A1")
        disputes.learn("anthropic", [replace(row, provider_verdict=verdict)])
    assert not disputes.disputed("anthropic", "A1")


def test_many_rows_of_one_call_are_one_acceptance() -> None:
    disputes = Disputes()
    row = Finding("x", Fate.DROPPED, verdict=Verdict.BREAKS, rule="A1")
    disputes.learn("anthropic", [replace(row, provider_verdict=ProviderVerdict.ACCEPTED)] * 50)
    assert not disputes.disputed("anthropic", "A1")


def test_a_rule_in_preview_is_shown_with_its_id_and_accuses_nobody() -> None:
    dialect = dialects()[APIS["anthropic"]]
    rules = tuple(replace(r, preview=True) for r in dialect.rules)
    row = judge(Finding(SIGNATURE, Fate.MODIFIED), replace(dialect, rules=rules))
    assert ("A1", Verdict.UNVERIFIABLE, True) == (row.rule, row.verdict, row.preview)
