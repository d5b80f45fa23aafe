"""Gemini generateContent: thought signatures on parts, compared as decoded bytes."""

from __future__ import annotations

from otel_sealed.providers.gemini.wire import DIALECT

__all__ = ["DIALECT"]
