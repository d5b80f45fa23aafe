"""What `otel-sealed run` does inside the program it runs. Imports no more than a program must bear.

Where the environment configures an exporter, this is zero code as `opentelemetry-instrument` has
it: the whole of its loader where it is installed, else the SDK as its environment says, and us.
Where it does not, telemetry of ours alone goes into the folder, where the key and the ledger are,
too; nothing global is set, so that what the program sets up itself stays its own.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from otel_sealed.cli.exporters import SIGNALS, configured

RUN: Final = "_OTEL_SEALED_RUN"
"""Names the run, in the files it leaves. Ours alone: no setting."""
LEDGER: Final = "ledger.sqlite"
"""The file of a record folder in which its runs remember what they received; mode 0600, and bounded
by `OTEL_SEALED_MAX_TURNS`, `OTEL_SEALED_LEDGER_MAX_MB` and `OTEL_SEALED_LEDGER_MAX_DAYS`."""
BOOTSTRAP: Final = Path(__file__).with_name("bootstrap")
_LOADER: Final = "opentelemetry.instrumentation.auto_instrumentation"


def start() -> None:
    """Observe this process. Nothing comes out but one line."""
    path = os.environ.get("PYTHONPATH", "")
    try:
        # what is started in the meantime is no part of the program
        os.environ["PYTHONPATH"] = without_bootstrap(path)
        _start()
    except Exception as error:  # noqa: BLE001 - the program must run all the same
        logging.getLogger("otel_sealed").warning(
            "otel-sealed run: %s, the program goes on unobserved", type(error).__name__
        )
    finally:
        os.environ["PYTHONPATH"] = path


def without_bootstrap(path: str) -> str:
    """A PYTHONPATH without our folder."""
    return os.pathsep.join(x for x in path.split(os.pathsep) if x != str(BOOTSTRAP))


def _start() -> None:
    from otel_sealed.telemetry.settings import read

    settings = read()[0]
    if not settings.enabled:
        return
    if configured(os.environ):
        _as_zero_code()
    else:
        _into_folder(settings)


def _as_zero_code() -> None:
    if find_spec("opentelemetry.instrumentation") and find_spec(_LOADER):
        loader: Any = importlib.import_module(_LOADER)
        loader.initialize()
        return
    for signal in SIGNALS:
        os.environ.setdefault(f"OTEL_{signal.upper()}_EXPORTER", "otlp")
    sdk: Any = importlib.import_module("opentelemetry.sdk._configuration")
    sdk._OTelSDKConfigurator().configure()  # noqa: SLF001 - what every distro calls
    from otel_sealed.zerocode import SealedInstrumentor

    SealedInstrumentor().instrument()


def _into_folder(settings: Any) -> None:
    from otel_sealed.cli.folder import lasting
    from otel_sealed.cli.key import keyed
    from otel_sealed.cli.lines import Bound, Store, prepare
    from otel_sealed.instrument import EVERY, instrument
    from otel_sealed.telemetry import attach
    from otel_sealed.telemetry.processor import SealedSpanProcessor

    bound = Bound(settings.folder_max_mb * 1_000_000, settings.folder_max_days)
    store = Store(Path(settings.folder).absolute(), bound)
    made = lasting(store, os.environ.get(RUN, "run"))
    made.tracer.add_span_processor(SealedSpanProcessor())
    try:
        prepare(store.folder)
        settings = remembering(keyed(settings, store.folder), store.folder)
    except OSError as error:
        store.complain(error)
    instrument(
        *EVERY,
        tracer_provider=made.tracer,
        meter_provider=made.meter,
        logger_provider=made.logger,
        settings=settings,
    )
    attach.want("alerts")
    attach.want("folder", lambda: made.ours)


def remembering(settings: Any, folder: Path) -> Any:
    """`settings` with a ledger in the folder, unless they name one themselves.

    The next run there then knows what this one received: a conversation resumed from a file, which
    is what most agents of a command line do, is judged.
    """
    if "ledger" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"ledger": f"sqlite://{folder / LEDGER}"})


def main() -> None:
    """Called by the bootstrap folder's `sitecustomize`."""
    folder = str(BOOTSTRAP)
    sys.path[:] = [path for path in sys.path if path != folder]
    start()
