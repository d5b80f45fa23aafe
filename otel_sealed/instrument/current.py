"""The call under way in this context, for whatever runs below the hook that began it.

Theory of operation. A hook at an SDK sets `CURRENT` for as long as the SDK's method runs, and what
runs below it in the same context (a lower hook of the SDK, a hook at an HTTP client) asks whose it
is. Tasks and threads that are given a copy of the context have it, too, and may outlive the call:
a call that is settled covers nothing any more.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Final

UNSEEN: Final = object()
"""No method of an SDK that we are on runs above."""
ASIDE: Final = object()
"""One does, for a call that the application does not want to have observed."""

CURRENT: ContextVar[object] = ContextVar("otel_sealed_call", default=UNSEEN)
"""A `Call`; None for what is no turn of a model; or one of the two above."""


def enter(call: object | None) -> Token[object] | None:
    """Make a call current, if there is one; the result is for `leave`."""
    return None if call is None else CURRENT.set(call)


def leave(token: Token[Any] | None, variable: ContextVar[Any] = CURRENT) -> None:
    """What was current before; nothing where a coroutine is closed in another context."""
    if token is not None:
        try:  # noqa: SIM105 - it costs a microsecond, twice a call
            variable.reset(token)
        except ValueError:
            pass
