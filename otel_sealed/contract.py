"""The language a provider file is written in: carriers and fields, rules, and a dialect.

Everything a provider file says is data, or a small pure function over wire JSON that this module
types. Wire JSON itself stays `Any` behind these functions: it ages, and a typed schema tempts one
to drop the unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

from otel_sealed.model import (
    Block,
    Facts,
    Fate,
    Kind,
    Message,
    Removal,
    Role,
    Speaker,
    Trait,
    Turn,
    Usage,
    Verdict,
)
from otel_sealed.model.record import record

Json = Any
CHECKED = "2026-11-29"
"""The day on which all rows were checked that do not name another."""


OK: Final = 200
REFUSED: Final = 400
"""The least status of an answer that is no answer; what it means is said by its words."""
FAILED: Final = 500
"""That of an answer whose cause is on the server's side."""


class Api(StrEnum):
    """The wire an exchange speaks (README.md#commands)."""

    MESSAGES = "messages"
    RESPONSES = "responses"
    GENERATE_CONTENT = "generateContent"
    INTERACTIONS = "interactions"
    CHAT_COMPLETIONS = "chat.completions"
    CONVERSE = "converse"
    REALTIME = "realtime"
    """A name for what no dialect reads yet."""


class Proof(StrEnum):
    """What proves that a request to a path is one of the API."""

    PATH = "path"
    """the path: no other API is known to have it"""
    HOST = "host"
    """a host of a vendor or a cloud"""
    BODY = "body"
    """the body alone: other APIs of the same hosts have such a path"""


