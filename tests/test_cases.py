"""The field cases: `otel-sealed verify` says of each what is known to be right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main

FOLDER = Path(__file__).parent / "cases"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text("utf-8"))


def test_every_case_has_an_answer_and_every_answer_a_case() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_verify_says_what_is_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = EXPECTED[name]
    status = main(["verify", "--json", str(FOLDER / f"{name}.jsonl")])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [(row["artifact"], row["fate"]) for row in wanted["expected"]]
    assert expected == [(row["artifact"], row["fate"]) for row in rows]
    for row, right in zip(rows, wanted["expected"], strict=True):
        assert row["verdict"] in right["verdict"]
    assert wanted["exit"] == status
