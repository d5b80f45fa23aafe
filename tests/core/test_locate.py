"""Which turns does a request replay? Without a session id, and without guessing."""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.matching.locate import locate
from otel_sealed.model import Lineage, Report
from otel_sealed.tracker import Tracker, judging
from tests.core.builders import MINT, candidate, message, part, response, said, text, thinking, use
from tests.core.chat_wire import CHATS, completion
from tests.core.conversations import (
    KEY,
    MATRIX,
    MODELS,
    SEALS,
    Body,
    Mint,
    ask,
    conversation,
    exchange,
    history,
    observe,
    request,
    rows,
    seen,
    step,
    violations,
)


def states(*reports: Report) -> set[tuple[str, str]]:
    return {(f.fate.value, f.verdict.value) for f in rows(reports)}


INTACT = {("intact", "ok")}


@pytest.mark.parametrize("dialect", MATRIX)
def test_two_identical_first_questions_are_two_conversations(dialect: str) -> None:
    """The same prompt asked twice is answered twice, and each is carried on by itself."""
    one = conversation(dialect, "same")
    two = [dataclasses.replace(e) for e in conversation(dialect, "other")]
    for at, plan in enumerate(two):
        body = copy.deepcopy(plan.request)
        history(body)[0] = copy.deepcopy(history(one[0].request)[0])
        two[at] = dataclasses.replace(plan, request=body)
    tracker = Tracker(KEY)
    reports = [tracker.observe(e) for pair in zip(one, two, strict=True) for e in pair]
    assert states(*reports) == INTACT


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_fork_expects_only_what_lies_before_its_branching_point(dialect: str) -> None:
    """Turns of the other branch are not missed."""
    plan = conversation(dialect)
    tracker = Tracker(KEY)
    observe(plan[:5], tracker)
    branch = copy.deepcopy(plan[3].request)
    history(branch)[-1:] = ask(dialect, "Another way to go on.")
    report = tracker.observe(exchange(dialect, branch, None))
    expected = sum(len(r.received) for r in observe(plan[:3]))
    assert (report.expected, report.returned) == (expected, expected)
    assert states(report) == INTACT


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_regenerated_answer_is_the_one_that_is_expected(dialect: str) -> None:
    """Of two answers to one request the replayed one counts, whichever it is."""
    for chosen in ("first", "second"):
        plan = conversation(dialect, chosen)
        other = conversation(dialect, "unused")[3]
        retried = dataclasses.replace(plan[3], response=other.response)
        tracker = Tracker(KEY)
        observe(plan[:3], tracker)
        pair = [plan[3], retried] if chosen == "first" else [retried, plan[3]]
        observe(pair, tracker)
        report = tracker.observe(plan[4])
        assert states(report) == INTACT
        assert report.expected == sum(len(r.received) for r in observe(plan[:4]))


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_retry_that_lost_its_seals_is_still_that_conversation(dialect: str) -> None:
    """A second call with fewer seals drops them, however often it is repeated."""
    plan = conversation(dialect)
    tracker = Tracker(KEY)
    observe(plan[:2], tracker)
    body = copy.deepcopy(plan[2].request)
    told = history(body)
    for one in told:
        for key in ("content", "parts"):
            if isinstance(one.get(key), list):
                for block in one[key]:
                    block.pop("thoughtSignature", None)
                kept = [b for b in one[key] if "thinking" not in str(b.get("type"))]
                one[key] = kept
        one.pop("reasoning_details", None)
        for call in one.get("tool_calls", ()):
            call.pop("extra_content", None)
    told[:] = [one for one in told if one.get("type") != "reasoning"]
    for _ in range(3):
        report = tracker.observe(exchange(dialect, body, None))
        assert [f.fate.value for f in report.findings if f.artifact in SEALS.values()] != []
        assert "intact" not in {f.fate.value for f in report.findings}


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_restart_knows_nothing_and_accuses_nobody(dialect: str) -> None:
    """Another process has no record."""
    report = Tracker(KEY).observe(conversation(dialect)[4])
    assert states(report) == {("unknown", "unverifiable")}
    assert report.lookups_hit == 0
    assert report.lookups_missed > 0


