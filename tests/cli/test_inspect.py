"""`otel-sealed inspect`: one response from a file or from standard input."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from otel_sealed.cli import main
from otel_sealed.wire import intake

MESSAGE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [
        {"type": "thinking", "thinking": "secret thoughts", "signature": "QUJD" * 20},
        {"type": "text", "text": "secret answer"},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 5},
}


def test_a_file_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reply.json"
    path.write_text(json.dumps(MESSAGE), "utf-8")
    assert main(["inspect", str(path)]) == 0
    assert capsys.readouterr().out == (
        "anthropic response, complete, claude-opus-5, stopped by end_turn\n"
        "  content.0  thinking  anthropic.thinking.signature 80 B\n"
        "  content.1  text      -\n"
        "1 sealed value, 80 bytes in all\n"
        "usage: input 3, output 5\n"
    )


def test_standard_input_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = io.BytesIO(json.dumps(MESSAGE).encode())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=data))
    assert main(["inspect", "-", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dialect"] == "anthropic"
    assert found["complete"] is True
    assert found["parts"][0] == {
        "path": "content.0",
        "type": "thinking",
        "kind": "reasoning",
        "seals": [{"artifact": "anthropic.thinking.signature", "state": "present", "size": 80}],
        "known": True,
    }
    assert found["usage"]["output_tokens"] == 5


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"secret", "neither JSON nor an event stream"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"", "neither JSON nor an event stream"),
        (b"{}", "no response of a known provider"),
        (b"[]", "no response of a known provider"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"api": "messages", "request": {}}', "an exchange transcript"),
    ],
)
def test_unusable_input_is_one_line(
    data: bytes, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "reply.json"
    path.write_bytes(data)
    assert main(["inspect", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"otel-sealed: {path}: {reason}")
    assert err.count("\n") == 1
    assert "secret" not in err


class Endless(io.RawIOBase):
    """A stream without an end that counts what was asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def read(self, size: int = -1, /) -> bytes:
        self.asked.append(size)
        if size < 0:
            raise MemoryError
        return b" " * size


def test_of_a_stream_without_an_end_no_more_is_read_than_a_response_may_have(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(intake, "MAX_LINE", 1000)
    stream = Endless()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
    assert main(["inspect", "-"]) == 2
    assert stream.asked == [1001]
    assert capsys.readouterr().err == "otel-sealed: standard input: longer than 64 MiB\n"


def test_a_file_without_an_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(intake, "MAX_LINE", 1 << 16)
    assert main(["inspect", "/dev/zero"]) == 2
    assert capsys.readouterr().err == "otel-sealed: /dev/zero: longer than 64 MiB\n"


def test_a_packed_file_is_read_up_to_a_ratio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "reply.json.gz"
    path.write_bytes(gzip.compress(json.dumps(MESSAGE).encode()))
    assert main(["inspect", str(path)]) == 0
    assert capsys.readouterr().out.startswith("anthropic response, complete")
    path.write_bytes(gzip.compress(b" " * (intake.FREE + (8 << 20))))
    assert main(["inspect", str(path)]) == 2
    assert "unpacks to more than 200 times its size" in capsys.readouterr().err


def test_a_text_of_too_many_values_is_refused_before_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(intake, "MAX_NODES", 50)
    path = tmp_path / "reply.json"
    path.write_text(json.dumps(MESSAGE | {"content": [[]] * 60}), "utf-8")
    assert main(["inspect", str(path)]) == 2
    assert "more than 4 Mi JSON values in one text" in capsys.readouterr().err
