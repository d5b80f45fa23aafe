"""Losses the owner accepts for now: `OTEL_SEALED_KNOWN` names a file of them.

```toml
[[known]]
artifact = "anthropic.redacted_thinking.data"
fate = "dropped"
provider = "anthropic"
model = "claude-opus-5"  # may be left out: any model
service = "checkout"     # may be left out: any service
reason = "the framework filters block types, its issue 123"
expires = 2027-02-27     # the last day, in UTC
```

A known loss keeps its fate and its verdict. It raises no event and no alert, and counts into a
metric of its own. An entry that cannot be read covers nothing, and one line says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from otel_sealed import vocab
from otel_sealed.model import Fate
from otel_sealed.telemetry import names
from otel_sealed.telemetry.entries import Form

_REMEDIES: Final = {
    "artifact": 'give the name of an artifact, such as artifact = "anthropic.thinking.signature"',
    "fate": f"give one of {', '.join(fate.value for fate in Fate)}",
    "provider": 'give the value of gen_ai.provider.name, such as provider = "anthropic"',
    "model": "give the name of a model, or leave it out",
    "service": "give the value of service.name, or leave it out",
    "reason": "say why it is accepted",
    "expires": "give the last day as a date, such as expires = 2027-02-27",
}
_FATES: Final = frozenset(fate.value for fate in Fate)


@dataclass(frozen=True, slots=True)
class Loss:
    """One accepted loss. An empty `model` or `service` is any; `expires` is the last day."""

    artifact: str
    fate: Fate
    provider: str
    reason: str
    expires: date
    model: str = ""
    service: str = ""

    def matches(
        self, artifact: str, fate: Fate, provider: str, model: str = "", service: str = ""
    ) -> bool:
        """Whether it is about this loss, expired or not. A model also goes by its base name."""
        return (
            (self.artifact, self.fate, self.provider) == (artifact, fate, provider)
            and (not self.model or self.model in (model, names.base_model(model)))
            and (not self.service or self.service == service)
        )


def utc_today() -> date:
    """The day it is in UTC."""
    return datetime.now(UTC).date()


class KnownLosses:
    """The list of one process."""

    def __init__(
        self, losses: Iterable[Loss] = (), *, today: Callable[[], date] = utc_today
    ) -> None:
        self.losses = tuple(losses)
        self._today = today

    def __bool__(self) -> bool:
        return bool(self.losses)

    def covers(
        self, artifact: str, fate: Fate, provider: str, model: str = "", service: str = ""
    ) -> bool:
        """Whether an entry that has not expired is about this loss."""
        found = [x for x in self.losses if x.matches(artifact, fate, provider, model, service)]
        return bool(found) and self._today() <= max(loss.expires for loss in found)


# ------------------------------------------------------------------------------------- the file


def _fits(key: str, value: Any) -> bool:
    if key == "expires":
        return isinstance(value, date)
    if not isinstance(value, str):
        return False
    if key == "fate":
        return value in _FATES
    return key not in ("artifact", "provider") or vocab.word(value) == value


FORM: Final = Form(
    table="known",
    title="known losses",
    variable="OTEL_SEALED_KNOWN",
    remedies=_REMEDIES,
    optional=("model", "service"),
    fits=_fits,
)


def read(path: str | Path | None) -> KnownLosses:
    """The list in a file; what of it cannot be used costs a log line, never more."""
    return KnownLosses(loss(entry) for entry in FORM.read(path))


def parse(text: str) -> tuple[tuple[Loss, ...], tuple[str, ...]]:
    """The entries that can be used, and a line on each that cannot."""
    entries, complaints = FORM.parse(text)
    return tuple(loss(entry) for entry in entries), complaints


def loss(table: Mapping[str, Any]) -> Loss:
    """An entry that `FORM` found usable, as a loss."""
    expires = table["expires"]
    if isinstance(expires, datetime):
        expires = (expires.astimezone(UTC) if expires.tzinfo else expires).date()
    return Loss(**{**table, "fate": Fate(table["fate"]), "expires": expires})
