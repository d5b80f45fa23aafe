from __future__ import annotations

import base64
import logging

import pytest
from pydantic import ValidationError

from otel_sealed.telemetry.settings import Settings, decode_key, key_id_of, load

KEY = bytes(range(200, 232))


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"OTEL_SEALED_{name.upper()}", raising=False)


def test_defaults_need_no_environment() -> None:
    settings = load()
    assert settings.enabled is True
    assert settings.key() is None
    assert settings.max_turns == 20_000
    assert settings.events_per_hour == 60
    assert settings.conversation_attribute == "gen_ai.conversation.id"
    assert settings.diagnose is True


def test_every_setting_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "ENABLED": "false",
        "HASH_KEY": KEY.hex(),
        "KEY_ID": "fleet-1",
        "MAX_TURNS": "5",
        "EVENTS_PER_HOUR": "0",
        "CONVERSATION_ATTRIBUTE": "session.id",
        "DIAGNOSE": "0",
    }
    assert {name.lower() for name in given} == set(Settings.model_fields)
    for name, value in given.items():
        monkeypatch.setenv(f"OTEL_SEALED_{name}", value)
    settings = load()
    assert settings.model_dump(exclude={"hash_key"}) == {
        "enabled": False,
        "key_id": "fleet-1",
        "max_turns": 5,
        "events_per_hour": 0,
        "conversation_attribute": "session.id",
        "diagnose": False,
    }
    assert settings.key() == KEY


@pytest.mark.parametrize(
    "spelt",
    [
        KEY.hex(),
        KEY.hex().upper(),
        base64.b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode().rstrip("="),
    ],
)
def test_a_key_may_be_hex_or_base64(spelt: str) -> None:
    assert decode_key(spelt) == KEY


def test_bad_values_cost_one_line_without_the_values(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_SEALED_HASH_KEY", "tooshortsecret!!")
    monkeypatch.setenv("OTEL_SEALED_MAX_TURNS", "minus one")
    monkeypatch.setenv("OTEL_SEALED_KEY_ID", "kept")
    caplog.set_level(logging.WARNING, "otel_sealed")
    settings = load()
    assert (settings.key(), settings.max_turns, settings.key_id) == (None, 20_000, "kept")
    (record,) = caplog.records
    assert record.getMessage() == (
        "invalid settings ignored, defaults used: OTEL_SEALED_HASH_KEY (value_error), "
        "OTEL_SEALED_MAX_TURNS (int_parsing)"
    )


@pytest.mark.parametrize("length", [0, 1, 15, 65])
def test_a_key_of_the_wrong_length_is_refused_and_not_shown(length: int) -> None:
    secret = (b"\xab" * length).hex() or "zz"
    with pytest.raises(ValidationError) as refused:
        Settings(hash_key=secret)  # type: ignore[arg-type]
    assert secret not in str(refused.value)


def test_the_key_is_not_in_the_repr() -> None:
    settings = Settings(hash_key=KEY.hex())  # type: ignore[arg-type]
    assert KEY.hex() not in repr(settings)
    assert KEY.hex() not in str(settings.model_dump())


def test_settings_are_frozen_and_ignore_what_they_do_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SEALED_FUTURE", "1")
    settings = load()
    with pytest.raises(ValidationError):
        settings.enabled = False  # type: ignore[misc]


def test_an_empty_variable_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SEALED_MAX_TURNS", "")
    assert load().max_turns == 20_000


def test_the_key_id_is_the_same_for_the_same_key_and_no_part_of_it() -> None:
    assert key_id_of(KEY) == key_id_of(bytes(KEY))
    assert key_id_of(KEY) != key_id_of(KEY[::-1])
    assert len(key_id_of(KEY)) == 8
    assert key_id_of(KEY) not in KEY.hex()
