"""Bedrock Converse: Claude's reasoning in blocks of Amazon's, and their streams."""

from __future__ import annotations

from otel_sealed.providers.bedrock.wire import DIALECT

__all__ = ["DIALECT"]
