"""The records that cross rooms: frozen, slotted, and without a field that could hold content.

Values are digests (16 bytes), sizes, enums, positions and vocabulary names. Wire words (block
types, stop reasons) pass `vocab.word` before they enter a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from otel_sealed.model.record import record
from otel_sealed.model.words import (
    Carry,
    Cause,
    Confidence,
    Fate,
    Kind,
    Locus,
    ProviderVerdict,
    Rejection,
    Role,
    Speaker,
    State,
    Trait,
    Verdict,
)

STATE = frozenset({Kind.REASONING, Kind.COMPACTION})
"""Kinds of blocks that are the model's state, sealed or not: without its seal one is news, too."""
_OWED = frozenset({Role.SEAL, Role.ANEW, Role.ECHO})
SlotAt = tuple[int, int]
"""A place in a request: index of the message, index of the block in it."""


@record(frozen=True, slots=True)
class Value:
    """One sealed, signed or identifying value of a block.

    `digest` is keyed over the compared form (exact text or decoded bytes, as the dialect says);
    `canon` is the same whatever the base64 spelling and serves to recognise a seal across
    dialects. Both are 16 bytes, or empty unless `state` is `present`, `cut` or `empty`. `size` is
    in bytes of the compared form. `prints` are keyed window digests (`digest.windows`). `lost`: the
    wire brought it, and the SDK's own object was seen to lack it.
    """

    artifact: str
    role: Role
    state: State
    digest: bytes = b""
    canon: bytes = b""
    size: int = 0
    prints: bytes = b""
    lost: bool = False


@record(frozen=True, slots=True)
class Shadow:
    """A readable stand-in of a seal: keyed digest of the stripped text and its length in chars."""

    digest: bytes
    chars: int


@record(frozen=True, slots=True)
class Block:
    """One block (part, item) of a message.

    `sub` is its dotted place below the message (`content.0`, empty for OpenAI items); `anchors`
    are keyed digests of ids; `payload` is a keyed digest of the visible payload, a weak anchor;
    `extras` are keyed digests of key and value for keys that are neither sealed, signed, known nor
    null; `hidden` are `canon` digests of long base64 runs found inside ids;
    `transient` says that the id is one the provider does not keep.
    """

    type: str
    kind: Kind
    sub: str
    values: tuple[Value, ...] = ()
    anchors: tuple[bytes, ...] = ()
    payload: bytes = b""
    payload_chars: int = 0
    shadows: tuple[Shadow, ...] = ()
    extras: tuple[bytes, ...] = ()
    hidden: tuple[bytes, ...] = ()
    known: bool = True
    has_server_id: bool = False
    transient: bool = False

    @property
    def reasons(self) -> bool:
        """Whether a seal in it is the model's own state: not that of a result, nor a compaction."""
        return self.kind not in (Kind.COMPACTION, Kind.RESULT, Kind.OTHER)

    def seals(self) -> tuple[Value, ...]:
        """The opaque values among `values`."""
        return tuple(v for v in self.values if v.role is Role.SEAL)

    @property
    def sealed(self) -> bool:
        """Whether at least one seal is really there (not absent, null or empty)."""
        return any(v.role is Role.SEAL and v.state is State.PRESENT for v in self.values)

    @property
    def stateful(self) -> bool:
        """Whether it holds anything that is to come back by itself."""
        if self.kind in STATE or not self.known:
            return True
        return any(v.role in _OWED and v.state is not State.ABSENT for v in self.values)

    def unlike(self, sent: Block) -> bool:
        """Whether `sent` has other ids than this one.

        An id may have lost the seal that was in it: that of a sealed block says nothing (G20).
        """
        named = bool(self.anchors and sent.anchors) and not self.sealed
        return named and not {*self.anchors} & {*sent.anchors}


@record(frozen=True, slots=True)
class Message:
    """One element of a request's history. `digest` is keyed, cache markers left out.

    `joined` is a keyed digest of all ordinary text of the message in one piece, a weak anchor that
    survives the merging of text parts; `joined_chars` its length.
    """

    index: int
    speaker: Speaker
    blocks: tuple[Block, ...]
    digest: bytes
    joined: bytes = b""
    joined_chars: int = 0

    def path(self, root: str, block: int) -> str:
        """The dotted path of a block, as the provider writes it below the history `root`."""
        sub = self.blocks[block].sub
        head = f"{root}.{self.index}"
        return f"{head}.{sub}" if sub else head


