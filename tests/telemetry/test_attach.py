from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import ProxyTracerProvider

from otel_sealed.telemetry import attach
from otel_sealed.telemetry.processor import SealedSpanProcessor


class Other(SpanProcessor):
    pass


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    attach.forget()
    yield
    attach.forget()


def processors(provider: TracerProvider) -> list[type]:
    return [type(one) for one in provider._active_span_processor._span_processors]


def now(monkeypatch: pytest.MonkeyPatch, provider: object) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)


def test_it_is_put_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider()
    now(monkeypatch, provider)
    assert [attach.want(), attach.want(), attach.catch_up()] == [True] * 3
    assert processors(provider) == [SealedSpanProcessor]


def test_where_somebody_put_one_on_it_is_not_put_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SealedSpanProcessor())
    now(monkeypatch, provider)
    attach.want()
    assert processors(provider) == [SealedSpanProcessor]


def test_before_there_is_a_provider_it_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now(monkeypatch, ProxyTracerProvider())
    assert attach.want() is False
    provider = TracerProvider()
    now(monkeypatch, provider)
    assert attach.catch_up() is True
    assert processors(provider) == [SealedSpanProcessor]


def test_each_provider_gets_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = TracerProvider(), TracerProvider()
    for provider in (first, second):
        now(monkeypatch, provider)
        attach.want()
        attach.want("other", Other)
    assert processors(first) == processors(second) == [SealedSpanProcessor, Other]


def test_what_nobody_wants_is_not_put_on(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider()
    now(monkeypatch, provider)
    assert attach.catch_up() is True
    assert processors(provider) == []
