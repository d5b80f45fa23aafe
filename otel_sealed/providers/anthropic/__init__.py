"""Anthropic Messages: where sealed state lives, how streams bring it, who may omit what."""

from __future__ import annotations

from otel_sealed.providers.anthropic.wire import DIALECT

__all__ = ["DIALECT"]
