"""`otel-sealed verify`: rows, exit status, and one line for every input that cannot be used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main

CASES = Path(__file__).parents[1] / "cases"
LOSS, CLEAN = str(CASES / "A01.jsonl"), str(CASES / "A04.jsonl")
GOOD: dict[str, Any] = {
    "provider": "anthropic",
    "api": "messages",
    "request": {"model": "claude-opus-5", "messages": [{"role": "user", "content": "Go."}]},
    "status": 200,
}
CANARY = "cAnArY-9f31c0de77"


def transcript(folder: Path, *lines: Any, name: str = "t.jsonl") -> str:
    path = folder / name
    rows = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    return str(path)


# ----------------------------------------------------------------------------- what it prints


def test_every_row_has_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json", LOSS]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = {
        "file": LOSS,
        "exchange": 1,
        "artifact": "anthropic.redacted_thinking.data",
        "fate": "dropped",
        "verdict": "breaks",
        "rule": "A2",
        "disputed": False,
        "cause": None,
        "locus": "process",
        "received": {"exchange": 0, "path": "content.1"},
        "returned": None,
        "size": {"received": 60, "returned": None},
        "provider_verdict": "unreported",
        "rejection": None,
    }
    assert expected == rows[-1]
    assert {tuple(expected)} == {tuple(row) for row in rows}
    assert {"path": "messages.1.content.0"} == rows[0]["returned"]


def test_every_turn_that_the_server_holds_has_a_row_however_many_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asks: dict[str, Any] = {"model": "gpt-5.6-sol", "store": True, "input": "Go on."}
    lines = []
    for number in range(90):
        item = {"type": "reasoning", "id": f"rs_{number}", "encrypted_content": f"{number:064x}"}
        answer = {"id": f"resp_{number}", "output": [item], "status": "completed"}
        before = {"previous_response_id": f"resp_{number - 1}"} if number else {}
        lines.append({"provider": "openai", "api": "responses", "status": 200})
        lines[-1] |= {"request": asks | before, "response": answer}
    assert main(["verify", "--json", transcript(tmp_path, *lines)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    last = [row["received"]["exchange"] for row in rows if row["exchange"] == 89]
    assert [*range(89)] == last
    assert {"server_held"} == {row["fate"] for row in rows}


def test_the_table_says_what_came_in_what_went_back_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["verify", LOSS]) == 1
    out = capsys.readouterr().out
    lost = next(line for line in out.splitlines() if "redacted" in line)
    assert "line 1 content.1 60 B" in lost
    assert "nothing" in lost
    assert "breaks A2" in lost
    assert "A2: redacted thinking" in out
    assert "(docs/rules.md#a2)" in out
    assert "3 rows; 1 degrades or breaks" in out


def test_nothing_in_a_pipe_is_coloured_or_folded(capfd: pytest.CaptureFixture[str]) -> None:
    main(["verify", LOSS])
    out, err = capfd.readouterr()
    assert "\x1b" not in out + err
    assert len([line for line in out.splitlines() if "anthropic." in line]) == 3


def test_a_row_that_a_narrow_terminal_would_fold_has_three_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of seven columns would break inside names and places."""
    monkeypatch.setattr("otel_sealed.cli.show._PIPE_WIDTH", 80)
    assert main(["verify", str(CASES / "A10.jsonl")]) == 1
    assert capsys.readouterr().out.splitlines()[:3] == [
        "line 2  anthropic.thinking.signature substituted: degrades A1",
        "  came in    line 1 content.0 60 B",
        "  went back  messages.1.content.0.text",
    ]


def test_the_exit_status_is_that_of_the_worst_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", CLEAN]) == 0
    assert main(["verify", CLEAN, LOSS]) == 1
    assert main(["verify", LOSS, "nowhere.jsonl", CLEAN]) == 2
    assert "A04.jsonl: 2 rows; 0 degrade or break" in capsys.readouterr().out


