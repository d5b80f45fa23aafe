"""Calls of HTTP clients that no SDK makes, observed as what they are: one request and its reply.

Theory of operation. `clients.py` begins such a call where a client sends a turn of a model, and
tells it of the response that the client returned. From then on it is a call like any other
(`exchange.py`): its bodies are read once it is over, and nothing before. A body that the client has
read is there as a whole. One that is still to be read is looked on where its reader takes it:

* httpx, httpx2: the stream of the response gets a tee (`tee.py`);
* lm15: the iterator of its chunks gets one around it;
* urllib3, and requests and botocore on top of it: the response gets a class of ours, made of its
  own, whose reading methods note what they return;
* aiohttp: the content of the response is replaced by a reader of its class that passes everything
  on to the real one.

What is noted is what the outermost reading method returned, once; where that undid the encoding
already, it is noted as plain. Nothing is read ahead, buffered or held back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from otel_sealed.instrument import finalizing
from otel_sealed.instrument.body import Kept
from otel_sealed.instrument.current import CURRENT
from otel_sealed.instrument.exchange import Call
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.http import HttpSent, responded
from otel_sealed.instrument.routes import Turn
from otel_sealed.instrument.runtime import Runtime, Where
from otel_sealed.instrument.seam import Seam
from otel_sealed.providers import dialects
from otel_sealed.providers.vendors import resolve
from otel_sealed.wire import as_json
from otel_sealed.wire.parse import Unread

Replied = Callable[["HttpCall", Any], None]
"""Tells a call of the response that its client returned."""

_MOST_CLASSES: Final = 64
"""Of responses: one for each class that a client has, made once."""


class HttpCall(Call):
    """One request of an HTTP client. An attempt made anew is another one."""

    def __init__(self, runtime: Runtime, kind: Turn, client: str, host: str) -> None:
        """`client` and `host`: for the count of what turns out to be no turn of a model."""
        super().__init__(runtime, kind)
        self._asks = kind.asks
        self._client = client
        self._host = host

    def sends(self, body: Any) -> None:
        """The body in the bytes that go out, where the hook has it in another form."""
        sent = self._sent
        if isinstance(sent, HttpSent) and isinstance(body, bytes):
            sent.spelled(body)

    def _observe(self) -> None:
        if self._asks is not None and not self._asked():
            self._runtime.emitter.unobserved(self._client, self._host, suppressed=False)
            return
        super()._observe()

    def _asked(self) -> bool:
        """Whether the body is one of the API; the path alone does not say it."""
        try:
            body = as_json(self._sent.body()) if self._sent is not None else None
        except Unread:
            return False
        return isinstance(body, dict) and self._asks is not None and self._asks(body)

    def _provider(self, where: Where) -> str:
        vendor = dialects()[self._kind.api].vendor
        return where.cloud or resolve("", where.host, where.model or "", vendor)[0]


# -------------------------------------------------------------------------------- httpx, httpx2


def httpx(call: HttpCall, response: Any) -> None:
    """A response of httpx's kind."""
    responded(call, response)


# ---------------------------------------------------------------- urllib3, requests and botocore


def urllib3(call: HttpCall, response: Any) -> None:
    """A response of urllib3, read already where it was asked to be."""
    body = vars(response).get("_body")
    if isinstance(body, bytes):
        call.answered(response.status, body)
    else:
        _look_on(call, response.status, response, response.headers)


def requests(call: HttpCall, response: Any) -> None:
    """A response of requests; its content is read by `send`, unless a stream was asked for."""
    _over_urllib3(call, response, response.raw)


def botocore(call: HttpCall, response: Any) -> None:
    """A response of botocore, whose content is read by `send`, unless the operation streams."""
    _over_urllib3(call, response, response.raw)


def _over_urllib3(call: HttpCall, response: Any, raw: Any) -> None:
    content = vars(response).get("_content")
    if isinstance(content, bytes):
        call.answered(response.status_code, content)
    elif hasattr(raw, "read_chunked"):
        _look_on(call, response.status_code, raw, response.headers)
    else:
        call.answered(response.status_code, None)


def _look_on(call: HttpCall, status: int, raw: Any, headers: Any) -> None:
    kept = call.kept("")
    raw.__class__ = _class_for(type(raw))
    vars(raw)[_OBSERVED] = _Body(call, kept, str(headers.get("content-encoding", "")))
    finalizing.when_dropped(
        raw, call.started, partial(call.body_over, kept, whole=False, error=None)
    )
    call.streaming(status, kept, str(headers.get("content-type", "")))


