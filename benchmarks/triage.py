"""How fast a record is indexed, what memory it takes, and how fast a question is answered then.

`python benchmarks/triage.py [--spans N] [--processes N] [--folder DIR] [--keep] [--report]` writes
a record of N spans (100,000; a million with `--spans 1000000`, which needs some 15 GB of disk) in
conversations of 16 calls with 16 artifacts each way, in files of 50,000 spans as the file exporter
writes them. One conversation in 250 breaks. It is indexed and then asked what an engineer asks.
Targets: 10,000 spans a second with two processes, flat memory, 200 ms a question. It fails where
one is missed, unless `--report`, since a busy machine says nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from otel_sealed.digest import Digest
from otel_sealed.telemetry.attributes import rekey_with
from otel_sealed.triage import schema
from otel_sealed.triage.files import found_in
from otel_sealed.triage.index import Filter, Index
from otel_sealed.triage.pasted import Record, clues, resolve

SPANS_A_SECOND = 10_000
QUESTION_MS = 200.0
GROWTH = 1.5
"""Memory is flat where the whole takes no more than this times what a tenth of it takes."""
ARTIFACTS = 16
CALLS = 16
A_FILE = 50_000
KEY = bytes(range(32))
START = 1_796_002_449_000_000_000
SEAL = "openai.reasoning.encrypted_content"


def main() -> int:
    """Write, index, ask; say what was measured."""
    options = arguments()
    folder = Path(options.folder or tempfile.mkdtemp(prefix="triage-"))
    try:
        written = write(folder, options.spans)
        print(
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, {written >> 20:,} MiB on disk"
        )
        missed = [*indexing(folder, options), *questions(folder)]
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for line in missed:
        print(f"MISSED: {line}")
    return 1 if missed and not options.report else 0


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--report", action="store_true", help="succeed whatever was measured")
    parser.add_argument("--index", default="", help=argparse.SUPPRESS)
    found = parser.parse_args()
    if found.index:
        sys.exit(index_once(Path(found.index), found.processes))
    return found


# ------------------------------------------------------------------------------------- the record


def write(folder: Path, spans: int) -> int:
    """A record of so many spans; its size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    source = record(spans)
    for number in range(-(-spans // A_FILE)):
        with (folder / f"traces-{number:04}.jsonl").open("w", encoding="utf-8") as file:
            for _, span in zip(range(min(A_FILE, spans - number * A_FILE)), source, strict=False):
                file.write(json.dumps(span, separators=(",", ":")) + "\n")
    return sum(path.stat().st_size for path in folder.iterdir())


def record(spans: int) -> Iterator[dict[str, Any]]:
    """As many spans, conversation after conversation."""
    chance = random.Random(7)
    for number in range(-(-spans // CALLS)):
        yield from conversation(number, chance)


def conversation(number: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """16 calls; what one receives the next one returns. In one of 250 a seal is dropped at last."""
    key = chance.randbytes(16)
    before: list[str] = []
    ids = [named(key, number, CALLS - 2, i) for i in range(ARTIFACTS)]
    for turn in range(CALLS):
        digests = [chance.randbytes(16).hex() for _ in range(ARTIFACTS)]
        broken = number % 250 == 0 and turn == CALLS - 1
        minted = ids if turn == CALLS - 2 else [chance.randbytes(16).hex() for _ in digests]
        at = START + number * 1_000_000_000 + turn * 10_000_000
        yield span(key.hex(), at, turn, digests, minted, before, chance, broken=broken)
        before = digests


def named(key: bytes, number: int, turn: int, at: int) -> str:
    """How an item's id stands in the record of a conversation."""
    return rekey_with(KEY)(key, Digest(KEY).name(item_id(number, turn, at))).hex()


def item_id(number: int, turn: int, at: int) -> str:
    """The id of an item, as OpenAI spells them."""
    return f"rs_{number:08x}{turn:02x}{at:02x}"


def span(
    key: str,
    at: int,
    turn: int,
    received: list[str],
    ids: list[str],
    returned: list[str],
    chance: random.Random,
    *,
    broken: bool,
) -> dict[str, Any]:
    """One span as OTLP JSON."""
    count = len(returned)
    fates = ["dropped" if broken and i == 3 else "intact" for i in range(count)]  # noqa: PLR2004
    values: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.6-sol",
        "server.address": "api.openai.com",
        "gen_ai.usage.input_tokens": 1000 + turn,
        "gen_ai.usage.output_tokens": 400,
        "otel_sealed.verdict": "breaks" if broken else "ok",
        "otel_sealed.provider_verdict": "rejected" if broken else "accepted",
        "otel_sealed.rejection.class": "orphan_follower" if broken else None,
        "otel_sealed.conversation.key": key,
        "otel_sealed.carry": "replayed",
        "otel_sealed.received.count": len(received),
        "otel_sealed.returned.count": count,
        "otel_sealed.expected.count": count,
        "otel_sealed.hash.key_id": "61de60d2",
        "otel_sealed.truncated": False,
        "otel_sealed.received.artifacts": [SEAL] * len(received),
        "otel_sealed.received.digests": received,
        "otel_sealed.received.sizes": [1000 + i for i in range(len(received))],
        "otel_sealed.received.positions": [f"output.{i}" for i in range(len(received))],
        "otel_sealed.received.ids": ids,
        "otel_sealed.returned.artifacts": [SEAL] * count,
        "otel_sealed.returned.digests": returned,
        "otel_sealed.returned.sizes": [-1 if f == "dropped" else 1000 for f in fates],
        "otel_sealed.returned.positions": [
            "" if f == "dropped" else f"input.{turn * 17 + i}" for i, f in enumerate(fates)
        ],
        "otel_sealed.returned.fates": fates,
        "otel_sealed.returned.verdicts": ["breaks" if f == "dropped" else "ok" for f in fates],
        "otel_sealed.returned.rules": ["O4" if f == "dropped" else "" for f in fates],
    }
    found = {
        "traceId": chance.randbytes(16).hex(),
        "spanId": chance.randbytes(8).hex(),
        "name": "chat gpt-5.6-sol",
        "kind": 3,
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + 5_000_000),
        "attributes": [
            {"key": k, "value": value(v)} for k, v in values.items() if v not in (None, [])
        ],
    }
    scope = {"scope": {"name": "otel_sealed", "version": "0.1.0"}, "spans": [found]}
    about = {"attributes": [{"key": "service.name", "value": {"stringValue": "bench"}}]}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [scope]}]}


