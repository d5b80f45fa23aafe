"""Sealed values inside a text that somebody else wrote, found and taken out. Pure.

Theory of operation. Other tracers put sealed values into attributes as they are, inside JSON
(escaped once, or again inside another JSON), inside the repr of an SDK's object, and as the repr of
bytes. They are found in three ways:

* by a known key in front of them (`"thoughtSignature": "…"`, `signature='…'`), also where the text
  was cut before their end;
* as a bytes literal whose content was seen on the wire;
* as a run of base64 characters that was seen on the wire, whatever stands around it.

`Wire` answers what was seen; it knows keyed digests only. What is taken out leaves a marker with a
keyed digest prefix and a size, so that two spans with the same value can still be joined.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from otel_sealed.digest import glued

Seen: TypeAlias = Callable[[str], bool]
"""Whether a value, in any base64 spelling, came from a provider."""

SHORTEST: Final = 24
"""Shorter than this nothing is a sealed value; a text without such a run holds none."""
_MOST_RUNS: Final = 512
_NEAR: Final = 80
_PREFIX: Final = 12

# These hold nothing but ciphertext; `signature` and `data` mean other things elsewhere, too.
_SURE: Final = frozenset(
    {
        "thoughtsignature",
        "thoughtsignatures",
        "reasoningsignature",
        "encryptedcontent",
        "encryptedindex",
        "encryptedstdout",
        "encryptedreasoning",
        "redactedcontent",
        "reasoningopaque",
    }
)
_HOLDS_DATA: Final = re.compile(r"redacted|reasoning_details")
_LIKELY: Final = frozenset({"signature", "data"})
_NAME: Final = (
    r"(?:thought|reasoning)_?[sS]ignature|encrypted_?(?:[cC]ontent|[iI]ndex|[sS]tdout|[rR]easoning)"
    r"|redacted_?[cC]ontent|reasoning_?[oO]paque|signature|data"
)
_HINTS: Final = (
    "ignature",
    "ncrypted",
    "edacted",
    "paque",
    "__thought__",
)  # without one no key is in a text
# A run of backslashes is read once, from its beginning, however it goes on.
_ESCAPED: Final = r"(?<!\\)\\++(?:/|u00[0-9a-fA-F]{2})"
_SPELT: Final = rf"(?:[A-Za-z0-9+/_=-]|{_ESCAPED})"
_NAMED: Final = re.compile(
    rf"(?P<head>(?<![A-Za-z])(?P<name>{_NAME})\\*[\"']?\s*[:=]\s*\\*[\"'])(?P<value>{_SPELT}{{4,}})"
)
# LiteLLM lists signatures beside a message
_LISTED: Final = re.compile(r"(thought_?[sS]ignatures\\*[\"']?\s*[:=]\s*)(\[[^\]]*)")
# and hides one in the id of a tool call, and other tracers copy ids
_IN_ID: Final = re.compile(rf"(?<=__thought__){_SPELT}{{{SHORTEST},}}")
_BYTES: Final = re.compile(
    r"""\bb(?:'(?P<one>(?:[^'\\]|\\.){8,100000}?)'|"(?P<two>(?:[^"\\]|\\.){8,100000}?)")""",
    re.DOTALL,
)
# Inside another literal or JSON: its end has as many backslashes as its beginning, 15 where
# literals are nested four deep. Beginnings of any number would each be read to the end.
_ESCAPED_BYTES: Final = re.compile(
    r"\bb(\\{0,15})(['\"])(?P<one>.{8,100000}?)(?<!\\)\1\2", re.DOTALL
)
_RUN: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{SHORTEST},}}={{0,2}}")
_ESCAPED_RUN: Final = re.compile(rf"{_SPELT}{{{SHORTEST},}}")
_QUOTED: Final = re.compile(r"\\([\\'\"])")
_DEEPEST: Final = 4
_ESCAPE: Final = re.compile(r"(?<!\\)\\++(?:/|u00([0-9a-fA-F]{2}))")
_SIGNATURE_BEFORE: Final = re.compile(r"(?:thought|reasoning)_?[sS]ignature\W*\Z")


@dataclass(frozen=True, slots=True)
class Wire:
    """What the process saw on the wire, as far as it may be told here: by keyed digest only."""

    seen: Seen
    digest: Callable[[str], str]


