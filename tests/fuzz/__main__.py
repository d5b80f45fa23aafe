"""The fuzz job: every target in turn until the time is over.

    python -m tests.fuzz [--minutes 10] [--only bodies] [--seed N] [--database FOLDER]

Each round gives each target some examples under a seed of its own, which is printed. What escapes
is printed with the smallest example that shows it and kept in the database, so that the next run
begins with it; this run looks for no more of it. Status 1 if anything escaped.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.fuzz.targets import TARGETS, Target, quiet

SLICE_S = 12.0


def run(target: Target, number: int, database: Path, until: float) -> tuple[int, bool]:
    """(examples tried, whether none escaped) of one slice."""
    tried = 0
    end = min(until, time.monotonic() + SLICE_S)

    @seed(number)
    @settings(
        max_examples=1_000_000,
        deadline=None,
        database=DirectoryBasedExampleDatabase(database),
        suppress_health_check=list(HealthCheck),
        phases=[Phase.reuse, Phase.generate, Phase.shrink],
        print_blob=True,
    )
    @given(target.examples)
    def check(example: Any) -> None:
        nonlocal tried
        if time.monotonic() > end and not failed:
            raise KeyboardInterrupt
        tried += 1
        try:
            with quiet():
                target.check(example)
        except Exception:
            failed.append(None)
            raise

    failed: list[None] = []
    try:
        check()
    except KeyboardInterrupt:
        return tried, True
    except Exception:  # noqa: BLE001 - whatever it is, it escaped
        traceback.print_exc()
        return tried, False
    return tried, True


def main(arguments: list[str]) -> int:
    """Fuzz until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", choices=[target.name for target in TARGETS])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--database", type=Path, default=Path(".hypothesis/fuzz"))
    given_ = parser.parse_args(arguments)
    until = time.monotonic() + 60 * given_.minutes
    waiting = [t for t in TARGETS if given_.only in {None, t.name}]
    tried: Counter[str] = Counter()
    escaped: list[str] = []
    print(f"seed {given_.seed}", flush=True)
    number = given_.seed
    while waiting and time.monotonic() < until:
        for target in list(waiting):
            count, well = run(target, number, given_.database, until)
            tried[target.name] += count
            print(f"{target.name}: {count} examples, seed {number}", flush=True)
            if not well:
                escaped.append(target.name)
                waiting.remove(target)
            number += 1
    print("; ".join(f"{count} of {name}" for name, count in tried.items()))
    print(f"escapes: {', '.join(escaped) or 'none'}")
    return int(bool(escaped))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
