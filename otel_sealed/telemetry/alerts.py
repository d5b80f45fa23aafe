"""The one alert room: what violates is told once, whoever sees it first.

Theory of operation. Two feeds see the same violation: the call site, at the call, whether or not
its trace is sampled, and the span processor, from ended spans. Both hand in an `Alert`; its dedupe
key is (conversation, artifact digest, fate), and whichever comes second is silent. The processor
may know no more than that digests differ; such an alert is `inferred`, and any fate of the same
digest silences it, as it silences them.

What an SDK's own object lacked (`sdk_lossy`) it lacks in every conversation: that is one alert an
artifact in a process.

Callbacks hear every alert that is new. Log event and log line are throttled: once per
(conversation, artifact kind, fate, rule), then when it has been seen 10, 100 and 1000 times at
call sites, and never more than so many an hour a process; those held back are counted and the
count goes out with the next one. A loss that its owner has listed as known is noted, and told to
nobody until its entry expires. All memory is bounded: the oldest key is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from otel_sealed.model import Confidence, Fate, ProviderVerdict, Verdict
from otel_sealed.telemetry.known import KnownLosses

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_sealed.model import Rejection
    from otel_sealed.telemetry.shield import Shield

MILESTONES: Final = frozenset({1, 10, 100, 1000})
HOUR: Final = 3600.0
MAX_KEYS: Final = 50_000
CALL_SITE: Final = "call"
SPANS: Final = "spans"


@dataclass(frozen=True, slots=True)
class Alert:
    """One violation, with all that may be told about it. Digests, sizes and names only.

    `inferred`: told from differing digests alone; fate and verdict are then our best reading.
    """

    conversation: str
    artifact: str
    digest: str
    fate: Fate
    verdict: Verdict
    rule: str = ""
    disputed: bool = False
    cause: str = ""
    diagnosis: str = ""
    locus: str = ""
    confidence: Confidence = Confidence.PROVEN
    provider_verdict: ProviderVerdict = ProviderVerdict.UNREPORTED
    rejection: Rejection | None = None
    received_position: str = ""
    returned_position: str = ""
    received_size: int | None = None
    returned_size: int | None = None
    origin_trace: str = ""
    origin_span: str = ""
    provider: str = ""
    model: str = ""
    host: str = ""
    service: str = ""
    inferred: bool = False
    context: Context | None = field(default=None, repr=False, compare=False)

    @property
    def accepted(self) -> bool:
        """Whether the provider took the request all the same."""
        return self.provider_verdict in {ProviderVerdict.ACCEPTED, ProviderVerdict.REMOVED}


Callback: TypeAlias = Callable[[Alert], None]
Sink: TypeAlias = Callable[[Alert, int, int], None]
"""Gets the alert, how often it was seen, and how many events were held back before it."""


class Throttle:
    """First, 10th, 100th and 1000th of a key, and so many an hour. Not locked: its owner is."""

    def __init__(self, clock: Callable[[], float], per_hour: int, *, keys: int = MAX_KEYS) -> None:
        self._clock = clock
        self._per_hour = per_hour
        self._keys = keys
        self._counts: OrderedDict[tuple[str, ...], int] = OrderedDict()
        self._passed: deque[float] = deque()
        self._suppressed = 0

    def tick(self, key: tuple[str, ...]) -> tuple[int, int] | None:
        """Count `key`; (count, held back so far) if it may be told now."""
        count = self._counts.pop(key, 0) + 1
        self._counts[key] = count
        while len(self._counts) > self._keys:
            self._counts.popitem(last=False)
        if count not in MILESTONES:
            return None
        now = self._clock()
        while self._passed and now - self._passed[0] >= HOUR:
            self._passed.popleft()
        if len(self._passed) >= self._per_hour:
            self._suppressed += 1
            return None
        self._passed.append(now)
        suppressed, self._suppressed = self._suppressed, 0
        return count, suppressed


class AlertRoom:
    """Dedupes, throttles and tells. Thread-safe; a failing sink disturbs neither it nor others."""

    def __init__(
        self,
        shield: Shield,
        *,
        clock: Callable[[], float],
        sinks: Iterable[Sink] = (),
        callbacks: Iterable[Callback] = (),
        events_per_hour: int = 60,
        keys: int = MAX_KEYS,
        known: KnownLosses | None = None,
    ) -> None:
        self.known = known or KnownLosses()
        self._shield = shield
        self._sinks = tuple(sinks)
        self._callbacks = list(callbacks)
        self._throttle = Throttle(clock, events_per_hour, keys=keys)
        self._told: OrderedDict[tuple[str, str], set[str]] = OrderedDict()
        self._keys = keys
        self._lock = Lock()

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call `callback` with every new alert; the result ends that."""
        with self._lock:
            self._callbacks.append(callback)

        def cancel() -> None:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return cancel

    def tell(self, alert: Alert, *, source: str = CALL_SITE) -> bool:
        """Take in an alert; whether it was new, and is to be told."""
        kind = (_about(alert), alert.artifact, alert.fate.value, alert.rule)
        accepted = self.known.covers(
            alert.artifact, alert.fate, alert.provider, alert.model, alert.service
        )
        with self._lock:
            new = self._note(alert, source, accepted=accepted)
            if accepted:
                return False
            counts = new or source == CALL_SITE
            told = self._throttle.tick(kind) if counts else None
            callbacks = tuple(self._callbacks)
        if _shared is self:
            callbacks += tuple(_listeners)
        if new:
            for callback in callbacks:
                self._shield.run("callback", callback, alert)
        if told:
            for sink in self._sinks:
                self._shield.run("sink", sink, alert, *told)
        return new

    def _note(self, alert: Alert, source: str, *, accepted: bool) -> bool:
        lossy = alert.fate is Fate.SDK_LOSSY
        key = (_about(alert), alert.artifact if lossy else alert.digest or alert.artifact)
        fates = self._told.pop(key, None) or set()
        self._told[key] = fates
        while len(self._told) > self._keys:
            self._told.popitem(last=False)
        if accepted:
            fates.add(_KNOWN + alert.fate.value)
            return False
        # A span need not say all that the entry asks for; what the call site knew is known.
        if source == SPANS and _KNOWN + alert.fate.value in fates:
            return False
        fates -= {fate for fate in fates if fate.startswith(_KNOWN)}
        silent = bool(fates) if alert.inferred else bool(fates & {alert.fate.value, _INFERRED})
        fates.add(_INFERRED if alert.inferred else alert.fate.value)
        return not silent


def _about(alert: Alert) -> str:
    """What a loss is one of: a conversation; of an SDK's release, the process."""
    return "" if alert.fate is Fate.SDK_LOSSY else alert.conversation


_INFERRED: Final = "*"
_KNOWN: Final = "known "
_shared: AlertRoom | None = None
_listeners: list[Callback] = []


def share(room: AlertRoom | None) -> None:
    """Make `room` the one of this process, which processors without a room of their own feed."""
    global _shared  # noqa: PLW0603 - one room a process is the point of it
    _shared = room


def listen(callback: Callback) -> Callable[[], None]:
    """Call `callback` with every new alert of the process's room, whichever it is at the time."""
    _listeners.append(callback)

    def cancel() -> None:
        if callback in _listeners:
            _listeners.remove(callback)

    return cancel


def shared() -> AlertRoom | None:
    """The room of this process, if something is instrumented."""
    return _shared
