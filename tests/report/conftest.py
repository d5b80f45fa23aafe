"""A record and its page, made once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session", name="record")
def _record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo leaves behind."""
    folder = tmp_path_factory.mktemp("record")
    command = [sys.executable, "-c", "from otel_sealed.cli import main; main(['demo'])"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / ".otel-sealed"
