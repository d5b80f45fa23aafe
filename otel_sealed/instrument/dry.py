"""Trying the seams of an SDK without observing anything: on and off again."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from opentelemetry.trace import NoOpTracer

from otel_sealed.instrument.clients import CLIENTS, HttpHook
from otel_sealed.instrument.patch import ADAPTERS, Adapter
from otel_sealed.instrument.runtime import Runtime
from otel_sealed.instrument.seam import Patch


@dataclass(frozen=True, slots=True)
class Tried:
    """The seams of one SDK by name: those that could be wrapped and unwrapped, and the others."""

    present: tuple[str, ...]
    missing: tuple[str, ...]


def attach(provider: str) -> Tried:
    """Import the SDK, wrap each method, and take the wrapper off at once.

    Modules of an SDK beyond its first that this release does not have are passed over, unless it
    offers what they were for.

    Raises:
        ImportError: The SDK, or a module its seams are in, cannot be imported.
    """
    runtime = _nobody()
    present: list[str] = []
    missing: list[str] = []
    for number, adapter in enumerate(make(runtime) for make in ADAPTERS[provider]):
        try:
            module = importlib.import_module(adapter.module)
        except ModuleNotFoundError as error:
            if not number or not adapter.module.startswith(error.name or ""):
                raise
            continue
        _try(adapter, module, present, missing)
        missing += adapter.vanished()
    return Tried(tuple(present), tuple(missing))


def clients() -> dict[str, Tried]:
    """The same for each HTTP client that is installed, by its name.

    Those whose import brings a framework with it are passed over.
    """
    found = {}
    runtime = _nobody()
    for client in CLIENTS:
        if client.light and find_spec(client.module.partition(".")[0]) is not None:
            present: list[str] = []
            missing: list[str] = []
            module = importlib.import_module(client.module)
            _try(HttpHook(client, runtime), module, present, missing)
            found[client.name] = Tried(tuple(present), tuple(missing))
    return found


def _nobody() -> Runtime:
    nobody: Any = None
    return Runtime(nobody, nobody, NoOpTracer(), nobody)


def _try(adapter: Adapter, module: Any, present: list[str], missing: list[str]) -> None:
    for seam in adapter.seams():
        if not seam.expected(module):
            continue
        owner = getattr(module, seam.owner, None)
        fits = isinstance(owner, type) and callable(getattr(owner, seam.name, None))
        if fits and isinstance(owner, type):
            Patch(owner, seam.name, seam.wrapper).take()
        (present if fits else missing).append(f"{adapter.module}.{seam.owner}.{seam.name}")
