"""What could not be judged is said wherever a command could say that all is well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.json.file")
pytest.importorskip("anthropic")

from otel_sealed.cli import key, main
from otel_sealed.cli.lines import prepare
from otel_sealed.cli.records import Record
from otel_sealed.cli.summary import Summary, lines
from otel_sealed.testing.strict import StrictProvider
from otel_sealed.triage.sums import failure

CLI = [sys.executable, "-c", "import sys; from otel_sealed.cli import main; sys.exit(main())"]
RESUMED = """\
import json, pathlib, sys
import anthropic

ask = {"model": "claude-opus-5", "max_tokens": 4096, "thinking": {"type": "adaptive"}}
tool = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
saved = pathlib.Path("history.json")
messages = json.loads(saved.read_text()) if saved.exists() else [{"role": "user", "content": "x"}]
if "--lose" in sys.argv:
    messages[1]["content"] = [b for b in messages[1]["content"] if b["type"] != "thinking"]
with anthropic.Anthropic(api_key="k", base_url=sys.argv[1], max_retries=0) as client:
    for _ in range(2):
        try:
            reply = client.messages.create(**ask, tools=[tool], messages=messages)
        except anthropic.APIError:
            break
        messages.append({"role": "assistant", "content": [b.model_dump() for b in reply.content]})
        calls = [b.id for b in reply.content if b.type == "tool_use"]
        done = [{"type": "tool_result", "tool_use_id": call, "content": "x"} for call in calls]
        messages.append({"role": "user", "content": done or "go on"})
