"""The files of a folder: private, bounded, and never a failure of whoever writes."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli.lines import Bound, Lines, Store

LINE = "x" * 99 + "\n"


def lines(folder: Path, most_bytes: int = 1_000_000, stem: str = "traces-run") -> Lines:
    return Lines(Store(folder / "made" / "here", Bound(most_bytes, 7)), stem)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "made" / "here").glob("*.jsonl"))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in files(folder))


def test_without_a_line_there_is_no_file_and_no_folder(tmp_path: Path) -> None:
    lines(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_ignores_itself_and_its_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        lines(tmp_path).write(LINE)
    finally:
        os.umask(before)
    folder = tmp_path / "made" / "here"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {".gitignore": 0o600, f"traces-run-{os.getpid()}.jsonl": 0o600}
    assert (folder / ".gitignore").read_text("utf-8") == "*\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_segment_ends_at_a_tenth_of_the_bound(tmp_path: Path) -> None:
    stream = lines(tmp_path, 100_000)
    for _ in range(250):
        stream.write(LINE)
    sizes = {path.name: path.stat().st_size for path in files(tmp_path)}
    stem = f"traces-run-{os.getpid()}"
    assert sizes == {
        f"{stem}.jsonl": 10_000,
        f"{stem}.2.jsonl": 10_000,
        f"{stem}.3.jsonl": 5_000,
    }


def test_the_folder_never_holds_more_than_the_bound(tmp_path: Path) -> None:
    """Whoever wrote it; the oldest goes first, and what is nobody's is left alone."""
    folder = tmp_path / "made" / "here"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine", "utf-8")
    old = folder / "logs-earlier-1.jsonl"
    old.write_text("x" * 5_000, "utf-8")
    an_hour_ago = time.time() - 3_600
    os.utime(old, (an_hour_ago, an_hour_ago))
    streams = [lines(tmp_path, 100_000, f"{signal}-run") for signal in ("traces", "logs")]
    for _ in range(2_000):
        for stream in streams:
            stream.write(LINE)
        assert size(tmp_path) <= 100_000
    assert size(tmp_path) > 70_000
    assert not old.exists()
    assert (folder / "notes.txt").exists()


def test_what_is_too_old_is_deleted_when_a_file_is_begun(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    folder.mkdir(parents=True)
    for name, day in (("traces-a-1.jsonl", 8), ("metrics-a-1.jsonl", 6)):
        (folder / name).write_text(LINE, "utf-8")
        then = time.time() - day * 86_400
        os.utime(folder / name, (then, then))
    lines(tmp_path).write(LINE)
    assert [path.name for path in files(tmp_path)] == [
        "metrics-a-1.jsonl",
        f"traces-run-{os.getpid()}.jsonl",
    ]


def test_a_file_that_somebody_deleted_is_begun_again(tmp_path: Path) -> None:
    stream = lines(tmp_path, 100_000)
    stream.write(LINE)
    for path in files(tmp_path):
        path.unlink()
    for _ in range(20):
        stream.write(LINE)
    assert size(tmp_path) > 0


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    folder.mkdir(parents=True)
    (folder / f"traces-run-{os.getpid()}.jsonl").symlink_to(tmp_path / "elsewhere")
    lines(tmp_path).write(LINE)
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_that_takes_nothing_costs_one_line_and_no_write_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file stands where the folder should be, which even the superuser cannot write through."""
    caplog.set_level(logging.WARNING, "otel_sealed")
    (tmp_path / "made").write_text("in the way", "utf-8")
    store = Store(tmp_path / "made" / "here", Bound(1_000_000, 7))
    for signal in ("traces", "logs"):
        stream = Lines(store, f"{signal}-run")
        assert [stream.write(LINE) for _ in range(5)] == [len(LINE)] * 5
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{store.folder}: Not a directory; telemetry is lost, the program goes on"
    )


def test_a_full_disk_tears_a_line_and_the_next_one_stands_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    stream = lines(tmp_path)
    stream.write('{"n": 1}\n')
    write, room = os.write, [3]

    def full(file: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[: room.pop()])

    monkeypatch.setattr(os, "write", full)
    stream.write('{"n": 2}\n')
    monkeypatch.setattr(os, "write", write)
    stream.write('{"n": 3}\n')
    (path,) = files(tmp_path)
    assert path.read_text("utf-8") == '{"n": 1}\n{"n\n{"n": 3}\n'
    assert [record.getMessage() for record in caplog.records] == [
        f"{path.parent}: No space left on device; telemetry is lost, the program goes on"
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_of_fork_writes_a_file_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from pathlib import Path\n"
        "from otel_sealed.cli.lines import Bound, Lines, Store\n"
        "stream = Lines(Store(Path(sys.argv[1]), Bound(10**6, 7)), 'traces-run')\n"
        "stream.write('[0]\\n')\n"
        "pid = os.fork()\n"
        "for _ in range(50): stream.write(f'[{os.getpid()}]\\n')\n"
        "if pid: os.waitpid(pid, 0)\n"
        "os._exit(0)\n"
    )
    folder = tmp_path / "made" / "here"
    subprocess.run([sys.executable, "-c", code, folder], check=True)
    found: dict[str, list[Any]] = {
        path.name: [json.loads(line)[0] for line in path.read_text("utf-8").splitlines()]
        for path in files(tmp_path)
    }
    pids = sorted((int(name.removesuffix(".jsonl").split("-")[-1]) for name in found), key=int)
    parent = next(pid for pid in pids if found[f"traces-run-{pid}.jsonl"][0] == 0)
    assert len(pids) == 2
    for pid in pids:
        own = [0, *[pid] * 50] if pid == parent else [pid] * 50
        assert found[f"traces-run-{pid}.jsonl"] == own
