"""The command line. `otel-sealed --help` lists the commands.

Exit status: 0 nothing degrades or breaks, 1 something does, 2 the input, the installation or this
machine is not usable, which one line on stderr names. What could not be judged, and a call that
failed, change no status: they are counted and named.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
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

    given = sys.argv[1:] if arguments is None else list(arguments)
    # the parser quotes arguments, on its own way out: those it could do harm with, we quote
    plain = all(map(str.isprintable, given))
    try:
        status = app(args=given, prog_name="otel-sealed", standalone_mode=plain)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK if end.code is None else UNUSABLE
    except SealedError as error:
        return complain(error.line())
    except Exception as error:  # noqa: BLE001 - a traceback may quote what was read
        quoted = getattr(error, "format_message", None)
        if quoted is not None and not plain:
            return complain(quoted())
        from otel_sealed.cli import faults

        return complain(faults.line(error), faults.remedy(error))
    return status if isinstance(status, int) else OK


def complain(what: str, remedy: str = "") -> int:
    """One line on stderr that says what is not usable; the exit status that goes with it."""
    note(f"{what}{f' ({remedy})' if remedy else ''}")
    return UNUSABLE


def note(*lines: str) -> None:
    """Lines of ours on stderr, whatever is in them."""
    sys.stderr.write("otel-sealed: " + "\n".join(map(printable, lines)) + "\n")


def printable(text: str) -> str:
    """`text` on one line, with every character that is not printable as its escape.

    Not printable are controls, escapes, ends of lines, marks of direction, lone surrogates of file
    names and whatever else a terminal may act on or hide.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
