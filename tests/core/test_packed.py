"""Turns as packed bytes: exact, small, and harmless when damaged."""

from __future__ import annotations

import gc
import random
import tracemalloc
import zlib
from contextlib import suppress
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_sealed.contract import Api, Exchange
from otel_sealed.ledger import packed as module
from otel_sealed.ledger.index import ENTRY_BYTES, MAX_SAME_KEY, Index
from otel_sealed.ledger.memory import TURN_BYTES, MemoryLedger, Warm
from otel_sealed.ledger.packed import (
    MAX_NAME,
    MAX_NAMES,
    VERSION,
    Corrupt,
    Names,
    found_by,
    holds,
    key_count,
    keys_of,
    pack,
    unpack,
)
from otel_sealed.model import Block, Head, Kind, Role, Shadow, State, Turn, Value
from otel_sealed.tracker import Tracker
from tests.core.builders import message, redacted, text, thinking, use

PROFILE = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
DIGESTS = st.one_of(st.binary(min_size=16, max_size=16), st.just(b""), st.binary(max_size=40))
SEVERAL = st.lists(DIGESTS, max_size=4).map(tuple)
SIZES = st.integers(0, 2**63 - 1) | st.integers(0, 70_000)
NAMES = st.text(st.characters(exclude_categories=()), max_size=12)
PRINTS = st.binary(max_size=72) | st.binary(min_size=256, max_size=300)
TRUTHS = st.sampled_from([None, False, True])
VALUES = st.builds(
    Value,
    artifact=NAMES,
    role=st.sampled_from(Role),
    state=st.sampled_from(State),
    digest=DIGESTS,
    canon=DIGESTS,
    size=SIZES,
    prints=PRINTS,
    lost=st.booleans(),
)
BLOCKS = st.builds(
    Block,
    type=NAMES,
    kind=st.sampled_from(Kind),
    sub=NAMES,
    values=st.lists(VALUES, max_size=3).map(tuple),
    anchors=SEVERAL,
    payload=DIGESTS,
    payload_chars=SIZES,
    shadows=st.lists(st.builds(Shadow, DIGESTS, SIZES), max_size=3).map(tuple),
    extras=SEVERAL,
    hidden=SEVERAL,
    known=st.booleans(),
    has_server_id=st.booleans(),
    transient=st.booleans(),
)
TURNS = st.builds(
    Turn,
    exchange=st.integers(-1, 2**63 - 2),
    blocks=st.lists(BLOCKS, max_size=4).map(tuple),
    path=NAMES,
    dialect=NAMES,
    vendor=NAMES,
    platform=NAMES,
    host=NAMES,
    account=DIGESTS,
    model=NAMES,
    thinking=TRUTHS,
    stop=NAMES,
    complete=st.booleans(),
    store=TRUTHS,
    response_key=DIGESTS,
    conversation=DIGESTS,
    chain=DIGESTS,
    prefix=st.lists(DIGESTS, max_size=5).map(tuple),
    prefix_shared=SIZES,
    told=DIGESTS,
    head=st.builds(Head, st.lists(st.tuples(NAMES, DIGESTS), max_size=3).map(tuple)),
    origin=st.binary(max_size=24),
    joined=DIGESTS,
    joined_chars=SIZES,
    thread=DIGESTS,
    context=NAMES,
    number=st.integers(0, 2**40),
    parent=st.integers(-1, 2**63 - 2),
)


def digest(number: int) -> bytes:
    """A digest of its own."""
    return number.to_bytes(4, "big") * 4


def recorded(*content: dict[str, object]) -> Turn:
    """The turn of a response of three seals as the tracker records it."""
    tracker = Tracker(b"k" * 32)
    tracker.observe(
        Exchange(
            api=Api.MESSAGES,
            provider="anthropic",
            host="api.anthropic.com",
            account="account",
            request={
                "model": "claude-opus-5",
                "system": "A clerk.",
                "tools": [{"name": "look_up", "input_schema": {}}],
                "messages": [{"role": "user", "content": "Which ledger?"}],
            },
            response=message(*content),
            origin=bytes(range(24)),
        )
    )
    turn = tracker.ledger.get(0)
    assert turn is not None
    return turn


REAL = recorded(thinking(), redacted(), thinking(), text(), use())


# ---------------------------------------------------------------------------------- round trips


