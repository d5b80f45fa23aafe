"""The sans-IO core: told exchanges, it returns reports. Its own state and its counts."""

from __future__ import annotations

import copy
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import pytest

from otel_sealed import model
from otel_sealed.contract import Api, Exchange
from otel_sealed.errors import SealedError
from otel_sealed.model import Carry, Report, Verdict
from otel_sealed.tracker import Tracker
from tests.core.builders import call, message, reasoning, response, text, thinking, use, without
from tests.core.conversations import (
    KEY,
    MATRIX,
    conversation,
    exchange,
    history,
    observe,
    replay,
    request,
    rows,
    seen,
    step,
)


def test_a_tracker_needs_a_key() -> None:
    """Sixteen secret bytes at least."""
    with pytest.raises(ValueError, match="at least 16 bytes"):
        Tracker(b"short")


@pytest.mark.parametrize("dialect", MATRIX)
def test_exchanges_are_counted_from_zero(dialect: str) -> None:
    """Unless the caller counts itself."""
    tracker = Tracker(KEY)
    reports = observe(conversation(dialect, turns=3), tracker)
    assert [r.exchange for r in reports] == [0, 1, 2]
    one = exchange(dialect, request(dialect, []), None, number=77)
    assert tracker.observe(one).exchange == 77
    assert tracker.observe(exchange(dialect, request(dialect, []), None)).exchange in (3, 4)


@pytest.mark.parametrize("dialect", MATRIX)
def test_observing_changes_no_body(dialect: str) -> None:
    """What is observed is only read."""
    plan = conversation(dialect)
    before = copy.deepcopy(plan)
    observe(plan)
    assert plan == before


def test_rows_say_where_each_artifact_came_from() -> None:
    """Exchange, path, model and minting span."""
    answer = message(thinking(), use())
    origin = bytes(range(24))
    report = replay("anthropic", answer, minted={"origin": origin, "number": 5})
    received = report.findings[0].received
    assert received is not None
    assert (received.exchange, received.path, received.span, received.model) == (
        5,
        "content.0",
        origin,
        "claude-opus-5",
    )


def test_what_goes_out_for_the_first_time_is_marked() -> None:
    """The newest turn of a request is sent for the first time."""
    report = observe(conversation("openai", turns=3))[2]
    first = {f.received.exchange: f.first for f in report.findings if f.received}
    assert first[1] is True
    assert first.get(0, False) is False


def test_carry_says_how_earlier_state_is_brought() -> None:
    """Replayed, by reference, or not at all."""
    answer = response(reasoning(), call())
    assert replay("openai", answer).carry is Carry.REPLAYED
    assert replay("openai", answer, without("reasoning")).carry is Carry.NONE
    held = replay("openai", answer, lambda b: b | {"previous_response_id": "resp_unknown"})
    assert held.carry is Carry.BY_REFERENCE


@pytest.mark.parametrize("dialect", MATRIX)
def test_block_types_of_both_directions_are_listed(dialect: str) -> None:
    """In order, as words."""
    reports = observe(conversation(dialect, turns=2))
    assert reports[0].received_types != ()
    assert [t for t in reports[1].returned_types if t not in reports[0].received_types] == []


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_long_conversation_is_well_to_its_end(dialect: str) -> None:
    """Thirty rounds, each carrying all that came before."""
    tracker = Tracker(KEY)
    body = request(dialect, [])
    for number in range(30):
        answer = conversation(dialect, number, turns=1)[0].response
        report = tracker.observe(exchange(dialect, copy.deepcopy(body), answer))
        assert seen([report]) <= {("intact", "ok")}
        assert report.expected == report.returned == number
        history(body).extend(step(dialect, answer, "And then?"))


def test_a_provider_that_contradicts_a_rule_ten_times_is_believed() -> None:
    """`breaks` falls to `degrades`, marked disputed, in this process."""
    tracker = Tracker(KEY)
    found = []
    for number in range(12):
        body = request("anthropic", [], number)
        body["thinking"] = {"type": "enabled", "budget_tokens": 2048}
        answer = message(thinking(), use())
        tracker.observe(exchange("anthropic", copy.deepcopy(body), answer))
        history(body).extend(step("anthropic", answer, "And?"))
        stripped = without("thinking")(body)
        report = tracker.observe(exchange("anthropic", stripped, message(text())))
        found += [(f.verdict.value, f.disputed) for f in rows([report])]
    assert found == [("breaks", False)] * 10 + [("degrades", True)] * 2


