"""`otel-sealed inspect`: one response, described."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from otel_sealed import transcript
from otel_sealed.cli import OK
from otel_sealed.cli.show import json_line, write
from otel_sealed.errors import SealedError
from otel_sealed.inspection import inspect
from otel_sealed.wire import intake
from otel_sealed.wire.parse import Unread


def run(file: str, *, as_json: bool) -> int:
    """Print what the response in `file` (or on stdin, for `-`) holds."""
    name = "standard input" if file == "-" else file
    try:
        if file == "-":
            data = _whole(sys.stdin.buffer)
        else:
            with transcript.opened(file) as opened:
                data = _whole(opened)
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


def _whole(file: Any) -> bytes:
    """A response within the bounds of any line that somebody else made."""
    try:
        data = intake.whole(file, intake.MAX_LINE)
    except Unread as unread:
        raise SealedError(intake.WHY[unread.reason]) from None
    if intake.values(data) > intake.MAX_NODES:
        raise SealedError(intake.WHY[intake.NODES])
    return data
