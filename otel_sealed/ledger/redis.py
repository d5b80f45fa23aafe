"""The shared ledger in Redis: for processes of several machines.

Turns are there packed (`packed`), each with a MAC (`shared.trust`) under its number; for each key
it is found by there is a sorted set of numbers, for each conversation another, and one of all
turns. Everything is under one prefix. The server sees digests, sizes and places, which are
pseudonymous. The key of the digests is kept there only where that is asked for (`keeps_key`):
whoever may read the server has it then, and may make records that count.

Reading waits for an answer to begin 50 ms at most, and for all of it a little longer
(`shared.deadline`). What the whole history of a request asks for is fetched in few round trips.
After a fault the server is left alone for a while (`shared`). A single key of another type is no
fault: it holds nothing, and writing replaces it.

Bounds: `max_turns` turns, the oldest go first; the age of the ledger, as the time to live of all
that is kept; of each key the newest 32 turns. A number of a turn that is gone may be named until
its key is too old: asked for, there is no such turn.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from otel_sealed.ledger.index import MAX_SAME_KEY
from otel_sealed.ledger.memory import MAX_TURNS
from otel_sealed.ledger.shared import BATCH, Row, SharedLedger
from otel_sealed.ledger.shared.deadline import Deadline
from otel_sealed.ledger.shared.trust import KEY_BYTES, MAX_RECORD

__all__ = ["RedisStore", "opened"]

_PREFIX: Final = b"otel_sealed:1:"
_KEY: Final = _PREFIX + b"key"
_ALL: Final = _PREFIX + b"all"
_KEY_BYTES: Final = 32
_WAIT_S: Final = 0.05
_CONNECT_S: Final = 0.25
_KEPT: Final = 2 * MAX_SAME_KEY
"""Numbers in a set: those of a process whose clock is ahead take no place of the others'."""
_COMMANDS: Final = 512
"""Of writing in one round trip: a server answers as many in 5 ms, and a busy one in 250."""
_MEMBER: Final = re.compile(rb"[0-9a-f]{16}")