def test_a_report_of_one_conversation_is_unmoved_by_another_tracker() -> None:
    """Trackers share nothing."""
    one, two = Tracker(KEY), Tracker(KEY)
    plan = conversation("gemini")
    observe(plan[:2], one)
    assert seen([two.observe(plan[2])]) == {("unknown", "unverifiable")}
    assert seen([one.observe(plan[2])]) == {("intact", "ok")}


# ---------------------------------------------------------------------------------- records


RECORDS = [getattr(model, name) for name in model.__all__ if is_dataclass(getattr(model, name))]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
def test_records_are_slotted_and_equal_by_value(record: type) -> None:
    """The waist is records that nobody changes: mypy sees to that (test_record)."""
    assert record.__dataclass_params__.unsafe_hash is True  # type: ignore[attr-defined]
    assert not hasattr(record, "__dict__") or "__slots__" in vars(record)


def test_no_record_of_a_report_holds_anything_long() -> None:
    """Digests, sizes, enums, positions and vocabulary: no string is long enough to be a seal."""
    reports = [r for dialect in MATRIX for r in observe(conversation(dialect))]
    strings = [text_ for report in reports for text_ in _strings(report)]
    assert [text_ for text_ in strings if len(text_) > 60] == []


def _strings(value: Any) -> list[str]:
    if isinstance(value, Enum) or not value:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes):
        assert len(value) <= 24
        return []
    if is_dataclass(value):
        return [t for f in fields(value) for t in _strings(getattr(value, f.name))]
    if isinstance(value, (tuple, frozenset)):
        return [t for one in value for t in _strings(one)]
    return []


def test_an_error_for_people_makes_one_line() -> None:
    """Where, what and the remedy."""
    error = SealedError("is not there", where="a.jsonl, line 3", remedy="write it")
    assert str(error) == "a.jsonl, line 3: is not there (write it)"
    assert SealedError("is not there").line() == "is not there"


def test_a_report_about_nothing_is_nothing() -> None:
    """A wire without a dialect has no facts and no verdict."""
    report = Tracker(KEY).observe(Exchange(api=Api.REALTIME))
    assert report == Report(report.facts, unread=("api",))
    assert Verdict.OK.rank == 0


def _fetched(*seals: str) -> Exchange:
    """A response without the request that asked for it."""
    items = [{**reasoning(), "encrypted_content": seal, "id": f"rs_{seal}"} for seal in seals]
    return Exchange(Api.RESPONSES, response=response(*items), status=200, operation="retrieve")


def test_an_answer_that_is_fetched_again_is_no_second_turn() -> None:
    """It is the turn it was recorded as: what it brought is told, and nothing is counted twice."""
    tracker = Tracker(KEY)
    first, second = (tracker.observe(_fetched("a" * 40, "b" * 40)) for _ in range(2))
    assert len(tracker.ledger) == 1
    assert [r.digest for r in first.received] == [r.digest for r in second.received]
    assert first.conversation == second.conversation


def test_an_answer_that_shares_seals_with_several_turns_is_one_of_its_own() -> None:
    tracker = Tracker(KEY)
    for seals in (("a" * 40,), ("b" * 40,), ("a" * 40, "b" * 40)):
        tracker.observe(_fetched(*seals))
    assert len(tracker.ledger) == 3


def test_an_answer_without_seals_is_recorded_whenever_it_is_fetched() -> None:
    tracker = Tracker(KEY)
    for _ in range(2):
        tracker.observe(_fetched())
    assert len(tracker.ledger) == 0
    unsealed = Exchange(Api.RESPONSES, response=response(call()), status=200)
    for _ in range(2):
        tracker.observe(unsealed)
    assert len(tracker.ledger) == 2


@pytest.mark.parametrize(("reference", "verdict"), [("conv_1", "allowed"), (None, "breaks")])
def test_items_put_into_a_conversation_piece_by_piece_lose_nothing(
    reference: str | None, verdict: str
) -> None:
    """The reasoning may have gone in by an earlier request; a request of all is judged as it is."""
    tracker = Tracker(KEY)
    came = response(reasoning(), call())
    tracker.observe(Exchange(Api.RESPONSES, request={"input": "Go."}, response=came, status=200))
    body = {"input": came["output"][1:], "conversation": reference}
    report = tracker.observe(Exchange(Api.RESPONSES, request=body, operation="add_items"))
    assert report.verdict is not None
    assert report.verdict.value == verdict
