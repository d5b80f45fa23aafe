"""Files that others made cost what their bytes on disk are worth, and no other file is lost."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main
from otel_sealed.evidence import har, vcr
from otel_sealed.triage import files
from otel_sealed.triage.index import Index
from otel_sealed.wire import intake
from tests.triage.golden import make

GOLDEN = Path(make.__file__).parent
RECORD = (GOLDEN / "otlp.jsonl").read_bytes()
TURN = {
    "api": "messages",
    "provider": "anthropic",
    "request": {"model": "claude-opus-5", "max_tokens": 9, "messages": []},
    "response": {"content": [{"type": "thinking", "thinking": "t", "signature": "c2ln" * 9}]},
}


class Parsed:
    """Bytes handed to the JSON parser."""

    count = 0


@pytest.fixture(name="parsed")
def _parsed(monkeypatch: pytest.MonkeyPatch) -> Parsed:
    counted = Parsed()
    real = intake.value_of

    def value_of(data: bytes) -> Any:
        counted.count += len(data)
        return real(data)

    for module in (intake, har):
        monkeypatch.setattr(module, "value_of", value_of)
    return counted


def packed(parts: Iterator[bytes]) -> bytes:
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*map(pack.compress, parts), pack.flush()])


MEGABYTE = 1 << 20
BOMBS: dict[str, Callable[[], Iterator[bytes]]] = {
    "one line": lambda: iter([b'{"a":"', *[b"x" * MEGABYTE] * 90, b'"}\n']),
    "many values": lambda: iter([b"[[]", *[b",[]" * (MEGABYTE // 3)] * 90, b"]\n"]),
    "tiny lines": lambda: iter([b"[]\n" * (MEGABYTE // 3)] * 90),
    "no end": lambda: iter([b"[" * MEGABYTE] * 90),
}


RATIO = "unpacks to more than 200 times its size: not read further"
WHY = {"tiny lines": "100,000 lines and no record among them: not read further"}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_packed_file_is_unpacked_up_to_a_ratio_and_named(
    bomb: str, tmp_path: Path, parsed: Parsed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside it the record of another file is read in whole."""
    data = packed(BOMBS[bomb]())
    (tmp_path / "a.jsonl.gz").write_bytes(data)
    (tmp_path / "b.jsonl").write_bytes(RECORD)
    assert main(["triage", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "1 incident in 2 calls in 2 files" in out
    assert f"otel-sealed: {tmp_path}/a.jsonl.gz: {WHY.get(bomb, RATIO)}" in err
    inflated = intake.FREE + intake.RATIO * (len(data) + (1 << 17))
    assert parsed.count < 2 * inflated


def test_a_packed_file_of_ordinary_lines_is_read_in_whole(tmp_path: Path) -> None:
    lines = b"".join(RECORD.replace(make.SPANS[0].encode(), b"%016x" % n) for n in range(1, 2500))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    with Index() as index:
        index.update([tmp_path / "a.jsonl.gz"])
        stats = index.stats()
    assert len(lines) > intake.FREE
    assert (stats.calls, stats.broken) == (2500, 0)


@pytest.mark.parametrize("bomb", ["one line", "many values"])
def test_verify_names_a_file_that_unpacks_to_too_much_and_judges_the_next(
    bomb: str, tmp_path: Path, parsed: Parsed, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_bytes(packed(BOMBS[bomb]()))
    (tmp_path / "b").write_text(json.dumps(TURN), "utf-8")
    assert main(["verify", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    out, err = capsys.readouterr()
    assert (
        err == f"otel-sealed: {tmp_path}/a: unpacks to more than 200 times its size (unpack it)\n"
    )
    assert out.startswith(f"{tmp_path}/b: nothing sealed was due or sent")
    assert parsed.count == len(json.dumps(TURN))


@pytest.mark.parametrize("shape", ["document", "line", "lines", "tiny", "broken"])
def test_bytes_given_to_the_parser_grow_with_the_file_alone(
    shape: str, tmp_path: Path, parsed: Parsed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file that is many blocks long, whichever shape it has."""
    monkeypatch.setattr(files, "PIECE", 1000)
    shapes: dict[str, Callable[[int], bytes]] = {
        "document": lambda n: b"{\n" + b",\n".join(b'"a": "%s"' % (b"x" * 90) for _ in range(n)),
        "line": lambda n: b'{"a":"' + b"x" * (100 * n) + b'"}\n',
        "lines": lambda n: b'{"a":1}\n' * n,
        "tiny": lambda n: b"[]\n" * n,
        "broken": lambda n: b'{"a":\n{"a":1}\n' * n,
    }
    counts = []
    for size in (500, 2000):
        data = shapes[shape](size)
        (tmp_path / f"{size}.jsonl").write_bytes(data)
        parsed.count = 0
        with Index() as index:
            index.update([tmp_path / f"{size}.jsonl"])
        assert parsed.count <= 3 * len(data)
        counts.append(parsed.count)
    assert counts[1] <= 4.5 * counts[0]


def test_a_line_that_is_too_long_costs_that_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(intake, "MAX_LINE", 100_000)
    monkeypatch.setattr(files, "PIECE", 10_000)
    first, second, event = RECORD.splitlines(keepends=True)
    long = b'{"resourceSpans":"' + b"x" * 150_000 + b'"}\n'
    path = tmp_path / "x.jsonl"
    path.write_bytes(first + long + second + event)
    assert main(["triage", str(path)]) == 2
    out, err = capsys.readouterr()
    assert "1 incident in 2 calls" in out
    assert err == f"otel-sealed: {path}, line 2: longer than 64 MiB: not read\n"
    with Index() as index:
        index.update([path])
        assert [(flaw.line, flaw.refused) for flaw in index.flaws()] == [(2, True)]


def test_more_broken_lines_than_are_named_are_counted(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(RECORD + b"[]\n" * 5000)
    with Index() as index:
        index.update([tmp_path / "x.jsonl"])
        assert (index.stats().broken, len(index.flaws())) == (5000, 100)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"resourceSpans":' + b"[" * 50_000, "nested too deeply"),
        (b'{"resourceSpans":[' + b"[]," * (1 << 16) + b"[]]}", "more than"),
    ],
    ids=["deep", "many"],
)
@pytest.mark.parametrize("command", ["triage", "verify"])
def test_a_json_text_that_would_make_too_much_is_named(
    text: bytes,
    why: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(intake, "MAX_NODES", 1 << 16)
    path = tmp_path / "x.jsonl"
    path.write_bytes(text + b"\n")
    assert main([command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"{path}, line 1: {why}" in err


def test_commas_of_a_text_are_no_values() -> None:
    assert intake.values(json.dumps({"a": ",[{" * intake.MAX_NODES}).encode()) == 2


def test_a_file_that_may_not_be_read_costs_the_others_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(RECORD)
    missing = tmp_path / "b.jsonl"
    missing.symlink_to(tmp_path / "nowhere")
    with Index() as index:
        index.update([missing, tmp_path / "a.jsonl"])
        assert index.stats().calls == 2
        assert [error.line() for error in index.refused] == [
            f"{missing}: No such file or directory"
        ]
    assert main(["triage", str(tmp_path / "a.jsonl"), os.devnull]) in (1, 2)
    capsys.readouterr()


def test_a_file_is_found_again_among_many_by_one_look(tmp_path: Path) -> None:
    """Two hundred files of a folder; rows that are looked at, not pairs of them."""
    for number in range(200):
        (tmp_path / f"{number}.jsonl").write_bytes(b"[]\n" * (1 + number % 3))
    with Index(tmp_path / "index") as index:
        paths = files.found_in([tmp_path])
        index.update(paths)
        assert index.stats().files == 200
        steps: list[str] = []
        index._db.set_trace_callback(steps.append)
        index.update(paths)
        index._db.set_trace_callback(None)
    assert len(steps) == 1


# ------------------------------------------------------------------------------------- cassettes


def cassette(levels: int, each: int = 10) -> bytes:
    """A cassette of some 900 bytes whose aliases expand by `each` a level."""
    lines = ["a0: &a0 [" + ",".join("x" * each) + "]"]
    lines += [
        f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * each)}]" for level in range(1, levels)
    ]
    lines.append(
        "interactions:\n- request: {method: POST, uri: https://api.anthropic.com/v1/messages,"
        f" headers: {{}}, parsed_body: {{model: claude-opus-5, max_tokens: 9, messages: [{{role:"
        f" user, content: *a{levels - 1}}}]}}}}\n"
        "  response: {status: {code: 200}, headers: {}, parsed_body: {content: []}}\n"
    )
    return "\n".join(lines).encode()


@pytest.mark.parametrize("command", ["verify", "triage"])
@pytest.mark.parametrize("levels", [6, 9, 12])
def test_aliases_that_expand_are_refused_before_they_are_walked(
    command: str, levels: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(cassette(levels))
    assert main([command, str(path)]) == 2
    out, err = capsys.readouterr()
    why = "its values come to more than a file of its size can hold (write it without aliases)"
    assert (out, err) == ("", f"otel-sealed: {path}: {why}\n")


def test_an_alias_of_a_header_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As recorders write a list that two requests share."""
    path = tmp_path / "x.yaml"
    path.write_bytes(cassette(1))
    assert main(["verify", str(path)]) == 0
    assert "nothing sealed was due or sent" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "&a [*a]",
        "&a {b: *a}",
        "{a: &a [" + "x," * 9 + "x], <<: [" + "*a," * 99 + "*a]}",
    ],
)
def test_a_value_that_holds_itself_is_no_document(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(f"interactions: {text}\n", "utf-8")
    assert main(["verify", str(path)]) == 2


def test_each_container_is_weighed_once_however_often_it_is_used() -> None:
    """Levels of ten uses each: a thousand million values, ten lists."""

    class Walked(list[Any]):
        walks = 0

        def __iter__(self) -> Iterator[Any]:
            Walked.walks += 1
            return super().__iter__()

    value: Any = Walked(["x"] * 10)
    for _ in range(8):
        value = Walked([value] * 10)
    assert vcr.weigh(value, 10**12) == 2_111_111_111
    assert Walked.walks == 18


def test_numbers_of_yaml_that_json_has_not_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(
        "a: [1:30:00, 0x1F, 017, 1_000, 2026-01-01, yes, .inf, 12, -3, 0.5, 1.0e-05, true, null]\n"
        "b: !!int 1:30\nc: !!python/tuple [1]\nd: {<<: {e: 1}}\n",
        "utf-8",
    )
    with path.open("rb") as file:
        found = vcr.from_yaml(file, "x")
    texts = ["1:30:00", "0x1F", "017", "1_000", "2026-01-01", "yes", ".inf"]
    assert found == {
        "a": [*texts, 12, -3, 0.5, 1e-05, True, None],
        "b": "1:30",
        "c": [1],
        "d": {"<<": {"e": 1}},
    }


# ------------------------------------------------------------------------------------------ flows


def netstring(payload: bytes, kind: bytes) -> bytes:
    return b"%d:%s%s" % (len(payload), payload, kind)


@pytest.mark.parametrize(
    "data",
    [
        b"12:12:",
        b"999999999999:12:x}",
        b"67108863:1:a,",
        netstring(b"99999:a,", b"}"),
        netstring(netstring(b"999:", b","), b"}"),
        b"0" * 12 + b":0:}",
    ],
)
def test_a_length_that_is_not_true_ends_the_file(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flows"
    path.write_bytes(data + b"1:1:x,")
    assert main(["verify", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_values_inside_each_other_and_beside_each_other_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = b""
    for _ in range(40):
        deep = netstring(deep, b"]")
    monkeypatch.setattr("otel_sealed.evidence.flows.MAX_NODES", 1000)
    for data in (deep, netstring(b"0:~" * 2000, b"]")):
        path = tmp_path / "flows"
        path.write_bytes(data)
        assert main(["verify", str(path)]) == 2
        assert f"{path}, flow 1: cut off or damaged" in capsys.readouterr().err
