"""The one place of this floor that may swallow: a fault of ours or of a sink stays here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, ParamSpec, TypeVar

from otel_sealed.vocab import SCOPE

_LOG: Final = logging.getLogger(SCOPE)
P = ParamSpec("P")
T = TypeVar("T")

OnError = Callable[[str, str], None]
"""Told the place that failed and the class of the error; never its message."""


class Shield:
    """Runs calls that must not fail their caller. `strict` re-raises, as our tests do."""

    def __init__(self, on_error: OnError, *, strict: bool = False) -> None:
        self._on_error = on_error
        self._strict = strict

    def run(self, place: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result of `call`, or None when it raised."""
        try:
            return call(*args, **kwargs)
        except Exception as error:
            if self._strict:
                raise
            self._tell(place, type(error).__name__)
            return None

    def _tell(self, place: str, kind: str) -> None:
        try:
            self._on_error(place, kind)
        except Exception as error:  # noqa: BLE001 - the error metric itself failed
            with suppress(Exception):
                _LOG.warning("could not count %s in %s: %s", kind, place, type(error).__name__)


def nobody(_place: str, _kind: str) -> None:
    """The `on_error` of those without an emitter: there is no error metric to count into."""