@PROFILE
@given(TURNS)
def test_a_turn_is_what_it_was_packed_from(turn: Turn) -> None:
    """With names of the ledger and without."""
    names = Names()
    assert unpack(pack(turn, names), names, turn.number) == turn
    assert unpack(pack(turn), number=turn.number) == turn


@PROFILE
@given(TURNS)
def test_the_keys_of_a_turn_are_at_its_front(turn: Turn) -> None:
    """The same ones as in the turn, each once, and the conversation's."""
    expected = {turn.joined, turn.response_key, turn.thread, turn.chain}
    for block in turn.blocks:
        expected |= {*block.anchors, block.payload}
        expected |= {
            v.canon
            for v in block.values
            if v.role is Role.ANEW
            or (v.role is Role.SEAL and v.state in (State.PRESENT, State.CUT))
        }
    keys, conversation = found_by(pack(turn))
    assert sorted(expected - {b""}) == sorted(keys)
    assert keys == list(keys_of(turn))
    assert len(keys) == key_count(pack(turn))
    assert conversation == turn.conversation


def test_every_field_of_a_turn_is_packed() -> None:
    """A new field of a record has to be thought of here, or it would be lost."""
    assert [len(fields(record)) for record in (Turn, Block, Value, Shadow, Head)] == [
        27,
        13,
        8,
        2,
        1,
    ]


def test_every_word_of_an_enumeration_has_a_place() -> None:
    """A new role, state or kind has to be appended."""
    assert set(module._ROLES) == set(Role)
    assert set(module._STATES) == set(State)
    assert set(module._KINDS) == set(Kind)


def test_the_format_is_the_one_that_is_written_down() -> None:
    """Files and other processes hold these bytes: another format is another version."""
    value = Value("a.b.c", Role.SEAL, State.PRESENT, digest(1), digest(2), 700, b"wxyz")
    block = Block("thinking", Kind.REASONING, "content.0", (value,), (digest(3),), b"")
    turn = Turn(0, (block,), "", "anthropic", "anthropic", thinking=True, chain=digest(4))
    expected = (
        "0120",  # version, flags: names of the record's own
        "030004000000040013000b000b002300",  # 3 keys, 4 entries, 0, 4 names; 19, 11, 11, 35
        "0000000000000000",  # no parent
        "010304",  # the keys
        (digest(2) + digest(1) + digest(3) + digest(4)).hex(),
        "08000101",  # known reasoning, no payload, an anchor, a value
        "00020104",  # a seal that is there, its digest, its canon, 4 bytes of windows
        "03",  # the anchor
        "0b000000040000000000",  # complete, thinking, the chain; no account, origin, prefix, head
        "011002100310",  # type and place of the block, the artifact
        "00000410041000000000000000000000",  # no path, dialect, vendor, no more
        "0800090005000900",  # lengths of the names
        "01000000bc02",  # a block, no text, 700 bytes
        "010000000000",  # exchange, nothing said
        "0000",  # no number for the account
        b"thinkingcontent.0a.b.canthropicwxyz".hex(),
    )
    body = bytes.fromhex("".join(expected))
    assert pack(turn) == body + zlib.crc32(body).to_bytes(4, "little")


def test_a_number_of_an_exchange_that_is_none_costs_no_turn() -> None:
    """It is the caller's."""
    for given_, kept in ((-7, -1), (2**70, 2**63 - 2)):
        assert unpack(pack(replace(REAL, exchange=given_))).exchange == kept


# --------------------------------------------------------------------------------------- damage


@PROFILE
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_any_changed_byte_is_noticed(at: int, change: int) -> None:
    """Wherever it is: a flipped bit must not look like a changed seal."""
    data = bytearray(pack(REAL))
    data[at % len(data)] ^= change
    with pytest.raises(Corrupt):
        unpack(bytes(data))


@PROFILE
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_one_way(data: bytes) -> None:
    """Whatever asks for keys or for the turn, and with a sum that is right, too."""
    summed = data + zlib.crc32(data).to_bytes(4, "little")
    for rubbish in (data, summed, bytes((VERSION,)) + data):
        for read in (unpack, found_by):
            try:
                read(rubbish)
            except Corrupt:
                continue


@PROFILE
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_damage_with_a_right_sum_is_refused_or_another_turn(at: int, change: int) -> None:
    """It never raises anything else."""
    data = bytearray(pack(REAL)[:-4])
    data[at % len(data)] ^= change
    summed = bytes(data) + zlib.crc32(data).to_bytes(4, "little")
    with suppress(Corrupt):
        assert isinstance(unpack(summed), Turn)
    with suppress(Corrupt):
        found_by(summed)


