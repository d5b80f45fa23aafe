"""Quick records are the frozen dataclasses they look like."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from otel_sealed.contract import RawAnswer
from otel_sealed.model import Block, Fate, Finding, Kind, Lineage, Report, Turn, Usage, Verdict
from otel_sealed.model.quick import evolve

ROW = Finding("anthropic.thinking.signature", Fate.INTACT, digest_in=b"1", size_in=4)


def test_a_record_has_what_it_was_given_and_the_defaults_of_the_rest() -> None:
    given = (ROW.artifact, ROW.fate, ROW.digest_in, ROW.size_in)
    assert ("anthropic.thinking.signature", Fate.INTACT, b"1", 4) == given
    assert (None, b"", Verdict.OK, False) == (ROW.returned, ROW.digest_out, ROW.verdict, ROW.first)
    assert Finding is type(ROW)


def test_a_default_that_is_made_is_made_for_each_record() -> None:
    one, two = Lineage(), Lineage()
    assert {} == one.owner == two.owner
    assert one.owner is not two.owner
    assert Usage() == RawAnswer(()).usage


@pytest.mark.parametrize("record", [ROW, Usage(), Block("text", Kind.TEXT, "")])
def test_a_record_is_frozen_and_has_no_room_for_more(record: object) -> None:
    name = dataclasses.fields(record)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, 1)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        record.more = 1  # type: ignore[attr-defined]
    assert not hasattr(record, "__dict__")


def test_records_are_equal_by_value_copied_and_pickled() -> None:
    same = Finding("anthropic.thinking.signature", Fate.INTACT, digest_in=b"1", size_in=4)
    other = dataclasses.replace(ROW, size_in=5)
    assert same == ROW != other
    assert hash(same) == hash(ROW)
    pickled = pickle.loads(pickle.dumps(ROW))  # noqa: S301 - our own
    for made in (copy.copy(ROW), copy.deepcopy(ROW), pickled):
        assert ROW == made


def test_evolving_is_replacing() -> None:
    changes = {"fate": Fate.DROPPED, "verdict": Verdict.BREAKS, "rule": "A1"}
    assert dataclasses.replace(ROW, **changes) == evolve(ROW, **changes)  # type: ignore[arg-type]
    assert Fate.INTACT is ROW.fate
    with pytest.raises(AttributeError):
        evolve(ROW, no_field=1)


@pytest.mark.parametrize("kind", [Finding, Turn, Report, Block])
def test_what_a_record_needs_has_to_be_given(kind: type) -> None:
    with pytest.raises(TypeError, match="missing"):
        kind()
