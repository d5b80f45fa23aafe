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

import logging
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from otel_sealed import vocab
from otel_sealed.model import Fate
from otel_sealed.telemetry import names

_LOG = logging.getLogger(vocab.SCOPE)
TABLE: Final = "known"
_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*known[ \t]*\]\]", re.MULTILINE)
_MOST_LINES: Final = 10
_REMEDIES: Final = {
    "artifact": 'give the name of an artifact, such as artifact = "anthropic.thinking.signature"',
    "fate": f"give one of {', '.join(fate.value for fate in Fate)}",
    "provider": 'give the value of gen_ai.provider.name, such as provider = "anthropic"',
    "model": "give the name of a model, or leave it out",
    "service": "give the value of service.name, or leave it out",
    "reason": "say why it is accepted",
    "expires": "give the last day as a date, such as expires = 2027-02-27",
}
_OPTIONAL: Final = ("model", "service")
_FATES: Final = frozenset(fate.value for fate in Fate)
_LONGEST: Final = 500


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


def read(path: str | Path | None) -> KnownLosses:
    """The list in a file; what of it cannot be used costs a log line, never more."""
    if not path:
        return KnownLosses()
    try:
        losses, complaints = parse(Path(path).read_text("utf-8"))
    except OSError as error:
        losses, complaints = (), (f"{error.strerror or 'cannot be read'}; check OTEL_SEALED_KNOWN",)
    except ValueError:
        losses, complaints = (), ("no UTF-8 text; save it as UTF-8",)
    for complaint in complaints[:_MOST_LINES]:
        _LOG.warning("known losses, %s: %s", path, complaint)
    return KnownLosses(losses)


def parse(text: str) -> tuple[tuple[Loss, ...], tuple[str, ...]]:
    """The entries that can be used, and a line on each that cannot."""
    losses: list[Loss] = []
    complaints: list[str] = []
    for number, table in enumerate(_tables(text), 1):
        fault = table if isinstance(table, str) else _fault(table)
        if fault:
            complaints.append(f"entry {number}: {fault}; the other entries are used")
        elif not isinstance(table, str):
            losses.append(_loss(table))
    if not losses and not complaints and text.strip():
        complaints.append("no entry in it; each begins with [[known]]")
    return tuple(losses), tuple(complaints)


def _tables(text: str) -> Iterator[Mapping[str, Any] | str]:
    """Every entry as a table. Where the file is no TOML, entry by entry, or what is wrong."""
    try:
        found = tomllib.loads(text).get(TABLE, [])
        yield from (x if isinstance(x, dict) else "write it under [[known]]" for x in _list(found))
        return
    except tomllib.TOMLDecodeError:
        pass
    starts = [match.start() for match in _HEADER.finditer(text)]
    if not starts:
        yield "no TOML; begin each entry with [[known]]"
        return
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        try:
            yield from tomllib.loads(text[start:end])[TABLE]
        except tomllib.TOMLDecodeError:
            line = text.count("\n", 0, start) + 1
            yield f"no TOML (it begins in line {line}); write each of its lines as key = value"


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _fault(table: Mapping[str, Any]) -> str:
    """What is wrong with an entry and how to mend it, or nothing."""
    for key in table:
        if key not in _REMEDIES:
            return f"{vocab.word(key)} is no key of an entry; take it out"
    for key, remedy in _REMEDIES.items():
        if key not in table and key not in _OPTIONAL:
            return f"{key} is missing; {remedy}"
        if key in table and not _fits(key, table[key]):
            return f"{key} cannot be used; {remedy}"
    return ""


def _fits(key: str, value: Any) -> bool:
    if key == "expires":
        return isinstance(value, date)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        return False
    if key == "fate":
        return value in _FATES
    return key not in ("artifact", "provider") or vocab.word(value) == value


def _loss(table: Mapping[str, Any]) -> Loss:
    expires = table["expires"]
    if isinstance(expires, datetime):
        expires = (expires.astimezone(UTC) if expires.tzinfo else expires).date()
    return Loss(**{**table, "fate": Fate(table["fate"]), "expires": expires})
