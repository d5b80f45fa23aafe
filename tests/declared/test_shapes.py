"""Whatever has to know a wire knows every dialect: inspection, evidence and routes.

Each dialect declares how its requests and responses look and where its requests go. A sample of
each is one of its own and of no other.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import otel_sealed
from otel_sealed.contract import Carrier, Dialect, Exchange, Path, Proof
from otel_sealed.errors import SealedError
from otel_sealed.http.adapter import Reading
from otel_sealed.http.records import Capture, Passed
from otel_sealed.instrument.routes import sends_turn
from otel_sealed.providers import counting, dialects
from otel_sealed.providers.vendors import HOSTS
from otel_sealed.tracker import Tracker
from otel_sealed.triage.incidents import ordered
from otel_sealed.triage.strip import strips
from otel_sealed.vocab import is_seal
from tests.core.conversations import KEY
from tests.declared.samples import SAMPLES, Sample
from tests.report.records import call, minted, row

DIALECTS = sorted(dialects().values(), key=lambda dialect: dialect.name)
PATHS = [
    pytest.param(dialect, path, id=f"{dialect.name}{path.ends[0]}")
    for dialect in DIALECTS
    for path in dialect.paths
]


def sample_of(dialect: Dialect) -> Sample:
    return next(sample for sample in SAMPLES.values() if sample.api is dialect.api)


def whose(body: Any, what: str) -> set[str]:
    """The dialects that take a JSON value for a request (`asks`) or an answer of theirs."""
    return {d.name for d in DIALECTS if isinstance(body, dict) and getattr(d, what)(body)}


def test_every_dialect_has_a_sample() -> None:
    assert dialects().keys() == {sample.api for sample in SAMPLES.values()}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_response_is_of_one_dialect_only(name: str) -> None:
    sample = SAMPLES[name]
    assert {dialects()[sample.api].name} == whose(sample.answer, "answers")


@pytest.mark.parametrize("name", SAMPLES)
def test_no_event_of_a_stream_is_of_another_dialect(name: str) -> None:
    sample = SAMPLES[name]
    fits = [whose(event, "answers") for event in sample.stream]
    assert {dialects()[sample.api].name} == set().union(*fits)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_dialect_knows_its_requests_and_no_response(name: str) -> None:
    sample = SAMPLES[name]
    assert dialects()[sample.api].asks(sample.asked)
    assert not whose(sample.asked, "answers")


# ------------------------------------------------------------------------------------- inspection


@pytest.mark.parametrize("name", SAMPLES)
def test_inspect_knows_every_dialect_and_sees_what_the_tracker_receives(name: str) -> None:
    sample = SAMPLES[name]
    found = otel_sealed.inspect(json.dumps(sample.answer))
    report = Tracker(KEY).observe(Exchange(sample.api, response=sample.answer, status=200))
    received = [came.artifact for came in report.received if is_seal(came.artifact)]
    assert dialects()[sample.api].name == found.dialect
    assert received == [seal.artifact for seal in found.seals] != []


@pytest.mark.parametrize("name", SAMPLES)
def test_inspect_sees_in_a_stream_what_it_sees_in_the_whole(name: str) -> None:
    sample = SAMPLES[name]
    whole = otel_sealed.inspect(sample.answer)
    stream = otel_sealed.inspect([event for event in sample.stream if event is not None])
    assert (whole.dialect, whole.seals) == (stream.dialect, stream.seals)


def test_a_response_of_a_wire_that_no_dialect_reads_is_not_taken_for_one_without_seals() -> None:
    said = {"type": "response.audio.delta", "delta": "AAAA", "signature": "EqoB"}
    with pytest.raises(SealedError, match="no response of a known provider"):
        otel_sealed.inspect({"said": [said]})


# --------------------------------------------------------------------------- evidence and routes


@pytest.mark.parametrize(("dialect", "path"), PATHS)
def test_a_recording_of_every_path_is_read_as_its_api(dialect: Dialect, path: Path) -> None:
    for end in path.ends:
        url = f"https://gateway.example{path.under or '/'}x{end}"
        body = json.dumps(sample_of(dialect).asked)
        made = Reading(Passed()).exchange(Capture("POST", url, {}, body, 200), 0)
        assert made is not None
        assert (dialect.api, path.operation) == (made.api, made.operation)


@pytest.mark.parametrize("path", [path for dialect in DIALECTS for path in dialect.paths])
def test_turns_to_every_path_are_noticed_as_far_as_it_proves_them(path: Path) -> None:
    for end in path.ends:
        noticed = sends_turn(HOSTS[0], f"{path.under}x{end}", None)
        assert noticed is (path.sends and path.proof is not Proof.BODY)
        elsewhere = sends_turn("gateway.example", f"{path.under}x{end}", None)
        assert elsewhere is (path.sends and path.proof is Proof.PATH)
    if path.gateway:
        assert path.fits(path.gateway)
        assert sends_turn("gateway.example", path.gateway, {"model": "m"})
        assert not sends_turn("gateway.example", path.gateway, {"to": "1", "text": "x"})


@pytest.mark.parametrize(("dialect", "path"), PATHS)
def test_an_operation_that_only_counts_is_no_turn(dialect: Dialect, path: Path) -> None:
    sample = sample_of(dialect)
    one = Exchange(dialect.api, request=sample.asked, response=sample.answer, status=200)
    one.operation = path.operation
    report = Tracker(KEY).observe(one)
    assert path.sends is any(is_seal(came.artifact) for came in report.received)
    assert path.sends is (path.operation not in counting())


# ------------------------------------------------------------------------------- lists of blocks

LISTED = [
    pytest.param(dialect, carrier, id=carrier.type)
    for dialect in DIALECTS
    for carrier in dialect.carriers.values()
    if carrier.listed
]


@pytest.mark.parametrize(("dialect", "carrier"), LISTED)
def test_a_block_in_a_declared_list_is_read_in_its_place(
    dialect: Dialect, carrier: Carrier
) -> None:
    item = {"type": carrier.type, carrier.type: {}, "signature": "c2VhbA=="}
    message = {"role": "assistant", carrier.listed: [item]}
    answer = dialect.answer({"choices": [{"message": message}]})
    assert ((f"{carrier.listed}.0", item),) == answer.parts
    assert carrier.type == dialect.type_of(item)


@pytest.mark.parametrize(("dialect", "carrier"), LISTED)
def test_a_strip_finds_the_block_of_a_value_in_a_declared_list(
    dialect: Dialect, carrier: Carrier
) -> None:
    """The second of its list is the third of all; where it is gone its column says so."""
    place = f"choices.0.message.{carrier.listed}.1.x"
    types = (carrier.type, "text", carrier.type)
    first = call(1, received=(minted("1", place),), received_types=types)
    lost = row("1", "", "dropped", locus="process")
    second = call(2, returned=(lost,), returned_types=types[:2], verdict="breaks")
    (strip,) = strips(ordered([first, second]), [2])
    assert [False, False, True] == [column.sealed for column in strip.columns]
    assert dialect.carriers[carrier.type] is carrier
