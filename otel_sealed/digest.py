"""Keyed digests: the only place that touches sealed values (docs/architecture.md#digests).

Every digest is HMAC-SHA-256 cut to 128 bits under the process, folder or fleet key, with a domain
byte so that digests of different things never meet. Readable and sealed values go in; 16 bytes, a
size and a few window digests come out.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import re
import struct
import unicodedata
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, Literal

from otel_sealed.steps import TEXT, OutOfSteps, current, of_text, spend

SIZE = 16

_WINDOWS = 8
_WINDOW_BYTES = 4
_WINDOW_MASK = (1 << 8 * _WINDOW_BYTES) - 1
_MIN_WINDOW = 16
_MIN_BLOB = 16
_HEAD = 64  # characters of base64 that are 48 bytes; that many of a seal are ASCII once in 2**48
_DEPTH = 64
_MAX_BITS = 4096  # Python refuses to write much longer integers as decimals
_URLSAFE = bytes.maketrans(b"-_", b"+/")
_FIRST_GLUED = 8  # an id of a relay has two or three `__` before the value
_DOMAINS = (b"t", b"b", b"i", b"j", b"c", b"a", b"k", b"e", b"x")
_BLOCK = 64  # bytes SHA-256 takes at once, to which a key is filled up (RFC 2104)
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
_ALPHABET = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_FORMS: Final[tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...]] = ("NFC", "NFD", "NFKC", "NFKD")

# cache markers are left out of every comparison (docs/contract/common.md#how-values-are-compared)
_MARKERS = frozenset({"cache_control", "cachePoint", "cache_point"})


def utf8(text: str) -> bytes:
    """UTF-8 bytes of `text`, pairs of surrogates joined, lone ones kept.

    See docs/sdk-surface.md#how-values-are-hashed.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return joined.encode("utf-8", "surrogatepass")


def decode_blob(text: str) -> bytes | None:
    """Bytes of a base64 text in either alphabet, padded or not; None if it is not base64."""
    return _decoded(text.encode()) if text.isascii() else None


