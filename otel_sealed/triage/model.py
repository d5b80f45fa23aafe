"""The records of triage: what a call said of itself, and the incidents that calls add up to.

Like every record of the house they hold names, sizes, positions, enums and keyed digests in hex,
and nothing that could be content. Times are nanoseconds since the epoch as telemetry has them, 0
where none was told. Words that no version of ours knows (a fate of a later release) stay as they
were read, which is why fates and verdicts are plain text here; the enums of `otel_sealed.model`
compare equal to it. Everything read has passed `vocab.word` and its like before it is in here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Evidence(StrEnum):
    """What an incident is told from: spans, or violation events whose trace was sampled out."""

    SPANS = "spans"
    EVENTS = "events"


class Outcome(StrEnum):
    """How it ended, as far as the record goes.

    `refused`: the provider refused, and nothing of the conversation was accepted since.
    `silent`: it took every request without a word. `removed`: it took them and said that it
    removed something. `recovered_by_loss`: a refusal, then a success with fewer seals.
    `recovered`: a refusal, then a success with all of them. `unreported`: nobody knows what it
    said.
    """

    REFUSED = "refused"
    SILENT = "silent"
    REMOVED = "removed"
    RECOVERED_BY_LOSS = "recovered_by_loss"
    RECOVERED = "recovered"
    UNREPORTED = "unreported"


# ------------------------------------------------------------------------------ what was read


@dataclass(frozen=True, slots=True)
class Minted:
    """One artifact that a call received: `position` is its place in the response.

    `id` is the keyed digest of its item's id, empty where it has none.
    """

    artifact: str
    digest: str
    size: int
    position: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One artifact of a request that was not ok, or went out for the first time.

    An empty `position` means: not in the request, and `digest` is then the one that was expected.
    `size` is in bytes as sent, -1 where absent. What only violation events tell (`locus` and
    everything behind it) is empty where there was none.
    """

    artifact: str
    digest: str
    size: int
    position: str
    fate: str
    verdict: str
    rule: str = ""
    cause: str = ""
    locus: str = ""
    confidence: str = ""
    diagnosis: str = ""
    disputed: bool = False
    came_position: str = ""
    came_size: int = -1
    origin_trace: str = ""
    origin_span: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """Who made a call and with what. `release` is `service.version`.

    `framework` is the instrumentation scope of a span that is not ours, as `name version`; `sdks`
    are versions as `name=version`; `otel` is the version of the OpenTelemetry SDK.
    """

    service: str = ""
    release: str = ""
    framework: str = ""
    sdks: tuple[str, ...] = ()
    otel: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of a call, -1 where nobody said."""

    input: int = -1
    output: int = -1
    reasoning: int = -1
    cached: int = -1


@dataclass(frozen=True, slots=True)
class Call:
    """One model call, as its span says, or as violation events say whose span is not there.

    `conversation` is `otel_sealed.conversation.key`. `received`/`returned` are the index-aligned
    arrays of the span as rows; `received_types`/`returned_types` block types in order (of the
    request only the newest). `tools` are (keyed digest of the call's id, tool name) of the tool
    results that go out. `failed` and `unread` are as `sums` has them. `rest` counts returned rows
    that are well and not listed. `truncated`: rows
    were cut, so absence proves nothing. `file` and `line` (from 1) say where it was read.
    """

    at: int
    trace: str
    span: str
    conversation: str
    parent: str = ""
    ended: int = 0
    operation: str = ""
    provider: str = ""
    model: str = ""
    host: str = ""
    verdict: str = ""
    said: str = ""
    rejection: str = ""
    carry: str = ""
    failed: str = ""
    unread: str = ""
    received: tuple[Minted, ...] = ()
    returned: tuple[Row, ...] = ()
    received_count: int = 0
    returned_count: int = 0
    expected_count: int = 0
    received_types: tuple[str, ...] = ()
    returned_types: tuple[str, ...] = ()
    tools: tuple[tuple[str, str], ...] = ()
    rest: int = 0
    facts: tuple[str, ...] = ()
    usage: Usage = Usage()
    about: About = About()
    key_id: str = ""
    known: bool = False
    truncated: bool = False
    occurrences: int = 1
    evidence: Evidence = Evidence.SPANS
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Flaw:
    """One line or document that could not be used: where, and why in our words.

    `refused`: for a bound it exceeds, or as the rest of a file that cannot be read on.
    """

    file: str
    line: int
    what: str
    refused: bool = False


# -------------------------------------------------------------------------- what it adds up to


@dataclass(frozen=True, slots=True)
class Turn:
    """A call by its place: `number` counts the calls of its conversation from 1, 0 if unknown."""

    number: int
    at: int
    trace: str = ""
    span: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """One artifact of an incident.

    `minted` is the call that brought it and `came_position` its place in that response, None and
    empty where the record does not say; `first` the first request it was wrong in, `returned` its
    place there; `calls` how many requests it was wrong in. Sizes are bytes, -1 where unknown.
    """

    artifact: str
    fate: str
    verdict: str
    rule: str
    cause: str
    diagnosis: str
    locus: str
    confidence: str
    disputed: bool
    minted: Turn | None
    came_position: str
    came_size: int
    returned: str
    returned_size: int
    first: Turn
    calls: int
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way out that the provider's rules allow: what to do, and what it loses."""

    does: str
    loses: str


@dataclass(frozen=True, slots=True)
class Incident:
    """One broken artifact or chain of errors of one conversation.

    `id` is the same whenever the same record is read again. `parts` has every artifact concerned,
    the leading one first: its artifact, fate, verdict, rule, cause, locus and confidence are those
    of the incident. `minted`, `first_bad`, `last_bad` and `last_good` are calls; `age_ns` is how
    old the artifact was when it broke, -1 where unknown. `affected` counts the calls that carried
    it, from `first_bad` on; `calls` the calls of the conversation on record. `growing`: the newest
    call still carries it, and that is not long ago. `known`: its owner listed it as known.
    `says` is the rule in words and `source` where the rule comes from.
    """

    id: str
    conversation: str
    outcome: Outcome
    parts: tuple[Broken, ...]
    minted: Turn | None
    last_good: Turn | None
    first_bad: Turn
    last_bad: Turn
    age_ns: int
    affected: int
    calls: int
    growing: bool
    said: str
    rejection: str
    provider: str
    model: str
    host: str
    about: About
    says: str
    source: str
    remedies: tuple[Remedy, ...]
    evidence: Evidence
    known: bool = False

    @property
    def lead(self) -> Broken:
        """The artifact that stands for the incident."""
        return self.parts[0]


# -------------------------------------------------------------------------------- a pasted error


@dataclass(frozen=True, slots=True)
class Link:
    """One artifact of the history a refused request carried: where it stands and how it fared.

    `minted` is the call it came with, None where the record does not say. An empty `position`
    means that it was due and absent.
    """

    artifact: str
    position: str
    fate: str
    verdict: str
    rule: str
    minted: Turn | None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a class of refusals means: in words, whose it usually is, the ways out, and its rule."""

    says: str
    whose: str
    remedies: tuple[Remedy, ...]
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Pasted:
    """What a provider's error is about. Of its text nothing is in here.

    `rejection` is its class, `pointer` the place it names as records spell it, or the kind of id it
    names (`rs_`). `how` says by what the artifact was found: `position`, `id`, `class`, or
    nothing. `refused` is the call that was refused. `chain` is what stood before the victim, and
    the victim last: the error names where it was noticed, and the first link that is not well is
    where it began. `culprit` is its index, -1 where every link is well. `meaning` is what such a
    refusal means anywhere, where nothing on record fits it.
    """

    rejection: str
    pointer: str
    how: str = ""
    conversation: str = ""
    refused: Turn | None = None
    victim: Link | None = None
    age_ns: int = -1
    chain: tuple[Link, ...] = ()
    culprit: int = -1
    incidents: tuple[Incident, ...] = ()
    meaning: Meaning | None = None