saved.write_text(json.dumps(messages))
"""
X2 = "values could not be judged: they came in another process, or before the ledger began [X2]"
REMEDY = "let the processes of a conversation share a ledger: OTEL_SEALED_LEDGER"


@dataclass
class Runs:
    """Runs of one program in one folder."""

    folder: Path
    url: str

    def run(self, *arguments: str, url: str = "", **more: str) -> list[str]:
        """The screen of one run, without the line that says where the files are."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "PYTHON"))}
        ran = subprocess.run(
            [*CLI, "run", "--", sys.executable, "-c", RESUMED, url or self.url, *arguments],
            cwd=self.folder,
            env={**kept, "NO_PROXY": "127.0.0.1", **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        found = ran.stderr.splitlines()
        (start,) = (at for at, line in enumerate(found) if line.startswith("otel-sealed: "))
        return [line.removeprefix("otel-sealed: ") for line in found[start:-1]]


@pytest.fixture(name="runs")
def _runs(tmp_path: Path) -> Iterator[Runs]:
    with StrictProvider(seed=7) as provider:
        yield Runs(tmp_path, provider.anthropic_url)


def test_a_conversation_that_a_second_run_resumes_is_judged(runs: Runs) -> None:
    first = runs.run()
    second = runs.run()
    assert (first[1:], second[1:]) == (["nothing degrades or breaks"],) * 2
    ledger = runs.folder / ".otel-sealed" / "ledger.sqlite"
    assert ledger.stat().st_mode & 0o777 == 0o600


def test_what_a_second_run_loses_of_the_first_is_found(runs: Runs) -> None:
    runs.run()
    screen = runs.run("--lose")
    # contract-corrections, A1: adaptive thinking goes on without the thoughts that were left out
    assert "degrades  dropped  anthropic.thinking.signature" in screen[1]


def test_without_a_ledger_in_common_it_is_said_and_never_that_all_is_well(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.run(OTEL_SEALED_LEDGER="memory")
    first, well, why, remedy = runs.run(OTEL_SEALED_LEDGER="memory")
    count = why.partition(" ")[0]
    assert (why, remedy) == (f"{count} {X2}", f"  {REMEDY}")
    assert int(count) > 0
    assert well == "no call could be judged in full"
    assert int(first.rpartition(", ")[2].split()[0]) >= int(count)
    folder = str(tmp_path / ".otel-sealed")
    assert main(["triage", folder]) == 0
    found = capsys.readouterr().out.splitlines()
    assert found[0] == "0 incidents in 4 calls in 4 files; 2 of 4 calls were judged in full"
    assert f"{count} {X2}" in found
    assert main(["triage", folder, "--json"]) == 0
    (found,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (found["kind"], found["rule"], found["values"]) == ("unjudged", "X2", int(count))
    assert main(["report", folder, "--html", "-"]) == 0
    page = capsys.readouterr().out
    assert f"<li>{count} {X2}; {REMEDY}.</li>" in page
    assert "Nothing is broken" not in page


def test_calls_that_failed_before_an_answer_are_counted_by_class(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = runs.run(url="http://127.0.0.1:9")
    failed = "1 call failed before an answer: APIConnectionError 1"
    assert screen[1:] == ["no call could be judged", failed]
    folder = str(tmp_path / ".otel-sealed")
    assert main(["triage", folder]) == 0
    assert failed in capsys.readouterr().out.splitlines()
    assert main(["triage", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "kind": "failed",
        "class": "APIConnectionError",
        "calls": 1,
    }
    assert main(["report", folder, "--html", "-"]) == 0
    assert f"<li>{failed}.</li>" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "word"),
    [
        ("anthropic.APIConnectionError", "APIConnectionError"),
        ("openai._exceptions.RateLimitError", "RateLimitError"),
        ("529", "529"),
        ("TimeoutError", "TimeoutError"),
        ("acme.GeheimnisError", "other"),
        ("Geheimnis! 7f3a", "other"),
        ("200", "other"),
        ("x" * 10_000, "other"),
        ("", ""),
        (None, ""),
        (["APIError"], ""),
    ],
)
def test_a_class_is_of_a_closed_vocabulary(error: object, word: str) -> None:
    assert failure(error) == word


def called(**attributes: object) -> Record:
    shown = {f"otel_sealed.{name.replace('__', '.')}": x for name, x in attributes.items()}
    shown["error.type"] = shown.pop("otel_sealed.error", "")
    return Record("span", "chat", {"otel_sealed.carry": "none", **shown}, "", 1, "ab")


def test_failed_calls_unread_ones_and_violations_are_each_said() -> None:
    summary = Summary()
    lost = {
        "returned__artifacts": ["anthropic.thinking.signature"],
        "returned__verdicts": ["breaks"],
        "returned__fates": ["dropped"],
    }
    summary.add(called(**lost, provider_verdict="rejected", rejection__class="thinking_missing"))
    summary.add(called(error="openai.APITimeoutError"))
    summary.add(called(error="503"))
    summary.add(called(error="503"))
    summary.add(called(error="acme.Geheimnis"))
    summary.add(called(facts=["thinking=true", "unread=size"]))
    assert lines(summary)[2:] == [
        "the provider refused 1: thinking_missing 1",
        "1 call failed before an answer: APITimeoutError 1",
        "2 calls got an error for an answer: 503 2",
        "1 call failed: other 1",
        "1 call could not be read, and not be judged: size 1",
    ]


UNSURE: dict[str, dict[str, object]] = {
    "failed": {"error": "openai.APITimeoutError"},
    "unread": {"facts": ["unread=size"]},
    "unjudged": {"returned__verdicts": ["unverifiable"], "verdict": "unverifiable"},
}
"""What a span says of a call that was not judged in full."""


def judged(calls: int, total: int) -> str:
    was = "was" if calls == 1 else "were"
    return f"nothing degrades or breaks in the {calls} of {total} calls that {was} judged in full"


@pytest.mark.parametrize("name", UNSURE)
def test_that_nothing_broke_is_said_of_the_calls_that_were_judged(name: str) -> None:
    summary = Summary()
    clean: dict[str, object] = {}
    for attributes in (clean, clean, UNSURE[name]):
        summary.add(called(**attributes))
    assert lines(summary)[1] == judged(2, 3)


def test_requests_that_nobody_observed_are_among_all_calls() -> None:
    summary = Summary()
    summary.sums.unobserved[("httpx", "api.anthropic.com")] = 2
    summary.add(called())
    assert lines(summary)[1] == judged(1, 3)


@pytest.mark.parametrize(
    "attributes",
    [{**UNSURE["failed"], **UNSURE["unread"]}, UNSURE["unread"], UNSURE["failed"]],
)
def test_a_call_that_is_short_in_two_ways_is_one_call(attributes: dict[str, object]) -> None:
    summary = Summary()
    clean: dict[str, object] = {}
    for found in (clean, clean, clean, attributes, attributes):
        summary.add(called(**found))
    assert lines(summary)[1] == judged(3, 5)


def test_where_each_call_holds_a_value_nobody_judged_no_call_is_called_well() -> None:
    summary = Summary()
    summary.add(called(**UNSURE["unjudged"]))
    assert lines(summary)[1] == "no call could be judged in full"


def span(ident: int, **attributes: object) -> str:
    """One call as our folder has it: a line of OTLP JSON."""

    def value(found: object) -> dict[str, object]:
        if isinstance(found, list):
            return {"arrayValue": {"values": [value(item) for item in found]}}
        return {"stringValue": found}

    listed = [
        {"key": key, "value": value(found)}
        for key, found in called(**attributes).attributes.items()
    ]
    shown = {
        "name": "chat",
        "traceId": "ab" * 16,
        "spanId": f"{ident:016x}",
        "startTimeUnixNano": "1",
        "attributes": listed,
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [shown]}]}]}) + "\n"


