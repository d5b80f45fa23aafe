"""Gemini Interactions: steps with a signature, and state that the server keeps."""

from __future__ import annotations

from otel_sealed.providers.interactions.wire import DIALECT

__all__ = ["DIALECT"]
