"""`otel-sealed doctor`: what would be observed here, what would not, and what there is to mend."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from otel_sealed import rulebook
from otel_sealed.cli import OK, VIOLATED
from otel_sealed.cli.exporters import Target, configured, others, targets
from otel_sealed.cli.show import Screen, json_line
from otel_sealed.instrument import dry
from otel_sealed.instrument.build import version_of
from otel_sealed.instrument.limits import NOT_COVERED, TESTED, TRANSPORTS, Sdk
from otel_sealed.ledger.sqlite import SqliteStore, look
from otel_sealed.telemetry import families, known
from otel_sealed.telemetry.entries import Form
from otel_sealed.telemetry.settings import (
    PREFIX,
    Settings,
    key_id_of,
    ledger_file,
    ledger_server,
    read,
    switched_off_by,
    takes,
)
from otel_sealed.vocab import SCOPE

Level = Literal["ok", "note", "mend"]
CONNECT_S: Final = 2.0
_TRACERS: Final = (
    "openinference-instrumentation-",
    "opentelemetry-instrumentation-anthropic",
    "opentelemetry-instrumentation-bedrock",
    "opentelemetry-instrumentation-genai",
    "opentelemetry-instrumentation-google-gen",
    "opentelemetry-instrumentation-openai",
    "opentelemetry-instrumentation-vertexai",
)
_NOT_CURRENT: Final = (
    *(
        "langfuse",
        "opentelemetry-instrumentation-anthropic",
        "opentelemetry-instrumentation-openai",
    ),
    "traceloop-sdk",
)
"""Tracers that make their span current only for some calls, or for none (measured 2026-11-30)."""
_PLATFORMS: Final = (
    *("agentops", "arize-phoenix-otel", "braintrust", "ddtrace", "langfuse", "langsmith"),
    *("logfire", "mlflow", "openlit", "opik", "sentry-sdk", "traceloop-sdk", "weave"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at. `mend` says that there is something to do."""

    about: str
    level: Level
    says: str


def run(*, as_json: bool) -> int:
    """Look at everything and print it; the exit status says whether there is something to mend."""
    with _silent():
        lines = list(examine(os.environ))
    if as_json:
        for line in lines:
            json_line(asdict(line))
    else:
        out = Screen()
        width = max(len(line.about) for line in lines)
        for line in lines:
            mark = {"ok": "  ", "note": "- ", "mend": "! "}[line.level]
            out.line(f"{mark}{line.about:{width}}  {line.says}")
    return VIOLATED if any(line.level == "mend" for line in lines) else OK


def examine(
    environ: Mapping[str, str], *, today: Callable[[], date] = known.utc_today
) -> Iterator[Line]:
    """Every line, in order."""
    settings, invalid = read()
    yield from _switches(environ, settings, invalid)
    yield from _sdks()
    yield from _clients(settings)
    yield from _transports()
    yield from _tracers()
    yield from _exporters(environ, settings)
    yield from _memory(settings)
    yield from _accepted(settings, today())
    yield from _families(settings)
    yield _rules(today())
    yield Line(
        "recorded",
        "ok",
        "keyed digests, sizes and places of sealed values, block types, models, token counts,"
        " verdicts; never a value, a prompt, an answer or a credential",
    )
    for limit in NOT_COVERED:
        yield Line("not covered", "note", f"{limit.what}: {limit.why}")


def _switches(
    environ: Mapping[str, str], settings: Settings, invalid: tuple[str, ...]
) -> Iterator[Line]:
    for name in invalid:
        yield Line("settings", "mend", f"{PREFIX}{name.upper()} is invalid; it takes {takes(name)}")
    if not settings.enabled:
        switch = switched_off_by(environ) or f"{PREFIX}ENABLED"
        yield Line("settings", "note", f"switched off by {switch}: nothing is observed")
    elif settings.kill_file and Path(settings.kill_file).exists():
        yield Line("settings", "note", "the kill file is there: calls go through unobserved")
    elif not invalid:
        yield Line("settings", "ok", "valid")


