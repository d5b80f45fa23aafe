"""What holds for every conversation, every permitted freedom and any JSON at all."""

from __future__ import annotations

import base64
import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_sealed.contract import Api, Exchange
from otel_sealed.testing.mutations import FREEDOMS, MUTATIONS, Side
from otel_sealed.tracker import Tracker
from tests.core.conversations import (
    APIS,
    KEY,
    MATRIX,
    STREAM,
    WHOLE,
    Body,
    Delivery,
    conversation,
    exchange,
    history,
    observe,
    rows,
    violations,
)

PROFILE = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
MORE = settings(PROFILE, max_examples=120)
HARMLESS = {"ok", "allowed", "unverifiable"}

dialects = st.sampled_from(MATRIX)
seeds = st.integers(0, 10_000)
deliveries = st.sampled_from([WHOLE, STREAM])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.sampled_from(["thinking", "reasoning", "assistant", "model", "user", "tool_use", "text"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "role",
                    "content",
                    "parts",
                    "text",
                    "thinking",
                    "signature",
                    "data",
                    "id",
                    "call_id",
                    "encrypted_content",
                    "summary",
                    "functionCall",
                    "thoughtSignature",
                    "messages",
                    "input",
                    "contents",
                    "output",
                    "candidates",
                    "error",
                    "delta",
                    "index",
                    "item",
                    "response",
                    "message",
                    "content_block",
                    "usage",
                    "model",
                    "system",
                    "tools",
                ]
            )
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@PROFILE
@given(dialects, seeds, deliveries, st.data())
def test_a_faithful_replay_with_any_permitted_freedoms_is_harmless(
    dialect: str, seed: int, delivery: Delivery, data: st.DataObject
) -> None:
    """Whatever the contract permits, in any combination, on any call, accuses nobody."""
    free = [f for f in FREEDOMS if f.dialect == dialect]
    chance = random.Random(seed)

    def host(body: Body) -> Body:
        for freedom in data.draw(st.lists(st.sampled_from(free), max_size=4)):
            body = freedom.change(body, chance)
        return body

    reports = observe(conversation(dialect, seed, host=host, delivery=delivery))
    assert {f.verdict.value for f in rows(reports)} <= HARMLESS
    assert {f.fate.value for f in rows(reports)} & {"intact"} == {"intact"}


def sealed_values(dialect: str, body: Body) -> Iterator[tuple[Body, str]]:
    """(carrier, key) of every sealed value of a request."""
    for one in history(body):
        content = one.get("content") or one.get("parts")
        blocks = content if isinstance(content, list) else []
        calls = one.get("tool_calls", ())
        extras = [
            held["extra_content"]["google"] for held in (one, *calls) if "extra_content" in held
        ]
        for block in (one, *blocks, *one.get("reasoning_details", ()), *extras):
            for key in (
                "signature",
                "data",
                "encrypted_content",
                "thoughtSignature",
                "thought_signature",
            ):
                if isinstance(block.get(key), str):
                    yield block, key
    assert dialect in APIS


@MORE
@given(dialects, seeds, st.data())
def test_any_change_of_one_character_of_any_seal_is_found(
    dialect: str, seed: int, data: st.DataObject
) -> None:
    """A seal that differs in its compared form is never intact."""
    plan = conversation(dialect, seed)
    body = copy.deepcopy(plan[-1].request)
    carrier, key = data.draw(st.sampled_from(list(sealed_values(dialect, body))))
    value = carrier[key]
    at = data.draw(st.integers(0, len(value.rstrip("=")) - 1))
    other = data.draw(st.sampled_from("ABCabc019+/").filter(lambda c: c != value[at]))
    changed = value[:at] + other + value[at + 1 :]
    if dialect == "gemini" and base64.b64decode(changed) == base64.b64decode(value):
        return  # only bits that no byte holds
    carrier[key] = changed
    tracker = Tracker(KEY)
    observe(plan[:-1], tracker)
    report = tracker.observe(exchange(dialect, body, None))
    fates = [f.fate.value for f in report.findings]
    assert fates.count("modified") == 1
    assert [f.fate.value for f in report.findings if f.verdict.violates] == ["modified"]


