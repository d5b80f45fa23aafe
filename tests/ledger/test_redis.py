"""A ledger on a Redis server, over a real socket: what it has of its own."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from otel_sealed.cli import doctor
from otel_sealed.instrument import ledgers
from otel_sealed.ledger import redis as module
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.ledger.redis import RedisStore, opened
from otel_sealed.ledger.shared import SharedLedger
from otel_sealed.matching.locate import locate
from otel_sealed.model import Message, Speaker
from otel_sealed.telemetry.settings import Settings
from tests.ledger.redis_server import redis_server
from tests.ledger.shared import KEY, digest, turn

DAY = 86_400.0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its URL. It speaks Redis in Python, slower than the real one."""
    monkeypatch.setattr(module, "_WAIT_S", 5.0)
    with redis_server() as url:
        yield url


@pytest.fixture
def made() -> Iterator[list[SharedLedger]]:
    ledgers_: list[SharedLedger] = []
    yield ledgers_
    for ledger in ledgers_:
        ledger.close()


def ledger_of(url: str, made: list[SharedLedger], **bounds: Any) -> SharedLedger:
    options = {"max_turns": 1_000, "max_bytes": 2**26, "max_age_s": DAY, **bounds}
    made.append(opened(url, **options))
    made[-1].keyed(KEY)
    return made[-1]


def test_a_server_that_is_asked_to_keeps_the_key_of_its_processes(
    server: str, made: list[SharedLedger]
) -> None:
    one, two = (ledger_of(server, made, keeps_key=True) for _ in range(2))
    assert (len(one.key), one.key) == (32, two.key)


def test_a_server_that_is_not_asked_keeps_no_key(server: str, made: list[SharedLedger]) -> None:
    ledger = ledger_of(server, made)
    store: Any = ledger._store
    assert (len(ledger.key), store._client.keys("*")) == (32, [])


def test_what_one_process_recorded_another_finds(server: str, made: list[SharedLedger]) -> None:
    here, there = ledger_of(server, made), ledger_of(server, made)
    one = here.record(turn("a", conversation="one"))
    two = here.record(turn("b", conversation="one", parent=one.number))
    assert here.flush(10.0)
    assert (there.get(one.number), there.get(two.number)) == (one, two)
    assert there.lookup(digest("a")) == (one.number,)
    assert there.lookup(digest("chain")) == (one.number, two.number)
    assert there.lookup(digest("never")) == ()
    assert (there.last(digest("one")), there.last(digest("two"))) == (two.number, -1)
    assert len(there) == 2
    assert there.record(turn("c")).number > two.number
    assert (here.failures, there.failures) == (0, 0)


def test_a_key_of_many_turns_names_the_newest_sixteen(
    server: str, made: list[SharedLedger]
) -> None:
    here, there = ledger_of(server, made), ledger_of(server, made)
    numbers = [here.record(turn("a")).number for _ in range(20)]
    assert here.flush(10.0)
    assert there.lookup(digest("a")) == tuple(numbers[-16:])


def test_turns_are_bounded_and_the_oldest_go_first(server: str, made: list[SharedLedger]) -> None:
    here, there = ledger_of(server, made, max_turns=5), ledger_of(server, made)
    numbers = [here.record(turn(str(n))).number for n in range(12)]
    assert here.flush(10.0)
    assert [there.get(number) is not None for number in numbers] == [False] * 7 + [True] * 5
    assert (len(there), here.evicted) == (5, 7)


def test_everything_that_is_kept_has_a_time_to_live(server: str, made: list[SharedLedger]) -> None:
    """But for the key, and the list of turns, which is pruned by age."""
    ledger = ledger_of(server, made, max_age_s=600.0, keeps_key=True)
    ledger.record(turn("a"))
    assert ledger.flush(10.0)
    store: Any = ledger._store
    lives = {name: store._client.ttl(name) for name in store._client.keys("*")}
    lasting = {name for name, life in lives.items() if life < 0}
    assert lasting == {b"otel_sealed:1:key", b"otel_sealed:1:all"}
    assert {life for name, life in lives.items() if name not in lasting} <= set(range(590, 601))
    store.write([], 2**62, 2**62)
    assert len(ledger) == 1  # in memory
    assert store.count() == 0


