from __future__ import annotations

import logging
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.model import Fate, ProviderVerdict, Rejection, Removal, Verdict
from otel_sealed.telemetry.alerts import Alert
from otel_sealed.telemetry.known import KnownLosses, Loss, parse, read
from otel_sealed.telemetry.processor import SealedSpanProcessor
from otel_sealed.telemetry.settings import Settings
from tests.telemetry.builders import SEAL, TEXT, Bench, digest, finding, received, report

TODAY = date(2026, 11, 29)
ENTRY = f"""\
[[known]]
artifact = "{SEAL}"
fate = "dropped"
provider = "anthropic"
reason = "its issue 123"
expires = 2026-11-29
"""
LOSS = Loss(SEAL, Fate.DROPPED, "anthropic", "its issue 123", TODAY)
LOST = finding(Fate.DROPPED, Verdict.BREAKS, rule="A1")
OTHER = finding(Fate.MODIFIED, Verdict.DEGRADES, artifact=TEXT)


class Day:
    """A day to turn, and benches under it."""

    def __init__(self) -> None:
        self.today = TODAY

    def bench(self, *losses: Loss, **given: Any) -> Bench:
        bench = Bench(**given)
        bench.emitter.room.known = KnownLosses(losses, today=lambda: self.today)
        return bench


# ------------------------------------------------------------------------------------- matching


@pytest.mark.parametrize(
    ("loss", "covered"),
    [
        ((SEAL, Fate.DROPPED, "anthropic"), True),
        ((TEXT, Fate.DROPPED, "anthropic"), False),
        ((SEAL, Fate.MODIFIED, "anthropic"), False),
        ((SEAL, Fate.DROPPED, "aws.bedrock"), False),
        ((SEAL, Fate.DROPPED, ""), False),
    ],
)
def test_artifact_fate_and_provider_have_to_fit(
    loss: tuple[str, Fate, str], *, covered: bool
) -> None:
    assert KnownLosses([LOSS], today=lambda: TODAY).covers(*loss) is covered


@pytest.mark.parametrize(
    ("model", "service", "covered"),
    [
        ("claude-opus-5", "checkout", True),
        ("claude-opus-5-20260801", "checkout", True),
        ("claude-opus-6", "checkout", False),
        ("", "checkout", False),
        ("claude-opus-5", "search", False),
        ("claude-opus-5", "", False),
    ],
)
def test_a_model_by_its_name_or_base_and_a_service_have_to_fit_where_given(
    model: str, service: str, *, covered: bool
) -> None:
    loss = Loss(SEAL, Fate.DROPPED, "anthropic", "why", TODAY, "claude-opus-5", "checkout")
    known = KnownLosses([loss], today=lambda: TODAY)
    assert known.covers(SEAL, Fate.DROPPED, "anthropic", model, service) is covered


@pytest.mark.parametrize(("days", "covered"), [(-1, True), (0, True), (1, False)])
def test_the_day_of_expiry_is_the_last_one(days: int, *, covered: bool) -> None:
    known = KnownLosses([LOSS], today=lambda: TODAY + timedelta(days=days))
    assert known.covers(SEAL, Fate.DROPPED, "anthropic") is covered


def test_a_later_entry_on_the_same_loss_prolongs_it() -> None:
    later = Loss(SEAL, Fate.DROPPED, "anthropic", "still", TODAY + timedelta(days=9))
    known = KnownLosses([later, LOSS], today=lambda: TODAY + timedelta(days=5))
    assert known.covers(SEAL, Fate.DROPPED, "anthropic") is True


# ------------------------------------------------------------------------------------- the file


def test_an_entry_is_read() -> None:
    more = 'model = "claude-opus-5"\nservice = "checkout"\n'
    assert parse(ENTRY) == ((LOSS,), ())
    ((loss,), complaints) = parse(ENTRY + more)
    assert (loss.model, loss.service, complaints) == ("claude-opus-5", "checkout", ())


def test_a_point_in_time_is_taken_by_its_day_in_utc() -> None:
    ((loss,), _) = parse(ENTRY.replace("2026-11-29", "2026-11-29T23:30:00-05:00"))
    assert loss.expires == date(2026, 11, 30)


