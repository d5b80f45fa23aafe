from __future__ import annotations

import logging
from threading import Thread
from typing import Any

import pytest

from otel_sealed.model import Fate, ProviderVerdict, Verdict
from otel_sealed.telemetry.alerts import SPANS, Alert, AlertRoom, Throttle
from otel_sealed.telemetry.events import EventLog
from otel_sealed.telemetry.shield import Shield
from tests.telemetry.builders import Bench, digest, finding, report


class Heard:
    """A room with everything it tells in lists."""

    def __init__(self, **given: Any) -> None:
        self.now = 0.0
        self.calls: list[Alert] = []
        self.told: list[tuple[Alert, int, int]] = []
        self.errors: list[tuple[str, str]] = []
        self.room = AlertRoom(
            Shield(lambda place, kind: self.errors.append((place, kind))),
            clock=lambda: self.now,
            sinks=given.pop("sinks", (lambda *told: self.told.append(told),)),
            callbacks=given.pop("callbacks", (self.calls.append,)),
            **given,
        )


def alert(**given: Any) -> Alert:
    values: dict[str, Any] = {
        "conversation": "11" * 16,
        "artifact": "anthropic.thinking.signature",
        "digest": "ab" * 16,
        "fate": Fate.MODIFIED,
        "verdict": Verdict.BREAKS,
        "rule": "A1",
        "provider": "anthropic",
        "returned_position": "messages.1.content.0",
    }
    return Alert(**{**values, **given})


def test_whichever_comes_second_is_silent() -> None:
    for first, second in (("call", SPANS), (SPANS, "call")):
        heard = Heard()
        assert heard.room.tell(alert(), source=first) is True
        assert heard.room.tell(alert(), source=second) is False
        assert (len(heard.calls), len(heard.told)) == (1, 1)


def test_another_fate_conversation_or_digest_is_another_alert() -> None:
    heard = Heard()
    for other in (
        alert(),
        alert(fate=Fate.RETYPED),
        alert(conversation="22" * 16),
        alert(digest="cd" * 16),
    ):
        assert heard.room.tell(other) is True
    assert len(heard.calls) == 4


def test_what_an_sdk_lacks_is_one_alert_an_artifact_in_a_process() -> None:
    heard = Heard()
    told = [
        heard.room.tell(
            alert(fate=Fate.SDK_LOSSY, conversation=f"{n:032x}", digest=f"{n + 9:032x}")
        )
        for n in range(9)
    ]
    assert told == [True, *[False] * 8]
    assert heard.room.tell(alert(fate=Fate.SDK_LOSSY, artifact="anthropic.compaction.signature"))
    assert [(a.artifact, count) for a, count, _ in heard.told] == [
        ("anthropic.thinking.signature", 1),
        ("anthropic.compaction.signature", 1),
    ]


def test_an_inferred_alert_is_silent_where_any_fate_was_told_and_the_other_way_round() -> None:
    heard = Heard()
    assert heard.room.tell(alert(fate=Fate.MERGED))
    assert not heard.room.tell(alert(inferred=True), source=SPANS)
    assert heard.room.tell(alert(digest="cd" * 16, inferred=True), source=SPANS)
    assert not heard.room.tell(alert(digest="cd" * 16, fate=Fate.MERGED))


def test_events_come_at_1_10_100_and_1000_with_the_count() -> None:
    heard = Heard()
    for number in range(2500):
        heard.room.tell(alert(digest=digest(number).hex()))
    assert [count for _, count, _ in heard.told] == [1, 10, 100, 1000]
    assert len(heard.calls) == 2500


def test_the_same_artifact_replayed_in_ten_calls_is_counted_but_called_back_once() -> None:
    heard = Heard()
    for _ in range(10):
        heard.room.tell(alert())
    assert [count for _, count, _ in heard.told] == [1, 10]
    assert len(heard.calls) == 1


def test_what_the_processor_repeats_is_not_counted() -> None:
    heard = Heard()
    for _ in range(10):
        heard.room.tell(alert(), source=SPANS)
    assert [count for _, count, _ in heard.told] == [1]


def test_each_conversation_artifact_fate_and_rule_is_told_for_itself() -> None:
    heard = Heard()
    for number, other in enumerate(("A1", "A2", "A3")):
        heard.room.tell(alert(rule=other, digest=digest(number).hex()))
    assert [told[0].rule for told in heard.told] == ["A1", "A2", "A3"]


