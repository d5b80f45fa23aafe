"""What people record anyway shows what a transcript of the same calls shows."""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import vcr  # type: ignore[import-untyped] # it has no types
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_sealed.cli import main
from otel_sealed.contract import Exchange
from otel_sealed.evidence import reading
from otel_sealed.testing import StrictProvider
from otel_sealed.testing.hosts import Scene, hosts

DATA = Path(__file__).parents[1] / "data" / "evidence"
TRANSCRIPT = DATA / "transcript.jsonl"
RECORDINGS = ("browser.har", "mitmproxy.flows", "mitmproxy.har", "vcrpy.json", "vcrpy.yaml")
CANARY = "cAnArY-7b20e1ff93d8"
ASKED: dict[str, Any] = {
    "model": "claude-opus-5",
    "max_tokens": 8,
    "messages": [{"role": "user", "content": CANARY}],
}
ANSWERED: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [{"type": "thinking", "thinking": CANARY, "signature": "c2lnbmVk" * 8}],
}


def judged(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Any], str]:
    """(exit status, rows without the places in the file, stderr)."""
    status = main(["verify", "--json", str(path)])
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        row.pop("file")
        row.pop("exchange")
        if row["received"]:
            row["received"].pop("exchange")
    return status, rows, err


def exchanges(path: Path) -> list[Exchange]:
    with reading(path) as source:
        return list(source.exchanges)


def har(*entries: Any) -> bytes:
    return json.dumps({"log": {"version": "1.2", "entries": list(entries)}}).encode()


def entry(
    url: str = "https://api.anthropic.com/v1/messages",
    asked: Any = ASKED,
    answered: Any = ANSWERED,
    **response: Any,
) -> dict[str, Any]:
    text = answered if isinstance(answered, str) else json.dumps(answered)
    return {
        "request": {
            "method": "POST",
            "url": url,
            "headers": [{"name": "X-Api-Key", "value": CANARY}],
            "postData": {"mimeType": "application/json", "text": json.dumps(asked)},
        },
        "response": {"status": 200, "headers": [], "content": {"text": text}, **response},
    }


def file(folder: Path, data: bytes, name: str = "evidence") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# ----------------------------------------------------------------------------- the golden files


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_shows_what_the_transcript_of_the_same_calls_shows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole and streamed, gzipped, in base64, of three vendors, and one refused."""
    status, rows, _ = judged(TRANSCRIPT, capsys)
    found = judged(DATA / name, capsys)
    order = json.dumps
    assert (1, 10) == (status, len(rows))
    assert (status, sorted(rows, key=order)) == (found[0], sorted(found[1], key=order))


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_is_no_call_of_a_model_is_counted_and_named(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host = "gateway.example" if name == "browser.har" else "127.0.0.1"
    _, _, err = judged(DATA / name, capsys)
    count = "1 exchange" if name.startswith("vcrpy") else "2 exchanges"
    assert err == f"otel-sealed: {DATA / name}; passed by: {count} with {host}\n"
    main(["verify", str(DATA / name)])
    assert f"1 degrades or breaks; passed by: {count} with {host}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", RECORDINGS)
def test_content_tells_what_a_file_is_and_not_its_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, b"\xef\xbb\xbf" * (name != "mitmproxy.flows"), "x.txt")
    path.write_bytes(path.read_bytes() + (DATA / name).read_bytes())
    packed = file(tmp_path, gzip.compress((DATA / name).read_bytes()), "x.jsonl")
    assert judged(DATA / name, capsys)[:2] == judged(path, capsys)[:2]
    assert judged(DATA / name, capsys)[:2] == judged(packed, capsys)[:2]


def test_the_place_of_a_row_counts_exchanges(capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", str(DATA / "vcrpy.yaml")])
    out = capsys.readouterr().out
    assert out.startswith("exchange ")
    assert "exchange 6 content.1 632 B" in out


def test_a_pipe_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It can be opened once only."""
    import os
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = (DATA / "mitmproxy.flows").read_bytes()
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    found = judged(path, capsys)
    writer.join()
    assert judged(DATA / "mitmproxy.flows", capsys)[:2] == found[:2]


