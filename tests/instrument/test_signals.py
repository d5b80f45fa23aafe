"""What a signal handler of the application raises comes out where the application is.

The interpreter runs a handler at the first bytecode after its signal. Were that in a callback of
the collector, of a weak reference or in a `__del__`, the exception would be printed and dropped.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
SCRIPT = '''
import ctypes, gc, signal, sys, weakref

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
    return reading, body

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
def test_no_exception_of_a_signal_handler_is_lost_in_a_collection(mode: str, lost: int) -> None:
    """As without us; a callback in Python would lose each of them."""
    command = [sys.executable, "-c", SCRIPT, mode]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TREE, check=False)
    assert (done.stdout.split(), done.returncode) == ([str(lost)], 0), done.stderr[-2000:]


def test_nothing_of_ours_is_a_finalizer_in_python() -> None:
    """No class of the package has `__del__`, and `gc.callbacks` holds nothing of ours in Python."""
    found = [
        path.name
        for path in (TREE / "otel_sealed").rglob("*.py")
        if "def __del__" in path.read_text("utf-8")
        or "gc.callbacks.append" in path.read_text("utf-8")
    ]
    assert found == []
