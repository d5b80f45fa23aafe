"""Making what all calls of one `instrument()` share: the core, emission, and who watches over both.

What is not needed before is imported inside: pydantic, the core and its tables.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from otel_sealed.instrument import guard, ledgers, state
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from otel_sealed.instrument.runtime import Observes
    from otel_sealed.telemetry.emit import Emitter, Providers
    from otel_sealed.telemetry.leaks import Alarm
    from otel_sealed.telemetry.settings import Settings

_DISTRIBUTIONS: Final = ("anthropic", "openai", "google-genai", "httpx2", "httpx")
_FRAMEWORKS: Final = (
    "autogen-core",
    "crewai",
    "dspy",
    "google-adk",
    "haystack-ai",
    "instructor",
    "langchain-core",
    "litellm",
    "llama-index-core",
    "openai-agents",
    "pydantic-ai-slim",
    "smolagents",
    "strands-agents",
)
"""Frameworks that carry the history for the application: what broke may be of their release."""


def settings() -> Settings:
    """What the environment says."""
    from otel_sealed.telemetry.settings import load

    return load()


def runtime(
    tracer_provider: TracerProvider | None,
    meter_provider: MeterProvider | None,
    logger_provider: LoggerProvider | None,
    chosen: Settings,
    tracker: Observes | None,
) -> Runtime:
    """The runtime that observes, with the alert room of this process and its state."""
    from otel_sealed.telemetry import leaks
    from otel_sealed.telemetry.alerts import share
    from otel_sealed.telemetry.emit import Providers

    made, emitter = _made(
        Providers(tracer_provider, meter_provider, logger_provider), chosen, tracker
    )
    share(emitter.room)
    leaks.share(_alarm(made.tracker, emitter))
    now = state.State(
        max_faults=chosen.errors_per_minute,
        rest_s=chosen.rest_seconds,
        kill_file=chosen.kill_file,
    )
    watcher = state.Watcher(now)
    emitter.watch = now
    state.use(now, watcher)
    with shield("build.watch"):
        watcher.begin()
    made.settled = _after_calls(watcher)
    return made


def unshare() -> None:
    """Take back what the processors of this process may ask."""
    from otel_sealed.telemetry import leaks
    from otel_sealed.telemetry.alerts import share

    share(None)
    leaks.share(None)


def _alarm(core: Any, emitter: Emitter) -> Alarm | None:
    """The alarm that knows what `core` saw on the wire; None where it keeps no ledger of it."""
    from otel_sealed.digest import Digest, layers
    from otel_sealed.telemetry.leaks import Alarm
    from otel_sealed.telemetry.scrub import Wire

    digest, ledger = getattr(core, "digest", None), getattr(core, "ledger", None)
    if not isinstance(digest, Digest) or ledger is None:
        return None

    def seen(text: str) -> bool:
        return any(ledger.lookup(digest.blob(layer)) for layer in layers(text))

    wire = Wire(seen, lambda text: digest.canon(text).hex())
    return Alarm(wire, emitter.leaked, emitter.internal_error)


def mute(chosen: Settings, tracker: Observes | None) -> Runtime:
    """A runtime for a handle that observes nothing: whatever it is told, nothing goes out."""
    from opentelemetry._logs import NoOpLoggerProvider
    from opentelemetry.metrics import NoOpMeterProvider
    from opentelemetry.trace import NoOpTracerProvider

    from otel_sealed.telemetry.emit import Providers

    nobody = Providers(NoOpTracerProvider(), NoOpMeterProvider(), NoOpLoggerProvider())
    return _made(nobody, chosen.model_copy(update={"ledger": "memory"}), tracker)[0]


def fallback(meter_provider: MeterProvider | None, chosen: Settings | None) -> Runtime:
    """A runtime where none could be made: nothing goes out but the count of that, if it can."""
    for make in (partial(_counting, meter_provider, chosen), partial(_counting, None, chosen)):
        with suppress(Exception):
            unshare()
            state.reset()
            return make()
    nobody: Any = object()
    return Runtime(nobody, nobody, nobody, str)


def _counting(meter_provider: MeterProvider | None, chosen: Settings | None) -> Runtime:
    from opentelemetry._logs import NoOpLoggerProvider
    from opentelemetry.trace import NoOpTracerProvider

    from otel_sealed.telemetry.emit import Providers
    from otel_sealed.telemetry.settings import Settings

    where = Providers(NoOpTracerProvider(), meter_provider, NoOpLoggerProvider())
    return _made(where, (chosen or Settings()).model_copy(update={"ledger": "memory"}), None)[0]


def _after_calls(watcher: state.Watcher) -> Any:
    """What is done after each settled call: cheap, and mostly nothing."""
    from otel_sealed.telemetry import attach

    def settled() -> None:
        watcher.start()
        attach.catch_up()

    return settled


def _made(where: Providers, chosen: Settings, tracker: Observes | None) -> tuple[Runtime, Emitter]:
    from otel_sealed import rulebook
    from otel_sealed.digest import Digest
    from otel_sealed.telemetry import families
    from otel_sealed.telemetry.emit import About, Emitter
    from otel_sealed.tracker import Tracker

    given = getattr(tracker, "key", None)
    kept: Any = None if tracker is not None else ledgers.opened(chosen)
    key = given or chosen.key() or getattr(kept, "key", b"") or secrets.token_bytes(32)
    core = tracker or Tracker(key, ledger=kept, families=families.read(chosen.families))
    ledger: Any = getattr(core, "ledger", None)
    digest = getattr(core, "digest", None)
    emitter = Emitter(
        chosen,
        key=key,
        providers=where,
        about=About(
            version=version_of("otel-sealed"),
            rules_version=rulebook.version(),
            sdk_versions={
                name: found
                for name in (*_DISTRIBUTIONS, *_FRAMEWORKS)
                if (found := version_of(name))
            },
        ),
        ledger_entries=(lambda: len(ledger)) if hasattr(ledger, "__len__") else None,
        strict=guard.STRICT,
    )
    emitter.evicted = lambda: int(getattr(ledger, "evicted", 0))
    if hasattr(ledger, "tell"):
        ledger.tell(emitter.store_error)
    made = Runtime(
        tracker=core,
        emitter=emitter,
        tracer=emitter.tracer,
        account=once_each((digest if isinstance(digest, Digest) else Digest(key)).account),
        conversation_attribute=chosen.conversation_attribute,
    )
    return made, emitter


MAX_ACCOUNTS: Final = 64
"""Credentials of a process whose stand-ins are kept: a gateway with one for each team has fewer."""


def once_each(account: Callable[[str], str]) -> Callable[[str], str]:
    """`account`, asked once for each credential of a process; none of them is kept.

    They are known by Python's own keyed hash, which two of them share once in 2**64.
    """
    known: dict[int, str] = {}

    def of(credential: str) -> str:
        key = hash(credential)
        found = known.get(key)
        if found is None:
            if len(known) >= MAX_ACCOUNTS:
                known.clear()
            found = known[key] = account(credential)
        return found

    return of


@cache
def version_of(distribution: str) -> str:
    """Version of an installed distribution, empty if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
