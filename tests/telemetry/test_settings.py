from __future__ import annotations

import base64
import logging
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from otel_sealed.model import Fate
from otel_sealed.telemetry.known import parse
from otel_sealed.telemetry.settings import (
    Settings,
    decode_key,
    key_id_of,
    ledger_file,
    ledger_server,
    load,
    page,
    read,
    switched_off_by,
    takes,
)

KEY = bytes(range(200, 232))
SWITCHES = ("OTEL_SDK_DISABLED", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS")
PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"OTEL_SEALED_{name.upper()}", raising=False)
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)


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
        "LEDGER": "ledger.db",
        "REDIS_KEEPS_KEY": "true",
        "LEDGER_MAX_MB": "6",
        "LEDGER_MAX_DAYS": "4",
        "EVENTS_PER_HOUR": "0",
        "CONVERSATION_ATTRIBUTE": "session.id",
        "DIAGNOSE": "0",
        "KNOWN": "known.toml",
        "HTTP_HOOKS": "false",
        "KILL_FILE": "off",
        "ERRORS_PER_MINUTE": "7",
        "REST_SECONDS": "8",
        "FAMILIES": "families.toml",
        "FOLDER": "elsewhere",
        "FOLDER_MAX_MB": "9",
        "FOLDER_MAX_DAYS": "10",
        "DOCS": "https://docs.example/sealed",
    }
    assert {name.lower() for name in given} == set(Settings.model_fields)
    for name, value in given.items():
        monkeypatch.setenv(f"OTEL_SEALED_{name}", value)
    settings = load()
    assert settings.model_dump(exclude={"hash_key"}) == {
        "enabled": False,
        "key_id": "fleet-1",
        "max_turns": 5,
        "ledger": "ledger.db",
        "redis_keeps_key": True,
        "ledger_max_mb": 6,
        "ledger_max_days": 4,
        "events_per_hour": 0,
        "conversation_attribute": "session.id",
        "diagnose": False,
        "known": "known.toml",
        "families": "families.toml",
        "http_hooks": False,
        "kill_file": "off",
        "errors_per_minute": 7,
        "rest_seconds": 8,
        "folder": "elsewhere",
        "folder_max_mb": 9,
        "folder_max_days": 10,
        "docs": "https://docs.example/sealed",
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


@pytest.mark.parametrize(
    "given", ["javascript:alert(1)", "//host/docs", "https://host/a b", 'x"onclick="y', "x" * 201]
)
def test_the_place_of_the_pages_can_be_nothing_but_a_path_or_a_web_address(
    monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("OTEL_SEALED_DOCS", given)
    assert read()[0].docs == "docs"


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
        "invalid settings, their defaults are used: "
        "OTEL_SEALED_HASH_KEY (takes 16 to 64 bytes in hex or base64), "
        "OTEL_SEALED_MAX_TURNS (takes a whole number from 1 to 10000000)"
    )


def test_every_setting_may_be_nonsense_and_all_defaults_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    defaults = load()
    # what takes any text cannot be invalid
    free = {"ledger", "known", "families", "kill_file", "folder", "conversation_attribute"}
    for name in set(Settings.model_fields) - free:
        monkeypatch.setenv(f"OTEL_SEALED_{name.upper()}", "non sense!")
    settings, bad = read()
    assert (settings, set(bad)) == (defaults, set(Settings.model_fields) - free)


@pytest.mark.parametrize(
    ("name", "value", "off"),
    [
        ("OTEL_SDK_DISABLED", "true", True),
        ("OTEL_SDK_DISABLED", " True ", True),
        ("OTEL_SDK_DISABLED", "1", False),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "requests , otel_sealed", True),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "*", True),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "requests,otel_sealed_other", False),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "", False),
    ],
)
def test_the_switches_of_opentelemetry_turn_us_off(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, *, off: bool
) -> None:
    monkeypatch.setenv(name, value)
    assert load().enabled is not off
    assert Settings(enabled=True).enabled is not off
    assert switched_off_by({name: value}) == (name if off else "")


def test_the_page_is_up_to_date() -> None:
    remedy = "run: python -m otel_sealed.telemetry.settings > docs/settings.md"
    assert page() == PAGE.read_text("utf-8"), remedy


def test_the_page_has_every_setting_once_with_what_it_takes() -> None:
    for name, field in Settings.model_fields.items():
        (row,) = (x for x in page().splitlines() if x.startswith(f"| `OTEL_SEALED_{name.upper()}`"))
        assert takes(name) in row
        assert (field.description or "missing") in row


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


def test_the_entry_shown_on_the_page_is_one() -> None:
    (entry,) = re.findall(r"```toml\n(\[\[known.*?)```", page(), re.DOTALL)
    ((loss,), complaints) = parse(entry)
    assert (loss.fate, loss.service, complaints) == (Fate.DROPPED, "checkout", ())


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ("memory", ""),
        ("ledger.db", "ledger.db"),
        ("/var/lib/agents/ledger.db", "/var/lib/agents/ledger.db"),
        ("sqlite:///var/lib/agents/ledger.db", "/var/lib/agents/ledger.db"),
        ("sqlite://ledger.db", "ledger.db"),
    ],
)
def test_a_ledger_is_memory_or_a_file(
    monkeypatch: pytest.MonkeyPatch, given: str, file: str
) -> None:
    monkeypatch.setenv("OTEL_SEALED_LEDGER", given)
    settings, bad = read()
    assert (settings.ledger, ledger_file(settings.ledger), bad) == (given, file, ())


@pytest.mark.parametrize(
    "given", ["postgres://user:CANARY@host", "sqlite://", "redis://", "redis://h:CANARY", "://x"]
)
def test_any_other_ledger_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, given: str
) -> None:
    caplog.set_level(logging.WARNING, "otel_sealed")
    monkeypatch.setenv("OTEL_SEALED_LEDGER", given)
    assert load().ledger == "memory"
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        "invalid settings, their defaults are used: OTEL_SEALED_LEDGER"
        " (takes `memory`, a file, `sqlite://` and a file, or a `redis://` URL)"
    )


def test_a_server_is_named_without_its_credentials() -> None:
    given = "rediss://user:CANARY@cache.internal:6380/3"
    assert (ledger_server(given), ledger_file(given)) == ("cache.internal:6380", "")
    assert ledger_server("redis://cache") == "cache:6379"
    assert "CANARY" not in repr(Settings(ledger=given))