@pytest.mark.parametrize(
    ("found", "put", "complaint"),
    [
        (
            'fate = "dropped"',
            'fate = "drpped"',
            "fate cannot be used; give one of server_held, ",
        ),
        ('fate = "dropped"', "", "fate is missing; give one of server_held, "),
        ("expires = 2026-11-29", 'expires = "soon"', "expires cannot be used; give the last day"),
        ("expires = 2026-11-29", "", "expires is missing; give the last day as a date, such as"),
        (SEAL, "Not A Name", "artifact cannot be used; give the name of an artifact"),
        ('provider = "anthropic"', "provider = 5", "provider cannot be used; give the value of"),
        ('reason = "its issue 123"', 'reason = ""', "reason cannot be used; say why"),
        ("[[known]]", '[[known]]\nmodle = "x"', "modle is no key of an entry; take it out"),
        ("[[known]]", '[[known]]\nmodel = ["x"]', "model cannot be used; give the name of a model"),
        ('fate = "dropped"', "fate dropped", "no TOML (it begins in line 8); write each of its"),
    ],
)
def test_of_a_broken_entry_one_line_says_which_and_what_to_do(
    found: str, put: str, complaint: str
) -> None:
    """And the other entries are used."""
    text = f"{ENTRY}\n{ENTRY.replace(found, put)}\n{ENTRY}"
    losses, complaints = parse(text)
    assert losses == (LOSS, LOSS)
    (line,) = complaints
    assert line.startswith(f"entry 2: {complaint}")
    assert line.endswith("; the other entries are used")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", None),
        ("# nothing yet\n", "no entry in it; each begins with [[known]]"),
        ('artifact = "x"\n', "no entry in it; each begins with [[known]]"),
        ("known = 3", "entry 1: write it under [[known]]; the other entries are used"),
        ("{", "entry 1: no TOML; begin each entry with [[known]]; the other entries are used"),
    ],
)
def test_a_file_that_is_none(text: str, complaint: str | None) -> None:
    assert parse(text) == ((), () if complaint is None else (complaint,))


