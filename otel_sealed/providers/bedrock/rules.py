"""The contract of Bedrock Converse as data: Claude's own rules for its reasoning, on this wire.

AWS says that reasoning goes back unmodified and refuses what Anthropic refuses, so the rows are
those of Messages (docs/contract/anthropic.md), for the blocks that carry the same values here.
Why: docs/contract/bedrock.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from otel_sealed.contract import Rule
from otel_sealed.model import Fate, Trait
from otel_sealed.providers.claude.rules import RULES as CLAUDE

_HERE: Final = {
    "anthropic.thinking.signature": "bedrock.reasoning_text.signature",
    "anthropic.thinking.text": "bedrock.reasoning_text.text",
    "anthropic.thinking": "bedrock.reasoning_text",
    "anthropic.redacted_thinking": "bedrock.redacted_content",
}
IMPOSSIBLE: Final[Mapping[Fate, str]] = {
    Fate.ABSENT_AT_SOURCE: "a request cannot ask for a seal by itself",
    Fate.SERVER_HELD: "no request of this wire refers to state that the server keeps",
    Fate.SUPERSEDED: "nobody compacts on this wire",
    Fate.STALE: "nobody compacts on this wire",
    Fate.ENVELOPE_MODIFIED: "a block has one key, and what is in it is compared",
    Fate.ORPHANED: "blocks have no ids of the server's by which one needs another",
}
"""Fates that no rule speaks of because they cannot occur here, and why."""


_ELSEWHERE: Final = frozenset(
    {
        Trait.SERVER_STATE,
        Trait.AT_FALLBACK,
        Trait.BEFORE_FALLBACK,
        Trait.FAILED_COMPACTION,
        Trait.SIGNED_COMPACTION,
    }
)
"""What only Messages has: threads, fallbacks, compaction."""


def _rows() -> Iterator[Rule]:
    for row in CLAUDE:
        if row.when & _ELSEWHERE:
            continue
        fates = row.fates - IMPOSSIBLE.keys()
        artifacts = tuple(_HERE[name] for name in row.artifacts if name in _HERE)
        if fates and not row.undecidable and bool(artifacts) is bool(row.artifacts):
            yield replace(row, fates=fates, artifacts=artifacts)


RULES: tuple[Rule, ...] = tuple(_rows())
