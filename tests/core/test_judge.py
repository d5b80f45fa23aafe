"""A fate under rules and circumstances: the first rule that fits, and what no table knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from otel_sealed.contract import Api, Dialect, Rule
from otel_sealed.judge import judge
from otel_sealed.model import Fate, Finding, Trait, Verdict
from otel_sealed.providers import dialects
from tests.core.builders import (
    asked,
    call,
    chat,
    message,
    reasoning,
    redacted,
    response,
    said,
    text,
    thinking,
    use,
    without,
)
from tests.core.conversations import replay, row_of

SIGNATURE = "anthropic.thinking.signature"
SEAL = "openai.reasoning.encrypted_content"


def dialect(*rules: Rule) -> Dialect:
    return replace(dialects()[Api.MESSAGES], rules=rules)


ONE = Rule(
    "A98", "first", frozenset({Fate.DROPPED}), Verdict.BREAKS, when=frozenset({Trait.IN_LOOP})
)
TWO = Rule("A99", "second", frozenset({Fate.DROPPED}), Verdict.ALLOWED, artifacts=("anthropic.",))


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (Finding(SIGNATURE, Fate.DROPPED, traits=frozenset({Trait.IN_LOOP})), ("breaks", "A98")),
        (Finding(SIGNATURE, Fate.DROPPED), ("allowed", "A99")),
        (Finding("openai.reasoning.id", Fate.DROPPED), ("unverifiable", "X1")),
        (Finding(SIGNATURE, Fate.MODIFIED), ("unverifiable", "X1")),
        (Finding(SIGNATURE, Fate.INTACT), ("ok", "")),
        (Finding("request.prefix", Fate.PREFIX_CHANGED), ("ok", "")),
        (Finding("request.issuer", Fate.ISSUER_CHANGED), ("ok", "")),
        (Finding(SIGNATURE, Fate.UNKNOWN), ("unverifiable", "X2")),
    ],
)
def test_the_first_rule_that_fits_gives_the_verdict(
    finding: Finding, expected: tuple[str, str]
) -> None:
    """Fate, artifact and traits; what no rule knows is rules behind, and accuses nobody."""
    judged = judge(finding, dialect(ONE, TWO))
    assert (judged.verdict.value, judged.rule) == expected


@pytest.mark.parametrize("trait", [Trait.UNKNOWN_VENDOR, Trait.UNKNOWN_MODEL, Trait.UNKNOWN_TYPE])
def test_what_the_tables_do_not_know_is_unverifiable(trait: Trait) -> None:
    """A vendor, model or block type that no table knows never accuses."""
    finding = Finding(SIGNATURE, Fate.DROPPED, traits=frozenset({Trait.IN_LOOP, trait}))
    judged = judge(finding, dialect(ONE, TWO))
    assert (judged.verdict, judged.rule) == (Verdict.UNVERIFIABLE, "X1")


def test_a_foreign_seal_needs_no_table_of_the_vendor_it_goes_to() -> None:
    """Shipping to another vendor is judged by the wire's own rules."""
    foreign = Rule("A97", "foreign", frozenset({Fate.FOREIGN}), Verdict.BREAKS)
    finding = Finding(SIGNATURE, Fate.FOREIGN, traits=frozenset({Trait.UNKNOWN_VENDOR}))
    assert judge(finding, dialect(foreign)).verdict is Verdict.BREAKS


def test_an_excuse_keeps_a_rule_from_fitting() -> None:
    """`unless` is an exception to a row."""
    rule = replace(ONE, when=frozenset(), unless=frozenset({Trait.PAUSED}))
    plain = Finding(SIGNATURE, Fate.DROPPED)
    excused = replace(plain, traits=frozenset({Trait.PAUSED}))
    assert judge(plain, dialect(rule)).rule == "A98"
    assert judge(excused, dialect(rule)).rule == "X1"


def test_a_disputed_rule_says_so() -> None:
    """The mark goes along with the verdict."""
    judged = judge(Finding(SIGNATURE, Fate.DROPPED), dialect(replace(TWO, disputed=True)))
    assert (judged.disputed, judged.preview) == (True, False)


def test_a_preview_rule_is_shown_and_does_not_accuse() -> None:
    """For one minor release a new rule gives `unverifiable` at most."""
    rule = replace(ONE, when=frozenset(), preview=True)
    judged = judge(Finding(SIGNATURE, Fate.DROPPED), dialect(rule))
    assert (judged.verdict, judged.rule, judged.preview) == (Verdict.UNVERIFIABLE, "A98", True)
    allowed = replace(TWO, preview=True)
    assert judge(Finding(SIGNATURE, Fate.DROPPED), dialect(allowed)).verdict is Verdict.ALLOWED


def test_verdicts_have_a_rank_and_only_two_are_violations() -> None:
    """ok < allowed < unverifiable < degrades < breaks."""
    assert [v.rank for v in Verdict] == [0, 1, 2, 3, 4]
    assert [v.value for v in Verdict if v.violates] == ["degrades", "breaks"]


# ------------------------------------------------------------------------------ circumstances


