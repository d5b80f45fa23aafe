"""The key of a record folder."""

from __future__ import annotations

import stat
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from otel_sealed.cli import key
from otel_sealed.telemetry.settings import Settings


def test_a_key_is_made_once_and_only_for_its_owner(tmp_path: Path) -> None:
    made = key.shared(tmp_path)
    assert (made, made) == (key.shared(tmp_path), key.read(tmp_path))
    assert len(made) == 32
    assert [tmp_path / "key"] == list(tmp_path.iterdir())
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_processes_that_make_one_at_the_same_time_get_the_same(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        keys = set(pool.map(key.shared, [tmp_path] * 16))
    assert keys == {key.read(tmp_path)}
    assert [tmp_path / "key"] == list(tmp_path.iterdir())


def test_what_is_no_key_counts_as_none(tmp_path: Path) -> None:
    assert key.read(tmp_path) == b""
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    assert key.read(tmp_path) == b""
    (tmp_path / "key").write_text("abcd", "ascii")
    assert key.read(tmp_path) == b""


def test_a_key_that_the_environment_names_is_kept(tmp_path: Path) -> None:
    named = Settings(hash_key="00" * 16)  # type: ignore[arg-type]
    assert key.keyed(named, tmp_path) is named
    assert list(tmp_path.iterdir()) == []


def test_a_folder_gives_its_key_where_none_is_named(tmp_path: Path) -> None:
    assert key.shared(tmp_path) == key.keyed(Settings(), tmp_path).key()
