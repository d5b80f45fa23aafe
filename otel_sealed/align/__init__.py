"""Expected turns against sent messages: what happened to each artifact. Blind to providers."""

from otel_sealed.align.fates import align
from otel_sealed.align.scene import Outcome

__all__ = ["Outcome", "align"]
