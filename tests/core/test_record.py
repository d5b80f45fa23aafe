"""Records are plain slotted dataclasses, which mypy holds to be frozen."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.contract import RawAnswer
from otel_sealed.model import Block, Fate, Finding, Kind, Lineage, Report, Turn, Usage, Verdict
from otel_sealed.model.record import replace

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


@pytest.mark.parametrize("one", [ROW, Usage(), Block("text", Kind.TEXT, "")])
def test_a_record_has_no_room_for_more(one: Any) -> None:
    with pytest.raises(AttributeError):
        one.more = 1
    assert not hasattr(one, "__dict__")


def test_a_record_that_is_assigned_to_is_an_error_of_mypy(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    source = tmp_path / "assigns.py"
    source.write_text("from otel_sealed.model import Usage\n\nUsage().input_tokens = 1\n")
    found, _, status = api.run(
        ["--config-file", "", "--cache-dir", str(tmp_path), "--follow-imports=silent", str(source)]
    )
    assert ('"input_tokens" defined in "Usage" is read-only' in found, status) == (True, 1), found


def test_records_are_equal_by_value_copied_and_pickled() -> None:
    same = Finding("anthropic.thinking.signature", Fate.INTACT, digest_in=b"1", size_in=4)
    other = dataclasses.replace(ROW, size_in=5)
    assert same == ROW != other
    assert hash(same) == hash(ROW)
    pickled = pickle.loads(pickle.dumps(ROW))  # noqa: S301 - our own
    for made in (copy.copy(ROW), copy.deepcopy(ROW), pickled):
        assert ROW == made


def test_a_record_with_other_values_is_another_record() -> None:
    changes = {"fate": Fate.DROPPED, "verdict": Verdict.BREAKS, "rule": "A1"}
    assert dataclasses.replace(ROW, **changes) == replace(ROW, **changes)  # type: ignore[arg-type]
    assert Fate.INTACT is ROW.fate
    with pytest.raises(AttributeError):
        replace(ROW, no_field=1)


@pytest.mark.parametrize("kind", [Finding, Turn, Report, Block])
def test_what_a_record_needs_has_to_be_given(kind: type) -> None:
    with pytest.raises(TypeError, match="missing"):
        kind()
