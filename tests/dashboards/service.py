"""A service for dashboards to look at: the traffic of the demo, in a process of its own.

`python service.py ARGUMENT...` takes the arguments of `otel-sealed demo`. With `FAULTY=1` in its
environment the core fails now and then, as no traffic makes it: faults of ours have panels too.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

FAULTY: Final = "FAULTY"
_EVERY: Final = 5


@contextmanager
def service(*arguments: str, faulty: bool = False, port: int = 0) -> Iterator[str]:
    """Traffic until the block ends; the `host:port` to scrape."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", FAULTY))}
    if faulty:
        environment |= {FAULTY: "1", "OTEL_SEALED_ERRORS_PER_MINUTE": "8"}
        environment["OTEL_SEALED_REST_SECONDS"] = "5"
    command = [sys.executable, str(Path(__file__).resolve()), "--traffic", "--scrape", str(port)]
    with subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
    ) as running:
        assert running.stdout is not None
        said = running.stdout.readline()
        found = re.search(r"http://(127\.0\.0\.1:\d+)/metrics", said)
        try:
            assert found is not None, said
            yield found[1]
        finally:
            running.terminate()
            running.communicate(timeout=60)


def main() -> int:
    """Run the demo, faulty or not."""
    from otel_sealed.cli import main as door
    from otel_sealed.tracker import Tracker

    if os.environ.get(FAULTY):
        observe, count = Tracker.observe, itertools.count(1)

        def observed(self: Tracker, exchange: Any) -> Any:
            if next(count) % _EVERY == 0:
                raise KeyError("made to fail")
            return observe(self, exchange)

        Tracker.observe = observed  # type: ignore[method-assign]
    return door(["demo", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
