"""Who reads pieces of files: this process alone, or others ahead of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Final, TypeAlias

from otel_sealed.triage import files
from otel_sealed.triage.files import Found, Piece

_READING: Final = 3
"""Pieces that are given to another process ahead of what it reads."""


def read_here(piece: Piece | Found) -> Found:
    """What a piece holds, read by whoever calls."""
    return files.read(piece) if isinstance(piece, Piece) else piece


Reading: TypeAlias = Callable[[Iterable[Piece | Found]], Iterator[Found]]


@contextmanager
def readers(processes: int) -> Iterator[Reading]:
    """Who reads pieces: this process, or others and this one, which writes between two pieces."""
    if processes < 2:  # noqa: PLR2004 - this one
        yield lambda pieces: map(read_here, pieces)
        return
    with ProcessPoolExecutor(processes - 1, mp_context=get_context("spawn")) as pool:
        yield lambda pieces: _shared(pool, processes - 1, pieces)


def _shared(
    pool: ProcessPoolExecutor, others: int, pieces: Iterable[Piece | Found]
) -> Iterator[Found]:
    """What the pieces hold, in their order: others read ahead, and what they cannot take, we do."""
    ahead: deque[Future[Found] | Found] = deque()
    for piece in pieces:
        busy = sum(isinstance(item, Future) and not item.done() for item in ahead)
        if isinstance(piece, Piece) and busy < _READING * others:
            ahead.append(pool.submit(files.read, piece))
        else:
            ahead.append(read_here(piece))
        while ahead and (len(ahead) > 2 * _READING * others or _done(ahead[0])):
            yield _taken(ahead.popleft())
    while ahead:
        yield _taken(ahead.popleft())


def _done(item: Future[Found] | Found) -> bool:
    return not isinstance(item, Future) or item.done()


def _taken(item: Future[Found] | Found) -> Found:
    return item.result() if isinstance(item, Future) else item
