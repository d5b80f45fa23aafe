"""What the model was told before each turn of a line, put together from what each turn keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from otel_sealed.model.records import Turn


def full_prefixes(turns: Sequence[Turn], of: Iterable[int]) -> dict[int, tuple[bytes, ...]]:
    """Turn number to the digests of all it was told; turns whose request is unknown are left out.

    For the turns `of`, and those they have it from: a turn keeps only what its parent has not. One
    whose parent was forgotten is left out too.
    """
    known = {turn.number: turn for turn in turns}
    needed: set[int] = set()
    for number in of:
        turn = known.get(number)
        while turn is not None and turn.number not in needed:
            needed.add(turn.number)
            turn = known.get(turn.parent) if turn.prefix_shared else None
    full: dict[int, tuple[bytes, ...]] = {}
    for number in sorted(needed):
        turn = known[number]
        if not turn.chain:
            continue
        if not turn.prefix_shared:
            full[number] = turn.prefix
        elif turn.parent in full:
            full[number] = full[turn.parent][: turn.prefix_shared] + turn.prefix
    return full
