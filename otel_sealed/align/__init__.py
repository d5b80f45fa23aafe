"""Expected turns against sent messages: what happened to each artifact. Blind to providers."""

from otel_sealed.align.fates import align
from otel_sealed.align.rows import Outcome

__all__ = ["Outcome", "align"]
