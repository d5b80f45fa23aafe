"""Every list and every text of the conversations of all dialects, made longer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from otel_sealed.contract import Api, Exchange
from tests.core import conversations as c

Path = tuple[str | int, ...]
TEXT = 100
"""Characters a text is made longer by, for each item that a list is made longer by."""
FILLINGS = ("a ", "__", "<a>", "> \n")
"""Texts that were slow: words, what glues a value to an id, open tags, quoted lines."""


@dataclass(frozen=True)
class Cell:
    """One place of a conversation: in the answer or in the request, kept or without its seals."""

    dialect: str
    where: str
    path: Path
    host: str
    filling: str = ""

    def __str__(self) -> str:
        filling = f"-{FILLINGS.index(self.filling)}" if self.filling else ""
        return f"{self.dialect}-{self.where}-{'.'.join(map(str, self.path))}-{self.host}{filling}"


def _walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, value
    children: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    for key, child in children:
        yield from _walk(child, (*path, key))


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _renamed(value: Any, number: int) -> Any:
    """A copy of an item, its texts told apart by a number in front of their end."""
    if isinstance(value, dict):
        plain = ("type", "role", "format", "name")
        return {k: v if k in plain else _renamed(v, number) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(one, number) for one in value]
    if isinstance(value, str) and len(value) > 6:
        return f"{value[:-4]}{number:04d}{value[-4:]}"
    return value


def _pump(body: Any, path: Path, n: int, filling: str) -> Any:
    body = copy.deepcopy(body)
    found = _at(body, path)
    if isinstance(found, list):
        items = list(found)
        found.extend(_renamed(items[i % len(items)], i) for i in range(n))
    elif path:
        _at(body, path[:-1])[path[-1]] = found + filling * (n * TEXT // len(filling))
    return body


SEALED = {"signature", "encrypted_content", "thoughtSignature", "thought_signature", "data"}


def _bare(value: Any) -> Any:
    """The same without what is sealed."""
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if k not in SEALED}
    return [_bare(one) for one in value] if isinstance(value, list) else value


HOSTS: dict[str, Callable[[c.Body], Any]] = {"kept": copy.deepcopy, "bare": _bare}


def _interactions() -> tuple[c.Body, list[c.Body]]:
    mint = c.Mint("growth")
    steps: list[c.Body] = [
        {
            "type": "thought",
            "signature": mint.seal(),
            "summary": [{"type": "text", "text": "Why."}],
        },
        {"type": "google_search_call", "id": "g_1", "arguments": {}, "signature": mint.seal()},
        {"type": "google_search_result", "call_id": "g_1", "result": [{"url": "https://a.test"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "The second ledger."}]},
    ]
    asked = {"model": "gemini-3-pro-preview", "store": False}
    asked["input"] = [{"type": "user_input", "content": [{"type": "text", "text": "Which?"}]}]
    return asked, steps


def _answer(dialect: str) -> c.Body:
    if dialect == "interactions":
        return {"id": "i_1", "model": "gemini-3-pro-preview", "steps": _interactions()[1]}
    return c.responses(dialect, "growth")[0]


def _request(dialect: str, answer: c.Body | None) -> c.Body:
    if dialect == "interactions":
        asked = _interactions()[0]
        if answer is not None:
            asked["input"] += [*copy.deepcopy(answer["steps"]), *copy.deepcopy(asked["input"])]
        return asked
    return c.request(dialect, [] if answer is None else [answer], "growth")


def _exchange(dialect: str, asked: c.Body, answer: c.Body | None) -> Exchange:
    if dialect == "interactions":
        return Exchange(Api.INTERACTIONS, "google", request=asked, response=answer, status=200)
    return c.exchange(dialect, asked, answer)


def _cells() -> Iterator[Cell]:
    for dialect in ("anthropic", "openai", "gemini", "chat", "openrouter", "interactions"):
        answer = _answer(dialect)
        bodies = {"answer": answer, "request": _request(dialect, answer)}
        for where, body in bodies.items():
            for path, value in _walk(body):
                lists = isinstance(value, list) and value
                fillings = [""] if lists else list(FILLINGS) if isinstance(value, str) else []
                # one filling a text is enough, in turn; the shapes have each of them by name
                if len(fillings) > 1:
                    fillings = [fillings[len(path) % len(fillings)]]
                for filling in fillings:
                    for host in HOSTS:
                        yield Cell(dialect, where, path, host, filling)


CELLS = list(_cells())


def pumped(cell: Cell, n: int) -> list[Exchange]:
    """Two calls: an answer comes in, and the history with it goes out; one place is longer."""
    dialect, answer = cell.dialect, _answer(cell.dialect)
    if cell.where == "answer":
        answer = _pump(answer, cell.path, n, cell.filling)
    asked = HOSTS[cell.host](_request(dialect, answer))
    if cell.where == "request":
        try:
            asked = _pump(asked, cell.path, n, cell.filling)
        except (KeyError, IndexError):  # the place is gone with the seals
            return [_exchange(dialect, asked, None)]
    return [_exchange(dialect, _request(dialect, None), answer), _exchange(dialect, asked, None)]
