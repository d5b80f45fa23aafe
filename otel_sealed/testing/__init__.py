"""What helps to test an application, or this library, without a provider."""

from __future__ import annotations

from .strict import Exchange, Minted, StrictProvider, run

__all__ = ["Exchange", "Minted", "StrictProvider", "run"]
