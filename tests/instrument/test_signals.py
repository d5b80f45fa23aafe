"""What a signal handler of the application raises comes out where the application is.

The interpreter runs a handler at the first bytecode after its signal. Were that in a callback of
the collector, of a weak reference or in a `__del__`, the exception would be printed and dropped.
"""

from __future__ import annotations

import ast
import gc
import queue
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from otel_sealed.instrument import finalizing
from otel_sealed.ledger.sqlite import opened
from otel_sealed.telemetry.processor import SealedSpanProcessor

TREE = Path(__file__).resolve().parents[2]
SCRIPT = '''
import ctypes, gc, signal, sys, weakref
from pathlib import Path

class Timeout(Exception):
    pass

def handler(number, frame):
    raise Timeout

def python_callback(phase, info):
    pass

def watched():
    """Streams of ours in a cycle, which the collector finds with what sends the signal."""
    from otel_sealed.instrument.body import Kept
    from otel_sealed.instrument.exchange import Call
    from otel_sealed.instrument.http import HttpSent
    from otel_sealed.instrument.tee import Reading, tee
    call = Call(handle.runtime, None)
    reading = Reading(call, Kept())
    class SyncByteStream:
        pass
    body = tee(SyncByteStream(), call, Kept())
    return reading, body, *others()

def others():
    """What else of ours may die: a processor, ledgers with a thread and without, a provider."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from otel_sealed.ledger.sqlite import opened
    from otel_sealed.telemetry import attach
    from otel_sealed.telemetry.processor import SealedSpanProcessor
    from tests.ledger.shared import turn
    provider = TracerProvider()
    real, trace.get_tracer_provider = trace.get_tracer_provider, lambda: provider
    attach.want()
    trace.get_tracer_provider = real
    ledgers = [opened(Path(sys.argv[2]), 100, 1 << 20, 60.0) for _ in range(2)]
    ledgers[0].record(turn("a"))
    return provider, SealedSpanProcessor(), ledgers

mode = sys.argv[1]
if mode == "python":
    gc.callbacks.append(python_callback)
if mode == "ours":
    import otel_sealed
    handle = otel_sealed.instrument("anthropic")
signal.signal(signal.SIGINT, handler)
# a signal that comes in the middle of a collection, by a callback that is no Python frame
arrive = ctypes.pythonapi.PyErr_SetInterrupt
arrive.argtypes, arrive.restype = [ctypes.py_object], None

class Cycle:
    def __init__(self):
        self.me, self.held = self, watched() if mode == "ours" else None

gc.disable()
lost = 0
for _ in range(10):
    reference = weakref.ref(Cycle(), arrive)
    try:
        gc.collect()
        for _ in range(99):
            pass
        lost += 1
    except Timeout:
        pass
print(lost)
'''


@pytest.mark.parametrize(("mode", "lost"), [("alone", 0), ("ours", 0), ("python", 10)])
def test_no_exception_of_a_signal_handler_is_lost_in_a_collection(
    mode: str, lost: int, tmp_path: Path
) -> None:
    """As without us; a callback in Python would lose each of them."""
    command = [sys.executable, "-c", SCRIPT, mode, str(tmp_path / "ledger.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TREE, check=False)
    assert (done.stdout.split(), done.returncode) == ([str(lost)], 0), done.stderr[-2000:]


CALLED = frozenset({"append", "put"})
"""Methods in C that a weak reference of ours may call: of `deque`, and of `SimpleQueue`."""


def finalizers(source: str) -> list[int]:
    """The lines of a source text where it asks for a call of Python's when something dies."""
    found = []
    references = {"ref"}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(
            "weakref.ref" in ast.unparse(b) for b in node.bases
        ):
            references.add(node.name)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="weakref"):
                found += [node.lineno for alias in node.names if alias.name != "ref"]
            case ast.Attribute(value=ast.Name(id="weakref"), attr=name) if name != "ref":
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[_, back, *_]):
                called = isinstance(back, ast.Attribute) and back.attr in CALLED
                if name in references and not called:
                    found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=[_, *_]):
                found += [node.lineno] * (name in references)
            case ast.FunctionDef(name="__del__"):
                found.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="gc"), attr="callbacks"):
                found.append(node.lineno)
            case _:
                pass
    return sorted(found)


@pytest.mark.parametrize(
    "path", sorted(p.relative_to(TREE).as_posix() for p in (TREE / "otel_sealed").rglob("*.py"))
)
def test_nothing_asks_for_python_when_something_dies(path: str) -> None:
    """`finalizing` alone puts something into `gc.callbacks`; what, is the next test's."""
    found = finalizers((TREE / path).read_text("utf-8"))
    assert (found == []) == (path != "otel_sealed/instrument/finalizing.py"), found


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("weakref.WeakKeyDictionary()", True),
        ("weakref.WeakValueDictionary()", True),
        ("weakref.WeakSet()", True),
        ("from weakref import WeakSet", True),
        ("weakref.finalize(a, b)", True),
        ("weakref.WeakMethod(a)", True),
        ("weakref.ref(a, b)", True),
        ("weakref.ref(a, lambda _: None)", True),
        ("weakref.ref(a, callback=b)", True),
        ("from weakref import ref\nref(a, b)", True),
        ("class R(weakref.ref[Any]):\n  pass\nR(a, b)", True),
        ("class A:\n  def __del__(self): ...", True),
        ("gc.callbacks.append(a)", True),
        ("weakref.ref(a)", False),
        ("weakref.ref(a, _dropped.append)", False),
        ("weakref.ref(a, self._wake.put)", False),
    ],
)
def test_the_search_for_finalizers_finds_each_kind(line: str, refused: bool) -> None:  # noqa: FBT001
    assert bool(finalizers(line)) == refused


def test_what_the_collector_calls_of_ours_is_written_in_c() -> None:
    called = [*finalizing._noticing, finalizing._dropped.append, queue.SimpleQueue().put]
    assert [one for one in called if hasattr(one, "__code__") or hasattr(one, "__func__")] == []


def test_no_weak_reference_to_an_object_of_ours_calls_python(tmp_path: Path) -> None:
    """Whoever made it."""
    ledger = opened(tmp_path / "ledger.sqlite", 100, 1 << 20, 60.0)
    living = [ledger, SealedSpanProcessor()]
    found = [
        type(one()).__name__
        for one in gc.get_objects()
        if issubclass(type(one), weakref.ref)
        and str(type(one()).__module__).startswith("otel_sealed")
        and hasattr(one.__callback__, "__code__")
    ]
    ledger.close()
    assert (found, len(living)) == ([], 2)
