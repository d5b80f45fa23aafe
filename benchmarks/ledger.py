"""What the ledger costs: bytes a sealed value, and microseconds a turn, measured.

    python benchmarks/ledger.py [--seals 1000000] [--json]

Records turns of three or four sealed values with their companions, windows, ids and prefixes, made
of fresh digests as a wire would bring them, under a bound that holds them all; then as many again
under a bound that does not. Bytes are what the process grew by (resident, after a collection), held
against what the ledger says of itself. The clock is the CPU time of the process. A million seals
take about half a GB and a few minutes.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from otel_sealed.ledger import sqlite
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.model import Block, Head, Kind, Role, Shadow, State, Turn, Value

RANDOM = random.Random(7)
PROBES = 20_000
FLUSH = 100


def digest() -> bytes:
    """A digest of its own."""
    return RANDOM.randbytes(16)


def thinking(place: int) -> Block:
    """A thought with its signature: a seal, the text it signs, the shadow of that."""
    text = digest()
    chars = RANDOM.randrange(300, 4_000)
    return Block(
        "thinking",
        Kind.REASONING,
        f"content.{place}",
        values=(
            seal("anthropic.thinking.signature"),
            Value(
                "anthropic.thinking.text",
                Role.SIGNED,
                State.PRESENT,
                digest(),
                b"",
                chars,
                RANDOM.randbytes(72),
            ),
        ),
        payload=text,
        payload_chars=chars,
        shadows=(Shadow(text, chars),),
    )


def redacted(place: int) -> Block:
    """Redacted thinking: a seal and nothing else."""
    value = seal("anthropic.redacted_thinking.data")
    return Block("redacted_thinking", Kind.REASONING, f"content.{place}", values=(value,))


def seal(artifact: str) -> Value:
    """A sealed value of a few KB."""
    size = RANDOM.randrange(400, 8_000)
    return Value(artifact, Role.SEAL, State.PRESENT, digest(), digest(), size, RANDOM.randbytes(72))


def call(place: int) -> Block:
    """A tool call with its id."""
    return Block(
        "tool_use",
        Kind.CALL,
        f"content.{place}",
        anchors=(digest(),),
        payload=digest(),
        payload_chars=RANDOM.randrange(10, 500),
    )


TOOLS = [digest() for _ in range(20)]
ACCOUNTS = [digest() for _ in range(3)]


@dataclass
class Conversation:
    """What the turns of one conversation share."""

    key: bytes
    head: Head
    account: bytes
    parent: int = -1
    told: int = 0


def conversation() -> Conversation:
    """A new one: tools and credentials are those of a few applications."""
    head = Head((("system", digest()), ("tools", RANDOM.choice(TOOLS))))
    return Conversation(digest(), head, RANDOM.choice(ACCOUNTS))


def turn(talk: Conversation, number: int) -> Turn:
    """A turn of three or four seals: two or three thoughts, one of them redacted, and a call."""
    thoughts = 3 + number % 2
    blocks = [redacted(1) if place == 1 else thinking(place) for place in range(thoughts)]
    blocks.append(call(thoughts))
    return Turn(
        exchange=number,
        blocks=tuple(blocks),
        path="",
        dialect="anthropic",
        vendor="anthropic",
        platform="anthropic",
        host="api.anthropic.com",
        account=talk.account,
        model="claude-opus-5",
        thinking=True,
        stop="tool_use",
        response_key=digest(),
        conversation=talk.key,
        chain=digest(),
        prefix=(digest(),),
        prefix_shared=talk.told,
        told=digest(),
        head=talk.head,
        origin=RANDOM.randbytes(24),
        parent=talk.parent,
    )


def resident() -> int:
    """Bytes of memory the process has, now; where nobody says, the most it had."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


@dataclass
class Spent:
    """CPU seconds and how often."""

    seconds: float = 0.0
    times: int = 0

    def micros(self) -> float:
        """Microseconds each."""
        return round(1e6 * self.seconds / max(self.times, 1), 1)


