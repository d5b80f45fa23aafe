"""What the Responses API refuses about sealed items that come back (docs/contract/openai.md).

A blob is verified wherever it stands. That something was *left out* is noticed through ids only:
an item that kept its server id is paired with the item it came with (O3, O4); without ids nothing
is missed (O5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .records import Obj

# O23: Codex adds it to every item it sends to OpenAI itself
_METADATA = "internal_chat_message_metadata_passthrough"
_REASONING_KEYS = ("type", "id", "summary", "encrypted_content")


class BrokenRuleError(Exception):
    """A rule is broken; message, code and parameter are the API's own."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        parameter: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.parameter = parameter


@dataclass(frozen=True, slots=True)
class _Pair:
    """A reasoning item and the item that followed it."""

    reasoning: str
    follower: str
    follower_type: str
    call_id: str | None


@dataclass(slots=True)
class Book:
    """What was issued: which items are stored, and which belong together.

    Attributes:
        find: Finds the id of the item that a (type, sealed value) was minted for.
    """

    find: Callable[[str, str], str | None]
    stored: set[str] = field(default_factory=set)
    pairs: dict[str, _Pair] = field(default_factory=dict)

    def add(self, output: Sequence[Obj], *, stored: bool) -> None:
        """Note the items of a response."""
        if stored:
            self.stored.update(item["id"] for item in output)
        for item, follower in pairwise(output):
            if item["type"] == "reasoning":
                pair = _Pair(item["id"], follower["id"], follower["type"], follower.get("call_id"))
                self.pairs[item["id"]] = self.pairs[follower["id"]] = pair

    def forget_stored(self) -> None:
        """Lose the stored items; what was minted stays minted."""
        self.stored.clear()


def check(items: Sequence[Obj], book: Book, *, by_reference: bool, own_host: bool = True) -> None:
    """Check the items of one request, in the order in which the API looks.

    Args:
        items: The items sent.
        book: What was issued.
        own_host: It is a host of OpenAI's own, not a relay or a cloud (O23).
        by_reference: The server holds what came before (O2), so that nothing need be there.
    """
    for at, item in enumerate(items):
        _check_parameters(at, item, own_host=own_host)
    check_duplicates(items)
    for item in items:
        _check_exists(item, book)
        _check_seal(item, book)
    if not by_reference:
        for at, item in enumerate(items):
            _check_follower(at, items, book)
            _check_reasoning(item, items, book)


def check_duplicates(items: Sequence[Obj]) -> None:
    """Refuse an item id that occurs twice."""
    seen: set[str] = set()
    for item in items:
        ident = item.get("id")
        if not isinstance(ident, str) or not ident:
            continue
        if ident in seen:
            raise BrokenRuleError(
                f"Duplicate item found with id {ident}. Remove duplicate items from your input "
                "and try again.",
                parameter="input",
            )
        seen.add(ident)


def _check_parameters(at: int, item: Obj, *, own_host: bool) -> None:
    """O23: output-only fields on a reasoning item; a null is let pass, as its effect is unknown."""
    if item.get("type") != "reasoning":
        return
    for name, value in item.items():
        path = f"input[{at}].{name}"
        if name == "content" and isinstance(value, list):
            if value:
                raise BrokenRuleError(
                    f"Invalid '{path}': array too long. Expected an array with maximum length 0, "
                    f"but got an array with length {len(value)} instead.",
                    code="array_above_max_length",
                    parameter=path,
                )
        elif name == _METADATA and own_host:
            continue
        elif name not in _REASONING_KEYS and value is not None:
            raise BrokenRuleError(
                f"Unknown parameter: '{path}'.", code="unknown_parameter", parameter=path
            )


def _check_exists(item: Obj, book: Book) -> None:
    """O8: an item that is only named has to be stored."""
    kind, ident = item.get("type"), item.get("id")
    named = kind == "item_reference" or (
        kind == "reasoning" and item.get("encrypted_content") is None
    )
    if named and isinstance(ident, str) and ident not in book.stored:
        raise BrokenRuleError(
            f"Item with id '{ident}' not found. Items are not persisted when `store` is set to "
            "false. Try again with `store` set to true, or remove this item from your input.",
            status=404,
            parameter="input",
        )


def _check_seal(item: Obj, book: Book) -> None:
    """O6, O10, O11: the blob was minted here, and for the id it stands under."""
    kind, value = item.get("type"), item.get("encrypted_content")
    if kind not in ("reasoning", "compaction") or value is None:
        return
    owner = _owner(item, book)
    if owner is None:
        raise _undecryptable(value, "Encrypted content could not be decrypted or parsed.")
    if item.get("id") not in (None, "", owner):  # O7: no id is fine, and an empty one is none
        raise _undecryptable(value, "Encrypted content item_id did not match the target item id.")


def _undecryptable(value: Any, reason: str) -> BrokenRuleError:
    # The API echoes a few characters, of whatever stands there (docs/contract/openai.md#o10).
    text = str(value)
    return BrokenRuleError(
        f"The encrypted content {text[:4]}...{text[-4:]} could not be verified. Reason: {reason}",
        code="invalid_encrypted_content",
    )


def _check_follower(at: int, items: Sequence[Obj], book: Book) -> None:
    """O3: a reasoning item with an id is followed by the item that followed it."""
    item = items[at]
    pair = book.pairs.get(_ident(item))
    if pair is None or item.get("id") != pair.reasoning:
        return
    if at + 1 == len(items) or not _is_follower(items[at + 1], pair):
        raise BrokenRuleError(
            f"Item '{pair.reasoning}' of type 'reasoning' was provided without its required "
            "following item.",
            parameter="input",
        )


def _is_follower(item: Obj, pair: _Pair) -> bool:
    if item.get("id") == pair.follower:
        return True
    # A call is known by its call_id as well; a message by its id alone.
    called = pair.call_id is not None and item.get("call_id") == pair.call_id
    return called and item.get("type") == pair.follower_type


def _check_reasoning(item: Obj, items: Sequence[Obj], book: Book) -> None:
    """O4: a follower that kept its id needs its reasoning item, by id or by its blob."""
    pair = book.pairs.get(_ident(item))
    if pair is None or item.get("id") != pair.follower:
        return
    for other in items:
        if other.get("id") == pair.reasoning:
            return
        if other.get("type") == "reasoning" and _owner(other, book) == pair.reasoning:
            return
    raise BrokenRuleError(
        f"Item '{pair.follower}' of type '{pair.follower_type}' was provided without its required "
        f"'reasoning' item: '{pair.reasoning}'.",
        parameter="input",
    )


def _owner(item: Obj, book: Book) -> str | None:
    """Find the item id that an item's blob was minted for."""
    value = item.get("encrypted_content")
    return book.find(item["type"], value) if isinstance(value, str) else None


def _ident(item: Obj) -> str:
    ident = item.get("id")
    return ident if isinstance(ident, str) else ""
