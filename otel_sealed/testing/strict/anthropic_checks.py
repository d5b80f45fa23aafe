"""What the Messages API refuses about sealed blocks that come back (docs/contract/anthropic.md).

Every thinking block is verified wherever it stands; what was *left out* is noticed only in the
active tool loop (A1, A8). That begins after the last user message without a tool result; one with
some, or several messages in a row that the API reads as such a one, continues it at the very end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .records import Obj, objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SEALED = ("thinking", "redacted_thinking")
_KEYS = {
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
}
_OLDER = re.compile(r"claude-([a-z]+-)?[1-4](?!\d)")
_SEAL_KEY = {"thinking": "signature", "redacted_thinking": "data"}


@dataclass(frozen=True, slots=True)
class Shape:
    """A block as far as the order check cares: its kind, and its seal or tool call id."""

    kind: str
    key: str = ""


@dataclass(slots=True)
class Run:
    """Messages of one role in a row, which the API reads as one; each block with its path."""

    role: str
    blocks: list[tuple[str, Obj]] = field(default_factory=list)


class BrokenRuleError(Exception):
    """A rule is broken; the message is the API's own."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def runs(messages: Sequence[Any]) -> list[Run]:
    """Read the messages; a system message in between neither ends nor starts a run (A33)."""
    found: list[Run] = []
    for i, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            continue
        if not found or found[-1].role != message["role"]:
            found.append(Run(message["role"]))
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for j, block in enumerate(objects(content)):
            found[-1].blocks.append((f"messages.{i}.content.{j}", block))
    return found


def shape(block: Obj) -> Shape:
    """Reduce a block to what the order check compares."""
    kind = block.get("type")
    if kind in SEALED:
        return Shape("seal", str(block.get(_SEAL_KEY[kind])))
    if kind == "tool_use":
        return Shape("tool_use", str(block.get("id")))
    return Shape("other")


def check_blocks(messages: Sequence[Any], vouched: Callable[[str, str, str], bool]) -> None:
    """Verify every sealed block: its fields, then its seal.

    Args:
        messages: The messages of the request.
        vouched: Says whether (block type, sealed value, signed text) was minted here.
    """
    for run in runs(messages):
        for path, block in run.blocks:
            if run.role == "assistant" and block.get("type") in SEALED:
                _check_fields(path, block)
                _check_seal(path, block, vouched)


def _check_fields(path: str, block: Obj) -> None:
    kind = block["type"]
    for name in _KEYS[kind]:
        if name not in block:
            raise BrokenRuleError(f"{path}.{kind}.{name}: Field required")
        if not isinstance(block[name], str):
            # A3: a null where the seal should be.
            raise BrokenRuleError(f"{path}.{kind}.{name}.str: Input should be a valid string")
    for name in block:
        if name not in _KEYS[kind]:
            # A30: the parameter types have no such field.
            raise BrokenRuleError(f"{path}.{kind}.{name}: Extra inputs are not permitted")


def _check_seal(path: str, block: Obj, vouched: Callable[[str, str, str], bool]) -> None:
    kind, name = block["type"], _SEAL_KEY[block["type"]]
    # A3, A18: empty, altered and foreign values are all the same to the API.
    if not vouched(kind, block[name], block.get("thinking", "")):
        raise BrokenRuleError(f"{path}: Invalid `{name}` in `{kind}` block")


def thinks(thinking: Any, model: str) -> str:
    """`thinking.type` of a request; where it is absent the model's own way (A9)."""
    if isinstance(thinking, dict):
        return str(thinking.get("type"))
    return "disabled" if _OLDER.search(model) else "adaptive"


