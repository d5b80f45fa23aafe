"""A fault of the machine is named as such, with what to check; a fault of ours is ours."""

from __future__ import annotations

import errno
import sqlite3
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from otel_sealed.cli import faults, main


def raising(error: Exception) -> Callable[..., int]:
    def command(*_: object, **__: object) -> int:
        raise error

    return command


def said(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """The line that a command ends with which raises `error`."""
    monkeypatch.setattr("otel_sealed.cli.doctor.run", raising(error))
    assert main(["doctor"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "CANARY" in err) == ("", 1, False)
    return err


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "CANARY"), "no space is left on the disk"),
        (OSError(errno.EROFS, "CANARY"), "the file system is read-only"),
        (PermissionError(errno.EACCES, "CANARY"), "permission denied"),
        (OSError(errno.EMFILE, "CANARY"), "too many files are open"),
        (OSError(errno.ELOOP, "CANARY"), "a link is in the way, and links are not followed"),
        (BlockingIOError(errno.EAGAIN, "CANARY"), "no process or thread can be started"),
        (ssl.SSLError(1, "CANARY"), "TLS cannot be set up"),
        (MemoryError("CANARY"), "no memory is left"),
        (ModuleNotFoundError("CANARY", name="httpx"), "a package is missing"),
        (UnicodeEncodeError("ascii", "CANARY", 0, 1, "x"), "this terminal takes no Unicode"),
        (sqlite3.OperationalError("CANARY"), "SQLite cannot use its file"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_fault_of_the_machine_is_named_with_what_to_check(
    error: Exception,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = said(error, monkeypatch, capsys)
    assert line.startswith(f"otel-sealed: {says}: {type(error).__name__} at test_environment.py:")
    assert line.endswith(f" ({faults.remedy(error)})\n")


@pytest.mark.parametrize(
    "error", [KeyError("CANARY"), ImportError("CANARY", name="otel_sealed.cli.x")]
)
def test_a_fault_of_ours_is_ours(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = said(error, monkeypatch, capsys)
    assert line.startswith(f"otel-sealed: our own fault: {type(error).__name__} at test_environ")


def test_a_machine_without_ca_certificates_is_told_apart_from_a_missing_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a slim image, where the bundle that the environment or OpenSSL names is not there."""

    def command(*_: object, **__: object) -> int:
        ssl.create_default_context(cafile=Path("no", "such", "bundle"))
        return 0

    monkeypatch.setattr("otel_sealed.cli.doctor.run", command)
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err.startswith(
        "otel-sealed: this machine has no usable CA certificates: FileNotFoundError at ssl.py:"
    )