def test_no_more_than_60_an_hour_and_the_rest_is_counted() -> None:
    heard = Heard()
    for number in range(100):
        heard.room.tell(alert(conversation=digest(number).hex()))
    assert len(heard.told) == 60
    heard.now = 3600.0
    heard.room.tell(alert(conversation="ff" * 16))
    assert heard.told[-1][2] == 40
    assert len(heard.calls) == 101


def test_the_hour_slides() -> None:
    now = [0.0]
    throttle = Throttle(lambda: now[0], 2)
    assert throttle.tick(("a",)) == (1, 0)
    now[0] = 3000.0
    assert throttle.tick(("b",)) == (1, 0)
    now[0] = 3601.0
    assert throttle.tick(("c",)) == (1, 0)
    assert throttle.tick(("d",)) is None


def test_a_failing_callback_or_sink_disturbs_nobody() -> None:
    def fail(*_: Any) -> None:
        raise ValueError("content of a seal")

    calls: list[Alert] = []
    told: list[Any] = []
    heard = Heard(callbacks=(fail, calls.append), sinks=(fail, lambda *a: told.append(a)))
    assert heard.room.tell(alert()) is True
    assert (len(calls), len(told)) == (1, 1)
    assert heard.errors == [("callback", "ValueError"), ("sink", "ValueError")]


def test_memory_is_bounded_and_the_oldest_key_goes_first() -> None:
    heard = Heard(keys=100)
    for number in range(500):
        heard.room.tell(alert(digest=digest(number).hex(), rule=f"A{number}"))
    assert len(heard.room._told) == 100
    assert len(heard.room._throttle._counts) == 100
    assert not heard.room.tell(alert(digest=digest(499).hex()))
    assert heard.room.tell(alert(digest=digest(0).hex()))


def test_of_many_threads_one_is_first() -> None:
    heard = Heard()
    threads = [
        Thread(target=lambda: [heard.room.tell(alert(), source=SPANS) for _ in range(100)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(heard.calls), len(heard.told)) == (1, 1)


def test_a_callback_can_be_taken_back() -> None:
    heard = Heard(callbacks=())
    calls: list[Alert] = []
    cancel = heard.room.subscribe(calls.append)
    heard.room.tell(alert())
    cancel()
    cancel()
    heard.room.tell(alert(digest="cd" * 16))
    assert len(calls) == 1


def test_a_callback_may_use_the_room() -> None:
    heard = Heard()

    def subscribe(_: Alert) -> None:
        heard.room.subscribe(heard.calls.append)

    heard.room.subscribe(subscribe)
    heard.room.tell(alert())
    assert len(heard.calls) == 1


def test_the_line_says_what_where_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    EventLog(clock=float).violation(alert(), 1, 0)
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == (
        "anthropic.thinking.signature modified at messages.1.content.0 in a request to anthropic "
        "[A1]: refused by contract; send it back byte for byte as it came (conversation 11111111)"
    )


def test_the_line_on_what_is_missing_says_where_it_came_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    EventLog(clock=float).violation(
        alert(
            fate=Fate.DROPPED,
            verdict=Verdict.DEGRADES,
            returned_position="",
            received_position="content.1",
            rule="",
        ),
        1,
        0,
    )
    assert caplog.records[0].getMessage() == (
        "anthropic.thinking.signature dropped, received at content.1, in a request to anthropic: "
        "reasoning is lost; send it back with the turn it came in (conversation 11111111)"
    )


def test_the_line_is_a_warning_where_the_provider_accepted_and_tells_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    taken = alert(verdict=Verdict.DEGRADES, provider_verdict=ProviderVerdict.ACCEPTED)
    EventLog(clock=float).violation(taken, 100, 3)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().endswith(
        "(conversation 11111111, seen 100 times, 3 other events held back)"
    )


def test_no_line_holds_a_digest_and_every_fate_has_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    for fate in Fate:
        EventLog(clock=float).violation(alert(fate=fate), 1, 0)
    assert len(caplog.records) == len(Fate)
    assert all("ab" * 6 not in record.getMessage() for record in caplog.records)


def test_the_emitter_tells_every_new_violation_to_a_callback() -> None:
    calls: list[Alert] = []
    bench = Bench(callbacks=[calls.append])
    bench.call(report(finding(Fate.DROPPED, Verdict.BREAKS, rule="A2"), finding()))
    (heard,) = calls
    assert (heard.fate, heard.rule, heard.digest) == (Fate.DROPPED, "A2", digest(1).hex())
    assert heard.received_position == "content.0"