# ------------------------------------------------------------------------------------ the SDKs


def _sdks() -> Iterator[Line]:
    found = [(tested, version) for tested in TESTED if (version := version_of(tested.distribution))]
    if not found:
        names = ", ".join(tested.distribution for tested in TESTED)
        yield Line("SDKs", "mend", f"none of {names} is installed here; install one")
    for tested, version in found:
        yield _sdk(tested, version)
        yield _seams(tested)


def _sdk(tested: Sdk, version: str) -> Line:
    about = f"{tested.distribution} {version}"
    if tested.covers(version):
        return Line(about, "ok", "a tested version")
    return Line(about, "note", f"not tested; tested are {tested.oldest} to {tested.newest}")


def _seams(tested: Sdk) -> Line:
    about = f"{tested.distribution} seams"
    try:
        tried = dry.attach(tested.provider)
    except Exception as error:  # noqa: BLE001 - an SDK that cannot be imported may raise anything
        return Line(about, "mend", f"it cannot be imported: {type(error).__name__}")
    if tried.missing:
        return Line(about, "mend", f"missing, update otel-sealed: {', '.join(tried.missing)}")
    return Line(about, "ok", f"all {len(tried.present)} wrapped and unwrapped")


def _clients(settings: Settings) -> Iterator[Line]:
    """The HTTP clients at which calls are noticed that go past the SDKs."""
    about = "HTTP clients"
    if not settings.http_hooks:
        says = f"switched off by {PREFIX}HTTP_HOOKS: calls that go past the SDKs are not noticed"
        yield Line(about, "note", says)
        return
    try:
        found = dry.clients()
    except Exception as error:  # noqa: BLE001 - a client that cannot be imported may raise anything
        yield Line(about, "mend", f"one cannot be imported: {type(error).__name__}")
        return
    missing = [name for tried in found.values() for name in tried.missing]
    if missing:
        yield Line(about, "mend", f"missing, update otel-sealed: {', '.join(missing)}")
    else:
        says = f"calls that go past the SDKs are noticed at {', '.join(found)}"
        yield Line(about, "ok", says)


def _transports() -> Iterator[Line]:
    for known_one in TRANSPORTS:
        if version := version_of(known_one.distribution):
            yield Line(f"{known_one.distribution} {version}", "note", known_one.says)


# ------------------------------------------------------------------------------- where it goes


def _tracers() -> Iterator[Line]:
    names = {str(found.metadata["Name"]).lower() for found in metadata.distributions()}
    active = sorted(n for n in names if n.startswith(_TRACERS) or n in _PLATFORMS)
    if active:
        says = f"{', '.join(active)}: where one has a span for a call, it is enriched"
        if hidden := [name for name in active if name in _NOT_CURRENT]:
            says += (
                f"; that of {', '.join(hidden)} is not current while the call is made, so there may"
                " be two: count tokens and cost of one of them"
            )
        yield Line("other tracers", "note", says)
    else:
        yield Line("other tracers", "ok", "none installed: calls get spans of our own")


def _exporters(environ: Mapping[str, str], settings: Settings) -> Iterator[Line]:
    if not configured(environ):
        yield Line(
            "exporters",
            "note",
            f"none in the environment; `otel-sealed run` records into {settings.folder}",
        )
        return
    if environ.get("OTEL_CONFIG_FILE"):
        yield Line("exporters", "note", "as OTEL_CONFIG_FILE says; not looked at")
        return
    for name in others(environ):
        yield Line("exporters", "note", f"{name}: not looked at")
    try:
        found = targets(environ)
    except ValueError:
        yield Line("exporters", "mend", "an OTLP endpoint is no URL; write http://host:port")
        return
    for target in found:
        yield _reached(target)


def _reached(target: Target) -> Line:
    about = f"{target.signal} exporter"
    if target.protocol == "grpc" and not _importable("opentelemetry.exporter.otlp.proto.grpc"):
        return Line(about, "mend", "grpc, and opentelemetry-exporter-otlp-proto-grpc is missing")
    try:
        socket.create_connection((target.host, target.port), CONNECT_S).close()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Line(about, "mend", f"{target} cannot be reached: {reason}")
    return Line(about, "ok", f"{target} takes connections")


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


