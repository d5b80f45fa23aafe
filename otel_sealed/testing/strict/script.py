"""The script all dialects play: two turns that call tools, an answer, then answers to follow-ups.

The provider does not know who calls. It finds the turn in the history that the request carries, so
any number of conversations run side by side, and an unfaithful history gets the turn it asks for.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .records import Obj

_DEEPEST = 6  # a schema may contain itself


class Stage(Enum):
    """Which turn of the script a request asks for."""

    FIRST = 1
    SECOND = 2
    ANSWER = 3
    FOLLOW_UP = 4


def stage(*, tools: bool, results: int, ends_in_result: bool, follows: bool) -> Stage:
    """Find the turn.

    Args:
        tools: The request offers tools and lets the model call them.
        results: Number of tool results anywhere in the history.
        ends_in_result: The history ends in a tool result.
        follows: The model has spoken in the history.
    """
    if ends_in_result:
        return Stage.SECOND if tools and results == 1 else Stage.ANSWER
    if follows:
        return Stage.FOLLOW_UP
    return Stage.FIRST if tools else Stage.ANSWER


def arguments(schema: Any, word: Callable[[str], str]) -> Obj:
    """Make arguments that satisfy a tool's schema, as far as plain JSON schema goes."""
    if not isinstance(schema, dict) or "properties" not in schema:
        return {"query": word("query")}
    filled = _fill(schema, "value", word, schema)
    return filled if isinstance(filled, dict) else {}


def _fill(schema: Any, name: str, word: Callable[[str], str], root: Obj, depth: int = 0) -> Any:
    schema = _settled(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match str(_single(kind)).lower():
        case "object":
            return _fill_object(schema, word, root, depth + 1)
        case "array":
            return [_fill(schema.get("items", {}), name, word, root, depth + 1)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return word(name)[: schema.get("maxLength")]


def _fill_object(schema: Obj, word: Callable[[str], str], root: Obj, depth: int) -> Obj:
    properties = schema.get("properties") or {}
    wanted = schema.get("required") or list(properties)
    if depth > _DEEPEST:
        wanted = []
    return {
        name: _fill(part, name, word, root, depth)
        for name, part in properties.items()
        if name in wanted
    }


def _settled(schema: Any, root: Obj) -> Obj:
    """Follow references and take the first alternative that is not null."""
    for _ in range(8):  # a reference that leads back to itself must end
        if not isinstance(schema, dict):
            return {}
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if "$ref" in schema:
            schema = _referred(str(schema["$ref"]), root)
        elif choices:
            schema = next((x for x in choices if x.get("type") != "null"), {})
        else:
            return schema
    return {}


def _referred(reference: str, root: Obj) -> Any:
    found: Any = root
    for step in filter(None, reference.removeprefix("#").split("/")):
        found = found.get(step, {}) if isinstance(found, dict) else {}
    return found


def _single(kind: Any) -> Any:
    return next((x for x in kind if x != "null"), "string") if isinstance(kind, list) else kind
