"""Minting: sealed values, ids and readable texts, the same for the same seed and order.

A seal is standard base64 and always contains `+`, `/` and `=`, so that a client which re-spells,
unpads or URL-quotes it cannot get away with it by luck. Lengths run from 300 to 4000 characters.
"""

from __future__ import annotations

import base64
import random
import string
import threading

from .records import Minted

_SHORTEST, _LONGEST = 225, 2999  # bytes: 300 to 4000 characters of base64
_WORDS = (
    "weigh the ledger",
    "the café is closed",
    "ask once more",
    "Zürich before noon",
    "compare both columns",
    "naïve totals mislead",
    "carry the remainder",
)


class Mint:
    """Makes everything that has to be unique, and remembers every seal it made."""

    def __init__(self, seed: int = 0, canary: str = "") -> None:
        self._seed = seed
        self._canary = canary
        self._made = 0
        self._seals: dict[tuple[str, str, str], Minted] = {}
        self._lock = threading.Lock()

    @property
    def minted(self) -> tuple[Minted, ...]:
        """All seals handed out so far, in order."""
        with self._lock:
            return tuple(self._seals.values())

    def seal(
        self,
        dialect: str,
        kind: str,
        *,
        issuer: str = "",
        item_id: str | None = None,
        signed: str | None = None,
    ) -> str:
        """Mint a sealed value and remember what it is bound to."""
        value = _blob(self._source())
        with self._lock:
            self._seals[kind, issuer, value] = Minted(dialect, kind, value, issuer, item_id, signed)
        return value

    def known(self, kind: str, value: str, issuer: str = "") -> Minted | None:
        """Find a seal by its exact text; a seal of another kind or issuer is not known."""
        with self._lock:
            return self._seals.get((kind, issuer, value))

    def ident(self, prefix: str, length: int = 24) -> str:
        """Make an id that no other thing has."""
        source = self._source()
        return prefix + "".join(
            source.choice(string.ascii_letters + string.digits) for _ in range(length)
        )

    def text(self, what: str, sentences: int = 3) -> str:
        """Write a readable text that is unique and contains the canary."""
        source = self._source()
        said = "; ".join(source.choice(_WORDS) for _ in range(sentences))
        return " ".join(x for x in (self._canary, f"[{what} {self._made}]", said) if x)

    def word(self, what: str) -> str:
        """Write a short readable value that is unique and contains the canary."""
        self._source()
        return f"{self._canary} {what}-{self._made}".strip()

    def _source(self) -> random.Random:
        with self._lock:
            self._made += 1
            return random.Random(f"{self._seed}:{self._made}")  # noqa: S311 - repeatable on purpose


def _blob(source: random.Random) -> str:
    size = source.randint(_SHORTEST, _LONGEST)
    size -= size % 3 == 0  # a length not divisible by three ends in padding
    while True:
        text = base64.b64encode(source.randbytes(size)).decode()
        if "+" in text and "/" in text:
            return text
