"""Settings from the environment (`OTEL_SEALED_…`). A bad value costs one log line, never a call."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
from typing import Any

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from otel_sealed import vocab

_LOG = logging.getLogger(vocab.SCOPE)
PREFIX = "OTEL_SEALED_"
KEY_BYTES = range(16, 65)


class Settings(BaseSettings):
    """What an operator may decide. Every field is read somewhere; there is no other switch.

    Attributes:
        enabled: Off means nothing is patched and nothing is emitted.
        hash_key: 16 to 64 secret bytes in hex or base64; a random key per process without it.
        key_id: Name of that key in telemetry; derived from the key without it.
        max_turns: How many turns the ledger remembers.
        events_per_hour: Most log events a process emits in an hour; the rest are counted.
        conversation_attribute: Attribute of the active span that names the conversation.
        diagnose: Whether to say how a value changed, not only that it did.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    enabled: bool = True
    hash_key: SecretStr | None = None
    key_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]{1,40}$")
    max_turns: int = Field(default=20_000, ge=1, le=10_000_000)
    events_per_hour: int = Field(default=60, ge=0, le=100_000)
    conversation_attribute: str = Field(default=vocab.CONVERSATION_ID, min_length=1, max_length=100)
    diagnose: bool = True

    @field_validator("hash_key")
    @classmethod
    def _decodes(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(decode_key(value.get_secret_value())) not in KEY_BYTES:
            raise ValueError("16 to 64 bytes, in hex or base64")
        return value

    def key(self) -> bytes | None:
        """The configured key, decoded."""
        return None if self.hash_key is None else decode_key(self.hash_key.get_secret_value())


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
    try:
        return Settings()
    except ValidationError as error:
        bad = {str(item["loc"][0]).lower(): item["type"] for item in error.errors() if item["loc"]}
    named = ", ".join(f"{PREFIX}{name.upper()} ({why})" for name, why in sorted(bad.items()))
    _LOG.warning("invalid settings ignored, defaults used: %s", named)
    defaults: dict[str, Any] = {
        name: field.get_default(call_default_factory=True)
        for name, field in Settings.model_fields.items()
        if name in bad
    }
    return Settings(**defaults)