def test_a_host_recorded_by_vcrpy_shows_what_it_is_known_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anthropic")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (host,) = (host for host in hosts() if host.name == "anthropic-sanitiser")
    cassette = tmp_path / "cassette"
    with StrictProvider() as provider, vcr.use_cassette(str(cassette)):
        host.run(Scene(provider))
    status, rows, err = judged(cassette, capsys)
    losses = [(row["artifact"], row["fate"], row["verdict"]) for row in rows]
    expected = [(loss.artifact, loss.fate, loss.verdict) for loss in host.losses]
    assert (1, expected, "") == (status, [x for x in losses if x[1] != "intact"], err)


# ------------------------------------------------------------------------ other kinds of cassettes


def cassette() -> Any:
    return json.loads((DATA / "vcrpy.json").read_bytes())


def as_ruby(recorded: Any) -> Any:
    """As the Ruby original writes it: bodies are objects, binary ones in base64."""
    return {
        "http_interactions": [
            {
                "request": {
                    **one["request"],
                    "method": one["request"]["method"].lower(),
                    "body": {"encoding": "UTF-8", "string": one["request"]["body"]},
                },
                "response": {
                    **one["response"],
                    "body": {
                        "encoding": "ASCII-8BIT",
                        "base64_string": base64.b64encode(
                            one["response"]["body"]["string"].encode()
                        ).decode(),
                    },
                },
                "recorded_at": "Sun, 29 Nov 2026 09:00:00 GMT",
            }
            for one in recorded["interactions"]
        ],
        "recorded_with": "VCR 6.3.1",
    }


def as_parsed(recorded: Any) -> Any:
    """As projects write it that want readable diffs."""
    for one in recorded["interactions"]:
        one["request"]["parsed_body"] = json.loads(one["request"].pop("body") or "null")
        text = one["response"]["body"]["string"]
        if text.startswith("{"):
            one["response"]["parsed_body"] = json.loads(text)
            del one["response"]["body"]
    return recorded


def as_old_httpx(recorded: Any) -> Any:
    """As the httpx stub of vcrpy before version 6 wrote it."""
    for one in recorded["interactions"]:
        response = one["response"]
        response["status_code"] = response.pop("status")["code"]
        response["content"] = response.pop("body")["string"]
    return recorded


def with_tags(recorded: Any) -> str:
    """As cassettes of years ago: headers are an object of another library."""
    text: str = yaml.safe_dump(recorded)
    return text.replace("headers:", "headers: !!python/object:requests.structures.Odd")