@pytest.mark.parametrize("cut", [0, 1, 2, 5, 20, 100, -1])
def test_what_is_cut_short_is_refused(cut: int) -> None:
    data = pack(REAL)[:cut]
    with pytest.raises(Corrupt):
        unpack(data)


def test_another_version_is_refused() -> None:
    data = bytes((VERSION + 1,)) + pack(REAL)[1:-4]
    with pytest.raises(Corrupt):
        found_by(data)
    with pytest.raises(Corrupt):
        unpack(data + zlib.crc32(data).to_bytes(4, "little"))


def test_a_damaged_turn_is_one_the_ledger_never_held() -> None:
    """Asked for, it is forgotten and counted; nothing is raised."""
    ledger = MemoryLedger()
    number = ledger.record(REAL).number
    ledger._packed[number] = ledger._packed[number][:-1] + b"x"
    ledger._warm.forget(number)
    assert ledger.get(number) is None
    assert (len(ledger), ledger.corrupt, ledger.size) == (0, 1, 0)
    assert ledger.lookup(REAL.chain) == ()


# ---------------------------------------------------------------------------------------- names


def test_names_are_held_once_for_all() -> None:
    names = Names()
    small, alone = pack(REAL, names), pack(REAL)
    assert len(small) == len(pack(REAL, names))
    named = sum(len(name) + 2 for name in names.texts[1:])
    shared = 17 * len({REAL.account, *(value for _, value in REAL.head.parts)})
    values = sum(len(block.values) for block in REAL.blocks)
    references = 8 + len(REAL.head.parts) + 2 * len(REAL.blocks) + values
    assert len(alone) - len(small) == named + shared + references
    assert "anthropic.thinking.signature" in names.texts


def test_names_are_bounded_and_others_stand_in_the_record() -> None:
    """Too many, or too long."""
    names = Names()
    for number in range(MAX_NAMES):
        assert names.number(str(number)) == number + 1
        assert names.digest(digest(number)) == number + 1
    assert names.number("one more") == 0
    assert names.digest(digest(MAX_NAMES)) == 0
    assert names.digest(digest(7)) == 8
    assert Names().number("x" * MAX_NAME) == 1
    assert Names().number("x" * (MAX_NAME + 1)) == 0
    assert unpack(pack(REAL, names), names, REAL.number) == REAL


def test_a_name_that_is_not_known_is_refused() -> None:
    with pytest.raises(Corrupt):
        unpack(pack(REAL, Names()))


# ---------------------------------------------------------------------------------------- index


def test_the_index_finds_what_is_held_and_nothing_else() -> None:
    held = {1, 2}
    index = Index(10, held)
    index.add([digest(1), digest(2), b"a", b""], 1)
    index.add([digest(1)], 2)
    index.add([digest(1)], 3)
    assert [index.find(key) for key in (digest(1), digest(2), b"a", digest(9), b"")] == [
        [1, 2],
        [1],
        [1],
        [],
        [1],
    ]


def test_the_index_names_the_newest_sixteen() -> None:
    index = Index(10, range(100))
    for number in range(40):
        index.add([digest(1)], number)
    assert index.find(digest(1)) == list(range(40 - MAX_SAME_KEY, 40))


def test_a_number_of_more_than_32_bits_is_found() -> None:
    """An entry has its lower half only."""
    old, new = 2**33 - 1, 2**33 + 5
    index = Index(10, {old, new})
    for number in (old, new):
        index.add([digest(7)], number)
    assert index.find(digest(7)) == [old, new]


def test_an_entry_is_not_found_across_two() -> None:
    """The bytes searched for may stand where one entry ends and the next begins."""
    index = Index(10, {0x01020304, 0x01020305})
    index.add([b"\0\0wxyz" + bytes(10)], 0x01020304)
    index.add([b"\0\0abcd" + bytes(10)], 0x01020305)
    told = (0x01020304).to_bytes(4, "little")
    assert index.find(b"\0\0" + told[2:] + b"ab" + bytes(10)) == []
    assert index.find(b"\0\0wxyz" + bytes(10)) == [0x01020304]


def test_the_index_is_swept_of_what_is_gone() -> None:
    """It never holds more than half as much again, and a fixed rest."""
    held: dict[int, None] = {}
    index = Index(1, held)
    for number in range(5_000):
        held[number] = None
        held.pop(number - 100, None)
        index.add([digest(number)], number)
    assert 100 <= len(index) <= 150 + 16 * 2
    assert index.find(digest(4_950)) == [4_950]
    assert index.find(digest(4_000)) == []