@pytest.mark.parametrize("data", [None, b"\xff\xfe", b"[[known]]\n"])
def test_a_file_that_cannot_be_used_costs_one_line_and_covers_nothing(
    data: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "known.toml"
    if data is not None:
        path.write_bytes(data)
    caplog.set_level(logging.WARNING, "otel_sealed")
    assert not read(str(path))
    (record,) = caplog.records
    assert record.getMessage().startswith(f"known losses, {path}: ")


def test_no_file_is_no_list_and_no_line(caplog: pytest.LogCaptureFixture) -> None:
    assert not read("")
    assert not read(None)
    assert caplog.records == []


def test_the_settings_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(ENTRY, "utf-8")
    bench = Bench(settings=Settings(known=str(path)))
    assert bench.emitter.room.known.losses == (LOSS,)


# ------------------------------------------------------------------------------- what it changes


def test_a_known_loss_keeps_fate_and_verdict_and_raises_nothing() -> None:
    calls: list[Alert] = []
    bench = Day().bench(LOSS, callbacks=[calls.append], with_processor=True)
    seen = bench.call(report(LOST))
    assert seen["otel_sealed.known"] is True
    assert seen["otel_sealed.verdict"] == "breaks"
    assert seen["otel_sealed.returned.fates"] == ("dropped",)
    assert (calls, bench.events(), bench.events("otel_sealed.disagreement")) == ([], [], [])
    assert bench.sums("otel_sealed.violations") == {
        ("anthropic", "breaks"): 0,
        ("anthropic", "degrades"): 0,
    }
    assert bench.sums("otel_sealed.violations.known") == {
        ("anthropic", "breaks"): 1,
        ("anthropic", "degrades"): 0,
    }
    assert list(bench.sums("otel_sealed.artifact.checks").values()) == [1]


def test_beside_a_known_loss_another_one_alerts_alone() -> None:
    calls: list[Alert] = []
    bench = Day().bench(LOSS, callbacks=[calls.append], with_processor=True)
    seen = bench.call(report(LOST, OTHER))
    assert "otel_sealed.known" not in seen
    assert [(alert.artifact, alert.fate) for alert in calls] == [(TEXT, Fate.MODIFIED)]
    assert len(bench.events()) == 1
    assert bench.sums("otel_sealed.violations")["anthropic", "degrades"] == 1
    assert bench.sums("otel_sealed.violations.known")["anthropic", "breaks"] == 1


def test_without_a_violation_nothing_is_known() -> None:
    assert "otel_sealed.known" not in Day().bench(LOSS).call(report(finding()))


@pytest.mark.parametrize("with_processor", [True, False])
def test_an_expired_entry_alerts_again(*, with_processor: bool) -> None:
    """Also about the very artifact that it was silent about in the same process."""
    calls: list[Alert] = []
    day = Day()
    bench = day.bench(LOSS, callbacks=[calls.append], with_processor=with_processor)
    bench.call(report(LOST))
    day.today += timedelta(days=1)
    seen = bench.call(report(LOST))
    bench.call(report(LOST))
    assert "otel_sealed.known" not in seen
    assert (len(calls), len(bench.events())) == (1, 1)
    assert bench.sums("otel_sealed.violations")["anthropic", "breaks"] == 2


def test_what_the_call_site_knew_the_processor_does_not_tell() -> None:
    """A span of another tracer need not name the provider that the entry asks for."""
    calls: list[Alert] = []
    bench = Day().bench(LOSS, callbacks=[calls.append], with_processor=True)
    bench.call(report(LOST, OTHER), owned=False)
    assert [alert.artifact for alert in calls] == [TEXT]


def test_a_refusal_of_a_known_loss_that_only_degraded_is_a_disagreement() -> None:
    loss = Loss(TEXT, Fate.MODIFIED, "anthropic", "why", TODAY)
    refused = {
        "provider_verdict": ProviderVerdict.REJECTED,
        "rejection": Rejection.SIGNATURE_INVALID,
    }
    bench = Day().bench(loss)
    bench.call(report(OTHER, **refused))
    assert bench.events() == []
    assert len(bench.events("otel_sealed.disagreement")) == 1
    assert list(bench.sums("otel_sealed.objections").values()) == [1]


@pytest.mark.parametrize("said", [ProviderVerdict.REJECTED, ProviderVerdict.REMOVED])
def test_an_objection_to_nothing_but_known_losses_is_no_news(said: ProviderVerdict) -> None:
    why = {"provider_verdict": said, "removals": (Removal("invalid_signature"),)}
    bench = Day().bench(LOSS)
    bench.call(report(LOST, **why))
    assert bench.sums("otel_sealed.objections") == {}
    bench.call(report(LOST, OTHER, **why))
    assert list(bench.sums("otel_sealed.objections").values()) == [1]


def test_a_processor_alone_reads_the_list_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It honours what a span says of itself, and what the file says of one that does not."""
    later = date.max.isoformat()
    path = tmp_path / "known.toml"
    path.write_text(ENTRY.replace("2026-11-29", later), "utf-8")
    monkeypatch.setenv("OTEL_SEALED_KNOWN", str(path))
    calls: list[Alert] = []
    marked, listed, plain = Day().bench(LOSS), Bench(), Bench()
    for bench, given in (
        (marked, report(LOST)),
        (listed, report(LOST)),
        (plain, report(OTHER)),
    ):
        bench.call(received(1))
        bench.call(given)
        if bench is marked:
            monkeypatch.delenv("OTEL_SEALED_KNOWN")
        else:
            monkeypatch.setenv("OTEL_SEALED_KNOWN", str(path))
        processor = SealedSpanProcessor(callbacks=[calls.append], strict=True)
        for span in bench.spans.get_finished_spans():
            processor.on_end(span)
    assert [alert.artifact for alert in calls] == [TEXT]
    assert calls[0].returned_position == "messages.1.content.0"
    assert calls[0].digest != digest(2).hex()
