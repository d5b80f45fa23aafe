"""The command line: `otel-sealed demo`, `verify`, `inspect`, `provider`.

Exit status: 0 all is well, 1 something degrades or breaks, 2 the input or the installation is not
usable, which one line on stderr names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from otel_sealed.errors import SealedError

OK: Final = 0
VIOLATED: Final = 1
UNUSABLE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        return complain(
            f"the command line needs {' and '.join(missing)}",
            "python -m pip install 'otel-sealed[cli]'",
        )
    from otel_sealed.cli.app import app

    try:
        app(args=None if arguments is None else list(arguments), prog_name="otel-sealed")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK if end.code is None else UNUSABLE
    except SealedError as error:
        return complain(error.line())
    except Exception as error:  # noqa: BLE001 - a traceback may quote what was read
        return complain(f"our own fault: {type(error).__name__} at {_place(error)}")
    return OK


def complain(what: str, remedy: str = "") -> int:
    """One line on stderr, whatever is in it; the exit status that goes with it."""
    line = f"otel-sealed: {what}{f' ({remedy})' if remedy else ''}"
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    sys.stderr.write("".join(shown) + "\n")
    return UNUSABLE


def _place(error: Exception) -> str:
    """File and line where it was raised, without a word of the message."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
