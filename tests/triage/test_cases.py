"""Every field case that violates is one incident: artifact, first bad turn, cause, locus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_sealed import vocab
from otel_sealed.cli import main
from otel_sealed.triage.files import found_in
from otel_sealed.triage.incidents import ordered
from otel_sealed.triage.index import Index
from otel_sealed.triage.model import Evidence, Outcome
from otel_sealed.triage.strip import strips
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


def drawn(name: str, tmp_path: Path) -> list[tuple[str, str, str]]:
    """The blocks of a case's newest strip: as they came, as they went back, and their fates."""
    with Index() as index:
        index.update(found_in([case(CASES / f"{name}.jsonl", tmp_path)]))
        (key,) = index.keys()
        strip = strips(ordered(index.conversation(key)))[-1]
    return [(column.came, column.back, column.fate) for column in strip.columns]


def test_a_strip_shows_blocks_inside_others_where_they_are(tmp_path: Path) -> None:
    """F23: both results go back, and both citations are gone."""
    found = drawn("F23", tmp_path)
    results = [column for column in found if column[0] == "web_search_result"]
    cited = [column for column in found if column[0] == "web_search_result_location"]
    assert results == [("web_search_result", "web_search_result", "intact")] * 2
    assert cited == [("web_search_result_location", "", "dropped")] * 2
    assert [column for column in found if column[0] in ("", "text") and column[2]] == []


def test_a_strip_shows_a_block_that_lost_its_seal_alone_as_one_block(tmp_path: Path) -> None:
    """F14: the detail of OpenRouter is there, its signature is not."""
    assert drawn("F14", tmp_path) == [
        ("reasoning.text", "reasoning.text", "dropped"),
        ("function", "function", ""),
    ]


@pytest.mark.parametrize("artifact", sorted(vocab.ARTIFACTS))
def test_the_artifacts_of_the_vocabulary_have_their_names_everywhere(artifact: str) -> None:
    """Also the longest of them: `other` is a word of the wire that nobody knows."""
    assert artifact == vocab.word(artifact)
