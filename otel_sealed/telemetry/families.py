"""Models that read what others sealed: `OTEL_SEALED_FAMILIES` names a file the owner reviewed.

```toml
[[family]]
vendor = "openai"
producer = "gpt-5.6-sol*"  # the model that sealed; * stands for anything
reader = "gpt-5.6-*"       # the model that is asked next
reads = "read"             # or "dropped" (silently), or "refused"
platform = "azure.openai"  # may be left out: any platform
source = "measured: encrypted reasoning of 40 calls, input tokens alike"
checked = 2026-11-29
```

The rows go before the built-in table (`otel_sealed/providers/families.py`). What neither names is
unknown and accuses nobody. An entry that cannot be used is left out, and one line says why.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from otel_sealed import vocab
from otel_sealed.contract import Pair, Reads
from otel_sealed.telemetry.entries import Form

_READS: Final = tuple(word.value for word in Reads if word is not Reads.UNKNOWN)


def _fits(key: str, value: Any) -> bool:
    if key == "checked":
        return isinstance(value, date)
    if not isinstance(value, str):
        return False
    if key == "reads":
        return value in _READS
    return key not in ("vendor", "platform") or vocab.word(value) == value


FORM: Final = Form(
    table="family",
    title="model families",
    variable="OTEL_SEALED_FAMILIES",
    remedies={
        "vendor": 'name who makes the models, such as vendor = "openai"',
        "producer": 'give the model that sealed, such as producer = "gpt-5.6-sol*"',
        "reader": 'give the model that is asked next, such as reader = "gpt-5.6-*"',
        "reads": f"give one of {', '.join(_READS)}",
        "platform": 'give the platform, such as platform = "aws.bedrock", or leave it out',
        "source": "say where this comes from",
        "checked": "give the day of the review as a date, such as checked = 2026-11-29",
    },
    optional=("platform",),
    fits=_fits,
)


def read(path: str | Path | None) -> tuple[Pair, ...]:
    """The rows in a file; what of it cannot be used costs a log line, never more."""
    return tuple(pair(entry) for entry in FORM.read(path))


def pair(table: Mapping[str, Any]) -> Pair:
    """An entry that `FORM` found usable, as a row."""
    return Pair(
        vendor=table["vendor"],
        producer=_pattern(table["producer"]),
        reader=_pattern(table["reader"]),
        reads=Reads(table["reads"]),
        source=table["source"],
        platform=table.get("platform", ""),
    )


def _pattern(glob: str) -> str:
    """A regular expression for the whole name, where only `*`, `?` and `[…]` are special."""
    return rf"\A{fnmatch.translate(glob)}"
