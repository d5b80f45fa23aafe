"""`otel-sealed run -- python agent.py`: zero code for one program, with a folder to record into.

Like `opentelemetry-instrument` it works through PYTHONPATH: a folder with a `sitecustomize` of ours
goes first, so every Python below inherits it, whether it is started as `python agent.py`, `python
-m`, or by a console script such as `uvicorn` or `pytest`, and so do its workers. A `sitecustomize`
that ours hides still runs. A Python that is told not to look there (`-S`, `-E`, `-I`), or that has
no `otel_sealed` installed, runs as it would without us.

The program keeps its terminal, its standard streams and its process group. Signals are passed on,
its exit status is ours, and what it left in the folder is summed up on standard error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

from otel_sealed.cli import complain, note
from otel_sealed.cli.autorun import BOOTSTRAP, RUN, without_bootstrap
from otel_sealed.cli.exporters import configured
from otel_sealed.cli.summary import lines, summarise
from otel_sealed.rulebook import link
from otel_sealed.telemetry.settings import PREFIX, Settings, read, switched_off_by

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
SIGNALLED: Final = 128
_PASSED_ON: Final = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_OF_THE_TERMINAL: Final = ("SIGINT", "SIGQUIT")


def run(command: Sequence[str]) -> int:
    """Run the command and return its exit status; 128 and the signal's number if one ended it."""
    settings = read()[0]  # the program itself says which are invalid
    folder = Path(settings.folder).absolute()
    started = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    status = status_of(command, environment(os.environ, folder, started))
    if status not in (NOT_FOUND, NOT_EXECUTABLE) or any(folder.glob(f"*-{started}-*.jsonl")):
        say(settings, folder, started)
    return status


def status_of(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """The exit status of a program; 128 and the signal's number if one ended it."""
    try:
        status = _wait(command, environ)
    except OSError as error:
        complain(f"{command[0]}: {error.strerror or 'cannot be run'}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    return status if status >= 0 else SIGNALLED - status


def say(settings: Settings, folder: Path, started: str) -> None:
    """Sum up what a run left in the folder, on standard error."""
    try:
        _say(settings, folder, started)
    except OSError as error:
        complain(f"{folder}: {error.strerror or 'cannot be read'}")


def environment(environ: Mapping[str, str], folder: Path, started: str) -> dict[str, str]:
    """What the program is given: our folder first on PYTHONPATH, and where to record."""
    rest = without_bootstrap(environ.get("PYTHONPATH", ""))
    return {
        **environ,
        "PYTHONPATH": os.pathsep.join(path for path in (str(BOOTSTRAP), rest) if path),
        f"{PREFIX}FOLDER": str(folder),
        RUN: started,
    }


# --------------------------------------------------------------------------------- the program


def _wait(command: Sequence[str], environ: Mapping[str, str]) -> int:
    # the command is what the user typed behind `run`
    with _Signals() as signals, subprocess.Popen(command, env=environ) as child:  # noqa: S603
        signals.to(child)
        return child.wait()


class _Signals:
    """Passes on what we are sent. Ctrl-C at a terminal reaches the program without us."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for name in _PASSED_ON:
            number = getattr(signal, name, None)
            # what is ignored, as under nohup, is inherited by the program and not ours to change
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._pass_on)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def to(self, child: subprocess.Popen[bytes]) -> None:
        """The program has started; what came before goes to it now."""
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        at_terminal = sys.stdin is not None and sys.stdin.isatty()
        if at_terminal and signal.Signals(number).name in _OF_THE_TERMINAL:
            return
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


# --------------------------------------------------------------------------------- the summary


def _say(settings: Settings, folder: Path, started: str) -> None:
    note(*_screen(settings, folder, started))


def _screen(settings: Settings, folder: Path, started: str) -> Iterator[str]:
    if not settings.enabled:
        yield f"switched off ({switched_off_by(os.environ) or f'{PREFIX}ENABLED'})"
        return
    if configured(os.environ):
        yield "telemetry went to the exporter that the environment configures"
        return
    files = sorted(folder.glob(f"*-{started}-*.jsonl"))
    summary = summarise(files)
    yield from lines(summary)
    if summary.losses:
        yield f"what a rule says: {link('', settings.docs)}"
    if files:
        yield f"spans, metrics and log events, without content: {folder}/*-{started}-*.jsonl"
