"""The words every room speaks: fates, verdicts, causes and the other enumerations (design §1)."""

from __future__ import annotations

from enum import StrEnum


class Fate(StrEnum):
    """What is seen to have happened to an artifact between its response and a later request.

    Declared in precedence order: of several that hold for one artifact the first is reported.
    The four after `INTACT` stand on artifacts of their own; `UNKNOWN` is for values never seen
    coming in.
    """

    SERVER_HELD = "server_held"
    SUPERSEDED = "superseded"
    STALE = "stale"
    UNSEALED = "unsealed"
    NOT_REQUESTED = "not_requested"
    ABSENT_AT_SOURCE = "absent_at_source"
    FOREIGN = "foreign"
    FABRICATED = "fabricated"
    SUBSTITUTED = "substituted"
    MERGED = "merged"
    SPLIT = "split"
    RETYPED = "retyped"
    DUPLICATED = "duplicated"
    MISPLACED = "misplaced"
    REORDERED = "reordered"
    SDK_LOSSY = "sdk_lossy"
    MODIFIED = "modified"
    DROPPED = "dropped"
    INTACT = "intact"
    PREFIX_CHANGED = "prefix_changed"
    ISSUER_CHANGED = "issuer_changed"
    ENVELOPE_MODIFIED = "envelope_modified"
    ORPHANED = "orphaned"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """A fate judged under the provider's contract, mildest first.

    `rank`: 0 (`ok`) to 4 (`breaks`). Only `degrades` and `breaks` are violations (`violates`).
    """

    rank: int
    violates: bool

    OK = "ok"
    ALLOWED = "allowed"
    UNVERIFIABLE = "unverifiable"
    DEGRADES = "degrades"
    BREAKS = "breaks"


for _rank, _verdict in enumerate(Verdict):  # plain attributes: they are asked for at every call
    _verdict.rank = _rank
    _verdict.violates = _verdict in (Verdict.DEGRADES, Verdict.BREAKS)


class ProviderVerdict(StrEnum):
    """What the provider itself said; it never changes a fate or a verdict of ours."""

    UNREPORTED = "unreported"
    ACCEPTED = "accepted"
    REMOVED = "removed"
    REJECTED = "rejected"


class Rejection(StrEnum):
    """Class of a refusal, read from code and message, never from the status (contract §7)."""

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
    CUT_END = "cut_end"
    CUT_START = "cut_start"
    GROWN = "grown"
    TWO_SEALS = "two_seals"
    RE_ENCODED = "re_encoded"
    DOUBLE_ENCODED = "double_encoded"
    WHITESPACE = "whitespace"
    UNICODE_NORMALISED = "unicode_normalised"
    SWAPPED = "swapped"
    CONSTANT = "constant"
    PLACEHOLDER = "placeholder"
    READABLE_TEXT = "readable_text"
    EMPTIED = "emptied"
    REPLACED = "replaced"
    IN_ID = "in_id"
    IN_TEXT = "in_text"
    WRONG_SLOT = "wrong_slot"
    SERVER_STATE = "server_state"
    WHOLE_TURN = "whole_turn"
    SYSTEM = "system"
    TOOLS = "tools"
    MESSAGE = "message"


class Locus(StrEnum):
    """Where the change happened, as far as it can be told."""

    PROCESS = "process"
    SDK = "sdk"
    BEYOND = "beyond"
    SOURCE = "source"


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
    LIVE_TURN = "live_turn"
    THINKING_OFF = "thinking_off"
    THINKING_DISABLED = "thinking_disabled"
    TRANSIENT = "transient"
    BINDING = "binding"
    BINDING_ALWAYS = "binding_always"
    ACCOUNT_BOUND = "account_bound"
    KEEPS_ALL = "keeps_all"
    STORED = "stored"
    FIRST_CALL = "first_call"
    ON_CALL = "on_call"
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
    OLDER_COMPACTION = "older_compaction"
    CLIENT_COMPACTION = "client_compaction"
    SAME_CONVERSATION = "same_conversation"
    FIELD_LOST = "field_lost"
    ID_ABSENT = "id_absent"
    EMPTY_VALUE = "empty_value"
    VERTEX = "vertex"
    GEMINI_2 = "gemini_2"
    GEMINI_3 = "gemini_3"
    UNKNOWN_MODEL = "unknown_model"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_VENDOR = "unknown_vendor"
    ONLY_APPENDED = "only_appended"
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
