"""Which model reads what another sealed (docs/contract/common.md#models)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from otel_sealed.contract import Pair, Reads
from otel_sealed.model import Verdict
from otel_sealed.providers.families import Families, bounded
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    MINT,
    call,
    candidate,
    chat,
    message,
    part,
    reasoning,
    response,
    text,
    thinking,
    use,
    without,
)
from tests.core.conversations import KEY, Body, Change, row_of, same
from tests.linear import Matcher

SIGNATURE = "anthropic.thinking.signature"
BLOB = "openai.reasoning.encrypted_content"


def switched(model: str, change: Change = same) -> Change:
    """A host that sends the history to another model."""
    return lambda body: change(body) | {"model": model}


def carried(dialect: str, answer: Body, change: Change, **around: Any) -> tuple[str, str, str]:
    """(fate, verdict, rule) of the first seal after a question that ends its turn."""
    report = chat(dialect, answer, change=change, ends="And now?", **around)[0]
    return row_of(report, SIGNATURE if dialect == "anthropic" else BLOB)


def test_sol_to_luna_on_openai_carries() -> None:
    answer = response(reasoning(), call())
    found = carried("openai", answer, switched("gpt-5.6-luna"))
    assert found == ("intact", "ok", "")


def test_sol_to_luna_on_bedrock_breaks() -> None:
    answer = response(reasoning(), call())
    found = carried("openai", answer, switched("gpt-5.6-luna"), provider="aws.bedrock")
    assert found == ("intact", "breaks", "O12")


def test_fable_5_to_opus_5_degrades_silently() -> None:
    answer = message(thinking(), text(), model="claude-fable-5")
    assert carried("anthropic", answer, switched("claude-opus-5")) == ("intact", "degrades", "A15")


def test_a_block_the_reader_cannot_read_is_rightly_left_behind() -> None:
    answer = message(thinking(), text(), model="claude-fable-5")
    change = switched("claude-opus-5", without("thinking"))
    assert carried("anthropic", answer, change) == ("dropped", "allowed", "A15")


def test_the_same_model_carries() -> None:
    answer = message(thinking(), text())
    assert carried("anthropic", answer, switched("claude-opus-5")) == ("intact", "ok", "")


@pytest.mark.parametrize(
    "model",
    ["anthropic/claude-opus-4.5", "claude-opus-4-5@20251101", "anthropic/claude-opus-4.5:beta"],
)
def test_a_model_is_the_same_in_every_spelling_of_a_relay(model: str) -> None:
    """X8 would allow what is not carried to another model."""
    answer = message(thinking(), text(), thinking(), text(), model="claude-opus-4-5-20251101")
    (report,) = chat("anthropic", answer, change=switched(model, without("thinking")), ends="And?")
    assert {f.rule for f in report.findings} == {"A8"}


@pytest.mark.parametrize("model", ["claude-fable-5-1", "anthropic/claude-fable-5.1"])
def test_a_model_that_binds_does_so_in_every_spelling(model: str) -> None:
    answer = message(thinking(), text(), model=model)
    change: Change = lambda body: body | {"model": model, "system": "Another."}  # noqa: E731
    (report,) = chat("anthropic", answer, change=change, ends="And?")
    assert row_of(report, "request.prefix") == ("prefix_changed", "degrades", "A12")


def test_a_seal_amputated_inside_a_family_is_a_violation() -> None:
    answer = response(reasoning(), call())
    fate, verdict, _ = carried("openai", answer, switched("gpt-5.6-luna", without("reasoning")))
    assert (fate, Verdict(verdict).violates) == ("dropped", True)


def test_a_seal_left_behind_across_vendors_is_right() -> None:
    report = chat(
        "openai",
        response(reasoning(), call()),
        change=without("reasoning"),
        ends="And now?",
        provider="xai",
    )[0]
    assert ("dropped", "allowed", "O12") == row_of(report, BLOB)


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_a_turn_cut_short_does_not_qualify_for_projection(stop: str) -> None:
    answer = message(thinking(), text(), stop=stop, model="claude-sonnet-5")
    change = switched("claude-opus-5", without("thinking"))
    assert carried("anthropic", answer, change)[:2] == ("dropped", "allowed")


def test_reasoning_between_calls_does_not_qualify_for_projection() -> None:
    answer = message(thinking(), use(), thinking(), use(), stop="tool_use", model="claude-opus-4-8")
    change = switched("claude-opus-5", without("thinking"))
    report = chat("anthropic", answer, change=change)[0]
    assert {("dropped", "allowed", "X8")} == {(f.fate, f.verdict, f.rule) for f in report.findings}


def test_a_stripped_function_item_id_with_its_call_id_kept_is_allowed() -> None:
    def strip(body: Body) -> Body:
        for item in body["input"]:
            if item.get("type") == "function_call":
                item.pop("id")
        return body

    report = chat("openai", response(reasoning(), call()), change=strip)[0]
    assert [] == [f for f in report.findings if f.verdict.violates]


def test_a_pair_no_row_names_is_unknown() -> None:
    found = Families().reads("anthropic", "anthropic", "claude-sonnet-5", "claude-opus-5")
    assert found is Reads.UNKNOWN


@pytest.mark.parametrize(
    ("platform", "found"),
    [("", ("intact", "degrades", "A15")), ("aws.bedrock", ("intact", "ok", ""))],
)
def test_a_row_the_owner_added_counts_on_its_platform(
    platform: str, found: tuple[str, str, str]
) -> None:
    row = Pair("anthropic", r"sonnet-5$", r"opus-5$", Reads.DROPPED, "measured", platform)
    answer = message(thinking(), text(), model="claude-sonnet-5")
    tracker = Tracker(KEY, families=(row,))
    change = switched("claude-opus-5")
    assert carried("anthropic", answer, change, tracker=tracker) == found


def test_a_row_the_owner_added_goes_before_the_table() -> None:
    answer = message(thinking(), text(), model="claude-fable-5")
    row = Pair("anthropic", "fable-5", "opus-5", Reads.READ, "measured")
    tracker = Tracker(KEY, families=(row,))
    change = switched("claude-opus-5")
    assert carried("anthropic", answer, change, tracker=tracker) == ("intact", "ok", "")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("claude-opus-5-20260801", "claude-opus-5"),
        ("us.anthropic.claude-opus-5-v1:0", "claude-opus-5"),
        ("gpt-5.6-sol-2026-07-01", "gpt-5.6-sol"),
        ("models/gemini-3-pro", "gemini-3-pro"),
    ],
)
def test_a_snapshot_is_the_model_it_is_a_snapshot_of(one: str, two: str) -> None:
    assert Families().reads("anthropic", "", one, two) is Reads.READ


def test_a_gemini_signature_left_behind_for_another_vendor_is_right() -> None:
    signed = part("call")
    tool = {"type": "tool_use", "id": MINT.name("toolu"), "name": "look_up"}
    tool["input"] = signed["functionCall"]["args"]
    from otel_sealed.contract import Exchange
    from tests.core.conversations import APIS

    tracker = Tracker(KEY)
    tracker.observe(Exchange(APIS["gemini"], response=candidate(signed), conversation="c"))
    question = {"role": "user", "content": "q"}
    messages = [question, {"role": "assistant", "content": [tool]}]
    body = {"model": "claude-opus-5", "thinking": {"type": "adaptive"}, "messages": messages}
    report = tracker.observe(Exchange(APIS["anthropic"], request=body, conversation="c"))
    assert ("dropped", "allowed") == row_of(report, "gemini.part.thought_signature")[:2]


# ------------------------------------------------------------------------------ patterns of owners


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(a|aa)*$",
        r"(?:a?)*?b",
        r"(?:ab){2,}",
        r"a*a*a*b",
        r"a.*b.*c",
        "a?" * 20 + "b",
        r"(a)(?=b)\1",
        r"(?P<x>a)(?P=x)",
        r"(?<=a)b",
        r"(?>.*?.*?a)",
        r"(?>(?:a|b)*)",
        r"x{1,9}y{1,9}",
    ],
)
def test_a_pattern_that_could_take_long_is_refused(pattern: str) -> None:
    row = Pair("anthropic", pattern, "opus", Reads.READ, "measured")
    with pytest.raises(ValueError, match="repeats too much"):
        Tracker(KEY, families=(row,))


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        r"sonnet-5$",
        r"claude-(?!(fable|mythos)-5(-\d{8})?$)",
        r"\Agpt-5\.6-[a-z]+\Z",
        r"\A(?s:gpt.*)\Z",
        r"a{3}b?",
    ],
)
def test_a_plain_pattern_is_used(pattern: str) -> None:
    assert bounded(pattern)


def test_what_is_used_takes_few_steps_for_the_longest_name() -> None:
    """All of them at once: one repeat, two optional parts, and stars of a glob."""
    worst = r"(?s:(?>.*?a)(?>.*?[ab])(?>.*?ab)[ab]*a?(?:ab)?c)"
    assert bounded(worst)
    matcher = Matcher(re.compile(worst))
    assert max(matcher.count(text * 80) for text in ("ab", "aa", "ba")) < 10**6


def test_a_name_that_is_too_long_to_be_one_is_not_looked_up() -> None:
    row = Pair("anthropic", "", "", Reads.REFUSED, "measured")
    long, longer = "m" * 160, "m" * 161
    families = Families((row,))
    assert families.reads("anthropic", "", long, "r") is Reads.REFUSED
    assert families.reads("anthropic", "", longer, "r") is Reads.UNKNOWN
    assert families.reads("anthropic", "", "r", longer) is Reads.UNKNOWN


def test_answers_are_kept_for_a_bounded_number_of_names() -> None:
    families = Families()
    for number in range(5_000):
        families.reads("anthropic", "", f"claude-{number}", "claude-opus-5")
    assert len(families._known) <= 1024
