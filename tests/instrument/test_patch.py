"""Instrumenting is idempotent and symmetric, and never takes away what is somebody else's."""

from __future__ import annotations

import importlib
import inspect
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
import wrapt
from google import genai
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import otel_sealed
from otel_sealed.instrument import guard, instrument, seam, uninstrument
from otel_sealed.instrument.clients import CLIENTS
from otel_sealed.instrument.helpers import BETA_MESSAGES, CHAT, MESSAGES, RESPONSES
from otel_sealed.telemetry.settings import Settings

if TYPE_CHECKING:
    from otel_sealed.instrument import Handle
    from tests.instrument.conftest import Recorder, Spans, Wire

OWNERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (anthropic._base_client.SyncAPIClient, ("request", "_process_response", "post")),
    (anthropic._base_client.AsyncAPIClient, ("request", "_process_response", "post")),
    (
        anthropic._base_client.BaseClient,
        ("_build_request", "_make_status_error_from_response"),
    ),
    (openai._base_client.SyncAPIClient, ("request", "_process_response", "post")),
    (openai._base_client.AsyncAPIClient, ("request", "_process_response", "post")),
    (openai._base_client.BaseClient, ("_build_request", "_make_status_error_from_response")),
    (
        genai._api_client.BaseApiClient,
        ("request", "async_request", "request_streamed", "async_request_streamed"),
    ),
    *(
        (getattr(importlib.import_module(helpers.module), seam.owner), (seam.name,))
        for helpers in (MESSAGES, BETA_MESSAGES, RESPONSES, CHAT)
        for seam in helpers.seams()
    ),
)

_SOCKETS: list[Any] = [importlib.import_module("openai.resources.responses.responses")]
if importlib.util.find_spec("openai.resources.beta.responses") is not None:
    _SOCKETS.append(importlib.import_module("openai.resources.beta.responses.responses"))
for _module in _SOCKETS:
    for _kind in ("", "Async") if hasattr(_module.Responses, "connect") else ():
        _line = getattr(_module, f"{_kind}ResponsesConnection")
        OWNERS += ((_line, ("__init__",)),)
        if hasattr(_line, "_reconnect"):
            OWNERS += ((getattr(_module, f"{_kind}ResponsesConnectionManager"), ("_connect_ws",)),)

try:  # the Interactions API has another client before 2.34, and none before 1.55
    basesdk: Any = importlib.import_module("google.genai._gaos.basesdk")
except ImportError:
    basesdk = None
try:
    legacy: Any = importlib.import_module("google.genai._interactions._base_client")
except ImportError:
    legacy = None
OWNERS += tuple(
    (getattr(importlib.import_module(f"google.genai.{module}"), owner), names)
    for module, owners, names in (
        ("models", ("Models", "AsyncModels"), ("generate_content", "generate_content_stream")),
        ("chats", ("Chat", "AsyncChat"), ("send_message", "send_message_stream")),
    )
    for owner in owners
)
if basesdk is not None:
    OWNERS += (
        (basesdk.BaseSDK, ("do_request",)),
        (basesdk.AsyncBaseSDK, ("do_request_async",)),
    )
if legacy is not None:
    OWNERS += (
        (legacy.SyncAPIClient, ("request", "_process_response", "post")),
        (legacy.AsyncAPIClient, ("request", "_process_response", "post")),
        (legacy.BaseClient, ("_build_request", "_make_status_error_from_response")),
    )
for _owner in (anthropic._base_client.SyncAPIClient, anthropic._base_client.AsyncAPIClient):
    if hasattr(_owner, "_copy_and_prepare"):  # since the SDK opens a span of its own
        OWNERS += ((_owner, ("_copy_and_prepare",)),)
PLACES: dict[type, str] = {}
"""Where a class is, of those that say something else."""
for _client in CLIENTS:  # those that are installed, here or in the job of another version
    _there = _client.light and importlib.util.find_spec(_client.module.partition(".")[0])
    for _name, _method, _ in _client.methods if _there else ():
        _owner = getattr(importlib.import_module(_client.module), _name)
        OWNERS += ((_owner, (_method,)),)
        PLACES[_owner] = _client.module
