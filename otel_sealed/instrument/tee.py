"""Looking on while somebody else reads: a body stream of httpx's kind, and SDK generators.

Each hands on what it gets, unchanged and at once, and tells its call when the reading is over, by
whatever end. The order of things the reader sees is that of the stream underneath.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Any, Final

from otel_sealed.instrument import finalizing
from otel_sealed.instrument.body import Kept
from otel_sealed.instrument.current import enter, leave
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield

_classes: dict[type, type] = {}
_KINDS: Final = ("SyncByteStream", "AsyncByteStream")
_MOST_CLASSES: Final = 64
"""Of streams: a class made for each response would be kept for good."""


class _Tee:
    """What sync and async bodies share. `stream` is the real one."""

    def __init__(self, stream: Any, call: Call, kept: Kept) -> None:
        self._stream = stream
        self._call = call
        self._kept = kept
        finalizing.when_dropped(
            self, call.started, partial(call.body_over, kept, whole=False, error=None)
        )
        # anthropic asks for it with each event; to look for it in vain costs more than all we do
        self.stream_observer = getattr(stream, "stream_observer", None)

    def __getattr__(self, name: str) -> Any:
        # `elapsed` of httpx's own stream, and what else there is
        return getattr(self.__dict__["_stream"], name)

    def _over(self, *, whole: bool, error: BaseException | None = None) -> None:
        self._call.body_over(self._kept, whole=whole, error=error)


class _SyncTee(_Tee):
    def __iter__(self) -> Iterator[bytes]:
        keep = self._kept.keep
        try:
            for chunk in self._stream:
                try:
                    keep(chunk)
                except Exception:
                    with shield("tee.keep"):
                        raise
                yield chunk
        except GeneratorExit:
            raise  # not read on; it may still be, by another iterator, or be closed
        except BaseException as error:
            with shield("tee.over"):
                self._over(whole=False, error=error)
            raise
        with shield("tee.over"):
            self._over(whole=True)

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            with shield("tee.over"):
                self._over(whole=False)


class _AsyncTee(_Tee):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = self._stream.__aiter__()
        keep = self._kept.keep
        try:
            async for chunk in chunks:
                try:
                    keep(chunk)
                except Exception:
                    with shield("tee.keep"):
                        raise
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            with shield("tee.over"):
                self._over(whole=False, error=error)
            raise
        finally:
            # in the task that read it; else the event loop closes it later, in one of its own
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
        with shield("tee.over"):
            self._over(whole=True)

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            with shield("tee.over"):
                self._over(whole=False)


class _BothTee(_SyncTee, _AsyncTee):
    """For a body that is both at once, as httpx's in-memory one."""


def tee(stream: Any, call: Call, kept: Kept) -> Any:
    """A stream of the kinds that `stream` is, so that the checks of its httpx still hold.

    Raises TypeError for anything that is no byte stream of httpx's kind.
    """
    made = _classes.get(type(stream)) or _class_for(type(stream))
    return made(stream, call, kept)


def _class_for(kind: type) -> type:
    """Our class for streams of one class, made once."""
    bases = tuple(_base(kind, name) for name in _KINDS)
    found = tuple(base for base in bases if base is not None)
    if not found:
        raise TypeError(kind.__name__)
    ours = _BothTee if all(bases) else _SyncTee if bases[0] else _AsyncTee
    if len(_classes) >= _MOST_CLASSES:
        _classes.clear()
    _classes[kind] = type("ObservedStream", (ours, *found), {})
    return _classes[kind]


def call_of(stream: Any) -> Call | None:
    """The call whose body a stream of ours is, None for any other stream."""
    return stream._call if isinstance(stream, _Tee) else None


def put(owner: Any, call: Call, kept: Kept) -> None:
    """Put a tee over the stream of a request or response of httpx's kind, and nothing else.

    Raises TypeError where there is nothing to put there: a reader would stumble over it.
    """
    made = tee(owner.stream, call, kept)
    whole = isinstance(made, _Tee) and vars(made).get("_stream") is owner.stream
    if not whole or not isinstance(kept, Kept):
        raise TypeError(type(made).__name__)
    owner.stream = made


def _base(kind: type, name: str) -> type | None:
    return next((base for base in kind.__mro__ if base.__name__ == name), None)


Failed = Callable[[Call, Kept, BaseException], None]
"""Told that the reading failed, by the error itself."""


class Reading:
    """What a generator holds of a call: one that is dropped before it began says nothing else."""

    __slots__ = ("__weakref__", "call", "kept")

    def __init__(self, call: Call, kept: Kept) -> None:
        self.call = call
        self.kept = kept
        finalizing.when_dropped(
            self, call.started, partial(call.body_over, kept, whole=False, error=None)
        )

    def over(self, *, whole: bool, error: BaseException | None = None) -> None:
        """It was read to its end (`whole`), closed, or failed."""
        self.call.body_over(self.kept, whole=whole, error=error)


def observed(
    inner: Generator[Any, Any, Any], reading: Reading, failed: Failed
) -> Generator[Any, Any, Any]:
    """`inner`, looked on: a generator as it is one, with `send`, `throw` and `close` forwarded."""
    kept = reading.kept
    try:
        chunk = _first(inner, reading.call)
        while True:
            with shield("tee.keep"):
                _keep(kept, chunk)
            try:
                told = yield chunk
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the reader, for `inner`
                chunk = inner.throw(error)
            else:
                chunk = next(inner) if told is None else inner.send(told)
    except StopIteration as stop:
        with shield("tee.over"):
            reading.over(whole=True)
        return stop.value
    except GeneratorExit:
        with shield("tee.over"):
            reading.over(whole=False)
        raise
    except BaseException as error:
        with shield("tee.failed"):
            failed(reading.call, kept, error)
        raise


def _first(inner: Generator[Any, Any, Any], call: Call) -> Any:
    """The first step, which sends the request: the call is current for what runs below it."""
    token = None
    with shield("tee.enter"):
        token = enter(call)
    try:
        return next(inner)
    finally:
        with shield("tee.leave"):
            leave(token)


async def observed_async(
    inner: AsyncGenerator[Any, Any], reading: Reading, failed: Failed
) -> AsyncGenerator[Any, Any]:
    """The same for an async generator, with `asend`, `athrow` and `aclose` forwarded."""
    kept = reading.kept
    try:
        chunk = await anext(inner)
        while True:
            with shield("tee.keep"):
                _keep(kept, chunk)
            try:
                told = yield chunk
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the reader, for `inner`
                chunk = await inner.athrow(error)
            else:
                chunk = await (anext(inner) if told is None else inner.asend(told))
    except StopAsyncIteration:
        with shield("tee.over"):
            reading.over(whole=True)
    except GeneratorExit:
        with shield("tee.over"):
            reading.over(whole=False)
        raise
    except BaseException as error:
        with shield("tee.failed"):
            failed(reading.call, kept, error)
        raise


def _keep(kept: Kept, chunk: Any) -> None:
    kept.keep(getattr(chunk, "body", chunk))