_OBSERVED: Final = "_otel_sealed"
_classes: dict[type, type] = {}


class _Body:
    """How far one body was read. `inside`: a reading method of the response is under way."""

    __slots__ = ("call", "encoding", "inside", "kept")

    def __init__(self, call: HttpCall, kept: Kept, encoding: str) -> None:
        self.call = call
        self.kept = kept
        self.encoding = encoding
        self.inside = False

    def keep(self, data: bytes, *, decoded: bool) -> None:
        if not self.kept.size:
            self.kept.encoding = "" if decoded else self.encoding
        if data:
            self.kept.keep(data)

    def over(self, *, whole: bool, error: BaseException | None = None) -> None:
        self.call.body_over(self.kept, whole=whole, error=error)


def _class_for(kind: type) -> type:
    """The class of responses that are looked on, made of one of urllib3's."""
    made = _classes.get(kind)
    if made is None:
        if len(_classes) >= _MOST_CLASSES:
            _classes.clear()
        methods: dict[str, Any] = {name: _reading(kind, name) for name in ("read", "read1")}
        methods |= {name: _yielding(kind, name) for name in ("stream", "read_chunked")}
        methods["close"] = _closing(kind)
        made = _classes[kind] = type(kind.__name__, (kind,), methods)
    return made


def _decoded(response: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a reading method undoes the encoding; all of them have that argument second."""
    asked = args[1] if len(args) > 1 else kwargs.get("decode_content")
    return bool(response.decode_content if asked is None else asked)


def _reading(kind: type, name: str) -> Any:
    original = getattr(kind, name, None)

    def reading(response: Any, *args: Any, **kwargs: Any) -> Any:
        body: _Body = vars(response)[_OBSERVED]
        if original is None:
            raise AttributeError(name)
        if body.inside:
            return original(response, *args, **kwargs)
        body.inside = True
        try:
            data = original(response, *args, **kwargs)
        except BaseException as error:
            with shield("transport.failed"):
                body.over(whole=False, error=error)
            raise
        finally:
            body.inside = False
        with shield("transport.read"):
            body.keep(data, decoded=_decoded(response, args, kwargs))
            amount = args[0] if args else kwargs.get("amt")
            if name == "read" and (amount is None or (amount and not data)):
                body.over(whole=True)
        return data

    return reading


def _yielding(kind: type, name: str) -> Any:
    original = getattr(kind, name)

    def yielding(response: Any, *args: Any, **kwargs: Any) -> Any:
        body: _Body = vars(response)[_OBSERVED]
        chunks = original(response, *args, **kwargs)
        if body.inside:
            return chunks
        return _watched(chunks, body, decoded=_decoded(response, args, kwargs))

    return yielding


def _watched(chunks: Iterator[bytes], body: _Body, *, decoded: bool) -> Iterator[bytes]:
    while True:
        body.inside = True
        try:
            chunk = next(chunks)
        except StopIteration:
            break
        except BaseException as error:
            with shield("transport.failed"):
                body.over(whole=False, error=error)
            raise
        finally:
            body.inside = False
        with shield("transport.read"):
            body.keep(chunk, decoded=decoded)
        yield chunk
    with shield("transport.over"):
        body.over(whole=True)


def _closing(kind: Any) -> Any:
    def close(response: Any) -> None:
        try:
            kind.close(response)
        finally:
            with shield("transport.close"):
                vars(response)[_OBSERVED].over(whole=False)

    return close


# ----------------------------------------------------------------------------------------- lm15


def lm15(call: HttpCall, response: Any) -> None:
    """A response of lm15 (DSPy's own transport), whose chunks come as they were sent."""
    headers = {name.lower(): value for name, value in response.headers}
    kept = call.kept("")
    body = _Body(call, kept, headers.get("content-encoding", ""))
    chunks = response._chunks
    response._chunks = (
        _watched(iter(chunks), body, decoded=False)
        if hasattr(chunks, "__iter__")
        else _watched_async(chunks, body)
    )
    finalizing.when_dropped(
        response, call.started, partial(call.body_over, kept, whole=False, error=None)
    )
    call.streaming(response.status, kept, headers.get("content-type", ""))


async def _watched_async(chunks: AsyncIterator[bytes], body: _Body) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            with shield("transport.read"):
                body.keep(chunk, decoded=False)
            yield chunk
    except GeneratorExit:
        raise
    except BaseException as error:
        with shield("transport.failed"):
            body.over(whole=False, error=error)
        raise
    with shield("transport.over"):
        body.over(whole=True)


# -------------------------------------------------------------------------------------- aiohttp


def aiohttp(call: HttpCall, response: Any) -> None:
    """A response of aiohttp: its content is always still to be read, encodings are undone."""
    kept = call.kept("")
    if response.content is not None:
        response.content = _reader_for(type(response.content))(response.content, call, kept)
    call.streaming(response.status, kept, str(response.headers.get("content-type", "")))


def sending(wrapped: Callable[..., Any], request: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """A request of aiohttp is sent: its body is what the session made of its arguments."""
    with shield("transport.sending"):
        call = CURRENT.get()
        if isinstance(call, HttpCall):
            body = request.body
            call.sends(body if isinstance(body, bytes) else getattr(body, "_value", None))
    return wrapped(*args, **kwargs)


class Bodies:
    """The hook at which the body of a request of aiohttp is at hand, in the bytes that go out."""

    module = "aiohttp.client_reqrep"

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap; a release without it is read from the arguments of the session."""
        return (Seam("ClientRequest", "send", sending, "ClientRequest.send"),)

    def vanished(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


_readers: dict[type, type] = {}
_READS: Final = ("read", "readany", "readline", "readuntil", "readexactly", "readchunk")
_OWN: Final = ("__aiter__", "iter_chunked", "iter_any", "iter_chunks")
"""They call the reading methods of the object they are of."""


def _reader_for(kind: type) -> Any:
    """The class of readers that pass on to one of aiohttp's: every method of it does."""
    made = _readers.get(kind)
    if made is None:
        if len(_readers) >= _MOST_CLASSES:
            _readers.clear()
        names = {n for base in kind.__mro__[:-1] for n, f in vars(base).items() if callable(f)}
        names -= {"__init__", "__new__", "__class__", *_OWN}
        methods: dict[str, Any] = {name: _passing(name) for name in names if name not in _READS}
        methods |= {name: _awaiting(name) for name in _READS if hasattr(kind, name)}
        methods["read_nowait"] = _at_once
        methods["set_exception"] = _closed
        methods |= {
            "__init__": _begun,
            "__getattr__": _other,
            "__slots__": ("__dict__", "__weakref__"),
        }
        made = _readers[kind] = type(kind.__name__, (kind,), methods)
    return made


def _begun(reader: Any, inner: Any, call: HttpCall, kept: Kept) -> None:
    vars(reader)["_inner"] = inner
    vars(reader)["_body"] = _Body(call, kept, "")
    finalizing.when_dropped(
        reader, call.started, partial(call.body_over, kept, whole=False, error=None)
    )


def _other(reader: Any, name: str) -> Any:
    return getattr(vars(reader)["_inner"], name)


def _passing(name: str) -> Any:
    def passing(reader: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(vars(reader)["_inner"], name)(*args, **kwargs)

    return passing


def _awaiting(name: str) -> Any:
    async def reading(reader: Any, *args: Any, **kwargs: Any) -> Any:
        inner, body = vars(reader)["_inner"], vars(reader)["_body"]
        waiting: Awaitable[Any] = getattr(inner, name)(*args, **kwargs)
        try:
            data = await waiting
        except BaseException as error:
            with shield("transport.failed"):
                body.over(whole=False, error=error)
            raise
        with shield("transport.read"):
            _noted(inner, body, data[0] if name == "readchunk" else data)
        return data

    return reading


def _at_once(reader: Any, *args: Any, **kwargs: Any) -> Any:
    inner = vars(reader)["_inner"]
    data = inner.read_nowait(*args, **kwargs)
    with shield("transport.read"):
        _noted(inner, vars(reader)["_body"], data)
    return data


def _noted(inner: Any, body: _Body, data: bytes) -> None:
    body.keep(data, decoded=True)
    if inner.at_eof():
        body.over(whole=True)


def _closed(reader: Any, *args: Any, **kwargs: Any) -> Any:
    """Aiohttp closes a response that is not read to its end by an exception on its content."""
    try:
        return vars(reader)["_inner"].set_exception(*args, **kwargs)
    finally:
        with shield("transport.close"):
            vars(reader)["_body"].over(whole=False)
