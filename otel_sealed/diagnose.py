"""How a value changed, told from lengths and keyed window digests alone.

See docs/architecture.md#digests.

Blind to providers and to content: it compares what the ledger kept of the received value with a
sample of the value now in its place, cut into windows of the same size.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from otel_sealed.digest import window_plan
from otel_sealed.model import Cause, Value
from otel_sealed.wire.search import Sample

_WINDOW_BYTES = 4


@dataclass(frozen=True, slots=True)
class Change:
    """A cause and where it struck: `detail` is numbers of bytes only."""

    cause: Cause | None
    detail: str = ""


def diagnose(received: Value, sample: Sample | None, others: Collection[bytes] = ()) -> Change:
    """The likeliest cause; `others` are `canon` digests of the seals of the conversation."""
    if sample is None or sample.size == 0:
        return Change(Cause.EMPTIED)
    if received.canon and received.canon in sample.layers:
        first = sample.layers[0] == received.canon
        return Change(Cause.RE_ENCODED if first else Cause.DOUBLE_ENCODED)
    if received.digest in sample.normal_forms:
        return Change(Cause.UNICODE_NORMALISED)
    if sample.stripped == received.digest:
        return Change(Cause.WHITESPACE)
    if any(layer in others for layer in sample.layers):
        return Change(Cause.SWAPPED)
    return _by_windows(received, sample)


def akin(received: Value, sample: Sample | None) -> bool:
    """Whether a value may be the received one, changed: seals of one vendor may begin alike."""
    cause = diagnose(received, sample).cause
    if cause is not Cause.MASKED or sample is None:
        return cause not in (Cause.REPLACED, Cause.EMPTIED)
    _, count = window_plan(received.size)
    places = (0, count, 2 * count + 1)  # the first window, the last one, the edge of the end
    return any(_equal(received.prints, sample.prints, range(at, at + 1)) for at in places)


def _by_windows(received: Value, sample: Sample) -> Change:
    step, count = window_plan(received.size)
    head = _equal(received.prints, sample.prints, range(count))
    tail = _equal(received.prints, sample.prints, range(count, 2 * count))
    starts = _equal(received.prints, sample.prints, range(2 * count, 2 * count + 1)) == 1
    ends = _equal(received.prints, sample.prints, range(2 * count + 1, 2 * count + 2)) == 1
    size_in, size_out = received.size, sample.size
    if size_out < size_in:
        if starts and not ends and head >= size_out // step:
            return Change(Cause.CUT_END, f"after {size_out} of {size_in}")
        if ends and not starts and tail >= size_out // step:
            return Change(Cause.CUT_START, f"first {size_in - size_out} of {size_in}")
    if size_out > size_in and count and count in (head, tail):
        return Change(Cause.GROWN, f"{size_in} to {size_out}")
    if starts or ends or head or tail:
        start, end = sorted((head * step, size_in - tail * step))
        return Change(Cause.MASKED, f"within {start}-{end} of {size_in}")
    return Change(Cause.REPLACED, f"{size_in} to {size_out}")


def _equal(one: bytes, two: bytes, windows: range) -> int:
    """How many of `windows` agree, counted from the first until one differs."""
    count = 0
    for index in windows:
        at = slice(index * _WINDOW_BYTES, (index + 1) * _WINDOW_BYTES)
        if not one[at] or one[at] != two[at]:
            break
        count += 1
    return count
