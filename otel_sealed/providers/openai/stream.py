"""OpenAI Responses, streamed: the response that events amount to.

Source: docs/sdk-surface.md#streams-of-openai. Checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otel_sealed.steps import spend
from otel_sealed.wire.parse import as_text

_CLOSING = frozenset({"response.completed", "response.incomplete", "response.failed"})


def fold(events: Iterable[Any]) -> dict[str, Any]:
    """The response a stream amounts to.

    Each event seals an item anew. `output_item.added` may hold an incomplete blob, so only
    `output_item.done` and the closing event count, either of them; a closing event with an empty
    output leaves what the items said. A blob of which nothing else came is one that was cut.
    """
    response: dict[str, Any] = {}
    items: dict[int, Any] = {}
    begun: dict[int, Any] = {}
    complete = False
    for event in events:
        spend()
        if not isinstance(event, dict):
            continue
        kind = event.get("type")
        if kind == "response.output_item.done":
            index = event.get("output_index")
            items[index if isinstance(index, int) else len(items)] = event.get("item")
        elif kind == "response.output_item.added" and _sealed(event.get("item")):
            begun[event["output_index"] if isinstance(event.get("output_index"), int) else 0] = (
                event["item"]
            )
        elif kind == "error":
            response["error"] = {k: v for k, v in event.items() if k != "type"}
        elif isinstance(kind, str) and isinstance(event.get("response"), dict):
            response.update(event["response"])
            complete = complete or kind in _CLOSING
    cut: set[int] = set()
    response["anew"] = []
    if isinstance(response.get("output"), list) and items:
        response["output"], response["anew"] = _completed(response["output"], items)
    if not response.get("output"):
        cut = set() if complete else begun.keys() - items.keys()
        items |= {index: begun[index] for index in cut}
        response["output"] = [items[index] for index in sorted(items)]
    response["complete"] = complete
    response["cut"] = [str(at) for at, index in enumerate(sorted(items)) if index in cut]
    return response


def _completed(
    closing: list[Any], items: Mapping[int, Any]
) -> tuple[list[Any], list[tuple[str, Any]]]:
    """The output of a closing event with what it lacks of the items that were done before.

    And those of the latter, by place, that it has otherwise: sealed anew, some hosts under new ids.
    """
    output = list(closing)
    if not output:
        return output, []
    places = {as_text(i.get("id")): at for at, i in enumerate(output) if isinstance(i, dict)}
    short = len(output) <= max(items)
    anew: list[tuple[str, Any]] = []
    spend(len(items) + len(output))
    for index in sorted(items):
        item = items[index]
        if not isinstance(item, dict):
            continue
        name = as_text(item.get("id"))
        at = places.get(name) if name else None
        if at is None and short:
            if _sealed(item):
                output.insert(index, item)
            continue
        at = index if at is None else at
        closed = output[at] if 0 <= at < len(output) else None
        if not isinstance(closed, dict) or closed.get("type") != item.get("type"):
            continue
        blob = as_text(closed.get("encrypted_content"))
        if _sealed(item) and item["encrypted_content"].startswith(blob):
            output[at] = item
        elif closed != item:
            anew.append((str(at), item))
    return output, anew


def _sealed(item: Any) -> bool:
    return isinstance(item, dict) and bool(as_text(item.get("encrypted_content")))
