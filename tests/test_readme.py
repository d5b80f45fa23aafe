"""The README tells the truth: its commands run, its code runs, its tables are the program's own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main
from otel_sealed.model import Fate, Verdict
from otel_sealed.telemetry.settings import PREFIX, Settings
from otel_sealed.testing import StrictProvider
from otel_sealed.transcript import read

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text("utf-8")
HEAD = TEXT.splitlines()[:40]
DEMO = "python -m pip install '.[demo]' && otel-sealed demo"
TESTS = "python -m pip install -e '.[dev]' && python -m pytest"


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)


def rows_behind(marker: str) -> list[list[str]]:
    """The cells of the table behind a marker, without its head."""
    table = TEXT.split(f"<!-- {marker} -->\n")[1].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[2:]]


# --------------------------------------------------------------------------------- the commands


def test_the_first_command_stands_by_line_15() -> None:
    assert DEMO in HEAD[:15]


def test_the_second_command_is_the_one_ci_runs() -> None:
    """`.ci/run` reads it from behind this marker."""
    assert f"<!-- tests -->\n```bash\n{TESTS}\n```\n" in TEXT


def test_there_are_these_two_commands_and_no_others() -> None:
    assert blocks("bash") == [DEMO, TESTS]


def test_the_first_40_lines_hold_all_a_newcomer_needs() -> None:
    head = "\n".join(HEAD)
    assert HEAD[0] == "# otel-sealed"
    assert "**Know, on every call in production" in HEAD[2]
    assert "Not for" in head
    assert blocks("bash", head) == [DEMO, TESTS]
    assert "Zero code" in head
    assert "| Recorded | Never recorded |" in head
    assert [4] == [len(block.splitlines()) for block in blocks("text", head)]
    assert [4] == [len(block.splitlines()) for block in blocks("python", head)]


def test_the_demo_runs_and_its_table_is_the_one_shown(tmp_path: Path) -> None:
    """Behind the installation, which a test does not repeat, the command is run as it stands."""
    for name in ("anthropic", "openai", "google.genai"):
        pytest.importorskip(name)
    (shell,) = (block for block in blocks("bash") if block == DEMO)
    command = shlex.split(shell.partition(" && ")[2])
    assert command == ["otel-sealed", "demo"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8"}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    printed = {line.rstrip() for line in ran.stdout.splitlines()}
    (shown,) = (block.splitlines() for block in blocks("text"))
    assert [line for line in shown if line not in printed] == []
    assert sum("breaks" in line for line in shown) == 1
    assert (tmp_path / ".otel-sealed").is_dir()


# ------------------------------------------------------------------------------------- the code


def test_the_code_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every block, one after the other as one program, against the strict provider."""
    anthropic = pytest.importorskip("anthropic")
    import otel_sealed

    made: list[Any] = []
    begin = anthropic.Anthropic.__init__

    def kept(client: Any, *args: Any, **kwargs: Any) -> None:
        begin(client, *args, **kwargs)
        made.append(client)

    monkeypatch.setattr(anthropic.Anthropic, "__init__", kept)
    names: dict[str, object] = {}
    with StrictProvider() as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "readme")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        try:
            for block in blocks("python"):
                exec(compile(block, README.name, "exec"), names)  # noqa: S102 - our own text
        finally:
            otel_sealed.uninstrument()
            # A program ends and its sockets with it; here they would outlive it.
            for client in made:
                client.close()
        (exchange,) = provider.exchanges
    assert exchange.status == 200
    assert "anthropic.thinking.signature" in capsys.readouterr().out


def test_the_transcript_is_one_that_verify_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = blocks("json")
    path = tmp_path / "transcript.jsonl"
    path.write_text(text, "utf-8")
    (exchange,) = read(path)
    assert {"provider", "api", "request", "response", "events", "status", "complete"} == {
        *json.loads(text)
    }
    assert exchange.provider == "anthropic"
    assert main(["verify", str(path)]) == 0
    assert "nothing sealed" in capsys.readouterr().out


# ----------------------------------------------------------------------------------- the tables


def test_the_fates_are_those_of_the_model_in_their_order() -> None:
    assert [f"`{fate.value}`" for fate in Fate] == [row[0] for row in rows_behind("fates")]


def test_the_verdicts_are_those_of_the_model_in_their_order() -> None:
    assert [f"`{verdict.value}`" for verdict in Verdict] == [
        row[0] for row in rows_behind("verdicts")
    ]


def test_the_settings_listed_exist_and_have_these_defaults() -> None:
    listed = {row[0].strip("`"): row[1].strip("`") for row in rows_behind("settings")}
    assert len(listed) == 5
    for variable, shown in listed.items():
        default = Settings.model_fields[variable.removeprefix(PREFIX).lower()].default
        expected = "random" if default is None else str(default)
        assert expected.lower() == shown.lower()


def test_every_command_is_listed() -> None:
    from otel_sealed.cli.app import app

    names = [command.callback.__name__ for command in app.registered_commands if command.callback]
    listed = [row[0].strip("`").split()[1] for row in rows_behind("commands")]
    assert names == listed


def test_what_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert links != []
    assert [link for link in links if not (README.parent / link).exists()] == []
