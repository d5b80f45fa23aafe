"""A provider's error resolved to what it is about: class, artifact, minting call, what was before.

Theory of operation. The text is read for its class (docs/contract/common.md#refusals), for a place
(`messages.7.content.16`, `input[3]`, `position 5`) and for ids (`rs_…`); then it is let go. The
record is asked for refusals of that class, the newest first. The first whose history holds the
place or the id is the call; an id is found by its keyed digest, which needs the key of the record.
Where the text has neither, the class alone decides, and the newest refusal of it is meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from otel_sealed import vocab
from otel_sealed.digest import Digest
from otel_sealed.model import Fate, Verdict
from otel_sealed.providers.refusals import classify
from otel_sealed.telemetry.attributes import rekey_with
from otel_sealed.triage.concerns import CONCERNS
from otel_sealed.triage.incidents import Story, Trouble, ordered, refused
from otel_sealed.triage.meaning import meaning, whose
from otel_sealed.triage.model import Call, Incident, Link, Minted, Pasted, Row, Turn

MAX_TEXT: Final = 65_536
MAX_IDS: Final = 8
_ID: Final = re.compile(
    r"(?<![A-Za-z0-9])(rs|cmp|fc|msg|resp|conv|ws|fs|ci|ig|cu|ctc|tsc|apc|l?sh|mcpl?r?|am)"
    r"_[A-Za-z0-9_-]{2,200}"
)
_PLACES: Final = (
    re.compile(r"\b(messages)\.(\d{1,6})(?:\.(content)\.(\d{1,6}))?"),
    re.compile(r"\b(messages)\[(\d{1,6})\](?:\.(content)\[(\d{1,6})\])?"),
    re.compile(r"\b(input)\[(\d{1,6})\]"),
    re.compile(r"\b(contents)\[(\d{1,6})\](?:\.(parts)\[(\d{1,6})\])?"),
    re.compile(r"\bcontent position (\d{1,6}), part position (\d{1,6})"),
    re.compile(r"\bposition (\d{1,6})"),
    re.compile(r"\b(\d{1,6})\. content block"),
)
_VIOLATING: Final = (Verdict.DEGRADES, Verdict.BREAKS)


@dataclass(frozen=True, slots=True)
class Clues:
    """What an error says. `ids` are content: they are looked for, and leave by no door."""

    rejection: str
    place: str
    ids: tuple[str, ...] = ()
    vendor: str = ""

    @property
    def pointer(self) -> str:
        """The place, or the kinds of ids."""
        kinds = dict.fromkeys(text.partition("_")[0] + "_" for text in self.ids)
        return self.place or " ".join(kinds)

    def __repr__(self) -> str:
        return f"Clues({self.rejection!r}, {self.pointer!r})"


def clues(error: str) -> Clues:
    """What an error says, given as the text of an exception, a log line or a JSON body."""
    text = error[:MAX_TEXT]
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    rejection = classify(body if isinstance(body, (dict, list)) else text) or classify(text)
    plain = text.replace("\\", "").replace("'", "").replace('"', "").replace("`", "")
    ids = dict.fromkeys(found.group(0) for found in _ID.finditer(plain))
    return Clues(rejection or "", _place(plain), tuple(ids)[:MAX_IDS], whose(text))


def _place(text: str) -> str:
    for pattern in _PLACES:
        found = pattern.search(text)
        if found:
            parts = [part for part in found.groups() if part is not None]
            return ".".join(parts if parts[0].isalpha() else _gemini(parts))
    return ""


def _gemini(parts: Sequence[str]) -> list[str]:
    """Gemini counts contents, and parts in them, from 1; its requests are counted from 0 here."""
    at = [str(max(0, int(part) - 1)) for part in parts]
    return ["contents", at[0], *(("parts", at[1]) if len(at) > 1 else ())]


class Record:
    """What resolving asks of the record."""

    def __init__(
        self,
        refusals: Callable[[str], Iterable[Call]],
        conversation: Callable[[str], Sequence[Call]],
        incidents: Callable[[str], Iterable[Incident]],
        keys: Callable[[], Iterable[str]],
    ) -> None:
        """`refusals` of a class, newest first; calls and incidents of a conversation; its keys."""
        self.refusals = refusals
        self.conversation = conversation
        self.incidents = incidents
        self.keys = keys


def resolve(found: Clues, record: Record, key: bytes = b"") -> Pasted:
    """What the error is about. `key` is that of the record, without which no id is found."""
    named = _Ids(found.ids, key)
    fallback: tuple[Call, Story] | None = None
    stories: dict[str, Story] = {}
    for call in record.refusals(found.rejection) if found.rejection or found.pointer else ():
        story = stories.get(call.conversation)
        if story is None:
            story = Story(ordered(record.conversation(call.conversation) or [call]))
            stories[call.conversation] = story
        at = _index(story, call)
        fallback = fallback or (call, story)
        victim, how = _victim(found, named, story, at)
        if victim is not None:
            return _told(found, how, story, at, victim, record)
    if found.ids and key:
        told = _anywhere(found, named, record)
        if told is not None:
            return told
    if fallback is None:
        return Pasted(
            found.rejection, found.pointer, meaning=meaning(found.rejection, found.vendor)
        )
    call, story = fallback
    at = _index(story, call)
    return _told(found, "class", story, at, _by_class(found.rejection, story, at), record)


def _index(story: Story, call: Call) -> int:
    at = story.spans.get((call.trace, call.span), -1)
    if at < 0:
        at = next((i for i, c in enumerate(story.calls) if c.at == call.at), len(story.calls) - 1)
    return at


# ------------------------------------------------------------------------------------ the victim


class _Ids:
    """Ids as digests of one conversation after the other."""

    def __init__(self, ids: Sequence[str], key: bytes) -> None:
        self._digests = [Digest(key).name(text) for text in ids] if key and ids else []
        self._rekey = rekey_with(key) if key else None

    @property
    def known(self) -> bool:
        """Whether ids can be told at all."""
        return bool(self._digests)

    def within(self, conversation: str) -> list[str]:
        """How the ids look in a conversation's record, in the order of the text."""
        if self._rekey is None or not conversation:
            return []
        key = bytes.fromhex(conversation)
        return [self._rekey(key, digest).hex() for digest in self._digests]