HTTP = {_client.module.partition(".")[0] for _client in CLIENTS}
ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}
MESSAGE = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[]}'


def methods() -> dict[str, Any]:
    return {
        f"{PLACES.get(owner, owner.__module__)}.{owner.__qualname__}.{name}": vars(owner)[name]
        for owner, names in OWNERS
        for name in names
    }


def call(wire: Wire) -> None:
    wire.replies.clear()
    wire.answers(MESSAGE)
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        client.messages.create(**ASK)


def test_symmetric(spans: Spans, tracker: Recorder) -> None:
    """Uninstrumenting leaves every method as it was found, object for object."""
    before = methods()
    with instrument(tracer_provider=spans.provider, tracker=tracker) as handle:
        during = methods()
        assert sorted(handle.attached) == sorted(before)
        assert handle.missing == ()
    assert [name for name in before if during[name] is before[name]] == []
    assert methods() == before


@pytest.mark.usefixtures("handle")
def test_wrapped_methods_look_alike() -> None:
    """A wrapped method keeps its name, signature and kind."""
    wrapped = methods()
    uninstrument()
    for name, method in methods().items():
        mine = wrapped[name]
        assert inspect.signature(mine) == inspect.signature(method)
        assert mine.__name__ == method.__name__
        assert inspect.iscoroutinefunction(mine) == inspect.iscoroutinefunction(method)


def test_twice(handle: Handle, tracker: Recorder, wire: Wire) -> None:
    """A second `instrument` returns the same handle and observes nothing twice."""
    assert instrument("anthropic") is handle
    call(wire)
    assert len(tracker.exchanges) == 1


def test_again(tracker: Recorder, spans: Spans, wire: Wire) -> None:
    """After `uninstrument` nothing is observed, after another `instrument` it is again."""
    for expected in (1, 2):
        instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
        call(wire)
        uninstrument()
        uninstrument()
        call(wire)
        assert len(tracker.exchanges) == expected


def test_only_what_is_named(tracker: Recorder) -> None:
    """Only the named SDKs are wrapped, and HTTP clients; another call adds to them."""
    handle = instrument("openai", tracker=tracker)
    assert {name.split(".")[0] for name in handle.attached} - HTTP == {"openai"}
    instrument("google", tracker=tracker)
    assert {name.split(".")[0] for name in handle.attached} - HTTP == {"openai", "google"}


def test_unknown_provider() -> None:
    """A provider without an adapter is an error of the caller."""
    with pytest.raises(ValueError, match="no adapter for acme"):
        instrument("acme")


def test_disabled_by_settings(tracker: Recorder) -> None:
    """Switched off by its settings, it wraps nothing."""
    before = methods()
    handle = instrument(tracker=tracker, settings=Settings(enabled=False))
    assert (handle.attached, methods()) == ((), before)


