"""What all observations of a tracker share, and what they need of a dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from otel_sealed.contract import Constant, Dialect, Names
from otel_sealed.digest import Digest, canonical, utf8
from otel_sealed.ledger.protocol import Ledger
from otel_sealed.model import Role
from otel_sealed.providers.families import Families
from otel_sealed.tracker.cache import Cache
from otel_sealed.tracker.disputes import Disputes
from otel_sealed.tracker.effects import Effects
from otel_sealed.tracker.memo import Memo
from otel_sealed.wire import Reader
from otel_sealed.wire.keys import SealedKeys


@dataclass(frozen=True, slots=True)
class Core:
    """The state behind a tracker; each part has its own lock.

    `absent`: how many turns in a row that are not in a request have rows all the same. `keys`:
    those of sealed state, None where every exchange is read.
    """

    digest: Digest
    ledger: Ledger
    disputes: Disputes
    effects: Effects
    cache: Cache | None
    families: Families
    absent: int
    keys: SealedKeys | None

    @property
    def remembers(self) -> bool:
        """Whether a turn with state may be remembered: a ledger that does not say so may have."""
        return getattr(self.ledger, "stateful", True)

    def vendor_of(self, canon: bytes) -> str:
        """The vendor that minted a value of any conversation, empty if nobody here saw it."""
        turn = self.ledger.get(max(self.ledger.lookup(canon), default=-1))
        return "" if turn is None else turn.vendor


class Tools:
    """What an observation needs of one dialect, prepared once."""

    def __init__(
        self,
        dialect: Dialect,
        digest: Digest,
        dummies: tuple[str, ...],
        refused: Mapping[str, frozenset[str]],
        constants: tuple[Constant, ...],
    ) -> None:
        """`dummies`, `constants`: those of every dialect; hosts put them on any wire (A18).

        `refused`: of the former those that some platforms refuse.
        """
        self.dialect = dialect
        named = {one: digest.blob(one.sha256.encode()) for one in constants}
        self.reader = Reader(dialect, digest, named)
        self.memo = Memo()
        carriers = dialect.carriers.values()
        self.envelopes = {c.type: c.envelope for c in carriers if c.envelope}
        self.orphans = {c.type: c.orphan for c in carriers if c.orphan}
        self.paired = frozenset(c.type for c in carriers if c.paired)
        self.paired_by_id = frozenset(c.type for c in carriers if c.paired_by_id)
        self.passed = frozenset(digest.raw(b"x", utf8(k)) for c in carriers for k in c.passed)
        self.binary = frozenset(f.artifact for c in carriers for f in c.fields if f.binary)
        self.seals = frozenset(
            f.artifact for c in carriers for f in c.fields if f.role is Role.SEAL
        )
        forms = {
            text: {digest.blob(form) for form in (canonical(text), text.encode())}
            for text in dummies
        }
        self.placeholders = frozenset().union(*forms.values(), named.values())
        self.refused = {canon: refused[text] for text in refused for canon in forms[text]}
        self.start = digest.chain(b"", dialect.name.encode())
        self.names = lru_cache(maxsize=64)(self._names)
        self.account = lru_cache(maxsize=64)(digest.name)
        self.known_model = lru_cache(maxsize=256)(self._known_model)

    def _names(self, vendor: str) -> Names:
        """The words of the dialect that align needs, for a request to `vendor`."""
        return Names(
            dialect=self.dialect.name,
            root=self.dialect.root,
            vendor=vendor,
            envelopes=self.envelopes,
            orphans=self.orphans,
            paired=self.paired,
            paired_by_id=self.paired_by_id,
            passed=self.passed,
            placeholders=self.placeholders,
            binary=self.binary,
            tools_separate=self.dialect.tools_separate,
            messages_are_steps=self.dialect.messages_are_steps,
        )

    def _known_model(self, model: str) -> bool:
        """Whether the tables know a model; no name at all accuses nobody."""
        return not model or self.dialect.models(model)
