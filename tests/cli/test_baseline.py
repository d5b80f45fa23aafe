"""`otel-sealed baseline`: what was observed becomes a file of known losses, and stays silent."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.json.file")

from opentelemetry import trace

from otel_sealed.cli import baseline, main
from otel_sealed.cli.folder import recording
from otel_sealed.model import Fate, Report, Verdict
from otel_sealed.telemetry import entries, known
from otel_sealed.telemetry.alerts import Alert
from otel_sealed.telemetry.emit import Emitter, Providers
from otel_sealed.telemetry.known import Loss, parse, utc_today
from otel_sealed.telemetry.settings import Settings
from tests.telemetry.builders import KEY, SEAL, TEXT, finding, report

TODAY = date(2026, 11, 29)
DROPPED = finding(Fate.DROPPED, Verdict.BREAKS, rule="A1")
MODIFIED = finding(Fate.MODIFIED, Verdict.DEGRADES, artifact=TEXT)
FINE = [
    finding(),
    finding(Fate.UNKNOWN, Verdict.UNVERIFIABLE),
    finding(Fate.DROPPED, Verdict.ALLOWED),
]


def record(folder: Path, reports: Sequence[Report], **settings: Any) -> list[Alert]:
    """Emit these into a record folder; the alerts."""
    alerts: list[Alert] = []
    with recording("checkout", folder) as made:
        where = Providers(made.tracer, made.meter, made.logger)
        emitter = Emitter(Settings(**settings), key=KEY, providers=where, callbacks=[alerts.append])
        for given in reports:
            with emitter.tracer.start_as_current_span("chat"):
                emitter.emit(given, trace.get_current_span(), owned=True)
    return alerts


def loss(artifact: str, fate: Fate, **given: Any) -> Loss:
    values = {
        "reason": "baseline",
        "expires": TODAY + timedelta(days=90),
        "model": "claude-opus-5",
        "service": "checkout",
    }
    return Loss(artifact, fate, "anthropic", **{**values, **given})


def run(folder: Path, output: Path | str) -> int:
    return baseline.run([str(folder)], str(output), today=lambda: TODAY)


def test_every_kind_of_loss_is_written_once(tmp_path: Path) -> None:
    record(tmp_path, [report(DROPPED, MODIFIED), report(DROPPED, *FINE)])
    assert run(tmp_path / ".otel-sealed", tmp_path / "known.toml") == 0
    losses, complaints = parse((tmp_path / "known.toml").read_text("utf-8"))
    assert complaints == ()
    assert set(losses) == {loss(SEAL, Fate.DROPPED), loss(TEXT, Fate.MODIFIED)}
    assert len(losses) == 2


@pytest.mark.parametrize("signal", ["traces", "metrics", "logs"])
def test_one_signal_alone_suffices(tmp_path: Path, signal: str) -> None:
    record(tmp_path, [report(DROPPED)])
    (path,) = (tmp_path / ".otel-sealed").glob(f"{signal}-*.jsonl")
    assert run(path, tmp_path / "known.toml") == 0
    losses, _ = parse((tmp_path / "known.toml").read_text("utf-8"))
    assert losses == (loss(SEAL, Fate.DROPPED),)


def test_what_the_file_has_stays_as_it_is_and_what_expired_is_written_anew(tmp_path: Path) -> None:
    record(tmp_path, [report(DROPPED, MODIFIED)])
    output = tmp_path / "known.toml"
    mine = (
        "# by hand\n[[known]]\n"
        f'artifact = "{SEAL}"\nfate = "dropped"\nprovider = "anthropic"\nreason = "mine"\n'
    )
    output.write_text(f"{mine}expires = 2026-11-28", "utf-8")
    assert run(tmp_path / ".otel-sealed", output) == 0
    first = output.read_text("utf-8")
    assert first.startswith(f"{mine}expires = 2026-11-28\n")
    assert len(parse(first)[0]) == 3
    assert run(tmp_path / ".otel-sealed", output) == 0
    assert output.read_text("utf-8") == first


def test_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, [report(DROPPED)])
    assert run(tmp_path / ".otel-sealed", "-") == 0
    out, err = capsys.readouterr()
    assert parse(out)[0] == (loss(SEAL, Fate.DROPPED),)
    assert err == "otel-sealed: 1 new in standard output, 0 there before\n"


def test_where_nothing_was_lost_no_file_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [report(*FINE)])
    assert run(tmp_path / ".otel-sealed", tmp_path / "known.toml") == 0
    assert not (tmp_path / "known.toml").exists()
    assert capsys.readouterr().err.startswith("otel-sealed: 0 new in ")


def test_a_host_that_drops_on_every_turn_is_baselined_and_one_new_kind_alerts(
    tmp_path: Path,
) -> None:
    """The command itself, and the file it wrote, with today's date."""
    assert len(record(tmp_path, [report(DROPPED)] * 5)) == 1
    output = tmp_path / "known.toml"
    assert main(["baseline", str(tmp_path / ".otel-sealed"), "-o", str(output)]) == 0
    assert {x.expires for x in parse(output.read_text("utf-8"))[0]} <= {
        utc_today() + timedelta(days=days) for days in (89, 90)
    }
    assert record(tmp_path / ".otel-sealed", [report(DROPPED)] * 5, known=str(output)) == []
    (alert,) = record(tmp_path / ".otel-sealed", [report(DROPPED, MODIFIED)], known=str(output))
    assert (alert.artifact, alert.fate) == (TEXT, Fate.MODIFIED)


