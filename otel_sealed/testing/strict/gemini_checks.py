"""What generateContent refuses about thought signatures that come back (docs/contract/gemini.md).

Only the current turn is looked at, and in it only function calls: the first call of every step
must be signed (G1), and whatever signature a call bears must be one of ours (G11).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .records import Obj, objects

Vouched: TypeAlias = Callable[[str], bool]
"""Says whether a signature, in its standard spelling, was minted here."""

# G9: a last resort that Google documents; the second is known to the Developer API only.
_DUMMY = "skip_thought_signature_validator"
_DEVELOPER_DUMMY = "context_engineering_is_the_way_to_go"
# What LangChain JS puts into every unsigned call, by the SHA-256 of its bytes: a public constant.
_CONSTANTS = frozenset({"6e7a63a6f9cccdec755b924cd369ae500c9348c558e074d3a02caf5939b00cf4"})
_SNAKE = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "thoughtSignature": "thought_signature",
}


class BrokenRuleError(Exception):
    """A rule is broken; the message is the API's own."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def parts(content: Obj) -> list[Obj]:
    """List the parts of a content."""
    return objects(content.get("parts"))


def field(part: Obj, name: str) -> Any:
    """Read a field in either of its spellings."""
    return part.get(name, part.get(_SNAKE[name]))


def has(part: Obj, name: str) -> bool:
    """Say whether a part is of a kind."""
    return field(part, name) is not None


def check(contents: Sequence[Obj], model: str, vouched: Vouched, *, vertex: bool) -> None:
    """Check the steps of the current turn."""
    demands = model.startswith("gemini-3")  # G8: 2.5 does not validate what is missing
    for step in _steps(contents):
        for at, (position, part) in enumerate(step):
            signature = field(part, "thoughtSignature")
            if signature in (None, ""):
                if demands and at == 0:
                    raise BrokenRuleError(_missing(position, part, vertex=vertex))
            elif not _valid(signature, vouched, vertex=vertex):
                raise BrokenRuleError(
                    "Invalid thought signature." if vertex else "Corrupted thought signature."
                )


def _steps(contents: Sequence[Obj]) -> list[list[tuple[int, Obj]]]:
    """List the function calls of each step, with the position of the content they stand in.

    Model contents with nothing between them are one step: that is how Google's own chats send back
    a streamed turn, one content for each chunk. A function response between them parts them (G14).
    """
    steps: list[list[tuple[int, Obj]]] = []
    parted = True
    for index in range(_turn_start(contents), len(contents)):
        content = contents[index]
        if content.get("role") != "model":
            parted = True
            continue
        if parted:
            steps.append([])
        parted = False
        steps[-1] += [(index + 1, p) for p in parts(content) if has(p, "functionCall")]
    return steps


def _turn_start(contents: Sequence[Obj]) -> int:
    """Find the newest user content that is no function response, not even in part."""
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        held = parts(content)
        answers = any(has(part, "functionResponse") for part in held)
        if content.get("role") in ("user", None) and held and not answers:
            return index
    return 0


def _missing(position: int, part: Obj, *, vertex: bool) -> str:
    name = field(part, "functionCall").get("name")
    if vertex:
        return (
            f"Unable to submit request because function call `default_api:{name}` in the "
            f"{position}. content block is missing a `thought_signature`."
        )
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly, and missing thought_signature may lead to degraded model "
        f"performance. Additional data, function call `default_api:{name}` , position {position}."
    )


def _valid(signature: Any, vouched: Vouched, *, vertex: bool) -> bool:
    decoded = _decoded(signature)
    if decoded is None:
        return False
    dummies = [_DUMMY] if vertex else [_DUMMY, _DEVELOPER_DUMMY]
    if signature in dummies or decoded in [dummy.encode() for dummy in dummies]:
        return True
    if hashlib.sha256(decoded).hexdigest() in _CONSTANTS:
        return True
    return vouched(base64.b64encode(decoded).decode())


def _decoded(signature: Any) -> bytes | None:
    """Decode either alphabet, padded or not: a signature is bytes, not its spelling (2.1)."""
    if not isinstance(signature, str):
        return None
    text = signature.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
