from __future__ import annotations

import importlib
import pkgutil

import pytest

from otel_sealed import providers, vocab
from otel_sealed.contract import Dialect
from otel_sealed.model import Role


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("messages.7.content.16", "messages.7.content.16"),
        ("contents.1.parts.0.thoughtSignature", "contents.1.parts.0.thoughtSignature"),
        ("messages.0.SecretKey", "messages.0.other"),
        ("a." * 40, "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_path_shows_words_only(given: str | None, shown: str) -> None:
    assert vocab.path(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("claude-opus-5", "claude-opus-5"),
        ("ft:gpt-4o-2024-08-06:acme::x1", "ft:gpt-4o-2024-08-06:acme::x1"),
        ("A" * 33, "other"),
        ("two words", "other"),
        ("", ""),
        (5, ""),
    ],
)
def test_a_model_name_has_no_part_of_a_blobs_length(given: object, shown: str) -> None:
    assert vocab.model_name(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("API.anthropic.com:443", "api.anthropic.com"),
        ("user:pw@proxy.local", "proxy.local"),
        ("http://x/y", "http"),
        ("a b", ""),
        ("a." * 400 + "com", ""),
        (None, ""),
    ],
)
def test_a_host_has_neither_port_nor_credentials(given: object, shown: str) -> None:
    assert vocab.host_name(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("masked within 2048-2560 of 4096", "masked within 2048-2560 of 4096"),
        ("2.0\u20132.5 KiB", "2.0\u20132.5 KiB"),
        ("EqQBCkYIBxgCKkCanaryCanary", ""),
        ("line\nbreak", ""),
        (b"bytes", ""),
    ],
)
def test_a_phrase_is_short_words(given: object, shown: str) -> None:
    assert vocab.phrase(given) == shown


@pytest.mark.parametrize(
    ("artifact", "seal"),
    [
        ("anthropic.thinking.signature", True),
        ("gemini.part.thought_signature", True),
        ("newvendor.block.encrypted_content", True),
        ("anthropic.thinking.text", False),
        ("openai.reasoning.id", False),
        ("request.prefix", False),
        ("newvendor.block.something", False),
    ],
)
def test_only_opaque_values_count_as_seals(artifact: str, seal: bool) -> None:  # noqa: FBT001
    assert vocab.is_seal(artifact) is seal


def _artifacts() -> dict[str, bool]:
    """Every artifact of every provider file, and whether it is a seal there."""
    found: dict[str, bool] = {}
    for module in pkgutil.iter_modules(providers.__path__, providers.__name__ + "."):
        for thing in vars(importlib.import_module(module.name)).values():
            if isinstance(thing, Dialect):
                for carrier in thing.carriers.values():
                    found |= {f.artifact: f.role is Role.SEAL for f in carrier.fields}
                    found |= dict.fromkeys({carrier.envelope, carrier.orphan} - {""}, False)
    return found


def test_every_artifact_of_a_provider_file_is_in_the_vocabulary() -> None:
    known = vocab.SEALS | vocab.COMPANIONS | vocab.CIRCUMSTANCES
    assert set(_artifacts()) - known == set()


def test_the_vocabulary_and_the_provider_files_agree_on_what_is_a_seal() -> None:
    assert {name: vocab.is_seal(name) for name in _artifacts()} == _artifacts()