@record(frozen=True, slots=True)
class Facts:
    """What a request says about itself, as far as rules ask for it."""

    dialect: str
    vendor: str
    platform: str = ""
    host: str = ""
    account: bytes = b""
    model: str = ""
    thinking: bool | None = None
    store: bool | None = None
    reference: str = ""
    reference_key: bytes = b""
    context: str = ""
    betas: tuple[str, ...] = ()
    operation: str = ""
    transport: str = ""
    background: bool = False
    flags: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Head:
    """What stands before the messages and may bind a seal: (name, keyed digest) pairs."""

    parts: tuple[tuple[str, bytes], ...] = ()


@record(frozen=True, slots=True)
class Removal:
    """A provider's own report that it removed or tolerated something (`input_transformations`)."""

    reason: str
    allowed: bool = False
    path: str = ""
    item: bytes = b""


@record(frozen=True, slots=True)
class Turn:
    """One response as the ledger remembers it.

    `number` is the ledger's own serial; `parent` the serial of the turn it continued, or -1;
    `exchange` the caller's 0-based exchange number; `chain` the rolling message digest of the
    request that brought it, empty where that was not seen, or left to the server what came before;
    `prefix` the digests of what it was told (all but the model's own messages) behind the first
    `prefix_shared` ones, which it shares with its parent, and `head` of what stood before them;
    `told` is a rolling digest of all it was told, `thinking` what its
    request said of it; `response_key`/`thread` name state the server keeps; `origin` is trace and
    span id of that call (24 bytes) or empty.
    """

    exchange: int
    blocks: tuple[Block, ...]
    path: str
    dialect: str
    vendor: str
    platform: str = ""
    host: str = ""
    account: bytes = b""
    model: str = ""
    thinking: bool | None = None
    stop: str = ""
    complete: bool = True
    store: bool | None = None
    response_key: bytes = b""
    conversation: bytes = b""
    chain: bytes = b""
    prefix: tuple[bytes, ...] = ()
    prefix_shared: int = 0
    told: bytes = b""
    head: Head = Head()
    origin: bytes = b""
    joined: bytes = b""
    joined_chars: int = 0
    thread: bytes = b""
    context: str = ""
    number: int = -1
    parent: int = -1

    @property
    def stateful(self) -> bool:
        """Whether a later request may lose anything of it: a seal, state without one, an echo."""
        return any(block.stateful for block in self.blocks)

    @property
    def ended(self) -> bool:
        """Whether it came in whole and stopped by itself."""
        return self.complete and self.stop in _WHOLE_STOPS


_WHOLE_STOPS = frozenset({"", "end_turn", "tool_use", "stop_sequence", "stop", "completed"})


@record(frozen=True, slots=True)
class Receipt:
    """One sealed value that came in with a response; `id` is the digest of its item's id."""

    artifact: str
    digest: bytes
    size: int
    path: str
    state: State = State.PRESENT
    id: bytes = b""


@record(frozen=True, slots=True)
class Origin:
    """Where an artifact came in: exchange number, path in that response, minting span."""

    exchange: int
    path: str
    span: bytes = b""
    model: str = ""


@record(frozen=True, slots=True)
class Finding:
    """One artifact in one request: its fate, and after judgement its verdict.

    `digest_in`/`digest_out` and the sizes (bytes) are those of the compared form; `order` sorts
    rows by receipt. `first` is true when the artifact goes out for the first time.
    """

    artifact: str
    fate: Fate
    received: Origin | None = None
    returned: str | None = None
    digest_in: bytes = b""
    digest_out: bytes = b""
    size_in: int | None = None
    size_out: int | None = None
    cause: Cause | None = None
    detail: str = ""
    locus: Locus | None = None
    confidence: Confidence = Confidence.PROVEN
    traits: frozenset[Trait] = frozenset()
    verdict: Verdict = Verdict.OK
    rule: str = ""
    disputed: bool = False
    preview: bool = False
    provider_verdict: ProviderVerdict = ProviderVerdict.UNREPORTED
    rejection: Rejection | None = None
    first: bool = False


