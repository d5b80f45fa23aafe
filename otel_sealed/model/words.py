"""The enumerations of the whole package: fates, verdicts, causes and others (docs/glossary.md).

The text below a fate or a verdict is its definition: README.md and the glossary are rendered from
it.
"""

from __future__ import annotations

from enum import StrEnum


class Fate(StrEnum):
    """What is seen to have happened to an artifact between its response and a later request.

    Declared in precedence order: of several that hold for one artifact the first is reported.
    The four after `INTACT` have artifacts of their own; `UNKNOWN` is for values never seen
    coming in.
    """

    SERVER_HELD = "server_held"
    """absent because the request refers to state the provider keeps"""
    SUPERSEDED = "superseded"
    """absent because a later compaction that is in this request carries it"""
    STALE = "stale"
    """an older compaction sent although a newer one was issued"""
    UNSEALED = "unsealed"
    """never complete when it came (a cut stream, an empty signature), and sent as if it were"""
    NOT_REQUESTED = "not_requested"
    """came without its seal, and is replayed where the mode needs one"""
    ABSENT_AT_SOURCE = "absent_at_source"
    """asked for, and the provider answered without it"""
    FOREIGN = "foreign"
    """issued by another vendor than the one it is shipped to"""
    FABRICATED = "fabricated"
    """a documented placeholder, or a seal where none was ever issued"""
    SUBSTITUTED = "substituted"
    """the seal is gone, and its readable text is sent in its place"""
    MERGED = "merged"
    """joined with a neighbour"""
    SPLIT = "split"
    """cut into several, or parallel calls of one step sent as several steps"""
    RETYPED = "retyped"
    """the right bytes in a block of another type"""
    DUPLICATED = "duplicated"
    """sent more often than received, or together with a reference to state the provider keeps"""
    MISPLACED = "misplaced"
    """the right bytes on the wrong part, slot, message or role"""
    REORDERED = "reordered"
    """the same values of the turn in another order"""
    SDK_LOSSY = "sdk_lossy"
    """the wire brought it, and the SDK's own object was seen to lack it"""
    MODIFIED = "modified"
    """another value in its place"""
    DROPPED = "dropped"
    """expected in this request, absent"""
    INTACT = "intact"
    """same value, same place"""
    PREFIX_CHANGED = "prefix_changed"
    """something before the seal changed: system prompt, tools, an earlier message"""
    ISSUER_CHANGED = "issuer_changed"
    """shipped to another platform, account or resource of the same vendor"""
    ENVELOPE_MODIFIED = "envelope_modified"
    """the seal is intact, its block gained or changed other keys"""
    ORPHANED = "orphaned"
    """an item kept its server id and is sent without the item it came with"""
    UNKNOWN = "unknown"
    """never seen coming in"""


class Verdict(StrEnum):
    """A fate judged under the provider's contract, mildest first.

    `rank`: 0 (`ok`) to 4 (`breaks`). Only `degrades` and `breaks` are violations (`violates`).
    """

    rank: int
    violates: bool

    OK = "ok"
    """as it should be"""
    ALLOWED = "allowed"
    """a rule permits it"""
    UNVERIFIABLE = "unverifiable"
    """nothing can be said: never seen before, or a model or block type the rules do not know"""
    DEGRADES = "degrades"
    """the provider answers 200, and the model goes on without its reasoning"""
    BREAKS = "breaks"
    """the provider refuses the request"""


for _rank, _verdict in enumerate(Verdict):  # plain attributes: they are asked for at every call
    _verdict.rank = _rank
    _verdict.violates = _verdict in (Verdict.DEGRADES, Verdict.BREAKS)


class ProviderVerdict(StrEnum):
    """What the provider itself said; it never changes a fate or a verdict of ours."""

    UNREPORTED = "unreported"
    """nothing about sealed state"""
    ACCEPTED = "accepted"
    """it answered the request"""
    REMOVED = "removed"
    """it answered, and reported that it removed sealed state from the request"""
    REJECTED = "rejected"
    """it refused the request because of sealed state"""


