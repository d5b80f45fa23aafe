"""What is settled is not read again, and nobody can tell from the verdicts."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from otel_sealed.align import Outcome, align
from otel_sealed.contract import Exchange
from otel_sealed.model import Lineage, Message, Report, Verdict
from otel_sealed.testing.mutations import Mutation
from otel_sealed.tracker import Tracker, judging
from otel_sealed.wire.checkpoint import GROUP, ByteHistory, Known, Segment, history
from otel_sealed.wire.parse import Unread
from tests.core.builders import (
    MINT,
    asked,
    call,
    candidate,
    message,
    part,
    reasoning,
    response,
    said,
    text,
    thinking,
    use,
)
from tests.core.chat_cases import called, in_id, reasoned, texted
from tests.core.chat_wire import detail, encrypted
from tests.core.conversations import APIS, KEY, MATRIX, WHOLE, Body, step
from tests.core.conversations import history as turns_of
from tests.core.test_mutations import CELLS, hosted

Make = Callable[[], Body]
ANSWERS: dict[str, list[Make]] = {
    "anthropic": [
        lambda: message(thinking(), use(), stop="tool_use"),
        lambda: message(thinking(""), text(), use(), stop="tool_use"),
        lambda: message(thinking(), text()),
    ],
    "openai": [
        lambda: response(reasoning(), call()),
        lambda: response(reasoning("Summed up here."), call(), call()),
        lambda: response(reasoning(), said()),
    ],
    "gemini": [
        lambda: candidate(part("call"), part("call", signed=False)),
        lambda: candidate(part("text", signed=False), part("empty")),
    ],
    "chat": [lambda: called(count=2), texted, in_id],
    "openrouter": [reasoned, lambda: reasoned(encrypted(MINT), detail(MINT, 1), calls=0)],
}


def spoil(body: Body, dialect: str, chance: random.Random) -> Body:
    """Now and then, what hosts do: lose a seal, change one, edit the system, cut the history."""
    body = copy.deepcopy(body)
    kind = chance.choice(["none"] * 6 + ["lose", "edit", "head", "front", "resend", "mark"])
    seals = list(_seals(body, dialect))
    if kind == "lose" and seals:
        holder, key = chance.choice(seals)
        holder.pop(key)
    elif kind == "edit" and seals:
        holder, key = chance.choice(seals)
        holder[key] = holder[key][:-8] + "AAAAAAA="
    elif kind == "head":
        body["tools"] = [{"name": f"tool_{chance.randrange(3)}"}]
    elif kind == "front":
        del turns_of(body)[:2]
    elif kind == "resend" and seals:
        turns_of(body).append(copy.deepcopy(turns_of(body)[1]))
    elif kind == "mark" and dialect == "anthropic":
        for turn in turns_of(body)[-2:]:
            for block in turn["content"] if isinstance(turn["content"], list) else ():
                if block.get("type") in ("text", "tool_result"):
                    block["cache_control"] = {"type": "ephemeral"}
    return body


_KEYS = ("signature", "encrypted_content", "thoughtSignature", "thought_signature", "data")


def _seals(body: Body, _dialect: str) -> Iterator[tuple[Body, str]]:
    for turn in turns_of(body):
        held = [turn.get("content", turn.get("parts", ())), turn.get("reasoning_details", ())]
        calls = [c.get("extra_content", {}).get("google", {}) for c in turn.get("tool_calls", ())]
        listed = [block for blocks in held if isinstance(blocks, list) for block in blocks]
        for block in [turn, *listed, *calls]:
            for key in _KEYS:
                if isinstance(block.get(key), str) and len(block[key]) > 40:
                    yield block, key


def observed(tracker: Tracker, dialect: str, body: Body, answer: Body, *, raw: bool) -> Report:
    request: Any = json.dumps(body).encode() if raw else body
    return tracker.observe(
        Exchange(APIS[dialect], request=request, response=answer, status=200, model="gemini-3-pro")
    )


def told(report: Report) -> tuple[Any, ...]:
    """All that a reading of everything and one from a stand must agree on."""
    rows = Counter((f.artifact, f.fate, f.verdict, f.rule) for f in report.findings)
    for check in report.settled:
        rows[(check.artifact, check.fate, check.verdict, check.rule)] += check.count
    loud = [
        (f.artifact, f.fate, f.verdict, f.rule, f.cause, f.returned, f.received)
        for f in report.findings
        if f.verdict is not Verdict.OK
    ]
    return (
        rows,
        sorted(map(repr, loud)),
        report.verdict,
        report.carry,
        report.expected,
        report.returned,
        report.prefix,
        report.conversation,
        report.receipts,
        report.rest_count,
        report.rest_digest,
    )


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", range(8))
def test_a_reading_from_a_stand_says_what_a_reading_of_everything_says(
    dialect: str, seed: int, *, raw: bool
) -> None:
    chance = random.Random(f"{dialect} {seed} {raw}")
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    bodies = [asked(dialect), asked(dialect)]  # two conversations, and forks of each
    for _ in range(24):
        which = chance.randrange(len(bodies))
        sent = spoil(bodies[which], dialect, chance)
        answer = chance.choice(ANSWERS[dialect])()
        reports = [observed(t, dialect, sent, answer, raw=raw) for t in (quick, slow)]
        assert told(reports[1]) == told(reports[0])
        if chance.random() < 0.1:
            bodies.append(copy.deepcopy(bodies[which]))
        turns_of(bodies[which]).extend(step(dialect, answer, f"Go on {chance.random()}."))


Habit = Callable[[Body, str, int], None]


def loses_some(body: Body, dialect: str, _number: int) -> None:
    """Every seal whose value says so, the same ones each time."""
    for holder, key in list(_seals(body, dialect)):
        if sum(holder[key].encode()) % 2:
            holder.pop(key)


def loses_all(body: Body, dialect: str, _number: int) -> None:
    """Every seal but the newest."""
    for holder, key in list(_seals(body, dialect))[:-1]:
        holder.pop(key)


def loses_each(body: Body, dialect: str, _number: int) -> None:
    """Every seal."""
    for holder, key in list(_seals(body, dialect)):
        holder.pop(key)


def forgets_to_think(body: Body, _dialect: str, number: int) -> None:
    """No thinking goes back, to a model that binds it to its prefix; that changes now and then."""
    body |= {"model": "claude-fable-5-1", "thinking": {"type": "adaptive"}}
    body["tools"] = [{"name": f"tool_{number // 3}"}]
    for turn in turns_of(body):
        if isinstance(turn.get("content"), list):
            turn["content"] = [b for b in turn["content"] if b.get("type") != "thinking"]


def thinks_by_hand(body: Body, dialect: str, number: int) -> None:
    """Every seal, where thinking is manual."""
    body |= {"model": "claude-opus-4-5", "thinking": {"type": "enabled", "budget_tokens": 2048}}
    loses_each(body, dialect, number)


def puts_a_dummy(body: Body, dialect: str, _number: int) -> None:
    """A value that nobody issued in the place of every second seal."""
    for holder, key in list(_seals(body, dialect))[::2]:
        holder[key] = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="


def cuts(body: Body, dialect: str, _number: int) -> None:
    """Each seal without its end."""
    for holder, key in list(_seals(body, dialect)):
        holder[key] = holder[key][: len(holder[key]) * 2 // 3]


def adds_a_key(body: Body, dialect: str, _number: int) -> None:
    """A key of the host's own beside each seal."""
    for holder, _ in list(_seals(body, dialect)):
        holder["host_note"] = "kept"


