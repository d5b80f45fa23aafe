"""What a report says, before it is a page: problems, conversations, rules, from incidents.

Incidents of the same artifact, fate, rule, provider and locus are one problem: a team has one bug,
not one a conversation. The first problem is the one to look at first: what the provider refuses
before what it takes in silence, what still grows before what is over, then the most calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from otel_sealed import vocab
from otel_sealed.model import Fate, ProviderVerdict, Verdict
from otel_sealed.triage.incidents import Story, ordered
from otel_sealed.triage.model import Call, Incident
from otel_sealed.triage.strip import Strip, of_incident
from otel_sealed.triage.sums import Sums

MAX_CONVERSATIONS: Final = 50
MAX_INCIDENTS: Final = 200
"""Rows of the longest tables; what is left out is counted."""

_RANK: Final = {verdict.value: verdict.rank for verdict in Verdict}
_ABSENT: Final = frozenset((Fate.DROPPED, Fate.SUPERSEDED, Fate.SERVER_HELD))
_VIOLATING: Final = (Verdict.DEGRADES, Verdict.BREAKS)


@dataclass(frozen=True, slots=True)
class Problem:
    """Incidents that are one bug. `shown` is the one told in full; `strips` are its requests."""

    incidents: tuple[Incident, ...]
    strips: tuple[Strip, ...]

    @property
    def shown(self) -> Incident:
        """The newest of those with the most calls."""
        return self.incidents[0]

    @property
    def calls(self) -> int:
        """Calls that carried it."""
        return sum(incident.affected for incident in self.incidents)

    @property
    def conversations(self) -> int:
        """Conversations it happened in."""
        return len({incident.conversation for incident in self.incidents})

    @property
    def first(self) -> Incident:
        """The earliest incident."""
        return min(self.incidents, key=lambda incident: incident.first_bad.at)

    @property
    def last_at(self) -> int:
        """When it was seen last."""
        return max(incident.last_bad.at for incident in self.incidents)

    @property
    def growing(self) -> bool:
        """Whether any of them still grows."""
        return any(incident.growing for incident in self.incidents)

    @property
    def releases(self) -> tuple[str, ...]:
        """Services with their releases, in the order they were first concerned."""
        by_time = sorted(self.incidents, key=lambda incident: incident.first_bad.at)
        found = (f"{i.about.service} {i.about.release}".strip() for i in by_time if i.about.release)
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one call, -1 where nobody said."""

    reasoning: int
    cached: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation: how many seals were due, and how many of them came back.

    `due` leaves out what the rules allow to be absent. `removed` counts calls in which the provider
    says that it removed something.
    """

    key: str
    model: str
    calls: int
    due: int
    back: int
    removed: int
    spent: tuple[Spent, ...]

    @property
    def score(self) -> float | None:
        """The part of the due seals that was lost, 0 to 1; None where none was due."""
        return 1 - self.back / self.due if self.due else None


@dataclass(frozen=True, slots=True)
class Report:
    """All that a page shows. `calls`, `broken` and `sums` are of the whole record."""

    problems: tuple[Problem, ...]
    conversations: tuple[Conversation, ...]
    calls: int
    broken: int
    hidden: int = 0
    sums: Sums = field(default_factory=Sums)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Every incident, in order of time."""
        found = (incident for problem in self.problems for incident in problem.incidents)
        return tuple(sorted(found, key=lambda incident: incident.first_bad.at))


def report(
    found: Iterable[Incident],
    conversation: Callable[[str], Iterable[Call]],
    *,
    calls: int,
    broken: int = 0,
    sums: Sums | None = None,
    told: Callable[[int, int], None] = lambda _done, _all: None,
) -> Report:
    """The report on these incidents; `conversation` gives the calls of one by its key.

    `told` hears how many of how many conversations are read.
    """
    groups: dict[tuple[str, ...], list[Incident]] = {}
    for incident in found:
        lead = incident.lead
        same = (lead.artifact, lead.fate, lead.rule, incident.provider, lead.locus)
        groups.setdefault(same, []).append(incident)
    problems = []
    for group in sorted(groups.values(), key=_weight):
        group.sort(key=lambda incident: (-incident.affected, -incident.last_bad.at, incident.id))
        shown = group[0]
        lines = ordered(conversation(shown.conversation)) if shown.conversation else []
        problems.append(Problem(tuple(group), tuple(of_incident(lines, shown))))
    keys = list(dict.fromkeys(i.conversation for p in problems for i in p.incidents))
    keys = [key for key in keys if key]
    scored = []
    for number, key in enumerate(keys[:MAX_CONVERSATIONS], 1):
        scored.append(_scored(key, ordered(conversation(key))))
        told(number, min(len(keys), MAX_CONVERSATIONS))
    scored.sort(key=lambda one: (-(one.score or 0.0), -one.calls, one.key))
    hidden = len(keys) - len(scored)
    return Report(tuple(problems), tuple(scored), calls, broken, hidden, sums or Sums())


def _weight(group: Sequence[Incident]) -> tuple[int, bool, int, int, str]:
    """The worst verdict first, then what grows, then the most calls, then the newest."""
    worst = max(_RANK.get(incident.lead.verdict, 0) for incident in group)
    growing = any(incident.growing for incident in group)
    newest = max(incident.last_bad.at for incident in group)
    return -worst, not growing, -sum(i.affected for i in group), -newest, group[0].id


def _scored(key: str, calls: Sequence[Call]) -> Conversation:
    """Seals of a call are due in the calls after it; one that is lost once is lost."""
    story = Story(list(calls))
    due = {
        (at, came.artifact, came.position)
        for at, call in enumerate(calls[:-1])
        for came in call.received
        if vocab.is_seal(came.artifact)
    }
    lost, allowed = set(), set()
    for at, call in enumerate(calls):
        for row in call.returned:
            came = story.traced(at, row)
            if came.came is None:
                continue
            place = (came.minted, came.came.artifact, came.came.position)
            if row.verdict in _VIOLATING and vocab.is_seal(row.artifact):
                lost.add(place)
            elif row.fate in _ABSENT and row.verdict not in _VIOLATING:
                allowed.add(place)
    due -= allowed - lost
    return Conversation(
        key=key,
        model=next((call.model for call in calls if call.model), ""),
        calls=len(calls),
        due=len(due),
        back=len(due - lost),
        removed=sum(call.said == ProviderVerdict.REMOVED for call in calls),
        spent=tuple(Spent(call.usage.reasoning, call.usage.cached) for call in calls),
    )
