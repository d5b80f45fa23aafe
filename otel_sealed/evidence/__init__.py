"""Own evidence: whatever recording of the wire people have at hand, read as exchanges.

Nobody owns transcripts; people own VCR cassettes, HAR files, mitmproxy flows. Which of them a file
is shows in its first bytes, never in its name. Every reader yields `Capture`s, one HTTP exchange
each; what of them is a call of a model is told by path and body (`capture`), what is not is counted
by host. A recording interleaves conversations, so that, other than in a transcript, earlier turns
are found by content alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Final

from otel_sealed import transcript
from otel_sealed.contract import Api, Exchange
from otel_sealed.errors import SealedError
from otel_sealed.evidence import flows, har, vcr
from otel_sealed.http.records import Capture, Passed

__all__ = ["Passed", "Source", "reading"]

_FLOWS: Final = re.compile(rb"\d{1,12}:\d{1,12}:")
_JSON: Final = re.compile(rb'\{\s*"(?:log|interactions|http_interactions|version)"\s*:')
_APIS: Final = "|".join(re.escape(api.value) for api in Api).encode()
_TRANSCRIPT: Final = re.compile(rb'[{,]\s*"api"\s*:\s*"(?:' + _APIS + rb')"')
_YAML: Final = re.compile(rb"^(?:http_)?interactions:", re.MULTILINE)
_REMEDY: Final = "calls of models in a transcript, a VCR cassette, a HAR file or mitmproxy flows"


@dataclass(frozen=True, slots=True)
class Source:
    """One open file of evidence.

    Attributes:
        unit: What `Exchange.number` counts: `line` in a transcript, else `exchange`.
        exchanges: In the order of the file; reading them may raise `SealedError`.
        passed: What is no call of a model; complete once `exchanges` is exhausted.
        times: When the exchanges yielded so far were made, by number, in ns since the epoch, as far
            as the recorder says.
    """

    unit: str
    exchanges: Iterator[Exchange]
    passed: Passed = field(default_factory=Passed)
    times: dict[int, int] = field(default_factory=dict)


@contextmanager
def reading(path: str | Path) -> Iterator[Source]:
    """Open a file of any kind of evidence; its content says which.

    Raises:
        SealedError: The file cannot be opened, or turns out damaged while it is read.
    """
    name = str(path)
    with transcript.opened(name) as file:
        captures = _captures(file, name)
        if captures is None:
            yield Source("line", transcript.exchanges(file, name))
        else:
            passed, times = Passed(), dict[int, int]()
            found = _exchanges(captures, passed, times, name)
            yield Source("exchange", found, passed, times)


def looks_like(path: str | Path) -> bool:
    """Whether a file begins like evidence of any kind: a transcript shows by the keys of a line."""
    name = str(path)
    with transcript.opened(name) as file:
        head = _head(file)
    if _FLOWS.match(head) or _JSON.match(head):
        return True
    if not head.startswith(b"{"):
        return _YAML.search(head) is not None
    return _TRANSCRIPT.search(head.partition(b"\n")[0]) is not None


def _head(file: BufferedReader) -> bytes:
    return file.peek(transcript.HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()


def _captures(file: BufferedReader, name: str) -> Iterator[Capture | None] | None:
    """What the reader of the format finds, None for what is a transcript or nothing known."""
    head = _head(file)
    if _FLOWS.match(head):
        return flows.read(file, name)
    if _JSON.match(head):
        return _of_json(file, name)
    if not head.startswith(b"{") and _YAML.search(head):
        return vcr.read(vcr.from_yaml(file, name), name)
    return None


def _of_json(file: BufferedReader, name: str) -> Iterator[Capture | None]:
    """A HAR file or a cassette in JSON: which of them it is shows once it is read."""
    document = har.document(file, name)
    if isinstance(document, dict) and "log" in document:
        yield from har.read(document, name)
    else:
        yield from vcr.read(document, name)


def _exchanges(
    captures: Iterator[Capture | None], passed: Passed, times: dict[int, int], name: str
) -> Iterator[Exchange]:
    # it reads the wire as the live wrap does, with what that needs; a transcript needs none of it
    from otel_sealed.http.adapter import Reading

    telling = Reading(passed)
    found = False
    for number, capture in enumerate(captures):
        exchange = None
        if capture is None:
            passed.broken += 1
        else:
            exchange = telling.exchange(capture, number)
        if capture is not None and exchange is not None:
            found = True
            if capture.at:
                times[number] = capture.at
            yield exchange
    if not found:
        raise SealedError(f"holds no call of a model{passed.line()}", where=name, remedy=_REMEDY)