@pytest.mark.parametrize(
    "text", ["", "not json\n[1, 2]\n", '{"resourceSpans": [{"scopeSpans": 7}]}\n']
)
def test_rubbish_among_the_files_is_left_out(tmp_path: Path, text: str) -> None:
    record(tmp_path, [report(DROPPED)])
    (tmp_path / ".otel-sealed" / "traces-0.jsonl").write_text(text, "utf-8")
    with (tmp_path / ".otel-sealed" / "logs-0.jsonl").open("wb") as file:
        file.write(b"\xff\xfe\x00\n")
    assert run(tmp_path / ".otel-sealed", tmp_path / "known.toml") == 0
    assert len(parse((tmp_path / "known.toml").read_text("utf-8"))[0]) == 1


def test_names_that_are_no_words_are_not_written(tmp_path: Path) -> None:
    attributes = [
        {"key": key, "value": {"stringValue": value}}
        for key, value in {
            "otel_sealed.artifact": 'x" ]] CANARY',
            "otel_sealed.fate": "dropped",
            "otel_sealed.verdict": "breaks",
            "gen_ai.provider.name": "anthropic",
        }.items()
    ]
    event = {"eventName": "otel_sealed.violation", "attributes": attributes}
    line = {"resourceLogs": [{"scopeLogs": [{"logRecords": [event]}]}]}
    (tmp_path / "logs.jsonl").write_text(json.dumps(line), "utf-8")
    assert run(tmp_path, tmp_path / "known.toml") == 0
    assert not (tmp_path / "known.toml").exists()


@pytest.mark.parametrize(
    ("paths", "before", "says"),
    [
        (["missing"], None, "otel-sealed: missing: no such file or folder\n"),
        (["empty"], None, "otel-sealed: nothing to read (give a folder of OTLP JSON lines,"),
        (["lines.jsonl"], "[[known]]\n", "otel-sealed: known.toml: entry 1: artifact is missing;"),
    ],
)
def test_unusable_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    paths: list[str],
    before: str | None,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("lines.jsonl").touch()
    if before is not None:
        Path("known.toml").write_text(before, "utf-8")
    assert main(["baseline", *paths]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err[: len(says)]) == ("", 1, says)


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_a_link_in_the_place_of_the_output_is_not_followed(
    *, there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [report(DROPPED)])
    target = tmp_path / "target"
    if there:
        target.write_text("", "utf-8")
    (tmp_path / "known.toml").symlink_to(target)
    assert (
        main(["baseline", str(tmp_path / ".otel-sealed"), "-o", str(tmp_path / "known.toml")]) == 2
    )
    said = f"otel-sealed: {tmp_path / 'known.toml'}: is a link (name what it leads to)\n"
    assert capsys.readouterr().err == said
    assert target.exists() == there
    assert not there or target.read_text("utf-8") == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this platform")
def test_an_output_that_could_wait_for_somebody_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [report(DROPPED)])
    os.mkfifo(tmp_path / "known.toml")
    assert (
        main(["baseline", str(tmp_path / ".otel-sealed"), "-o", str(tmp_path / "known.toml")]) == 2
    )
    assert "no regular file" in capsys.readouterr().err


def test_a_file_of_known_losses_is_read_up_to_a_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [report(DROPPED)])
    path = tmp_path / "known.toml"
    path.write_text("#" * (entries.MAX_BYTES + 1), "utf-8")
    assert main(["baseline", str(tmp_path / ".otel-sealed"), "-o", str(path)]) == 2
    assert capsys.readouterr().err == f"otel-sealed: {path}: {entries.TOO_LONG}\n"
    assert known.FORM.look(path) == ((), (entries.TOO_LONG,))


def test_a_file_of_known_losses_may_be_nested_as_deep_as_it_likes(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(f"[[known]]\nartifact = {'[' * 50_000}\n" * 2, "utf-8")
    found, complaints = known.FORM.look(path)
    assert (found, len(complaints)) == ((), 2)
    assert all("no TOML (it begins in line" in line for line in complaints)
