"""What session files of agents keep of the reasoning: counts, sizes, a pattern, no content."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_sealed.cli import main
from otel_sealed.evidence.sessions import read

DATA = Path(__file__).parents[1] / "data" / "sessions"
CLAUDE, CODEX = DATA / "claude", DATA / "codex" / "2026" / "11" / "20"
CANARY = "cAnArY-55d0b1c7e29f"
RECORD: dict[str, Any] = {
    "sessionId": CANARY,
    "type": "assistant",
    "version": CANARY,
    "message": {
        "id": CANARY,
        "content": [{"type": "thinking", "thinking": CANARY, "signature": CANARY}, CANARY],
        "usage": {"output_tokens_details": {"thinking_tokens": 7}},
    },
}


def told(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Any]]:
    status = main(["sessions", "--json", str(path)])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def file(folder: Path, *lines: Any, name: str = "s.jsonl") -> Path:
    path = folder / name
    rows = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(rows))
    return path


@pytest.mark.parametrize(
    ("path", "status", "patterns"),
    [
        (CLAUDE / "complete.jsonl", 0, ["complete", "complete"]),
        (CLAUDE / "redacted.jsonl", 0, ["redacted_with_seal"]),
        (CLAUDE / "truncated.jsonl", 1, ["truncated_to_text"]),
        (CLAUDE / "mixed.jsonl", 1, ["mixed"]),
        (CODEX / "rollout-complete.jsonl", 0, ["complete"]),
        (CODEX / "rollout-redacted.jsonl", 0, ["redacted_with_seal"]),
        (CODEX / "rollout-truncated.jsonl", 1, ["truncated_to_text"]),
        (DATA / "codex" / "rollout-old.jsonl", 1, ["truncated_to_text"]),
    ],
)
def test_each_conversation_follows_a_pattern(
    path: Path, status: int, patterns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(path, capsys)
    assert (status, patterns) == (found[0], [row["pattern"] for row in found[1]])


def test_every_key_is_there_and_the_numbers_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    path = CODEX / "rollout-redacted.jsonl"
    assert told(path, capsys)[1] == [
        {
            "file": str(path),
            "conversation": 1,
            "agent": "codex",
            "version": "0.65.0",
            "sidechain": True,
            "pattern": "redacted_with_seal",
            "turns": 2,
            "reasoning": {
                "blocks": 2,
                "sealed": 2,
                "readable": 0,
                "damaged": 0,
                "seal_bytes": 640,
                "text_bytes": 0,
                "tokens": 900,
            },
            "cached_tokens": 4096,
            "compactions": {"all": 1, "sealed": 1},
            "refused": {},
            "lines": {"all": 8, "broken": 0, "others": 0},
        }
    ]


def test_a_subagent_is_a_conversation_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    _, rows = told(CLAUDE / "complete.jsonl", capsys)
    assert [(False, 2, 2), (True, 1, 1)] == [
        (row["sidechain"], row["turns"], row["reasoning"]["blocks"]) for row in rows
    ]


def test_the_usage_that_each_block_of_a_message_repeats_counts_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two messages of two records each, 9,000 cached tokens a message."""
    _, rows = told(CLAUDE / "complete.jsonl", capsys)
    assert (2, 18_000) == (rows[0]["turns"], rows[0]["cached_tokens"])


def test_a_masked_seal_and_a_refusal_on_file_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(CLAUDE / "mixed.jsonl", capsys)[1][0]["reasoning"]["damaged"] == 1
    assert told(CLAUDE / "truncated.jsonl", capsys)[1][0]["refused"] == {"signature_invalid": 1}


def test_a_folder_is_searched_through(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", str(DATA)]) == 1
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if ".jsonl" in line]) == 9
    assert "3 conversations complete" in out
    assert "3 conversations truncated to text: no seal on file" in out
    assert "unreadable and left out: 1 line" in out
    assert "cannot be told from files" in out
    assert "\x1b" not in out


def test_a_packed_rollout_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = CODEX / "rollout-complete.jsonl"
    packed = tmp_path / "rollout.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    (expected,), (found,) = told(plain, capsys)[1], told(tmp_path, capsys)[1]
    assert {**expected, "file": str(packed)} == found


