"""`instrument()` and `uninstrument()`: idempotent, symmetric, and silent towards the application.

SDKs are named, never imported: one that is imported already is wrapped now, one that is imported
later is wrapped then. An import hook cannot be taken back, so each asks whether we are still on.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import wrapt

from otel_sealed.instrument import build, finalizing, forked, guard, sockets, state
from otel_sealed.instrument.clients import CLIENTS, HttpHook
from otel_sealed.instrument.genai import GenAI
from otel_sealed.instrument.given import Given
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.helpers import BETA_MESSAGES, CHAT, MESSAGES, RESPONSES
from otel_sealed.instrument.interactions import Interactions, legacy_interactions
from otel_sealed.instrument.loops import CHATS, MODELS
from otel_sealed.instrument.routes import ANTHROPIC, OPENAI
from otel_sealed.instrument.runtime import Runtime
from otel_sealed.instrument.seam import Patch, Seam
from otel_sealed.instrument.stainless import Stainless
from otel_sealed.instrument.transport import Bodies
from otel_sealed.vocab import SCOPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from otel_sealed.instrument.runtime import Observes
    from otel_sealed.telemetry.settings import Settings

_LOG: Final = logging.getLogger(SCOPE)
# The names under which the violation counter of an SDK's calls can show, created at 0.
_SERIES: Final = {
    "anthropic": ("anthropic",),
    "openai": ("openai",),
    "google": ("gemini", "vertex"),
}


class Adapter(Protocol):
    """Where the seams of one SDK are."""

    @property
    def module(self) -> str:
        """The module whose import makes them."""

    def seams(self) -> tuple[Seam, ...]:
        """The methods to wrap."""

    def vanished(self) -> tuple[str, ...]:
        """The seams of modules that the SDK no longer has, although it offers what they were for.

        Asked once its own module is there. A module nobody can import never says that it is gone.
        """


ADAPTERS: Final[dict[str, tuple[Callable[[Runtime], Adapter], ...]]] = {
    "anthropic": (
        lambda runtime: Stainless("anthropic", ANTHROPIC, runtime),
        MESSAGES.under,
        BETA_MESSAGES.under,
    ),
    "openai": (
        lambda runtime: Stainless("openai", OPENAI, runtime, sockets.vanished),
        RESPONSES.under,
        CHAT.under,
        sockets.Sockets,
        sockets.beta_sockets,
    ),
    "google": (GenAI, Interactions, legacy_interactions, MODELS.under, CHATS.under),
}
"""Every SDK there are adapters for, by the name `instrument` takes.

