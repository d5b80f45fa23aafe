"""Receipts: for each tool result at the end of a request, its call, sizes and error flag.

The results behind the model's last message are the ones that go out for the first time. A result is
paired with its call by id; where the wire has none (Gemini), by order among the results of its
step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from otel_sealed.contract import Carrier, Dialect, RawMessage
from otel_sealed.digest import Digest, spelled, utf8
from otel_sealed.model import Kind, Speaker, ToolReceipt
from otel_sealed.steps import spend
from otel_sealed.vocab import word
from otel_sealed.wire.parse import lookup

_MAX_RECEIPTS = 64

Part = tuple[Mapping[str, Any], Carrier]


def receipts(
    messages: Sequence[RawMessage], dialect: Dialect, digest: Digest
) -> tuple[ToolReceipt, ...]:
    """One receipt for each tool result behind the model's last message, at most 64."""
    at = len(messages)
    while at and messages[at - 1].speaker is not Speaker.MODEL:
        at -= 1
    results = [part for part in _parts(messages[at:], dialect) if part[1].result]
    if not results:
        return ()
    start = at
    while start and messages[start - 1].speaker is Speaker.MODEL:
        start -= 1
    calls = [part for part in _parts(messages[start:at], dialect) if part[1].kind is Kind.CALL]
    by_id: dict[str, Part] = {}
    for call in calls:
        for name in _ids(call):
            by_id.setdefault(name, call)
    return tuple(
        _receipt(part, _call_of(part, order, calls, by_id), digest)
        for order, part in enumerate(results[:_MAX_RECEIPTS])
    )


def size_of(value: Any) -> int:
    """Bytes of a text, or of the compact JSON of anything else."""
    return len(utf8(value)) if isinstance(value, str) else len(spelled(value))


def _parts(messages: Sequence[RawMessage], dialect: Dialect) -> Iterator[Part]:
    for message in messages:
        for _, part in message.parts:
            spend()
            carrier = (
                dialect.carriers.get(dialect.type_of(part)) if isinstance(part, dict) else None
            )
            if carrier is not None:
                yield part, carrier


def _ids(part: Part) -> set[str]:
    raw, carrier = part
    return {text for key in carrier.ids if isinstance(text := lookup(raw, key), str) and text}


def _call_of(result: Part, order: int, calls: list[Part], by_id: Mapping[str, Part]) -> Part | None:
    ids = _ids(result)
    if ids:
        return next((by_id[name] for name in sorted(ids) if name in by_id), None)
    return calls[order] if order < len(calls) else None


def _receipt(result: Part, call: Part | None, digest: Digest) -> ToolReceipt:
    raw, carrier = result
    label = lookup(raw, carrier.label) if carrier.label else None
    arguments = None
    if call is not None:
        label = lookup(call[0], call[1].label) if call[1].label else label
        arguments = lookup(call[0], call[1].arguments) if call[1].arguments else None
    flag = lookup(raw, carrier.failed) if carrier.failed else None
    identifier = min(_ids(result), default="")
    return ToolReceipt(
        name=word(label),
        call=digest.name(identifier) if identifier else b"",
        arguments_size=None if arguments is None else size_of(arguments),
        result_size=size_of(lookup(raw, carrier.result)),
        failed=bool(flag) if carrier.failed else None,
    )
