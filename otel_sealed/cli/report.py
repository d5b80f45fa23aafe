"""`otel-sealed report`: the incidents of a record as one page to share."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

from otel_sealed.cli import OK, VIOLATED, note
from otel_sealed.cli.show import plural, ticker, write
from otel_sealed.cli.triage import STDIN, Asked, on_index
from otel_sealed.cli.when import clock
from otel_sealed.errors import SealedError
from otel_sealed.triage.index import Index
from otel_sealed.triage.page import page
from otel_sealed.triage.report import report
from otel_sealed.triage.sums import scope, screen


def run(asked: Asked, output: str) -> int:
    """Write the page. Status: 0 nothing is broken, 1 something is, 2 unusable input."""
    return on_index(asked, partial(_made, output))


def _made(output: str, index: Index, asked: Asked) -> Callable[[], int]:
    stats = index.stats()
    sums = index.sums()
    if not (stats.calls or sums.unobserved or index.refused or stats.broken):
        raise SealedError("no call on record", remedy="give a folder of OTLP JSON lines, or a file")
    found = index.incidents(asked.wanted, asked.limit)
    with ticker() as ticks:
        made = report(
            found,
            index.conversation,
            calls=stats.calls,
            broken=stats.broken,
            sums=sums,
            told=lambda done, all_: ticks.say(f"conversation {done} of {all_}"),
        )

    def printed() -> int:
        version = metadata.version("otel-sealed")
        until = f", newest call {clock(stats.newest)}" if stats.newest else ""
        _write(output, page(made, made=f"Made by otel-sealed {version}{until}."))
        if output != STDIN:
            problems = plural(len(made.problems), "problem")
            said = f"{problems}, {plural(len(found), 'incident')} in {output}"
            judged = scope(stats.calls, made.sums)
            note("; ".join(filter(None, (said, judged))), *screen(made.sums))
        return VIOLATED if found else OK

    return printed


def _write(output: str, text: str) -> None:
    """The page is for its owner until its owner hands it on; a link in its place is replaced."""
    if output == STDIN:
        write(text)
        return
    path = Path(output)
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        new.replace(path)
    except OSError as error:
        raise SealedError(error.strerror or "cannot be written", where=output) from None
