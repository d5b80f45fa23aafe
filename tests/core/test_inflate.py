"""Compressed bytes are unpacked a block at a time, and never more of them than the bound."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from otel_sealed.wire import inflate
from otel_sealed.wire.inflate import BLOCK, DamagedError, UnknownEncodingError, Unpacked, unpacked
from otel_sealed.wire.parse import Unread

TEXT = b'event: x\ndata: {"n": 1}\n\n' * 999
MIXED = random.Random(5).randbytes(700_000) + bytes(3 * BLOCK) + TEXT

Pack = Callable[[bytes], bytes]


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-zlib.MAX_WBITS)


PACKERS: list[tuple[str, Pack]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
]
LIBRARIES = [
    ("br", "brotli"),
    ("br", "brotlicffi"),
    ("zstd", "zstandard"),
    ("zstd", "backports.zstd"),
    ("zstd", "compression.zstd"),
]


def until_it_raises(file: Unpacked) -> tuple[bytes, Exception | None]:
    found = b""
    try:
        while block := file.read(BLOCK):
            found += block
    except (Unread, EOFError) as error:
        return found, error
    return found, None


@pytest.fixture(
    params=[*PACKERS, *LIBRARIES],
    ids=lambda pair: "-".join(getattr(x, "__name__", x) for x in pair),
)
def codec(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Pack]:
    """An encoding and what makes it; each library that is installed is the one that is used."""
    name, pack = request.param
    if isinstance(pack, str):
        library: Any = pytest.importorskip(pack)
        monkeypatch.setattr(inflate, "import_module", lambda _name: library)
        return name, library.compress
    return name, pack


def test_what_was_packed_comes_out(codec: tuple[str, Pack]) -> None:
    name, pack = codec
    assert unpacked(pack(MIXED), name) == MIXED


def test_a_cut_body_is_read_as_far_as_it_goes(codec: tuple[str, Pack]) -> None:
    name, pack = codec
    packed = pack(MIXED)
    found = unpacked(packed[: len(packed) // 2], name)
    assert len(found) > BLOCK
    assert found == MIXED[: len(found)]


def test_what_is_not_of_the_encoding_is_damaged(codec: tuple[str, Pack]) -> None:
    name, _ = codec
    with pytest.raises(DamagedError) as caught:
        unpacked(b"this is neither", name)
    assert (str(caught.value), caught.value.__cause__) == ("", None)


def test_a_bomb_stops_at_the_bound(codec: tuple[str, Pack]) -> None:
    """One block more than the bound is made at most, however much there is."""
    name, pack = codec
    made, error = until_it_raises(Unpacked(io.BytesIO(pack(bytes(64 << 20))), name, most=4 << 20))
    assert (isinstance(error, Unread), str(error)) == (True, "size")
    assert len(made) <= 4 << 20


def test_no_more_is_unpacked_than_is_asked_for(codec: tuple[str, Pack]) -> None:
    """What a reader does not ask for stays packed, so that memory is the reader's to bound."""
    name, pack = codec
    read = 0

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            nonlocal read
            part = super().read(size)
            read += len(part)
            return part

    file = Unpacked(Counted(pack(random.Random(1).randbytes(9 * BLOCK))), name)
    assert len(file.read(10) or b"") == 10
    assert read < 2 * BLOCK


def test_lines_are_read_from_an_unpacked_file(codec: tuple[str, Pack]) -> None:
    name, pack = codec
    file = io.BufferedReader(Unpacked(io.BytesIO(pack(TEXT)), name))
    assert b"".join(file) == TEXT


@pytest.mark.parametrize("joint", [b"", bytes(5000)])
def test_every_member_of_a_gzip_file_is_read(joint: bytes) -> None:
    """Members follow each other, perhaps with zeros between them, as on tapes."""
    packed = gzip.compress(TEXT) + joint + gzip.compress(b"") + joint + gzip.compress(MIXED) + joint
    assert unpacked(packed, "gzip") == TEXT + MIXED


def test_every_frame_of_zstd_is_read() -> None:
    zstd: Any = pytest.importorskip("zstandard")
    assert unpacked(zstd.compress(TEXT) + zstd.compress(MIXED), "zstd") == TEXT + MIXED


def test_a_window_larger_than_the_bound_is_not_given_room() -> None:
    """A frame of a few bytes may ask for a window of 2 GB; a file's may have the usual 128 MB."""
    zstd: Any = pytest.importorskip("zstandard")
    wide = zstd.ZstdCompressionParameters(window_log=27)
    packer = zstd.ZstdCompressor(compression_params=wide).compressobj()
    packed = packer.compress(TEXT) + packer.flush()
    with pytest.raises(DamagedError):
        unpacked(packed, "zstd", most=1 << 26)
    assert Unpacked(io.BytesIO(packed), "zstd").read(len(TEXT)) == TEXT


def test_members_without_content_count_as_what_they_cost() -> None:
    """A body of nothing but empty members would yield nothing and take long."""
    with pytest.raises(Unread, match="size"):
        unpacked(gzip.compress(b"") * 300, "gzip", most=1 << 20)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "GZIP ,identity,  gzip", "x-gzip,gzip"])
def test_layers_are_taken_off_in_turn(encoding: str) -> None:
    assert unpacked(gzip.compress(gzip.compress(MIXED)), encoding) == MIXED
    assert unpacked(gzip.compress(zlib.compress(TEXT)), "deflate, gzip") == TEXT


@pytest.mark.parametrize(
    "inner", [bytes(64 << 20), gzip.compress(b"") * 100_000], ids=["zeros", "none"]
)
def test_each_layer_is_bounded(inner: bytes) -> None:
    """What comes out at the end says nothing of what was unpacked on the way."""
    with pytest.raises(Unread, match="size"):
        unpacked(gzip.compress(gzip.compress(inner)), "gzip, gzip, gzip", most=1 << 20)


@pytest.mark.parametrize("encoding", ["", "identity", " , identity"])
def test_an_encoding_that_changes_nothing_is_left_out(encoding: str) -> None:
    assert unpacked(TEXT, encoding) == TEXT


def test_an_encoding_that_is_not_known_is_named_so() -> None:
    with pytest.raises(UnknownEncodingError):
        unpacked(TEXT, "acme")


def test_an_encoding_without_its_library_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        return import_module(f"no_{name.replace('.', '_')}")

    monkeypatch.setattr(inflate, "import_module", missing)
    with pytest.raises(UnknownEncodingError):
        unpacked(TEXT, "br")


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_cut_file_says_so_after_what_came_before(pack: Pack) -> None:
    file = Unpacked(io.BytesIO(pack(MIXED)[:-9]), "gzip" if pack is gzip.compress else "deflate")
    found, error = until_it_raises(file)
    assert type(error) is EOFError
    assert MIXED.startswith(found)
    assert len(MIXED) - len(found) < BLOCK


def test_bytes_given_to_a_decoder_grow_linearly_with_the_members() -> None:
    """What one member leaves of its slice is short: else each member would copy the rest of it."""
    given: list[int] = []
    real = zlib.decompressobj

    class Counted:
        def __init__(self, wbits: int) -> None:
            self._inner = real(wbits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def decompress(self, data: bytes, most: int) -> bytes:
            given.append(len(data))
            return self._inner.decompress(data, most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zlib, "decompressobj", Counted)
        unpacked(gzip.compress(b"x") * 5000, "gzip")
    assert sum(given) <= 5000 * 512