def unobserved(requests: int, start: int) -> str:
    """The counter of requests that nobody observed, as our folder has it."""
    named = {"otel_sealed.http.client": "httpx", "server.address": "api.anthropic.com"}
    point = {
        "asInt": str(requests),
        "startTimeUnixNano": str(start),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in named.items()],
    }
    metric = {"name": "otel_sealed.unobserved", "sum": {"dataPoints": [point]}}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}) + "\n"


@pytest.mark.parametrize(("name", "said"), [(n, "2 of 3 calls were") for n in UNSURE])
def test_triage_and_report_say_how_many_calls_were_judged(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[dict[str, object]] = [{}, {}, UNSURE[name]]
    record = "".join(span(number + 1, **found) for number, found in enumerate(shown))
    (tmp_path / "traces-1.jsonl").write_text(record, "utf-8")
    assert main(["triage", str(tmp_path)]) == 0
    head = f"0 incidents in 3 calls in 1 file; {said} judged in full"
    assert capsys.readouterr().out.splitlines()[0] == head
    assert main(["report", str(tmp_path), "--html", "-"]) == 0
    page = capsys.readouterr().out
    scope = f"<p>3 calls on record; {said} judged in full, and no incident is among them.</p>"
    assert scope in page
    assert "Nothing is broken" not in page


def test_triage_and_report_name_what_passed_unobserved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "traces-1.jsonl").write_text(span(1), "utf-8")
    # a process says its total again and again; another one counts from its own start
    counted = unobserved(1, 10**18) + unobserved(2, 10**18) + unobserved(3, 2 * 10**18)
    (tmp_path / "metrics-1.jsonl").write_text(counted, "utf-8")
    passed = "5 requests with turns of a model passed unobserved, so nothing can be said of them"
    for _ in range(2):  # the second time from the index
        assert main(["triage", str(tmp_path)]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "0 incidents in 1 call in 2 files; 1 of 6 calls was judged in full",
            f"{passed} (`otel-sealed doctor` says why):",
            "  5 to api.anthropic.com by httpx",
        ]
    assert main(["triage", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "kind": "unobserved",
        "client": "httpx",
        "host": "api.anthropic.com",
        "requests": 5,
    }
    assert main(["report", str(tmp_path), "--html", "-"]) == 0
    page = capsys.readouterr().out
    assert (
        f"<li>{passed}: 5 to api.anthropic.com by httpx; otel-sealed doctor says why.</li>" in page
    )
    assert "Nothing is broken" not in page


def test_a_value_that_is_sent_in_every_call_is_one_value() -> None:
    summary = Summary()
    again = {
        "returned__artifacts": ["anthropic.thinking.signature"],
        "returned__digests": ["ab" * 16],
        "returned__verdicts": ["unverifiable"],
        "returned__rules": ["X2"],
        "returned__fates": ["unknown"],
        "returned__positions": ["messages.1.content.0"],
    }
    summary.add(called(**again))
    summary.add(called(**again))
    assert lines(summary)[0] == "2 calls, 0 seals received, 2 returned"
    assert lines(summary)[2].startswith("1 value could not be judged")


# ------------------------------------------------------------------------------- links and modes


def test_a_record_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(OSError, match="is a link"):
        prepare(tmp_path / "link")
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("planted", ["link", "readable", "folder"])
def test_a_key_that_somebody_else_may_have_put_there_is_not_used(
    planted: str, tmp_path: Path
) -> None:
    place = tmp_path / key.NAME
    known = "ab" * 32
    if planted == "folder":
        place.mkdir()
        assert key.read(tmp_path) == b""
        return
    target = tmp_path / "target" if planted == "link" else place
    target.write_text(known, "ascii")
    target.chmod(0o644 if planted == "readable" else 0o600)
    if planted == "link":
        place.symlink_to(target)
    assert key.read(tmp_path) == b""
    made = key.shared(tmp_path)
    assert made != bytes.fromhex(known)
    assert key.shared(tmp_path) == made
    if planted == "link":
        assert target.read_text("ascii") == known
