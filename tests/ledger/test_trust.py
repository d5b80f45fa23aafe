"""What is believed of a store: records with a MAC, numbers in range, keys of the right type."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from otel_sealed.ledger.packed import pack
from otel_sealed.ledger.shared.clock import AHEAD_S, MOST, Clock
from otel_sealed.ledger.shared.deadline import ANSWER_BYTES, Deadline
from otel_sealed.ledger.shared.trust import MAC, MAX_RECORD, Trust, usable_key
from tests.ledger.shared import KEY, turn

NOW_S = 1_800_000_000
NOT_NUMBERS: tuple[object, ...] = (
    None,
    True,
    -1,
    2**63,
    2**200,
    1.5,
    float("nan"),
    "7",
    b"7",
    b"",
    [],
    {},
    object(),
)


class Trusting(Trust):
    """Trust at a fixed time that counts what it refuses."""

    def __init__(self, key: bytes = KEY) -> None:
        self.refused = 0
        self.clock = Clock(lambda: NOW_S * 10**9)
        super().__init__(self.clock, self._count)
        self.key(key)

    def _count(self) -> None:
        self.refused += 1


DATA = pack(turn("a", "b"))


def test_a_record_of_a_holder_of_the_key_is_genuine() -> None:
    assert Trusting().genuine(7, Trusting().signed(7, DATA)) == DATA


def test_a_record_costs_eight_bytes_more_than_its_turn() -> None:
    assert len(Trusting().signed(7, DATA)) - len(DATA) == MAC == 8


@pytest.mark.parametrize("bit", range(8))
def test_a_record_with_one_bit_changed_anywhere_is_none(bit: int) -> None:
    """Also where the checksum was made anew."""
    trust = Trusting()
    record = trust.signed(7, DATA)
    changed = []
    for at in range(len(record)):
        one = bytearray(record)
        one[at] ^= 1 << bit
        changed.append(bytes(one))
        body = bytes(one[: -MAC - 4])
        changed.append(body + zlib.crc32(body).to_bytes(4, "little") + record[-MAC:])
    changed = [one for one in changed if one != record]
    assert [trust.genuine(7, one) for one in changed] == [None] * len(changed)
    assert trust.refused == len(changed)


def test_a_record_cut_anywhere_is_none() -> None:
    trust = Trusting()
    record = trust.signed(7, DATA)
    found = {trust.genuine(7, record[:size]) for size in range(len(record))}
    assert (found, trust.refused) == ({None}, len(record))


def test_a_record_under_another_number_is_none() -> None:
    trust = Trusting()
    record = trust.signed(7, DATA)
    assert [trust.genuine(number, record) for number in (0, 6, 8, MOST)] == [None] * 4
    assert trust.refused == 4


def test_a_record_of_another_key_is_none() -> None:
    trust = Trusting()
    assert trust.genuine(7, Trusting(b"other" * 8).signed(7, DATA)) is None
    assert trust.refused == 1


def test_a_record_of_the_release_before_is_unknown_and_not_counted() -> None:
    trust = Trusting()
    assert (trust.genuine(7, DATA), trust.refused) == (None, 0)


def test_a_record_larger_than_any_is_none() -> None:
    trust = Trusting()
    assert trust.genuine(7, trust.signed(7, DATA + bytes(MAX_RECORD))) is None
    assert trust.refused == 1


@pytest.mark.parametrize("value", [*NOT_NUMBERS[1:], 7, "text", bytearray(DATA), memoryview(DATA)])
def test_what_is_no_bytes_is_no_record(value: object) -> None:
    trust = Trusting()
    assert (trust.genuine(7, value), trust.refused) == (None, 1)


def test_a_number_counts_up_to_a_day_from_now() -> None:
    trust = Trusting()
    day = int(AHEAD_S)
    now = Clock(lambda: NOW_S * 10**9).next()
    soon = Clock(lambda: (NOW_S + day - 1) * 10**9).next()
    late = Clock(lambda: (NOW_S + day + 1) * 10**9).next()
    assert [trust.number(n) for n in (0, now, soon, late, MOST)] == [0, now, soon, -1, -1]
    assert trust.refused == 2


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_no_integer_in_range_is_no_number(value: object) -> None:
    trust = Trusting()
    assert (trust.number(value), trust.numbers([value]), trust.refused) == (-1, [], 2)


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_no_integer_in_range_counts_as_no_turns(value: object) -> None:
    assert Trusting().count(value) == 0


def test_numbers_are_ascending_and_each_there_once() -> None:
    assert Trusting().numbers([3, 1, None, 3, 2]) == [1, 2, 3]


@pytest.mark.parametrize(
    "value", [None, b"", b"short", b"x" * 15, b"x" * 65, "x" * 32, 99_999_999_999, 1.5, [1] * 32]
)
def test_what_is_not_16_to_64_bytes_is_no_key(value: object) -> None:
    assert usable_key(value) == b""


@pytest.mark.parametrize("size", [16, 32, 64])
def test_16_to_64_bytes_are_a_key(size: int) -> None:
    assert usable_key(b"x" * size) == b"x" * size


def test_the_key_of_records_is_not_the_hash_key() -> None:
    assert Trusting()._key != KEY


class Dripping:
    """A server's socket: so many bytes at once, and so many seconds between."""

    def __init__(self, size: int, every_s: float) -> None:
        self.size = size
        self.every_s = every_s
        self.now = 0.0
        self.reads = 0

    def sendall(self, data: bytes) -> None:
        """Nothing comes of it."""

    def recv(self, _: int) -> bytes:
        """Some bytes, some time later."""
        self.now += self.every_s
        self.reads += 1
        return bytes(self.size)

    def recv_into(self, buffer: Any) -> int:
        """Likewise."""
        return len(self.recv(len(buffer)))


def read_on(socket: Deadline, times: int, *, into: bool) -> None:
    for _ in range(times):
        socket.recv_into(bytearray(9)) if into else socket.recv(9)


@pytest.mark.parametrize("into", [False, True])
@pytest.mark.parametrize(
    ("size", "every_s", "reads"), [(1, 0.04, 7), (2**20, 0.0, ANSWER_BYTES // 2**20)]
)
def test_an_answer_that_does_not_end_is_ended(
    size: int, every_s: float, reads: int, *, into: bool
) -> None:
    """One that drips, and one that is too much; what is asked next has all the time again."""
    server = Dripping(size, every_s)
    socket = Deadline(server, 0.05, lambda: server.now)
    for asked in (1, 2):
        socket.sendall(b"GET")
        with pytest.raises(TimeoutError):
            read_on(socket, 10 * reads, into=into)
        assert server.reads == asked * reads
