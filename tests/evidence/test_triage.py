"""Triage takes own evidence as it takes a record: replayed through the core, told as incidents."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main
from otel_sealed.cli.replay import is_evidence, replayed
from otel_sealed.model import Fate
from otel_sealed.triage.index import Index
from otel_sealed.triage.model import Call, Evidence

TESTS = Path(__file__).parents[1]
DATA, CASES = TESTS / "data" / "evidence", TESTS / "cases"
RECORDINGS = ("browser.har", "mitmproxy.flows", "mitmproxy.har", "vcrpy.json", "vcrpy.yaml")
EXPECTED = json.loads((CASES / "expected.json").read_text("utf-8"))
REFUSED_THERE = ("F03", "F26b", "O18")
"""Clean here, and the provider refused the call."""


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[Any], str]:
    status = main(["triage", "--json", *arguments])
    out, err = capsys.readouterr()
    return status, [json.loads(line) for line in out.splitlines()], err


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record of the working directory, and so no key of one."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", [*RECORDINGS, "transcript.jsonl"])
def test_a_recording_is_one_incident(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, (found,), err = told(capsys, str(DATA / name))
    assert (1, "anthropic.redacted_thinking.data", "dropped", "A2", "refused") == (
        status,
        found["artifact"],
        found["fate"],
        found["rule"],
        found["outcome"],
    )
    assert (3, 2) == (found["first_bad"]["number"], found["minted"]["number"])
    assert ("process", "proven") == (found["locus"], found["confidence"])
    assert ("passed by" in err) is (name != "transcript.jsonl")


def test_the_ids_are_the_numbers_of_the_exchanges(capsys: pytest.CaptureFixture[str]) -> None:
    _, (found,), _ = told(capsys, str(DATA / "vcrpy.yaml"))
    assert f"{7:016x}" == found["first_bad"]["span"]


@pytest.mark.parametrize("name", RECORDINGS)
def test_times_are_those_of_the_recorder_or_none(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (found,), _ = told(capsys, str(DATA / name))
    known = found["first_bad"]["at"]
    assert (known is None) is name.startswith("vcrpy")
    assert known is None or re.match("2026-11-(29|30)T", known)


def test_an_incident_has_the_same_id_in_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DATA / "mitmproxy.har")
    (first,), (second,) = told(capsys, path)[1], told(capsys, path)[1]
    assert first == second
    assert told(capsys, path, "--incident", first["id"])[1] == [first]


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_a_field_case_is_an_incident_if_it_violates(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, _ = told(capsys, str(CASES / f"{case}.jsonl"))
    wanted = EXPECTED[case]["exit"]
    assert status == (1 if case in REFUSED_THERE else status if wanted is None else wanted)
    assert bool(found) == (status == 1)


def test_a_pasted_error_is_resolved_in_a_recording(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant"
        " message cannot be modified"
    )
    status, (found,), _ = told(capsys, str(DATA / "vcrpy.json"), "--error", text)
    assert (1, "thinking_modified") == (status, found["rejection"])
    assert found["incidents"][0]["artifact"] == "anthropic.redacted_thinking.data"


def test_a_recording_and_a_record_are_told_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = TESTS / "triage" / "golden" / "otlp.jsonl"
    _, alone, _ = told(capsys, str(record))
    _, both, _ = told(capsys, str(record), str(DATA / "vcrpy.yaml"))
    assert len(both) == len(alone) + 1
    assert not is_evidence(str(record))


def test_a_recording_makes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(DATA / "mitmproxy.flows"), "--html", str(page)]) == 1
    assert "anthropic.redacted_thinking.data did not go back" in page.read_text("utf-8")
    assert "1 problem, 1 incident" in capsys.readouterr().err


def test_a_recording_that_is_cut_tells_what_came_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flows"
    data = (DATA / "mitmproxy.flows").read_bytes()
    path.write_bytes(data + data[:100])
    status, found, err = told(capsys, str(path))
    assert (1, 1) == (status, len(found))
    assert "cut off or damaged" in err


def test_a_recording_without_calls_is_unusable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.har"
    path.write_text('{"log": {"entries": []}}')
    assert main(["triage", str(path)]) == 2
    assert "holds no call of a model" in capsys.readouterr().err


def test_no_file_is_left_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.har"
    shutil.copy(DATA / "browser.har", path)
    assert main(["triage", str(path)]) == 1
    assert "redacted_thinking" in capsys.readouterr().out
    assert [path] == list(tmp_path.iterdir())


def relayed(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Two calls at OpenRouter; a relay hands the details on under a key nobody looks at."""
    answered = {
        "role": "assistant",
        "content": "On it.",
        "provider_specific_fields": {"reasoning_details": [value]},
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        ],
    }
    asked = {"role": "user", "content": "What is there?"}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "nothing"}
    reply = {"id": "1", "model": "anthropic/claude-opus-5", "choices": [{"message": answered}]}
    return [
        {
            "api": "chat.completions",
            "provider": "openrouter",
            "request": {"model": "anthropic/claude-opus-5", "messages": messages},
            "response": reply,
        }
        for messages in ([asked], [asked, answered, result])
    ]


def test_span_event_triage_and_strip_agree_on_where_a_misplaced_value_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"type": "reasoning.encrypted", "data": "c2ln" * 40, "format": "anthropic-claude-v1"}
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in relayed(value)), "utf-8")
    assert main(["triage", str(path)]) == 1
    out = capsys.readouterr().out
    place = "messages.1.provider_specific_fields.reasoning_details.0.data"
    assert f"went back    {place}, 160 B" in out
    assert "1 incident in 2 calls in 1 file" in out
    shown = [line.split() for line in out.splitlines()]
    assert ["fate", "misplaced", "R5"] in [line[:3] for line in shown]
    spans = [call for call in replayed_calls(path) if call.evidence is Evidence.SPANS]
    (row,) = (row for row in spans[1].returned if row.fate == Fate.MISPLACED)
    assert (row.position, row.size) == (place, 160)


def replayed_calls(path: Path) -> list[Call]:
    with Index() as index:
        index.stream(str(path), replayed(str(path), b"k" * 32, []))
        keys = list(index.keys())
        return [call for key in keys for call in index.conversation(key)]


def test_a_refusal_without_a_class_is_an_incident_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clean here, refused there, for whatever reason; one of load or credentials is none."""
    *before, last = (CASES / "A04.jsonl").read_text("utf-8").splitlines()
    for kind, status, found in (("invalid_request_error", 400, 1), ("overloaded_error", 400, 0)):
        error = {"type": "error", "error": {"type": kind, "message": "No."}}
        refused = json.loads(last) | {"response": error, "events": None, "status": status}
        file = tmp_path / f"{kind}.jsonl"
        file.write_text("\n".join([*before, json.dumps(refused)]), "utf-8")
        told_, incidents, _ = told(capsys, str(file))
        assert (told_, len(incidents)) == (found, found)
    assert main(["triage", str(tmp_path / "invalid_request_error.jsonl")]) == 1
    assert "of no known class: it may not be about sealed state" in capsys.readouterr().out
