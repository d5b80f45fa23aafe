"""Draws every dashboard for healthy traffic, an incident and no data.

`python -m tests.dashboards.pictures` writes `docs/pictures/` from real traffic, a real Prometheus
and Grafana's own front-end libraries in a real browser, which `.ci/run pictures` installs. It takes
about six minutes, most of them waiting for traffic.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.dashboards.prometheus import Prometheus, free_port, prometheus
from tests.dashboards.service import service

ROOT: Final = Path(__file__).resolve().parents[2]
RENDER: Final = ROOT / "dashboards" / "pictures" / "render.mjs"
DASHBOARDS: Final = ROOT / "dashboards" / "grafana"
PICTURES: Final = ROOT / "docs" / "pictures"
SCRAPE_S: Final = 2
HEALTHY_S: Final = 130
INCIDENT_S: Final = 110


def draw(source: Prometheus, scene: str, range_s: int) -> None:
    """One picture of each dashboard, of the last seconds."""
    node = shutil.which("node")
    assert node is not None, "node is not installed"
    pairs = []
    for path in sorted(DASHBOARDS.iterdir()):
        pairs += [str(path), str(PICTURES / f"{path.stem}-{scene}.png")]
    now = int(time.time())
    command = [node, str(RENDER), source.url, str(now - range_s), str(now), str(SCRAPE_S), *pairs]
    subprocess.run(command, check=True, timeout=600)


def say(text: str) -> None:
    """What takes its time now."""
    sys.stderr.write(f"{text}\n")


def main() -> int:
    """All scenes, one after the other."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    faithful = ("--rate", "3", "--faithful")
    late = free_port()
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as empty:
        with prometheus(Path(empty), {}) as nothing:
            draw(nothing, "no-data", 120)
        with (
            service(*faithful, "--seed", "1") as search,
            service(*faithful, "--seed", "2") as agents,
            prometheus(
                Path(name),
                {"search": [search], "agents": [agents, f"127.0.0.1:{late}"]},
                every=f"{SCRAPE_S}s",
            ) as source,
        ):
            say(f"healthy traffic, {HEALTHY_S} seconds")
            time.sleep(HEALTHY_S)
            draw(source, "healthy", HEALTHY_S)
            say(f"a new version of one service loses what it is given, {INCIDENT_S} seconds")
            begun = time.time()
            with service("--rate", "3", port=late):
                time.sleep(INCIDENT_S)
                draw(source, "incident", int(time.time() - begun) + 60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
