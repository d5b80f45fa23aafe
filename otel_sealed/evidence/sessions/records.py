"""What is kept of a session file: counts and sizes, no word of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from otel_sealed.model import Rejection

_ALPHABET: Final = re.compile(r"[A-Za-z0-9+/_=-]*")


class Pattern(StrEnum):
    """What a conversation's file keeps of its reasoning.

    `complete`: every reasoning block on file has its seal, and there is readable text.
    `redacted_with_seal`: every one has its seal, none has readable text.
    `truncated_to_text`: none has a seal: text is all there is, or not even that, although the
    usage on file says that the model reasoned.
    `mixed`: some have their seal, some do not. `no_reasoning`: nothing on file speaks of any.
    """

    COMPLETE = "complete"
    REDACTED_WITH_SEAL = "redacted_with_seal"
    TRUNCATED_TO_TEXT = "truncated_to_text"
    MIXED = "mixed"
    NO_REASONING = "no_reasoning"

    @property
    def loses(self) -> bool:
        """Whether a session resumed from the file goes on without seals it once had."""
        return self in (Pattern.TRUNCATED_TO_TEXT, Pattern.MIXED)


@dataclass(slots=True)
class Kept:
    """One conversation, as far as its file goes. Sizes are bytes.

    Attributes:
        agent: Whose file it is.
        sidechain: It is a subagent's.
        turns: Messages of the model (Claude Code), or turns of the user's (Codex).
        blocks: Reasoning blocks.
        sealed: Of these, with a seal.
        readable: Of these, with readable text (for OpenAI: the summary, all there is to read).
        damaged: Seals with a character that no base64 has: masked or cut by something else.
        compactions: How often the history was replaced by a summary.
        compactions_sealed: Of these, with a sealed summary.
        refused: Refusals on file that speak of sealed state, by class.
        reasoning_tokens: As the usage on file says; -1 where it does not.
        cached_tokens: Input read from cache, likewise.
        version: Of the agent, the newest on file.
    """

    agent: str
    sidechain: bool = False
    turns: int = 0
    blocks: int = 0
    sealed: int = 0
    readable: int = 0
    damaged: int = 0
    seal_bytes: int = 0
    text_bytes: int = 0
    compactions: int = 0
    compactions_sealed: int = 0
    refused: Counter[Rejection] = field(default_factory=Counter)
    reasoning_tokens: int = -1
    cached_tokens: int = -1
    version: str = ""
    last: object = field(default=None, repr=False)

    def block(self, seal: object, text: int) -> None:
        """Count a reasoning block: `seal` is its sealed value, `text` the size of what is read."""
        self.blocks += 1
        self.readable += text > 0
        self.text_bytes += text
        if isinstance(seal, str) and seal:
            self.sealed += 1
            self.seal_bytes += len(seal.encode("utf-8", "surrogatepass"))
            self.damaged += _ALPHABET.fullmatch(seal) is None

    @property
    def pattern(self) -> Pattern:
        """What the file keeps of the reasoning."""
        if not self.blocks:
            reasoned = self.reasoning_tokens > 0
            return Pattern.TRUNCATED_TO_TEXT if reasoned else Pattern.NO_REASONING
        if not self.sealed:
            return Pattern.TRUNCATED_TO_TEXT
        if self.sealed < self.blocks:
            return Pattern.MIXED
        return Pattern.COMPLETE if self.readable else Pattern.REDACTED_WITH_SEAL


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of a file; `number` counts them from 1."""

    file: str
    number: int
    kept: Kept


@dataclass(slots=True)
class Found:
    """One file: its conversations, and the lines that were of no use."""

    file: str
    sessions: list[Session] = field(default_factory=list)
    lines: int = 0
    broken: int = 0
    others: int = 0


def size(text: object) -> int:
    """Bytes of a text; 0 for anything else."""
    return len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0