def test_a_file_is_judged_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What another file of the same command brought is not known in this one."""
    first, second = Path(LOSS).read_text("utf-8").splitlines()
    files = [
        transcript(tmp_path, json.loads(first), name="1.jsonl"),
        transcript(tmp_path, json.loads(second), name="2.jsonl"),
    ]
    assert main(["verify", "--json", *files]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"unknown"} == {row["fate"] for row in rows}


def test_a_file_without_seals_has_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = transcript(tmp_path, GOOD)
    assert main(["verify", path]) == 0
    assert capsys.readouterr().out == f"{path}: nothing sealed was due or sent\n"
    assert main(["verify", "--json", path]) == 0
    assert capsys.readouterr().out == ""


def test_empty_lines_and_a_byte_order_mark_are_let_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty line counts as a line: `exchange` is the line's own number."""
    first, second = (line.encode() for line in Path(LOSS).read_text("utf-8").splitlines())
    path = transcript(tmp_path, b"\xef\xbb\xbf" + first, b"", second, b"  ")
    assert main(["verify", "--json", path]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {2} == {row["exchange"] for row in rows}


def test_keys_nobody_knows_and_nulls_are_let_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = dict.fromkeys(("operation", "model", "host", "account", "betas", "complete"))
    odd = {"conversation": "\ud800", "note": [1]}
    assert main(["verify", transcript(tmp_path, {**GOOD, **nothing, **odd})]) == 0
    assert capsys.readouterr().err == ""


def test_an_intact_value_that_was_shown_before_is_counted_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (json.loads(x) for x in Path(CLEAN).read_text("utf-8").splitlines())
    more = {"role": "assistant", "content": [{"type": "text", "text": "Both are right, I think."}]}
    answer = {"type": "message", "model": "claude-opus-5", **more}
    history = [*second["request"]["messages"], more, {"role": "user", "content": "Sure?"}]
    third = {**second, "request": {**second["request"], "messages": history}}
    path = transcript(tmp_path, first, {**second, "response": answer}, third)
    assert main(["verify", path]) == 0
    out = capsys.readouterr().out
    assert "4 rows, 2 of them intact once more and not shown" in out


# ---------------------------------------------------------------------------------- bad input

DEEP = b'{"api":"messages","request":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
BAD: dict[str, tuple[list[Any], str]] = {
    "broken": ([GOOD, b'{"api": "messages", "request": {"' + CANARY.encode()], "line 2: not valid"),
    "text": ([CANARY.encode() * 3], "line 1: not valid JSON at character 1"),
    "array": ([[GOOD, CANARY]], "line 1: not a JSON object"),
    "string": ([CANARY], "line 1: not a JSON object"),
    "no api": ([{"request": {}, "x": CANARY}], "line 1: api is missing"),
    "null api": ([{**GOOD, "api": None}], "line 1: api has the wrong type"),
    "unknown api": ([GOOD, GOOD, {**GOOD, "api": CANARY}], "line 3: api is not known"),
    "api to come": ([{**GOOD, "api": "realtime"}], "line 1: its api is not read by this version"),
    "no body": ([{"api": "messages", "reqest": {CANARY: 1}}], "none of request, response and"),
    "request": ([{**GOOD, "request": [CANARY]}], "line 1: request is not a JSON object"),
    "response": ([{**GOOD, "response": 7}], "line 1: response is not a JSON object, array or"),
    "events": ([{**GOOD, "events": {CANARY: 1}}], "line 1: events is not a JSON array"),
    "status": ([{**GOOD, "status": CANARY}], "line 1: status has the wrong type (wanted: int)"),
    "status bool": ([{**GOOD, "status": True}], "line 1: status has the wrong type (wanted: int)"),
    "complete": ([{**GOOD, "complete": "no"}], "line 1: complete has the wrong type"),
    "betas": ([{**GOOD, "betas": [CANARY, 1]}], "line 1: betas has the wrong type"),
    "account": ([{**GOOD, "account": {CANARY: 1}}], "line 1: account has the wrong type"),
    "empty": ([], "holds no exchange"),
    "blank": ([b"", b" \t"], "holds no exchange"),
    "binary": ([b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9], "line 1: not UTF-8 text"),
    "zeros": ([b"\0" * 999], "line 1: not valid JSON"),
    "deep": ([DEEP], "line 1: nested too deeply"),
    "number": ([b'{"api":"messages","status":' + b"9" * 5000 + b"}"], "line 1: holds a number"),
}


@pytest.mark.parametrize("name", BAD)
def test_unusable_input_is_named_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, line and reason on stderr, exit status 2, and never a word of what is in the file."""
    lines, reason = BAD[name]
    path = transcript(tmp_path, *lines)
    assert main(["verify", "--json", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"otel-sealed: {path}")
    assert reason in err
    assert CANARY.lower() not in err.lower()


def test_a_missing_file_and_a_folder_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, reason in ((tmp_path / "nowhere", "No such file"), (tmp_path, "Is a directory")):
        assert main(["verify", str(path)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"otel-sealed: {path}: {reason}")


def test_what_stands_before_an_unusable_line_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in Path(LOSS).read_text("utf-8").splitlines()]
    path = transcript(tmp_path, *lines, b"{")
    assert main(["verify", path]) == 2
    out, err = capsys.readouterr()
    assert "breaks A2" in out
    assert f"{path}, line 3: not valid JSON" in err


def test_unreadable_events_are_unusable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = transcript(tmp_path, {**GOOD, "events": ["{" + CANARY]})
    assert main(["verify", path]) == 2
    assert f"{path}, line 1: cannot be read: event.json\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "body",
    [
        {"messages": 1},
        {"messages": [None, 1, "x", [], {"role": 1, "content": {"type": []}}]},
        {"messages": [{"role": "assistant", "content": [{"type": "thinking", "signature": 1}]}]},
        {"messages": [{"role": "assistant", "content": "\ud83d alone"}], "tools": "x"},
    ],
)
def test_a_body_of_any_shape_is_no_error(
    body: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the envelope is checked; a body is the wire's, and the wire may say anything."""
    path = transcript(tmp_path, {**GOOD, "request": body, "response": body, "events": [body, 1]})
    assert main(["verify", "--json", path]) == 0
    assert capsys.readouterr().err == ""


def crossed(folder: Path) -> str:
    """A turn of one model sent on to another that no row of the built-in table names."""
    thought = {"type": "thinking", "thinking": "", "signature": "c2VhbGVk" * 8}
    asked = GOOD["request"]["messages"]
    said = [{"role": "assistant", "content": [thought]}, {"role": "user", "content": "And now?"}]
    response = {"content": [thought], "model": "claude-sonnet-5", "stop_reason": "end_turn"}
    return transcript(
        folder,
        {**GOOD, "response": response},
        {**GOOD, "request": {"model": "claude-opus-5", "messages": [*asked, *said]}},
    )


FAMILY = """\
[[family]]
vendor = "anthropic"
producer = "claude-sonnet-5"
reader = "claude-opus-5"
reads = "dropped"
source = "measured"
checked = 2026-11-29
"""


@pytest.mark.parametrize("given", ["option", "variable", "neither"])
def test_a_reviewed_file_of_families_is_part_of_the_judgement(
    given: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = tmp_path / "families.toml"
    rows.write_text(FAMILY, "utf-8")
    if given == "variable":
        monkeypatch.setenv("OTEL_SEALED_FAMILIES", str(rows))
    option = ["--families", str(rows)] if given == "option" else []
    assert main(["verify", "--json", *option, crossed(tmp_path)]) == (given != "neither")
    verdicts = [json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()]
    assert (verdicts[0] == "degrades") is (given != "neither")


def test_a_file_of_families_that_cannot_be_used_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "families.toml"
    rows.write_text(FAMILY.replace("vendor", "vender"), "utf-8")
    assert main(["verify", "--families", str(rows), LOSS]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"otel-sealed: {rows}: entry 1: vender is no key of an entry")


def test_verify_imports_neither_opentelemetry_nor_an_sdk() -> None:
    """It has to be quick, and to run where only the extra `cli` is installed."""
    code = (
        "import sys; from otel_sealed.cli import main; main(['verify', sys.argv[1]]);"
        "print(sorted({*'opentelemetry anthropic openai google wrapt'.split()} & {*sys.modules}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, LOSS], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_what_could_not_be_judged_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second line resumes a conversation whose first turn is in no file."""
    path = tmp_path / "x.jsonl"
    seal = {"type": "thinking", "thinking": "t", "signature": "c2ln" * 30}
    text = {"type": "text", "text": "It is there."}
    ask, more = {"role": "user", "content": "x"}, {"role": "user", "content": "y"}
    messages = [ask, {"role": "assistant", "content": [seal, text]}, more]
    request = {"model": "claude-opus-5", "max_tokens": 9, "messages": messages}
    line = {"api": "messages", "provider": "anthropic", "request": request}
    path.write_text(json.dumps(line) + "\n", "utf-8")
    assert main(["verify", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == (
        "1 row could not be judged: came in another process, or before the ledger began [X2]"
    )