class Rejection(StrEnum):
    """Class of a refusal, by its words, never by status (docs/contract/common.md#refusals)."""

    PREFIX_BINDING = "prefix_binding"
    COMPACTION_INVALID = "compaction_invalid"
    COMPACTION_UNSUPPORTED = "compaction_unsupported"
    ACCOUNT_OR_MODEL_BINDING = "account_or_model_binding"
    ID_BINDING = "id_binding"
    UNDECRYPTABLE = "undecryptable"
    SIGNATURE_INVALID = "signature_invalid"
    SIGNATURE_MISSING = "signature_missing"
    THINKING_MODIFIED = "thinking_modified"
    THINKING_MISSING = "thinking_missing"
    THINKING_NOT_ALLOWED = "thinking_not_allowed"
    PREFILL_REFUSED = "prefill_refused"
    ORPHAN_REASONING = "orphan_reasoning"
    ORPHAN_FOLLOWER = "orphan_follower"
    ITEM_NOT_PERSISTED = "item_not_persisted"
    STATE_LOST = "state_lost"
    DUPLICATE_ITEM = "duplicate_item"
    ENVELOPE_POLLUTED = "envelope_polluted"
    MODE_CONFLICT = "mode_conflict"
    PLAINTEXT_REASONING_REQUIRED = "plaintext_reasoning_required"
    OTHER = "other"


class Cause(StrEnum):
    """How a changed value changed, from lengths and keyed windows alone."""

    MASKED = "masked"
    """bytes in the middle were replaced, the length is the same or nearly so"""
    CUT_END = "cut_end"
    """the end is missing"""
    CUT_START = "cut_start"
    """the beginning is missing"""
    GROWN = "grown"
    """the value is whole, and more was added"""
    TWO_SEALS = "two_seals"
    """two sealed values were joined into one"""
    RE_ENCODED = "re_encoded"
    """the same bytes in another spelling of base64"""
    DOUBLE_ENCODED = "double_encoded"
    """the value was encoded once more"""
    WHITESPACE = "whitespace"
    """white space was added, removed or changed"""
    UNICODE_NORMALISED = "unicode_normalised"
    """another Unicode normal form of the same text"""
    SWAPPED = "swapped"
    """the value of another artifact"""
    PLACEHOLDER = "placeholder"
    """a documented dummy value"""
    READABLE_TEXT = "readable_text"
    """ordinary text in the place of a sealed value"""
    EMPTIED = "emptied"
    """an empty value"""
    REPLACED = "replaced"
    """another value, and nothing says where it comes from"""
    IN_ID = "in_id"
    """the value is inside an id"""
    IN_TEXT = "in_text"
    """the value, or its text, is inside ordinary text"""
    WRONG_SLOT = "wrong_slot"
    """the value is in another slot of the request"""
    SERVER_STATE = "server_state"
    """the request also refers to state that the server keeps"""
    WHOLE_TURN = "whole_turn"
    """the whole turn is missing"""
    SYSTEM = "system"
    """the system prompt changed"""
    TOOLS = "tools"
    """the list of tools changed"""
    MESSAGE = "message"
    """an earlier message changed"""


class Locus(StrEnum):
    """Where the change happened, as far as it can be told."""

    PROCESS = "process"
    """in this process: between what the SDK handed out and the request it sent"""
    SDK = "sdk"
    """inside the SDK: its object lacks what the wire brought"""
    BEYOND = "beyond"
    """outside: clean when it left, refused there (a gateway, another issuer, the provider)"""
    SOURCE = "source"
    """at the source: it was never received whole"""


class Confidence(StrEnum):
    """`proven` at our boundary, or `inferred` from weaker evidence (no id, text match only)."""

    PROVEN = "proven"
    INFERRED = "inferred"


class Carry(StrEnum):
    """How a request brings earlier state: the blocks themselves, a server handle, or neither."""

    REPLAYED = "replayed"
    BY_REFERENCE = "by_reference"
    NONE = "none"