@PROFILE
@given(st.lists(st.tuples(dialects, seeds), min_size=2, max_size=3, unique=True), st.data())
def test_interleaved_conversations_never_accuse_each_other(
    names: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Any interleaving of conversations in one process is harmless to all of them."""
    plans = [list(reversed(conversation(dialect, seed))) for dialect, seed in names]
    tracker = Tracker(KEY)
    while any(plans):
        plan = data.draw(st.sampled_from([p for p in plans if p]))
        report = tracker.observe(plan.pop())
        assert {(f.fate.value, f.verdict.value) for f in report.findings} <= {("intact", "ok")}


@PROFILE
@given(dialects, seeds, st.data())
def test_an_unfaithful_conversation_never_accuses_a_faithful_one_beside_it(
    dialect: str, seed: int, data: st.DataObject
) -> None:
    """The faults of one host stay its own."""
    mine = [
        m
        for m in MUTATIONS
        if dialect in m.dialects and m.side is Side.REQUEST and m.conversation == "standard"
    ]
    mutation = data.draw(st.sampled_from(mine))
    bad = conversation(dialect, f"bad {seed}", host=mutation, around=mutation.around)
    good = conversation(dialect, f"good {seed}")
    tracker = Tracker(KEY)
    found = []
    for one, two in zip(bad, good, strict=True):
        tracker.observe(one)
        found.append(tracker.observe(two))
    assert violations(found) == []


@PROFILE
@given(dialects, seeds, st.integers(1, 5), st.integers(1, 5))
def test_a_restart_at_any_call_accuses_nobody(dialect: str, seed: int, at: int, again: int) -> None:
    """What a process did not see coming in is unknown to it, and no more."""
    plan = conversation(dialect, seed)
    tracker = Tracker(KEY)
    observe(plan[:at][:again], tracker)
    fresh = Tracker(KEY)
    reports = observe(plan[at:], fresh)
    assert {f.verdict.value for f in rows(reports)} <= HARMLESS


@MORE
@given(st.sampled_from(list(Api)), json_values, json_values, st.lists(json_values, max_size=4))
def test_arbitrary_json_never_raises(api: Api, asked: Any, answer: Any, events: list[Any]) -> None:
    """Anything at all as request, response and events."""
    tracker = Tracker(KEY)
    tracker.observe(Exchange(api=api, request=asked, response=answer))
    tracker.observe(Exchange(api=api, request=asked, events=events))
    tracker.observe(Exchange(api=api, request=answer, response=asked, status=400))


@MORE
@given(dialects, st.integers(0, 5), json_values, st.data())
def test_arbitrary_json_inside_a_conversation_never_raises(
    dialect: str, number: int, value: Any, data: st.DataObject
) -> None:
    """Anything at all in the place of one key of one element of a history."""
    plan = conversation(dialect)
    tracker = Tracker(KEY)
    observe(plan[:number], tracker)
    body = copy.deepcopy(plan[number].request)
    one = data.draw(st.sampled_from(history(body)))
    blocks = [b for b in (one.get("content"), one.get("parts")) if isinstance(b, list)]
    target = data.draw(st.sampled_from([one, *(b for found in blocks for b in found)]))
    target[data.draw(st.sampled_from(sorted(target)))] = value
    tracker.observe(exchange(dialect, body, plan[number].response))


@PROFILE
@given(st.binary(max_size=200), st.sampled_from([*APIS.values()]))
def test_arbitrary_bytes_never_raise(data: bytes, api: Api) -> None:
    """Anything at all as raw bodies."""
    report = Tracker(KEY).observe(Exchange(api=api, request=data, response=data))
    assert report.unread != ()
    Tracker(KEY).observe(Exchange(api=api, request=data, events=data))
    Tracker(KEY).observe(Exchange(api=api, request="{}", events=b"data: " + data + b"\n\n"))


@pytest.mark.parametrize("dialect", MATRIX)
def test_the_same_exchanges_give_the_same_reports(dialect: str) -> None:
    """The core has no clock and no chance."""
    assert observe(conversation(dialect)) == observe(conversation(dialect))
