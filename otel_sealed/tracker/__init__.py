"""The sans-IO core: it is told exchanges, it returns reports. No clock, thread, file or span.

Theory of operation. `observe` is told one whole exchange after its reply is in. It reads the
request (wire), finds the turns it replays (locate), compares them with what is sent (align), judges
each fate (judge), then reads the response, lays the provider's own answer beside the verdicts, and
records the new turn in the ledger with the turn it continued as parent. What was judged of a
conversation is not read again (`prefix`, `cache`). A live wrap, an offline transcript, a test and a
proxy all run this same code. Its state: the ledger, the cache of judged prefixes, disputes and
pending effects.
"""

from __future__ import annotations

from itertools import count

from otel_sealed.contract import Exchange, Pair
from otel_sealed.digest import Digest
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.ledger.protocol import Ledger
from otel_sealed.model import Facts, Report
from otel_sealed.providers import counting, dialects
from otel_sealed.providers.families import Families
from otel_sealed.steps import MOST, OutOfSteps, bounded
from otel_sealed.tracker.cache import Cache
from otel_sealed.tracker.core import Core, Tools
from otel_sealed.tracker.disputes import Disputes
from otel_sealed.tracker.effects import Effects
from otel_sealed.tracker.observation import Observation
from otel_sealed.wire.keys import SealedKeys

__all__ = ["MAX_ABSENT", "Tracker"]

MAX_ABSENT = 64
"""As many rows as a span lists."""


class Tracker:
    """Remembers what came in and judges what goes out.

    Thread-safe: ledger, cache, disputes and effects have a lock each, and none is held while
    another is taken. Bounded by the ledger's `max_turns`.
    """

    def __init__(
        self,
        key: bytes,
        *,
        max_turns: int = 20_000,
        ledger: Ledger | None = None,
        settles: bool = True,
        families: tuple[Pair, ...] = (),
        absent: int = MAX_ABSENT,
        steps: int = MOST,
        gate: bool = True,
    ) -> None:
        """`key`: at least 16 secret bytes that key every digest. `ledger` replaces the memory.

        Of a shared one what was recorded under the same key is genuine.
        `settles=False` reads every request anew, whatever it begins with; verdicts are the same.
        `families` adds to the table of models that read what others sealed. `absent`: of turns in a
        row that a request leaves behind (trimmed, compacted, held by the server) as many have rows
        in it, the newest; so the cost of a call does not grow with its conversation. `steps`: the
        most work for one exchange (see `otel_sealed.steps`); what needs more is unread, as `size`.
        `gate=False` reads exchanges in which nothing is sealed as well; verdicts are the same.
        """
        self.key = key
        self._steps = steps
        self.ledger: Ledger = MemoryLedger(max_turns) if ledger is None else ledger
        keyed = getattr(self.ledger, "keyed", None)
        self.digest = Digest(key, shared=not isinstance(self.ledger, MemoryLedger))
        if keyed is not None:
            keyed(key)
        self.disputes = Disputes()
        self.effects = Effects(self.digest)
        self._counter = count()
        known = dialects()
        self._core = Core(
            digest=self.digest,
            ledger=self.ledger,
            disputes=self.disputes,
            effects=self.effects,
            cache=Cache() if settles else None,
            families=Families(families),
            absent=absent,
            keys=SealedKeys(known.values()) if gate else None,
        )
        dummies = tuple(text for d in known.values() for text in d.placeholders)
        refused = {k: v for d in known.values() for k, v in d.placeholders_refused.items()}
        constants = tuple(one for d in known.values() for one in d.constants)
        self._tools = {
            api: Tools(d, self.digest, dummies, refused, constants) for api, d in known.items()
        }

    def observe(self, exchange: Exchange) -> Report:
        """Judge the request of `exchange`, then record its response.

        Call it once per logical call, after the reply is in (whole, or as far as it came).
        Never raises on any wire content; what could not be read is named in `Report.unread`.
        """
        tools = self._tools.get(exchange.api)
        if tools is None:
            return Report(Facts("", ""), unread=("api",))
        number = next(self._counter) if exchange.number is None else exchange.number
        if exchange.operation in counting():
            return Report(Facts(tools.dialect.name, "", operation=exchange.operation), number)
        observation = Observation(self._core, tools, exchange, number)
        try:
            with bounded(self._steps):
                return observation.report()
        except OutOfSteps:
            return observation.unread()