def _decoded(data: bytes) -> bytes | None:
    bare = data.rstrip(b"=")
    if b"-" in bare or b"_" in bare:
        bare = bare.translate(_URLSAFE)
    if len(bare) % 4 == 1:
        return None
    try:
        return binascii.a2b_base64(bare + b"=" * (-len(bare) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        return None


def canonical(text: str) -> bytes:
    """One spelling for all base64 spellings of a blob; the UTF-8 bytes of anything else."""
    return canonical_of(utf8(text))


def canonical_of(data: bytes) -> bytes:
    """`canonical` of a text, from its UTF-8 bytes."""
    if len(data) >= _MIN_BLOB and data.isascii():
        blob = _decoded(data)
        if blob is not None:
            return blob
    return data


def layers(text: str, depth: int = 3) -> tuple[bytes, ...]:
    """`canonical` of `text` and of what it decodes to, at most `depth` times (double encoding)."""
    spend(depth * of_text(text))
    found = [canonical(text)]
    while len(found) < depth:
        try:
            inner = found[-1].decode("ascii")
        except UnicodeDecodeError:
            break
        deeper = canonical(inner)
        if len(inner) < _MIN_BLOB or deeper == found[-1]:
            break
        found.append(deeper)
    return tuple(found)


def may_wrap(text: str) -> bool:
    """Whether a text may be the encoding of another text: False where `layers` finds one layer.

    What it decodes to is text if it is ASCII, and seals are not from their first bytes on: so the
    beginning is decoded, not the whole of it.
    """
    spend()
    head = decode_blob(text[:_HEAD])
    return head is not None and head.isascii()


def published(data: bytes) -> str:
    """The unkeyed SHA-256 of a value, for comparison with those of public constants only."""
    return hashlib.sha256(data).hexdigest()


def runs(text: str) -> list[str]:
    """The base64-like runs of at least 24 characters in `text`."""
    spend(of_text(text))
    return _RUN.findall(text)


def endings(run: str) -> list[str]:
    """The ends of a base64-like run that may be a value: each after a `__` that glues it on."""
    found = glued(run, 0, len(run), SIZE)
    spend(len(found) * of_text(run))
    return [run[at:] for at in found]


def glued(text: str, start: int, end: int, shortest: int) -> list[int]:
    """Where a value may begin in a run of `text`, after a `__` that glues it to what is before.

    A relay writes `call_1__thought__<value>`. base64url text has a `__` in every 4,096 characters,
    too, so only the first few are looked after, and the last one: else a long run costs its square.
    """
    ends = end - shortest
    found: list[int] = []
    at = text.find("__", start, ends)
    while at >= 0 and len(found) < _FIRST_GLUED:
        found.append(at + 2)
        at = text.find("__", at + 1, ends)
    if at >= 0:
        found.append(text.rfind("__", at, ends) + 2)
    return found


def plain(value: Any, depth: int = _DEPTH) -> Any:
    """`value` without nulls and cache markers, integral floats as integers: what JSON means.

    Below `depth` levels a constant stands for the rest; nothing that deep is a provider's. Parsed
    bodies may hold what JSON cannot: bytes count by their content, anything else by its type.
    """
    if type(value) is str:  # most of what there is
        return value
    if depth <= 0:
        return "…"
    if isinstance(value, dict):
        spend(len(value))
        return {
            str(k): plain(v, depth - 1)
            for k, v in value.items()
            if v is not None and k not in _MARKERS
        }
    if isinstance(value, list):
        spend(len(value))
        return [plain(v, depth - 1) for v in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return hex(value)
    if value is None or isinstance(value, (str, int)):
        return value
    return value.hex() if isinstance(value, bytes) else type(value).__name__


def keyed(key: bytes, prefix: bytes = b"") -> Callable[[bytes], bytes]:
    """HMAC-SHA-256 of `prefix` and what it is given, cut to 16 bytes. Thread-safe.

    The hash that has taken key and prefix is copied for each digest: a third of the cost of
    `hmac.digest`, which has OpenSSL set up anew at each call.
    """
    block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inside = hashlib.sha256(block.translate(_INNER) + prefix).copy
    outside = hashlib.sha256(block.translate(_OUTER)).copy

    def digest(data: bytes) -> bytes:
        budget = current()  # `spend`, without a call of it
        if budget is not None:
            budget.left -= 1 + len(data) // TEXT
            if budget.left < 0:
                raise OutOfSteps
        inner = inside()
        inner.update(data)
        outer = outside()
        outer.update(inner.digest())
        return outer.digest()[:SIZE]

    return digest


class Digest:
    """All keyed digests under one key. Stateless and thread-safe."""

    __slots__ = ("_keyed", "_text", "_windows")

    def __init__(self, key: bytes, *, shared: bool = True) -> None:
        """`key`: at least 16 secret bytes. Raises ValueError when shorter.

        `shared`: whether another process is to compare windows with those made here.
        """
        if len(key) < SIZE:
            msg = f"the hash key needs at least {SIZE} bytes, got {len(key)}"
            raise ValueError(msg)
        self._keyed = {domain: keyed(key, domain) for domain in _DOMAINS}
        self._text = self._keyed[b"t"]
        secret = hmac.digest(key, b"windows", "sha256")
        self._windows = _shared_windows(secret) if shared else _own_windows(secret)

    def raw(self, domain: bytes, data: bytes) -> bytes:
        """16-byte digest of `data` in `domain`, one of `_DOMAINS`."""
        return self._keyed[domain](data)

    def text(self, text: str) -> bytes:
        """Digest of an exact text."""
        return self._text(text.encode() if text.isascii() else utf8(text))

    def blob(self, data: bytes) -> bytes:
        """Digest of decoded bytes."""
        return self._keyed[b"b"](data)

    def canon(self, text: str) -> bytes:
        """Digest of a sealed value whatever its base64 spelling."""
        return self._keyed[b"b"](canonical(text))

    def name(self, text: str) -> bytes:
        """Digest of an id."""
        return self._keyed[b"i"](text.encode() if text.isascii() else utf8(text))

    def value(self, value: Any) -> bytes:
        """Digest of a JSON value in one canonical spelling, nulls and cache markers left out."""
        return self._keyed[b"j"](counted(value))

    def chain(self, before: bytes, link: bytes) -> bytes:
        """The next rolling digest after `before`."""
        return self._keyed[b"c"](before + link)

    def account(self, credential: str) -> str:
        """A stand-in for a credential: keyed, hex, never exported."""
        return self._keyed[b"a"](utf8(credential)).hex()

    def windows(self, data: bytes, length: int | None = None) -> bytes:
        """Up to 8 window digests from the head, 8 from the tail, and those of both edges of `data`.

        4 bytes each; an edge is the first or last 16 bytes, which tells a cut from a mask there.

        Windows are sized for a value of `length` bytes (default: that of `data`), so that a
        changed value can be cut the way the received one was. Empty for under 32 bytes.
        """
        step, count = window_plan(len(data) if length is None else length)
        if count == 0:
            return b""
        size = len(data)
        parts = [data[at : at + step] for at in range(0, count * step, step)]
        parts += [
            data[max(0, at - step) : max(0, at)] for at in range(size, size - count * step, -step)
        ]
        parts += (data[:_MIN_WINDOW], data[-_MIN_WINDOW:])
        return self._windows(parts)


def _shared_windows(secret: bytes) -> Callable[[list[bytes]], bytes]:
    """Windows that any process with the key makes alike.

    Cut to 4 bytes, a hash after a secret block is enough: nothing can be appended to it.
    """
    begun = hashlib.sha256(secret.ljust(_BLOCK, b"\0")).copy

    def windows(parts: list[bytes]) -> bytes:
        prints = []
        for part in parts:
            window = begun()
            window.update(part)
            prints.append(window.digest()[:_WINDOW_BYTES])
        return b"".join(prints)

    return windows


def _own_windows(secret: bytes) -> Callable[[list[bytes]], bytes]:
    """Windows that never leave the memory of this process: Python's own keyed hash, cut.

    The hash is a fifth of the time of SHA-256; the secret is in it for where `PYTHONHASHSEED` is
    known.
    """

    def windows(parts: list[bytes]) -> bytes:
        return struct.pack(
            f"<{len(parts)}I", *[hash(secret + part) & _WINDOW_MASK for part in parts]
        )

    return windows


def sub_key(key: bytes, conversation: bytes) -> bytes:
    """The key under which digests of readable values of one conversation leave the process."""
    return hmac.digest(key, b"conversation" + conversation, "sha256")


def window_plan(length: int) -> tuple[int, int]:
    """(bytes a window, windows from each end) for a value of `length` bytes."""
    if length < 2 * _MIN_WINDOW:
        return 0, 0
    step = max(_MIN_WINDOW, -(-length // _WINDOWS))
    return step, length // step


_SPELLING: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_key: Final[Callable[[tuple[str, Any]], str]] = itemgetter(0)


def spelled(value: Any) -> bytes:
    """`plain(value)` as sorted, compact JSON bytes."""
    return utf8(_SPELLING.encode(plain(value)))


def counted(value: Any) -> bytes:
    """`plain(value)` in a spelling that is cheaper than JSON: texts are counted, not quoted.

    Two values have the same one only where `spelled` is the same for both.
    """
    try:
        return _counted(value, _DEPTH).encode()
    except TypeError:  # keys that are no texts: a parsed body may hold them
        value = plain(value)
    except UnicodeEncodeError:  # halves of a character count as the whole one
        pass
    whole = utf8(_SPELLING.encode(plain(value))).decode("utf-8", "surrogatepass")
    return _counted(json.loads(whole), _DEPTH).encode("utf-8", "surrogatepass")


def _counted(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is str:
        return f'"{len(value)}:{value}'
    if depth > 0 and kind is dict:
        spend(len(value))
        members = [
            f'"{len(key)}:{key}{_counted(inner, depth - 1)}'
            for key, inner in sorted(value.items(), key=_key)
            if inner is not None and key not in _MARKERS
        ]
        return f"{{{''.join(members)}}}"
    if depth > 0 and kind is list:
        spend(len(value))
        return f"[{''.join([_counted(inner, depth - 1) for inner in value])}]"
    flat = plain(value, depth)
    if isinstance(flat, str):
        return f'"{len(flat)}:{str.__str__(flat)}'
    if isinstance(flat, (list, dict)):
        return _counted(flat, depth)
    return f"{_SPELLING.encode(flat)},"


def normal_forms(text: str) -> tuple[str, ...]:
    """The four Unicode normal forms of `text` that differ from it."""
    return tuple(form for name in _FORMS if (form := unicodedata.normalize(name, text)) != text)


def base64_alphabet(text: str) -> bool:
    """Whether `text` holds only characters that some base64 alphabet has."""
    return _ALPHABET.fullmatch(text) is not None
