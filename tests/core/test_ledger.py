"""The in-process ledger: bounded, content-addressed, and exact about what it holds."""

from __future__ import annotations

import threading

import pytest

from otel_sealed.ledger.memory import MemoryLedger, keys_of
from otel_sealed.model import Block, Kind, Role, State, Turn, Value


def turn(*names: str, conversation: bytes = b"c", parent: int = -1) -> Turn:
    """A turn that can be found under some keys."""
    blocks = tuple(
        Block(
            "thinking",
            Kind.REASONING,
            f"content.{n}",
            values=(
                Value("a.b.c", Role.SEAL, State.PRESENT, name.encode(), name.encode(), 4),
                Value("a.b.d", Role.SEAL, State.EMPTY, b"", b"never"),
                Value("a.b.e", Role.SIGNED, State.PRESENT, b"text", b"", 4),
            ),
            anchors=(b"id " + name.encode(),),
            payload=b"said " + name.encode(),
        )
        for n, name in enumerate(names)
    )
    return Turn(
        0,
        blocks,
        "",
        "anthropic",
        "anthropic",
        conversation=conversation,
        parent=parent,
        joined=b"joined",
        response_key=b"response",
        thread=b"thread",
        chain=b"chain",
    )


def test_turns_get_serial_numbers() -> None:
    """The first is 0, and what is returned is what is held."""
    ledger = MemoryLedger()
    one, two = ledger.record(turn("a")), ledger.record(turn("b", parent=0))
    assert (one.number, two.number, two.parent) == (0, 1, 0)
    assert (ledger.get(0), ledger.get(1), ledger.get(2)) == (one, two, None)
    assert len(ledger) == 2


@pytest.mark.parametrize(
    "key", [b"a", b"id a", b"said a", b"joined", b"response", b"thread", b"chain"]
)
def test_a_turn_is_found_by_everything_a_request_may_show_of_it(key: bytes) -> None:
    """Seals, ids, payloads, its joined text, the response's id, thread and chain."""
    ledger = MemoryLedger()
    ledger.record(turn("a"))
    assert ledger.lookup(key) == (0,)


@pytest.mark.parametrize("key", [b"", b"never", b"text", b"other"])
def test_a_turn_is_not_found_by_anything_else(key: bytes) -> None:
    """Empty seals, signed text and empty keys are no keys."""
    ledger = MemoryLedger()
    ledger.record(turn("a"))
    assert ledger.lookup(key) == ()


def test_each_key_of_a_turn_is_given_once() -> None:
    """Two equal seals in one turn are one key."""
    keys = list(keys_of(turn("a", "a")))
    assert len(keys) == len(set(keys))
    assert b"" not in keys


def test_a_key_of_many_turns_names_the_newest_sixteen() -> None:
    """A constant seal does not grow the index without bound."""
    ledger = MemoryLedger()
    for _ in range(40):
        ledger.record(turn("a"))
    assert ledger.lookup(b"a") == tuple(range(24, 40))


def test_the_newest_turn_of_a_conversation_is_known() -> None:
    """By the conversation's key; -1 where there is none."""
    ledger = MemoryLedger()
    ledger.record(turn("a", conversation=b"one"))
    ledger.record(turn("b", conversation=b"two"))
    ledger.record(turn("c", conversation=b"one"))
    assert (ledger.last(b"one"), ledger.last(b"two"), ledger.last(b"three")) == (2, 1, -1)


def test_the_least_recently_used_turn_goes_first() -> None:
    """Looking at a turn keeps it; what went leaves no key behind."""
    ledger = MemoryLedger(max_turns=2)
    ledger.record(turn("a", conversation=b"one"))
    ledger.record(turn("b", conversation=b"two"))
    assert ledger.get(0) is not None
    ledger.record(turn("c", conversation=b"two"))
    assert (len(ledger), ledger.evicted) == (2, 1)
    assert (ledger.get(1), ledger.lookup(b"b")) == (None, ())
    assert ledger.lookup(b"joined") == (0, 2)
    assert (ledger.last(b"one"), ledger.last(b"two")) == (0, 2)


def test_forgetting_the_newest_turn_of_a_conversation_forgets_the_conversation() -> None:
    """A conversation without turns has no newest one."""
    ledger = MemoryLedger(max_turns=1)
    ledger.record(turn("a", conversation=b"one"))
    ledger.record(turn("b", conversation=b""))
    assert (ledger.last(b"one"), ledger.last(b"")) == (-1, -1)


def test_a_forgotten_turn_shared_a_key_that_was_cut() -> None:
    """A turn beyond the sixteen of a key is forgotten without a trace."""
    ledger = MemoryLedger(max_turns=20)
    for _ in range(60):
        ledger.record(turn("a"))
    assert ledger.lookup(b"a") == tuple(range(44, 60))
    assert len(ledger) == 20


@pytest.mark.parametrize("size", [0, -1])
def test_a_ledger_holds_at_least_one_turn(size: int) -> None:
    """A bound of nothing is an error that says so."""
    with pytest.raises(ValueError, match="max_turns must be at least 1"):
        MemoryLedger(size)


def test_threads_may_record_and_look_at_once() -> None:
    """Every turn gets a number of its own, and the bound holds."""
    ledger = MemoryLedger(max_turns=100)

    def run(name: str) -> None:
        for _ in range(200):
            number = ledger.record(turn(name)).number
            ledger.get(number)
            ledger.lookup(name.encode())

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ledger), ledger.evicted) == (100, 700)
    assert ledger.record(turn("z")).number == 800