@pytest.mark.parametrize("settles", [True, False])
def test_a_call_made_twice_is_not_that_of_the_turn_seen_after_a_restart(*, settles: bool) -> None:
    """The same call with another id, by a turn from before; the host loses every seal."""
    tracker = Tracker(KEY, settles=settles)
    unseen = message(thinking(), use(), stop="tool_use")
    after = message(thinking(""), text(), use(), stop="tool_use")
    body = request("anthropic", [unseen])
    tracker.observe(exchange("anthropic", body, after))
    history(body).extend(step("anthropic", after, "Go on."))
    for told in history(body)[1::2]:
        del told["content"][0]["signature"]
    report = tracker.observe(exchange("anthropic", body, None))
    assert [("dropped", "messages.3.content.0")] == [
        (f.fate.value, f.returned) for f in report.findings
    ]


@pytest.mark.parametrize("settles", [True, False])
def test_an_answer_thrown_away_is_not_found_in_a_turn_from_before_a_restart(
    *, settles: bool
) -> None:
    """It made the same call, and would have to stand behind the turn it continued."""
    tracker = Tracker(KEY, settles=settles)
    body = request("anthropic", [message(thinking(), use(), stop="tool_use")])
    after = message(thinking(), text())
    tracker.observe(exchange("anthropic", body, after))
    history(body).extend(step("anthropic", after, "Go on."))
    tracker.observe(exchange("anthropic", body, message(thinking(), use(), stop="tool_use")))
    report = tracker.observe(exchange("anthropic", body, None))
    fates = {f.fate.value for f in report.findings} | {c.fate.value for c in report.settled}
    assert {"unknown", "intact"} == fates


@pytest.mark.parametrize("settles", [True, False])
def test_an_answer_from_before_a_restart_is_not_the_one_asked_for_again(*, settles: bool) -> None:
    """Both answer the same request; the one that was seen is thrown away, the other replayed."""
    tracker = Tracker(KEY, settles=settles)
    unseen, thrown = (message(thinking(), use(), stop="tool_use") for _ in range(2))
    body = request("anthropic", [])
    tracker.observe(exchange("anthropic", body, thrown))
    history(body).extend(step("anthropic", unseen, "Go on."))
    assert states(tracker.observe(exchange("anthropic", body, None))) == {
        ("unknown", "unverifiable")
    }


@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize(
    ("seen", "replayed"),
    [
        (message(thinking(), text()), message(thinking(), text())),
        (message(thinking(), text()), message(text())),
        (message(thinking(), use(), stop="tool_use"), message(text(), use(), stop="tool_use")),
        (
            message(thinking(""), {"type": "text", "text": "OK"}),
            message(thinking(""), {"type": "text", "text": "OK"}),
        ),
        (message(thinking(), text()), message({"type": "text", "text": "OK"})),
    ],
)
def test_another_answer_to_the_same_question_is_not_the_one_that_was_seen(
    seen: Body, replayed: Body, *, settles: bool
) -> None:
    """Two workers, or two conversations that begin alike, of which one began before a restart."""
    tracker = Tracker(KEY, settles=settles)
    tracker.observe(exchange("anthropic", request("anthropic", []), seen))
    report = tracker.observe(exchange("anthropic", request("anthropic", [replayed]), None))
    assert states(report) <= {("unknown", "unverifiable")}