def _victim(found: Clues, named: _Ids, story: Story, at: int) -> tuple[Link | None, str]:
    """By id, which is exact, before place."""
    for digest in named.within(story.calls[at].conversation):
        link = _by_id(digest, story, at)
        if link is not None:
            return link, "id"
    if found.place:
        link = _by_place(found.place, story, at)
        if link is not None:
            return link, "position"
        # what is due and absent stands nowhere, and the place names what stands there instead
        gone = any(not t.row.position for t in story.troubles(at))
        return (_by_class(found.rejection, story, at), "class") if gone else (None, "")
    if found.ids and named.known:
        return None, ""
    return _by_class(found.rejection, story, at), "class"


def _by_id(digest: str, story: Story, at: int) -> Link | None:
    for number in range(at + 1):
        for came in story.calls[number].received:
            if came.id == digest:
                return _link_of(came, story, at, number)
        for row in story.calls[number].returned:
            if row.digest == digest and row.artifact.endswith(".id"):
                return _link(story.traced(number, row), story)
    return None


def _link_of(came: Minted, story: Story, at: int, number: int) -> Link:
    """What became of something that came, in the request that was refused or the newest before."""
    for i in range(at, number, -1):
        for row in story.calls[i].returned:
            trouble = story.traced(i, row)
            if trouble.minted == number and trouble.came is not None:
                same = trouble.came.position == came.position and row.artifact == came.artifact
                if same:
                    return _link(trouble, story)
    return Link(came.artifact, "", Fate.INTACT, Verdict.OK, "", story.turn(number))


def _by_place(place: str, story: Story, at: int) -> Link | None:
    """What stands there in the refused request, or stood there before: a history only grows."""
    for i in range(at, -1, -1):
        rows = [row for row in story.calls[i].returned if _stands(row.position, place)]
        if rows:
            worst = max(rows, key=_badness)
            return _link(story.traced(i, worst), story)
    return None