def test_a_zstd_rollout_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Codex packs its older rollouts so."""
    plain = CODEX / "rollout-complete.jsonl"
    packed = tmp_path / "rollout.jsonl.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    (expected,), (found,) = told(plain, capsys)[1], told(tmp_path, capsys)[1]
    assert {**expected, "file": str(packed)} == found
    packed.write_bytes(packed.read_bytes()[:4] + b"damaged beyond repair")
    assert main(["sessions", str(packed)]) == 2
    assert "a compressed file that is cut off or damaged" in capsys.readouterr().err


def test_broken_lines_and_lines_of_others_are_counted(tmp_path: Path) -> None:
    path = file(tmp_path, RECORD, b"\xff\xfe", b'{"type": "assis', [1], {"other": 1}, b"", RECORD)
    found = read(path)
    assert (7, 3, 1) == (found.lines, found.broken, found.others)
    assert found.sessions[0].kept.blocks == 2


@pytest.mark.parametrize("kind", [[], {}, ["message"], None, 1])
def test_a_type_that_is_no_text_is_a_line_of_others(tmp_path: Path, kind: object) -> None:
    lines = ({"type": kind}, {"type": kind, "payload": {}}, {"type": kind, "sessionId": 1})
    found = read(file(tmp_path, *lines, RECORD))
    assert (4, 3, 1) == (found.lines, found.others, len(found.sessions))


def test_a_line_too_long_is_one_broken_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otel_sealed.wire.intake.MAX_LINE", 600)
    found = read(file(tmp_path, {**RECORD, "padding": "x" * 2000}, RECORD))
    assert (2, 1, 1) == (found.lines, found.broken, len(found.sessions))


def test_no_word_of_a_session_goes_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path, RECORD, {"type": "session_meta", "payload": {"cli_version": CANARY}})
    assert main(["sessions", "--json", str(path)]) == 0
    assert main(["sessions", str(path)]) == 0
    out, err = capsys.readouterr()
    assert CANARY.lower() not in (out + err).lower()
    assert '"tokens": 7' in out
    assert '"version": "other"' in out


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([], "holds no session of a known agent"),
        ([{"type": "message"}], ""),
        ([{"role": "user", "content": CANARY}], "holds no session of a known agent"),
    ],
)
def test_a_file_without_sessions_is_unusable(
    lines: list[Any], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, *lines)
    status = main(["sessions", str(path)])
    err = capsys.readouterr().err
    assert (2 if what else 0, bool(what)) == (status, bool(err))
    assert what in err
    assert CANARY not in err


def test_a_place_without_anything_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "nowhere"]) == 2
    assert capsys.readouterr().err == "otel-sealed: nowhere: no such file or folder\n"


def test_one_unusable_file_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file(tmp_path, RECORD, name="a.jsonl")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"x" * 99_999)[:-20])
    assert main(["sessions", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "a.jsonl" in out
    assert "b.jsonl.gz: a compressed file that is cut off or damaged" in err


def test_a_big_file_streams(tmp_path: Path) -> None:
    """8 MB of records need no more memory than a few of them."""
    line = json.dumps({**RECORD, "padding": "x" * 8000}).encode() + b"\n"
    path = tmp_path / "big.jsonl"
    path.write_bytes(line * 1000)
    read(path)  # imports and caches
    tracemalloc.start()
    found = read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.sessions[0].kept.blocks == 1000
    assert peak < 1_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("type", "message", "content", "payload", "usage", "info", "summary")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
LINES = st.builds(
    lambda own, more: json.dumps({**more, **own}, ensure_ascii=False).encode("utf-8", "replace"),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(("assistant", "session_meta", "response_item", "compacted")),
            "sessionId": st.sampled_from(("s", None)),
        }
    ),
    st.dictionaries(st.sampled_from(("message", "payload", "version", "subtype")), JSON),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.one_of(st.binary(), st.lists(LINES, max_size=6).map(b"\n".join)))
def test_any_bytes_are_read_or_refused_in_one_line(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    assert main(["sessions", str(path)]) in (0, 1, 2)
    err = capsys.readouterr().err
    assert "our own fault" not in err
    assert len(err.splitlines()) <= 1
