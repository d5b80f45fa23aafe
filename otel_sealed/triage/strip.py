"""The strip: per request, the block types that came in and how they went back, side by side.

It is what people write by hand into their bug reports. Theory of operation. A span tells the block
types of its response, and of its request those of the newest turns that have something to say,
without saying where one turn ends. Which turns these are follows from the values in the request:
`Story` knows the response each came in. Their received types, one turn after the other, are then
laid beside the returned ones so that as much as possible matches; calls of tools weigh most, since
their ids fix what belongs together, and the ids of their results, which the next request has, give
them their names. Fates come from the rows: one that names a place in a response colours that block.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from otel_sealed import vocab
from otel_sealed.model import Fate, Verdict
from otel_sealed.providers import dialects
from otel_sealed.triage.incidents import Story
from otel_sealed.triage.model import Call, Incident, Row

MAX_COLUMNS: Final = 48
"""Most blocks of one strip; the newest are kept."""

_BLOCK: Final = re.compile(r"(?:content|outputs?|parts|steps)\.(\d{1,5})")
_CALLS: Final = frozenset(
    (
        *("tool_use", "function_call", "custom_tool_call", "server_tool_use", "functioncall"),
        *("tooluse", "function"),
    )
)
_LISTS: Final = {
    (carrier.listed, carrier.type)
    for dialect in dialects().values()
    for carrier in dialect.carriers.values()
    if carrier.listed
}
"""Chat Completions has its blocks in lists of their own: the types that each list holds."""
_LISTED: Final = frozenset(name for name, _ in _LISTS)
_ALONE: Final = (
    ("extra_content.google", "thought_signature"),
    ("provider_specific_fields", "thought_signatures"),
)
"""And seals of a whole message at keys of their own."""
_ALSO: Final = {"content_blocks": "thinking_blocks"}
"""Portkey's name for a list of such blocks."""
_ITEM: Final = re.compile(r"([a-z_]{1,40})\.(\d{1,5})(?=\.|\Z)")
_INSIDE: Final = re.compile(r"\.[a-z_]{1,40}(?:\.(\d{1,5}))?\Z")
_NESTED: Final = frozenset(
    carrier.type
    for dialect in dialects().values()
    for carrier in dialect.carriers.values()
    if carrier.nested
)
"""Types of blocks inside others, which the types of a response list right after those."""
_RIDDEN: Final = frozenset(("text", "message", "thought"))
_MATCH, _CALL, _OTHER, _GAP = 3, 5, -1, -1
_RANK: Final = {verdict.value: verdict.rank for verdict in Verdict}


@dataclass(frozen=True, slots=True)
class Column:
    """One block: as it came, as it went back; empty where there is none.

    `turn` is the number of the call that brought it (0 for one that was never received), `tool` the
    name of the tool it calls, `fate`, `verdict` and `rule` those of the worst row about it, and
    `sealed` whether a sealed value came in it.
    """

    turn: int
    came: str
    back: str
    sealed: bool = False
    fate: str = ""
    verdict: str = ""
    rule: str = ""
    tool: str = ""

    @property
    def bare(self) -> bool:
        """Whether the block went back and its seal did not."""
        return bool(self.back) and self.sealed and self.fate == Fate.DROPPED


@dataclass(frozen=True, slots=True)
class Strip:
    """One request: `turn` is its number, `said` and `rejection` what the provider answered."""

    turn: int
    at: int
    said: str
    rejection: str
    columns: tuple[Column, ...]

    def sequence(self, side: str) -> str:
        """The types of one side in order, as people write them: `came` or `back`."""
        return ", ".join(found for x in self.columns if (found := getattr(x, side))) or "nothing"


def strips(calls: Sequence[Call], numbers: Sequence[int] = ()) -> list[Strip]:
    """The strips of a conversation's requests that say something; `numbers` (from 1) picks some.

    `calls` in their order, as `incidents.ordered` gives them.
    """
    story = Story(list(calls))
    wanted = [n - 1 for n in numbers if 0 < n <= len(calls)] if numbers else range(len(calls))
    found = (_strip(story, at) for at in wanted)
    return [strip for strip in found if strip is not None]


def of_incident(calls: Sequence[Call], incident: Incident) -> list[Strip]:
    """Three requests at most: the last good one, the first bad one, the last bad one."""
    turns = (incident.last_good, incident.first_bad, incident.last_bad)
    numbers = sorted({turn.number for turn in turns if turn and turn.number})
    return strips(calls, numbers) if numbers else []


# ---------------------------------------------------------------------------------- one request


@dataclass(frozen=True, slots=True)
class _Came:
    """A received block; `kept`: as many of its type go back as came, it among them."""

    turn: int
    type: str
    sealed: bool
    row: Row | None
    tool: str
    kept: bool = False


def _strip(story: Story, at: int) -> Strip | None:
    call = story.calls[at]
    if not call.returned and not call.returned_types:
        return None
    rows = _rows(story, at)
    came: list[_Came] = []
    first = min((turn for turn, _ in rows), default=at)
    for turn in range(at - 1, -1, -1):
        # the turns a row names, and as many before them as the request has blocks of
        if turn < first and sum(not _gone(x) for x in came) >= len(call.returned_types):
            break
        came[:0] = _received(story, turn, rows)
    back = Counter(call.returned_types)
    all_back = {type_ for type_, n in Counter(x.type for x in came).items() if back[type_] >= n}
    came = [replace(x, kept=x.type in all_back) for x in came]
    columns = tuple(_columns(came[-MAX_COLUMNS:], call.returned_types[-MAX_COLUMNS:]))
    if not columns:
        return None
    return Strip(at + 1, call.at, call.said, call.rejection, columns)


