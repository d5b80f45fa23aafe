"""Our own errors are swallowed, counted and logged without content; nobody else's ever are."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from otel_sealed.instrument import guard

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from otel_sealed.instrument import Handle
    from tests.instrument.conftest import Recorder, Wire

SECRET = "a canary that no log may hold"


def fail(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [ValueError(SECRET), RecursionError(SECRET)])
def test_swallows_and_counts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """An Exception is swallowed, counted by place and type, and logged once without its message."""
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(guard, "STRICT", False)
    guard.on_error(lambda where, kind: told.append((where, kind)))
    with caplog.at_level(logging.DEBUG):
        for _ in range(2):
            with guard.shield("here"):
                fail(error)
    guard.on_error(None)
    assert told == [("here", type(error).__name__)] * 2
    (record,) = caplog.records
    assert (SECRET in caplog.text, record.exc_info) == (False, None)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError(), GeneratorExit()]
)
def test_passes_base_exceptions(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """What is no Exception always passes."""
    monkeypatch.setattr(guard, "STRICT", False)
    with pytest.raises(type(error)), guard.shield("here"):
        fail(error)


def test_strict_raises() -> None:
    """Under test our own errors are raised."""
    with pytest.raises(ValueError, match="x"), guard.shield("here"):
        fail(ValueError("x"))


def test_a_failing_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that fails is swallowed, too."""
    monkeypatch.setattr(guard, "STRICT", False)
    guard.on_error(lambda _where, _kind: fail(ValueError("hook")))
    with guard.shield("here"):
        fail(ValueError("x"))
    guard.on_error(None)


@pytest.mark.parametrize("place", ["tracker", "claim", "body", "begin", "account"])
def test_the_call_survives_us(
    monkeypatch: pytest.MonkeyPatch,
    handle: Handle,
    tracker: Recorder,
    wire: Wire,
    reader: InMemoryMetricReader,
    place: str,
) -> None:
    """Whatever of ours fails, the application gets its message and its own error, and no more."""
    monkeypatch.setattr(guard, "STRICT", False)

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError(SECRET)

    if place == "tracker":
        tracker.error = RuntimeError(SECRET)
    elif place == "account":
        handle.runtime.account = broken
    else:
        target = {
            "claim": "otel_sealed.instrument.exchange.claim",
            "body": "otel_sealed.instrument.http._tee",
            "begin": "otel_sealed.instrument.stainless.Call",
        }[place]
        monkeypatch.setattr(target, broken)
    ask: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}
    body = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[]}'
    with anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=0) as client:
        wire.answers(body)
        assert client.messages.create(**ask).id == "msg_1"
        wire.replies.clear()
        wire.streams(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
        assert [e.type for e in client.messages.create(**ask, stream=True)] == ["message_stop"]
        wire.replies.clear()
        wire.answers(b"{}", status=400)
        with pytest.raises(anthropic.BadRequestError) as raised:
            client.messages.create(**ask)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or SECRET not in str(raised.value.__context__)
    data = reader.get_metrics_data()
    assert data is not None
    assert "otel_sealed.internal.errors" in data.to_json()
    assert SECRET not in data.to_json()
