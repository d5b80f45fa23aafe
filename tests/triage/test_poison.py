"""An index is not trusted: whatever is in it, what is printed is what the record says, as text."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from otel_sealed.cli import main
from otel_sealed.triage import schema
from tests.triage.golden import make

RECORD = (Path(make.__file__).parent / "otlp.jsonl").read_text("utf-8")
ESC = "\x1b]0;owned\x07\u202e"
POISON = {
    "a text with an escape": "UPDATE incidents SET body = replace(body, 'checkout', '\\u001b[2J')",
    "no incident": "UPDATE incidents SET body = '{}'",
    "another type": """UPDATE incidents SET body = replace(body, '"calls":2', '"calls":[]')""",
    "a field too many": 'UPDATE incidents SET body = replace(body, \'{"id"\', \'{"x":1,"id"\')',
    "bytes": "UPDATE incidents SET body = x'ff00'",
    "null": "UPDATE incidents SET body = NULL",
    "deep": "UPDATE incidents SET body = printf('%.*c', 5000, '[')",
    "a call with an escape": "UPDATE calls SET body = replace(body, 'chat', '\\u001b[2J')",
    "a call that is none": "UPDATE calls SET body = '[]'",
    "a call of texts": "UPDATE calls SET body = replace(body, '0', '\"0\"')",
    "a time of text": "UPDATE calls SET at = 'soon'",
    "a trace of text": "UPDATE calls SET trace = 'x'",
    "a count of text": "UPDATE meta SET value = 'many' WHERE name = 'calls'",
    "a file of text": "UPDATE files SET size = 'x'",
    "a file that was read too far": "UPDATE files SET read = size + 1",
    "a negative file": "UPDATE files SET read = -5",
    "a flaw of bytes": "INSERT INTO flaws VALUES ((SELECT id FROM files), 1, x'ff', 0)",
    "a table that is gone": "DROP TABLE flaws",
    "a table too many": "CREATE TABLE more (x)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM incidents; END",
    "a view": "DROP TABLE flaws; CREATE VIEW flaws AS SELECT 1 file, 1 line, 'x' what, 1 refused",
}


@pytest.fixture(name="record")
def _record(tmp_path: Path) -> Path:
    folder = tmp_path / "record"
    folder.mkdir()
    (folder / "a.jsonl").write_text(RECORD, "utf-8")
    return folder


def said(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    status = main(["triage", str(folder), *options])
    return (status, *capsys.readouterr())


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
@pytest.mark.parametrize("options", [(), ("--json",), ("--error", "messages.1.content.1: bad")])
def test_a_poisoned_index_is_made_anew(
    poison: str, options: tuple[str, ...], record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = said(record, capsys, *options)
    with closing(sqlite3.connect(record / schema.NAME)) as database:
        database.executescript(poison)
        database.commit()
    assert said(record, capsys, *options) == clean
    assert said(record, capsys, *options) == clean


def test_a_page_from_a_poisoned_index_is_that_of_the_record(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(record), "--html", str(tmp_path / "clean.html")]) == 1
    with closing(sqlite3.connect(record / schema.NAME)) as database:
        database.execute("UPDATE incidents SET body = replace(body, 'checkout', ?)", (ESC,))
        database.commit()
    assert main(["report", str(record), "--html", str(tmp_path / "page.html")]) == 1
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "clean.html").read_bytes()
    assert capsys.readouterr().out == ""


def test_an_index_that_came_with_a_copy_of_the_record_is_made_anew(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a repository brings one along: a lie in plain words, in an index that is well made."""
    said(record, capsys)
    with closing(sqlite3.connect(record / schema.NAME)) as database:
        database.execute("DELETE FROM incidents")
        database.execute("DELETE FROM files")
        database.commit()
    shutil.copytree(record, tmp_path / "clone")
    status, out, err = said(tmp_path / "clone", capsys)
    assert (status, out.splitlines()[0], err) == (1, "1 incident in 2 calls in 1 file", "")


@pytest.mark.parametrize("suffix", ["", "-journal"])
def test_a_link_in_the_place_of_the_index_is_not_followed(
    suffix: str, record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    target.chmod(0o644)
    (record / f"{schema.NAME}{suffix}").symlink_to(target)
    assert said(record, capsys)[0] == 1
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"precious", 0o644)
