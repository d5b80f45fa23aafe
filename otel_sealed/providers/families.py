"""Which model reads what another one sealed, by platform: a small table with sources.

What no row names is unknown and accuses nobody: the provider reports it where it matters. Rows are
tried from top to bottom. An owner's reviewed rows (`OTEL_SEALED_FAMILIES`) are tried before these:
they were looked at later, and for models this table may not know. Their patterns are bounded, since
an owner tries them on few names, and those on the wire are anybody's. See
docs/contract/common.md#models; checked 2026-11-29.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

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


LONGEST_NAME: Final = 160
"""Characters of the longest name that is looked up, as in `vocab.model_name`."""
_REPEATS: Final = 1
_OPTIONAL: Final = 2
"""What an owner's pattern may have of them: through a name of 160 characters there are then some
160 * 160 * 2**2 ways, a few milliseconds. The built-in rows have none and one."""
_PART: Final = re.compile(
    r"(?P<fixed>\\[^\d]|\[\^?+\]?+(?:\\.|[^\\\]])*+(?:\]|\Z)|\{\d++\})"
    r"|(?P<atomic>\(\?>\.\*\??)"
    r"|(?P<of_group>\)(?:[*+]|\{))"
    r"|(?P<ends>\))"
    r"|(?P<group>\((?:\?(?:[aimsx]*+:|[=!])|(?!\?)))"
    r"|(?P<repeat>[*+]\??+|\{\d*+,\d*+\}\??+)"
    r"|(?P<optional>\?\??+)"
    r"|(?P<refused>\\|\()"
    r"|(?P<other>.)",
    re.DOTALL,
)


class Families:
    """The table with the rows an owner added, which are tried first."""

    def __init__(self, added: tuple[Pair, ...] = ()) -> None:
        """Raises ValueError where a pattern that was added could take long for some name."""
        for pattern in (one for pair in added for one in (pair.producer, pair.reader)):
            if not bounded(pattern):
                raise ValueError("a pattern of a family repeats too much: use a plainer one")
        self.added = added
        self._rows = (*map(_row, added), *_ROWS)
        self._known: dict[tuple[str, str, str, str], Reads] = {}

    def reads(self, vendor: str, platform: str, producer: str, reader: str) -> Reads:
        """Whether `reader` reads what `producer` sealed on a platform; `read` for one and the same.

        An unnamed model accuses nobody: it counts as the same.
        """
        if same(producer, reader):
            return Reads.READ
        if max(len(producer), len(reader)) > LONGEST_NAME:
            return Reads.UNKNOWN
        asked = vendor, platform, producer, reader
        found = self._known.get(asked)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[asked] = self._looked_up(*asked)
        return found

    def _looked_up(self, vendor: str, platform: str, producer: str, reader: str) -> Reads:
        for pair, made, read in self._rows:
            if (
                pair.vendor == vendor
                and pair.platform in ("", platform)
                and names_model(made, producer)
                and names_model(read, reader)
            ):
                return pair.reads
        return Reads.UNKNOWN


def _row(pair: Pair) -> tuple[Pair, re.Pattern[str], re.Pattern[str]]:
    return pair, re.compile(pair.producer), re.compile(pair.reader)


_ROWS: Final = tuple(map(_row, PAIRS))
_REMEMBERED: Final = 1024
"""Answers that are kept, as many as of `same`: a process has a handful of models."""


def bounded(pattern: str) -> bool:
    """Whether a regular expression takes a bounded time on whatever name there is.

    It may have one repeat, of a single character or set, and two optional parts, and any number
    of atomic groups with one repeat at their beginning, as `fnmatch` writes stars. It may repeat no
    group and refer back to none.
    """
    count = {"repeat": 0, "optional": 0}
    atomic = False
    for match in _PART.finditer(pattern):
        part = match.lastgroup or ""
        if part == "ends":
            atomic = False
        elif part in ("of_group", "refused") or (atomic and part not in ("fixed", "other")):
            return False
        elif part == "atomic":
            atomic = True
        elif part in count:
            count[part] += 1
    return count["repeat"] <= _REPEATS and count["optional"] <= _OPTIONAL


@lru_cache(maxsize=1024)
def same(producer: str, reader: str) -> bool:
    """Whether two names are of one model, or one of them is not known."""
    return not producer or not reader or plain_model(producer) == plain_model(reader)