def test_answers_that_nothing_tells_apart_leave_what_is_before_them_in_its_place() -> None:
    """The same short answer twice to the same request, one of them replayed."""
    tracker = Tracker(KEY, settles=False)
    before = message(thinking(""), text(), use(), stop="tool_use")
    ok = message({"type": "text", "text": "OK"})
    body = request("anthropic", [])
    tracker.observe(exchange("anthropic", body, before))
    history(body).extend(step("anthropic", before, "Go on."))
    for _ in range(2):
        tracker.observe(exchange("anthropic", body, ok))
    history(body).extend(step("anthropic", ok, "Go on."))
    report = tracker.observe(exchange("anthropic", body, None))
    assert states(report) == INTACT


@pytest.mark.parametrize("dialect", MATRIX)
def test_another_key_knows_nothing(dialect: str) -> None:
    """Digests under one key mean nothing under another."""
    plan = conversation(dialect)
    tracker = Tracker(b"x" * 32)
    observe(plan[:2], Tracker(KEY))
    assert states(tracker.observe(plan[2])) == {("unknown", "unverifiable")}


def short(dialect: str, seed: str) -> Body:
    """An answer that says the same few words in every conversation."""
    if dialect == "openai":
        item = said() | {"id": f"msg_{seed}"}
        item["content"] = [{"type": "output_text", "text": "OK"}]
        return response(item)
    if dialect == "gemini":
        return candidate({"text": "OK"})
    if dialect in CHATS:
        return completion(Mint(seed), MODELS[dialect], {"content": "OK"})
    return message({"type": "text", "text": "OK"})


@pytest.mark.parametrize("dialect", MATRIX)
def test_the_same_short_text_in_many_conversations_is_nobodys(dialect: str) -> None:
    """A tie is nobody: weak evidence that many share finds no turn."""
    tracker = Tracker(KEY)
    for number in range(5):
        tracker.observe(
            exchange(dialect, request(dialect, [], number), short(dialect, str(number)))
        )
    body = request(dialect, [], "new")
    history(body).extend(step(dialect, short(dialect, "new"), "And?"))
    assert tracker.observe(exchange(dialect, body, None)).findings == ()


@pytest.mark.parametrize("dialect", MATRIX)
def test_several_candidates_of_one_call_are_nobody_until_one_is_replayed(dialect: str) -> None:
    """The same request answered five times: the answer that comes back is the expected one."""
    plans = [conversation(dialect, number) for number in range(5)]
    first = plans[0][0].request
    tracker = Tracker(KEY)
    for plan in plans:
        tracker.observe(dataclasses.replace(plan[0], request=first))
    body = copy.deepcopy(first)
    history(body).extend(step(dialect, plans[2][0].response, "And?"))
    report = tracker.observe(exchange(dialect, body, None))
    assert states(report) == INTACT
    assert {f.received.exchange for f in report.findings if f.received} == {2}


def test_a_signature_that_is_always_the_same_confuses_nobody() -> None:
    """A mock signs everything alike, in one conversation and in many."""
    seal = MINT.seal()

    def answers() -> list[Body]:
        return [message(thinking() | {"signature": seal}, use()) for _ in range(3)]

    tracker = Tracker(KEY)
    for number in range(3):
        body = request("anthropic", [], number)
        for answer in answers():
            report = tracker.observe(exchange("anthropic", copy.deepcopy(body), answer))
            assert states(report) <= INTACT
            history(body).extend(step("anthropic", answer, "And?"))
        assert states(tracker.observe(exchange("anthropic", body, None))) == INTACT


def test_a_signature_that_is_always_the_same_is_missed_where_it_is_gone() -> None:
    """A lost one of several equal seals is a loss."""
    seal = MINT.seal()
    answers = [message(thinking() | {"signature": seal}, use()) for _ in range(2)]
    tracker = Tracker(KEY)
    body = request("anthropic", [])
    for answer in answers:
        tracker.observe(exchange("anthropic", copy.deepcopy(body), answer))
        history(body).extend(step("anthropic", answer, "And?"))
    body["messages"][3]["content"].pop(0)
    report = tracker.observe(exchange("anthropic", body, None))
    assert "dropped" in {f.fate.value for f in report.findings if f.artifact == SEALS["anthropic"]}