The module of the first is in every release; those of the others come with what they are for, and
are waited for until the application uses it.
"""

HTTP: Final = "http"
"""The name of the HTTP clients, for what no SDK sends."""
EVERY: Final = (*ADAPTERS, HTTP)
"""All there is to name: what `otel-sealed run` and zero code observe."""
_BODIES: Final = "http.bodies"
_lock = threading.RLock()
_current: Handle | None = None
_hooked: set[str] = set()
_known: dict[tuple[str, str, str], Patch] = {}


class Handle:
    """What `instrument()` put in place, one for the process.

    As a context manager it takes off what the last `instrument()` put on and was not yet left: a
    `with` inside an instrumented program leaves that as it was. `uninstrument` takes off all.
    """

    def __init__(self, runtime: Runtime, given: Given = Given()) -> None:  # noqa: B008 - frozen
        """Nothing is wrapped yet. `given`: what the first `instrument()` was given."""
        self.runtime = runtime
        self.given = given
        self.idle = False
        self.http_hooks = True
        self._added: list[tuple[str, ...]] = []
        self._adapters: dict[str, tuple[Adapter, ...]] = {}
        self._patches: dict[tuple[str, str, str], Patch] = {}
        self._missing: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _lock:
            if len(self._added) <= 1:
                _leave(self)
            else:
                self._leave(self._added.pop())

    def uninstrument(self) -> None:
        """Leave the SDKs as they were found, however many `instrument()` there were.

        Streams still being read are observed to their end.
        """
        with _lock:
            _leave(self)

    @property
    def attached(self) -> tuple[str, ...]:
        """`module.Class.method` of every seam that is wrapped now, sorted."""
        return tuple(sorted(".".join(key) for key in self._patches))

    @property
    def missing(self) -> tuple[str, ...]:
        """The seams that an imported SDK turned out not to have, sorted."""
        return tuple(sorted(self._missing))

    def _enter(self, names: tuple[str, ...]) -> None:
        """Observe these SDKs, too, until it is left as often as it was entered."""
        there = {*self._adapters} - {HTTP} | ({HTTP} if self.runtime.transport else set())
        fresh = () if self.idle else tuple(name for name in names if name not in there)
        self._added.append(fresh)
        for name in fresh:
            with shield("patch.add"):
                self._add(name)

    def _leave(self, names: tuple[str, ...]) -> None:
        """The same, but that what passes by goes on being counted where it was."""
        gone = {*names} - {HTTP}
        if HTTP in names:
            self.runtime.transport = False
            gone |= {_BODIES}
        self._remove(tuple(gone))

    def _remove(self, names: tuple[str, ...]) -> None:
        """Leave these SDKs as they were found."""
        if HTTP in names:
            self.runtime.transport = False
        modules = {adapter.module for name in names for adapter in self._adapters.pop(name, ())}
        for key in [key for key in self._patches if key[0] in modules]:
            with shield("patch.detach"):
                self._patches.pop(key).take()

    def _add(self, provider: str) -> None:
        if provider == HTTP:
            self.runtime.transport = self.http_hooks
            if self.http_hooks:
                self._put(_BODIES, (Bodies(),))
            return
        self._put(provider, tuple(make(self.runtime) for make in ADAPTERS[provider]))

    def _notice(self) -> None:
        """Hooks at the HTTP clients, whichever SDKs are named: what passes by is noticed."""
        self._put(HTTP, tuple(HttpHook(client, self.runtime) for client in CLIENTS))

    def _put(self, name: str, adapters: tuple[Adapter, ...]) -> None:
        self._adapters[name] = adapters
        for adapter in adapters:
            if adapter.module in sys.modules:
                self._attach(adapter, sys.modules[adapter.module])
            elif adapter.module not in _hooked:
                _hooked.add(adapter.module)
                wrapt.register_post_import_hook(_imported, adapter.module)

    def _attach(self, adapter: Adapter, module: Any) -> None:
        for name, known in self._adapters.items():
            for series in _SERIES.get(name, ()) if adapter in known else ():
                self.runtime.emitter.instrumented(series)
        if isinstance(adapter, HttpHook):
            self.runtime.emitter.noticing(adapter.client.name)
        for seam in adapter.seams():
            key = (adapter.module, seam.owner, seam.name)
            if key in self._patches or not seam.expected(module):
                continue
            with shield("patch.attach"):
                self._wrap(key, module, seam)
        with shield("patch.vanished"):
            for name in adapter.vanished():
                self._lack(name)

    def _wrap(self, key: tuple[str, str, str], module: Any, seam: Seam) -> None:
        owner = getattr(module, seam.owner, None)
        if not isinstance(owner, type) or not callable(getattr(owner, seam.name, None)):
            self._lack(".".join(key))
            return
        known = _known.get(key)
        if known is None or not known.put(owner, seam.wrapper):
            known = _known[key] = Patch(owner, seam.name, seam.wrapper)
        self._patches[key] = known

    def _lack(self, name: str) -> None:
        self._missing.add(name)
        _LOG.warning("seam missing, some calls will not be observed: %s", name)
        guard.internal_error(f"seam_missing:{name}", "MissingSeam")

    def mend(self) -> tuple[str, ...]:
        """Wrap again what another instrumentation took off with its own; the seams it were.

        Asked whenever metrics are collected, under a lock of theirs: so it waits for none of ours.
        """
        if not _lock.acquire(blocking=False):
            return ()
        try:
            lost = [".".join(key) for key, patch in self._patches.items() if patch.mend()]
        finally:
            _lock.release()
        for name in lost:
            _LOG.warning("seam taken off by another instrumentation, wrapped again: %s", name)
            guard.internal_error(f"seam_lost:{name}", "LostSeam")
        return tuple(lost)


def instrument(
    *providers: str,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    settings: Settings | None = None,
    tracker: Observes | None = None,
) -> Handle:
    """Observe every call that the named SDKs make from now on.

    Requests with turns of a model that pass outside of what is named are counted as unobserved.

    A second call returns the same handle, with further SDKs added to it. The first one's providers,
    settings and core stay in force; what else the second is given is ignored, and one log line says
    so. `with instrument(…):` takes off at its end what this call added, no more; `uninstrument()`
    takes off everything, whoever put it on.

    Nothing that the environment does makes it raise. Where the core or a provider of telemetry
    cannot be had, calls go through unobserved, one log line says so, and it is counted.

    Args:
        providers: `anthropic`, `openai`, `google`; all of these when none is named. `http` for
            calls that HTTP clients make to known APIs without any of these SDKs (not where the
            setting `http_hooks` is off).
        tracer_provider: Where spans go; the global one when None.
        meter_provider: Where metrics go; the global one when None.
        logger_provider: Where log events go; the global one when None.
        settings: What an operator decided; read from `OTEL_SEALED_…` when None.
        tracker: The core to tell; one of its own when None.

    Raises:
        ValueError: A provider has no adapter.
    """
    global _current  # noqa: PLW0603 - the SDKs are process-wide, too
    names = providers or tuple(ADAPTERS)
    unknown = sorted(set(names) - set(EVERY))
    if unknown:
        raise ValueError(f"no adapter for {', '.join(unknown)}; there are {', '.join(EVERY)}")
    given = Given(tracer_provider, meter_provider, logger_provider, settings, tracker)
    with _lock:
        if _current is None:
            _current = _begun(given)
        else:
            with shield("patch.again"):
                _warn(_current, given, set(providers))
        _current._enter(names)
        return _current


def _begun(given: Given) -> Handle:
    """The first handle; an idle one where there is nothing to observe with, or nobody wants it."""
    chosen = given.settings
    try:
        chosen = chosen if chosen is not None else build.settings()
        if chosen.enabled:
            handle = Handle(build.runtime(*given.where, chosen, given.tracker), given)
            _watch(handle)
            handle.http_hooks = chosen.http_hooks
            if chosen.http_hooks:
                with shield("patch.notice"):
                    handle._notice()
            return handle
        _LOG.info("switched off by its settings: nothing is observed")
        handle = Handle(build.mute(chosen, given.tracker), given)
    except Exception as error:
        if guard.STRICT:
            raise
        kind = type(error).__name__
        _LOG.warning("otel_sealed could not start, calls go through unobserved: %s", kind)
        handle = Handle(build.fallback(given.meter_provider, chosen), given)
        with suppress(Exception):
            handle.runtime.emitter.internal_error("instrument", kind)
    handle.idle = True
    return handle


def _warn(handle: Handle, given: Given, named: set[str]) -> None:
    """Say what of a second `instrument()` is ignored, if anything is."""
    ignored = handle.given.unlike(given)
    others = sorted((set(handle._adapters) & set(ADAPTERS)) - named) if named else []
    said = [f"ignored: {', '.join(ignored)}"] if ignored else []
    said += [f"{', '.join(others)} stay observed, too"] if others else []
    if said:
        _LOG.warning("instrument() was called before and is in force; %s", "; ".join(said))


def _watch(handle: Handle) -> None:
    guard.on_error(handle.runtime.emitter.internal_error)
    handle.runtime.emitter.on_collect(handle.mend)
    handle.runtime.emitter.on_seams(lambda: (len(handle._patches), len(handle._missing)))
    finalizing.watch()
    forked.watch()
    atexit.register(_exit, handle.runtime)


def uninstrument() -> None:
    """Take off what `instrument()` put in place, if anything."""
    with _lock:
        if _current is not None:
            _leave(_current)


def _leave(handle: Handle) -> None:
    global _current  # noqa: PLW0603 - the SDKs are process-wide, too
    handle._remove(tuple(handle._adapters))
    handle._added.clear()
    handle.runtime.on = False
    if _current is not handle:
        return
    _current = None
    _finish(handle.runtime)
    atexit.unregister(_exit)
    finalizing.unwatch()
    guard.on_error(None)
    state.reset()
    with shield("patch.unshare"):
        build.unshare()


def effect(call_id: str, value: Any) -> None:
    """Say what a tool call did: its digest and size go on the span that carries the result.

    Args:
        call_id: The id the provider gave the tool call.
        value: Text, bytes or JSON-like data; only a keyed digest and the size are kept.
    """
    handle = _current
    tell = getattr(getattr(handle and handle.runtime.tracker, "effects", None), "tell", None)
    if tell is not None:
        with shield("patch.effect"):
            tell(call_id, value)


def _finish(runtime: Runtime) -> None:
    with shield("patch.finish"):
        runtime.settle_finished()


def _exit(runtime: Runtime) -> None:
    """The process ends: what hangs open is read no further."""
    with shield("patch.exit"):
        runtime.settle_open()


def _imported(module: Any) -> None:
    """An SDK was imported. Runs inside the application's import: nothing may come out of it."""
    with shield("patch.imported"), _lock:
        if _current is None:
            return
        for adapter in (a for adapters in _current._adapters.values() for a in adapters):
            if adapter.module == module.__name__:
                _current._attach(adapter, module)
