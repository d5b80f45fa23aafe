"""The shared ledger in Redis: for processes of several machines.

Turns stand there packed (`packed`), each under its number; for each key it is found by there is a
sorted set of numbers, for each conversation another, and one of all turns. Everything is under one
prefix. The server sees digests, sizes and places, which are pseudonymous. The key of the digests is
kept there, too, for processes that have none configured; on a server that others read, configure
`OTEL_SEALED_HASH_KEY`, and none is asked for.

Reading waits for the server 50 ms at most a round trip, and what the whole history of a request
asks for is fetched in few of them. After a fault the server is left alone for a while (`shared`).

Bounds: `max_turns` turns, the oldest go first; the age of the ledger, as the time to live of all
that is kept; of each key the newest 16 turns. A number of a turn that is gone may be named until
its key is too old: asked for, there is no such turn.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from otel_sealed.ledger.index import MAX_SAME_KEY
from otel_sealed.ledger.memory import MAX_TURNS
from otel_sealed.ledger.shared import BATCH, Row, SharedLedger

__all__ = ["RedisStore", "opened"]

_PREFIX: Final = b"otel_sealed:1:"
_KEY: Final = _PREFIX + b"key"
_ALL: Final = _PREFIX + b"all"
_KEY_BYTES: Final = 32
_WAIT_S: Final = 0.05
_CONNECT_S: Final = 0.25


class RedisStore:
    """A server of turns."""

    faults: tuple[type[Exception], ...] = (redis.RedisError, OSError, ValueError, TypeError)

    def __init__(
        self, url: str, max_turns: int = MAX_TURNS, max_age_s: float = 7 * 86_400.0
    ) -> None:
        """`url` as redis-py takes it; raises ValueError if it is none. Nothing is connected yet."""
        self._url = url
        self._max_turns = max_turns
        self._life_s = max(int(max_age_s), 1)
        self._client = self._connection()

    def open(self) -> bytes:
        """The key kept there, made where there is none."""
        self._client.set(_KEY, secrets.token_bytes(_KEY_BYTES), nx=True)
        return bytes(self._client.get(_KEY))

    def lookup(self, key: bytes) -> list[int]:
        """Numbers of the turns that hold `key`, ascending, at most the newest 16."""
        return self.lookups([key])[0]

    def lookups(self, keys: Sequence[bytes]) -> list[list[int]]:
        """The same for several keys, in one round trip."""
        pipe = self._client.pipeline(transaction=False)
        for key in keys:
            pipe.zrange(_set(b"k", key), -MAX_SAME_KEY, -1)
        return [[int(member, 16) for member in members] for members in pipe.execute()]

    def get(self, number: int) -> bytes | None:
        """A packed turn."""
        return self.gets([number])[0]

    def gets(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Several packed turns, in one round trip."""
        return list(self._client.mget([_turn(_member(number)) for number in numbers]))

    def last(self, conversation: bytes) -> int:
        """The newest turn of a conversation, or -1."""
        found = self._client.zrange(_set(b"c", conversation), -1, -1)
        return int(found[0], 16) if found else -1

    def count(self) -> int:
        """Turns held."""
        return int(self._client.zcard(_ALL))

    def write(self, rows: Sequence[Row], oldest: int) -> int:
        """Keep turns and prune; how many were pruned."""
        pipe = self._client.pipeline(transaction=False)
        for row in rows:
            member = _member(row.number)
            pipe.set(_turn(member), row.data, ex=self._life_s)
            pipe.zadd(_ALL, {member: 0})
            sets = [_set(b"k", key) for key in row.keys]
            if row.conversation:
                sets.append(_set(b"c", row.conversation))
            for name in sets:
                pipe.zadd(name, {member: 0})
                pipe.zremrangebyrank(name, 0, -MAX_SAME_KEY - 1)
                pipe.expire(name, self._life_s)
        pipe.zremrangebylex(_ALL, "-", b"(" + _member(max(oldest, 0)))
        pipe.zcard(_ALL)
        *_, old, held = pipe.execute()
        over = min(int(held) - self._max_turns, BATCH)
        if over > 0:
            gone = [member for member, _ in self._client.zpopmin(_ALL, over)]
            self._client.delete(*map(_turn, gone))
        return int(old) + max(over, 0)

    def forked(self) -> None:
        """Leave the connections to the parent."""
        _left.append(self._client)
        self._client = self._connection()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _connection(self) -> Any:
        return redis.Redis.from_url(
            self._url,
            socket_timeout=_WAIT_S,
            socket_connect_timeout=_CONNECT_S,
            retry=Retry(NoBackoff(), 0),
        )


_left: list[Any] = []
"""Clients of a parent process, kept so that nobody closes their connections."""


def opened(url: str, max_turns: int, max_bytes: int, max_age_s: float) -> SharedLedger:
    """The ledger on a server; where it is away, memory stands in. Raises ValueError for no URL."""
    store = RedisStore(url, max_turns, max_age_s)
    return SharedLedger(
        store, name="redis", max_turns=max_turns, max_bytes=max_bytes, max_age_s=max_age_s
    )


def _member(number: int) -> bytes:
    """A number so that sets with equal scores are in its order; their scores are not exact."""
    return b"%016x" % number


def _turn(member: bytes) -> bytes:
    return _PREFIX + b"t:" + member


def _set(kind: bytes, key: bytes) -> bytes:
    return _PREFIX + kind + b":" + key.hex().encode()