def _stands(position: str, place: str) -> bool:
    return position == place or position.startswith(f"{place}.")


def _badness(row: Row) -> int:
    return Verdict(row.verdict).rank if row.verdict in set(Verdict) else 0


def _by_class(rejection: str, story: Story, at: int) -> Link | None:
    """The worst of what the refused request carried, else what such a refusal speaks of."""
    troubles = list(story.troubles(at))
    if not troubles:
        return None
    concerns = CONCERNS.get(rejection, ())
    worst = max(
        troubles,
        key=lambda t: (t.row.verdict in _VIOLATING, t.row.artifact in concerns, _badness(t.row)),
    )
    return _link(worst, story)


def _link(trouble: Trouble, story: Story) -> Link:
    row = trouble.row
    minted = story.turn(trouble.minted) if trouble.minted >= 0 else None
    return Link(row.artifact, row.position, row.fate, row.verdict, row.rule, minted)


# ------------------------------------------------------------------------------------- the chain


def _told(
    found: Clues, how: str, story: Story, at: int, victim: Link | None, record: Record
) -> Pasted:
    call = story.calls[at]
    chain = _chain(story, at, victim)
    bad = [i for i, link in enumerate(chain) if link.verdict in _VIOLATING]
    culprit = min(bad, key=lambda i: (_order(chain[i], story)[0], _depends(chain[i])), default=-1)
    minted = victim.minted if victim else None
    return Pasted(
        rejection=found.rejection or call.rejection,
        pointer=found.pointer,
        how=how if victim else "",
        conversation=call.conversation,
        refused=story.turn(at) if refused(call) else None,
        victim=victim,
        age_ns=call.at - minted.at if minted and minted.at else -1,
        chain=chain,
        culprit=culprit,
        incidents=tuple(
            incident
            for incident in record.incidents(call.conversation)
            if incident.first_bad.at <= call.at
        ),
    )


def _chain(story: Story, at: int, victim: Link | None) -> tuple[Link, ...]:
    """Every artifact before the victim in the history, in its order, and the victim last."""
    links: dict[tuple[str, str], tuple[tuple[int, ...], Link]] = {}
    for i in range(at + 1):
        for row in story.calls[i].returned:
            link = _link(story.traced(i, row), story)
            if not row.position and i < at:
                continue  # due then; whether it is due now, the refused request says
            name = (row.artifact, row.position or row.digest)
            links[name] = (_order(link, story), link)
    if victim is None:
        return tuple(link for _, link in sorted(links.values(), key=lambda pair: pair[0]))
    end = _order(victim, story)
    before = [
        pair
        for pair in links.values()
        if (pair[0] <= end or pair[1].verdict in _VIOLATING)
        and not (pair[1].artifact == victim.artifact and pair[0] == end)
    ]
    return (*(link for _, link in sorted(before, key=lambda pair: pair[0])), victim)


def _order(link: Link, story: Story) -> tuple[int, ...]:
    """By the turn it came with, then by its place: what is absent has no other."""
    place = tuple(int(p) for p in link.position.split(".") if p.isdecimal() and len(p) < 9)  # noqa: PLR2004
    turn: Turn | None = link.minted
    number = turn.number if turn is not None else len(story.calls)
    return (number, *place)


def _depends(link: Link) -> int:
    """Of what came with one turn seals are first: the rest went wrong for their sake."""
    return 0 if vocab.is_seal(link.artifact) else 1 if link.artifact in vocab.COMPANIONS else 2


def _anywhere(found: Clues, named: _Ids, record: Record) -> Pasted | None:
    """An id in any conversation, whatever was refused there."""
    for key in _first(record.keys(), 2000):
        digests = set(named.within(key))
        story = Story(ordered(record.conversation(key)))
        for digest in digests:
            at = len(story.calls) - 1
            link = _by_id(digest, story, at)
            if link is not None:
                return _told(found, "id", story, at, link, record)
    return None


def _first(items: Iterable[str], count: int) -> Iterator[str]:
    for number, item in enumerate(items):
        if number >= count:
            return
        yield item