def test_a_sub_agent_with_its_own_history_expects_nothing_of_the_outer_one() -> None:
    """A history of its own is a conversation of its own."""
    outer, inner = conversation("anthropic", "outer"), conversation("anthropic", "inner")
    tracker = Tracker(KEY)
    observe(outer[:2], tracker)
    reports = observe(inner, tracker)
    assert [r.expected for r in reports] == [r.expected for r in observe(inner)]
    assert states(*reports) == INTACT
    assert len({r.conversation for r in reports}) == 1


def test_a_handed_over_transcript_expects_what_it_holds() -> None:
    """An agent that is given the turns of another carries them on."""
    first, second = conversation("anthropic", "first"), conversation("anthropic", "second")
    tracker = Tracker(KEY)
    observe([*first[:2], *second[:2]], tracker)
    body = copy.deepcopy(first[2].request)
    history(body).extend(history(second[2].request))
    report = tracker.observe(exchange("anthropic", body, None))
    assert {row for row in states(report) if row[0] != "prefix_changed"} == INTACT
    assert violations([report]) == []
    assert (report.expected, report.returned) == (6, 6)


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_history_trimmed_at_the_front_still_finds_its_turns(dialect: str) -> None:
    """A window over the last turns is the same conversation."""
    plan = conversation(dialect)
    tracker = Tracker(KEY)
    observe(plan[:5], tracker)
    body = copy.deepcopy(plan[5].request)
    told = history(body)
    at = max(n for n, one in enumerate(told[:-1]) if one.get("role") == "user" and _asks(one))
    del told[:at]
    report = tracker.observe(exchange(dialect, body, None))
    assert report.returned > 0
    assert {f.fate.value for f in report.findings} <= {"intact", "dropped", "prefix_changed"}
    returned = {f.fate.value for f in report.findings if f.digest_out and f.received}
    assert returned == {"intact"}


def _asks(one: Body) -> bool:
    return "Question" in str(one)


@pytest.mark.parametrize("dialect", MATRIX)
def test_the_name_of_a_conversation_narrows_the_search(dialect: str) -> None:
    """With a name given even weak evidence finds the turn, in that conversation only."""
    answer = short(dialect, "one")
    tracker = Tracker(KEY)
    for name in ("one", "two"):
        asked = request(dialect, [], name)
        tracker.observe(exchange(dialect, asked, answer, conversation=name))
    body = request(dialect, [], "one")
    history(body).extend(step(dialect, answer, "And?"))
    report = tracker.observe(exchange(dialect, body, None, conversation="one"))
    other = tracker.observe(exchange(dialect, body, None, conversation="two"))
    assert report.conversation != other.conversation


def test_a_transcript_finds_its_last_turn_without_any_evidence() -> None:
    """A host that rewrote all of an answer still continues the conversation of the file.

    What the user said is there; where nothing is, another agent was asked.

    Under the same name another process, or another agent of a session, may have been answered.
    """
    answer = message(thinking(), text())
    tracker = Tracker(KEY)
    body = request("anthropic", [])
    tracker.observe(exchange("anthropic", copy.deepcopy(body), answer, conversation="c"))
    body["messages"] = [
        body["messages"][0],
        {"role": "assistant", "content": "Nothing of it is left."},
        {"role": "user", "content": "Go on."},
    ]
    asked = exchange("anthropic", copy.deepcopy(body), None, conversation="c", continues=True)
    told = tracker.observe(asked)
    assert {f.fate.value for f in told.findings} == {"dropped"}
    assert {f.confidence.value for f in told.findings} == {"inferred"}
    assert tracker.observe(exchange("anthropic", body, None)).findings == ()
    assert tracker.observe(exchange("anthropic", body, None, conversation="c")).findings == ()


