"""OpenAI seals an item anew for each event of a stream (O11, O20): which values are received."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from otel_sealed.tracker import Tracker
from tests.core.builders import MINT, call, compacted, reasoning, response, said
from tests.core.conversations import KEY, Body, exchange, history, request, step

Row = tuple[str, str, str]
CLOSING = ["response.completed", "response.incomplete"]


def renewed(item: Body, **more: Any) -> Body:
    """The item in another event: the same, sealed again."""
    return item | {"encrypted_content": MINT.seal()} | more


def streamed(
    answer: Body, done: Callable[[Body], Body], closing: str = "response.completed"
) -> tuple[list[Body], list[Body]]:
    """The events that bring an answer, and its items as `output_item.done` had them."""
    events: list[Body] = [{"type": "response.created", "response": answer | {"output": []}}]
    items = []
    for index, item in enumerate(answer["output"]):
        sealed = "encrypted_content" in item
        begun = renewed(item, encrypted_content=MINT.seal()[:48]) if sealed else item
        items.append(done(item) if sealed else item)
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": begun},
            {"type": "response.output_item.done", "output_index": index, "item": items[-1]},
        ]
    events.append({"type": closing, "response": answer})
    return events, items


def replayed(
    answer: Body, events: list[Body], items: list[Body], times: int = 1
) -> list[list[Row]]:
    """What is seen of the seals and ids that go back in the following requests."""
    tracker = Tracker(KEY)
    body = request("openai", [])
    tracker.observe(exchange("openai", copy.deepcopy(body), None, events=events))
    seen = []
    for _ in range(times):
        history(body).extend(step("openai", answer | {"output": items}, "Go on."))
        report = tracker.observe(exchange("openai", copy.deepcopy(body), None, status=None))
        seen.append([(f.artifact, f.fate.value, f.verdict.value) for f in report.findings])
    return seen


@pytest.mark.parametrize("closing", CLOSING)
@pytest.mark.parametrize("kind", [reasoning, compacted], ids=["reasoning", "compaction"])
@pytest.mark.parametrize("which", ["done", "completed"])
def test_the_value_of_either_event_is_a_received_one(
    kind: Callable[[], Body], which: str, closing: str
) -> None:
    answer = response(kind(), call())
    events, done = streamed(answer, renewed, closing)
    (rows,) = replayed(answer, events, done if which == "done" else answer["output"])
    assert {row[1:] for row in rows} == {("intact", "ok")}
    assert [row[0].rpartition(".")[2] for row in rows] == ["encrypted_content", "id"]


def test_of_several_items_each_may_be_of_another_event() -> None:
    answer = response(reasoning(), call(), reasoning(), said())
    events, done = streamed(answer, renewed)
    mixed = [done[0], done[1], answer["output"][2], answer["output"][3]]
    (rows,) = replayed(answer, events, mixed)
    assert {row[1:] for row in rows} == {("intact", "ok")}
    assert len(rows) == 4


def test_the_value_of_the_opening_event_is_not_received() -> None:
    """It is shorter and of no use; sent back it is another value."""
    answer = response(reasoning(), call())
    events, _ = streamed(answer, renewed)
    begun = [events[1]["item"], answer["output"][1]]
    (rows,) = replayed(answer, events, begun)
    assert ("openai.reasoning.encrypted_content", "modified", "breaks") in rows


@pytest.mark.parametrize("which", ["done", "completed"])
def test_a_changed_value_of_either_event_is_accused(which: str) -> None:
    answer = response(reasoning(), call())
    events, done = streamed(answer, renewed)
    items = copy.deepcopy(done if which == "done" else answer["output"])
    items[0]["encrypted_content"] = items[0]["encrypted_content"][:-12]
    (rows,) = replayed(answer, events, items)
    assert ("openai.reasoning.encrypted_content", "modified", "breaks") in rows


def fate_of(items: Callable[[list[Body], list[Body]], list[Body]]) -> list[tuple[Any, ...]]:
    """What became of the seals of an answer in two values: (fate, verdict, cause).

    `items`: what goes back, of those of `done` and of `completed`.
    """
    tracker = Tracker(KEY)
    body = request("openai", [])
    answer = response(reasoning(), call(), reasoning(), said())
    events, done = streamed(answer, renewed)
    tracker.observe(exchange("openai", copy.deepcopy(body), None, events=events))
    back = items(copy.deepcopy(done), copy.deepcopy(answer["output"]))
    history(body).extend(step("openai", answer | {"output": back}, "Go on."))
    report = tracker.observe(exchange("openai", body, None, status=None))
    return [
        (f.fate.value, f.verdict.value, f.cause)
        for f in report.findings
        if f.artifact.endswith("encrypted_content")
    ]


@pytest.mark.parametrize("which", [0, 1], ids=["done", "completed"])
def test_how_a_value_of_either_event_was_changed_is_said(which: int) -> None:
    def cut(*events: list[Body]) -> list[Body]:
        items = events[which]
        items[0]["encrypted_content"] = items[0]["encrypted_content"][:-12]
        return items

    assert fate_of(cut) == [("modified", "breaks", "cut_end"), ("intact", "ok", None)]


@pytest.mark.parametrize("which", [0, 1], ids=["done", "completed"])
def test_a_value_of_either_event_is_found_where_it_does_not_belong(which: int) -> None:
    def quoted(*events: list[Body]) -> list[Body]:
        items = events[which]
        items[3]["content"][0]["text"] += " " + items[0].pop("encrypted_content")
        return items

    assert fate_of(quoted)[0] == ("misplaced", "degrades", "in_text")


def test_an_item_in_both_values_is_sent_twice() -> None:
    """X4: one item, whichever of its two seals each copy has."""
    found = fate_of(lambda done, completed: [completed[0], *done])
    assert found == [("duplicated", "breaks", None), ("intact", "ok", None)]


def test_both_values_of_an_item_in_one_slot_are_two_seals() -> None:
    def joined(done: list[Body], completed: list[Body]) -> list[Body]:
        done[0]["encrypted_content"] += completed[0]["encrypted_content"]
        return done

    assert fate_of(joined)[0] == ("merged", "breaks", "two_seals")


def test_a_lost_item_is_lost_once() -> None:
    answer = response(reasoning(), call())
    events, done = streamed(answer, renewed)
    (rows,) = replayed(answer, events, done[1:])
    assert [row for row in rows if row[1] == "dropped"] == [
        ("openai.reasoning.encrypted_content", "dropped", "breaks")
    ]


def test_a_host_that_gives_each_event_its_own_ids_is_read_by_places() -> None:
    """Copilot does; the blob of an event belongs to the id of that event."""
    answer = response(reasoning(), call())
    events, done = streamed(answer, lambda item: renewed(item, id=MINT.name("rs")))
    (rows,) = replayed(answer, events, done)
    assert {row[1:] for row in rows} == {("intact", "ok")}
    crossed = [answer["output"][0] | {"id": done[0]["id"]}, *answer["output"][1:]]
    (rows,) = replayed(answer, events, crossed)
    assert ("openai.reasoning.id", "modified", "breaks") in rows


def test_one_seal_is_received_where_two_values_came() -> None:
    answer = response(reasoning(), call())
    events, _ = streamed(answer, renewed)
    report = Tracker(KEY).observe(exchange("openai", request("openai", []), None, events=events))
    assert [receipt.artifact for receipt in report.received] == [
        "openai.reasoning.encrypted_content"
    ]


def test_an_identical_value_in_both_events_is_kept_once() -> None:
    tracker = Tracker(KEY)
    answer = response(reasoning(), call())
    events, _ = streamed(answer, dict)
    tracker.observe(exchange("openai", request("openai", []), None, events=events))
    turn = tracker.ledger.get(max(tracker.ledger.last(b""), 0))
    values = [v.role.value for b in (turn.blocks if turn else ()) for v in b.values]
    assert "anew" not in values
