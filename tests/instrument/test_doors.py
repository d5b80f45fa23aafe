"""The door matrix: whichever way an application goes, nothing is touched and all of it is seen.

Each door is gone through twice, without us and with us, against a provider that makes the same
values both times. What the application is given has to be equal, object for object, and so have the
bytes the provider received. What we saw has to be those bytes, and the verdicts are the same at
every door of an SDK.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_sealed.instrument import instrument, uninstrument
from otel_sealed.testing import StrictProvider
from otel_sealed.testing.strict.records import Exchange as Sent
from tests.instrument import doors_anthropic, doors_google, doors_openai
from tests.instrument.doors import Door, Watching
from tests.instrument.inprocess import dump

DOORS = (*doors_anthropic.DOORS, *doors_openai.DOORS, *doors_google.DOORS)
_BOUNDARY = re.compile(rb"[0-9a-f]{32}")


def gone_through(door: Door) -> tuple[list[Any], list[Sent]]:
    """What the application was given, and what the provider got and sent."""
    with StrictProvider(seed=7) as provider:
        told = door.app(provider.base_url)
        return [dump(value) for value in told], provider.exchanges


def bodies(sent: list[Sent]) -> list[bytes]:
    """What the provider received; the boundary of a form is random."""
    return [
        _BOUNDARY.sub(b"", x.request_body) if b"filename=" in x.request_body else x.request_body
        for x in sent
    ]


# What openai calls `connect` of websockets like, sync; it is deprecated there since 17.
@pytest.mark.filterwarnings(r"ignore:connect\(\) must be used as a context:DeprecationWarning")
@pytest.mark.parametrize("door", DOORS, ids=str)
def test_nothing_is_touched_and_all_is_seen(door: Door) -> None:
    if not door.there():
        pytest.skip("this release of the SDK has no such door")
    bare_told, bare_sent = gone_through(door)
    watching = Watching()
    instrument(door.sdk, tracer_provider=TracerProvider(), tracker=watching)
    try:
        told, sent = gone_through(door)
    finally:
        uninstrument()
    assert told == bare_told
    for ours, bare in zip(bodies(sent), bodies(bare_sent), strict=True):
        assert ours == bare
    assert [x.status for x in sent] == [x.status for x in bare_sent]
    assert door.same(watching.exchanges, door.turns(sent))
    assert watching.told() == door.told


def test_every_door_has_a_name_of_its_own() -> None:
    assert len({str(door) for door in DOORS}) == len(DOORS)
