"""The command line as a whole: version, a missing extra, our own faults, the provider."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from importlib.metadata import version

import pytest

from otel_sealed import cli
from otel_sealed.cli import main


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"otel-sealed {version('otel-sealed')}\n"


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("demo", "verify", "inspect", "provider", "run", "baseline", "doctor"):
        assert main([command, "--help"]) == 0
        assert command in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["verify"], ["inspect", "--nonsense"]])
def test_a_command_that_cannot_be_understood_exits_with_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == "rich" else object())
    assert main(["verify", "x"]) == 2
    expected = (
        "otel-sealed: the command line needs rich (python -m pip install 'otel-sealed[cli]')\n"
    )
    assert expected == capsys.readouterr().err


def test_our_own_fault_is_one_line_that_quotes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A traceback, or the message of an error, may hold what was read."""
    from otel_sealed.cli import verify

    def fails(*_args: object, **_options: object) -> int:
        raise RuntimeError("the prompt was CANARY")

    monkeypatch.setattr(verify, "run", fails)
    assert main(["verify", "x"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("otel-sealed: our own fault: RuntimeError at test_main.py:")
    assert "CANARY" not in err
    assert err.count("\n") == 1


def test_an_error_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the name of a file holds a line end or a terminal code."""
    assert main(["inspect", "no\nsuch \N{SNOWMAN}\x1b[31m"]) == 2
    err = capsys.readouterr().err
    assert err == "otel-sealed: no\\nsuch \N{SNOWMAN}\\x1b[31m: No such file or directory\n"


def test_the_provider_prints_its_url_and_serves_until_interrupted() -> None:
    code = "import sys; from otel_sealed.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "provider", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        body = json.dumps({"model": "claude-opus-5", "max_tokens": 9, "messages": []}).encode()
        request = urllib.request.Request(f"{url}/v1/messages", body)  # noqa: S310 - loopback
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=20) as response:
            answer = json.load(response)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=20)
    assert url.startswith("http://127.0.0.1:")
    assert answer["role"] == "assistant"
    assert (out, err, run.returncode) == ("", "", 0)


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["provider", "--port", str(port)]) == 2
    assert f"otel-sealed: port {port}: " in capsys.readouterr().err
