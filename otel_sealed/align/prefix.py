"""What stands before a seal, then and now: system, tools, and what the model was told.

Only what others than the model said is compared: the model's own messages are judged block by
block, and hosts legitimately re-serialise them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from otel_sealed.model import Cause, Head, Message, Speaker, Turn
from otel_sealed.model.prefixes import Prefixes


@dataclass(frozen=True, slots=True)
class Break:
    """The first element before the seals of `turn` that is not what it was."""

    turn: Turn
    cause: Cause
    detail: str


def told(messages: tuple[Message, ...]) -> tuple[tuple[int, bytes], ...]:
    """(index, digest) of every message that is not the model's own."""
    return tuple((m.index, m.digest) for m in messages if m.speaker is not Speaker.MODEL)


def other_head(was: Head, now: Head) -> str:
    """The first part of a turn's head that is another now, empty if none is."""
    if was == now:
        return ""
    parts = dict(now.parts)
    return next((name for name, digest in was.parts if parts.get(name) != digest), "")


def head_break(turn: Turn, name: str) -> Break:
    """The break of a turn that was told another part `name` of the head."""
    cause = {"system": Cause.SYSTEM, "instructions": Cause.SYSTEM}.get(name)
    return Break(turn, cause or Cause.TOOLS, name)


def first_break(
    turns: tuple[Turn, ...],
    homes: Mapping[int, int],
    head: Head | None,
    messages: tuple[Message, ...],
    exempt: Collection[int] = (),
    root: str = "messages",
) -> Break | None:
    """The first change before a seal that is in this request, or None.

    `homes`: turn number to the index in `messages` its seals stand in; `exempt`: turns whose
    earlier messages may be gone (behind a compaction); system and tools still stand before them.
    Without a `head` only the messages are compared.
    """
    now = told(messages)
    places = [index for index, _ in now]
    prefixes = Prefixes(turns, homes.keys() - {*exempt}, [digest for _, digest in now])
    for turn in turns:
        home = homes.get(turn.number)
        if home is None or not turn.chain:
            continue
        name = other_head(turn.head, head) if head is not None else ""
        if name:
            return head_break(turn, name)
        length = prefixes.lengths.get(turn.number)
        if length is None or turn.number in exempt:
            continue
        here = bisect_left(places, messages[home].index)
        agreed = prefixes.agreed[turn.number]
        if agreed < min(here, length):
            return Break(turn, Cause.MESSAGE, f"{root}.{places[agreed]}")
        if here != length:
            return Break(turn, Cause.MESSAGE, f"{root}.{places[here - 1] if here else 0}")
    return None