@pytest.mark.parametrize("shape", [as_ruby, as_parsed, as_old_httpx])
@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump, with_tags])
def test_further_shapes_of_cassettes_are_read(
    shape: Callable[[Any], Any],
    dump: Callable[[Any], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = file(tmp_path, dump(shape(cassette())).encode())
    expected = judged(DATA / "vcrpy.json", capsys)
    assert expected[:2] == judged(path, capsys)[:2]


def test_without_pyyaml_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    path = DATA / "vcrpy.yaml"
    assert main(["verify", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"otel-sealed: {path}: a YAML cassette needs PyYAML"
        " (python -m pip install 'otel-sealed[cli]')\n"
    )


# ----------------------------------------------------------------------------- one exchange


@pytest.mark.parametrize(
    ("url", "asked", "api", "operation", "model"),
    [
        ("https://api.anthropic.com/v1/messages?beta=true", ASKED, "messages", None, None),
        ("https://gw.example/anthropic/messages", ASKED, "messages", None, None),
        ("https://x.example/v1/messages/count_tokens", ASKED, "messages", "count_tokens", None),
        (
            (
                "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers"
                "/anthropic/models/claude-opus-5:streamRawPredict"
            ),
            {"anthropic_version": "vertex-2023-10-16", "messages": []},
            "messages",
            None,
            "claude-opus-5",
        ),
        (
            (
                "https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-opus-5-v1"
                "%3A0/invoke"
            ),
            {"anthropic_version": "bedrock-2023-05-31", "messages": []},
            "messages",
            None,
            "eu.anthropic.claude-opus-5-v1:0",
        ),
        ("https://api.openai.com/v1/responses", {"input": "x"}, "responses", None, None),
        ("https://r.openai.azure.com/openai/v1/responses", {"model": "g"}, "responses", None, None),
        ("https://h.example/v1/responses/compact", {"input": []}, "responses", "compact", None),
        (
            (
                "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash"
                ":streamGenerateContent?alt=sse"
            ),
            {"contents": []},
            "generateContent",
            None,
            "gemini-3.8-flash",
        ),
        (
            "https://generativelanguage.googleapis.com/v1beta/interactions",
            {"input": "x"},
            "interactions",
            None,
            None,
        ),
    ],
)
def test_the_wire_is_found_from_path_and_body(
    url: str, asked: Any, api: str, operation: str | None, model: str | None, tmp_path: Path
) -> None:
    (found,) = exchanges(file(tmp_path, har(entry(url, asked))))
    assert (api, operation, model) == (found.api, found.operation, found.model)
    assert asked == found.request


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://forms.example/api/responses", {"answers": [CANARY]}),
        ("https://chat.example/api/messages", {"text": CANARY}),
        ("https://api.anthropic.com/v1/messages/batches", {"requests": []}),
        ("https://api.anthropic.com/v1/models", ASKED),
        ("http://[broken", ASKED),
    ],
)
def test_a_path_or_a_body_alone_is_no_call_of_a_model(
    url: str, asked: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, har(entry(url, asked)))
    assert main(["verify", str(path)]) == 2
    err = capsys.readouterr().err
    assert f"{path}: holds no call of a model; passed by: 1 exchange with " in err
    assert CANARY not in err


def test_bedrock_is_read_by_its_path_and_has_its_model_from_there(tmp_path: Path) -> None:
    host = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    url = f"{host}/model/anthropic.claude-opus-5-v1/converse"
    with reading(file(tmp_path, har(entry(), entry(url, {"messages": []})))) as source:
        found = list(source.exchanges)
    assert [(one.api, one.model) for one in found][1] == ("converse", "anthropic.claude-opus-5-v1")


def test_hosts_are_named_only_if_they_are_plain_words(tmp_path: Path) -> None:
    urls = ["https://user-4711.example/x", *(f"https://h{n}.example/x" for n in range(6))]
    data = har(entry(), *(entry(url) for url in urls), *(entry(urls[1]) for _ in range(3)))
    with reading(file(tmp_path, data)) as source:
        list(source.exchanges)
    said = source.passed.line()
    assert said.startswith("; passed by: 4 exchanges with h0.example, 1 exchange with other, ")
    assert said.endswith(", 3 exchanges with further hosts")


def test_accounts_are_told_apart_without_the_credential(tmp_path: Path) -> None:
    other = entry()
    other["request"]["headers"][0]["value"] = CANARY + "x"
    first, again, second = exchanges(file(tmp_path, har(entry(), entry(), other)))
    assert first.account
    assert first.account == again.account
    assert first.account != second.account
    assert CANARY not in repr([first, first.account])


def test_betas_are_those_of_the_header(tmp_path: Path) -> None:
    one = entry()
    one["request"]["headers"].append({"name": "Anthropic-Beta", "value": "a-1, b-2"})
    (found,) = exchanges(file(tmp_path, har(one)))
    assert found.betas == ("a-1", "b-2")


# ------------------------------------------------------------------------------------- streams

START = {"type": "message_start", "message": {**ANSWERED, "content": []}}


def test_an_event_stream_becomes_its_events(tmp_path: Path) -> None:
    stream = f"event: message_start\ndata: {json.dumps(START)}\n\n"
    (found,) = exchanges(file(tmp_path, har(entry(answered=stream))))
    assert (None, [START], True) == (found.response, found.events, found.complete)


def test_a_stream_that_ends_within_an_event_is_not_complete(tmp_path: Path) -> None:
    stream = f'data: {json.dumps(START)}\n\ndata: {{"type": "content_bl'
    (found,) = exchanges(file(tmp_path, har(entry(answered=stream))))
    assert ([START], False) == (found.events, found.complete)


def test_an_array_is_the_stream_gemini_sends_without_sse(tmp_path: Path) -> None:
    (found,) = exchanges(file(tmp_path, har(entry(answered=[{"candidates": []}]))))
    assert (None, [{"candidates": []}]) == (found.response, found.events)


def test_a_connection_that_broke_off_is_not_complete(tmp_path: Path) -> None:
    stream = f"data: {json.dumps(START)}\n\n"
    cut = {**entry(answered=stream), "_error": "net::ERR_CONNECTION_RESET"}
    (found,) = exchanges(file(tmp_path, har(cut)))
    assert not found.complete


def test_a_request_without_an_answer_is_still_judged(tmp_path: Path) -> None:
    (found,) = exchanges(file(tmp_path, har(entry(status=0, content={}))))
    assert (ASKED, None, None) == (found.request, found.response, found.status)


# ----------------------------------------------------------------------------------- bodies


def test_a_body_that_cannot_be_decoded_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoded = [{"name": "content-encoding", "value": "zstd"}]
    bad = {"text": base64.b64encode(b"\x28\xb5\x2f\xfdxxxx").decode(), "encoding": "base64"}
    path = file(tmp_path, har(entry(headers=encoded, content=bad), entry()))
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out == (
        f"{path}: nothing sealed was due or sent; passed by: 1 with a body that cannot be read\n"
    )


def test_an_error_page_of_a_gateway_is_an_answer(tmp_path: Path) -> None:
    data = har(entry(answered="<html>Bad gateway</html>", status=502))
    with reading(file(tmp_path, data)) as source:
        (found,) = source.exchanges
    assert (None, 502, "") == (found.response, found.status, source.passed.line())


def test_a_broken_entry_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {"request": {"method": "POST", "url": 7}}
    path = file(tmp_path, har(entry(), CANARY, nothing))
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out.endswith("; passed by: 2 broken\n")


def test_flows_that_end_within_one_show_what_came_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (DATA / "mitmproxy.flows").read_bytes()
    path = file(tmp_path, data[: -len(data) // 3])
    status, rows, err = judged(path, capsys)
    assert status == 2
    assert rows != []
    assert err.endswith("cut off or damaged\n")


BAD = {
    "har without entries": (b'{"log": {"pages": []}}', "its log has no entries"),
    "har cut off": (b'{"log": {"entries": [\n{"request', "not valid JSON at line 2"),
    "har too deep": (b'{"log": ' + b"[" * 100_000, "nested too deeply"),
    "har no text": (b'{"log": "\xff\xfe"}', "neither UTF-8 text nor JSON"),
    "cassette without interactions": (b'{"version": 1}', "holds no interactions"),
    "cassette of nothing": (b"interactions: []\nversion: 1\n", "holds no call of a model"),
    "yaml": (f"interactions: [{CANARY}\nx: :".encode(), "line 2: not valid YAML"),
    "yaml tag": (b"interactions: !!python/object/apply:os.getcwd []", "holds no call of a model"),
    "flows": (b"12:3:abc,~", "flow 1: cut off or damaged"),
    "no flow": (b"4:1:a,]", "holds no call of a model; passed by: 1 broken"),
    "gzip": (gzip.compress(b'{"log"' * 999)[:-9], "a compressed file that is cut off or damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_unusable_recordings_are_named_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, what = BAD[name]
    path = file(tmp_path, data)
    assert main(["verify", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"otel-sealed: {path}" in err
    assert what in err
    assert len(err.splitlines()) == 1
    assert CANARY not in err


# --------------------------------------------------------------------------- any bytes at all

GOLDEN = [(DATA / name).read_bytes() for name in (*RECORDINGS, "transcript.jsonl")]
HEADS = [b"", b'{"log":', b'{"version":', b"interactions:", b"7:1:a,1:b,}", b"\x1f\x8b", b"9:"]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real recording with a piece taken out, and another put in its place."""
    data = draw(st.sampled_from(GOLDEN))
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, len(data)))
    return data[:start] + draw(st.binary(max_size=12)) + data[end:]


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.one_of(st.builds(bytes.__add__, st.sampled_from(HEADS), st.binary()), damaged()))
def test_any_bytes_are_judged_or_refused_in_one_line(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, data)
    assert main(["verify", str(path)]) in (0, 1, 2)
    err = capsys.readouterr().err
    assert "our own fault" not in err
    assert len(err.splitlines()) <= 1
