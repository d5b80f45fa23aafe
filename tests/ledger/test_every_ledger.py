"""What every ledger does, the one in memory and those that processes share.

Of the shared ones, one is asked by whom it was told, and one by another process, which has nothing
in its own memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from otel_sealed.ledger import redis, sqlite
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.ledger.protocol import Ledger
from otel_sealed.ledger.shared import SharedLedger
from otel_sealed.matching.locate import locate
from otel_sealed.model import Message, Speaker, Turn
from tests.ledger.redis_server import redis_server
from tests.ledger.shared import KEY, digest, turn


class Elsewhere:
    """Told in one process and asked in another."""

    def __init__(self, here: SharedLedger, there: SharedLedger) -> None:
        self.here = here
        self.there = there

    def record(self, turn: Turn) -> Turn:
        """Told here, and written."""
        recorded = self.here.record(turn)
        assert self.here.flush()
        return recorded

    def lookup(self, key: bytes) -> tuple[int, ...]:
        """Asked there."""
        return self.there.lookup(key)

    def get(self, number: int) -> Turn | None:
        """Asked there."""
        return self.there.get(number)

    def last(self, conversation: bytes) -> int:
        """Asked there."""
        return self.there.last(conversation)

    def __len__(self) -> int:
        return len(self.there)


@pytest.fixture(
    params=["memory", "sqlite", "sqlite elsewhere", "redis", "redis elsewhere"],
)
def ledger(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ledger]:
    kind, *elsewhere = request.param.split()
    bounds = (1_000, 2**26, 3_600)
    with ExitStack() as stack:
        if kind == "memory":
            yield MemoryLedger(1_000)
            return
        if kind == "sqlite":
            make = partial(sqlite.opened, tmp_path / "ledger.db", *bounds)
        else:
            monkeypatch.setattr(redis, "_WAIT_S", 5.0)  # it is Python that answers
            make = partial(redis.opened, stack.enter_context(redis_server()), *bounds)
        made = [make() for _ in ("here", *elsewhere)]
        for one in made:
            one.keyed(KEY)
        yield made[0] if len(made) == 1 else Elsewhere(made[0], made[1])
        for one in made:
            one.close()
            assert one.failures == 0


def test_what_is_recorded_is_held_under_rising_numbers(ledger: Ledger) -> None:
    one = ledger.record(turn("a"))
    two = ledger.record(turn("b", parent=one.number))
    assert 0 <= one.number < two.number
    assert (ledger.get(one.number), ledger.get(two.number)) == (one, two)
    assert two.parent == one.number
    assert ledger.get(two.number + 1) is None
    assert ledger.get(-1) is None


@pytest.mark.parametrize(
    "key", ["a", "b", "id a", "id b", "said b", "joined", "response", "thread", "chain"]
)
def test_a_turn_is_found_by_everything_a_request_may_show_of_it(ledger: Ledger, key: str) -> None:
    number = ledger.record(turn("a", "b")).number
    assert ledger.lookup(digest(key)) == (number,)


@pytest.mark.parametrize("key", [b"", digest("never"), digest("text"), digest("other"), b"a"])
def test_a_turn_is_not_found_by_anything_else(ledger: Ledger, key: bytes) -> None:
    ledger.record(turn("a"))
    assert ledger.lookup(key) == ()


def test_keys_that_begin_alike_are_told_apart(ledger: Ledger) -> None:
    """Indexes hold the first bits of a key."""
    one, two = (digest("alike")[:8] + end * 8 for end in (b"1", b"2"))
    number = ledger.record(replace(turn("a"), chain=one)).number
    assert ledger.lookup(one) == (number,)
    assert ledger.lookup(two) == ()


def test_a_key_of_many_turns_names_the_newest_sixteen(ledger: Ledger) -> None:
    numbers = [ledger.record(turn("a")).number for _ in range(20)]
    assert ledger.lookup(digest("a")) == tuple(numbers[-16:])


def test_the_newest_turn_of_a_conversation_is_known(ledger: Ledger) -> None:
    first = ledger.record(turn("a", conversation="one")).number
    second = ledger.record(turn("b", conversation="two")).number
    third = ledger.record(turn("c", conversation="one")).number
    ledger.record(turn("d", conversation=""))
    assert first < third
    told = [ledger.last(digest(name)) for name in ("one", "two", "three")]
    assert told == [third, second, -1]
    assert ledger.last(b"") == -1


def test_turns_held_are_counted(ledger: Ledger) -> None:
    assert len(ledger) == 0
    for name in "abc":
        ledger.record(turn(name))
    assert getattr(ledger, "flush", lambda: True)()
    assert len(ledger) == 3


def test_a_request_is_located_in_it(ledger: Ledger) -> None:
    """Both turns of its line, oldest first."""
    one = ledger.record(turn("a"))
    two = ledger.record(turn("b", parent=one.number))
    messages = tuple(
        Message(at, Speaker.MODEL, recorded.blocks, b"") for at, recorded in enumerate((one, two))
    )
    lineage = locate(ledger, messages, (b"",) * 3)
    assert (lineage.turns, lineage.tip) == ((one, two), two.number)
    assert lineage.owner == {(0, 0): one.number, (1, 0): two.number}


def test_threads_may_record_and_look_at_once(ledger: Ledger) -> None:
    seen: list[int] = []

    def run(name: str) -> None:
        for _ in range(25):
            number = ledger.record(turn(name)).number
            assert ledger.get(number) is not None
            assert number in ledger.lookup(digest(name))
            seen.append(number)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert getattr(ledger, "flush", lambda: True)()
    assert (len(set(seen)), len(ledger)) == (100, 100)