@dataclass(frozen=True, slots=True)
class Path:
    """A path of an API, whatever stands before it.

    `ends`: how it ends, any of them; `under`: what else is in it; `operation` as `Exchange` has it;
    `sends`: a request to it sends turns (one that counts tokens does not); `gateway`: how it ends
    at hosts that nobody knows, where the body has to name a model.
    """

    ends: tuple[str, ...]
    operation: str | None = None
    under: str = ""
    proof: Proof = Proof.HOST
    sends: bool = True
    gateway: str = ""

    def fits(self, path: str) -> bool:
        """Whether a path, without slashes at its end, is this one."""
        return path.endswith(self.ends) and self.under in path


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as a door saw them on the wire. Content stays out of its repr.

    `provider` is the vendor who answers (`anthropic`, `openai`, `google`, …; empty: told from `api`
    and `host`). `request` and `response` are raw bodies (bytes or str of JSON), parsed JSON, or a
    `wire.parse.Unread` that says why there is none;
    `events` the streamed payloads in order (JSON, parsed or not) or the raw bytes of an SSE stream,
    and where present the truth of what came. `complete` is False when the stream was cut. `account`
    is a stand-in for the credential, never the credential. `conversation` narrows the search for
    earlier turns; None means: find them by content alone. `continues`: the caller knows that each
    exchange of the conversation continues the one before (a transcript). `origin` is trace id +
    span id (24 bytes) of the call, or empty. `number` is the caller's own 0-based count of
    exchanges; None: the tracker counts. `sdk` is the SDK's own object for this answer, where the
    door saw it: it is looked into at the places of sealed values, never changed or kept;
    `sdk_lacks` the artifacts that no object of this SDK's release can hold.
    """

    api: Api
    provider: str = ""
    operation: str | None = None
    model: str | None = None
    host: str | None = None
    account: str | None = field(default=None, repr=False)
    betas: tuple[str, ...] = ()
    transport: str | None = None
    conversation: str | None = field(default=None, repr=False)
    continues: bool = False
    request: Any = field(default=None, repr=False)
    response: Any = field(default=None, repr=False)
    events: Any = field(default=None, repr=False)
    status: int | None = None
    complete: bool = True
    origin: bytes = b""
    number: int | None = None
    sdk: Any = field(default=None, repr=False)
    sdk_lacks: frozenset[str] = frozenset()


class Guard(StrEnum):
    """What has to be there for every sealed field (CONTRIBUTING.md#adding-a-sealed-field)."""

    DROPPED = "dropped"
    """a rule for its loss"""
    MODIFIED = "modified"
    """a rule for another value in its place"""
    MUTATION = "mutation"
    """a program that spoils it, in the catalogue of mutations"""
    STRICT = "strict"
    """a strict provider that refuses another value in its place"""


@dataclass(frozen=True, slots=True)
class Gap:
    """A guard that a sealed field has not, and why."""

    guard: Guard
    why: str


class Named(StrEnum):
    """What the name of a sealed key shows in a text that somebody else wrote."""

    ALWAYS = "always"
    """a sealed value: nothing else has that name"""
    OPAQUE = "opaque"
    """a sealed value where it is one run of base64: other things have that name, too"""
    NEAR = "near"
    """a sealed value where one of the words of `near` is close: many things have that name"""
    NEVER = "never"
    """nothing: only the value shows it, where it was seen on the wire"""


@dataclass(frozen=True, slots=True)
class Field:
    """One sealed, signed or identifying key of a carrier.

    `key` may be dotted; `aliases` are other spellings of it. `binary`: compare decoded bytes, the
    spelling being benign (Gemini, Bedrock blobs). `hidden`: another key and a mark; where none of
    the others has a value it is what stands behind that mark in the text of that key, as relays
    hide it in an id. `gaps`: the guards a sealed field has not, each with the reason. `named`: what
    its key shows where another tracer wrote it down, with the words of `near`.

    A sealed field vouches for the others of its carrier, whose `role` says in which way.
    """

    key: str
    artifact: str
    role: Role = Role.SEAL
    binary: bool = False
    aliases: tuple[str, ...] = ()
    hidden: tuple[str, str] | None = None
    gaps: tuple[Gap, ...] = ()
    named: Named = Named.ALWAYS
    near: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    """The keys to look under, in that order, each with the mark behind which the value is."""

    def __post_init__(self) -> None:
        """The places follow from the keys."""
        hidden = () if self.hidden is None else (self.hidden,)
        places = (*((key, "") for key in (self.key, *self.aliases)), *hidden)
        object.__setattr__(self, "places", places)

    def names(self) -> Iterator[str]:
        """The key itself of each of its dotted ones: the last part that is no number."""
        for key in (self.key, *self.aliases):
            yield next(part for part in reversed(key.split(".")) if not part.isdecimal())


@dataclass(frozen=True, slots=True)
class Carrier:
    """What a block type is to fidelity.

    `ids`: keys whose values are anchors, as is what stands in them before `mark`; `server_id`:
    the id the provider minted and pairs by; `transient`: how ids begin that it does not keep;
    `payload`: keys of the visible content, a weak anchor; `shadows`: keys of readable stand-ins
    of the seal; `children`: keys that hold nested carriers; `keys`: further keys that are known
    and not compared, `hollow` those that are while they hold nothing; `envelope`: the artifact name
    for gained keys, empty where nobody minds; `passed`: gained keys that are the vendor's own,
    whatever their value; `filled`: keys that the provider fills in, with a value that may change;
    `paired`: must be sent with the next item of its response; `paired_by_id`:
    as such a next item it is known by the id of the server's alone; `orphan`: its artifact name
    when it is sent without the item it came with; `nested`: it is found inside other blocks only;
    `listed`: the key of the list that holds it, where a message has several.
    For tool pairs: `label`, `arguments`, `result` and `failed` are the keys of the tool's name, its
    arguments, its result and an error flag.
    """

    type: str
    kind: Kind
    fields: tuple[Field, ...] = ()
    ids: tuple[str, ...] = ()
    mark: str = ""
    server_id: str = ""
    transient: str = ""
    payload: tuple[str, ...] = ()
    shadows: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()
    hollow: frozenset[str] = frozenset()
    envelope: str = ""
    passed: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    paired: bool = False
    paired_by_id: bool = False
    orphan: str = ""
    nested: bool = False
    listed: str = ""
    label: str = ""
    arguments: str = ""
    result: str = ""
    failed: str = ""


@record(frozen=True, slots=True)
class RawMessage:
    """One element of a request's history before reading: `parts` are (dotted place, block).

    `told` is the same in one spelling, where what the model was told has several.
    """

    index: int
    speaker: Speaker
    parts: tuple[tuple[str, Json], ...] = field(repr=False)
    raw: Json = field(repr=False)
    told: Json = field(default=None, repr=False)


@record(frozen=True, slots=True)
class RawAnswer:
    """A response before reading. `parts` as in `RawMessage`, `path` the place of all of them.

    `thread` is the id of the conversation of the server's that it became part of.

    `cut` are the places of parts whose seal a stream had begun and not ended; `anew` are parts,
    with the places of those in `parts`, whose seals another event of the stream brought in other
    bytes. A folded stream has them under keys of its own, `cut` and `anew`, next to `complete`.
    """

    parts: tuple[tuple[str, Json], ...] = field(repr=False)
    path: str = ""
    id: str = field(default="", repr=False)
    thread: str = field(default="", repr=False)
    model: str = ""
    stop: str = ""
    complete: bool = True
    store: bool | None = None
    usage: Usage = field(default_factory=Usage)
    removals: tuple[Removal, ...] = ()
    error: Json = field(default=None, repr=False)
    missing: tuple[str, ...] = ()
    context: str = ""
    cut: tuple[str, ...] = ()
    anew: tuple[tuple[str, Json], ...] = field(default=(), repr=False)


T = TypeVar("T")
Answers = dict[tuple[object, int], Any]
"""What was asked of whole turns, by their number, and of the messages of one request (-1)."""


@record(frozen=True, slots=True)
class Place:
    """The circumstances of one finding, as records: what `Dialect.traits` may look at.

    Whatever has to look at all blocks of a turn, or at all messages, is asked `once_a_turn` or
    `once_a_request`: for each finding anew it would cost their square.

    `block` is the received block (None for values that only went out), `at` the index of the
    message it stands or should stand in (None when the whole turn is gone), `live_from` the index
    of the first message of the live turn.
    """

    facts: Facts
    fate: Fate
    artifact: str
    turn: Turn | None
    index: int
    block: Block | None
    sent: Block | None
    at: int | None
    live_from: int
    messages: tuple[Message, ...] = ()
    answers: Answers = field(default_factory=dict, repr=False)

    def once_a_turn(self, ask: Callable[[Place], T]) -> T:
        """`ask` of this place, which depends on the turn and the messages alone."""
        return self._once(ask, -1 if self.turn is None else self.turn.number)

    def once_a_request(self, ask: Callable[[Place], T]) -> T:
        """`ask` of this place, which depends on the messages alone."""
        return self._once(ask, -1)

    def _once(self, ask: Callable[[Place], T], number: int) -> T:
        key = (ask, number)
        if key not in self.answers:
            self.answers[key] = ask(self)
        found: T = self.answers[key]
        return found


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a provider's contract: the first that fits a finding gives its verdict.

    It fits when the artifact starts with one of `artifacts` (all when empty), the fate is listed,
    every trait of `when` holds and none of `unless` does. `source` names where the rule comes from
    (tags of the contract: S docstring, D docs, I issue, C code, M measured, U unconfirmed);
    `checked` is the date it was last checked. `disputed` marks facts on which sources disagree;
    `undecidable` says why history alone cannot decide the rule (it then never fires).
    """

    id: str
    says: str
    fates: frozenset[Fate] = frozenset()
    verdict: Verdict = Verdict.ALLOWED
    artifacts: tuple[str, ...] = ()
    when: frozenset[Trait] = frozenset()
    unless: frozenset[Trait] = frozenset()
    source: str = ""
    checked: str = CHECKED
    disputed: bool = False
    preview: bool = False
    undecidable: str = ""


def rule(  # noqa: PLR0913 - a rule is a row of a table
    id_: str,
    says: str,
    fates: Iterable[Fate],
    verdict: Verdict,
    *,
    artifacts: tuple[str, ...] = (),
    when: Iterable[Trait] = (),
    unless: Iterable[Trait] = (),
    source: str,
    checked: str = CHECKED,
    disputed: bool = False,
    preview: bool = False,
) -> Rule:
    """A row of a rule table (see `Rule`)."""
    return Rule(
        id=id_,
        says=says,
        fates=frozenset(fates),
        verdict=verdict,
        artifacts=artifacts,
        when=frozenset(when),
        unless=frozenset(unless),
        source=source,
        checked=checked,
        disputed=disputed,
        preview=preview,
    )


def undecidable(id_: str, says: str, why: str, source: str) -> Rule:
    """A rule of the provider's that history cannot decide: it stands in the table with the why."""
    return Rule(id=id_, says=says, undecidable=why, source=source)


class Reads(StrEnum):
    """What becomes of a block sent to another model than the one that sealed it."""

    READ = "read"
    DROPPED = "dropped"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@record(frozen=True, slots=True)
class Pair:
    """Two kinds of models and what the reader makes of blocks that the producer sealed.

    `producer` and `reader` are regular expressions, searched in the names of the models; an empty
    `platform` is any. `source` says where it comes from, as that of a rule does.
    """

    vendor: str
    producer: str
    reader: str
    reads: Reads
    source: str
    platform: str = ""


LEAST_SEAL = 48
"""Bytes; what is shorter, or no base64, was issued by nobody: a host wrote it."""


@record(frozen=True, slots=True)
class Names:
    """The few words of a dialect that findings carry, and its name.

    `envelopes`/`orphans`: block type to the artifact name of such a row; `paired`: types that must
    stand with the item they came with; `placeholders`: `canon` digests of documented dummies;
    `paired_by_id`: types that are known as such an item by their id alone; `passed`: digests of
    gained keys that are the vendor's own; `binary`: artifacts compared as decoded bytes; `vendor`:
    who the request goes to.
    """

    dialect: str
    root: str
    vendor: str
    envelopes: Mapping[str, str]
    orphans: Mapping[str, str]
    paired: frozenset[str]
    paired_by_id: frozenset[str]
    passed: frozenset[bytes]
    placeholders: frozenset[bytes]
    binary: frozenset[str]
    tools_separate: bool = True
    messages_are_steps: bool = False


@record(frozen=True, slots=True)
class Constant:
    """One public value that a client puts into every slot it has nothing for.

    The value itself is kept nowhere: it is known by its bytes' number and SHA-256, in hex.
    """

    size: int
    sha256: str


def _always(_body: Json, _facts: Facts) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Dialect:
    """A provider file: all that the core knows of one wire dialect.

    `reference` gives kind and id of the state of the server's a request refers to (empty strings
    when it refers to none); `models` whether the tables know a model; `tools_separate` whether tool
    results between two messages of the model make them two steps; `messages_are_steps`: whether
    any two messages may be read as two; `placeholders` and `constants`: what is sent for a seal
    that nobody has; `seals_anew`: whether `fold` says what several events brought differently;
    `also_sealed` keys that look sealed in a block of an unknown type although no known one has
    them; `impossible` the fates that cannot occur on this wire, each with the reason; `paths` where
    its requests go; `asks` whether a JSON object is the body of one, `answers` whether it is a
    response or one event of a stream;
    `may_seal` whether the answer to a request may bring sealed state: it was asked for, or the
    model thinks by default.
    """

    name: str
    api: Api
    vendor: str
    root: str
    carriers: Mapping[str, Carrier]
    paths: tuple[Path, ...]
    asks: Callable[[Mapping[str, Json]], bool]
    answers: Callable[[Mapping[str, Json]], bool]
    type_of: Callable[[Json], str]
    messages: Callable[[Json], Iterator[RawMessage]]
    answer: Callable[[Json], RawAnswer]
    fold: Callable[[Iterable[Json]], Json]
    facts: Callable[[Json, Exchange], Facts]
    reference: Callable[[Json], tuple[str, str]]
    head: Callable[[Json], Mapping[str, Json]]
    traits: Callable[[Place], frozenset[Trait]]
    rules: tuple[Rule, ...]
    placeholders: tuple[str, ...] = ()
    placeholders_refused: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Of the placeholders those that some platforms refuse, and which."""
    constants: tuple[Constant, ...] = ()
    models: Callable[[str], bool] = bool
    tools_separate: bool = True
    messages_are_steps: bool = False
    seals_anew: bool = False
    also_sealed: tuple[str, ...] = ()
    impossible: Mapping[Fate, str] = field(default_factory=dict)
    may_seal: Callable[[Json, Facts], bool] = _always
    sealed_keys: Mapping[str, str] = field(init=False, repr=False)
    """What looks sealed in a block of an unknown type, and the name of it there."""

    def __post_init__(self) -> None:
        """The keys of all sealed fields look sealed anywhere."""
        sealed = (f for c in self.carriers.values() for f in c.fields if f.role is Role.SEAL)
        keys = (*(name for one in sealed for name in one.names()), *self.also_sealed)
        object.__setattr__(self, "sealed_keys", {key: snake(key) for key in keys})

    def sealed_in(self, kind: Kind) -> tuple[str, ...]:
        """The artifacts that are sealed in blocks of a kind, the first declared first."""
        return tuple(
            dict.fromkeys(
                one.artifact
                for carrier in self.carriers.values()
                for one in carrier.fields
                if carrier.kind is kind and one.role is Role.SEAL
            )
        )


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake(key: str) -> str:
    """A key in lower case, its words parted by underscores: `thoughtSignature`, too."""
    return _HUMP.sub("_", key).lower()
