"""Patching: looking on at the calls of provider SDKs without changing them.

This package and its main function have one name, and importing a package puts it over a function
of the same name in its parent. So the package itself can be called: `otel_sealed.instrument()` is
`otel_sealed.instrument.instrument()`, whatever was imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType

from otel_sealed.instrument.patch import ADAPTERS, EVERY, Handle, effect, instrument, uninstrument

__all__ = ["ADAPTERS", "EVERY", "Handle", "effect", "instrument", "uninstrument"]


class _Callable(ModuleType):
    __call__ = staticmethod(instrument)


sys.modules[__name__].__class__ = _Callable
