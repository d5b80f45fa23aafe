"""OpenAI Responses: reasoning and compaction items, their ids, and the pairs they are sent in."""

from __future__ import annotations

from otel_sealed.providers.openai.wire import DIALECT

__all__ = ["DIALECT"]
