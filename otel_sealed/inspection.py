"""`inspect(response)`: what a single response holds, without holding any of it.

The dialect is told by shape. SDK objects are turned into wire JSON by their own `to_dict` or
`model_dump`, never into a string; iterators are refused, since reading one would consume it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from otel_sealed.contract import Dialect, RawAnswer
from otel_sealed.digest import Digest
from otel_sealed.errors import SealedError
from otel_sealed.model import Block, Kind, Rejection, Role, State, Usage
from otel_sealed.providers import dialects
from otel_sealed.providers.refusals import classify
from otel_sealed.vocab import model_name, word
from otel_sealed.wire import Reader, as_json, as_payloads
from otel_sealed.wire.parse import Unread

_REMEDY: Final = "give the response of one call, or the list of its stream's events"
_LOOKED_AT: Final = 16


@dataclass(frozen=True, slots=True)
class Seal:
    """One sealed slot of a block: `size` in bytes of the compared form, 0 unless present."""

    artifact: str
    state: State
    size: int


@dataclass(frozen=True, slots=True)
class Part:
    """One block, part or item: where it stands, what it is, what is sealed in it."""

    path: str
    type: str
    kind: Kind
    seals: tuple[Seal, ...] = ()
    known: bool = True


@dataclass(frozen=True, slots=True)
class Inspection:
    """What `inspect` found.

    Attributes:
        dialect: The name of its dialect (docs/contract/README.md); empty for a failure that could
            be anybody's.
        complete: The response came whole: a cut stream or a truncated body did not.
        parts: The blocks in order, nested ones after the block that holds them.
        failed: It is an error body; `rejection` is its class if it speaks of sealed state.
        lost: Stream events that could not be read.
    """

    dialect: str
    complete: bool
    model: str = ""
    stop: str = ""
    parts: tuple[Part, ...] = ()
    usage: Usage = field(default_factory=Usage)
    failed: bool = False
    rejection: Rejection | None = None
    lost: int = 0

    @property
    def seals(self) -> tuple[Seal, ...]:
        """The sealed values that are really there, in order."""
        return tuple(s for part in self.parts for s in part.seals if s.state is State.PRESENT)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def inspect(response: Any) -> Inspection:
    """Say what a response holds: its blocks in order, the seals in them, sizes, usage.

    Args:
        response: A response of any API that has a page in docs/contract/README.md: the SDK's
            object, a dict, JSON text or bytes, an event stream's text or bytes, or the list of its
            events.

    Raises:
        SealedError: It is no such response, or cannot be read.
    """
    body, lost = _body(response)
    events = body if isinstance(body, list) else None
    dialect = _dialect(body)
    if dialect is None:
        return _failure(body)
    complete = True
    if events is not None:
        body = dialect.fold(events)
        complete = bool(body.pop("complete", True))
    answer = dialect.answer(body)
    return Inspection(
        dialect=dialect.name,
        complete=complete and answer.complete and not lost and not _cut_short(body),
        model=model_name(answer.model),
        stop=word(answer.stop.lower()) if answer.stop else "",
        parts=tuple(_parts(dialect, answer)),
        usage=answer.usage,
        failed=bool(answer.error),
        rejection=classify(answer.error) if answer.error else None,
        lost=lost,
    )


# ----------------------------------------------------------------------------------- what came


def _body(response: Any) -> tuple[Any, int]:
    """(wire JSON or the list of a stream's payloads, number of unreadable payloads)."""
    if isinstance(response, (bytes, bytearray, memoryview)):
        response = _text(bytes(response))
    if isinstance(response, str):
        return _from_text(response)
    if isinstance(response, (list, tuple)):
        return [_plain(event) for event in response], 0
    return _plain(response), 0


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig", "surrogatepass")
    except UnicodeDecodeError:
        raise SealedError("not UTF-8 text", remedy=_REMEDY) from None


def _from_text(text: str) -> tuple[Any, int]:
    if text.lstrip().startswith(("data:", "event:", ":")):
        return as_payloads(text)
    try:
        return as_json(text), 0
    except Unread as error:
        reason = error.reason
    if reason == "json" and (lines := [line for line in text.splitlines() if line.strip()])[1:]:
        payloads, lost = as_payloads(lines)
        if payloads:
            return payloads, lost
    raise SealedError(
        "nested too deeply" if reason == "depth" else "neither JSON nor an event stream",
        remedy=_REMEDY,
    )


def _plain(value: Any) -> Any:
    """Wire JSON of an SDK's object, by its own means."""
    if value is None or isinstance(value, (dict, str, int, float, bool)):
        return value
    dump = _dump(value)
    if dump is None:
        kind = word(type(value).__name__.lower())
        raise SealedError(f"cannot read an object of type {kind}", remedy=_REMEDY)
    try:
        return dump()
    except Exception:  # noqa: BLE001 - an SDK's serialiser fails with text of the response in it
        raise SealedError("its own serialiser failed", remedy="give its JSON instead") from None


def _dump(value: Any) -> Callable[[], Any] | None:
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return cast("Callable[[], Any]", to_dict)  # Stainless: wire names, nothing added
    model_dump = getattr(value, "model_dump", None)
    if callable(model_dump):
        # google-genai: wire names, bytes as base64
        return lambda: model_dump(mode="json", by_alias=True, exclude_none=True)
    return None


def _dialect(body: Any) -> Dialect | None:
    """The dialect whose shape fits; None for an error body. A stream may begin with a ping."""
    objects = [x for x in (body if isinstance(body, list) else [body]) if isinstance(x, dict)]
    if any("api" in x and not x.keys().isdisjoint(("request", "events")) for x in objects):
        raise SealedError("an exchange transcript", remedy="`otel-sealed verify` reads those")
    for dialect in dialects().values():
        if any(dialect.answers(x) for x in objects[:_LOOKED_AT]):
            return dialect
    if any("error" in x for x in objects):
        return None
    raise SealedError("no response of a known provider", remedy=_REMEDY)


def _failure(body: Any) -> Inspection:
    """An error body: whose it is does not show, since the providers' shapes overlap."""
    return Inspection("", complete=True, failed=True, rejection=classify(body))


def _cut_short(body: Any) -> bool:
    """Whether the body says itself that it is not all there is (OpenAI)."""
    return isinstance(body, dict) and body.get("status") in ("incomplete", "in_progress", "queued")


def _parts(dialect: Dialect, answer: RawAnswer) -> Iterator[Part]:
    # a key of this call alone: nothing but sizes and states is read off what it digests
    reader = Reader(dialect, Digest(secrets.token_bytes(32)))
    blocks, _, _ = reader.answer(answer)
    for block in blocks:
        path = ".".join(x for x in (answer.path, block.sub) if x)
        yield Part(path, block.type, block.kind, tuple(_seals(block)), block.known)


def _seals(block: Block) -> Iterator[Seal]:
    """The sealed slots of a block; one that never was there is worth a word on reasoning only."""
    for value in block.values:
        if value.role is not Role.SEAL:
            continue
        if value.state is not State.ABSENT or block.kind is Kind.REASONING:
            yield Seal(value.artifact, value.state, value.size)


# -------------------------------------------------------------------------------- how it reads

_STATES: Final = {
    State.EMPTY: "empty seal",
    State.NULL: "null instead of a seal",
    State.ABSENT: "no seal",
    State.INVALID: "no text where the seal should be",
}


def _lines(found: Inspection) -> Iterator[str]:
    who = f"{found.dialect} response" if found.dialect else "response"
    if found.failed:
        about = f": {found.rejection}" if found.rejection else ", which says nothing of seals"
        yield f"{who}: an error{about}"
        if not found.dialect:
            return
    else:
        words = [who, "complete" if found.complete else "NOT complete"]
        words += [found.model] if found.model else []
        words += [f"stopped by {found.stop}"] if found.stop else []
        yield ", ".join(words)
    if found.lost:
        yield f"{found.lost} stream events could not be read"
    width = max((len(part.path) for part in found.parts), default=0)
    wide = max((len(part.type) for part in found.parts), default=0)
    for part in found.parts:
        seals = ", ".join(_seal_line(seal) for seal in part.seals)
        yield f"  {part.path:{width}}  {part.type:{wide}}  {seals or '-'}".rstrip()
    count, size = len(found.seals), sum(seal.size for seal in found.seals)
    yield f"{count} sealed value{'' if count == 1 else 's'}, {size:,} bytes in all"
    if usage := ", ".join(_usage(found.usage)):
        yield f"usage: {usage}"


def _seal_line(seal: Seal) -> str:
    if seal.state is State.PRESENT:
        return f"{seal.artifact} {seal.size:,} B"
    return f"{seal.artifact} ({_STATES[seal.state]})"


def _usage(usage: Usage) -> Iterator[str]:
    for label, count in (
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("reasoning", usage.reasoning_tokens),
        ("read from cache", usage.cache_read_tokens),
        ("written to cache", usage.cache_write_tokens),
    ):
        if count is not None:
            yield f"{label} {count:,}"
