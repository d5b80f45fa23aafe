"""`otel-sealed triage` at the command line."""

from __future__ import annotations

import gzip
import io
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from otel_sealed.cli import main
from tests.triage.golden import make

GOLDEN = Path(make.__file__).parent


class Stdin(io.StringIO):
    """Standard input with the bytes behind it."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._bytes = io.BytesIO(data)

    @property
    def buffer(self) -> io.BytesIO:
        return self._bytes


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_one_incident_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", str(GOLDEN / "otlp.jsonl")]) == 1
    told = capsys.readouterr()
    assert told.err == ""
    for words in (
        "1 incident in 2 calls in 1 file",
        "anthropic.redacted_thinking.data dropped: breaks A2",
        "turn 2",
        f"trace {make.TRACES[1]} span {make.SPANS[1]}",
        "2,876 B",
        "docs/rules.md#a2",
        "1 of 2 affected since; still growing",
        "refused, and nothing was accepted since (thinking_modified)",
        "this process: it was changed before it was sent (proven at the boundary)",
        "service checkout 1.2.3; anthropic=2.14.0; opentelemetry-sdk 1.45.2",
        "1. send the turn as it was received",
        "start a new conversation from the last good turn; loses everything said since",
    ):
        assert words in told.out, words
    assert "\x1b" not in told.out


def test_json_is_an_object_a_line_with_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", "--json", str(GOLDEN / "otlp.jsonl")]) == 1
    (found,) = objects(capsys.readouterr().out)
    assert found["kind"] == "incident"
    assert (found["artifact"], found["fate"], found["rule"], found["locus"]) == (
        "anthropic.redacted_thinking.data",
        "dropped",
        "A2",
        "process",
    )
    assert found["first_bad"]["at"] == "2026-11-30T01:34:12.172+00:00"
    assert found["outcome"] == "refused"
    assert found["age_s"] == pytest.approx(2.725231)
    assert found["remedies"][0]["loses"].startswith("nothing")


def test_nothing_found_is_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", str(GOLDEN / "otlp.jsonl"), "--fate", "stale"]) == 0
    assert "0 incidents" in capsys.readouterr().out


@pytest.mark.parametrize("packed", [False, True])
def test_a_record_can_be_piped_in(
    packed: bool,  # noqa: FBT001 - a parameter of the test
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = (GOLDEN / "otlp.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", Stdin(gzip.compress(data) if packed else data))
    assert main(["triage", "-", "--json"]) == 1
    assert len(objects(capsys.readouterr().out)) == 1


def test_unusable_input_is_status_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.jsonl").write_text("no json here\n", "utf-8")
    for arguments in (
        ["triage", str(tmp_path / "missing")],
        ["triage", str(tmp_path / "x.jsonl")],
        ["triage", str(GOLDEN / "otlp.jsonl"), "--since", "yesterday"],
        ["triage", "--tempo", "ftp://x", "--trace", "0" * 32],
        ["triage", "--tempo", "http://127.0.0.1:9", "--trace", "nothing"],
        ["triage", "--tempo", "http://127.0.0.1:9", "--trace", "0" * 32],
    ):
        assert main(arguments) == 2, arguments
        told = capsys.readouterr()
        assert told.out == "", arguments
        assert told.err.count("\n") == 1, arguments


def test_flaws_are_told_beside_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (GOLDEN / "otlp.jsonl").read_text("utf-8")
    (tmp_path / "x.jsonl").write_text(f"{text}torn\n", "utf-8")
    assert main(["triage", str(tmp_path)]) == 1
    assert "x.jsonl, line 4: not JSON, or cut short" in capsys.readouterr().out
    assert main(["triage", str(tmp_path), "--json"]) == 1
    assert [("flaw", 4), ("incident", None)] == [
        (found["kind"], found.get("line")) for found in objects(capsys.readouterr().out)
    ]


def test_many_incidents_are_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (GOLDEN / "otlp.jsonl").read_text("utf-8").splitlines(keepends=True)
    for number in range(7):
        mine = "".join(lines).replace(make.CONVERSATION, f"{number:032x}")
        for span in make.SPANS:
            mine = mine.replace(span, f"{number:x}{span[1:]}")
        (tmp_path / f"{number}.jsonl").write_text(mine, "utf-8")
    assert main(["triage", str(tmp_path), "--limit", "5"]) == 1
    told = capsys.readouterr().out
    assert "7 incidents in 14 calls in 7 files" in told
    assert told.count("anthropic.redacted_thinking.data") == 5
    assert "and 2 older ones: --limit 7" in told
    assert "What a rule says: docs/rules.md\n" in told
    ident = told.rpartition("--incident ")[2].strip()
    assert main(["triage", str(tmp_path), "--incident", ident]) == 1
    assert "what to do, safest first" in capsys.readouterr().out


def test_known_losses_are_shown_only_where_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = json.dumps({"key": "otel_sealed.known", "value": {"boolValue": True}})
    line = (GOLDEN / "otlp.jsonl").read_text("utf-8").splitlines(keepends=True)[1]
    mark = '{"key": "otel_sealed.carry"'
    (tmp_path / "x.jsonl").write_text(line.replace(mark, f"{flag}, {mark}"), "utf-8")
    assert main(["triage", str(tmp_path)]) == 0
    assert "1 incident of known losses not shown: --known" in capsys.readouterr().out
    assert main(["triage", str(tmp_path), "--known"]) == 1


# ------------------------------------------------------------------------------------- no content

CANARY = "Geheimnis! 7f3a, 91cc"


def planted(key: str) -> str:
    """The golden record with a canary in every text of one attribute."""

    def plant(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: CANARY if k == "stringValue" else plant(v) for k, v in value.items()}
        return [plant(item) for item in value] if isinstance(value, list) else value

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.get("key") == key:
            return plant(value)
        return {k: CANARY if k == key else walk(v) for k, v in value.items()}

    text = (GOLDEN / "otlp.jsonl").read_text("utf-8")
    return "".join(json.dumps(walk(json.loads(line))) + "\n" for line in text.splitlines())


TEXTS = sorted(
    {"traceId", "spanId", "name", "version", "severityText", "eventName"}
    | {
        k
        for given in (*make.ATTRIBUTES, make.EVENT, make.RESOURCE)
        for k, v in given.items()
        if isinstance(v[0] if isinstance(v, list) else v, str)
    }
)


@pytest.mark.parametrize("key", TEXTS)
def test_what_is_no_word_of_the_vocabulary_goes_no_further(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = planted(key)
    assert CANARY in text
    (tmp_path / "x.jsonl").write_text(text, "utf-8")
    for options in ([], ["--json"], ["--error", "messages.1.content.1: cannot be modified"]):
        assert main(["triage", str(tmp_path), *options]) in (0, 1)
    told = capsys.readouterr()
    (tmp_path / "x.jsonl").unlink()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert "Geheimnis" not in told.out + told.err
    assert b"Geheimnis" not in kept


# ------------------------------------------------------------------------------------------ Tempo


@contextmanager
def tempo(answers: dict[str, bytes]) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """A server that answers GETs by path; its URL, and (method, path, tenant) of what was asked."""
    asked: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            asked.append((self.command, self.path, self.headers.get("x-scope-orgid", "")))
            body = answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("content-length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("path", "golden"), [("api/v2/traces", "tempo_2.json"), ("api/traces", "tempo.json")]
)
def test_tempo_is_asked_for_one_trace_by_a_get(
    path: str, golden: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = make.TRACES[1]
    with tempo({f"/{path}/{trace}": (GOLDEN / golden).read_bytes()}) as (url, asked):
        status = main(
            ["triage", "--tempo", url, "--trace", trace, "--header", "X-Scope-OrgID: 7", "--json"]
        )
    (found,) = objects(capsys.readouterr().out)
    assert status == 1
    assert found["artifact"] == "anthropic.redacted_thinking.data"
    assert asked[-1] == ("GET", f"/{path}/{trace}", "7")


class Server:
    """A server on loopback that redirects to `to`, and what it received: paths, and credentials."""

    def __init__(self, to: str = "", code: int = 302) -> None:
        received: list[tuple[str, str | None]] = []
        self.received = received

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                received.append((self.path, self.headers.get("Authorization")))
                there = to.format(port=1)
                self.send_response(code if there and not self.path.endswith("/moved") else 404)
                if there:
                    self.send_header("Location", there)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


REDIRECT = (
    "a redirect to another server, which is not followed"
    " (name in --tempo the address that serves the traces themselves)"
)


def ask(port: int) -> int:
    where, given = f"http://127.0.0.1:{port}", "Authorization: Bearer CANARY"
    return main(["triage", "--tempo", where, "--trace", "ab" * 16, "--header", given])


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to", ["http://127.0.0.1:{port}/x", "http://localhost:{port}/x", "//127.0.0.1:{port}/x"]
)
def test_no_credential_follows_a_redirect_to_another_server(
    code: int, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Server() as other, Server(to.format(port=other.port), code) as tempo:
        assert ask(tempo.port) == 2
        assert (other.received, len(tempo.received)) == ([], 1)
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        f"otel-sealed: 127.0.0.1: answered {code}, {REDIRECT}\n",
    )


@pytest.mark.parametrize(
    "to",
    ["https://127.0.0.1:{port}/x", "ftp://127.0.0.1:{port}/x", "file:///etc/passwd", "http://["],
)
def test_a_redirect_to_another_scheme_is_refused(
    to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Server(to) as tempo:
        assert ask(tempo.port) == 2
        assert len(tempo.received) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_redirect_within_the_server_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    with Server("/moved") as tempo:
        assert ask(tempo.port) == 2
        first, moved, *_ = tempo.received
    assert moved == ("/moved", "Bearer CANARY")
    assert first[1] == "Bearer CANARY"
    assert capsys.readouterr().err == "otel-sealed: 127.0.0.1: has no such trace\n"


def test_a_trace_that_tempo_does_not_have_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with tempo({}) as (url, _):
        assert main(["triage", "--tempo", url, "--trace", "0" * 32]) == 2
    assert capsys.readouterr().err == "otel-sealed: 127.0.0.1: has no such trace\n"


def test_in_a_narrow_terminal_an_incident_of_many_has_two_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of nine columns would break inside its words."""
    lines = (GOLDEN / "otlp.jsonl").read_text("utf-8")
    for number in range(4):
        mine = lines.replace(make.CONVERSATION, f"{number:032x}")
        (tmp_path / f"{number}.jsonl").write_text(mine, "utf-8")
    monkeypatch.setattr("otel_sealed.cli.show._PIPE_WIDTH", 80)
    assert main(["triage", str(tmp_path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line for line in out if len(line) > 85] == []
    assert "  anthropic.redacted_thinking.data dropped; whose: process; claude-opus-5" in out