def check_loop(messages: Sequence[Any], mode: str, turns: Mapping[str, tuple[Shape, ...]]) -> None:
    """Compare the assistant turns of the active tool loop with what was minted (A1, A2, A5).

    Args:
        messages: The messages of the request.
        mode: How the model thinks, see `thinks`.
        turns: For each tool call id the blocks of the turn that made it.
    """
    said = runs(messages)
    if mode == "disabled":
        _check_disabled(said)
        return
    for run in said[_loop_from(said) :]:
        calls = [str(b.get("id")) for _, b in run.blocks if b.get("type") == "tool_use"]
        if run.role != "assistant" or not calls:
            continue
        minted = next((turns[call] for call in calls if call in turns), ())
        sealed = any(block.kind == "seal" for block in minted)
        bare = not any(block.get("type") in SEALED for _, block in run.blocks)
        if mode == "enabled":
            _check_start(run)  # A10: also of a turn that never had any thinking
        elif bare:
            continue  # A1: where thinking is adaptive a turn may come without any of its own
        if sealed:
            _check_order(run, minted)


def _loop_from(said: list[Run]) -> int:
    """The first run after the user's last word; results at the end continue what they answer."""
    opens = [
        run.role == "user" and any(b.get("type") != "tool_result" for _, b in run.blocks)
        for run in said
    ]
    if said and any(b.get("type") == "tool_result" for _, b in said[-1].blocks):
        opens[-1] = False
    return max((i + 1 for i, so in enumerate(opens) if so), default=0)


def _check_disabled(said: list[Run]) -> None:
    """A9: with thinking off the final assistant message, with its whole loop, may not have any."""
    last = said[-1] if said else None
    ends = last is not None and last.role == "assistant"
    looping = last is not None and any(b.get("type") == "tool_result" for _, b in last.blocks)
    if not (looping or ends):
        return
    for run in said[_loop_from(said) :]:
        for path, block in run.blocks if run.role == "assistant" else ():
            if block.get("type") in SEALED:
                raise BrokenRuleError(
                    f"{path}: When thinking is disabled, an `assistant` message in the final"
                    " position cannot contain `thinking`. To use thinking blocks, enable `thinking`"
                    " in your request."
                )


def _check_start(run: Run) -> None:
    path, first = run.blocks[0]
    if first.get("type") not in SEALED:
        raise BrokenRuleError(
            f"{path}.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{first.get('type')}`. When `thinking` is enabled, a final `assistant` message must "
            "start with a thinking block (preceeding the lastmost set of `tool_use` and "
            "`tool_result` blocks). We recommend you include thinking blocks from previous turns. "
            "To avoid this requirement, disable `thinking`."
        )


def _check_order(run: Run, minted: tuple[Shape, ...]) -> None:
    at = _deviation([shape(block) for _, block in run.blocks], minted)
    if at is not None:
        raise BrokenRuleError(
            f"{run.blocks[at][0]}: `thinking` or `redacted_thinking` blocks in the latest "
            "assistant message cannot be modified. These blocks must remain as they were in the "
            "original response."
        )


def _deviation(sent: list[Shape], minted: tuple[Shape, ...]) -> int | None:
    """Find the first block at which the sealed blocks are not as they were.

    Seals must be the same in the same order; those that stood together must stand together, those
    that stood apart must stand apart (A5); and each call must follow as many seals as it did.
    """
    there = [(i, x.key) for i, x in enumerate(sent) if x.kind == "seal"]
    then = [(i, x.key) for i, x in enumerate(minted) if x.kind == "seal"]
    for k, (i, key) in enumerate(there):
        if k >= len(then) or key != then[k][1]:
            return i
        if k and (i - there[k - 1][0] == 1) != (then[k][0] - then[k - 1][0] == 1):
            return i
    if len(there) < len(then):
        return 0
    before = _seals_before(minted)
    after = _seals_before(tuple(sent))
    for i, block in enumerate(sent):
        if block.kind == "tool_use" and after[block.key] != before.get(block.key):
            return i
    return None


def _seals_before(blocks: tuple[Shape, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    seals = 0
    for block in blocks:
        seals += block.kind == "seal"
        if block.kind == "tool_use":
            counts[block.key] = seals
    return counts