# ---------------------------------------------------------------------------------------- bounds


def test_an_artifact_of_a_turn_of_three_seals_costs_at_most_400_bytes() -> None:
    """Packed bytes, index and bookkeeping, counted on sealed values alone."""
    ledger = MemoryLedger()
    ledger.record(REAL)
    first = ledger.size
    ledger.record(REAL)
    seals = sum(len(block.seals()) for block in REAL.blocks)
    assert seals == 3
    assert ledger.size - first <= 400 * seals
    data = ledger._packed[1]
    assert ledger.size - first == len(data) + TURN_BYTES + ENTRY_BYTES * (key_count(data) + 1)


def test_bytes_are_bounded_whatever_the_number_of_turns() -> None:
    one = MemoryLedger()
    one.record(REAL)
    ledger = MemoryLedger(1_000, max_bytes=10 * one.size)
    for _ in range(50):
        ledger.record(REAL)
    assert (len(ledger), ledger.evicted) == (7, 43)
    assert 7 * one.size >= ledger.size
    assert ledger.lookup(REAL.chain) == tuple(range(43, 50))


def test_a_turn_larger_than_the_bound_is_not_kept() -> None:
    ledger = MemoryLedger(10, max_bytes=100)
    number = ledger.record(REAL).number
    assert (len(ledger), ledger.size, ledger.evicted, ledger.get(number)) == (0, 0, 1, None)
    assert ledger.lookup(REAL.chain) == ()


def test_turns_are_unpacked_once_while_they_are_in_use() -> None:
    """What was just recorded is not unpacked at all."""
    ledger = MemoryLedger()
    turn = ledger.record(REAL)
    assert ledger.get(0) is turn
    ledger._warm.forget(0)
    again = ledger.get(0)
    assert again == turn
    assert again is not turn
    assert ledger.get(0) is again


def test_turns_kept_unpacked_are_bounded_by_number_and_by_bytes() -> None:
    warm = Warm(max_turns=3, max_bytes=100)
    for number in range(5):
        warm.keep(replace(REAL, number=number), 10)
    assert [warm.get(number) is not None for number in range(5)] == [False, False, True, True, True]
    assert warm.get(2) is not None
    warm.keep(replace(REAL, number=9), 85)
    assert [warm.get(number) is not None for number in (2, 3, 4, 9)] == [True, False, False, True]
    warm.forget(77)
    assert len(warm) == 2


def test_a_key_in_the_record_that_is_no_key_of_it_is_not_held() -> None:
    """Short keys are compared one by one; the index leads nobody to a long one."""
    odd = replace(REAL, chain=b"cha", told=b"told")
    assert holds(pack(odd), b"cha")
    assert not holds(pack(odd), b"told")
    assert not holds(pack(odd), b"ch")


def test_what_the_ledger_says_it_holds_is_what_it_takes() -> None:
    """Memory allocated, beside what is kept unpacked, is not more than its `size`."""
    shuffled = random.Random(1)
    turns = [
        replace(
            REAL,
            chain=shuffled.randbytes(16),
            joined=shuffled.randbytes(16),
            response_key=shuffled.randbytes(16),
            conversation=shuffled.randbytes(16),
        )
        for _ in range(3_000)
    ]
    ledger = MemoryLedger(3_000)
    tracemalloc.start()
    try:
        for turn in turns:
            ledger.record(turn)
        ledger._warm = Warm()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.6 * ledger.size < taken <= ledger.size


def test_conversations_that_begin_alike_are_told_apart() -> None:
    """The index has the first bits of a key; the turn has all of it."""
    ledger = MemoryLedger()
    one, two, three = (b"alike!" + digest(number)[:10] for number in (1, 2, 3))
    ledger.record(replace(REAL, conversation=one))
    ledger.record(replace(REAL, conversation=two))
    assert [ledger.last(key) for key in (one, two, three)] == [0, 1, -1]


def test_a_turn_that_was_told_very_much_is_packed_too() -> None:
    """More digests than two bytes can count."""
    much = replace(REAL, prefix=tuple(digest(number) for number in range(70_000)))
    data = pack(much)
    assert unpack(data, number=much.number) == much
    assert key_count(data) == key_count(pack(REAL)) == len(found_by(data)[0])
