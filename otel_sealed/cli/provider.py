"""`otel-sealed provider`: the strict provider, until it is interrupted."""

from __future__ import annotations

import sys

from otel_sealed.cli import OK, note
from otel_sealed.cli.show import write
from otel_sealed.errors import SealedError
from otel_sealed.testing.strict import run as serve


def run(port: int, *, verify_signed_text: bool) -> int:
    """Serve, and print the base URL as the only line on stdout."""
    try:
        serve(port, verify_signed_text=verify_signed_text, on_ready=_tell)
    except OSError as error:
        raise SealedError(
            error.strerror or "cannot listen",
            where=f"port {port}",
            remedy="--port 0 takes a free one",
        ) from None
    return OK


def _tell(url: str) -> None:
    write(f"{url}\n")
    if sys.stderr.isatty():
        note("Anthropic and Gemini take this as base URL, OpenAI adds /v1. Ctrl-C ends it.")