def value(given: Any) -> dict[str, Any]:
    """An OTLP value."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(item) for item in given]}}
    return {"stringValue": given}


# ---------------------------------------------------------------------------- what is measured


def indexing(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """In a process of its own, whose memory is then known: a tenth of the files first, then all."""
    tenth = folder / "tenth"
    tenth.mkdir()
    names = sorted(folder.glob("*.jsonl"))
    for path in names[: max(1, len(names) // 10)]:
        (tenth / path.name).symlink_to(path)
    small = measured(tenth, options.processes)
    shutil.rmtree(tenth)
    whole = measured(folder, options.processes)
    print(
        f"indexed: {whole['spans']:,} spans in {whole['seconds']:.1f} s with {options.processes} "
        f"processes, {whole['rate']:,.0f} a second ({whole['cpu_us']:.0f} µs of CPU a span); "
        f"memory {whole['mib']:.0f} MiB, {small['mib']:.0f} MiB for {small['spans']:,}; "
        f"the index has {(folder / schema.NAME).stat().st_size >> 20:,} MiB"
    )
    if whole["rate"] < SPANS_A_SECOND:
        yield f"{whole['rate']:,.0f} spans a second, wanted {SPANS_A_SECOND:,}"
    if whole["spans"] > small["spans"] and whole["mib"] > small["mib"] * GROWTH:
        yield f"memory grows from {small['mib']:.0f} to {whole['mib']:.0f} MiB"


def measured(folder: Path, processes: int) -> dict[str, float]:
    """Indexing in another process, as numbers."""
    command = [sys.executable, __file__, "--index", str(folder), "--processes", str(processes)]
    out = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, float] = json.loads(out.stdout)
    return found


def index_once(folder: Path, processes: int) -> int:
    """Index a folder, and print what it took."""
    begun = time.perf_counter()
    with Index(folder / schema.NAME) as index:
        index.update(found_in([folder]), processes=processes)
        spans = index.stats().calls
    seconds = time.perf_counter() - begun
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in (own, others))
    print(
        json.dumps(
            {
                "spans": spans,
                "seconds": seconds,
                "rate": spans / seconds,
                "cpu_us": cpu / spans * 1e6,
                "mib": (own.ru_maxrss + others.ru_maxrss) / 1024,
            }
        )
    )
    return 0


def questions(folder: Path) -> Iterator[str]:
    """Each question as a command asks it: the index opened, what is new looked for, the answer."""
    with Index(folder / schema.NAME) as index:
        (newest,) = index.incidents(limit=1)
    number = (newest.first_bad.at - START) // 1_000_000_000
    text = f"Item 'fc_1' without its required 'reasoning' item: '{item_id(number, CALLS - 2, 3)}'."
    asked: dict[str, Callable[[Index], Any]] = {
        "all incidents": lambda index: index.incidents(limit=50),
        "by trace": lambda index: index.incidents(Filter(trace=newest.first_bad.trace)),
        "by conversation": lambda index: index.incidents(
            Filter(conversation=newest.conversation[:8])
        ),
        "by time, model, fate": lambda index: index.incidents(
            Filter(since=START, model="gpt", fate="dropped"), 50
        ),
        "a pasted error": lambda index: pasted(index, text),
        "a pasted error without an id": lambda index: pasted(
            index, "was provided without its required 'reasoning' item"
        ),
    }
    for name, question in asked.items():
        begun = time.perf_counter()
        with Index(folder / schema.NAME) as index:
            index.update(found_in([folder]))
            found = question(index)
        took = (time.perf_counter() - begun) * 1000
        print(f"asked: {name}: {took:.0f} ms")
        if not found:
            yield f"{name}: nothing found"
        if took > QUESTION_MS:
            yield f"{name}: {took:.0f} ms, wanted {QUESTION_MS:.0f}"


def pasted(index: Index, text: str) -> bool:
    """Whether an error is resolved to what was dropped."""
    record = Record(
        index.refusals,
        index.conversation,
        lambda key: index.incidents(Filter(conversation=key)),
        index.keys,
    )
    found = resolve(clues(text), record, KEY)
    return found.victim is not None and found.victim.fate == "dropped"


if __name__ == "__main__":
    sys.exit(main())
