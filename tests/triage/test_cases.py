"""Every field case that violates is one incident: artifact, first bad turn, cause, locus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main
from otel_sealed.triage.model import Evidence, Outcome
from tests.triage.replay import case, incidents_in

CASES = Path(__file__).parents[1] / "cases"
EXPECTED: dict[str, Any] = json.loads((CASES / "expected.json").read_text("utf-8"))
BEYOND = "O18"
REFUSED_THERE = (BEYOND, "F03", "F26b")
NOT_YET = ("D1a",)
VIOLATING = sorted(
    name for name, wanted in EXPECTED.items() if wanted["exit"] == 1 and wanted.get("exact")
)
OTHERS = sorted(
    name
    for name, wanted in EXPECTED.items()
    if wanted["exit"] == 1 and not wanted.get("exact") and name not in NOT_YET
)
CLEAN = sorted(
    name for name, wanted in EXPECTED.items() if wanted["exit"] == 0 and name not in REFUSED_THERE
)


def violating(name: str) -> list[tuple[str, str]]:
    rows = EXPECTED[name]["expected"]
    accused = [row for row in rows if not {"ok", "allowed"} & set(row["verdict"])]
    return sorted((row["artifact"], row["fate"]) for row in accused)


@pytest.mark.parametrize("name", VIOLATING)
def test_a_violating_case_is_one_incident_of_the_right_artifacts(name: str, tmp_path: Path) -> None:
    (found,) = incidents_in(case(CASES / f"{name}.jsonl", tmp_path))
    assert violating(name) == sorted((part.artifact, part.fate) for part in found.parts)
    assert found.lead.artifact in {artifact for artifact, _ in violating(name)}


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_longer_case_accuses_is_part_of_its_incidents(name: str, tmp_path: Path) -> None:
    found = incidents_in(case(CASES / f"{name}.jsonl", tmp_path))
    assert set(violating(name)) <= {(p.artifact, p.fate) for one in found for p in one.parts}
    assert [one for one in found if not one.remedies] == []


@pytest.mark.parametrize("name", VIOLATING)
def test_a_record_tells_turn_cause_and_locus_as_the_exchanges_themselves_do(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = CASES / f"{name}.jsonl"
    (found,) = incidents_in(case(file, tmp_path))
    capsys.readouterr()
    main(["verify", "--json", str(file)])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    lead = found.lead
    row = next(r for r in rows if (r["artifact"], r["fate"]) == (lead.artifact, lead.fate))
    assert (row["exchange"] + 1, row["cause"] or "", row["locus"], row["rule"]) == (
        found.first_bad.number,
        lead.cause,
        lead.locus,
        lead.rule,
    )
    if row["received"]:
        assert lead.minted is not None
        assert row["received"]["exchange"] + 1 == lead.minted.number
        assert row["received"]["path"] == lead.came_position


@pytest.mark.parametrize("name", VIOLATING)
def test_every_incident_cites_its_rule_and_knows_a_way_out(name: str, tmp_path: Path) -> None:
    (found,) = incidents_in(case(CASES / f"{name}.jsonl", tmp_path))
    assert found.says
    assert found.source
    assert found.remedies
    assert found.remedies[-1].loses == "everything said since"


@pytest.mark.parametrize("name", VIOLATING)
def test_events_alone_tell_artifact_fate_rule_first_seen_and_count(
    name: str, tmp_path: Path
) -> None:
    """The trace is sampled out: no span is on record."""
    whole = tmp_path / "whole"
    whole.mkdir()
    (by_spans,) = incidents_in(case(CASES / f"{name}.jsonl", whole))
    (found,) = incidents_in(case(CASES / f"{name}.jsonl", tmp_path, sampled=False))
    assert Evidence.EVENTS is found.evidence
    assert (by_spans.lead.artifact, by_spans.lead.fate, by_spans.lead.rule) == (
        found.lead.artifact,
        found.lead.fate,
        found.lead.rule,
    )
    assert by_spans.affected == found.affected
    assert by_spans.lead.locus == found.lead.locus
    assert found.first_bad.at > 0


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_case_is_no_incident(name: str, tmp_path: Path) -> None:
    assert incidents_in(case(CASES / f"{name}.jsonl", tmp_path)) == []


@pytest.mark.parametrize("sampled", [True, False])
def test_clean_here_and_refused_there_is_one_incident_beyond(
    sampled: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
) -> None:
    (found,) = incidents_in(case(CASES / f"{BEYOND}.jsonl", tmp_path, sampled=sampled))
    assert found.lead.artifact == "openai.reasoning.encrypted_content"
    assert found.outcome is Outcome.REFUSED
    assert found.rejection == "undecryptable"
    if sampled:
        assert (found.lead.fate, found.lead.locus, found.lead.confidence) == (
            "intact",
            "beyond",
            "proven",
        )
        assert found.first_bad.number == 2
        assert found.minted is not None
        assert found.minted.number == 1


def test_what_a_sampled_out_refusal_was_about_is_not_claimed_to_be_known(tmp_path: Path) -> None:
    (found,) = incidents_in(case(CASES / f"{BEYOND}.jsonl", tmp_path, sampled=False))
    assert found.lead.confidence == "inferred"
