"""Whatever function of ours fails, the application gets what it would have got, and it is counted.

By default every function that a call or a stream of anthropic reaches is made to raise; the whole
product (every SDK, every delivery, raising and returning rubbish) is `.ci/run faults`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from otel_sealed.instrument import guard, instrument, uninstrument
from tests.instrument.faults import HUGE, InjectedError, Target, broken, targets
from tests.instrument.inprocess import clients
from tests.instrument.scenes import SCENES, Outcome, Scene

WRAPPER = "is what the SDK or the reader calls in place of its own: nothing stands before it"
GUARD = "is the guard itself"

NOT_BROKEN: Final = {
    "instrument.guard:shield.__init__": GUARD,
    "instrument.guard:shield.__enter__": GUARD,
    "instrument.guard:shield.__exit__": GUARD,
    "instrument.seam:Patch._call": WRAPPER,
    "instrument.stainless:Stainless._request": WRAPPER,
    "instrument.stainless:Stainless._async_request": WRAPPER,
    "instrument.stainless:Stainless._build_request": WRAPPER,
    "instrument.stainless:_make_status_error": WRAPPER,
    "instrument.stainless:_process_response": WRAPPER,
    "instrument.genai:GenAI._request": WRAPPER,
    "instrument.genai:GenAI._async_request": WRAPPER,
    "instrument.genai:GenAI._streamed": WRAPPER,
    "instrument.genai:GenAI._async_streamed": WRAPPER,
    "instrument.genai:GenAI._drive": WRAPPER,
    "instrument.interactions:Interactions._request": WRAPPER,
    "instrument.interactions:Interactions._async_request": WRAPPER,
    "instrument.loops:Loops._whole": WRAPPER,
    "instrument.loops:Loops._async_whole": WRAPPER,
    "instrument.loops:Loops._stream": WRAPPER,
    "instrument.loops:Loops._async_stream": WRAPPER,
    "instrument.loops:Loops._drive": WRAPPER,
    "instrument.loops:_within": WRAPPER,
    "instrument.loops:_within_async": WRAPPER,
    "instrument.sockets:Sockets._opened": WRAPPER,
    "instrument.sockets:Sockets._connected": WRAPPER,
    "instrument.sockets:Sockets._async_connected": WRAPPER,
    "instrument.sockets:_sync.<locals>.shadow": WRAPPER,
    "instrument.sockets:_async.<locals>.shadow": WRAPPER,
    "instrument.sockets:_shadow.<locals>.real": WRAPPER,
    "instrument.tee:_Tee.__getattr__": WRAPPER,
    "instrument.tee:_SyncTee.__iter__": WRAPPER,
    "instrument.tee:_SyncTee.close": WRAPPER,
    "instrument.tee:_AsyncTee.__aiter__": WRAPPER,
    "instrument.tee:_AsyncTee.aclose": WRAPPER,
    "instrument.tee:observed": WRAPPER,
    "instrument.tee:observed_async": WRAPPER,
    "instrument.span:Claim._ending": "is what another tracer calls in place of its span's own end",
}
"""Functions that are not made to fail, and why nothing could be done if they did."""

COUNTER = "is the way to the counter: what fails there is logged"

NOT_COUNTED: Final = {
    "telemetry.metrics:Series.admit": COUNTER,
    "telemetry.metrics:Series._take": COUNTER,
    "telemetry.metrics:Metrics._add": COUNTER,
}
"""Functions whose failure no metric tells, and who tells it."""

RUBBISH: Final[dict[str, dict[str, Any]]] = {
    "raises": {"raises": True},
    "none": {"raises": False, "rubbish": None},
    "object": {"raises": False, "rubbish": object()},
    "huge": {"raises": False, "rubbish": HUGE},
}
SAMPLE: Final = ("anthropic-whole", "anthropic-stream")


@pytest.fixture(autouse=True)
def lenient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in production; what finalizers raise is the interpreter's to report."""
    monkeypatch.setattr(guard, "STRICT", False)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    logger = logging.getLogger("otel_sealed")
    monkeypatch.setattr(logger, "disabled", True)
    gc.freeze()  # what there is already is not what we make; a collection need not look at it
    yield
    gc.collect()
    gc.unfreeze()


def reached(scene: Scene) -> list[Target]:
    """The functions of ours that a scene runs through, in a run without faults."""
    seen: set[Any] = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(note)
    try:
        observed(scene)
    finally:
        sys.setprofile(None)
    return [target for target in targets() if target.key in seen]


def observed(
    scene: Scene, target: Target | None = None, **how: Any
) -> tuple[Outcome | str, bool, int]:
    """(what the application sees, whether the fault was counted, how often it was met)."""
    provider, reader = TracerProvider(), InMemoryMetricReader()
    told: list[str] = []
    handle = instrument(tracer_provider=provider, meter_provider=MeterProvider([reader]))
    emitter = handle.runtime.emitter
    provider.add_span_processor(emitter.processor())  # type: ignore[attr-defined]

    def tell(where: str, kind: str) -> None:
        told.append(kind)
        emitter.internal_error(where, kind)

    guard.on_error(tell)
    try:
        if target is None:
            return scene(clients()), False, 0
        with broken(target, **how) as strike:
            seen = survived(scene)
    finally:
        uninstrument()
    return seen, InjectedError.__name__ in {*told, *counted(reader)}, strike.hits


def counted(reader: InMemoryMetricReader) -> Iterator[Any]:
    """The classes of the errors that the metric of our own faults tells."""
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data is not None else ():
        for metric in (m for scope in resource.scope_metrics for m in scope.metrics):
            if metric.name == "otel_sealed.internal.errors":
                points: Any = metric.data.data_points
                # rubbish of ours may have come in the place of the labels
                yield from ((point.attributes or {}).get("error.type") for point in points)


def survived(scene: Scene) -> Outcome | str:
    try:
        return scene(clients())
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - any of them is a finding
        return f"raised {type(error).__name__}"


def faults(name: str, mode: str) -> dict[str, str]:
    """Every function whose failure the application noticed, or nobody counted."""
    scene = SCENES[name]
    bare = scene(clients())
    found = {}
    for target in reached(scene):
        if str(target) in NOT_BROKEN:
            continue
        seen, counted, hits = observed(scene, target, **RUBBISH[mode])
        if seen != bare:
            found[str(target)] = seen if isinstance(seen, str) else "another outcome"
        elif mode == "raises" and hits and not counted and str(target) not in NOT_COUNTED:
            found[str(target)] = "not counted"
    return found


@pytest.mark.parametrize("name", SAMPLE)
def test_the_application_notices_nothing(name: str) -> None:
    assert faults(name, "raises") == {}


@pytest.mark.faults
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", RUBBISH)
@pytest.mark.parametrize("name", SCENES)
def test_the_application_notices_nothing_of_any_fault(name: str, mode: str) -> None:
    assert faults(name, mode) == {}


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_without_faults_is_as_without_us(name: str) -> None:
    scene = SCENES[name]
    bare = scene(clients())
    assert observed(scene)[0] == bare
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_what_is_left_out_exists() -> None:
    names = {str(target) for target in targets()}
    assert set(NOT_BROKEN) | set(NOT_COUNTED) <= names
