"""Threads, tasks, forked children and greenlets: right verdicts, no cross-talk, no dead lock."""

from __future__ import annotations

import asyncio
import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from opentelemetry.sdk.metrics import MeterProvider

from otel_sealed.instrument import forked, guard, instrument, patch
from otel_sealed.instrument.finalizing import catch_up
from otel_sealed.instrument.helpers import BETA_MESSAGES, MESSAGES
from otel_sealed.instrument.routes import ANTHROPIC
from otel_sealed.instrument.stainless import Stainless
from otel_sealed.testing.strict import StrictProvider

if TYPE_CHECKING:
    from tests.instrument.conftest import Spans

ASK: dict[str, Any] = {
    "model": "claude-sonnet-4-6",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}}],
}
HELLO: list[Any] = [{"role": "user", "content": "hi"}]
_CLIENT: Any = sys.modules["anthropic._base_client"]
EXPECTED = [
    seam
    for seam in Stainless("anthropic", ANTHROPIC, None).seams()  # type: ignore[arg-type]
    if seam.expected(_CLIENT)
]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider() as strict:
        yield strict


def replay(message: Any, *, faithful: bool) -> list[Any]:
    """The second request of a conversation, with its seals or without."""
    kept = [block for block in message.content if faithful or "thinking" not in block.type]
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "found"}
        for block in message.content
        if block.type == "tool_use"
    ]
    return [
        *HELLO,
        {"role": "assistant", "content": kept},
        {"role": "user", "content": results},
    ]


def converse(client: anthropic.Anthropic, *, faithful: bool, streamed: bool = False) -> None:
    """Two calls of one conversation; the provider refuses the second where a seal is missing."""
    if streamed:
        with client.messages.stream(**ASK, messages=HELLO) as stream:
            message: Any = stream.get_final_message()
    else:
        message = client.messages.create(**ASK, messages=HELLO)
    try:
        client.messages.create(**ASK, messages=replay(message, faithful=faithful))
    except anthropic.BadRequestError:
        assert not faithful


async def converse_async(client: anthropic.AsyncAnthropic, *, faithful: bool) -> None:
    message: Any = await client.messages.create(**ASK, messages=HELLO)
    await asyncio.sleep(0)
    try:
        await client.messages.create(**ASK, messages=replay(message, faithful=faithful))
    except anthropic.BadRequestError:
        assert not faithful


def verdicts(spans: Spans) -> dict[str, list[object]]:
    """The verdicts of each worker, by the name of the span it worked in."""
    names = {
        span.context.span_id: span.name
        for span in spans.ended
        if span.context is not None and span.name.startswith("worker")
    }
    found: dict[str, list[object]] = {name: [] for name in names.values()}
    for span in sorted(spans.ended, key=lambda span: span.start_time or 0):
        if span.parent is not None and span.name.startswith("chat"):
            verdict = (span.attributes or {}).get("otel_sealed.verdict")
            found[names[span.parent.span_id]].append(verdict)
    return found


def test_eight_threads_of_twenty_calls(provider: StrictProvider, spans: Spans) -> None:
    """Each thread gets the verdicts of its own conversations, and nothing of another's."""
    instrument("anthropic", tracer_provider=spans.provider)
    tracer = spans.provider.get_tracer("test")

    def work(worker: int) -> None:
        with (
            anthropic.Anthropic(
                api_key="k", base_url=provider.anthropic_url, max_retries=0
            ) as client,
            tracer.start_as_current_span(f"worker {worker}"),
        ):
            for turn in range(10):
                converse(client, faithful=worker % 2 == 0, streamed=turn % 2 == 0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    expected = {f"worker {n}": [None, "ok" if n % 2 == 0 else "breaks"] * 10 for n in range(8)}
    assert expected == verdicts(spans)


async def test_fifty_tasks_at_once(provider: StrictProvider, spans: Spans) -> None:
    """The same for tasks that interleave in one thread."""
    instrument("anthropic", tracer_provider=spans.provider)
    tracer = spans.provider.get_tracer("test")

    async with anthropic.AsyncAnthropic(
        api_key="k", base_url=provider.anthropic_url, max_retries=0
    ) as client:

        async def work(worker: int) -> None:
            with tracer.start_as_current_span(f"worker {worker}"):
                await converse_async(client, faithful=worker % 2 == 0)

        await asyncio.gather(*(work(worker) for worker in range(50)))
    expected = {f"worker {n}": [None, "ok" if n % 2 == 0 else "breaks"] for n in range(50)}
    assert expected == verdicts(spans)


# ------------------------------------------------------------------------------------- forks


def in_child(work: Callable[[], object]) -> object:
    """What `work` returns in a forked child, which has 20 seconds."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        status = 1
        try:
            os.write(write, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the child failed, or hung"
    return json.loads(told)


def serve(provider: StrictProvider, spans: Spans, *, faithful: bool) -> list[object]:
    """One conversation with a client of this process's own; the verdicts it gave."""
    spans.exporter.clear()
    with anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url, max_retries=0) as client:
        converse(client, faithful=faithful)
    return [(span.attributes or {}).get("otel_sealed.verdict") for span in spans.ended]


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_pre_fork_worker_observes(provider: StrictProvider, spans: Spans) -> None:
    """Instrumented before the fork, parent and children each observe their own calls."""
    instrument("anthropic", tracer_provider=spans.provider)
    assert serve(provider, spans, faithful=True) == [None, "ok"]
    for faithful in (True, False):
        told = in_child(lambda faithful=faithful: serve(provider, spans, faithful=faithful))  # type: ignore[misc]
        assert told == [None, "ok" if faithful else "breaks"]
    assert serve(provider, spans, faithful=False) == [None, "breaks"]


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_goes_on_with_a_conversation_of_its_parent(
    provider: StrictProvider, spans: Spans
) -> None:
    """What the parent received before the fork is known in the child."""
    instrument("anthropic", tracer_provider=spans.provider)
    with anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url) as client:
        message = client.messages.create(**ASK, messages=HELLO)

    def go_on() -> list[object]:
        spans.exporter.clear()
        with anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url) as mine:
            mine.messages.create(**ASK, messages=replay(message, faithful=True))
        return [(span.attributes or {}).get("otel_sealed.verdict") for span in spans.ended]

    assert in_child(go_on) == ["ok"]


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_is_not_stuck_on_a_lock_that_a_thread_of_its_parent_held(
    provider: StrictProvider, spans: Spans
) -> None:
    """Every lock of ours is held by another thread while we fork."""
    handle = instrument("anthropic", tracer_provider=spans.provider, meter_provider=MeterProvider())
    processor: Any = handle.runtime.emitter.processor()  # type: ignore[attr-defined]
    spans.provider.add_span_processor(processor)
    assert serve(provider, spans, faithful=True) == [None, "ok"]
    held, release = threading.Event(), threading.Event()
    locks = [
        value
        for holder in forked._holders()
        for value in forked._values(holder)
        if isinstance(value, forked._LOCKS)
    ]
    assert guard._lock in locks
    assert patch._lock in locks
    assert processor._lock in locks
    assert handle.runtime.tracker.ledger._lock in locks  # type: ignore[attr-defined]
    distinct = list({id(lock): lock for lock in locks}.values())

    def hold() -> None:
        for lock in distinct:
            lock.acquire()
        held.set()
        release.wait(20)
        for lock in distinct:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    try:
        told = in_child(lambda: serve(provider, spans, faithful=False))
    finally:
        release.set()
        thread.join()
    assert told == [None, "breaks"]


