"""The field cases: `otel-sealed verify` says of each what is known to be right.

A, O, G, R: public reports. C, D: defects found in recorded traffic. E, `agent_`: agents outside
Python, the latter as recorded against a made-up provider. F: later reports and recordings. Each of
the rows under `expected` has to be met by a row of its own. Where they are not all the rows there
are (`exact`), others may be ok, allowed or unverifiable, and may accuse only of the kinds that
`may` lists. `exit`: the status of `verify`; null: either.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main

FOLDER = Path(__file__).parent / "cases"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text("utf-8"))

Row = dict[str, Any]


def test_every_case_has_an_answer_and_every_answer_a_case() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_verify_says_what_is_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = EXPECTED[name]
    status = main(["verify", "--json", str(FOLDER / f"{name}.jsonl")])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    if wanted.get("exact"):
        assert [_kind(row) for row in wanted["expected"]] == [_kind(row) for row in rows]
        for row, right in zip(rows, wanted["expected"], strict=True):
            assert row["verdict"] in right["verdict"]
    else:
        met = _met(wanted["expected"], rows)
        missing = [right for at, right in enumerate(wanted["expected"]) if at not in met]
        assert missing == []
        may = [_kind(row) for row in wanted.get("may", ())]
        others = [row for at, row in enumerate(rows) if at not in met.values()]
        assert [row for row in others if _accuses(row) and _kind(row) not in may] == []
    assert wanted["exit"] in (status, None)


def _kind(row: Row) -> tuple[str, str]:
    return row["artifact"], row["fate"]


def _accuses(row: Row) -> bool:
    return row["verdict"] in ("degrades", "breaks")


def _met(expected: list[Row], rows: list[Row]) -> dict[int, int]:
    """The index of an expected row to that of the row that meets it, as many as can be."""
    fits = [
        [
            at
            for at, row in enumerate(rows)
            if _kind(row) == _kind(right) and row["verdict"] in right["verdict"]
        ]
        for right in expected
    ]
    met_by: dict[int, int] = {}

    def meet(one: int, asked: set[int]) -> bool:
        for at in fits[one]:
            if at in asked:
                continue
            asked.add(at)
            if at not in met_by or meet(met_by[at], asked):
                met_by[at] = one
                return True
        return False

    for one in range(len(expected)):
        meet(one, set())
    return {one: at for at, one in met_by.items()}
