"""A provider that refuses what real providers refuse, on loopback, for tests and demos.

It judges raw bytes on its own: nothing in this package imports anything of otel_sealed outside it.
"""

from __future__ import annotations

from .provider import StrictProvider, run
from .records import Exchange, Minted

__all__ = ["Exchange", "Minted", "StrictProvider", "run"]