class Role(StrEnum):
    """What a value of a block is to fidelity."""

    SEAL = "seal"
    SIGNED = "signed"
    ID = "id"
    ECHO = "echo"
    ANEW = "anew"
    """The same seal in other bytes: another event of the stream brought it, and it is as good."""


class State(StrEnum):
    """Absent, null and empty are three states; so is what was cut off."""

    PRESENT = "present"
    EMPTY = "empty"
    NULL = "null"
    ABSENT = "absent"
    INVALID = "invalid"
    CUT = "cut"
    """It began to come, and the stream ended before its block did."""


class Kind(StrEnum):
    """What a block is, vendor-neutral."""

    REASONING = "reasoning"
    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    COMPACTION = "compaction"
    MARKER = "marker"
    MEDIA = "media"
    OTHER = "other"


class Speaker(StrEnum):
    """Who a message of a request stands for."""

    MODEL = "model"
    USER = "user"
    TOOL = "tool"
    SYSTEM = "system"


class Trait(StrEnum):
    """A circumstance of one finding that rules may ask for. Computed once, before judgement."""

    IN_LOOP = "in_loop"
    AT_END = "at_end"
    THINKING_OFF = "thinking_off"
    THINKING_DISABLED = "thinking_disabled"
    ADAPTIVE = "adaptive"
    BARE_TURN = "bare_turn"
    OTHER_PREFIX = "other_prefix"
    TRANSIENT = "transient"
    BINDING = "binding"
    BINDING_ALWAYS = "binding_always"
    ACCOUNT_BOUND = "account_bound"
    KEEPS_ALL = "keeps_all"
    STORED = "stored"
    FIRST_CALL = "first_call"
    ON_CALL = "on_call"
    UNSIGNED_STEP = "unsigned_step"
    SAME_STEP = "same_step"
    SIBLING_CALL = "sibling_call"
    DUMMY_IN_PLACE = "dummy_in_place"
    ON_MEDIA = "on_media"
    SIGNATURE_ONLY = "signature_only"
    FOLLOWER_ID = "follower_id"
    FOREIGN_TURN = "foreign_turn"
    WHOLE_TURN = "whole_turn"
    FRONT = "front"
    GAP = "gap"
    UNREADABLE_MODEL = "unreadable_model"
    REFUSED_MODEL = "refused_model"
    NOT_PROJECTABLE = "not_projectable"
    OTHER_PLATFORM = "other_platform"
    OTHER_ACCOUNT = "other_account"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    PAUSED = "paused"
    BEFORE_FALLBACK = "before_fallback"
    AT_FALLBACK = "at_fallback"
    TRAILING = "trailing"
    FAILED_COMPACTION = "failed_compaction"
    SIGNED_COMPACTION = "signed_compaction"
    CLIENT_COMPACTION = "client_compaction"
    SAME_CONVERSATION = "same_conversation"
    FIELD_LOST = "field_lost"
    ID_ABSENT = "id_absent"
    ID_LOST = "id_lost"
    UNSURE_PAIR = "unsure_pair"
    PASSED_KEY = "passed_key"
    RESTATED = "restated"
    OWN_HOST = "own_host"
    VERTEX = "vertex"
    GEMINI_2 = "gemini_2"
    GEMINI_3 = "gemini_3"
    UNKNOWN_MODEL = "unknown_model"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_VENDOR = "unknown_vendor"
    NEVER_HELD = "never_held"
    SERVER_STATE = "server_state"
    UNSEEN_REFERENCE = "unseen_reference"
    ADDS_ITEMS = "adds_items"
    WEBSOCKET = "websocket"
    XAI = "xai"
    PLACEHOLDER = "placeholder"
    EMPTY_TEXT = "empty_text"
    LAST_TURN = "last_turn"
    IN_SLOT = "in_slot"
    AFTER_COMPACTION = "after_compaction"
    DROPS_BLOCK = "drops_block"
    CUT_SEAL = "cut_seal"
