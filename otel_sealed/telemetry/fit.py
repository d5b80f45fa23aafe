"""How much of what we have to say fits on a span without pushing anybody's attributes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from otel_sealed import vocab

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

_DEFAULT_LIMIT: Final = 128
_SCALARS: Final = tuple(
    attribute.name
    for attribute in vocab.ATTRIBUTES
    if attribute.name in vocab.SPAN_ATTRIBUTES and not attribute.type.endswith("[]")
)


def limit_of(span: Span) -> int | None:
    """How many attributes the span may hold; None for no bound. The default if it does not say."""
    limits = getattr(span, "_limits", None)
    limit = getattr(limits, "max_span_attributes", _DEFAULT_LIMIT)
    return limit if limit is None or isinstance(limit, int) else _DEFAULT_LIMIT


def fit(
    values: Mapping[str, Any], present: Mapping[str, Any], *, limit: int | None, owned: bool
) -> Mapping[str, Any]:
    """`values`, or less of them, so that nobody's attributes are pushed out of the span.

    On a span of somebody else three quarters of the limit (96 of 128) is the ceiling. Beyond it
    only scalars and the readable findings are written, and of those no more than fit.
    """
    if limit is None:
        limit = _DEFAULT_LIMIT if not owned else len(values) + len(present)
    ceiling = limit if owned else min(vocab.ATTRIBUTE_CEILING, limit * 3 // 4)
    room = ceiling - len(present)
    if len(values) <= room:
        return values
    new = [name for name in values if name not in present]
    if len(new) <= room:
        return values
    others = [name for name in values if owned and name not in vocab.SPAN_ATTRIBUTES]
    kept: dict[str, Any] = {}
    for name in dict.fromkeys((vocab.VERDICT, vocab.FINDINGS, *_SCALARS, *others)):
        if name in values and (name in present or room > 0):
            kept[name] = values[name]
            room -= name not in present
    return kept