def strips_ids(body: Body, _dialect: str, _number: int) -> None:
    """No item has its id."""
    for turn in turns_of(body):
        turn.pop("id", None)


def tells_the_time(body: Body, _dialect: str, number: int) -> None:
    """Another head with each request."""
    body["tools"] = [{"name": f"tool_{number}"}]


def turns_back_the_clock(body: Body, _dialect: str, number: int) -> None:
    """Two heads in turn."""
    body["tools"] = [{"name": f"tool_{number % 2}"}]


def says_it_again(body: Body, dialect: str, _number: int) -> None:
    """Loses each seal, and puts one into a text further down now and then."""
    held = list(_seals(body, dialect))
    lost = [holder.pop(key) for holder, key in held]
    if len(lost) > 3 and sum(lost[-1].encode()) % 3 == 0:
        turns_of(body).append({"role": "user", "content": f"Before: {lost[0]}"})


def forgets_a_turn(body: Body, _dialect: str, _number: int) -> None:
    """A stretch of its history is gone."""
    if len(turns_of(body)) > 12:
        del turns_of(body)[5:9]


def forgets_what_it_called(body: Body, _dialect: str, number: int) -> None:
    """The newest turns of the model are gone, what came of them is not."""
    if number % 3 == 2:
        del turns_of(body)[-2:-1]