@record(frozen=True, slots=True)
class ToolReceipt:
    """One tool result on its way to the model: the pair, not the prose.

    `name` is a vocabulary word, `call` the keyed digest of the call's id; sizes are bytes of JSON
    or text, None where the pair's other half is not in the request; `failed` is None where the
    wire has no such flag. `effect` is what the app said the tool did: a keyed digest and a size.
    """

    name: str
    call: bytes
    arguments_size: int | None
    result_size: int
    failed: bool | None = None
    turn: int = -1
    effect: bytes = b""
    effect_size: int | None = None


@record(frozen=True, slots=True)
class Usage:
    """Token counts of a response; None where the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@record(frozen=True, slots=True)
class Check:
    """How many rows of one kind a request had."""

    artifact: str
    fate: Fate
    verdict: Verdict
    rule: str
    count: int


@record(frozen=True, slots=True)
class Report:
    """All that one exchange showed. This, and nothing else, reaches emission and the doors.

    `verdict` is the worst of the findings, None when nothing sealed was involved.
    `received_types`/`returned_types` are the block types in order; `unread` names what of the
    bodies could not be read (`request.json`, `response.depth`, …), never why in their words;
    `settled` counts the rows of what an earlier request of the same bytes settled, which have no
    finding here; `rest_count` and the keyed `rest_digest` stand for all rows that are well and went
    out before, settled or not. `expected` counts the seals of this dialect that are due, `returned`
    those of them for which a value went out, `excused` those absent whose absence no rule minds, so
    that `returned <= expected - excused`. `drift` are sealed-looking keys no provider file
    describes, by name and size in characters; `summary_size` counts the characters of readable
    stand-ins (summaries, thinking text) that came.
    """

    facts: Facts
    exchange: int = 0
    received: tuple[Receipt, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdict: Verdict | None = None
    provider_verdict: ProviderVerdict = ProviderVerdict.UNREPORTED
    rejection: Rejection | None = None
    carry: Carry = Carry.NONE
    expected: int = 0
    excused: int = 0
    returned: int = 0
    received_types: tuple[str, ...] = ()
    returned_types: tuple[str, ...] = ()
    conversation: bytes = b""
    response_model: str = ""
    stop: str = ""
    complete: bool = True
    usage: Usage = Usage()
    removals: tuple[Removal, ...] = ()
    unread: tuple[str, ...] = ()
    drift: tuple[tuple[str, int], ...] = ()
    receipts: tuple[ToolReceipt, ...] = ()
    settled: tuple[Check, ...] = ()
    rest_count: int = 0
    rest_digest: bytes = b""
    summary_size: int = 0
    prefix: bytes = b""
    lookups_hit: int = 0
    lookups_missed: int = 0


@record(frozen=True, slots=True)
class Lineage:
    """The turns a request is expected to carry, oldest first, and where their blocks stand.

    `owner` maps a place (message, block) to the serial number of its turn; `held` are turns the
    request refers to by a handle of the server's; `tip` is the newest turn of the line, or -1;
    `inferred` are turns found by weak evidence only, `unproven` turns with those of their places,
    in one run of the model, that may be of another answer; `open` are the newest turns, as far as
    no place of theirs is proven: without one the request does not continue them; `past` are so far
    back in a run of absent turns that they have no rows;
    `hits`/`misses` count lookups by strong keys.
    """

    turns: tuple[Turn, ...] = ()
    owner: Mapping[SlotAt, int] = field(default_factory=dict)
    held: frozenset[int] = frozenset()
    tip: int = -1
    inferred: frozenset[int] = frozenset()
    unproven: tuple[tuple[int, tuple[SlotAt, ...]], ...] = ()
    open: frozenset[int] = frozenset()
    past: frozenset[int] = frozenset()
    hits: int = 0
    misses: int = 0

    @property
    def expected(self) -> tuple[Turn, ...]:
        """The turns whose artifacts have rows."""
        past = self.past
        return tuple([turn for turn in self.turns if turn.number not in past])