def test_a_turn_found_by_its_text_only_is_inferred() -> None:
    """Without id and seal a long text is enough to find the turn, and says so."""
    answer = message(thinking(), text())
    tracker = Tracker(KEY)
    body = request("anthropic", [])
    tracker.observe(exchange("anthropic", copy.deepcopy(body), answer))
    history(body).extend(step("anthropic", answer, "And?"))
    history(body)[1]["content"].pop(0)
    report = tracker.observe(exchange("anthropic", body, None))
    assert [(f.fate.value, f.confidence.value) for f in report.findings] == [
        ("dropped", "inferred")
    ]


@pytest.mark.parametrize("dialect", MATRIX)
def test_what_the_ledger_forgot_is_unknown(dialect: str) -> None:
    """A bounded ledger forgets, and then knows nothing."""
    plan = conversation(dialect)
    tracker = Tracker(KEY, max_turns=1)
    observe(plan[:3], tracker)
    body = copy.deepcopy(plan[3].request)
    history(body)[0] = ask(dialect, "Begun in another way.")[0]
    found = seen([tracker.observe(exchange(dialect, body, None))])
    assert ("unknown", "unverifiable") in found
    assert {verdict for _, verdict in found} <= {"ok", "unverifiable", "allowed"}


def test_many_threads_share_a_tracker() -> None:
    """Conversations of several threads do not meet, and the ledger holds all their turns."""
    tracker = Tracker(KEY)
    found: dict[int, set[tuple[str, str]]] = {}

    def run(number: int) -> None:
        dialect = MATRIX[number % 3]
        found[number] = states(*observe(conversation(dialect, f"thread {number}"), tracker))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(6), INTACT)
    assert len(tracker.ledger) == 36


def test_a_conversation_keeps_its_key_from_the_first_turn_to_the_last() -> None:
    """Our own key of a conversation joins its calls, and no other call."""
    tracker = Tracker(KEY)
    one = [r.conversation for r in observe(conversation("openai", 1), tracker)]
    two = [r.conversation for r in observe(conversation("openai", 2), tracker)]
    assert len(set(one)) == len(set(two)) == 1
    assert set(one) != set(two)


def test_a_ledger_of_ones_own_is_used() -> None:
    """The tracker speaks to any ledger."""
    ledger = MemoryLedger(5)
    observe(conversation("gemini")[:2], Tracker(KEY, ledger=ledger))
    assert len(ledger) == 2
    assert part("text")["text"] != ""


class Far(MemoryLedger):
    """Notes what it was told it will be asked, and what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.foreseen: set[bytes] = set()
        self.asked: set[bytes] = set()

    def expect(self, keys: Sequence[bytes]) -> None:
        self.foreseen.update(keys)

    def lookup(self, key: bytes) -> tuple[int, ...]:
        self.asked.add(key)
        return super().lookup(key)

    def forget(self) -> None:
        self.foreseen.clear()
        self.asked.clear()


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_ledger_that_is_far_away_is_told_what_it_will_be_asked(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that locating looks up, so that it may fetch that at once."""
    far = Far()

    def watched(*told: Any, **options: Any) -> Lineage:
        far.forget()
        found = locate(*told, **options)
        assert far.asked <= far.foreseen
        return found

    monkeypatch.setattr(judging, "locate", watched)
    tracker = Tracker(KEY, ledger=far, settles=False)
    assert states(*observe(conversation(dialect), tracker)) == INTACT
    assert len(far.foreseen) > 10


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_ledger_that_is_far_away_is_told_the_same_of_a_reading_from_a_stand(dialect: str) -> None:
    """Also what was unknown before, and is asked for again."""
    far = Far()
    tracker = Tracker(KEY, ledger=far)
    for number, one in enumerate(conversation(dialect)[2:]):
        far.forget()
        report = tracker.observe(one)
        if number:
            assert far.asked - {b""} <= far.foreseen
            assert report.lookups_hit > 0
