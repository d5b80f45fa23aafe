"""Exchange transcripts: the offline form of what a wrapped client sees, one JSON object a line.

A file is read line by line, within the bounds of `wire.intake`, and never held as a whole. pydantic
looks at the keys of the envelope only, never at a body. An error names file, line and reason, and
no content: not even a value of the wrong type is quoted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from otel_sealed.contract import Api, Exchange
from otel_sealed.errors import SealedError
from otel_sealed.wire import intake
from otel_sealed.wire.inflate import DamagedError, UnknownEncodingError
from otel_sealed.wire.intake import GZIP, WHY, ZSTD, Inflated, NotJson
from otel_sealed.wire.parse import Unread

_BODIES: Final = {
    "request": ((dict,), "a JSON object"),
    "response": ((dict, list, str), "a JSON object, array or string"),
    "events": ((list,), "a JSON array"),
}
HEAD: Final = 1 << 16
"""So many bytes can be peeked at."""

_REMEDY: Final = "one JSON object a line, as the README describes transcripts"


class _Envelope(BaseModel):
    """Everything of a line but the bodies. Unknown keys are let pass: the format may grow."""

    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)

    api: str
    provider: str | None = None
    operation: str | None = None
    model: str | None = None
    host: str | None = None
    account: str | None = None
    betas: list[str] | None = None
    transport: str | None = None
    conversation: str | None = None
    status: int | None = None
    complete: bool | None = None


def read(path: str | Path) -> Iterator[Exchange]:
    """The exchanges of a file, in order; `Exchange.number` is the 0-based line.

    Raises:
        SealedError: The file, or a line of it, is unusable. What came before was yielded.
    """
    name = str(path)
    with opened(name) as file:
        yield from exchanges(file, name)


def exchanges(file: BufferedReader, name: str) -> Iterator[Exchange]:
    """The same of a file that is open; `name` is what errors call it."""
    found = False
    for number, line in enumerate(intake.lines(file, intake.MAX_LINE)):
        if line is None:
            raise SealedError(WHY[intake.SIZE], where=_at(name, number), remedy="leave it out")
        if not line.strip():
            continue
        found = True
        yield exchange_of(_parsed(line, _at(name, number)), name, number)
    if not found:
        raise SealedError("holds no exchange", where=name, remedy=_REMEDY)


def exchange_of(line: Any, name: str, number: int) -> Exchange:
    """The exchange one parsed line stands for; its conversation is the file's by default."""
    where = _at(name, number)
    if not isinstance(line, dict):
        raise SealedError("not a JSON object", where=where, remedy=_REMEDY)
    bodies = {key: _body(line, key, where) for key in _BODIES}
    if all(body is None for body in bodies.values()):
        raise SealedError(
            "none of request, response and events is there", where=where, remedy=_REMEDY
        )
    envelope = _envelope({k: v for k, v in line.items() if k not in _BODIES}, where)
    return Exchange(
        api=_api(envelope.api, where),
        provider=envelope.provider or "",
        operation=envelope.operation,
        model=envelope.model,
        host=envelope.host,
        account=envelope.account,
        betas=tuple(envelope.betas or ()),
        transport=envelope.transport,
        conversation=envelope.conversation or name,
        continues=True,
        status=envelope.status,
        complete=envelope.complete is not False,
        number=number,
        **bodies,
    )


def _at(name: str, number: int) -> str:
    return f"{name}, line {number + 1}"


@contextmanager
def opened(name: str) -> Iterator[BufferedReader]:
    """A file to read bytes from, gzipped or not. It is opened once: it may be a pipe.

    Raises:
        SealedError: It cannot be read, or turns out damaged while it is.
    """
    try:
        with cast("BufferedReader[Any]", Path(name).open("rb", HEAD)) as raw:
            magic = raw.peek(4)[:4]
            encoding = "zstd" if magic == ZSTD else "gzip" if magic[:2] == GZIP else ""
            if not encoding:
                yield raw
                return
            with Inflated(raw, encoding) as unpacked:
                # a reader of its own, which can be peeked at
                yield BufferedReader(unpacked, HEAD)
    except (EOFError, DamagedError):
        raise SealedError("a compressed file that is cut off or damaged", where=name) from None
    except UnknownEncodingError:
        remedy = "python -m pip install zstandard"
        raise SealedError(
            "a zstd file needs the package zstandard", where=name, remedy=remedy
        ) from None
    except Unread as unread:
        raise SealedError(WHY[unread.reason], where=name, remedy="unpack it") from None
    except OSError as error:
        # strerror is the system's own text; the exception itself would repeat the file's name
        raise SealedError(error.strerror or "cannot be read", where=name) from None


def _parsed(line: bytes, where: str) -> Any:
    try:
        return intake.value_of(line)
    except NotJson as error:
        what = f"not valid JSON at character {error.at}"
        raise SealedError(what, where=where, remedy=_REMEDY) from None
    except Unread as unread:
        remedy = _REMEDY if unread.reason == "encoding" else ""
        raise SealedError(WHY[unread.reason], where=where, remedy=remedy) from None


def _body(line: dict[str, Any], key: str, where: str) -> Any:
    allowed, wanted = _BODIES[key]
    body = line.get(key)
    if body is not None and not isinstance(body, allowed):
        raise SealedError(f"{key} is not {wanted}", where=where, remedy="null where there is none")
    return body


def _envelope(values: dict[str, Any], where: str) -> _Envelope:
    try:
        return _Envelope.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = problem["loc"][0]
    if problem["type"] == "missing":
        raise SealedError(f"{key} is missing", where=where, remedy=_REMEDY)
    wanted = problem["type"].removesuffix("_type").removesuffix("_parsing")
    raise SealedError(f"{key} has the wrong type", where=where, remedy=f"wanted: {wanted}")


def _api(name: str, where: str) -> Api:
    try:
        return Api(name)
    except ValueError:
        known = ", ".join(api.value for api in Api)
        raise SealedError("api is not known", where=where, remedy=f"one of {known}") from None