def _imported(module: str) -> bool:
    """Whether this release has it; imported, so that a child begins with it."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    return True


def _child(url: str, pipe: Any) -> None:
    from tests.instrument.conftest import Spans as Fresh

    fresh = Fresh()
    instrument("anthropic", tracer_provider=fresh.provider)
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        converse(client, faithful=False)
    catch_up()
    handle = instrument("anthropic")
    wrapped = [name for name in handle.attached if name.startswith("anthropic.")]
    pipe.send((len(wrapped), [span.name for span in fresh.ended]))


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_multiprocessing_by_fork(provider: StrictProvider, spans: Spans) -> None:
    """A child that instruments for itself has its own spans; a forked handle is the same one."""
    context = multiprocessing.get_context("fork")
    helpers = [h for h in (MESSAGES, BETA_MESSAGES) if _imported(h.module)]
    here, there = context.Pipe()
    child = context.Process(target=_child, args=(provider.anthropic_url, there))
    child.start()
    assert here.poll(30), "the child hung"
    attached, names = here.recv()
    child.join(10)
    seams = len(EXPECTED) + sum(len(helper.seams()) for helper in helpers)
    assert (child.exitcode, attached) == (0, seams)
    assert names == ["chat claude-sonnet-4-6"] * 2
    assert spans.ended == ()


# ------------------------------------------------------------------------------------ gevent

GREEN = """
from gevent import monkey
monkey.patch_all()
import json, sys
import gevent
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import anthropic
from otel_sealed.instrument import guard, instrument
from tests.instrument.test_concurrency import converse

guard.STRICT = True
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
instrument("anthropic", tracer_provider=provider)
client = anthropic.Anthropic(api_key="k", base_url=sys.argv[1], max_retries=0)

def work(number):
    with provider.get_tracer("test").start_as_current_span(f"worker {number}"):
        converse(client, faithful=number % 2 == 0, streamed=number % 3 == 0)

gevent.joinall([gevent.spawn(work, n) for n in range(20)], raise_error=True)
found = sorted(str((s.attributes or {}).get("otel_sealed.verdict"))
               for s in exporter.get_finished_spans() if s.name.startswith("chat"))
print(json.dumps(found))
"""


def test_greenlets(provider: StrictProvider) -> None:
    """Under gevent's patches twenty greenlets get the verdicts of their own conversations."""
    pytest.importorskip("gevent")
    done = subprocess.run(
        [sys.executable, "-c", GREEN, provider.anthropic_url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "ANTHROPIC_OPEN_TELEMETRY": "false", "PYTHONPATH": os.getcwd()},  # noqa: PTH109
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["None"] * 20 + ["breaks"] * 10 + ["ok"] * 10


KILLED = """
import gevent.monkey
gevent.monkey.patch_all()
import gc
import gevent
import otel_sealed

otel_sealed.instrument()
left = [gevent.spawn(gevent.sleep, 60) for _ in range(60)]
gevent.sleep(0.01)
gevent.killall(left)
cycles = [[] for _ in range(5_000)]
for cycle in cycles:
    cycle.append(cycle)
"""


def test_greenlets_that_were_killed_leave_nothing_on_stderr() -> None:
    """What is collected while the interpreter goes down finds their locals gone."""
    pytest.importorskip("gevent")
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.getcwd()},  # noqa: PTH109
    )
    assert (0, "") == (done.returncode, done.stderr)
