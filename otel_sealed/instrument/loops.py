"""Automatic function calling of google-genai: one call of an application, several of the model.

`Models.generate_content` and `Chat.send_message`, given Python functions as tools, call them and
ask again until the model is done. Each request is a call with a span of its own (`genai.py`); this
module opens the span they have in common. It is no call of a model and says nothing of one, so it
is INTERNAL, carries no `gen_ai.*` attribute, and no other tracer's span is taken for it.

Where the span of a tracer stands for the whole call already, there is none of ours: it is theirs
that the first request is written on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from otel_sealed.instrument.exchange import error_type
from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.span import stands_aside, stands_for_one_call
from otel_sealed.vocab import ERROR_TYPE, model_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping

    from otel_sealed.instrument.runtime import Runtime

NAME: Final = "automatic_function_calling"
_INSIDE: Final = otel_context.create_key("otel_sealed_loop")


class _Loop:
    """The span around the requests of one loop, current while the SDK runs and not while we wait.

    Used by the thread or task that makes the call.
    """

    def __init__(self, runtime: Runtime, model: str) -> None:
        self._span = runtime.tracer.start_span(
            f"{NAME} {model_name(model)}".rstrip(), kind=SpanKind.INTERNAL
        )
        self._inside = otel_context.set_value(_INSIDE, True, trace.set_span_in_context(self._span))
        self._token: Any = None

    def enter(self) -> None:
        """The SDK is about to run."""
        self.leave()
        self._token = otel_context.attach(self._inside)

    def leave(self) -> None:
        """The SDK hands on what it has."""
        token, self._token = self._token, None
        if token is not None:
            otel_context.detach(token)

    def over(self, error: BaseException | None = None) -> None:
        """The SDK is done."""
        self.leave()
        if error is not None:
            self._span.set_attribute(ERROR_TYPE, error_type(error))
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


class Loops:
    """The adapter for one module's methods under one runtime."""

    def __init__(self, module: str, owners: tuple[str, str], names: tuple[str, str]) -> None:
        """`owners` sync and async; `names` of the methods that return a whole reply, a stream."""
        self.module = f"google.genai.{module}"
        self._owners = owners
        self._names = names
        self._runtime: Any = None

    def under(self, runtime: Runtime) -> Loops:
        """The same, for all calls under `runtime`."""
        made = Loops(self.module.rpartition(".")[2], self._owners, self._names)
        made._runtime = runtime
        return made

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap, by name."""
        whole, stream = self._names
        sync, async_ = self._owners
        return (
            Seam(sync, whole, self._whole),
            Seam(sync, stream, self._stream),
            Seam(async_, whole, self._async_whole),
            Seam(async_, stream, self._async_stream),
        )

    def vanished(self) -> tuple[str, ...]:
        """Nothing: the module is the door itself."""
        return ()

    def _whole(
        self, wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        loop = None
        with shield("loops.begin"):
            loop = self._begin(owner, args, kwargs)
        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            if loop is not None:
                with shield("loops.over"):
                    loop.over(error)
            raise
        if loop is not None:
            with shield("loops.over"):
                loop.over()
        return result

    async def _async_whole(
        self, wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        loop = None
        with shield("loops.begin"):
            loop = self._begin(owner, args, kwargs)
        try:
            result = await wrapped(*args, **kwargs)
        except BaseException as error:
            if loop is not None:
                with shield("loops.over"):
                    loop.over(error)
            raise
        if loop is not None:
            with shield("loops.over"):
                loop.over()
        return result

    def _stream(
        self, wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        """The real one is a generator function: nothing is sent before the first `next`."""
        inner = wrapped(*args, **kwargs)
        with shield("loops.stream"):
            if hasattr(inner, "throw") and _loops(owner, args, kwargs):
                return self._drive(inner, owner, args, kwargs)
        return inner

    def _drive(self, inner: Any, owner: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        loop = None
        with shield("loops.begin"):
            loop = self._begin(owner, args, kwargs)
        if loop is None:
            return (yield from inner)
        return (yield from _within(inner, loop))

    async def _async_stream(
        self, wrapped: Callable[..., Any], owner: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        loop = None
        with shield("loops.begin"):
            loop = self._begin(owner, args, kwargs)
        try:
            inner = await wrapped(*args, **kwargs)
        except BaseException as error:
            if loop is not None:
                with shield("loops.over"):
                    loop.over(error)
            raise
        if loop is not None:
            with shield("loops.stream"):
                loop.leave()
                if hasattr(inner, "athrow"):
                    return _within_async(inner, loop)
                loop.over()
        return inner

    def _begin(self, owner: Any, args: Any, kwargs: Mapping[str, Any]) -> _Loop | None:
        """A loop, current now; None for a call that is none, or is not to be looked at."""
        if not _loops(owner, args, kwargs) or stands_aside():
            return None
        active = trace.get_current_span()
        if active.is_recording() and stands_for_one_call(active):
            return None
        model = kwargs.get("model") or getattr(owner, "_model", "")
        loop = _Loop(self._runtime, model if isinstance(model, str) else "")
        loop.enter()
        return loop


MODELS: Final = Loops(
    "models", ("Models", "AsyncModels"), ("generate_content", "generate_content_stream")
)
CHATS: Final = Loops("chats", ("Chat", "AsyncChat"), ("send_message", "send_message_stream"))


def _loops(owner: Any, args: Any, kwargs: Mapping[str, Any]) -> bool:
    """Whether the SDK will call functions by itself: it was given some and not told not to.

    A call inside a loop (a chat's, or one that a tool makes) is no loop of its own.
    """
    config = kwargs.get("config") or (args[1] if args[1:] else None)
    config = config or getattr(owner, "_config", None)
    tools = _of(config, "tools")
    if not isinstance(tools, (list, tuple)) or otel_context.get_value(_INSIDE):
        return False
    if _of(_of(config, "automatic_function_calling"), "disable"):
        return False
    # functions, and MCP sessions, whose tools the SDK calls as well
    return any(callable(tool) or hasattr(tool, "call_tool") for tool in tools)


def _of(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _within(inner: Generator[Any, Any, Any], loop: _Loop) -> Generator[Any, Any, Any]:
    """`inner`, each step of it inside the loop; with `send`, `throw` and `close` forwarded."""
    fault: BaseException | None = None
    step: Callable[[], Any] = partial(next, inner)
    try:
        while True:
            with shield("loops.enter"):
                loop.enter()
            try:
                chunk = step()
            finally:
                with shield("loops.leave"):
                    loop.leave()
            try:
                told = yield chunk
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the reader, for `inner`
                step = partial(inner.throw, error)
            else:
                step = partial(next, inner) if told is None else partial(inner.send, told)
    except StopIteration as stop:
        return stop.value
    except GeneratorExit:
        raise
    except BaseException as error:
        fault = error
        raise
    finally:
        with shield("loops.over"):
            loop.over(fault)


async def _within_async(inner: AsyncGenerator[Any, Any], loop: _Loop) -> AsyncGenerator[Any, Any]:
    """The same for an async generator, with `asend`, `athrow` and `aclose` forwarded."""
    fault: BaseException | None = None
    step: Callable[[], Any] = partial(anext, inner)
    try:
        while True:
            with shield("loops.enter"):
                loop.enter()
            try:
                chunk = await step()
            finally:
                with shield("loops.leave"):
                    loop.leave()
            try:
                told = yield chunk
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the reader, for `inner`
                step = partial(inner.athrow, error)
            else:
                step = partial(anext, inner) if told is None else partial(inner.asend, told)
    except StopAsyncIteration:
        return
    except GeneratorExit:
        raise
    except BaseException as error:
        fault = error
        raise
    finally:
        with shield("loops.over"):
            loop.over(fault)
