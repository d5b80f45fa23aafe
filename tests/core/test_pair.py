"""Which sent block is which received one, within one turn."""

from __future__ import annotations

from otel_sealed.align.pair import Placed, pair
from otel_sealed.model import Block, Kind, Role, State, Value


def block(
    name: str = "thinking",
    kind: Kind = Kind.REASONING,
    *,
    seal: bytes = b"",
    anchor: bytes = b"",
    payload: bytes = b"",
    sealed: bool = True,
) -> Block:
    value = Value("x.y.z", Role.SEAL, State.PRESENT if seal else State.ABSENT, seal, seal)
    return Block(
        name,
        kind,
        "",
        values=(value,) if sealed else (),
        anchors=(anchor,) if anchor else (),
        payload=payload,
    )


def region(*blocks: Block) -> list[Placed]:
    return [((1, index), one) for index, one in enumerate(blocks)]


def paired(received: list[Block], sent: list[Block]) -> dict[int, int]:
    """Index received to index sent."""
    return {i: slot[1] for i, (slot, _) in pair(received, region(*sent)).items()}


def call(anchor: bytes = b"", **more: bytes) -> Block:
    return block("function_call", Kind.CALL, anchor=anchor, **more)  # type: ignore[arg-type]


def test_an_equal_id_pairs_first() -> None:
    """Identity of the carrier comes before identity of the seal."""
    received = [call(b"one", seal=b"s1"), call(b"two", seal=b"s2")]
    sent = [call(b"two", seal=b"s1"), call(b"one", seal=b"s2")]
    assert paired(received, sent) == {0: 1, 1: 0}


def test_an_id_pairs_blocks_of_one_kind_only() -> None:
    """A result that names its call is no call."""
    result = block("tool_result", Kind.RESULT, anchor=b"one", sealed=False)
    assert paired([call(b"one", seal=b"s")], [result]) == {}


def test_an_equal_payload_pairs_next() -> None:
    """A block that says the same is the same, whatever its seal now is."""
    received = [block(seal=b"s1", payload=b"p1"), block(seal=b"s2", payload=b"p2")]
    sent = [block(seal=b"s1", payload=b"p2"), block(seal=b"s2", payload=b"p1")]
    assert paired(received, sent) == {0: 1, 1: 0}


def test_an_equal_payload_of_another_type_is_another_block() -> None:
    """Thinking that became text is text."""
    sent = [block("text", Kind.TEXT, payload=b"p1", sealed=False)]
    assert paired([block(seal=b"s1", payload=b"p1")], sent) == {}


def test_an_equal_seal_pairs_across_types() -> None:
    """A retyped block is found by its seal."""
    sent = [block("redacted_thinking", seal=b"s1")]
    assert paired([block(seal=b"s1", payload=b"p1")], sent) == {0: 0}


def test_a_marker_pairs_with_a_marker() -> None:
    """Nothing tells two markers of a type apart."""
    marker = block("fallback", Kind.MARKER, sealed=False)
    received = [marker, block(seal=b"s"), marker]
    assert paired(received, [marker, block(seal=b"s")]) == {0: 0, 1: 1}


def test_a_changed_block_is_found_by_its_place() -> None:
    """Between two recognised neighbours the one of its type is it."""
    received = [call(b"one"), block(seal=b"s1", payload=b"p1"), call(b"two")]
    sent = [call(b"one"), block(seal=b"other", payload=b"other"), call(b"two")]
    assert paired(received, sent) == {0: 0, 1: 1, 2: 2}


def test_a_place_outside_of_its_neighbours_is_not_its() -> None:
    """A stranger before the neighbour is a stranger."""
    received = [call(b"one"), block(seal=b"s1", payload=b"p1")]
    sent = [block(seal=b"other", payload=b"other"), call(b"one")]
    assert paired(received, sent) == {0: 1}


def test_two_calls_with_different_ids_are_two_calls() -> None:
    """An id that changed is another call."""
    assert paired([call(b"one", seal=b"s1")], [call(b"two", seal=b"s2")]) == {0: 0}
    assert paired([call(b"one", seal=b"s1")], [block("other", Kind.OTHER, seal=b"s2")]) == {}


def test_reasoning_is_not_paired_with_another_kind_of_reasoning_by_place() -> None:
    """A thinking block in the place of a lost redacted one is not it."""
    received = [block("redacted_thinking", seal=b"s1"), block(seal=b"s2", payload=b"p2")]
    assert paired(received, [block(seal=b"s2", payload=b"p2")]) == {1: 0}


def test_a_block_without_values_is_not_looked_for_by_place() -> None:
    """Text that went has no seal to lose."""
    received = [block("text", Kind.TEXT, payload=b"p1", sealed=False)]
    assert paired(received, [block("text", Kind.TEXT, payload=b"p2", sealed=False)]) == {}


def test_each_place_is_given_once() -> None:
    """Of two equal blocks each gets its own."""
    received = [block(seal=b"s", payload=b"p"), block(seal=b"s", payload=b"p")]
    assert paired(received, [block(seal=b"s", payload=b"p")] * 2) == {0: 0, 1: 1}
    assert paired(received, [block(seal=b"s", payload=b"p")]) == {0: 0}
    assert paired([], []) == {}
