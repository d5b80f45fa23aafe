"""`otel-sealed inspect`: one response, described."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from otel_sealed.cli import OK
from otel_sealed.cli.show import json_line, write
from otel_sealed.errors import SealedError
from otel_sealed.inspection import inspect


def run(file: str, *, as_json: bool) -> int:
    """Print what the response in `file` (or on stdin, for `-`) holds."""
    name = "standard input" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        found = inspect(data)
    except OSError as error:
        raise SealedError(error.strerror or "cannot be read", where=name) from None
    except SealedError as error:
        raise SealedError(error.what, where=name, remedy=error.remedy) from None
    if as_json:
        json_line(asdict(found))
    else:
        write(f"{found}\n")
    return OK
