"""A response as the events of a stream, numbered, each item opened, told in deltas, and done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .sse import deltas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .records import Obj


def events(response: Obj, reseal: Callable[[Obj], Obj]) -> Iterator[Obj]:
    """A response as a stream brings it, from `response.created` to `response.completed`.

    `reseal`: an item as `output_item.done` has it, sealed in other bytes or in the same ones.
    """
    for number, event in enumerate(_events(response, reseal)):
        yield {**event, "sequence_number": number}


def _events(response: Obj, reseal: Callable[[Obj], Obj]) -> Iterator[Obj]:
    opening = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": _opening(item)}
        yield from _told(item, {"item_id": item["id"], "output_index": index})
        yield {"type": "response.output_item.done", "output_index": index, "item": reseal(item)}
    yield {"type": "response.completed", "response": response}


def _opening(item: Obj) -> Obj:
    match item["type"]:
        case "reasoning":
            opening = {**item, "summary": []}
            if "encrypted_content" in item:
                # Contract 1.5: what comes here is incomplete and must not be sent back.
                blob = item["encrypted_content"]
                opening["encrypted_content"] = blob[: len(blob) // 12 * 4]
            return opening
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}
        case _:
            return {**item, "status": "in_progress", "content": []}


def _told(item: Obj, where: Obj) -> Iterator[Obj]:
    match item["type"]:
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                yield from _summary(part, {**where, "summary_index": index})
        case "function_call":
            made = item["arguments"]
            for delta in deltas(made):
                yield {"type": "response.function_call_arguments.delta", **where, "delta": delta}
            yield {"type": "response.function_call_arguments.done", **where, "arguments": made}
        case _:
            for index, part in enumerate(item["content"]):
                yield from _text(part, {**where, "content_index": index})


def _summary(part: Obj, where: Obj) -> Iterator[Obj]:
    prefix = "response.reasoning_summary"
    yield {"type": f"{prefix}_part.added", **where, "part": {**part, "text": ""}}
    for delta in deltas(part["text"]):
        yield {"type": f"{prefix}_text.delta", **where, "delta": delta}
    yield {"type": f"{prefix}_text.done", **where, "text": part["text"]}
    yield {"type": f"{prefix}_part.done", **where, "part": part}


def _text(part: Obj, where: Obj) -> Iterator[Obj]:
    yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
    for delta in deltas(part["text"]):
        yield {"type": "response.output_text.delta", **where, "delta": delta, "logprobs": []}
    yield {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **where, "part": part}
