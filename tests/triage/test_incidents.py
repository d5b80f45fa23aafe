"""How calls of a conversation become incidents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.resources import Resource

from otel_sealed.cli.folder import recording
from otel_sealed.testing.hosts import Host, hosts, play
from otel_sealed.triage.incidents import incidents
from otel_sealed.triage.model import Call, Incident, Minted, Outcome, Row
from tests.triage.replay import incidents_in

SEAL = "anthropic.thinking.signature"


def call(
    number: int,
    *rows: Row,
    said: str = "accepted",
    rejection: str = "",
    mints: tuple[str, ...] = (),
    returned: int = 0,
) -> Call:
    return Call(
        at=number * 1_000_000_000,
        trace=f"{number:032x}",
        span=f"{number:016x}",
        conversation="ab" * 16,
        said=said,
        rejection=rejection,
        returned=rows,
        received=tuple(Minted(SEAL, d, 10, f"content.{i}") for i, d in enumerate(mints)),
        returned_count=returned,
    )


def row(digest: str, fate: str = "dropped", verdict: str = "breaks", position: str = "") -> Row:
    return Row(SEAL, digest, -1, position, fate, verdict, "A1")


REFUSED = {"said": "rejected", "rejection": "thinking_missing"}


# --------------------------------------------------------------------------------- on real calls


@pytest.fixture(scope="module", name="by_host")
def _by_host(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Incident]]:
    found = {}
    for host in hosts():
        parent = tmp_path_factory.mktemp("host")
        with recording(host.name, parent) as made:
            list(_played(host, made.tracer, made.meter, made.logger))
        found[host.name] = incidents_in(parent / ".otel-sealed")
    return found


def _played(host: Host, tracer: object, meter: object, logger: object) -> Iterator[object]:
    yield from play(
        [host],
        tracer_provider=tracer,  # type: ignore[arg-type]
        meter_provider=meter,  # type: ignore[arg-type]
        logger_provider=logger,  # type: ignore[arg-type]
    )


def test_every_host_that_loses_something_is_one_incident(
    by_host: dict[str, list[Incident]],
) -> None:
    violating = {
        host.name: 1 if any(loss.verdict.violates for loss in host.losses) else 0
        for host in hosts()
    }
    assert violating == {name: len(found) for name, found in by_host.items()}


def test_the_incident_of_a_host_is_what_the_host_is_known_for(
    by_host: dict[str, list[Incident]],
) -> None:
    for host in hosts():
        losses = [loss for loss in host.losses if loss.verdict.violates]
        for found in by_host[host.name]:
            first = losses[0]
            told = (found.first_bad.number, found.lead.artifact, found.lead.fate)
            assert (first.turn, first.artifact, first.fate) == told, host.name
            assert found.affected == len({loss.turn for loss in losses}), host.name
            assert {(p.artifact, p.fate) for p in found.parts} == {
                (loss.artifact, loss.fate) for loss in losses
            }, host.name
            assert (host.rejection or "") == found.rejection, host.name
            outcome = Outcome.REFUSED if host.rejection else Outcome.SILENT
            assert outcome is found.outcome, host.name
            assert found.lead.locus == "process", host.name
            assert found.minted is not None, host.name
            assert found.last_good is not None, host.name


def test_who_made_the_calls_is_told(by_host: dict[str, list[Incident]]) -> None:
    about = by_host["anthropic-shortener"][0].about
    assert about.service == "anthropic-shortener"
    assert any(version.startswith("anthropic=") for version in about.sdks)
    assert about.otel == Resource.create().attributes["telemetry.sdk.version"]


# -------------------------------------------------------------------------------------- by hand


def test_nothing_wrong_is_no_incident() -> None:
    assert incidents([call(1, mints=("aa",)), call(2, row("aa", "intact", "ok", "x.0"))]) == []


def test_what_a_rule_allows_is_no_incident() -> None:
    assert incidents([call(1, mints=("aa",)), call(2, row("aa", "dropped", "allowed"))]) == []


def test_the_same_value_in_later_calls_is_the_same_incident_and_counts_them() -> None:
    calls = [call(1, mints=("aa",)), call(2, row("aa")), call(3, row("aa")), call(4, row("aa"))]
    (found,) = incidents(calls)
    assert (found.first_bad.number, found.last_bad.number, found.affected) == (2, 4, 3)
    assert [3] == [part.calls for part in found.parts]
    assert found.growing


def test_a_habit_is_one_incident_however_many_values_it_breaks() -> None:
    calls = [call(1, mints=("aa",)), call(2, row("aa"), mints=("bb",)), call(3, row("bb"))]
    (found,) = incidents(calls)
    assert [1, 2] == [part.minted.number for part in found.parts if part.minted]


def test_two_different_faults_in_different_calls_are_two_incidents() -> None:
    calls = [
        call(1, mints=("aa", "bb")),
        call(2, row("aa")),
        call(3, row("cc", "modified", "degrades", "messages.1.content.1")),
    ]
    assert ["dropped", "modified"] == [found.lead.fate for found in incidents(calls)]


def test_the_findings_of_one_call_are_one_incident_led_by_the_worst() -> None:
    both = (row("bb", "modified", "degrades", "x.1"), row("aa"))
    (found,) = incidents([call(1, mints=("aa", "bb")), call(2, *both)])
    assert ["dropped", "modified"] == [part.fate for part in found.parts]


def test_a_refusal_and_a_success_with_fewer_seals_is_recovered_by_loss() -> None:
    bad = row("ff", "modified", "breaks", "messages.1.content.0")
    calls = [
        call(1, mints=("aa",)),
        call(2, bad, said="rejected", rejection="signature_invalid", returned=1),
        call(3, row("aa", "dropped", "allowed"), returned=0),
        call(4, returned=0),
    ]
    (found,) = incidents(calls)
    assert (Outcome.RECOVERED_BY_LOSS, 1, False) == (found.outcome, found.affected, found.growing)


def test_a_retry_that_violates_in_another_way_belongs_to_the_refusal() -> None:
    bad = row("ff", "modified", "breaks", "messages.1.content.0")
    calls = [
        call(1, mints=("aa",)),
        call(2, bad, said="rejected", rejection="signature_invalid", returned=1),
        call(3, row("aa", "dropped", "degrades"), returned=0),
    ]
    (found,) = incidents(calls)
    assert Outcome.RECOVERED_BY_LOSS is found.outcome
    assert ["modified", "dropped"] == [part.fate for part in found.parts]


def test_a_refusal_and_a_success_with_all_seals_is_recovered() -> None:
    calls = [
        call(1, mints=("aa",)),
        call(2, row("aa"), said="rejected", rejection="thinking_missing", returned=0),
        call(3, row("aa", "intact", "ok", "messages.1.content.0"), returned=1),
    ]
    (found,) = incidents(calls)
    assert Outcome.RECOVERED is found.outcome


def test_a_refusal_of_something_else_is_no_incident() -> None:
    refused = call(2, row("aa", "intact", "ok", "x.0"), said="rejected", rejection="other")
    assert incidents([call(1, mints=("aa",)), refused]) == []


def test_clean_here_and_refused_there_is_beyond_and_proven() -> None:
    well = row("aa", "intact", "ok", "messages.1.content.0")
    refused = call(2, well, said="rejected", rejection="signature_invalid", returned=1)
    (found,) = incidents([call(1, mints=("aa",)), refused])
    assert ("beyond", "intact", "proven") == (
        found.lead.locus,
        found.lead.fate,
        found.lead.confidence,
    )
    assert found.remedies[0].loses == "nothing"


def test_a_refusal_of_what_was_never_seen_coming_in_accuses_nobody() -> None:
    strange = row("aa", "unknown", "unverifiable", "messages.1.content.0")
    (found,) = incidents([call(1, strange, said="rejected", rejection="signature_invalid")])
    assert ("", "inferred") == (found.lead.locus, found.lead.confidence)


def test_calls_in_any_order_tell_the_same() -> None:
    calls = [call(1, mints=("aa",)), call(2, row("aa")), call(3, row("aa"))]
    assert incidents(calls) == incidents(calls[::-1])
    assert incidents(calls) == incidents(calls + calls)
