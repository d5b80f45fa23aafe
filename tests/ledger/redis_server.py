"""A server that speaks Redis on loopback.

In Python by default. Where `REQUIRE_REDIS` is set, as `.ci/run stores` does, it is a real Redis or
Valkey, started and ended by the test; what only a real one can show is skipped without it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import redis
from fakeredis import TcpFakeServer

REAL: Final = bool(os.environ.get("REQUIRE_REDIS"))
needs_real = pytest.mark.skipif(not REAL, reason="REQUIRE_REDIS is not set")
_TRIES: Final = 200
_TRY_S: Final = 0.05


def free_port() -> int:
    """A port of the loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RealServer:
    """A process of `redis-server` or `valkey-server`, which keeps nothing on disk."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        """It answers when this returns; one that wants a password does, too."""
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            pytest.fail("neither redis-server nor valkey-server is installed")
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        base = ("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(folder))
        quiet = ("--save", "", "--appendonly", "no", "--logfile", str(folder / "log"))
        self.process = subprocess.Popen([program, *base, *quiet, *options])
        pause = threading.Event()
        for _ in range(_TRIES):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            pause.wait(_TRY_S)
        pytest.fail("the server does not answer")

    def client(self) -> Any:
        """A client of its own, without the bounds of ours."""
        return redis.Redis(port=self.port)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self.process.kill()
        self.process.wait()


@contextmanager
def real_server(*options: str) -> Iterator[RealServer]:
    """A real server for one test."""
    with TemporaryDirectory() as folder:
        server = RealServer(Path(folder), *options)
        try:
            yield server
        finally:
            server.kill()


@contextmanager
def redis_server() -> Iterator[str]:
    """Its URL."""
    if REAL:
        with real_server() as real:
            yield real.url
        return
    with TcpFakeServer(("127.0.0.1", 0)) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"redis://127.0.0.1:{serving.server_address[1]}"
        finally:
            serving.shutdown()
            thread.join()
