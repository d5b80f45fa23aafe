"""Chat Completions: what gateways and Google's compatible endpoint put sealed values into."""

from __future__ import annotations

from otel_sealed.providers.chat.wire import DIALECT

__all__ = ["DIALECT"]