@pytest.mark.parametrize("theirs_first_off", [True, False])
def test_another_wrapper_on_top(
    tracker: Recorder, spans: Spans, wire: Wire, *, theirs_first_off: bool
) -> None:
    """Whoever is uninstrumented first, the other's wrapper stays and works; no layer is added."""
    owner = anthropic._base_client.SyncAPIClient
    found = vars(owner)["request"]
    seen: list[str] = []

    def other(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        seen.append("other")
        return wrapped(*args, **kwargs)

    instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
    mine = vars(owner)["request"]
    theirs = wrapt.FunctionWrapper(mine, other)
    setattr(owner, "request", theirs)  # noqa: B010 - as other instrumentations do
    try:
        if theirs_first_off:
            setattr(owner, "request", theirs.__wrapped__)  # noqa: B010
            call(wire)
            assert (seen, len(tracker.exchanges)) == ([], 1)
            uninstrument()
            assert vars(owner)["request"] is found
            return
        uninstrument()
        assert vars(owner)["request"] is theirs
        call(wire)
        assert (seen, tracker.exchanges) == (["other"], [])
        instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
        assert vars(owner)["request"] is theirs
        call(wire)
        assert (seen, len(tracker.exchanges)) == (["other", "other"], 1)
        uninstrument()
    finally:
        setattr(owner, "request", found)  # noqa: B010


def test_another_restores_ours(tracker: Recorder, spans: Spans, wire: Wire) -> None:
    """Another that kept our wrapper, and brings it back on a subclass, hides nothing from us."""
    instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
    kept = anthropic.Anthropic.request
    uninstrument()
    anthropic.Anthropic.request = kept  # type: ignore[method-assign]
    try:
        call(wire)
        assert tracker.exchanges == []
        instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
        call(wire)
        assert len(tracker.exchanges) == 1
    finally:
        del anthropic.Anthropic.request


def test_seams_are_counted_by_state_at_each_collection(
    monkeypatch: pytest.MonkeyPatch, tracker: Recorder
) -> None:
    monkeypatch.delattr(genai._api_client.BaseApiClient, "request_streamed")
    reader = InMemoryMetricReader()
    handle = instrument("google", tracker=tracker, meter_provider=MeterProvider([reader]))
    data = reader.get_metrics_data()
    assert data is not None
    (seams,) = (
        metric
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "otel_sealed.seams"
    )
    assert {
        (point.attributes or {})["otel_sealed.seam.state"]: getattr(point, "value", None)
        for point in seams.data.data_points
    } == {"attached": len(handle.attached), "missing": 1}


@pytest.mark.parametrize(
    ("sdk", "providers"),
    [
        ("anthropic", {"anthropic"}),
        ("openai", {"openai"}),
        ("google", {"gcp.gemini", "gcp.vertex_ai"}),
    ],
)
def test_violations_of_a_patched_sdk_are_there_from_the_beginning_at_zero(
    sdk: str, providers: set[str], tracker: Recorder
) -> None:
    reader = InMemoryMetricReader()
    instrument(sdk, tracker=tracker, meter_provider=MeterProvider([reader]))
    data = reader.get_metrics_data()
    assert data is not None
    points = [
        ((point.attributes or {})["gen_ai.provider.name"], getattr(point, "value", None))
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "otel_sealed.violations"
        for point in metric.data.data_points
    ]
    assert {(provider, 0) for provider in providers} == set(points)


def test_missing_seam(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tracker: Recorder,
    reader: InMemoryMetricReader,
    wire: Wire,
) -> None:
    """A private name that is gone is logged and counted; calls go on, the rest is observed."""
    monkeypatch.setattr(guard, "STRICT", False)
    monkeypatch.delattr(anthropic._base_client.BaseClient, "_make_status_error_from_response")
    with caplog.at_level(logging.WARNING):
        handle = instrument("anthropic", meter_provider=MeterProvider([reader]), tracker=tracker)
    name = "anthropic._base_client.BaseClient._make_status_error_from_response"
    assert handle.missing == (name,)
    assert [r.getMessage() for r in caplog.records if name in r.getMessage()] != []
    assert counted(reader, "otel_sealed.internal.errors") == 1
    call(wire)
    assert len(tracker.exchanges) == 1


def counted(reader: InMemoryMetricReader, name: str) -> float:
    data = reader.get_metrics_data()
    if data is None:
        return 0
    return sum(
        point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
        if hasattr(point, "value")
    )


@pytest.mark.parametrize("module", ["anthropic", "openai", "google.genai"])
def test_imported_later(module: str) -> None:
    """An SDK imported after `instrument` is wrapped then, unless we are off again by then."""
    done = run(
        "import sys",
        "from otel_sealed import instrument, uninstrument",
        "handle = instrument()",
        f"assert {module!r} not in sys.modules, 'imported by us'",
        "assert handle.attached == ()",
        f"import {module}",
        "adapters = [a for made in handle._adapters.values() for a in made]",
        "there = [a for a in adapters if a.module in sys.modules]",
        "due = [s for a in there for s in a.seams() if s.expected(sys.modules[a.module])]",
        "print(len(handle.attached), len(due))",
        "uninstrument()",
    )
    attached, expected = map(int, done.split())
    assert attached == expected >= 4
    done = run(
        "from otel_sealed import instrument, uninstrument",
        "instrument()",
        "uninstrument()",
        f"import {module}",
        "print(instrument().attached != ())",
    )
    assert done.strip() == "True"


def test_core_imports_no_otel() -> None:
    """`import otel_sealed` loads neither OpenTelemetry nor pydantic nor an SDK."""
    done = run(
        "import sys, otel_sealed, otel_sealed.model, otel_sealed.wire",
        "names = ('opentelemetry', 'pydantic', 'wrapt', 'anthropic', 'openai', 'google.genai')",
        "print([name for name in names if name in sys.modules])",
    )
    assert done.strip() == "[]"


def run(*lines: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_public_names() -> None:
    """The package shows its public names without loading them, and no others."""
    assert set(otel_sealed.__all__) <= set(dir(otel_sealed))
    with pytest.raises(AttributeError, match="nonsense"):
        otel_sealed.nonsense  # noqa: B018


@pytest.mark.parametrize("first", ["otel_sealed", "otel_sealed.instrument.patch"])
def test_instrument_is_callable(first: str) -> None:
    """`otel_sealed.instrument()` works whatever was imported first, and so does its package."""
    done = run(
        f"import {first}",
        "import otel_sealed",
        "from otel_sealed import instrument, uninstrument",
        "assert otel_sealed.instrument('openai') is instrument()",
        "from otel_sealed.instrument import guard, instrument as function",
        "import otel_sealed.instrument.seam as seam",
        "assert function() is instrument()",
        "print(type(instrument()).__name__)",
    )
    assert done.strip() == "Handle"


def test_patch_inherited() -> None:
    """A method that a class only inherits is wrapped on it and removed from it again."""

    class Base:
        def name(self) -> str:
            return "base"

    class Child(Base):
        pass

    def wrapper(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> str:
        return f"seen {wrapped(*args, **kwargs)}"

    put = seam.Patch(Child, "name", wrapper)
    assert (Child().name(), Base().name()) == ("seen base", "base")
    assert put.take() is True
    assert "name" not in vars(Child)
    assert put.put(Base, wrapper) is False
    assert put.put(Child, wrapper) is True
    assert Child().name() == "seen base"
    put.take()
    Child.name = Base.name  # type: ignore[method-assign]
    assert put.put(Child, wrapper) is False


@pytest.mark.parametrize("how", ["restores what it saved", "peels off the outermost"])
def test_a_seam_that_another_took_off_is_wrapped_again(
    tracker: Recorder,
    wire: Wire,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    """Others take ours off with theirs; when metrics are collected that is mended, and told."""
    owner: Any = genai._api_client.BaseApiClient
    saved = vars(owner)["request"]
    owner.request = wrapt.FunctionWrapper(saved, lambda f, _s, a, k: f(*a, **k))
    theirs = vars(owner)["request"]
    left = saved if how == "restores what it saved" else theirs
    reader = InMemoryMetricReader()
    handle = instrument("google", tracker=tracker, meter_provider=MeterProvider([reader]))
    try:
        owner.request = left
        ask_gemini(wire)
        assert tracker.exchanges == []
        reader.get_metrics_data()
        ask_gemini(wire)
        assert len(tracker.exchanges) == 1
        assert "taken off by another instrumentation" in caplog.text
        assert handle.mend() == ()
        uninstrument()
        assert vars(owner)["request"] is left
    finally:
        uninstrument()
        owner.request = saved


def ask_gemini(wire: Wire) -> None:
    wire.replies.clear()
    wire.answers(b'{"candidates":[]}')
    client = genai.Client(api_key="k", http_options={"base_url": wire.url})
    client.models.generate_content(model="gemini-x", contents="x")
    client._api_client._httpx_client.close()


def test_a_wrapper_that_hides_what_it_wraps_is_left_alone(
    handle: Handle, tracker: Recorder, wire: Wire, reader: InMemoryMetricReader
) -> None:
    """It may hold ours, and a call is observed once."""
    owner: Any = anthropic._base_client.SyncAPIClient
    ours = vars(owner)["request"]

    def opaque(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ours.__get__(self)(*args, **kwargs)

    owner.request = opaque
    reader.get_metrics_data()
    call(wire)
    assert (vars(owner)["request"], handle.mend()) == (opaque, ())
    assert len(tracker.exchanges) == 1
    owner.request = ours
