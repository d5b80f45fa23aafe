"""The stream helpers of anthropic and openai: what they add up to is what a host works with.

`messages.stream()`, `responses.stream()` and `chat.completions.stream()` hand out one object, the
message or response so far, made of the events by rules of their own: the last of two signatures,
none of a compaction's, no output where the closing event has none, details and parallel calls of
one number run together (docs/sdk-surface.md#streams). The tee below has the events. So a
helper is noted at the call whose stream it reads, weakly, and its object is looked at when the call
is over, where by then it has read everything. Nobody's iteration is touched.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from otel_sealed.instrument.guard import shield
from otel_sealed.instrument.seam import Seam
from otel_sealed.instrument.tee import call_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from otel_sealed.instrument.runtime import Runtime


class Helpers:
    """The adapter for the helper classes of one module."""

    def __init__(
        self, module: str, owners: tuple[str, ...], finished: Callable[[Any], Any]
    ) -> None:
        """`finished` gives the object of a helper that has read everything, else None."""
        self.module = module
        self._owners = owners
        self._finished = finished

    def under(self, _runtime: Runtime) -> Helpers:
        """The same under any runtime: a helper belongs to the call whose stream it reads."""
        return self

    def seams(self) -> tuple[Seam, ...]:
        """What to wrap, by name."""
        return tuple(Seam(owner, "__init__", self._made) for owner in self._owners)

    def vanished(self) -> tuple[str, ...]:
        """The helpers are imported with their SDK; a module that is gone has none to offer."""
        return ()

    def _made(
        self, wrapped: Callable[..., Any], helper: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        result = wrapped(*args, **kwargs)
        with shield("helpers.made"):
            raw_stream = kwargs["raw_stream"] if "raw_stream" in kwargs else args[0]
            call = call_of(raw_stream.response.stream)
            if call is not None:
                call.helped_by(weakref.ref(helper), self._finished)
        return result


def _message(helper: Any) -> Any:
    """The message of anthropic's, once the event behind all blocks is in it."""
    try:
        message = helper.current_message_snapshot
    except AssertionError:  # so it says that no message began
        return None
    return message if message.stop_reason is not None else None


def _response(helper: Any) -> Any:
    """The response of openai's, there with the closing event."""
    return helper._state._completed_response


def _completion(helper: Any) -> Any:
    """The completion of openai's, once a choice of it said why it stopped."""
    try:
        completion = helper.current_completion_snapshot
    except AssertionError:  # so it says that no chunk came
        return None
    stopped = any(choice.finish_reason is not None for choice in completion.choices)
    return completion if stopped else None


MESSAGES: Final = Helpers(
    "anthropic.lib.streaming._messages", ("MessageStream", "AsyncMessageStream"), _message
)
BETA_MESSAGES: Final = Helpers(
    "anthropic.lib.streaming._beta_messages",
    ("BetaMessageStream", "BetaAsyncMessageStream"),
    _message,
)
RESPONSES: Final = Helpers(
    "openai.lib.streaming.responses._responses",
    ("ResponseStream", "AsyncResponseStream"),
    _response,
)
CHAT: Final = Helpers(
    "openai.lib.streaming.chat._completions",
    ("ChatCompletionStream", "AsyncChatCompletionStream"),
    _completion,
)
