"""Bytes to JSON, and server-sent events to payloads, without ever raising on what came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic_core import from_json

from otel_sealed.steps import spend

_DONE = "[DONE]"
_PLAIN: Final = re.compile(
    r"\A(?:(?:event:[^\n]*\n)?data: \{[^\n]*\}\n\n|:[^\n]*\n\n)*+(?:data: \[DONE\]\n\n)?"
)
_DATA: Final = re.compile(r"^data: (\{[^\n]*\})$", re.MULTILINE)
_LARGE: Final = 1024 * 1024  # what is smaller is parsed in 0.2 s at most, whatever it holds
_PARSED: Final = 8  # values that are parsed in the time of a step, some 0.2 us each
MARKS: Final = b",[{"
"""What begins or parts the values of a JSON text."""
MAX_BODY = 64 * 1024 * 1024
"""Longest body that is read, in bytes or characters. A longer one is named `size` in `unread`."""


class Unread(Exception):  # noqa: N818 - a state of the body, not a fault of ours
    """A body that cannot be read; `reason` is a word of ours (`json`, `depth`, `encoding`, `size`).

    It is raised by who reads it, and takes the place of a body that could not be kept or unpacked.
    """

    def __init__(self, reason: str) -> None:
        """`reason` goes out on the span, so it is never text of the body or of another error."""
        self.reason = reason
        super().__init__(reason)


def charge(body: bytes | str) -> None:
    """Charge for the values of a large body before it is parsed. Raises OutOfSteps.

    The parser itself counts no steps, and a body of commas alone is a hundred times as many values
    as one of texts. They are counted by what begins or parts them.
    """
    if len(body) >= _LARGE:
        data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
        spend((len(data) - len(data.translate(None, MARKS))) // _PARSED)


def as_json(body: Any) -> Any:
    """Parsed JSON of a raw body; parsed bodies pass through, and an `Unread` is raised.

    Raises Unread with reason `size`, `encoding`, `depth` or `json`; the original error is not
    chained, since `json.JSONDecodeError` holds the whole body.
    """
    if isinstance(body, Unread):
        raise Unread(body.reason)
    if isinstance(body, (bytes, bytearray, memoryview, str)) and len(body) > MAX_BODY:
        raise Unread("size")
    if isinstance(body, (bytes, str)):
        charge(body)
    if isinstance(body, (bytearray, memoryview)):
        body = bytes(body)
    if not isinstance(body, (bytes, str)):
        return body
    try:
        return loads(body)
    except RecursionError:
        raise Unread("depth") from None
    except UnicodeDecodeError:
        raise Unread("encoding") from None
    except ValueError:
        raise Unread("json") from None


def loads(text: bytes | str) -> Any:
    """What `json.loads` gives, in a seventh of the time, and halves of characters in bytes as well.

    Whatever the faster parser refuses (halves of characters, deep nesting) is for `json.loads`;
    what it takes, it takes the same way (tests/core/test_wire_parse.py). Texts are not kept in its
    cache. Raises ValueError and RecursionError.
    """
    try:
        return from_json(text, cache_strings="keys")
    except (ValueError, TypeError):  # the latter for halves of characters in a `str`
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogatepass")
        return json.loads(text)


def lookup(part: Any, dotted: str, default: Any = None) -> Any:
    """What stands under a dotted key or number of a list, `default` where the way is blocked."""
    if "." not in dotted and isinstance(part, dict):
        return part.get(dotted, default)
    found: Any = part
    for key in dotted.split("."):
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return default
    return found


def first_text(part: Any, places: Iterable[tuple[str, str]]) -> str | None:
    """The first text there is under these keys, each with the mark behind which it begins."""
    for key, mark in places:
        found = lookup(part, key)
        if isinstance(found, str) and (told := found.partition(mark)[2] if mark else found):
            return told
    return None


def as_text(value: object) -> str:
    """A text of a body, empty for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int | None:
    """A count of a body (tokens), None for anything else: `true` is an int in Python alone."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_payloads(events: Any) -> tuple[list[Any], int]:
    """(JSON payloads in order, number of unreadable ones) of parsed events or raw SSE bytes.

    An SSE stream cut in the middle of an event loses that event only.
    """
    if isinstance(events, (bytes, bytearray, memoryview, str)):
        return _server_sent(events)
    if not isinstance(events, Iterable):
        return [], 1
    events = list(events)
    found = _together(events)
    if found is not None:
        return found, 0
    payloads = []
    lost = 0
    for event in events:
        if event == _DONE:
            continue
        try:
            payloads.append(as_json(event))
        except Unread:
            lost += 1
    return payloads, lost


def _server_sent(stream: bytes | bytearray | memoryview | str) -> tuple[list[Any], int]:
    text = stream if isinstance(stream, str) else bytes(stream).decode("utf-8", "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    head = _PLAIN.match(text)  # nearly all of nearly all streams
    end = 0 if head is None else head.end()
    together = _together(_DATA.findall(text, 0, end))
    if together is None:
        return _of_lines(text)
    rest, lost = _of_lines(text[end:])
    return together + rest, lost


def _together(texts: list[Any]) -> list[Any] | None:
    """The objects that texts of JSON are, read in one go; None where each has to be read alone."""
    try:
        whole = f"[{','.join(texts)}]"
        charge(whole)
        found: list[Any] = loads(whole) if len(whole) <= MAX_BODY else []
    except (TypeError, ValueError, RecursionError):
        return None
    return found if len(found) == len(texts) and set(map(type, found)) <= {dict} else None


def _of_lines(text: str) -> tuple[list[Any], int]:
    """The payloads of a piece of a stream, line by line as the format is defined."""
    payloads = []
    lost = 0
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            data = "\n".join(lines)
            lines = []
            if data.strip() == _DONE:
                continue
            try:
                payloads.append(as_json(data))
            except Unread:
                lost += 1
    return payloads, lost