def _rows(story: Story, at: int) -> dict[tuple[int, int], Row]:
    """The worst row about each received block, by (call, place in its response)."""
    worst: dict[tuple[int, int], Row] = {}
    for row in story.calls[at].returned:
        trouble = story.traced(at, row)
        if trouble.came is None or not 0 <= trouble.minted < at:
            continue
        block = _block(story.calls[trouble.minted], trouble.came.position)
        if block is None:
            continue
        key = (trouble.minted, block)
        if key not in worst or _weight(row) > _weight(worst[key]):
            worst[key] = row
    return worst


def _block(call: Call, position: str) -> int | None:
    """Which block of a response a place in it is of."""
    if found := _BLOCK.search(position):
        return _within(call.received_types, int(found[1]), position[found.end() :])
    for key, number in reversed(_ITEM.findall(position)):
        name = _ALSO.get(key, key)
        if name in _LISTED:
            types = enumerate(call.received_types)
            blocks = [at for at, type_ in types if (name, type_) in _LISTS]
            return blocks[int(number)] if int(number) < len(blocks) else None
    alone = (type_ for key, type_ in _ALONE if position.endswith(f".{key}"))
    found_type = next(alone, None)
    return call.received_types.index(found_type) if found_type in call.received_types else None


def _within(types: Sequence[str], number: int, inside: str) -> int | None:
    """Index of the block `number`, or of the one at a place inside it: those follow it."""
    outer = [at for at, type_ in enumerate(types) if type_ not in _NESTED]
    if number >= len(outer):
        return None
    at = outer[number]
    end = outer[number + 1] if number + 1 < len(outer) else len(types)
    nested = _INSIDE.match(inside)
    child = at + 1 + int(nested[1] or 0) if nested else at
    return child if child < end else at


def _weight(row: Row) -> tuple[int, bool, bool]:
    """The worst first; of equals, what is not intact, then the seal before its companions."""
    return _RANK.get(row.verdict, 0), row.fate != Fate.INTACT, vocab.is_seal(row.artifact)


def _received(story: Story, turn: int, rows: dict[tuple[int, int], Row]) -> Iterator[_Came]:
    call = story.calls[turn]
    sealed = {_block(call, m.position) for m in call.received if vocab.is_seal(m.artifact)}
    following = story.calls[turn + 1].tools if turn + 1 < len(story.calls) else ()
    tools = iter(following)
    for place, type_ in enumerate(call.received_types):
        tool = next(tools, ("", ""))[1] if _calls(type_) else ""
        yield _Came(turn, type_, place in sealed, rows.get((turn, place)), tool)


def _calls(type_: str) -> bool:
    return type_.lower() in _CALLS


# ------------------------------------------------------------------------------------ alignment


def _columns(came: Sequence[_Came], back: Sequence[str]) -> Iterator[Column]:
    for block, type_ in _aligned(came, back):
        if block is None:
            yield Column(0, "", type_)
            continue
        row = block.row
        fate = row.fate if row else Fate.INTACT.value if block.sealed and type_ else ""
        yield Column(
            turn=block.turn + 1,
            came=block.type,
            back=type_,
            sealed=block.sealed,
            fate=fate,
            verdict=row.verdict if row else Verdict.OK.value if fate else "",
            rule=row.rule if row else "",
            tool=block.tool,
        )


def _aligned(came: Sequence[_Came], back: Sequence[str]) -> list[tuple[_Came | None, str]]:
    """Pairs in order, one side empty where the other has no counterpart: the best global fit."""
    best = [[0] * (len(back) + 1) for _ in range(len(came) + 1)]
    for i in range(len(came) + 1):
        for j in range(len(back) + 1):
            best[i][j] = max(_ways(best, came, back, i, j), default=0)
    pairs: list[tuple[_Came | None, str]] = []
    i, j = len(came), len(back)
    while i or j:
        # of equal ways the pair wins: what stands in a block's place is worth seeing beside it
        if i and j and best[i][j] == best[i - 1][j - 1] + _score(came[i - 1], back[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((came[i], back[j]))
        elif i and best[i][j] == best[i - 1][j] + _gap(came[i - 1]):
            i -= 1
            pairs.append((came[i], ""))
        else:
            j -= 1
            pairs.append((None, back[j]))
    return pairs[::-1]


def _ways(
    best: list[list[int]], came: Sequence[_Came], back: Sequence[str], i: int, j: int
) -> Iterator[int]:
    if i and j:
        yield best[i - 1][j - 1] + _score(came[i - 1], back[j - 1])
    if i:
        yield best[i - 1][j] + _gap(came[i - 1])
    if j:
        yield best[i][j - 1] + _GAP


def _score(block: _Came, type_: str) -> int:
    """A block whose row says that it is gone stands beside nothing, even beside its like."""
    if _gone(block):
        return 2 * _GAP - 1
    if block.type != type_:
        # a call of a tool is nobody's stand-in
        return _OTHER if _calls(block.type) == _calls(type_) else 2 * _GAP - 1
    return _CALL if _calls(type_) else _MATCH


def _gap(block: _Came) -> int:
    return 0 if _gone(block) else _GAP


def _gone(block: _Came) -> bool:
    """Whether its row says that the block is not in the request.

    Where the seal rides on a call or on text (Gemini), or as many blocks of the type go back as
    came, the seal is gone alone.
    """
    row = block.row
    rides = _calls(block.type) or block.type in _RIDDEN
    return (
        row is not None
        and row.fate == Fate.DROPPED
        and not row.position
        and not (rides or block.kept)
    )
