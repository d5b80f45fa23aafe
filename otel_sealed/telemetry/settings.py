"""Settings from the environment (`OTEL_SEALED_…`). A bad value costs one log line, never a call.

`python -m otel_sealed.telemetry.settings > docs/settings.md` renders the page of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from otel_sealed import vocab

_LOG = logging.getLogger(vocab.SCOPE)
PREFIX = "OTEL_SEALED_"
KEY_BYTES = range(16, 65)
MEMORY: Final = "memory"
LEDGERS: Final = ("sqlite", "redis", "rediss")
"""Schemes of shared ledgers."""
_SERVERS: Final = ("redis://", "rediss://")
NAME: Final = "otel_sealed"
"""Our name among instrumentations."""


class Settings(BaseSettings):
    """What an operator may decide. Every field is read somewhere; there is no other switch.

    `description` is the meaning of a field on the page; `title` is what it takes, where its type
    does not say so.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    enabled: bool = Field(default=True, description="off: nothing is patched, nothing is emitted")
    hash_key: SecretStr | None = Field(
        default=None,
        title="16 to 64 bytes in hex or base64",
        description="the secret key of all digests, the same for a whole fleet; without it every"
        " process has a random one",
    )
    key_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_.-]{1,40}$",
        title="1 to 40 of A-Z a-z 0-9 _ . -",
        description="the name of that key in telemetry",
    )
    max_turns: int = Field(
        default=20_000, ge=1, le=10_000_000, description="how many turns are remembered"
    )
    ledger: str = Field(
        default="memory",
        min_length=1,
        title="`memory`, a file, `sqlite://` and a file, or a `redis://` URL",
        description="where they are remembered: in each process alone, or in a SQLite file that the"
        " processes of one machine share, on a local disk, or in Redis",
        repr=False,
    )
    redis_keeps_key: bool = Field(
        default=False,
        description="keep the key of the digests in Redis where none is configured: whoever may"
        " read that server has it then",
    )
    ledger_max_mb: int = Field(
        default=64,
        ge=1,
        le=1_000_000,
        description="most megabytes they take, in memory and in such a file; the oldest go first",
    )
    ledger_max_days: int = Field(
        default=7, ge=1, le=3_650, description="days after which a turn in such a file goes"
    )
    events_per_hour: int = Field(
        default=60,
        ge=0,
        le=100_000,
        description="most log events a process emits in an hour; the rest are counted",
    )
    conversation_attribute: str = Field(
        default=vocab.CONVERSATION_ID,
        min_length=1,
        max_length=100,
        title="the name of an attribute",
        description="attribute of the active span that names the conversation",
    )
    diagnose: bool = Field(
        default=True, description="say how a value changed, not only that it did"
    )
    known: str = Field(
        default="",
        title="a file",
        description="TOML file of losses that are accepted for now: they raise no event and no"
        " alert; `otel-sealed baseline` writes one",
    )
    families: str = Field(
        default="",
        title="a file",
        description="TOML file of models that read what others sealed, beside the built-in table",
    )
    http_hooks: bool = Field(
        default=True,
        description="notice calls that pass outside of the SDKs at HTTP clients, or observe them"
        " where `http` is instrumented; off: no HTTP client is wrapped",
    )
    kill_file: str = Field(
        default="",
        title="a file",
        description="while this file exists calls go through unobserved; looked at every second"
        " or so, by a thread that starts after the first call",
    )
    errors_per_minute: int = Field(
        default=30,
        ge=0,
        le=1_000_000,
        description="more faults of our own in a minute, and calls go through unobserved for a"
        " while",
    )
    rest_seconds: int = Field(
        default=300, ge=1, le=86_400, description="how many seconds that while lasts"
    )
    folder: str = Field(
        default=".otel-sealed",
        min_length=1,
        title="a folder",
        description="where `otel-sealed run` records while no exporter is configured",
    )
    folder_max_mb: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="most megabytes in that folder; the oldest files go first",
    )
    folder_max_days: int = Field(
        default=7, ge=1, le=3_650, description="days after which a file in that folder goes"
    )
    docs: str = Field(
        default="docs",
        max_length=200,
        pattern=r"^(?:https?://[\w.:~/%@+-]+|/?[\w.~-][\w.~/-]*)$",
        title="a folder or a URL",
        description="where the pages of `docs/` are: what the command line says of a rule names"
        " its place there, and a report links to it where this is set",
    )

    @field_validator("hash_key")
    @classmethod
    def _decodes(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(decode_key(value.get_secret_value())) not in KEY_BYTES:
            raise ValueError("16 to 64 bytes, in hex or base64")
        return value

    @field_validator("ledger")
    @classmethod
    def _known_ledger(cls, value: str) -> str:
        scheme, colon, _ = value.partition("://")
        if colon and (scheme not in LEDGERS or not (ledger_file(value) or ledger_server(value))):
            raise ValueError("no such ledger")
        return value

    @field_validator("enabled")
    @classmethod
    def _everybodys_switches(cls, value: bool) -> bool:  # noqa: FBT001 - pydantic calls it so
        return value and not switched_off_by(os.environ)

    def key(self) -> bytes | None:
        """The configured key, decoded."""
        return None if self.hash_key is None else decode_key(self.hash_key.get_secret_value())


def ledger_file(ledger: str) -> str:
    """The file that a `ledger` setting names; nothing where it names none."""
    if ledger == MEMORY or ledger.startswith(_SERVERS):
        return ""
    return ledger.removeprefix("sqlite://")


def ledger_server(ledger: str) -> str:
    """The server that a `ledger` setting names, without credentials; nothing where it does not."""
    _, _, rest = ledger.partition("://")
    if not ledger.startswith(_SERVERS) or not rest:
        return ""
    place = urlsplit(ledger)
    return f"{place.hostname or 'localhost'}:{place.port or 6379}"


def switched_off_by(environ: Mapping[str, str]) -> str:
    """The switch of OpenTelemetry's own that turns us off, or nothing."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "OTEL_SDK_DISABLED"
    listed = environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    if {"*", NAME} & {name.strip() for name in listed}:
        return "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
    return ""


def decode_key(text: str) -> bytes:
    """Bytes of a key spelt in hex or (URL-safe) base64; empty if it is neither."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        pass
    plain = text.strip().translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def key_id_of(key: bytes) -> str:
    """A short public name of a key: the same wherever the key is the same."""
    return hmac.new(key, b"otel_sealed key id", hashlib.sha256).hexdigest()[:8]


def load() -> Settings:
    """Settings of the environment; every invalid one is named in one line and keeps its default."""
    settings, bad = read()
    if bad:
        named = ", ".join(f"{PREFIX}{name.upper()} (takes {takes(name)})" for name in bad)
        _LOG.warning("invalid settings, their defaults are used: %s", named)
    return settings


def read() -> tuple[Settings, tuple[str, ...]]:
    """Settings of the environment, and which of them were invalid; says nothing."""
    try:
        return Settings(), ()
    except ValidationError as error:
        named = {str(item["loc"][0]).lower() for item in error.errors() if item["loc"]}
    bad = sorted(named & set(Settings.model_fields))
    defaults: dict[str, Any] = {name: Settings.model_fields[name].default for name in bad}
    return Settings(**defaults), tuple(bad)


# ---------------------------------------------------------------------------------- for people


def takes(name: str) -> str:
    """What a setting takes, in words."""
    field = Settings.model_fields[name]
    if field.annotation is bool:
        return "`true` or `false`"
    if field.annotation is int:
        low = next(m.ge for m in field.metadata if hasattr(m, "ge"))
        high = next(m.le for m in field.metadata if hasattr(m, "le"))
        return f"a whole number from {low} to {high}"
    return field.title or "text"


def default_of(name: str) -> str:
    """The default of a setting, in words."""
    special = {"hash_key": "random", "key_id": "from the key"}
    default = Settings.model_fields[name].default
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return special.get(name, f"`{default}`" if default != "" else "none")


_PAGE: Final = """\
# Settings

Rendered from `otel_sealed/telemetry/settings.py` by `python -m otel_sealed.telemetry.settings`.

Environment variables, read once when a process is instrumented. An empty one is not set. One that
is invalid keeps its default, and one log line says so.

| Variable | Default | Takes | Meaning |
| --- | --- | --- | --- |
{rows}

OpenTelemetry's own switches are honoured, too, before anything is patched:
`OTEL_SDK_DISABLED=true`, and `OTEL_PYTHON_DISABLED_INSTRUMENTATIONS` where it lists `otel_sealed`
or is `*`. A call that the application makes under OpenTelemetry's suppression keys goes through
unobserved. Where another tracer sets them around the request of the SDK, to keep others from
opening a second span (logfire), the call is observed, and written on that tracer's span.

## A shared ledger

Where several processes serve one conversation, `OTEL_SEALED_LEDGER` names a file in which they
remember together; without it what another process received is `unknown`. `otel-sealed run` keeps
such a file, `ledger.sqlite`, in its folder unless this variable is set, so that a conversation that
a later run resumes is judged. The file has mode 0600
and holds what the memory of a process holds, packed: digests, sizes and places, never a value. It
also holds a key, which its processes share unless `OTEL_SEALED_HASH_KEY` is set or they record into
one folder. Calls do not wait for it: it is written by a thread of its own, commonly a millisecond
later. A file that is locked, full, damaged or not to be written costs one log line, the memory of
the process stands in, and each failure counts into `otel_sealed.internal.errors`.

A symbolic link is refused as such a file; a folder above it may be one.

A Redis URL (`otel-sealed[redis]`) does the same for several machines. Reading there waits at most
50 ms for an answer to begin, and 250 ms for all of it. Set `OTEL_SEALED_HASH_KEY`, the same
everywhere: without a shared key no process can join what another one recorded, and one log line
says so. `OTEL_SEALED_REDIS_KEEPS_KEY=true` has Redis keep a random key instead, for everybody who
may read that server.

Nothing in a shared ledger is believed without a MAC under that key. Who may write the file or the
server, and has no key, can make values `unknown`, and change no verdict (SECURITY.md). What is
ignored so is counted into `otel_sealed.internal.errors` as `Corrupt`, and one log line says so. So
is a turn whose time is more than a day ahead of the reader's clock, unknown.

Bounds, in memory and in a file: `OTEL_SEALED_MAX_TURNS` turns and `OTEL_SEALED_LEDGER_MAX_MB`
megabytes, whichever comes first; a sealed value takes less than 400 bytes of memory, with its
companions and the index, and about 500 of a file. In memory the least
recently used turn goes first, in a file the oldest, and there also what is older than
`OTEL_SEALED_LEDGER_MAX_DAYS`. In Redis turns and days are bounded, megabytes by the server's own
`maxmemory`. What went counts into `otel_sealed.ledger.evictions`; it is `unknown`
from then on. A key that many turns have, such as a seal that never changes, names the newest 16.

## Known losses

`OTEL_SEALED_KNOWN` names a TOML file of losses that are accepted for now; `otel-sealed baseline`
writes one from a recorded run. A known loss keeps its fate and its verdict, and its span says
`otel_sealed.known`. It raises no event and no alert, and counts into
`otel_sealed.violations.known` instead of `otel_sealed.violations`. Behind its last day (UTC) an
entry alerts again. `model` (a name or the base of one) and `service` may be left out:

```toml
[[known]]
artifact = "anthropic.redacted_thinking.data"
fate = "dropped"
provider = "anthropic"
model = "claude-opus-5"
service = "checkout"
reason = "the framework filters block types, its issue 123"
expires = 2027-02-27
```

## Model families

`OTEL_SEALED_FAMILIES` names a TOML file of models that read what others sealed, as far as the
built-in table does not know it or knows it otherwise. `reads` is `read`, `dropped` (silently) or
`refused`; `platform` may be left out. `*` stands for anything in the names of models:

```toml
[[family]]
vendor = "openai"
producer = "gpt-5.6-sol*"
reader = "gpt-5.6-*"
reads = "read"
platform = "azure.openai"
source = "measured: encrypted reasoning of 40 calls, input tokens alike"
checked = 2026-11-29
```
"""


def page() -> str:
    """`docs/settings.md` as text."""
    rows = "\n".join(
        f"| `{PREFIX}{name.upper()}` | {default_of(name)} | {takes(name)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    )
    return _PAGE.format(rows=rows)


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - `python -m otel_sealed.telemetry.settings > docs/settings.md`
