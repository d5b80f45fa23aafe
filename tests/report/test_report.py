"""Incidents become problems, the worst first; conversations get a score; bug reports hide users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from otel_sealed.model import Fate
from otel_sealed.triage.bug import bug_report
from otel_sealed.triage.incidents import incidents
from otel_sealed.triage.model import About, Call, Incident, Outcome
from otel_sealed.triage.report import MAX_CONVERSATIONS, Report, report
from otel_sealed.triage.words import FATES, OUTCOMES, count, moment, owner, what_broke
from tests.report.records import DATA, KEY, REFUSED, SIGNATURE, START, STORY, call, minted, row


def made(*stories: Sequence[Call]) -> Report:
    calls = {story[0].conversation: list(story) for story in stories}
    found = [incident for story in stories for incident in incidents(story)]
    return report(found, lambda key: calls[key], calls=sum(map(len, stories)))


def elsewhere(story: Iterable[Call], key: str, **more: object) -> list[Call]:
    """The same story in another conversation, with other ids."""
    return [
        replace(one, conversation=key * 16, trace=one.trace[:-2] + key, **more)  # type: ignore[arg-type]
        for one in story
    ]


def incident_of(story: Sequence[Call] = STORY) -> Incident:
    (found,) = incidents(story)
    return found


# ------------------------------------------------------------------------------------- problems


def test_the_same_bug_in_two_conversations_is_one_problem() -> None:
    found = made(STORY, elsewhere(STORY, "bb", at=START))
    (problem,) = found.problems
    assert (2, 2) == (problem.calls, problem.conversations)
    assert problem.first.conversation == "bb" * 16
    assert problem.releases == ("shop 4.2.0",)
    assert [2, 3] == [strip.turn for strip in problem.strips]


def test_what_is_refused_comes_before_what_is_silent() -> None:
    silent = call(
        3,
        returned=(row("2", "", "dropped", verdict="degrades", rule="A8"),),
        verdict="degrades",
    )
    quiet = elsewhere([*STORY[:2], silent], "cc")
    found = made(quiet, STORY)
    assert ["breaks", "degrades"] == [p.shown.lead.verdict for p in found.problems]
    assert len(found.incidents) == 2


def test_a_record_without_incidents_has_no_problem() -> None:
    found = made(STORY[:2])
    assert ((), (), 2) == (found.problems, found.conversations, found.calls)


def test_more_conversations_than_a_page_shows_are_counted() -> None:
    stories = [elsewhere(STORY, f"{n:02x}") for n in range(MAX_CONVERSATIONS + 3)]
    found = made(*stories)
    assert (MAX_CONVERSATIONS, 3) == (len(found.conversations), found.hidden)


def test_progress_is_told_by_conversation() -> None:
    heard: list[tuple[int, int]] = []
    stories = {story[0].conversation: story for story in (STORY, elsewhere(STORY, "bb"))}
    found = [i for story in stories.values() for i in incidents(story)]
    report(found, stories.__getitem__, calls=6, told=lambda *at: heard.append(at))
    assert [(1, 2), (2, 2)] == heard


# ---------------------------------------------------------------------------------- the score


def test_the_score_is_the_part_of_the_due_seals_that_was_lost() -> None:
    """Three seals came before the last request, one of them did not go back."""
    (one,) = made(STORY).conversations
    assert (3, 2) == (one.due, one.back)
    assert one.score == pytest.approx(1 / 3)
    assert [(40, 10)] * 3 == [(spent.reasoning, spent.cached) for spent in one.spent]


def test_what_the_rules_allow_to_be_absent_is_not_due() -> None:
    allowed = replace(
        REFUSED,
        returned=(*REFUSED.returned, row("1", "", "dropped", verdict="allowed", rule="A8")),
    )
    (one,) = made([*STORY[:2], allowed]).conversations
    assert (2, 1) == (one.due, one.back)


def test_a_conversation_in_which_nothing_was_due_has_no_score() -> None:
    alone = replace(REFUSED, returned=(row("9", "messages.1.content.0", "fabricated"),))
    (one,) = made([alone]).conversations
    assert one.score is None


def test_what_the_provider_says_it_removed_is_counted() -> None:
    removed = replace(REFUSED, said="removed", rejection="")
    (one,) = made([*STORY[:2], removed]).conversations
    assert one.removed == 1


# -------------------------------------------------------------------------------------- words


def test_what_broke_is_one_sentence() -> None:
    assert what_broke(incident_of()) == (
        f"{DATA} did not go back: the provider refuses the call (thinking_modified)."
    )


def test_there_are_words_for_every_fate_and_outcome() -> None:
    assert {fate.value for fate in Fate} - {Fate.SUPERSEDED} == set(FATES)
    assert set(Outcome) == set(OUTCOMES)


@pytest.mark.parametrize(
    ("locus", "host", "framework", "who"),
    [
        ("process", "", "", "Application or framework"),
        ("process", "", "openinference.langchain 1", "Framework or application (openinference."),
        ("sdk", "", "", "SDK"),
        ("beyond", "api.anthropic.com", "", "Provider"),
        ("beyond", "llm.internal", "", "Gateway or provider"),
        ("source", "", "", "Provider or connection"),
        ("", "", "", "Not known"),
    ],
)
def test_whose_it_is_follows_from_where_it_changed(
    locus: str, host: str, framework: str, who: str
) -> None:
    found = incident_of()
    lead = replace(found.lead, locus=locus)
    about = About(framework=framework)
    shown = replace(found, parts=(lead,), host=host, about=about)
    assert owner(shown)[0].startswith(who)
    guess = replace(shown, parts=(replace(lead, confidence="inferred"),))
    assert ("not proven" in owner(guess)[1]) is bool(locus)


def test_what_was_never_asked_for_is_the_applications() -> None:
    found = incident_of()
    lead = replace(found.lead, locus="source", fate="not_requested")
    assert owner(replace(found, parts=(lead,)))[0] == "Application"


def test_numbers_and_times_are_for_people() -> None:
    assert ("1 call", "1,200 calls") == (count(1, "call"), count(1200, "call"))
    assert moment(START) == "2026-11-18 11:06:40 UTC"
    assert ("", "") == (moment(0), moment(1 << 63))


# ---------------------------------------------------------------------------------- bug reports


def test_a_bug_report_has_what_a_maintainer_needs() -> None:
    (problem,) = made(STORY).problems
    text = bug_report(problem)
    for part in (
        f"### {DATA} did not go back",
        "- Seen: 1 call in 1 conversation",
        "- Rule A2: redacted thinking",
        "; explained in docs/rules.md#a2",
        "- Where it happened: Application or framework.",
        "- Came in: content.1, 400 bytes",
        "- Went back: nothing",
        "anthropic=2.14.0, opentelemetry-sdk=1.45.2",
        "came in:   thinking, tool_use, thinking, redacted_thinking, text, tool_use",
        "went back: thinking, tool_use, thinking, text, tool_use",
    ):
        assert part in text


def test_a_bug_report_does_not_say_whose_system_it_is() -> None:
    about = About(service="secret-shop", release="4.2.0", sdks=("anthropic=2.14.0",))
    story = [replace(one, about=about, host="llm.secret.example") for one in STORY]
    (problem,) = made(story).problems
    text = bug_report(problem)
    for private in ("secret", "4.2.0", KEY, REFUSED.trace, problem.shown.id):
        assert private not in text


def test_two_incidents_of_one_kind_are_told_by_the_one_with_more_calls() -> None:
    again = replace(REFUSED, at=REFUSED.at + 9, span="f" * 16, trace="f" * 32)
    longer = elsewhere([*STORY, again], "dd")
    (problem,) = made(STORY, longer).problems
    assert problem.shown.conversation == "dd" * 16
    assert SIGNATURE not in problem.shown.lead.artifact
    assert minted("1", "content.0") in STORY[0].received
