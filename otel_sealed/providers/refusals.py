"""Refusals of sealed state, told by code and message fragments, never by status.

The table is shown and explained in docs/contract/common.md#refusals.

One table for all dialects: a gateway passes on the words of whoever refused. Fragments are compared
in lower case without quotes, backticks and backslashes, with single spaces; `…` is any word, `⋯`
any path of keys, which may have spaces, and `not found` is said in several ways. The first class
that hits wins.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from otel_sealed.model import Rejection

_R = Rejection

FRAGMENTS: tuple[tuple[Rejection, tuple[str, ...]], ...] = (
    (_R.PREFIX_BINDING, ("bound to a different conversation",)),
    (
        _R.COMPACTION_INVALID,
        (
            "compaction_signature_invalid",
            "compaction_content_mismatch",
            "compaction_tool_changes_mismatch",
            "compaction_block_ambiguous",
            "compaction_block_misplaced",
            "compaction_incomplete_turn",
            "decode the compaction blob",
        ),
    ),
    (_R.COMPACTION_UNSUPPORTED, ("item type compaction is not supported",)),
    (
        _R.ACCOUNT_OR_MODEL_BINDING,
        (
            "created for a different account or model",
            "was not issued to this caller",
            "organization_id did not match",
        ),
    ),
    (_R.ID_BINDING, ("item_id did not match the target item id",)),
    (
        _R.SIGNATURE_INVALID,
        (
            "invalid signature in thinking block",
            "corrupted thought signature",
            "invalid thought signature",
            "invalid thought_signature",
            "thought signature is not valid",
            "thought_signature is not valid",
            "invalid signature",
            "invalid data in redacted_thinking",
        ),
    ),
    (
        _R.SIGNATURE_MISSING,
        (
            "signature: field required",
            "signature.str: input should be a valid string",
            "each thinking block must contain thinking",
            "thinking.thinking: field required",
            "redacted_thinking.data: field required",
            "missing a thought_signature",
            "missing a thought signature",
            "missing_thought_signature",
            "reasoning details to be preserved",
            "reasoning_details to be p",
            "missing required parameter: input[…].encrypted_content",
        ),
    ),
    (_R.THINKING_MODIFIED, ("blocks in the latest assistant message cannot be modified",)),
    (
        _R.THINKING_MISSING,
        (
            "expected thinking or redacted_thinking, but found",
            "must start with a thinking block",
            "the first block must be thinking",
        ),
    ),
    (_R.THINKING_NOT_ALLOWED, ("when thinking is disabled, an assistant message",)),
    (
        _R.PREFILL_REFUSED,
        (
            "assistant … prefill",
            "prefilling assistant",
            "pre-fill the assistant",
            "pre-filling assistant",
            "pre-filling the assistant",
            "the conversation must end with a user message",
            "final assistant content cannot end with thinking",
            "final block in an assistant message cannot be thinking",
        ),
    ),
    (_R.ORPHAN_REASONING, ("of type reasoning was provided without its required following item",)),
    (
        _R.ORPHAN_FOLLOWER,
        (
            "was provided without its required reasoning item",
            "required preceding item of type reasoning",
        ),
    ),
    (
        _R.ITEM_NOT_PERSISTED,
        (
            "items are not persisted when store is set to false",
            "item with id … not found",
            "item rs_… not found",
            "item msg_… not found",
            "item fc_… not found",
        ),
    ),
    (
        _R.STATE_LOST,
        (
            "previous_response_not_found",
            "thread_not_found",
            "thread not found",
            "previous_response_id … not found",
            "previous response with id … not found",
            "previous response cannot be used",
            "conversation with id … not found",
            "interaction with id … not found",
        ),
    ),
    (_R.DUPLICATE_ITEM, ("duplicate item found with id",)),
    (
        _R.MODE_CONFLICT,
        (
            "encrypted content cannot be requested for persisted responses",
            "encrypted content is not supported with this model",
        ),
    ),
    (
        _R.UNDECRYPTABLE,
        (
            "invalid_encrypted_content",
            "encrypted content … could not be verified",
            "encrypted content for item … could not be verified",
            "could not be decrypted",
            "invalid input[…].encrypted_content",
        ),
    ),
    (
        _R.ENVELOPE_POLLUTED,
        (
            "unknown parameter: input[",
            "input[…].content: array too long",
            "messages.⋯: extra inputs are not permitted",
            "thinking.⋯: extra inputs are not permitted",
            "invalid input[…].id:",
            "invalid type for input[…].id",
            "invalid value: input[…].id",
            "missing required parameter: input[…].id",
        ),
    ),
    (
        _R.PLAINTEXT_REASONING_REQUIRED,
        ("must be passed back", "reasoning_content is missing in assistant tool call"),
    ),
)

_QUOTES = str.maketrans("", "", "`'\"\\")
_MAX_TEXT = 16_384
_MAX_DEPTH = 8


_ANY_WORD = r"\S{0,200}"  # longer than any id
_ANY_PATH = r"[^:]{0,200}"  # as long; a colon ends it
_LINE_ENDS = re.compile(r"(?<!\\)\\++[nrt]")
_GONE = re.compile(
    r"(?:was not|is not|were not|could not be|cannot be) found|does not exist|no longer exists"
    r"|has expired"
)


def _written(fragment: str) -> str:
    """A fragment as a regular expression; a word between spaces may be absent."""
    text = re.escape(fragment).replace("\\ …\\ ", rf"\ (?:{_ANY_WORD}\ )?")
    return text.replace("…", _ANY_WORD).replace("⋯", _ANY_PATH)


_PATTERNS = tuple(
    (rejection, re.compile("|".join(map(_written, fragments))))
    for rejection, fragments in FRAGMENTS
)


def classify(error: Any) -> Rejection | None:
    """Class of a refusal given as parsed error body or as text; None if nothing speaks of seals."""
    text = _plain(" ".join(_words(error))[: 2 * _MAX_TEXT])[:_MAX_TEXT]
    return next((name for name, pattern in _PATTERNS if pattern.search(text)), None)


def _plain(text: str) -> str:
    """What gateways, terminals and logs make of a text taken back: entities, escapes, line ends."""
    text = html.unescape(text) if "&" in text else text
    text = _LINE_ENDS.sub(" ", text).translate(_QUOTES).lower()
    return _GONE.sub("not found", " ".join(text.split()))


_OF_OTHER_THINGS = re.compile(
    r"overloaded|rate.?limit|quota|authenticat|api.?key|permission|billing|credit|timed? ?out"
)


def about_other_things(error: Any) -> bool:
    """Whether an error without a class speaks of load, credentials or money."""
    text = " ".join(_words(error))[:_MAX_TEXT].lower()
    return _OF_OTHER_THINGS.search(text) is not None


def _words(error: Any, depth: int = 0) -> Iterator[str]:
    """Every string of an error body: gateways wrap the words of others at any depth."""
    if isinstance(error, str):
        yield error
    elif depth < _MAX_DEPTH and isinstance(error, dict):
        for value in error.values():
            yield from _words(value, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(error, list):
        for value in error[:32]:
            yield from _words(value, depth + 1)