def forgets_the_beginning(body: Body, _dialect: str, _number: int) -> None:
    """All but the question and the last few."""
    del turns_of(body)[1:-7]


HABITS = (
    forgets_a_turn,
    forgets_what_it_called,
    forgets_the_beginning,
    loses_some,
    loses_all,
    loses_each,
    forgets_to_think,
    thinks_by_hand,
    puts_a_dummy,
    cuts,
    adds_a_key,
    strips_ids,
    tells_the_time,
    turns_back_the_clock,
    says_it_again,
)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("seen_from", [0, 5])
def test_a_host_with_a_habit_is_told_the_same_from_a_stand(
    dialect: str, habit: Habit, seen_from: int, *, raw: bool
) -> None:
    chance = random.Random(f"{dialect} {habit.__name__} {raw}")
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked(dialect)
    for number in range(20):
        sent = spoil(body, dialect, chance) if number % 7 == 6 else copy.deepcopy(body)
        habit(sent, dialect, number)
        answer = chance.choice(ANSWERS[dialect])()
        if number >= seen_from:
            reports = [observed(t, dialect, sent, answer, raw=raw) for t in (quick, slow)]
            assert told(reports[1]) == told(reports[0])
        turns_of(body).extend(step(dialect, answer, f"Go on {chance.random()}."))


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("habit", [loses_some, loses_each, loses_all, thinks_by_hand])
def test_a_fork_is_judged_by_its_own_end_not_by_that_of_what_it_leaves(
    dialect: str, habit: Habit
) -> None:
    """What was before a later seal, or over because the user spoke, may be neither in a fork."""
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked(dialect)
    points: list[Body] = []
    for number in range(14):
        at = points[number - 7] if number > 7 else body
        body = copy.deepcopy(at)
        points.append(body)
        answer = ANSWERS[dialect][number % len(ANSWERS[dialect])]()
        for _ in range(2):
            sent = copy.deepcopy(body)
            habit(sent, dialect, number)
            reports = [observed(t, dialect, sent, answer, raw=True) for t in (quick, slow)]
            assert told(reports[1]) == told(reports[0])
            body = copy.deepcopy(body)
            turns_of(body).extend(step(dialect, answer, f"Go on {number}."))
            answer = ANSWERS[dialect][0]()


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("habit", [forgets_a_turn, forgets_the_beginning])
def test_where_absent_turns_are_told_no_more_a_stand_tells_no_more_either(
    dialect: str, habit: Habit, most: int
) -> None:
    chance = random.Random(f"{dialect} {habit.__name__} {most}")
    quick, slow = Tracker(KEY, absent=most), Tracker(KEY, absent=most, settles=False)
    body = asked(dialect)
    for number in range(20):
        sent = spoil(body, dialect, chance) if number % 7 == 6 else copy.deepcopy(body)
        habit(sent, dialect, number)
        answer = chance.choice(ANSWERS[dialect])()
        reports = [observed(t, dialect, sent, answer, raw=True) for t in (quick, slow)]
        assert told(reports[1]) == told(reports[0])
        turns_of(body).extend(step(dialect, answer, f"Go on {chance.random()}."))


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(("dialect", "mutation"), CELLS)
def test_a_mutation_shows_the_same_from_a_stand(
    dialect: str, mutation: Mutation, *, raw: bool
) -> None:
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    for one in hosted(dialect, mutation, WHOLE):
        sent = json.dumps(one.request).encode() if raw else one.request
        exchange = dataclasses.replace(one, request=sent)
        assert told(slow.observe(exchange)) == told(quick.observe(exchange))


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_turn_said_again_at_the_end_is_at_home_again_in_the_next_request(dialect: str) -> None:
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked(dialect)
    first: list[Any] = []
    for number in range(5):
        sent = copy.deepcopy(body)
        for holder, key in list(_seals(sent, dialect))[:1]:
            holder.pop(key)
        if number == 3:
            turns_of(sent).extend(first)
        answer = ANSWERS[dialect][-1]()
        reports = [observed(t, dialect, sent, answer, raw=True) for t in (quick, slow)]
        assert told(reports[1]) == told(reports[0])
        new = step(dialect, answer, f"Go on {number}.")
        first = first or new[:-1]
        turns_of(body).extend(new)