def marker(wire: Wire, value: str) -> str:
    """What stands for a value that was taken out."""
    digest = wire.digest(value)[:_PREFIX]
    return f"[sealed {digest} {len(value)}]" if digest else f"[sealed {len(value)}]"


def scrubbed(text: str, wire: Wire) -> str:
    """`text` without sealed values; the same object where there are none."""
    if len(text) < SHORTEST:
        return text
    clean = text
    if any(hint in text for hint in _HINTS):
        clean = _NAMED.sub(lambda found: _named(found, wire), clean)
        clean = _LISTED.sub(lambda found: _list(found, wire), clean)
        clean = _IN_ID.sub(lambda found: marker(wire, _unescaped(found[0])), clean)
    if "b'" in clean or 'b"' in clean or "b\\" in clean:
        pattern = _ESCAPED_BYTES if "\\\\x" in clean else _BYTES
        clean = pattern.sub(lambda found: _literal(found, wire), clean)
    for start, end, run in reversed(list(seen_runs(clean, wire.seen))):
        clean = f"{clean[:start]}{marker(wire, run)}{clean[end:]}"
    return text if clean == text else clean


def seen_runs(text: str, seen: Seen, most: int = _MOST_RUNS) -> Iterator[tuple[int, int, str]]:
    """(start, end, value) of every run of `text` that was seen on the wire, in order.

    At most `most` runs are looked up, the longest first.
    """
    escaped = "\\/" in text or "\\u00" in text
    found = [m.span() for m in (_ESCAPED_RUN if escaped else _RUN).finditer(text)]
    if len(found) > most:
        found = sorted(sorted(found, key=lambda span: span[0] - span[1])[:most])
    for start, end in found:
        for first in _starts(text, start, end):
            value = _unescaped(text[first:end]) if escaped else text[first:end]
            if seen(value):
                yield first, end, value
                break


def _starts(text: str, start: int, end: int) -> Iterator[int]:
    """Where in a run a value may start: at its head, or behind what was glued to it."""
    yield start
    if start and text[start - 1] == "\\":  # the `n` of an escaped line break
        yield start + 1
    yield from glued(text, start, end, SHORTEST)


def sealed_key(key: str, value: str) -> bool:
    """Whether an attribute of this name with this value holds something sealed."""
    *way, last = [p for p in key.replace("-", "_").split(".") if not p.isdecimal()] or [key]
    name = last.replace("_", "").lower()
    if name in _SURE:
        return True
    if name == "data":
        return bool(way) and (way[-1] == "message_content" or _HOLDS_DATA.search(key) is not None)
    return name == "signature" and _opaque(value)


def _opaque(value: str) -> bool:
    return _RUN.fullmatch(value) is not None


def _named(found: re.Match[str], wire: Wire) -> str:
    value = _unescaped(found["value"])
    name = found["name"].replace("_", "").lower()
    if name in _LIKELY and not _opaque(value) and not wire.seen(value):
        return found[0]
    if name == "data" and not _redacted(found) and not wire.seen(value):
        return found[0]
    return f"{found['head']}{marker(wire, value)}"


def _list(found: re.Match[str], wire: Wire) -> str:
    inside = _ESCAPED_RUN.sub(lambda run: marker(wire, _unescaped(run[0])), found[2])
    return f"{found[1]}{inside}"


def _redacted(found: re.Match[str]) -> bool:
    text, at, end = found.string, found.start(), found.end()
    around = text[max(0, at - _NEAR) : at], text[end : end + _NEAR]
    return any(word in near for near in around for word in ("redacted", "reasoning.encrypted"))


def _literal(found: re.Match[str], wire: Wire) -> str:
    """A bytes literal: taken out if its content was seen, or if a sealed key stands before it."""
    content = _bytes_of(next(part for part in found.groupdict().values() if part))
    if content is None:
        return found[0]
    value = base64.b64encode(content).decode()
    before = found.string[max(0, found.start() - 24) : found.start()]
    if wire.seen(value) or _SIGNATURE_BEFORE.search(before):
        return f"{marker(wire, value)}"
    return found[0]


def _bytes_of(body: str) -> bytes | None:
    """The bytes that the inside of a literal stands for, its escapes perhaps escaped again."""
    for _ in range(_DEEPEST):
        if "\\\\x" not in body:
            break
        body = _QUOTED.sub(lambda found: found[1], body)
    try:
        value = ast.literal_eval(f"b'''{body}'''")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bytes) else None


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text)