def fill(ledger: MemoryLedger, seals: int, *, progress: str) -> tuple[int, Spent]:
    """Record turns until that many seals came; how many did, and the time it took."""
    came, number, spent, shown = 0, 0, Spent(), 0.0
    talk = conversation()
    while came < seals:
        if number % 12 == 0:
            talk = conversation()
        made = turn(talk, number)
        began = time.process_time()
        recorded = ledger.record(made)
        spent.seconds += time.process_time() - began
        talk.parent, talk.told = recorded.number, talk.told + 1
        came += sum(len(block.seals()) for block in made.blocks)
        number += 1
        if sys.stderr.isatty() and time.monotonic() - shown > 1:
            shown = time.monotonic()
            print(f"\r{progress}: {100 * came // seals} %", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    spent.times = number
    return came, spent


def lookups(ledger: MemoryLedger, newest: int) -> dict[str, float]:
    """CPU microseconds of lookups that hit and miss, and of turns that are warm and not."""
    cold = [RANDOM.randrange(max(newest - len(ledger), 0), newest) for _ in range(PROBES)]
    chains = [found.chain for n in cold[:2_000] if (found := ledger.get(n)) is not None]
    timed = {
        "lookup hit": lambda n: ledger.lookup(chains[n % len(chains)]),
        "lookup miss": lambda _n: ledger.lookup(b"no such digest !"),
        "get warm": lambda _n: ledger.get(newest),
        "get cold": lambda n: ledger.get(cold[n]),
    }
    told = {}
    ledger.get(newest)
    for name, work in timed.items():
        began = time.process_time()
        for number in range(PROBES):
            work(number)
        told[name] = Spent(time.process_time() - began, PROBES).micros()
    return told


def unbounded(seals: int) -> dict[str, object]:
    """What that many take where all of them are held."""
    gc.collect()
    before = resident()
    ledger = MemoryLedger(seals // 3, max_bytes=2**40)
    came, spent = fill(ledger, seals, progress="recording")
    gc.collect()
    grown = resident() - before
    return {
        "seals": came,
        "turns": len(ledger),
        "bytes a seal, measured": round(grown / came),
        "bytes a seal, as the ledger counts": round(ledger.size / came),
        "megabytes measured": round(grown / 2**20, 1),
        "megabytes as the ledger counts": round(ledger.size / 2**20, 1),
        "us a record": spent.micros(),
        **{f"us a {name}": us for name, us in lookups(ledger, spent.times - 1).items()},
    }


def bounded(seals: int) -> dict[str, object]:
    """What they take under a bound of a quarter of that."""
    bound = max(seals * 100, 2**20)
    gc.collect()
    before = resident()
    ledger = MemoryLedger(seals // 3, max_bytes=bound)
    _, spent = fill(ledger, seals, progress="recording under a bound")
    gc.collect()
    return {
        "bound in megabytes": round(bound / 2**20, 1),
        "megabytes under the bound, as the ledger counts": round(ledger.size / 2**20, 1),
        "megabytes under the bound, measured": round((resident() - before) / 2**20, 1),
        "turns evicted": ledger.evicted,
        "us a record that evicts": spent.micros(),
    }


def shared(seals: int) -> dict[str, object]:
    """A SQLite ledger: what a call pays, what its writer pays, and what another process does."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        bounds = (seals, 2**40, 86_400.0)
        ledger = sqlite.opened(path, *bounds)
        talk, made = conversation(), []
        paid, whole = Spent(), Spent()
        for number in range(max(seals // 100, 200)):
            made.append(turn(talk, number))
            began, all_began = time.thread_time(), time.process_time()
            talk.parent = ledger.record(made[-1]).number
            paid.seconds += time.thread_time() - began
            if number % FLUSH == 0:
                ledger.flush(60.0)
            whole.seconds += time.process_time() - all_began
        paid.times = whole.times = len(made)
        ledger.flush(60.0)
        there = sqlite.opened(path, *bounds)
        began = time.process_time()
        found = [there.lookup(one.chain)[0] for one in made]
        looked = Spent(time.process_time() - began, len(made))
        began = time.process_time()
        missing = [number for number in found if there.get(number) is None]
        got = Spent(time.process_time() - began, len(made) - len(missing))
        for one in (ledger, there):
            one.close()
        size = path.stat().st_size
    seals = sum(len(block.seals()) for one in made for block in one.blocks)
    return {
        "shared: us a record in the call": paid.micros(),
        "shared: us a record, the writer's included": whole.micros(),
        "shared: us a lookup of another process": looked.micros(),
        "shared: us a get of another process": got.micros(),
        "shared: bytes of the file a seal": round(size / seals),
    }


def measure(seals: int) -> dict[str, object]:
    """Both, each in a process of its own: memory that was freed would hide what is taken."""
    found: dict[str, object] = {}
    for phase in (unbounded, bounded, shared):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found |= pool.submit(phase, seals).result()
    return found


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seals", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = measure(chosen.seals)
    if chosen.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:50} {value:>12}")


if __name__ == "__main__":
    main()