def test_a_loss_in_the_newest_turn_is_judged_anew_when_it_is_the_newest_no_more() -> None:
    """Gemini: G4 where it is the last, G3 later."""
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked("gemini")
    rules = []
    for number in range(4):
        sent = copy.deepcopy(body)
        loses_each(sent, "gemini", number)
        answer = candidate(part("text"))
        reports = [observed(t, "gemini", sent, answer, raw=True) for t in (quick, slow)]
        assert told(reports[1]) == told(reports[0])
        rules = [f.rule for f in reports[0].findings]
        turns_of(body).extend(step("gemini", answer, f"Go on {number}."))
    assert ["G3", "G3", "G4"] == rules


def test_a_conversation_that_is_compacted_again_and_again_is_read_from_where_it_was() -> None:
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked("anthropic")
    reports: list[Report] = []
    for number in range(24):
        answer = message(thinking(), use(), stop="tool_use")
        if number % 6 == 5:
            told_so_far = f"Summed up behind answer {number}, with what is to be done."
            block = {"type": "compaction", "content": told_so_far, "encrypted_content": MINT.seal()}
            answer["content"].insert(0, block)
        reports = [observed(t, "anthropic", body, answer, raw=True) for t in (quick, slow)]
        assert told(reports[1]) == told(reports[0])
        if number % 6 == 5:
            turns_of(body).clear()
        turns_of(body).extend(step("anthropic", answer, "q"))
    rows = [sum(f.verdict is Verdict.OK for f in report.findings) for report in reports]
    assert [2, 14] == rows


@pytest.mark.parametrize(
    ("habit", "dialect"),
    [
        (forgets_a_turn, "anthropic"),
        (loses_all, "anthropic"),
        (loses_all, "gemini"),
        (adds_a_key, "anthropic"),
        (strips_ids, "openai"),
        (tells_the_time, "anthropic"),
    ],
)
def test_a_host_with_a_habit_is_not_read_from_the_beginning_each_time(
    habit: Habit, dialect: str, messages_read: list[int]
) -> None:
    tracker = Tracker(KEY)
    body = asked(dialect)
    read = []
    for number in range(12):
        sent = copy.deepcopy(body)
        habit(sent, dialect, number)
        answer = ANSWERS[dialect][0]()
        messages_read.clear()
        observed(tracker, dialect, sent, answer, raw=True)
        read.append(len(messages_read))
        turns_of(body).extend(step(dialect, answer, "q"))
    assert read[7:] == [read[7]] * 5


