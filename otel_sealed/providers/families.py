"""Which model reads what another one sealed, by platform: a small table with sources.

What no row names is unknown and accuses nobody: the provider reports it where it matters. Rows are
tried from top to bottom. An owner's reviewed rows (`OTEL_SEALED_FAMILIES`) are tried before these:
they were looked at later, and for models this table may not know. See
docs/contract/common.md#models; checked 2026-11-29.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from otel_sealed.contract import Pair, Reads
from otel_sealed.vocab import names_model, plain_model

PAIRS: tuple[Pair, ...] = (
    Pair(
        "openai",
        r"",
        r"",
        Reads.REFUSED,
        "I litellm#41793, PR 41785: bound to account and model",
        platform="bedrock",
    ),
    Pair("openai", r"gpt-5\.6", r"gpt-5\.6", Reads.READ, "U one unpublished test: Sol to Luna"),
    Pair(
        "anthropic",
        r"claude-(fable|mythos)-5(-\d{8})?$",
        r"claude-(?!(fable|mythos)-5(-\d{8})?$)",
        Reads.DROPPED,
        "D anthropics/skills model-migration.md: lower input_tokens",
    ),
    Pair(
        "anthropic",
        r"claude-opus-5(-\d{8})?$",
        r"claude-fable-5-1",
        Reads.READ,
        "D preserved-thinking",
    ),
    Pair(
        "anthropic",
        r"claude-opus-5-5",
        r"claude-fable-5-1",
        Reads.READ,
        "D preserved-thinking: on the Claude API only",
        platform="anthropic",
    ),
    Pair(
        "anthropic",
        r"claude-fable-5-1",
        r"claude-opus-5(-5)?(-\d{8})?$",
        Reads.DROPPED,
        "D preserved-thinking",
    ),
    Pair("anthropic", r"claude-haiku-5-5", r"claude-", Reads.READ, "D AWS page: account-bound"),
    Pair("anthropic", r"claude-", r"claude-haiku-5-5", Reads.DROPPED, "D AWS page"),
)


@dataclass(frozen=True, slots=True)
class Families:
    """The table with the rows an owner added, which are tried first."""

    added: tuple[Pair, ...] = ()

    def reads(self, vendor: str, platform: str, producer: str, reader: str) -> Reads:
        """Whether `reader` reads what `producer` sealed on a platform; `read` for one and the same.

        An unnamed model accuses nobody: it counts as the same.
        """
        if same(producer, reader):
            return Reads.READ
        for pair in (*self.added, *PAIRS):
            if (
                pair.vendor == vendor
                and pair.platform in ("", platform)
                and names_model(re.compile(pair.producer), producer)
                and names_model(re.compile(pair.reader), reader)
            ):
                return pair.reads
        return Reads.UNKNOWN


@lru_cache(maxsize=1024)
def same(producer: str, reader: str) -> bool:
    """Whether two names are of one model, or one of them is not known."""
    return not producer or not reader or plain_model(producer) == plain_model(reader)
