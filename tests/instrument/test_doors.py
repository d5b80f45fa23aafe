"""The door matrix: whichever way an application goes, nothing is touched and all of it is seen.

Each door is gone through twice, without us and with us, against a provider that makes the same
values both times. What the application is given has to be equal, object for object, and so have the
bytes the provider received. What we saw has to be those bytes, the verdicts are the same at every
door of an SDK, and nothing that crossed the wire is in what goes out.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_sealed.instrument import instrument, uninstrument
from otel_sealed.testing import StrictProvider
from otel_sealed.testing.strict.records import Exchange as Sent
from otel_sealed.testing.sweep import Sweeper
from tests.instrument import doors_anthropic, doors_chat, doors_google, doors_openai
from tests.instrument.conftest import Spans
from tests.instrument.doors import CUSTOM_ID, PROMPT, Door, Watching
from tests.instrument.inprocess import dump
from tests.telemetry.builders import LOG_EXPORTER

DOORS = (*doors_anthropic.DOORS, *doors_openai.DOORS, *doors_chat.DOORS, *doors_google.DOORS)
CANARY: Final = "kingfisher lagoon verandah"
_BOUNDARY = re.compile(rb"[0-9a-f]{32}")


class Gone:
    """One way through a door: what the application was given, what the provider got and sent."""

    def __init__(self, door: Door) -> None:
        with StrictProvider(seed=7, canary=CANARY) as provider:
            self.told = [dump(value) for value in door.app(door.at(provider))]
            self.sent = provider.exchanges
            self.secrets = {"words": CANARY, "a prompt": PROMPT, "a name": CUSTOM_ID} | {
                f"{minted.kind} {number}": minted.value
                for number, minted in enumerate(provider.minted)
            }


def bodies(sent: list[Sent]) -> list[bytes]:
    """What the provider received; the boundary of a form is random."""
    return [
        _BOUNDARY.sub(b"", x.request_body) if b"filename=" in x.request_body else x.request_body
        for x in sent
    ]


def outputs(spans: Spans, reader: InMemoryMetricReader, events: Any, log: str) -> dict[str, str]:
    metrics = reader.get_metrics_data()
    return {
        "events": "\n".join(repr(vars(x.log_record)) for x in events.get_finished_logs()),
        "spans": "\n".join(span.to_json() for span in spans.ended),
        "metrics": metrics.to_json() if metrics is not None else "",
        "log": log,
    }


# What openai calls `connect` of websockets like, sync; it is deprecated there since 17.
@pytest.mark.filterwarnings(r"ignore:connect\(\) must be used as a context:DeprecationWarning")
@pytest.mark.parametrize("door", DOORS, ids=str)
def test_nothing_is_touched_and_all_is_seen(
    door: Door, spans: Spans, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    if not door.there():
        pytest.skip("this release of the SDK has no such door")
    Gone(door)  # openai's first item decides what class those like it are told to be
    bare = Gone(door)
    watching, events, logger = Watching(), LOG_EXPORTER(), LoggerProvider()
    logger.add_log_record_processor(SimpleLogRecordProcessor(events))
    instrument(
        door.sdk,
        tracer_provider=spans.provider,
        meter_provider=MeterProvider([reader]),
        logger_provider=logger,
        tracker=watching,
    )
    try:
        gone = Gone(door)
    finally:
        uninstrument()
    assert gone.told == bare.told
    for ours, theirs in zip(bodies(gone.sent), bodies(bare.sent), strict=True):
        assert ours == theirs
    assert [x.status for x in gone.sent] == [x.status for x in bare.sent]
    assert door.same(watching.exchanges, door.turns(gone.sent))
    assert watching.told() == door.told
    assert len(spans.ended) == len(watching.exchanges)
    assert Sweeper(gone.secrets).sweep(outputs(spans, reader, events, caplog.text)) == []
    names = {(x.log_record.attributes or {})["event.name"] for x in events.get_finished_logs()}
    assert ("otel_sealed.violation" in names) is bool(door.told.lost)


def test_every_door_has_a_name_of_its_own() -> None:
    assert len({str(door) for door in DOORS}) == len(DOORS)