def test_the_same_loss_in_a_loop_and_in_a_finished_turn() -> None:
    """Dropped thinking breaks the loop, and is allowed once the turn is done."""
    loop = replay("anthropic", message(thinking(), redacted(), use()), without("thinking"))
    done = replay("anthropic", message(thinking(), text()), without("thinking"))
    assert row_of(loop, SIGNATURE) == ("dropped", "breaks", "A1")
    assert row_of(done, SIGNATURE) == ("dropped", "allowed", "A8")


def test_a_model_that_no_table_knows_is_judged_by_the_one_that_minted() -> None:
    """An alias of a gateway does not make the rules blind."""
    answer = message(thinking(), use())
    report = replay("anthropic", answer, lambda b: without("thinking")(b) | {"model": "fast"})
    # contract-corrections, A1: where thinking is adaptive the loop goes on without any of it
    assert row_of(report, SIGNATURE) == ("dropped", "degrades", "A1")


def test_a_model_that_no_table_knows_on_both_sides_is_unverifiable() -> None:
    """Rules behind."""
    answer = message(thinking(), use(), model="novel-9")
    first = asked("anthropic", model="novel-9")
    report = replay("anthropic", answer, without("thinking"), asked=first)
    assert row_of(report, SIGNATURE) == ("dropped", "unverifiable", "X1")


def test_a_block_type_that_no_table_knows_is_unverifiable() -> None:
    """Sealed by its keys, judged by nobody."""
    block = {"type": "connector_text", "signature": "c2lnbmVk" * 8}
    report = replay("anthropic", message(block, use()), without("connector_text"))
    assert row_of(report, "anthropic.other.signature") == ("dropped", "unverifiable", "X1")


@pytest.mark.parametrize(
    ("producer", "reader", "platform", "expected"),
    [
        ("gpt-5.6-sol", "gpt-5.6-luna", "openai", ("intact", "ok", "")),
        ("gpt-5.6-sol", "gpt-5.6-luna", "aws.bedrock", ("intact", "breaks", "O12")),
        ("gpt-5.6-sol", "gpt-5.6-sol", "aws.bedrock", ("intact", "ok", "")),
    ],
    ids=["Sol to Luna carries on OpenAI", "Sol to Luna breaks on Bedrock", "the same on Bedrock"],
)
def test_families_of_openai(
    producer: str, reader: str, platform: str, expected: tuple[str, str, str]
) -> None:
    """The same pair reads on one platform and is refused on another."""
    around: dict[str, Any] = {"provider": platform, "host": None}
    report = replay(
        "openai",
        response(reasoning(), call(), model=producer),
        lambda b: b | {"model": reader},
        asked=asked("openai", model=producer),
        minted=around,
        **around,
    )
    assert row_of(report, SEAL) == expected


@pytest.mark.parametrize(
    ("producer", "reader", "expected"),
    [
        ("claude-fable-5", "claude-opus-5", ("intact", "degrades", "A15")),
        ("claude-opus-5", "claude-fable-5-1", ("intact", "ok", "")),
        ("claude-opus-5", "claude-sonnet-5", ("intact", "ok", "")),
        ("claude-opus-5", "claude-opus-5-20260801", ("intact", "ok", "")),
        ("claude-opus-5", "claude-haiku-5-5", ("intact", "degrades", "A15")),
        ("claude-haiku-5-5", "claude-opus-5", ("intact", "ok", "")),
    ],
)
def test_families_of_anthropic(producer: str, reader: str, expected: tuple[str, str, str]) -> None:
    """What the reader cannot read is dropped with 200."""
    report = replay(
        "anthropic",
        message(thinking(), use(), model=producer),
        lambda b: b | {"model": reader},
        asked=asked("anthropic", model=producer),
    )
    assert row_of(report, SIGNATURE) == expected


def test_a_seal_left_behind_across_vendors_is_right() -> None:
    """And one left behind inside a family is not."""
    answer = message(thinking(), use())
    across = replay("anthropic", answer, without("thinking"), provider="openai")
    inside = replay(
        "anthropic", answer, lambda b: without("thinking")(b) | {"model": "claude-opus-4-5"}
    )
    assert row_of(across, SIGNATURE) == ("dropped", "allowed", "A15")
    # contract-corrections, A1: where thinking is adaptive the loop goes on without any of it
    assert row_of(inside, SIGNATURE) == ("dropped", "degrades", "A1")


def test_the_worst_finding_is_the_verdict_of_the_report() -> None:
    """And a call with nothing sealed has none."""
    report = replay(
        "anthropic", message(redacted(), thinking(), use()), without("redacted_thinking")
    )
    assert report.verdict is Verdict.BREAKS
    assert replay("anthropic", message(text())).verdict is None
    assert replay("anthropic", message(thinking(), use())).verdict is Verdict.OK


def test_older_turns_and_the_last_one_are_told_apart() -> None:
    """A loss in the middle of a finished history is judged as that of an older turn."""
    answers = [response(reasoning(), said()) for _ in range(3)]

    def change(body: dict[str, object]) -> dict[str, object]:
        items: list[dict[str, object]] = body["input"]  # type: ignore[assignment]
        return body | {"input": [i for i in items if i.get("type") != "reasoning"]}

    report = chat("openai", *answers, change=change)[0]
    found = [(f.fate.value, f.rule) for f in report.findings if f.artifact == SEAL]
    assert found == [("dropped", "O4")] * 3