def test_a_request_is_located_in_few_round_trips(server: str, made: list[SharedLedger]) -> None:
    """Whatever the length of its history."""
    here, there = ledger_of(server, made), ledger_of(server, made)
    recorded = [here.record(turn("0", parent=-1))]
    for name in range(1, 60):
        recorded.append(here.record(turn(str(name), parent=recorded[-1].number)))
    assert here.flush(20.0)
    messages = tuple(Message(i, Speaker.MODEL, x.blocks, b"") for i, x in enumerate(recorded))
    store: Any = there._store
    trips = [0]

    def counted(ask: Any) -> Any:
        def asked(*what: Any, **more: Any) -> Any:
            trips[0] += 1
            return ask(*what, **more)

        return asked

    for name_ in ("numbers", "records", "newest"):
        setattr(store, name_, counted(getattr(store, name_)))
    lineage = locate(there, messages, (b"",) * (len(messages) + 1))
    assert lineage.turns == tuple(recorded)
    assert trips[0] <= 4


def test_what_was_foreseen_is_forgotten_with_the_next_record(
    server: str, made: list[SharedLedger]
) -> None:
    here, there = ledger_of(server, made), ledger_of(server, made)
    there.expect([digest("a"), b""])
    one = here.record(turn("a")).number
    assert here.flush(10.0)
    assert there.lookup(digest("a")) == ()
    two = there.record(turn("b")).number
    assert there.lookup(digest("a")) == (one,)
    assert there.flush(10.0)
    assert two > 0


def test_a_server_that_is_away_costs_one_line(
    made: list[SharedLedger], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    ledger = ledger_of("redis://127.0.0.1:1", made)
    recorded = ledger.record(turn("a"))
    ledger.expect([digest("a")])
    assert ledger.lookup(digest("a")) == (recorded.number,)
    assert ledger.get(recorded.number) == recorded
    line = "the shared ledger (redis) cannot be used: ConnectionError; the memory of this process"
    assert [record.getMessage() for record in caplog.records] == [f"{line} stands in"]


def test_a_server_that_went_away_costs_what_others_know(
    server: str, made: list[SharedLedger]
) -> None:
    ledger = ledger_of(server, made)
    recorded = ledger.record(turn("a"))
    assert ledger.flush(10.0)
    store: Any = ledger._store
    store._client.connection_pool.disconnect()
    store._client = RedisStore("redis://127.0.0.1:1")._client
    assert ledger.lookup(digest("a")) == (recorded.number,)
    assert ledger.failures == 1


def test_the_settings_choose_it_and_doctor_reaches_it(server: str) -> None:
    settings = Settings(ledger=server)
    ledger = ledgers.opened(settings)
    assert isinstance(ledger, SharedLedger)
    ledger.close()
    (line,) = [x for x in doctor._memory(settings) if x.about == "ledger"]
    where = server.removeprefix("redis://")
    assert line.says == (f"shared in redis at {where}, 0 turns held, 20000 turns or 64 MB at most")
    away = Settings(ledger="redis://user:CANARY@127.0.0.1:1")
    (line,) = [x for x in doctor._memory(away) if x.about == "ledger"]
    assert (line.level, line.says) == (
        "mend",
        "redis at 127.0.0.1:1 cannot be used: ConnectionError; memory stands in",
    )


def test_without_the_client_memory_stands_in(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    monkeypatch.setitem(sys.modules, "otel_sealed.ledger.redis", None)
    assert isinstance(ledgers.opened(Settings(ledger="redis://x")), MemoryLedger)
    assert len(caplog.records) == 1