class RedisStore:
    """A server of turns."""

    faults: tuple[type[Exception], ...] = (redis.RedisError, OSError, ValueError, TypeError)
    far = True

    def __init__(
        self,
        url: str,
        max_turns: int = MAX_TURNS,
        max_age_s: float = 7 * 86_400.0,
        *,
        keeps_key: bool = False,
    ) -> None:
        """`url` as redis-py takes it; raises ValueError if it is none. Nothing is connected yet."""
        self._url = url
        self._max_turns = max_turns
        self._life_s = max(int(max_age_s), 1)
        self._keeps_key = keeps_key
        self._client = self._connection()

    def open(self) -> object:
        """The key kept there, made where there is none; None where none is to be kept."""
        if not self._keeps_key:
            self._client.ping()
            return None
        self._client.set(_KEY, secrets.token_bytes(_KEY_BYTES), nx=True)
        (key,) = self._all([("GETRANGE", _KEY, 0, KEY_BYTES.stop)])
        return b"" if key is None else key

    def numbers(self, keys: Sequence[bytes], latest: int) -> list[list[object]]:
        """For each key the numbers of turns that may hold it, at most the newest 16 to `latest`."""
        found = self._all([("ZRANGE", _set(b"k", key), -_KEPT, -1) for key in keys])
        return [_numbers(members, latest) for members in found]

    def newest(self, conversation: bytes, latest: int) -> list[object]:
        """Numbers of turns that may be of a conversation, at most the newest 16 to `latest`."""
        (members,) = self._all([("ZRANGE", _set(b"c", conversation), -_KEPT, -1)])
        return _numbers(members, latest)

    def records(self, numbers: Sequence[int]) -> list[object]:
        """What is kept under each of these numbers, or None, in one round trip.

        No more of each than shows that it is too large.
        """
        found = self._all([("GETRANGE", _turn(_member(n)), 0, MAX_RECORD) for n in numbers])
        return [0 if value is None else value or None for value in found]

    def count(self) -> object:
        """Turns held."""
        (held,) = self._all([("ZCARD", _ALL)])
        return 0 if held is None else held

    def now_ns(self) -> object:
        """The server's time."""
        ((seconds, micros),) = self._all([("TIME",)])
        return int(seconds) * 10**9 + int(micros) * 1_000

    def write(self, rows: Sequence[Row], oldest: int, latest: int) -> int:
        """Keep turns and prune; how many were pruned."""
        life = self._life_s
        asked: list[tuple[Any, ...]] = []
        for row in rows:
            member = _member(row.number)
            asked += (("SET", _turn(member), row.data, "EX", life), ("ZADD", _ALL, 0, member))
            sets = [_set(b"k", key) for key in row.keys]
            if row.conversation:
                sets.append(_set(b"c", row.conversation))
            for name in sets:
                asked += (
                    ("ZADD", name, 0, member),
                    ("ZREMRANGEBYRANK", name, 0, -_KEPT - 1),
                    ("EXPIRE", name, life),
                )
        said = [reply for some in _chunks(asked) for reply in self._all(some)]
        wrong = {name for (_, name, *_), reply in zip(asked, said, strict=True) if reply is None}
        if wrong:  # of another type, under our prefix: nobody's but a stranger's
            self._all([("DEL", name) for name in wrong])
            self._all([command for command in asked if command[1] in wrong])
        return self._prune(oldest, latest)

    def _prune(self, oldest: int, latest: int) -> int:
        """Delete turns that are too many or too old, a batch at most."""
        before = ("ZRANGEBYLEX", _ALL, "-", b"(" + _member(oldest), "LIMIT", 0, BATCH)
        gone, held = self._all([before, ("ZCARD", _ALL)])
        gone = list(gone or ())
        over = min(int(held or 0) - self._max_turns, BATCH)
        if over > len(gone):
            after = ("ZREVRANGEBYLEX", _ALL, "+", b"(" + _member(latest), "LIMIT", 0, over)
            late, first = self._all([after, ("ZRANGE", _ALL, 0, over - 1)])
            gone = list(dict.fromkeys((*(late or ()), *(first or ()))))[:over]
        if gone:
            names = [_turn(member) for member in gone if _MEMBER.fullmatch(member)]
            self._all([("ZREM", _ALL, *gone), *[("DEL", name) for name in names]])
        return len(gone)

    def _all(self, asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The replies to several commands in one round trip; None to one on a key of another type.

        Raises what else the server refuses.
        """
        pipe = self._client.pipeline(transaction=False)
        for command in asked:
            pipe.execute_command(*command)
        said = pipe.execute(raise_on_error=False)
        for at, reply in enumerate(said):
            if isinstance(reply, Exception):
                if not str(reply).startswith("WRONGTYPE"):
                    raise reply
                said[at] = None
        return list(said)

    def forked(self) -> None:
        """Leave the connections to the parent."""
        _left.append(self._client)
        self._client = self._connection()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _connection(self) -> Any:
        client = redis.Redis.from_url(
            self._url,
            socket_timeout=_WAIT_S,
            socket_connect_timeout=_CONNECT_S,
            retry=Retry(NoBackoff(), 0),
        )
        pool = client.connection_pool
        pool.connection_kwargs["decode_responses"] = False  # a URL may ask for it
        pool.connection_class = _bounded(pool.connection_class)
        return client


_left: list[Any] = []
"""Clients of a parent process, kept so that nobody closes their connections."""


def _bounded(connection: Any) -> Any:
    class Bounded(connection):  # type: ignore[misc]
        def _connect(self) -> Any:
            return Deadline(super()._connect(), _WAIT_S)

    return Bounded


def opened(
    url: str, max_turns: int, max_bytes: int, max_age_s: float, *, keeps_key: bool = False
) -> SharedLedger:
    """The ledger on a server; where it is away, memory stands in. Raises ValueError for no URL."""
    store = RedisStore(url, max_turns, max_age_s, keeps_key=keeps_key)
    return SharedLedger(
        store, name="redis", max_turns=max_turns, max_bytes=max_bytes, max_age_s=max_age_s
    )


def _member(number: int) -> bytes:
    """A number so that sets with equal scores are in its order; their scores are not exact."""
    return b"%016x" % number


def _numbers(members: Iterable[object] | None, latest: int) -> list[object]:
    """The newest of what members of a set say to `latest`; None for one not spelt as ours are."""
    found: list[object] = []
    for member in (None,) if members is None else members:
        if type(member) is not bytes or not _MEMBER.fullmatch(member):
            found.append(None)
        elif (number := int(member, 16)) <= latest:
            found.append(number)
    return found[-MAX_SAME_KEY:]


def _chunks(asked: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    return (asked[at : at + _COMMANDS] for at in range(0, len(asked), _COMMANDS))


def _turn(member: bytes) -> bytes:
    return _PREFIX + b"t:" + member


def _set(kind: bytes, key: bytes) -> bytes:
    return _PREFIX + kind + b":" + key.hex().encode()
