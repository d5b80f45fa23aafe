"""Never touch, never raise, never hide: the one place that may swallow an error, and only ours.

Every step of ours on the live path stands in `with shield("where"):`. An `Exception` there is
counted through the hook and logged by type and place alone, since a message may quote content.
`BaseException` (cancellation, interrupts, exits) always passes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from otel_sealed.vocab import SCOPE

if TYPE_CHECKING:
    from types import TracebackType

STRICT = False
"""Raise our own errors instead of swallowing them. Set by our tests, never in production."""

Hook = Callable[[str, str], object]
"""Told (where, type name of the error); `Emitter.internal_error` is one."""

_LOG: Final = logging.getLogger(SCOPE)
_lock = threading.RLock()  # re-entrant: a collection inside it may report, too
_hook: Hook | None = None
_logged: set[tuple[str, str]] = set()
_MOST_LOGGED: Final = 256


def on_error(hook: Hook | None) -> None:
    """Have our errors counted by `hook`; None for nobody."""
    global _hook  # noqa: PLW0603 - one process, one counter
    with _lock:
        _hook = hook
        _logged.clear()


def internal_error(where: str, kind: str) -> None:
    """Count one fault of ours and log it once per place and kind. Never raises."""
    try:
        with _lock:
            hook, new = _hook, (where, kind) not in _logged and len(_logged) < _MOST_LOGGED
            if new:
                _logged.add((where, kind))
        if hook is not None:
            hook(where, kind)
        if new:
            _LOG.warning("otel_sealed could not observe a call: %s in %s", kind, where)
    except Exception:
        if STRICT:
            raise


class shield:  # noqa: N801 - reads as a statement
    """Swallow and count an `Exception` of the block under it, unless `STRICT`."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        """`where` names the place in our words, for the counter and the log."""
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        internal_error(self._where, kind.__name__)
        return not STRICT
