"""Whatever a name holds, a command prints it on its line and as text."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

import otel_sealed.cli
from otel_sealed.cli import main, note, printable
from otel_sealed.cli.show import Screen, table, ticker, write

HOSTILE = {
    "escape": "\x1b[2J",
    "title": "\x1b]0;owned\x07",
    "eight bit": "\x9b31m",
    "new line": "\nall is well",
    "return": "\rall is well",
    "back": "\b\b\b",
    "delete": "\x7f",
    "right to left": "\u202etxt.exe",
    "isolate": "\u2066x\u2069",
    "mark": "\u200f",
    "joined": "\u200d",
    "line separator": "\u2028",
    "byte": "\udcff",
}
CLI = [sys.executable, "-c", "import sys; from otel_sealed.cli import main; sys.exit(main())"]
names = pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)


def harmless(text: str, lines: int) -> bool:
    """Whether a text is so many lines of printable characters."""
    return (
        text.endswith("\n")
        and [line for line in text[:-1].split("\n") if line.isprintable()]
        == text[:-1].split("\n")[:lines]
    )


@names
def test_a_line_stays_one_line_of_printable_characters(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Screen().line(f"a{name}b")
    note(f"a{name}b")
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"a{printable(name)}b\n", f"otel-sealed: a{printable(name)}b\n")
    assert printable(name).isprintable()


@names
def test_a_cell_keeps_its_row(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Screen().draw(table(("one", "two"), [(name, Text(name)), ("x", "y")]))
    out = capsys.readouterr().out
    assert harmless(out, 4), out
    assert printable(name) in out
    assert printable(Text(name).plain) in out.replace(printable(name), "", 1)


@names
def test_a_text_that_was_put_together_elsewhere_is_cleaned_as_it_is_written(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = name.replace("\n", "")
    Screen().draw(Text.assemble(("bold", "bold"), name))
    write(f"{name}\n")
    assert harmless(capsys.readouterr().out, 2)


@names
@pytest.mark.parametrize(
    "command",
    [
        ["verify"],
        ["triage"],
        ["sessions"],
        ["inspect"],
        ["baseline", "-o", "-"],
        ["report", "--html", "-"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("there", [True, False], ids=["there", "missing"])
def test_every_command_prints_the_name_of_a_file_as_text(
    name: str,
    command: list[str],
    there: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / f"x{name}.jsonl"
    if there:
        path.write_text('{"api": "messages", "request": 1}\n', "utf-8")
    assert main([*command, str(path)]) in (0, 2)
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert [line for line in text.split("\n") if not line.isprintable()] == []
        assert "\nall is well" not in text


def test_an_argument_that_is_none_is_quoted_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", "--limit", "\x1b[31m"]) == 2
    assert main(["triage", "--\x1b[31m"]) == 2
    said = capsys.readouterr()
    assert harmless(said.err, 2)
    assert said.out == ""


def test_on_a_terminal_nothing_of_a_name_reaches_it(tmp_path: Path) -> None:
    """Colours and the line of progress are there, made of escapes that are ours."""
    exchange = {
        "api": "messages",
        "provider": "anthropic",
        "request": {"model": "claude-opus-5", "messages": [{"role": "user", "content": "x"}]},
        "response": {"content": [{"type": "thinking", "thinking": "t", "signature": "c2ln" * 9}]},
    }
    path = tmp_path / "x\x1b]0;owned\x07\x1b[8m\u202e.jsonl"
    path.write_text(json.dumps(exchange) + "\n", "utf-8")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*CLI, "verify", str(path)],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "PYTHONUTF8": "1"},
    ) as child:
        os.close(theirs)
        seen = b""
        while True:
            try:
                block = os.read(ours, 1 << 16)
            except OSError:
                break
            if not block:
                break
            seen += block
    os.close(ours)
    assert child.returncode == 0
    assert b"\\x1b]0;owned\\x07\\x1b[8m\\u202e" in seen.replace(b"\r\n", b"")
    for sequence in ("\x1b]", "\x1b[8m", "\u202e", "\x07"):
        assert sequence.encode() not in seen


def test_the_line_of_progress_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with ticker() as ticks:
        monkeypatch.setattr(
            ticks._progress, "update", lambda *_, description: said.append(description)
        )
        ticks.say("x\x1b[8m")
    assert said == ["x\\x1b[8m"]


def test_no_other_module_of_the_command_line_writes_to_a_standard_stream() -> None:
    """So that there is one place to clean."""
    folder = Path(otel_sealed.cli.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if text.startswith(("print(", "sys.stdout.write(", "sys.stderr.write(", "Console(")):
                found.append(path.name)
    assert sorted(found) == ["__init__.py", "show.py", "show.py", "show.py"]