# ---------------------------------------------------------------------------- what it stands on


def _memory(settings: Settings) -> Iterator[Line]:
    key = settings.key()
    if key is None:
        yield Line(
            "key",
            "note",
            f"random in each process; digests join across processes by {PREFIX}HASH_KEY",
        )
    else:
        yield Line("key", "ok", f"configured, called {settings.key_id or key_id_of(key)}")
    yield _ledger(settings)
    file = ledger_file(settings.ledger)
    if file and Path(file).expanduser().exists():
        with suppress(*SqliteStore.faults):
            if not look(Path(file).expanduser()).private:
                yield Line(
                    "ledger", "mend", f"others may read {file}, which holds a key: chmod 600"
                )


def _ledger(settings: Settings) -> Line:
    bound = f"{settings.max_turns} turns or {settings.ledger_max_mb} MB at most"
    file = ledger_file(settings.ledger)
    if ledger_server(settings.ledger):
        return _ledger_server(settings, bound)
    if not file:
        return Line("ledger", "ok", f"in memory, of each process alone, {bound}")
    path = Path(file).expanduser()
    try:
        if os.path.lexists(path):
            return Line("ledger", "ok", f"shared in {file}, {look(path).turns} turns held, {bound}")
    except SqliteStore.faults as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return Line("ledger", "mend", f"{file} cannot be used: {reason}; memory stands in")
    if os.access(path.absolute().parent, os.W_OK | os.X_OK):
        return Line("ledger", "ok", f"shared in {file}, which will be made, {bound}")
    return Line("ledger", "mend", f"{file} cannot be made there; memory stands in")


def _ledger_server(settings: Settings, bound: str) -> Line:
    where = f"redis at {ledger_server(settings.ledger)}"
    try:
        from otel_sealed.ledger.redis import RedisStore
    except ImportError:
        return Line("ledger", "mend", f"{where}: install otel-sealed[redis]; memory stands in")
    try:
        store = RedisStore(settings.ledger)
        said = store.count()
        held = said if type(said) is int else 0
        store.close()
    except RedisStore.faults as error:
        says = f"{where} cannot be used: {type(error).__name__}; memory stands in"
        return Line("ledger", "mend", says)
    return Line("ledger", "ok", f"shared in {where}, {held} turns held, {bound}")


def _accepted(settings: Settings, today: date) -> Iterator[Line]:
    if not settings.known:
        return
    yield from _complaints("known losses", known.FORM, settings.known)
    losses = [known.loss(entry) for entry in known.FORM.look(settings.known)[0]]
    expired = sum(loss.expires < today for loss in losses)
    if expired:
        yield Line(
            "known losses", "mend", f"{expired} of {len(losses)} entries expired: they alert"
        )
    elif losses:
        yield Line("known losses", "ok", f"{len(losses)} entries, none expired")


def _families(settings: Settings) -> Iterator[Line]:
    if settings.families:
        yield from _complaints("model families", families.FORM, settings.families)
        if rows := families.FORM.look(settings.families)[0]:
            yield Line("model families", "ok", f"{len(rows)} entries before the built-in table")


def _complaints(about: str, form: Form, path: str) -> Iterator[Line]:
    for complaint in form.look(path)[1]:
        yield Line(about, "mend", f"{path}: {complaint}")


def _rules(today: date) -> Line:
    stale = rulebook.stale(today)
    if stale:
        says = f"{len(stale)} rules not checked for {rulebook.STALE_DAYS} days; update otel-sealed"
        return Line("rules", "mend", f"{says} ({', '.join(stale[:8])})")
    return Line("rules", "ok", f"version {rulebook.version()}")


@contextmanager
def _silent() -> Iterator[None]:
    """Keep our own log off the terminal: the lines say the same."""
    log = logging.getLogger(SCOPE)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
