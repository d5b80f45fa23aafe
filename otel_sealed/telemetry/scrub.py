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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from otel_sealed import declared
from otel_sealed.digest import glued

Seen: TypeAlias = Callable[[str], bool]
"""Whether a value, in any base64 spelling, came from a provider."""

SHORTEST: Final = 24
"""Shorter than this nothing is a sealed value; a text without such a run holds none."""
_MOST_RUNS: Final = 512
_NEAR: Final = 80
_PREFIX: Final = 12
_CONTENT: Final = "message_content"
"""What OpenInference calls the blocks of a message, those of redacted thinking among them."""

# What other tracers and clouds call sealed values; no dialect has a field of these names.
_OTHERS: Final = frozenset(
    {"encrypted_reasoning", "reasoning_opaque", "reasoning_signature", "redacted_content"}
)


def _folded(key: str) -> str:
    return key.replace("_", "").lower()


def _spelled(keys: Iterable[str]) -> str:
    """A pattern of keys, with underscores or humps between their words, the longest first."""
    return "|".join(
        "_?".join(
            word if at == 0 else f"[{word[0]}{word[0].upper()}]{re.escape(word[1:])}"
            for at, word in enumerate(key.split("_"))
        )
        for key in sorted(keys, key=lambda key: (-len(key), key))
    )


def _humped(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _hints() -> tuple[str, ...]:
    """Texts without one of which no key is in a text, but for the first letter of a key."""
    words = (*_CERTAIN, *declared.OPAQUE, *declared.LISTED, *chain(*declared.NEAR.values()))
    found = {spelled[1:] for word in words for spelled in (word, _humped(word))}
    found |= declared.MARKS
    return tuple(sorted(x for x in found if not any(y in x for y in found - {x})))


_CERTAIN: Final = declared.ALWAYS | _OTHERS
_SURE: Final = frozenset(map(_folded, _CERTAIN | declared.LISTED))
_OPAQUE: Final = frozenset(map(_folded, declared.OPAQUE))
_NEAR_WORDS: Final = {_folded(key): words for key, words in declared.NEAR.items()}
_NAME: Final = _spelled(_CERTAIN | declared.OPAQUE | declared.NEAR.keys())
_HINTS: Final = _hints()
# A run of backslashes is read once, from its beginning, however it goes on.
_ESCAPED: Final = r"(?<!\\)\\++(?:/|u00[0-9a-fA-F]{2})"
_SPELT: Final = rf"(?:[A-Za-z0-9+/_=-]|{_ESCAPED})"
_NAMED: Final = re.compile(
    rf"(?P<head>(?<![A-Za-z])(?P<name>{_NAME})\\*[\"']?\s*[:=]\s*\\*[\"'])(?P<value>{_SPELT}{{4,}})"
)
_LISTED: Final = re.compile(rf"((?:{_spelled(declared.LISTED)})\\*[\"']?\s*[:=]\s*)(\[[^\]]*)")
# other tracers copy ids
_MARKED: Final = "|".join(f"(?<={re.escape(mark)})" for mark in sorted(declared.MARKS))
_IN_ID: Final = re.compile(rf"(?:{_MARKED}){_SPELT}{{{SHORTEST},}}")
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
_BEFORE_BYTES: Final = re.compile(
    rf"(?:{_spelled(declared.IN_BYTES | {'reasoning_signature'})})\W*\Z"
)


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
    name = _folded(last)
    if name in _SURE:
        return True
    if name in _NEAR_WORDS:
        inside = bool(way) and way[-1] == _CONTENT
        return inside or any(word in key for word in _NEAR_WORDS[name])
    return name in _OPAQUE and _opaque(value)


def _opaque(value: str) -> bool:
    return _RUN.fullmatch(value) is not None


def _named(found: re.Match[str], wire: Wire) -> str:
    value = _unescaped(found["value"])
    name = _folded(found["name"])
    words = _NEAR_WORDS.get(name)
    if words is None and name not in _OPAQUE:
        certain = True
    else:
        certain = _opaque(value) and (words is None or _is_near(found, words))
    if certain or wire.seen(value):
        return f"{found['head']}{marker(wire, value)}"
    return found[0]


def _list(found: re.Match[str], wire: Wire) -> str:
    inside = _ESCAPED_RUN.sub(lambda run: marker(wire, _unescaped(run[0])), found[2])
    return f"{found[1]}{inside}"


def _is_near(found: re.Match[str], words: Iterable[str]) -> bool:
    text, at, end = found.string, found.start(), found.end()
    around = text[max(0, at - _NEAR) : at], text[end : end + _NEAR]
    return any(word in near for near in around for word in words)


def _literal(found: re.Match[str], wire: Wire) -> str:
    """A bytes literal: taken out if its content was seen, or if a sealed key stands before it."""
    content = _bytes_of(next(part for part in found.groupdict().values() if part))
    if content is None:
        return found[0]
    value = base64.b64encode(content).decode()
    before = found.string[max(0, found.start() - 24) : found.start()]
    if wire.seen(value) or _BEFORE_BYTES.search(before):
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
