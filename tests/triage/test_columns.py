"""Columns of a span are kept as columns, and come back as the rows they were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_sealed import vocab
from otel_sealed.triage.model import Call
from otel_sealed.triage.reading import call_of
from otel_sealed.triage.sources.signal import SPAN, Signal

SEALS = ["anthropic.thinking.signature", "openai.reasoning.encrypted_content"]
DIGESTS = ["ab" * 16, "cd" * 16, "0123456789abcdef" * 2]
ROW = st.tuples(
    st.sampled_from(SEALS),
    st.sampled_from(DIGESTS),
    st.sampled_from([-1, 0, 4096]),
    st.sampled_from(["messages.1.content.0", ""]),
    st.sampled_from(["intact", "dropped"]),
    st.sampled_from(["ok", "breaks"]),
    st.sampled_from(["A1", ""]),
    st.sampled_from(["cut", ""]),
)
COLUMNS = (
    vocab.RETURNED_ARTIFACTS,
    vocab.RETURNED_DIGESTS,
    vocab.RETURNED_SIZES,
    vocab.RETURNED_POSITIONS,
    vocab.RETURNED_FATES,
    vocab.RETURNED_VERDICTS,
    vocab.RETURNED_RULES,
    vocab.RETURNED_CAUSES,
)


def call(**attributes: Any) -> Call:
    found = call_of(Signal(SPAN, "chat", 1, "ab" * 16, "cd" * 8, attributes))
    assert found is not None
    return found


def with_rows(rows: list[tuple[Any, ...]], **more: Any) -> Call:
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    return call(**columns, **{vocab.VERDICT: "ok"}, **more)


@given(st.lists(ROW, min_size=1, max_size=20))
def test_every_row_comes_back_whatever_its_column_has_in_common(rows: list[Any]) -> None:
    found = with_rows(rows).returned
    assert rows == [
        (r.artifact, r.digest, r.size, r.position, r.fate, r.verdict, r.rule, r.cause)
        for r in found
    ]


@pytest.mark.parametrize(
    "digests",
    [
        [DIGESTS[0] + "," + DIGESTS[1], "", DIGESTS[2]],
        [DIGESTS[0][:-1], DIGESTS[1] + "0", DIGESTS[2]],
        [DIGESTS[0].upper(), DIGESTS[1] + " ", DIGESTS[2]],
        [DIGESTS[0], None, DIGESTS[2]],
        [DIGESTS[0], 7, DIGESTS[2]],
    ],
)
def test_a_column_with_something_else_than_digests_keeps_its_rows_apart(digests: Any) -> None:
    rows = [(SEALS[0], d, 1, "", "intact", "ok", "A1", "") for d in digests]
    found = [row.digest for row in with_rows(rows).returned]
    assert len(found) == len(digests)
    assert found[2] == DIGESTS[2]
    assert all(value in ("", *digests) and "," not in value for value in found)


def test_a_column_of_another_length_says_nothing_of_any_row() -> None:
    rows = [(SEALS[0], DIGESTS[0], 1, "", "intact", "ok", "A1", "")] * 2
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    columns[vocab.RETURNED_FATES] = ["intact"]
    found = call(**columns, **{vocab.VERDICT: "ok"}).returned
    assert [("", "ok"), ("", "ok")] == [(row.fate, row.verdict) for row in found]


def test_block_types_that_are_all_the_same_are_as_many_as_they_were() -> None:
    types = ["thinking"] * 3
    found = call(**{vocab.VERDICT: "ok", vocab.RETURNED_BLOCK_TYPES: types})
    assert tuple(types) == found.returned_types
