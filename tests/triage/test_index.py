"""The index reads what is new, forgets what is gone, and may be deleted or broken at any time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from otel_sealed.triage import files, index, schema
from otel_sealed.triage.files import found_in
from otel_sealed.triage.index import Filter, Index
from tests.triage.golden import make

LINES = (Path(make.__file__).parent / "otlp.jsonl").read_text("utf-8").splitlines(keepends=True)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    made = tmp_path / "record"
    made.mkdir()
    return made


def updated(folder: Path) -> tuple[int, int, int]:
    """(calls, incidents, broken lines) after reading what is new."""
    with Index(folder / schema.NAME) as found:
        found.update(found_in([folder]))
        stats = found.stats()
        return stats.calls, found.count(), stats.broken


def test_what_is_appended_is_read_and_nothing_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "traces.jsonl"
    file.write_text(LINES[0], "utf-8")
    assert updated(folder) == (1, 0, 0)
    read: list[tuple[int, int]] = []
    real = files.read

    def counted(piece: files.Piece) -> files.Found:
        read.append((piece.start, piece.end))
        return real(piece)

    monkeypatch.setattr(files, "read", counted)
    assert updated(folder) == (1, 0, 0)
    with file.open("a") as out:
        out.write(LINES[1])
    assert updated(folder) == (2, 1, 0)
    assert [(len(LINES[0].encode()), len((LINES[0] + LINES[1]).encode()))] == read


def test_a_line_without_an_end_is_read_once_it_has_one(folder: Path) -> None:
    file = folder / "traces.jsonl"
    file.write_text(LINES[0] + LINES[1][:50], "utf-8")
    assert updated(folder) == (1, 0, 1)
    assert updated(folder) == (1, 0, 1)
    with file.open("a") as out:
        out.write(LINES[1][50:])
    assert updated(folder) == (2, 1, 0)
    with Index(folder / schema.NAME) as found:
        assert found.flaws() == []
        assert found.incidents()[0].first_bad.span == make.SPANS[1]


def test_a_file_that_is_gone_is_forgotten_with_its_incidents(folder: Path) -> None:
    (folder / "a.jsonl").write_text(LINES[0], "utf-8")
    (folder / "b.jsonl").write_text(LINES[1], "utf-8")
    assert updated(folder) == (2, 1, 0)
    (folder / "b.jsonl").unlink()
    assert updated(folder) == (1, 0, 0)


def test_a_rotated_file_is_not_read_again(folder: Path) -> None:
    file = folder / "traces.jsonl"
    file.write_text("".join(LINES[:2]), "utf-8")
    assert updated(folder) == (2, 1, 0)
    file.rename(folder / "traces.jsonl.1")
    file.write_text(LINES[2], "utf-8")
    assert updated(folder) == (2, 1, 0)


def test_a_file_that_was_cut_to_nothing_is_read_anew(folder: Path) -> None:
    file = folder / "traces.jsonl"
    file.write_text("".join(LINES), "utf-8")
    assert updated(folder) == (2, 1, 0)
    file.write_text(LINES[0], "utf-8")
    assert updated(folder) == (1, 0, 0)


def test_a_document_that_changed_is_read_as_a_whole(folder: Path) -> None:
    golden = Path(make.__file__).parent
    file = folder / "trace.json"
    file.write_text((golden / "tempo.json").read_text("utf-8"), "utf-8")
    assert updated(folder) == (2, 1, 0)
    file.write_text((golden / "grafana_trace.json").read_text("utf-8") + "\n\n", "utf-8")
    assert updated(folder) == (2, 1, 0)


def test_the_same_span_in_two_files_is_one_call(folder: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_text("".join(LINES), "utf-8")
    updated(folder)
    with Index(folder / schema.NAME) as found:
        (incident,) = found.incidents()
    assert (incident.calls, incident.affected) == (2, 1)


def test_an_incident_ends_with_the_call_that_recovers_from_it(folder: Path) -> None:
    file = folder / "traces.jsonl"
    file.write_text("".join(LINES[:2]), "utf-8")
    updated(folder)
    later = LINES[0].replace(make.SPANS[0], "1" * 16).replace(make.TRACES[0], "2" * 32)
    for at in make.TIMES[0]:
        later = later.replace(str(at), str(at + 60_000_000_000))
    with file.open("a") as out:
        out.write(later)
    with Index(folder / schema.NAME) as found:
        (before,) = found.incidents()
        found.update(found_in([folder]))
        (after,) = found.incidents()
    assert (before.growing, before.outcome.value) == (True, "refused")
    assert (after.growing, after.outcome.value) == (False, "recovered_by_loss")
    assert before.id == after.id


def test_what_happened_long_before_the_newest_call_no_longer_grows(folder: Path) -> None:
    (folder / "a.jsonl").write_text("".join(LINES[:2]), "utf-8")
    later = LINES[0].replace(make.CONVERSATION, "0" * 32)
    for at in make.TIMES[0]:
        later = later.replace(str(at), str(at + 7_200_000_000_000))
    (folder / "b.jsonl").write_text(later, "utf-8")
    updated(folder)
    with Index(folder / schema.NAME) as found:
        assert [incident.growing for incident in found.incidents()] == [False]


def test_the_index_is_private_and_stands_beside_the_record(folder: Path) -> None:
    (folder / "a.jsonl").write_text("".join(LINES), "utf-8")
    updated(folder)
    assert stat.S_IMODE((folder / schema.NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "broken", [b"not a database at all" * 99, b"", b"SQLite format 3\0" + b"x" * 200]
)
def test_an_index_that_is_broken_is_made_anew(folder: Path, broken: bytes) -> None:
    (folder / "a.jsonl").write_text("".join(LINES), "utf-8")
    updated(folder)
    (folder / schema.NAME).write_bytes(broken)
    assert updated(folder) == (2, 1, 0)


def test_an_index_of_another_version_is_made_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.jsonl").write_text("".join(LINES), "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "VERSION", 999)
        updated(folder)
    assert updated(folder) == (2, 1, 0)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_read_all_the_same(folder: Path) -> None:
    (folder / "a.jsonl").write_text("".join(LINES), "utf-8")
    folder.chmod(0o500)
    try:
        assert updated(folder) == (2, 1, 0)
    finally:
        folder.chmod(0o700)


def test_two_processes_read_what_one_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    for number in range(300):
        for line in LINES[:2]:
            mine = line.replace(make.CONVERSATION, f"{number:032x}")
            lines.append(mine.replace(make.TRACES[0], f"{number + 1:032x}"))
    (folder / "a.jsonl").write_text("".join(lines) + "torn\n", "utf-8")
    monkeypatch.setattr(index, "ALONE_BYTES", 0)
    monkeypatch.setattr(files, "PIECE", 100_000)
    told: list[tuple[int, int]] = []
    with Index() as two, Index() as one:
        two.update(
            found_in([folder]),
            processes=2,
            progress=lambda _, done, total: told.append((done, total)),
        )
        one.update(found_in([folder]))
        assert one.stats() == two.stats()
        assert one.flaws() == two.flaws()
        assert {i.id for i in one.incidents()} == {i.id for i in two.incidents()}
        assert two.count() == 300
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (Filter(), 1),
        (Filter(since=make.TIMES[1][0]), 1),
        (Filter(since=make.TIMES[1][1] + 1), 0),
        (Filter(until=make.TIMES[1][0]), 0),
        (Filter(until=make.TIMES[1][1]), 1),
        (Filter(conversation=make.CONVERSATION[:6]), 1),
        (Filter(conversation="ff"), 0),
        (Filter(trace=make.TRACES[0]), 1),
        (Filter(trace="0" * 32), 0),
        (Filter(provider="anthropic"), 1),
        (Filter(provider="openai"), 0),
        (Filter(model="opus"), 1),
        (Filter(model="sonnet"), 0),
        (Filter(fate="dropped"), 1),
        (Filter(fate="modified"), 0),
        (Filter(ident="zz"), 0),
    ],
)
def test_incidents_are_found_by_any_of_their_circumstances(
    wanted: Filter, count: int, folder: Path
) -> None:
    (folder / "a.jsonl").write_text("".join(LINES), "utf-8")
    updated(folder)
    with Index(folder / schema.NAME) as found:
        assert (count, count) == (found.count(wanted), len(found.incidents(wanted)))
