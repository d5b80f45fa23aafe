"""Our span processor on the global tracer provider: late, once, and without a word to the caller.

Before an application has set its provider there is only a proxy, which takes no processor. So what
is wanted is remembered, and put on as soon as a provider is there: `catch_up` is asked after calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import Lock
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from otel_sealed.telemetry.processor import SealedSpanProcessor

Factory = Callable[[], SpanProcessor]

_wanted: dict[str, Factory] = {}
_done: list[tuple[weakref.ref[Any], set[str]]] = []
"""Providers, and what is on each: one as a rule. A dead one is thrown away when another comes."""
_lock = Lock()


def want(name: str = "alerts", factory: Factory = SealedSpanProcessor) -> bool:
    """Have what `factory` makes on the global provider, once under each name; whether it is."""
    _wanted[name] = factory
    return catch_up()


def forget() -> None:
    """Want nothing any more. What is on a provider stays: there is no way to take it off."""
    _wanted.clear()


def catch_up() -> bool:
    """Put on what is wanted and not there yet; False where there is no provider to take it."""
    if not _wanted:
        return True
    provider: Any = trace.get_tracer_provider()
    add = getattr(provider, "add_span_processor", None)
    if add is None:
        return False
    with _lock:
        done = _on(provider)
        for name, factory in list(_wanted.items()):
            if name in done:
                continue
            done.add(name)
            processor = factory()
            if not _has(provider, type(processor)):
                add(processor)
    return True


def _on(provider: Any) -> set[str]:
    """The names of what we put on a provider."""
    for reference, names in _done:
        if reference() is provider:
            return names
    _done[:] = [one for one in _done if one[0]() is not None]
    _done.append((weakref.ref(provider), set()))
    return _done[-1][1]


def _has(provider: Any, kind: type) -> bool:
    """Whether a processor of this kind is on it already, put there by somebody else."""
    among = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", ())
    return any(isinstance(processor, kind) for processor in among)
