"""Every backend's shape tells the same incident; files may be packed, rotated or torn."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_sealed.errors import SealedError
from otel_sealed.triage import files
from otel_sealed.triage.files import found_in
from otel_sealed.triage.index import Index
from otel_sealed.triage.model import Evidence, Incident
from otel_sealed.triage.reading import call_of
from otel_sealed.triage.sources import signals
from tests.triage.golden import make
from tests.triage.replay import incidents_in

GOLDEN = Path(make.__file__).parent
WITH_SPANS = (
    "otlp.jsonl",
    "collector.jsonl",
    "tempo.json",
    "tempo_2.json",
    "grafana_trace.json",
    "jaeger.json",
    "clickhouse_traces.jsonl",
)
EVENTS_ALONE = ("loki.json", "loki_categorized.json", "grafana_logs.json", "clickhouse_logs.jsonl")


def test_the_golden_files_are_up_to_date_and_none_is_left_out() -> None:
    written = {path.name: path.read_text("utf-8") for path in GOLDEN.glob("*.json*")}
    assert dict(make.rendered()) == written
    assert {*WITH_SPANS, *EVENTS_ALONE} == set(written)


@pytest.mark.parametrize("name", WITH_SPANS)
def test_spans_of_any_backend_tell_the_same_incident(name: str) -> None:
    (found,) = incidents_in(GOLDEN / name)
    (known,) = incidents_in(GOLDEN / "otlp.jsonl")
    # what only the event of `otlp.jsonl` and `collector.jsonl` knows
    assert _without_event(known) == _without_event(found)
    assert found.first_bad.at == make.TIMES[1][0]
    assert (found.lead.artifact, found.lead.fate) == ("anthropic.redacted_thinking.data", "dropped")
    assert found.age_ns == make.TIMES[1][0] - make.TIMES[0][0]
    assert (found.about.service, found.about.release) == ("checkout", "1.2.3")
    assert found.minted is not None
    assert (found.minted.trace, found.minted.span) == (make.TRACES[0], make.SPANS[0])


def _without_event(found: Incident) -> Incident:
    return replace(found, about=replace(found.about, sdks=()))


@pytest.mark.parametrize("name", EVENTS_ALONE)
def test_events_of_any_backend_tell_the_same_incident(name: str) -> None:
    (found,) = incidents_in(GOLDEN / name)
    (known,) = incidents_in(GOLDEN / EVENTS_ALONE[0])
    assert known == found
    assert Evidence.EVENTS is found.evidence
    assert ("A2", 1, make.EVENT_AT) == (found.lead.rule, found.affected, found.first_bad.at)
    assert found.about.sdks == ("anthropic=2.14.0",)


def test_spans_of_one_backend_and_events_of_another_join() -> None:
    (found,) = incidents_in(GOLDEN / "jaeger.json", GOLDEN / "loki.json")
    assert Evidence.SPANS is found.evidence
    assert found.about.sdks == ("anthropic=2.14.0",)
    assert found.affected == 1


def test_attributes_of_others_are_not_even_read() -> None:
    text = (GOLDEN / "otlp.jsonl").read_text("utf-8")
    assert "somebody else" in text
    calls = [call_of(s) for line in text.splitlines() for s in signals(json.loads(line)) or ()]
    assert "somebody else" not in repr(calls)


# --------------------------------------------------------------------------------- states of files


def test_gzipped_files_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "traces.jsonl.gz"
    packed.write_bytes(gzip.compress((GOLDEN / "otlp.jsonl").read_bytes()))
    assert incidents_in(GOLDEN / "otlp.jsonl") == incidents_in(packed)


def test_a_gzipped_file_that_is_cut_tells_what_is_left_of_it(tmp_path: Path) -> None:
    data = (GOLDEN / "otlp.jsonl").read_bytes()
    packed = tmp_path / "traces.jsonl.gz"
    packed.write_bytes(gzip.compress(data)[:-20])
    with Index() as index:
        index.update([packed])
        assert [flaw.what for flaw in index.flaws()] == ["cut short: its end is missing"]
        assert index.stats().broken == 1


def test_rotated_files_of_a_folder_are_read_and_others_are_not(tmp_path: Path) -> None:
    lines = (GOLDEN / "otlp.jsonl").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "traces-2026-11-30T01-34-09.442.jsonl").write_text(lines[0], "utf-8")
    (tmp_path / "traces.jsonl.1").write_text(lines[1], "utf-8")
    (tmp_path / "logs.jsonl.2.gz").write_bytes(gzip.compress(lines[2].encode()))
    (tmp_path / "key").write_text("00" * 32, "utf-8")
    (tmp_path / "notes.txt").write_text("{}", "utf-8")
    assert incidents_in(GOLDEN / "otlp.jsonl") == incidents_in(tmp_path)


def test_a_broken_line_is_counted_and_named_and_never_fatal(tmp_path: Path) -> None:
    lines = (GOLDEN / "otlp.jsonl").read_text("utf-8").splitlines(keepends=True)
    torn = tmp_path / "torn.jsonl"
    torn.write_text("".join([lines[0], lines[1][:100] + "\n", *lines[1:], '{"x": 1}\n']), "utf-8")
    with Index() as index:
        index.update([torn])
        assert [(2, "not JSON, or cut short"), (5, "JSON of no shape that this version reads")] == [
            (flaw.line, flaw.what) for flaw in index.flaws()
        ]
        assert index.stats().broken == 2
        assert len(index.incidents()) == 1


def test_a_first_line_that_is_broken_costs_that_line_alone(tmp_path: Path) -> None:
    lines = (GOLDEN / "otlp.jsonl").read_text("utf-8").splitlines(keepends=True)
    torn = tmp_path / "torn.jsonl"
    torn.write_text("".join(['{"resourceSpans": [\n', *lines]), "utf-8")
    with Index() as index:
        index.update([torn])
        assert [1] == [flaw.line for flaw in index.flaws()]
        assert len(index.incidents()) == 1


def test_a_file_longer_than_a_piece_is_read_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE", 4096)
    file = tmp_path / "many.jsonl"
    text = (GOLDEN / "otlp.jsonl").read_text("utf-8")
    texts = (text.replace(make.SPANS[0], f"{n:016x}") for n in range(1, 31))
    file.write_text("x\n" + "".join(texts) + "y", "utf-8")
    with Index() as index:
        index.update([file])
        assert index.stats().calls == 31
        assert [1, 92] == [flaw.line for flaw in index.flaws()]


def test_a_name_that_is_none_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SealedError, match="no such file or folder"):
        found_in([tmp_path / "missing"])
    with pytest.raises(SealedError, match="no JSON lines in this folder"):
        found_in([tmp_path])


# -------------------------------------------------------------------------------- anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)
NAMES = st.sampled_from(
    sorted(
        {
            word
            for text in dict(make.rendered()).values()
            for word in text.split('"')
            if word and len(word) < 40 and ":" not in word
        }
    )
)
SHAPED = st.recursive(
    JSON | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=20,
)
DEADLINE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@DEADLINE
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_without_a_fault(data: bytes, tmp_path: Path) -> None:
    assert _read(tmp_path, data) >= 0
    assert _read(tmp_path, b"\x1f\x8b" + data) >= 0


@DEADLINE
@given(value=SHAPED)
def test_any_json_with_the_right_words_is_read_without_a_fault(value: Any, tmp_path: Path) -> None:
    assert _read(tmp_path, json.dumps(value).encode("utf-8", "surrogatepass")) >= 0


@DEADLINE
@given(data=st.data())
def test_golden_files_with_anything_in_any_place_are_read_without_a_fault(
    data: st.DataObject, tmp_path: Path
) -> None:
    name = data.draw(st.sampled_from([*WITH_SPANS, *EVENTS_ALONE]))
    text = (GOLDEN / name).read_text("utf-8")
    value = json.loads(text.splitlines()[0] if name.endswith("l") else text)
    replaced = _replace(value, data.draw(st.integers(0, 400)), data.draw(JSON | SHAPED))
    assert _read(tmp_path, json.dumps(replaced).encode("utf-8", "surrogatepass")) >= 0


@DEADLINE
@given(cut=st.integers(0, 4000), flip=st.integers(0, 4000), byte=st.integers(0, 255))
def test_a_file_cut_or_flipped_anywhere_is_read_without_a_fault(
    cut: int, flip: int, byte: int, tmp_path: Path
) -> None:
    data = bytearray((GOLDEN / "otlp.jsonl").read_bytes()[:-cut] if cut else b"{}")
    if data:
        data[flip % len(data)] = byte
    assert _read(tmp_path, bytes(data)) >= 0


def _read(folder: Path, data: bytes) -> int:
    path = folder / "any.json"
    path.write_bytes(data)
    with Index() as index:
        index.update([path])
        return len(index.incidents()) + len(index.flaws())


def _replace(value: Any, at: int, new: Any) -> Any:
    """`value` with its `at`-th node, counted from the top, replaced."""
    left = [at]

    def walk(node: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            left[0] = 1 << 30
            return new
        if isinstance(node, dict):
            return {k: walk(v) for k, v in node.items()}
        return [walk(item) for item in node] if isinstance(node, list) else node

    return walk(value)