def test_a_loss_before_a_word_of_the_user_costs_no_reading_of_what_was_before_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When the user speaks, what the turn under way lacks is judged anew: that turn alone."""
    compared: list[int] = []

    def aligned(lineage: Lineage, messages: tuple[Message, ...], *more: Any) -> list[Outcome]:
        compared.append(len(messages))
        return align(lineage, messages, *more)

    monkeypatch.setattr(judging, "align", aligned)
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked("anthropic")
    read = []
    for number in range(24):
        sent = copy.deepcopy(body)
        loses_all(sent, "anthropic", number)
        answer = ANSWERS["anthropic"][0]()
        compared.clear()
        report = observed(quick, "anthropic", sent, answer, raw=True)
        read.append(max(compared, default=0))
        assert told(report) == told(observed(slow, "anthropic", sent, answer, raw=True))
        turns_of(body).extend(step("anthropic", answer, "q"))
        if number % 6 == 5:
            turns_of(body).append({"role": "user", "content": f"Now this, {number}."})
    assert read[12:18] == read[18:]


def test_rows_that_went_out_before_are_counts_and_the_new_ones_findings() -> None:
    tracker = Tracker(KEY)
    body = asked("anthropic")
    reports = []
    for _ in range(4):
        answer = message(thinking(), use(), stop="tool_use")
        reports.append(observed(tracker, "anthropic", body, answer, raw=True))
        turns_of(body).extend(step("anthropic", answer, "q"))
    found = [(len(r.findings), sum(c.count for c in r.settled), r.expected) for r in reports]
    assert [(0, 0, 0), (2, 0, 1), (2, 2, 2), (2, 4, 3)] == found


def test_the_rest_digest_does_not_tell_how_it_was_read() -> None:
    quick, slow = Tracker(KEY), Tracker(KEY, settles=False)
    body = asked("openai")
    found: list[Report] = []
    for _ in range(5):
        answer = response(reasoning(), call())
        found = [observed(t, "openai", body, answer, raw=True) for t in (quick, slow)]
        assert (found[1].rest_count, found[1].rest_digest) == (
            found[0].rest_count,
            found[0].rest_digest,
        )
        turns_of(body).extend(step("openai", answer, "q"))
    assert found[0].settled


def test_a_moved_cache_marker_resumes_from_before_it() -> None:
    tracker = Tracker(KEY)
    body = asked("anthropic")
    reports = []
    for _ in range(4):
        marked = copy.deepcopy(body)
        last = turns_of(marked)[-1]["content"]
        if isinstance(last, list):
            last[-1]["cache_control"] = {"type": "ephemeral"}
        answer = message(thinking(), use(), stop="tool_use")
        reports.append(observed(tracker, "anthropic", marked, answer, raw=True))
        turns_of(body).extend(step("anthropic", answer, "q"))
    assert Verdict.OK is reports[-1].verdict
    assert reports[-1].settled


def test_another_model_reads_everything_anew() -> None:
    tracker = Tracker(KEY)
    body = asked("anthropic") | {"model": "claude-fable-5"}
    for _ in range(3):
        answer = message(thinking(), use(), stop="tool_use", model="claude-fable-5")
        observed(tracker, "anthropic", body, answer, raw=True)
        turns_of(body).extend(step("anthropic", answer, "q"))
    switched = body | {"model": "claude-opus-5"}
    report = observed(tracker, "anthropic", switched, message(text()), raw=True)
    assert (Verdict.DEGRADES, ()) == (report.verdict, report.settled)


def test_what_is_not_well_is_told_with_every_request() -> None:
    tracker = Tracker(KEY)
    body = asked("openai")
    told_rows = []
    for _ in range(4):
        sent = copy.deepcopy(body)
        for item in sent["input"]:
            item.pop("id", None)
        answer = response(reasoning(), call())
        report = observed(tracker, "openai", sent, answer, raw=True)
        told_rows.append(sum(f.verdict is Verdict.ALLOWED for f in report.findings))
        turns_of(body).extend(step("openai", answer, "q"))
    assert [0, 1, 2, 3] == told_rows


# ------------------------------------------------------------------------------------- checkpoints


def test_a_key_of_that_name_deeper_down_is_not_the_history() -> None:
    body = b'{"tools":[{"messages":[1]}],"messages":[{"a":1}]}'
    found = history(body, "messages")
    assert isinstance(found, ByteHistory)
    assert [{"a": 1}] == found.rest(0).items


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"messages":1}',
        b'{"messages":[',
        b"\xff\xfe",
        b'{"x":"\\"messages\\":["}',
    ],
)
def test_what_has_no_history_has_none(body: bytes) -> None:
    found = history(body, "messages")
    assert found is None or isinstance(found, ByteHistory)
    if found is not None:
        with pytest.raises(Unread):
            found.rest(0)


@pytest.mark.parametrize("tail", [b"", b",", b"]", b'],"x":}', b'{"b":2}]}', b",]}"])
def test_a_broken_end_is_no_rest(tail: bytes) -> None:
    found = history(b'{"messages":[{"a":1}' + tail, "messages")
    assert found is not None
    with pytest.raises(Unread, match="json"):
        found.rest(0)


def test_a_history_agrees_as_far_as_its_bytes_do() -> None:
    one = history(b'{"messages":[{"a":1}]}', "messages")
    two = history(b'{"messages":[{"a":1},{"b":2}]}', "messages")
    other = history(b'{"messages":[{"a":2},{"b":2}]}', "messages")
    assert one is not None
    assert two is not None
    assert other is not None
    known = one.known(Known(), one.rest(0).segments)
    assert [1, 1, 0] == [h.agreed(known) for h in (one, two, other)]
    rest = two.rest(known.length)
    assert [{"b": 2}] == rest.items
    assert [Segment(len(b',{"b":2}'), rest.segments[0].hash)] == rest.segments


def test_a_long_history_agrees_by_groups_and_in_a_broken_group_up_to_the_break() -> None:
    items = [{"n": number} for number in range(3 * GROUP + 5)]
    whole = history(json.dumps({"messages": items}).encode(), "messages")
    assert isinstance(whole, ByteHistory)
    segments = whole.rest(0).segments
    known = whole.known(whole.known(Known(), segments[:40]), segments[40:])
    assert (len(items), 3) == (len(known.segments), len(known.groups))
    assert sum(s.length for s in segments) == known.length
    for broken in (0, GROUP - 1, GROUP, 2 * GROUP + 3, 3 * GROUP, len(items) - 1):
        other = [*items[:broken], {"n": -1}, *items[broken + 1 :]]
        found = history(json.dumps({"messages": other}).encode(), "messages")
        assert found is not None
        agreed = found.agreed(known)
        assert broken == agreed
        assert sum(s.length for s in segments[:broken]) == known.first(agreed).length
    assert len(items) == whole.agreed(known)


def test_objects_that_are_no_plain_data_are_read_the_long_way() -> None:
    assert None is history({"contents": [object()]}, "contents")
    body: Body = {"contents": [{"role": "user", "parts": [{"text": "q"}]}], "x": object()}
    assert None is history(body, "contents")


def test_bytes_that_are_no_text_and_nesting_without_end_are_named() -> None:
    broken = history(b'{"messages":["\xff"]}', "messages")
    deep = history(b'{"messages":[' + b"[" * 100_000 + b"]" * 100_000 + b"]}", "messages")
    assert broken is not None
    assert deep is not None
    with pytest.raises(Unread, match="encoding"):
        broken.rest(0)
    with pytest.raises(Unread, match="depth"):
        deep.rest(0)


def test_an_array_that_stands_too_deep_too_often_is_given_up() -> None:
    nested = b'{"tools":[' + b",".join([b'{"messages":[1]}'] * 9) + b'],"messages":[{"a":1}]}'
    assert None is history(nested, "messages")
